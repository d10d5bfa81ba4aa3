// Dynamic connections, element by element, over a simulated network: the packets on the link, and the delivered segments.
import { describe, expect, it } from "vitest";
import {
  ACCEPT_RESPONDER_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_HALF,
  PACKET_LENGTH_OFFSET,
  PACKET_REFUSE,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
} from "../../assembly/layout.js";
import type { Link } from "../../src/link/link.js";
import { NO_FAULTS } from "../../src/link/simulated-network.js";
import { keyOf, Simulation, type SimulationOptions } from "./nodes.js";

interface Observed {
  readonly from: number;
  readonly to: number;
  readonly kind: number;
  readonly flags: number;
  readonly session: number;
  readonly packet: DataView;
}

const KINDS: Record<number, string> = {
  [PACKET_CONNECT]: "connect",
  [PACKET_DATA]: "data",
  [PACKET_DISCONNECT]: "disconnect",
  [PACKET_ACCEPT]: "accept",
  [PACKET_REFUSE]: "refuse",
  [PACKET_ACKNOWLEDGE]: "acknowledge",
};

/** A simulation, and the packets that are sent in it. */
function watched(options: SimulationOptions): { simulation: Simulation; seen: Observed[] } {
  const simulation = new Simulation(options);
  const seen: Observed[] = [];
  simulation.network.isLost = (from, to, bytes) => {
    const packet = new DataView(bytes.slice().buffer);
    const session = packet.getUint32(PACKET_SESSION_OFFSET, true);
    seen.push({ from, to, kind: packet.getUint8(2), flags: packet.getUint8(3), session, packet });
    return false;
  };
  return { simulation, seen };
}

const names = (seen: readonly Observed[]): string[] => seen.map(({ kind }) => KINDS[kind] as string);
const text = (i: number): Buffer => Buffer.from(`segment ${i}`);

/** The segments that a stream should have delivered. */
const expected = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}:segment ${i}`);

describe("a node with one initiator context", () => {
  it("D1 D2 D3 D4 D5 one context serves five nodes, one session after the other", () => {
    const { simulation, seen } = watched({ seed: 1, nodes: 6, sessions: { initiators: 1 } });
    for (let to = 1; to < 6; to++) expect(simulation.submit(0, to, text(0))).toBe(true);
    expect(simulation.run()).toBe(true);
    for (let to = 1; to < 6; to++) expect(simulation.given.get(`0>${4 * to}`)).toEqual(expected(1));
    const connects = seen.filter(({ kind }) => kind === PACKET_CONNECT);
    const initiators = connects.map(({ packet }) => packet.getUint32(PACKET_SIZE + CONNECT_INITIATOR_OFFSET, true));
    // It is the same context; its reference changes with each connection.
    expect(new Set(initiators.map((reference) => reference & 0xfff)).size).toBe(1);
    expect(new Set(initiators).size).toBe(5);
    for (let to = 1; to < 6; to++) {
      const between = seen.filter((one) => one.from === to || one.to === to);
      expect(names(between)).toEqual(["connect", "accept", "data", "acknowledge", "disconnect"]);
      const [connect, accept, data, acknowledge, disconnect] = between as [
        Observed,
        Observed,
        Observed,
        Observed,
        Observed,
      ];
      const id = accept.packet.getUint32(PACKET_SIZE + ACCEPT_RESPONDER_OFFSET, true);
      expect([data.session, disconnect.session]).toEqual([id, id]);
      const reference = connect.packet.getUint32(PACKET_SIZE + CONNECT_INITIATOR_OFFSET, true);
      expect([accept.session, acknowledge.session]).toEqual([reference, reference]);
    }
    // Data goes to one node at a time. The connect packet to the next node goes first.
    const way = seen.filter(({ from, kind }) => from === 0 && kind !== PACKET_DISCONNECT);
    expect(way.map(({ kind, to }) => `${KINDS[kind]} ${to}`)).toEqual([
      "connect 1",
      ...[2, 3, 4, 5].flatMap((to) => [`connect ${to}`, `data ${to - 1}`]),
      "data 5",
    ]);
  });

  it("D5 D5a a context moves on when it has sent everything, and leaves at most two sessions that wait for acknowledgments", () => {
    const { simulation, seen } = watched({ seed: 20, nodes: 6, sessions: { initiators: 1 } });
    const watch = simulation.network.isLost;
    // No acknowledgment arrives.
    simulation.network.isLost = (from, to, packet) => watch(from, to, packet) || packet[2] === PACKET_ACKNOWLEDGE;
    for (let to = 1; to < 6; to++) simulation.submit(0, to, text(0));
    simulation.run(900);
    expect(seen.filter(({ kind }) => kind === PACKET_CONNECT).map(({ to }) => to)).toEqual([1, 2, 3]);
    expect(seen.filter(({ kind }) => kind === PACKET_DATA).map(({ to }) => to)).toEqual([1, 2, 3]);
    simulation.network.isLost = watch;
    expect(simulation.run(200_000)).toBe(true);
    for (let to = 1; to < 6; to++) expect(simulation.given.get(`0>${4 * to}`)).toEqual(expected(1));
  });

  it("D5 D8 a session that its context has left retransmits lost packets, and sends what is submitted for its node meanwhile", () => {
    const { simulation, seen } = watched({ seed: 21, nodes: 3, sessions: { initiators: 1 } });
    const watch = simulation.network.isLost;
    let lost = 0;
    simulation.network.isLost = (from, to, packet) => {
      watch(from, to, packet);
      return to === 1 && packet[2] === PACKET_DATA && lost++ === 0;
    };
    simulation.submit(0, 1, text(0));
    simulation.submit(0, 2, text(0));
    simulation.network.at(1000, () => simulation.submit(0, 1, text(1)));
    expect(simulation.run()).toBe(true);
    for (const to of [1, 2]) expect(simulation.given.get(`0>${4 * to}`)).toEqual(expected(3 - to));
    const toFirst = seen.filter(({ from, to }) => from === 0 && to === 1);
    expect(names(toFirst)).toEqual(["connect", "data", "data", "data", "disconnect"]);
    expect(new Set(toFirst.slice(1).map(({ session }) => session)).size).toBe(1);
    expect(simulation.nodes[0]?.sessions.counts.retransmitted).toBe(1);
  });

  it("D5a D10 a node that falls silent after its context has moved on is given up, and only its own segments are lost", () => {
    const simulation = new Simulation({ seed: 22, nodes: 3, sessions: { initiators: 1 } });
    simulation.network.isLost = (_, to, packet) => to === 1 && packet[2] === PACKET_DATA;
    for (let i = 0; i < 10; i++) for (const to of [1, 2]) simulation.submit(0, to, text(i));
    for (let i = 10; i < 100; i++) simulation.network.at(10_000 * i, () => simulation.submit(0, 2, text(i)));
    expect(simulation.run(20e6)).toBe(true);
    expect(simulation.lost).toEqual([[0, 1, false]]);
    expect(simulation.given.get("0>8")).toEqual(expected(100));
    expect(simulation.nodes[0]?.sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0 });
  });

  it("D5 a node that restarts before its last acknowledgment is a new incarnation", () => {
    const simulation = new Simulation({ seed: 23, nodes: 3, sessions: { initiators: 1 } });
    simulation.network.isLost = (_, to, packet) =>
      to === 1 && packet[2] === PACKET_DATA && simulation.network.now < 500;
    for (const to of [1, 2]) simulation.submit(0, to, text(0));
    simulation.run(400);
    simulation.restart(simulation.nodes[1] as (typeof simulation.nodes)[0]);
    expect(simulation.run()).toBe(true);
    expect(simulation.lost).toEqual([[0, 1, true]]);
    expect(simulation.given.get("0>8")).toEqual(expected(1));
    simulation.submit(0, 1, text(0));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4@2")).toEqual(expected(1));
    expect(simulation.given.get("0>4")).toBeUndefined();
  });

  it("D5a a connection that has sent its quota yields to the node that waits, and gets another turn", () => {
    const { simulation, seen } = watched({
      seed: 2,
      nodes: 3,
      sessions: { initiators: 1, txQueueBytes: 1e9 },
    });
    for (let i = 0; i < 1000; i++) for (const to of [1, 2]) simulation.submit(0, to, Buffer.alloc(1000));
    simulation.run();
    for (const to of [1, 2]) expect(simulation.given.get(`0>${4 * to}`)).toHaveLength(1000);
    const turns = seen.filter(({ kind }) => kind === PACKET_CONNECT).map(({ to }) => to);
    expect(turns.length).toBeGreaterThan(10);
    for (const [i, to] of turns.entries()) if (i > 0) expect(to).not.toBe(turns[i - 1]);
  });

  it("D5a silent nodes do not hold contexts: with two contexts and two silent nodes, a third node is served at once", () => {
    const simulation = new Simulation({ seed: 3, nodes: 4, sessions: { initiators: 2 } });
    simulation.network.isLost = (_, to) => to === 1 || to === 2;
    for (const to of [1, 2]) simulation.submit(0, to, text(0));
    simulation.run(1000);
    simulation.submit(0, 3, text(0));
    simulation.run(200_000);
    expect(simulation.given.get("0>12")).toEqual(expected(1));
  });

  it("D10 a node that does not answer is given up in bounded time, and its number is reported; the others go on", () => {
    const simulation = new Simulation({ seed: 4, nodes: 4, sessions: { initiators: 1 } });
    simulation.network.isLost = (_, to) => to === 1;
    for (let i = 0; i < 100; i++) for (const to of [1, 2, 3]) simulation.submit(0, to, text(i));
    expect(simulation.run(20e6)).toBe(true);
    expect(simulation.lost).toEqual([[0, 1, false]]);
    for (const to of [2, 3]) expect(simulation.given.get(`0>${4 * to}`)).toEqual(expected(100));
    expect(simulation.nodes[0]?.sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0 });
  });

  it.each([0.5, 3, 120, undefined])(
    "D10 it is given up after the silence, and not before: of %s s; else of 60",
    (seconds) => {
      const silence = seconds && 1e6 * seconds;
      const times: number[] = [];
      const onLost = (): void => void times.push(simulation.network.now);
      const simulation = new Simulation({ seed: 4, nodes: 2, sessions: { silence }, onLost });
      simulation.network.isLost = (_, to) => to === 1;
      simulation.submit(0, 1, text(0));
      expect(simulation.run(200e6)).toBe(true);
      expect(times).toHaveLength(1);
      const ratio = (times[0] as number) / (silence ?? 60e6);
      expect(ratio).toBeGreaterThan(1);
      // The last attempt may come when half of the silence is over.
      expect(ratio).toBeLessThan(2);
    },
  );
});

describe("handshakes", () => {
  it("D5b full: no data before the answer", () => {
    const { simulation, seen } = watched({ seed: 5, nodes: 2 });
    for (let i = 0; i < 300; i++) simulation.submit(0, 1, text(i));
    simulation.run();
    expect(names(seen).slice(0, 3)).toEqual(["connect", "accept", "data"]);
    expect(seen.some(({ flags }) => (flags & PACKET_HALF) !== 0)).toBe(false);
  });

  it("D5b 0-RTT, on a faithful link: data follows at once, and carries the nonce until the origin knows the session id", () => {
    const { simulation, seen } = watched({ seed: 6, nodes: 2, isFaithful: true });
    // The first handshake is a full one, because the target's incarnation is unknown.
    simulation.submit(0, 1, text(0));
    simulation.run();
    expect(names(seen)).toEqual(["connect", "accept", "data", "acknowledge", "disconnect"]);
    seen.length = 0;
    for (let i = 1; i < 300; i++) simulation.submit(0, 1, text(i));
    simulation.run();
    expect(names(seen).slice(0, 2)).toEqual(["connect", "data"]);
    const data = seen.filter(({ kind }) => kind === PACKET_DATA);
    expect(data[0]?.flags).toBe((data[0]?.flags as number) | PACKET_HALF);
    expect(simulation.given.get("0>4")).toEqual(expected(300));
  });

  it("D7 without a free responder a connection is refused and tried again, and nothing is lost", () => {
    const { simulation, seen } = watched({ seed: 7, nodes: 9, sessions: { responders: 1 } });
    for (let i = 0; i < 50; i++) for (let from = 1; from < 9; from++) simulation.submit(from, 0, text(i));
    expect(simulation.run()).toBe(true);
    expect(names(seen)).toContain("refuse");
    for (let from = 1; from < 9; from++) expect(simulation.given.get(`${4 * from}>0`)).toEqual(expected(50));
    expect(simulation.lost).toEqual([]);
  });
});

describe("handshakes with a node that restarts", () => {
  it("D5b 0-RTT: a new incarnation does not take data that was meant for the previous one", () => {
    const { simulation, seen } = watched({ seed: 18, nodes: 2, isFaithful: true });
    simulation.submit(0, 1, text(0));
    simulation.run();
    simulation.restart(simulation.nodes[1] as (typeof simulation.nodes)[0]);
    simulation.submit(0, 1, text(1));
    simulation.run();
    expect(seen.some(({ flags }) => (flags & PACKET_HALF) !== 0)).toBe(true);
    expect(simulation.lost).toEqual([[0, 1, true]]);
    expect(simulation.given.get("0>4@2")).toBeUndefined();
    for (let i = 0; i < 3; i++) simulation.submit(0, 1, text(i));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4@2")).toEqual(expected(3));
    expect(simulation.nodes[1]?.sessions.inUse.buffered).toBe(0);
  });
});

describe("handshakes that are refused", () => {
  it("D5b D7 0-RTT: without a free responder, the origin backs off, as after a full handshake", () => {
    const sessions = { initiators: 1, responders: 1 };
    const { simulation, seen } = watched({ seed: 13, nodes: 9, isFaithful: true, sessions });
    for (let from = 1; from < 9; from++) simulation.submit(from, 0, text(0));
    simulation.run();
    seen.length = 0;
    for (let i = 1; i < 50; i++) for (let from = 1; from < 9; from++) simulation.submit(from, 0, text(i));
    expect(simulation.run()).toBe(true);
    expect(names(seen)).toContain("refuse");
    expect(seen.filter(({ kind }) => kind === PACKET_CONNECT).length).toBeLessThan(9 * 20);
    for (let from = 1; from < 9; from++) expect(simulation.given.get(`${4 * from}>0`)).toEqual(expected(50));
  });
});

describe("nodes that are far from each other", () => {
  it.each([20_000, 100_000, 400_000])("go on after a cut, with a key: %i µs one way", (hopMicroseconds) => {
    // The cut lasts for so many probes that the origin takes the session for forgotten, and opens others.
    const simulation = new Simulation({ seed: 27, nodes: 2, hopMicroseconds, key: keyOf(27) });
    const [begin, end] = [10 * hopMicroseconds, 10 * hopMicroseconds + 3_000_000];
    let isCut = false;
    simulation.network.isLost = () => isCut;
    for (let i = 0; i < 40; i++) simulation.network.at((i * begin) / 10, () => simulation.submit(0, 1, text(i)));
    simulation.network.at(begin, () => {
      isCut = true;
    });
    simulation.network.at(end, () => {
      isCut = false;
    });
    const connects = (): number => simulation.nodes[0]?.sessions.counts.connects ?? 0;
    let before = 0;
    simulation.network.at(end + 1_000_000, () => {
      before = connects();
    });
    expect(simulation.run(30e6)).toBe(true);
    expect(simulation.given.get("0>4")).toEqual(expected(40));
    expect(simulation.lost).toEqual([]);
    expect(connects() - before, "connect packets later than a second after the cut").toBeLessThanOrEqual(4);
  });
});

describe("more nodes than contexts, which all begin at once, far from each other", () => {
  const SHAPES: readonly [string, number, number, (from: number, to: number) => boolean][] = [
    ["one to all", 30, 4, (from) => from === 0],
    ["all to one, which has 4 responders", 30, 4, (_, to) => to === 0],
    ["all to all", 10, 9, () => true],
  ];
  const far = SHAPES.flatMap((shape) =>
    [1.5, 3, 5].flatMap((seconds) => [true, false].map((hasKey) => ({ shape, seconds, hasKey }))),
  );
  it.each(far)(
    "D5a D7 D10 $shape.0, round trips of $seconds s, with a key: $hasKey: everything comes",
    ({ shape, seconds, hasKey }) => {
      const [, nodes, responders, isPair] = shape;
      const simulation = new Simulation({
        seed: 28,
        nodes,
        hopMicroseconds: 500_000 * seconds,
        sessions: { initiators: 2, responders, silence: 60e6 },
        key: hasKey ? keyOf(28) : undefined,
      });
      const pairs = Array.from({ length: nodes * nodes }, (_, i) => [Math.floor(i / nodes), i % nodes] as const).filter(
        ([from, to]) => from !== to && isPair(from, to),
      );
      for (const [from, to] of pairs) simulation.submit(from, to, text(0));
      expect(simulation.run(600e6)).toBe(true);
      expect(simulation.lost).toEqual([]);
      for (const [from, to] of pairs) expect(simulation.given.get(`${4 * from}>${4 * to}`)).toEqual(expected(1));
      for (const { sessions } of simulation.nodes)
        expect(sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0, buffered: 0 });
    },
  );

  it("D5a a context serves the node next that has accepted its connection after that had yielded, as the same connection", () => {
    const { simulation, seen } = watched({
      seed: 29,
      nodes: 12,
      hopMicroseconds: 100_000,
      sessions: { initiators: 1 },
    });
    for (let to = 1; to < 12; to++) simulation.submit(0, to, text(0));
    expect(simulation.run()).toBe(true);
    const accepts = seen.filter(({ kind }) => kind === PACKET_ACCEPT).map(({ from }) => from);
    const data = seen.filter(({ kind }) => kind === PACKET_DATA).map(({ to }) => to);
    // The first of several answers counts.
    expect(data).toEqual([...new Set(accepts)]);
    const connects = seen.filter(({ kind }) => kind === PACKET_CONNECT);
    expect(connects.length).toBeGreaterThan(11);
    const connections = connects.map(({ packet, to }) => {
      return `${to} ${packet.getUint32(PACKET_SIZE + CONNECT_INITIATOR_OFFSET, true)}`;
    });
    expect(new Set(connections).size).toBe(11);
  });
});

describe("disconnect packets that are lost", () => {
  const isKind = (packet: Uint8Array, kind: number): boolean => packet[2] === kind;

  it.each([
    ["without a key", false, undefined],
    ["without a key, 0-RTT", true, undefined],
    ["with a key", false, keyOf(2)],
    ["with a key, 0-RTT", true, keyOf(2)],
  ])("D7 the next connection of the node takes the responder that its last one has left, %s", (_, isFaithful, key) => {
    const { simulation } = watched({ seed: 19, nodes: 2, isFaithful, key, sessions: { responders: 1 } });
    simulation.network.isLost = (_from, _to, packet) => isKind(packet, PACKET_DISCONNECT);
    for (let i = 0; i < 20; i++) {
      simulation.submit(0, 1, text(i));
      expect(simulation.run()).toBe(true);
    }
    expect(simulation.given.get("0>4")).toEqual(expected(20));
    expect(simulation.nodes[1]?.sessions.counts.refused).toBe(0);
    expect(simulation.network.now).toBeLessThan(5e6);
  });

  it("D7 a late connect packet of an earlier connection does not take the responder of the present one", () => {
    const { simulation, seen } = watched({ seed: 20, nodes: 2, sessions: { responders: 1 } });
    const watch = simulation.network.isLost;
    simulation.network.isLost = (from, to, packet) => watch(from, to, packet) || isKind(packet, PACKET_DISCONNECT);
    simulation.submit(0, 1, text(0));
    simulation.run();
    const [late] = seen.filter(({ kind }) => kind === PACKET_CONNECT) as [Observed];
    simulation.submit(0, 1, text(1));
    simulation.run(simulation.network.now + 10_000);
    simulation.nodes[1]?.sessions.receive("0", new Uint8Array(late.packet.buffer));
    simulation.submit(0, 1, text(2));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4")).toEqual(expected(3));
    expect(simulation.nodes[1]?.sessions.counts.refused).toBe(1);
    expect(seen.filter(({ kind }) => kind === PACKET_CONNECT).length).toBe(2);
  });
});

describe("numbers", () => {
  it("D6 D8 an origin keeps nothing of its past sessions, and continues each stream at its next order number", () => {
    const simulation = new Simulation({ seed: 8, nodes: 200, sessions: { initiators: 2 } });
    for (const round of [0, 1]) {
      for (let to = 1; to < 200; to++) simulation.submit(0, to, text(round));
      expect(simulation.run()).toBe(true);
      expect(simulation.nodes[0]?.sessions.inUse).toEqual({ initiators: 0, responders: 0, txQueues: 0, buffered: 0 });
    }
    for (let to = 1; to < 200; to++) expect(simulation.given.get(`0>${4 * to}`)).toEqual(expected(2));
  });

  it("D8 packets that a lost session has not acknowledged come again in the next one, and are delivered once", () => {
    const { simulation, seen } = watched({ seed: 9, nodes: 5, sessions: { initiators: 1 } });
    const watch = simulation.network.isLost;
    // All data arrives, but its acknowledgments are lost. The context has left as many sessions as it may, and yet another
    // node waits. So it ends one of them.
    simulation.network.isLost = (from, to, packet) =>
      watch(from, to, packet) || (packet[2] === PACKET_ACKNOWLEDGE && from < 4 && simulation.network.now < 60_000);
    for (let i = 0; i < 100; i++) for (let to = 1; to < 4; to++) simulation.submit(0, to, text(i));
    simulation.network.at(3000, () => simulation.submit(0, 4, text(0)));
    expect(simulation.run()).toBe(true);
    expect(seen.filter(({ kind, to }) => kind === PACKET_CONNECT && to === 1).length).toBeGreaterThan(1);
    for (let to = 1; to < 4; to++) expect(simulation.given.get(`0>${4 * to}`)).toEqual(expected(100));
    expect(simulation.given.get("0>16")).toEqual(expected(1));
    expect(simulation.nodes[1]?.sessions.streams.duplicates).toBeGreaterThan(0);
  });

  it("a node that restarts is a new incarnation: what was queued for it is reported as lost, and its streams restart", () => {
    const simulation = new Simulation({ seed: 10, nodes: 2 });
    const [, other] = simulation.nodes as [unknown, (typeof simulation.nodes)[0]];
    simulation.submit(0, 1, text(0));
    simulation.run();
    simulation.restart(other);
    // Node 0 learns of the restart when it connects. The segment that it sends then is lost with the old incarnation.
    simulation.submit(0, 1, text(1));
    simulation.run();
    expect(simulation.lost).toEqual([[0, 1, true]]);
    simulation.submit(0, 1, text(0));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4@2")).toEqual(expected(1));
  });
});

describe("another incarnation of a node", () => {
  it.each([
    ["without a key", undefined],
    ["with a key", keyOf(1)],
  ])(
    "D7 an origin that learns of it frees its responder at once: nine nodes reach a node with one responder in a second, %s",
    (_, key) => {
      const simulation = new Simulation({ seed: 14, nodes: 10, key, sessions: { responders: 1 } });
      const sendAll = (): void => {
        for (let from = 1; from < 10; from++) simulation.submit(from, 0, text(0));
      };
      sendAll();
      simulation.run();
      simulation.restart(simulation.nodes[0] as (typeof simulation.nodes)[0]);
      sendAll();
      const begin = simulation.network.now;
      simulation.run();
      expect(simulation.lost.map(([who, whom]) => [who, whom]).sort()).toEqual(
        [1, 2, 3, 4, 5, 6, 7, 8, 9].map((who) => [who, 0]),
      );
      expect(simulation.network.now - begin).toBeLessThan(1e6);
    },
  );

  it.each([
    ["without delivered segments", 0, "stale"],
    ["with delivered segments", 1, "unknownSession"],
  ] as const)("D8 a late packet of an earlier incarnation, %s, is recognized and not delivered", (_, count, why) => {
    const simulation = new Simulation({ seed: 15, nodes: 2 });
    for (let i = 0; i < count; i++) simulation.submit(0, 1, text(i));
    simulation.run();
    const begin = simulation.network.now;
    const [origin] = simulation.nodes as [(typeof simulation.nodes)[0]];
    let late: Uint8Array | undefined;
    simulation.network.isLost = (from, _, packet) => {
      if (from !== 0 || packet[2] !== PACKET_DATA || late !== undefined) return false;
      late = packet.slice();
      return true;
    };
    simulation.submit(0, 1, text(count));
    simulation.run(begin + 1000);
    simulation.restart(origin);
    simulation.submit(0, 1, text(0), 1);
    simulation.run(begin + 2000);
    expect(simulation.given.get("1>4")).toEqual(expected(1));
    simulation.network.carry(0, 1, late as Uint8Array);
    simulation.run();
    expect(simulation.given.get("0>4") ?? []).toEqual(expected(count));
    expect(simulation.nodes[1]?.sessions.dropped[why]).toBe(1);
  });

  it("D10 a node that was given up without knowing it is told when it connects: streams restart in both directions", () => {
    const simulation = new Simulation({ seed: 16, nodes: 2 });
    const [one, other] = simulation.nodes as [(typeof simulation.nodes)[0], (typeof simulation.nodes)[0]];
    for (const [from, to] of [
      [0, 1],
      [1, 0],
    ] as const)
      simulation.submit(from, to, text(0));
    simulation.run();
    other.isFrozen = true;
    simulation.submit(0, 1, text(1));
    simulation.run();
    expect(simulation.lost).toEqual([[0, 1, false]]);
    other.isFrozen = false;
    // It is told when it connects. The segment that it sends then is lost.
    simulation.submit(1, 0, text(1));
    simulation.run();
    expect(simulation.lost).toEqual([
      [0, 1, false],
      [1, 0, true],
    ]);
    for (let i = 0; i < 3; i++)
      for (const [from, to] of [
        [0, 1],
        [1, 0],
      ] as const)
        simulation.submit(from, to, text(i));
    expect(simulation.run()).toBe(true);
    for (const stream of ["0>4", "4>0"]) expect(simulation.given.get(stream)).toEqual([...expected(1), ...expected(3)]);
    expect(simulation.lost).toHaveLength(2);
    expect([one, other].map(({ sessions }) => sessions.inUse.txQueues)).toEqual([0, 0]);
  });

  it("D10 a node that was given up, but sends on in an open session, is told at once, and its stream restarts", () => {
    let next = 0;
    const onLost = (node: number): void => {
      if (node === 1) next = 0;
    };
    const simulation = new Simulation({ seed: 19, nodes: 2, onLost });
    const { network } = simulation;
    // Only the connect packets of node 0 are lost: it gives node 1 up, while node 1 sends on.
    network.isLost = (from, _, packet) => from === 0 && packet[2] === PACKET_CONNECT;
    for (let i = 0; i < 1200; i++) network.at(10_000 * i, () => simulation.submit(1, 0, text(next++)));
    network.at(5000, () => simulation.submit(0, 1, text(0)));
    expect(simulation.run()).toBe(true);
    expect(simulation.lost).toEqual([
      [0, 1, false],
      [1, 0, true],
    ]);
    const given = simulation.given.get("4>0") as string[];
    expect(next).toBeGreaterThan(100);
    expect(given).toEqual([...expected(given.length - next), ...expected(next)]);
    expect(given.length).toBeGreaterThan(1190);
    expect(simulation.nodes[0]?.sessions.inUse.buffered).toBe(0);
  });

  it("D10 a node that was frozen itself does not give others up for it", () => {
    const simulation = new Simulation({ seed: 17, nodes: 2 });
    const [one] = simulation.nodes as [(typeof simulation.nodes)[0]];
    simulation.network.isLost = () => simulation.network.now < 30_000;
    simulation.submit(0, 1, text(0));
    simulation.run(30_000); // it has sent its connect packet twice
    one.isFrozen = true;
    simulation.network.at(20e6, () => {
      one.isFrozen = false;
      simulation.wake(one);
    });
    expect(simulation.run()).toBe(true);
    expect(simulation.lost).toEqual([]);
    expect(simulation.given.get("0>4")).toEqual(expected(1));
  });

  it("D5a an idle initiator context is freed, however often advance() is called", () => {
    const simulation = new Simulation({ seed: 18, nodes: 2 });
    simulation.submit(0, 1, text(0));
    for (let i = 0; i < 100; i++) {
      simulation.network.at(simulation.network.now + 1000, () => {});
      simulation.run(simulation.network.now + 1000);
      for (const node of simulation.nodes) simulation.wake(node);
    }
    expect(simulation.given.get("0>4")).toEqual(expected(1));
    expect(simulation.nodes.map(({ sessions }) => sessions.inUse)).toMatchObject([
      { initiators: 0 },
      { responders: 0 },
    ]);
  });
});

describe("congestion control", () => {
  it("a controller of the link's own bounds the packets in flight: stop-and-wait", () => {
    const onAcknowledged: number[] = [];
    const congestion = () => ({
      window: 1,
      onLost: () => {},
      onAcknowledged: (packets: number) => onAcknowledged.push(packets),
      onProbeTimeout: () => {},
    });
    const { simulation, seen } = watched({ seed: 24, nodes: 2, sessions: { congestion } });
    for (let i = 0; i < 5; i++) simulation.submit(0, 1, Buffer.alloc(1000, i));
    expect(simulation.run()).toBe(true);
    expect(names(seen)).toEqual(["connect", "accept", ...Array(5).fill(["data", "acknowledge"]).flat(), "disconnect"]);
    expect(onAcknowledged).toEqual([1, 1, 1, 1, 1]);
  });
});

describe("repair is bounded", () => {
  it.each([0.01, 0.05])("with loss of %d: at most two retransmissions for each lost packet", (loss) => {
    const faults = { loss, duplicate: 0, reorder: 0, reorderMicroseconds: 0 };
    const simulation = new Simulation({
      seed: 11,
      nodes: 2,
      faults,
      hopMicroseconds: 100,
      sessions: { txQueueBytes: 1e9 },
    });
    const { network } = simulation;
    for (let i = 0; i < 5000; i++) simulation.submit(0, 1, Buffer.alloc(1000));
    simulation.run();
    const { data, retransmitted } = (simulation.nodes[0] as (typeof simulation.nodes)[0]).sessions.counts;
    expect(data).toBe(5000);
    expect(retransmitted).toBeGreaterThan(0);
    expect(retransmitted).toBeLessThanOrEqual(2 * network.counts.lost);
    expect(simulation.nodes[1]?.sessions.counts.acknowledgments).toBeLessThanOrEqual(data / 2);
  });

  it("a clean link: no retransmissions, and at most one acknowledgment for every two packets", () => {
    for (const count of [64, 1000, 20_000]) {
      const simulation = new Simulation({ seed: 12, nodes: 2, hopMicroseconds: 100, sessions: { txQueueBytes: 1e9 } });
      for (let i = 0; i < count; i++) simulation.submit(0, 1, Buffer.alloc(1000));
      simulation.run();
      const [origin, target] = simulation.nodes as [(typeof simulation.nodes)[0], (typeof simulation.nodes)[0]];
      expect(origin.sessions.counts).toMatchObject({ data: count, retransmitted: 0 });
      expect(target.sessions.counts.acknowledgments).toBeLessThanOrEqual(count / 2);
    }
  });
});

describe.each([
  ["without a key", undefined],
  ["with a key", keyOf(1)],
])("round trips of seconds, %s", (_, key) => {
  it.each([2, 5, 10])("%i s: the node is not given up, and hardly a packet is sent twice", (seconds) => {
    const hopMicroseconds = (seconds * 1e6) / 2;
    const simulation = new Simulation({ seed: 1, nodes: 2, key, hopMicroseconds, sessions: { silence: 60_000_000 } });
    const count = 500;
    for (let i = 0; i < count; i++) expect(simulation.submit(0, 1, Buffer.alloc(1000))).toBe(true);
    // The window grows by half in each round trip.
    simulation.run(20 * seconds * 1e6);
    expect(simulation.lost).toEqual([]);
    expect(simulation.givenCount).toBe(count);
    // Before the first acknowledgment, the node is probed.
    expect(simulation.nodes[0]?.sessions.counts.retransmitted).toBeLessThan(5);
  });
});

/** Virtual seconds in which a session sends, after a start with 1 ms for a round trip. @param longer by so many µs each way, then */
function secondsFor(segments: number, hopMicroseconds: number, longer: number): number {
  let extra = 0;
  const around = (link: Link): Link => {
    const send = link.send.bind(link);
    link.send = (to, packet) => {
      if (extra === 0) return send(to, packet);
      const copy = packet.slice();
      simulation.network.at(simulation.network.now + extra, () => void send(to, copy));
      return true;
    };
    return link;
  };
  const simulation = new Simulation({ seed: 1, nodes: 2, key: undefined, hopMicroseconds, around });
  const { network } = simulation;
  let submitted = 0;
  const give = (count: number): void => {
    for (const end = submitted + count; simulation.givenCount < end; ) {
      while (submitted < end && simulation.submit(0, 1, Buffer.alloc(1000))) submitted++;
      const step = network.now + 1000;
      network.at(step, () => {});
      simulation.run(step);
    }
  };
  give(2000);
  extra = longer;
  const begin = network.now;
  give(segments);
  return (network.now - begin) / 1e6;
}

it("the path gets longer, from 1 to 41 ms: the session is soon as fast as one that began with 41 ms", () => {
  const [begun, longer] = [secondsFor(10_000, 20_500, 0), secondsFor(10_000, 500, 20_000)];
  expect(longer).toBeLessThan(2 * begun + 1);
});

describe("an acknowledgment that is due when data goes to the same node", () => {
  const ROUNDS = 20;

  /** What the datagrams of a simulation have, each as the kinds and lengths of its packets. */
  function datagrams(options: Omit<SimulationOptions, "seed" | "nodes">) {
    const simulation = new Simulation({ seed: 41, nodes: 2, turnMicroseconds: 5, ...options });
    const seen: { readonly kinds: string[]; readonly bytes: number }[] = [];
    simulation.network.isLost = (_from, _to, bytes) => {
      const view = new DataView(bytes.slice().buffer);
      const kinds: string[] = [];
      for (let at = 0; at < bytes.length; at += view.getUint16(at + PACKET_LENGTH_OFFSET, true))
        kinds.push(KINDS[view.getUint8(at + 2)] as string);
      seen.push({ kinds, bytes: bytes.length });
      return false;
    };
    return { simulation, seen };
  }

  /** Nodes 0 and 1 answer each other within a turn, so many times. */
  function pingPong(bytes: number, options: Omit<SimulationOptions, "seed" | "nodes"> = {}) {
    let given = 0;
    const { simulation, seen } = datagrams({
      ...options,
      sessionsOf: (node) => ({
        deliver: () => {
          if (++given >= 2 * ROUNDS) return;
          simulation.network.at(simulation.network.now, () => simulation.submit(node, 1 - node, new Uint8Array(bytes)));
        },
      }),
    });
    simulation.submit(0, 1, new Uint8Array(bytes));
    expect(simulation.run()).toBe(true);
    expect(given).toBe(2 * ROUNDS);
    const counts = simulation.nodes.map(({ sessions: { counts, dropped } }) => [
      counts.acknowledgments,
      counts.retransmitted,
      dropped.malformed,
    ]);
    return { seen, counts };
  }

  it.each([undefined, keyOf(41)])("D4 goes in one datagram with it, key: %s", (key) => {
    const { seen, counts } = pingPong(64, { key });
    const pairs = seen.filter(({ kinds }) => kinds.join() === "acknowledge,data");
    // All but those of the first round, in which sessions open, and the last one, which nothing follows.
    expect(pairs.length).toBeGreaterThanOrEqual(2 * ROUNDS - 4);
    expect(seen.length - pairs.length).toBeLessThan(12);
    expect(counts).toEqual([
      [ROUNDS, 0, []],
      [ROUNDS, 0, []],
    ]);
  });

  it("D4 goes alone if both have no room in a packet of the link", () => {
    const { seen, counts } = pingPong(1300, { packetBytes: 1400 });
    expect(seen.filter(({ kinds }) => kinds.length > 1)).toEqual([]);
    expect(counts.map(([acknowledgments]) => acknowledgments)).toEqual([ROUNDS, ROUNDS]);
    for (const { bytes } of seen) expect(bytes).toBeLessThanOrEqual(1400);
  });

  it("D4 goes alone, after a turn, if there is no data for its node", () => {
    const { simulation, seen } = datagrams({});
    for (let i = 0; i < ROUNDS; i++) simulation.network.at(1000 * i, () => simulation.submit(0, 1, text(i)));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4")).toEqual(expected(ROUNDS));
    expect(seen.filter(({ kinds }) => kinds.length > 1)).toEqual([]);
    expect(seen.filter(({ kinds }) => kinds[0] === "acknowledge")).toHaveLength(ROUNDS);
  });

  it("D4 D8 a datagram with both that is lost, or comes twice, costs neither", () => {
    for (const faults of [{ loss: 0.2 }, { duplicate: 0.5 }, { reorder: 0.5, reorderMicroseconds: 100 }]) {
      const { seen } = pingPong(64, { key: keyOf(42), faults: { ...NO_FAULTS, ...faults } });
      expect(seen.some(({ kinds }) => kinds.length > 1)).toBe(true);
    }
  });
});
