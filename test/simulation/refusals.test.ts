// Links without room: what a link refuses waits at its node, and is no loss. The network here loses nothing, so that each
// retransmission would be due to a refusal.
import { describe, expect, it } from "vitest";
import type { Link } from "../../src/link/link.js";
import { DelayController } from "../../src/session/pace/congestion.js";
import { keyOf, Simulation, type SimulationOptions } from "./nodes.js";

/** Bytes of the content of each segment, and what surrounds it in a packet of its own. */
const CONTENT = 1344;
const PACKET = CONTENT + 16 + 24;

/** Microseconds. */
const MINUTE = 60_000_000;

interface Watched {
  readonly simulation: Simulation;
  /** Packets that links refused. */
  readonly refused: () => number;
  /** Losses and probe timeouts that controllers were told of. */
  readonly alarms: () => number;
}

function watched(options: Omit<SimulationOptions, "seed">): Watched {
  let [refused, alarms] = [0, 0];
  const around = (link: Link): Link => {
    const own = options.around?.(link) ?? link;
    const send = own.send.bind(own);
    own.send = (to, packet) => {
      const isTaken = send(to, packet);
      if (!isTaken) refused++;
      return isTaken;
    };
    return own;
  };
  class Watching extends DelayController {
    override onLost(packets: number): void {
      alarms++;
      super.onLost(packets);
    }
    override onProbeTimeout(): void {
      alarms++;
      super.onProbeTimeout();
    }
  }
  const sessions = {
    txQueueBytes: 1e9,
    congestion: (...parameters: ConstructorParameters<typeof DelayController>) => new Watching(...parameters),
    ...options.sessions,
  };
  const simulation = new Simulation({ queueBytes: 1e9, keepsContents: false, ...options, seed: 1, around, sessions });
  return { simulation, refused: () => refused, alarms: () => alarms };
}

const retransmitted = ({ nodes }: Simulation): number =>
  nodes.reduce((sum, { sessions }) => sum + sessions.counts.retransmitted, 0);

/** A link that takes nothing while `isBlocked()`; the caller calls its onRoom(). */
function blocked(link: Link, isBlocked: () => boolean): Link {
  const send = link.send.bind(link);
  link.send = (to, packet) => !isBlocked() && send(to, packet);
  return link;
}

describe("a link that takes 4 packets", () => {
  it.each<[string, Partial<SimulationOptions>]>([
    ["", {}],
    [", with a key", { key: keyOf(3) }],
    [", faithful", { isFaithful: true }],
    [" of 100 Mbit/s", { bytesPerMicrosecond: 12.5 }],
    [", and one packet at a time", { linkPackets: 1 }],
    [" of 100 Mbit/s, and one packet at a time", { bytesPerMicrosecond: 12.5, linkPackets: 1 }],
    [" over 1 ms", { hopMicroseconds: 1000 }],
  ])("transfers at its speed, without a retransmission%s", (_, options) => {
    const count = 4000;
    const { simulation, refused, alarms } = watched({ nodes: 2, linkPackets: 4, ...options });
    for (let i = 0; i < count; i++) simulation.enqueue(0, 1, new Uint8Array(CONTENT));
    let finished = 0;
    const { hopMicroseconds = 5, bytesPerMicrosecond = 1250 } = options;
    simulation.submit(0, 1, new Uint8Array(8));
    while (simulation.givenCount <= count) expect(simulation.network.step()).toBe(true);
    finished = simulation.network.now;
    expect(refused()).toBeGreaterThan(count / 100);
    expect([retransmitted(simulation), alarms(), simulation.network.counts.lost]).toEqual([0, 0, 0]);
    // The window needs some round trips until it is large enough.
    expect(finished).toBeLessThan((1.05 * count * PACKET) / bytesPerMicrosecond + 40 * hopMicroseconds);
    expect(simulation.run()).toBe(true);
  });

  it("transfers in both directions, where acknowledgments are refused, too", () => {
    const count = 2000;
    const { simulation, refused, alarms } = watched({ nodes: 2, linkPackets: 4 });
    for (let i = 0; i < count; i++)
      for (const node of [0, 1]) simulation.enqueue(node, 1 - node, new Uint8Array(CONTENT));
    for (const node of [0, 1]) simulation.submit(node, 1 - node, new Uint8Array(8));
    while (simulation.givenCount < 2 * count + 2) expect(simulation.network.step()).toBe(true);
    expect(refused()).toBeGreaterThan(count / 100);
    expect([retransmitted(simulation), alarms()]).toEqual([0, 0]);
    expect(simulation.network.now).toBeLessThan((1.15 * count * PACKET) / 1250 + 200);
  });

  it.each([1, 4])("which takes %i at a time, serves all targets equally", (linkPackets) => {
    const [targets, each] = [8, 300];
    // All packets go by one edge, so that it is the link that is short of room.
    const topology = { kind: "tree", arity: 16, levels: 2 } as const;
    const given = new Map<number, number>();
    const { simulation, refused } = watched({ nodes: targets + 1, topology, linkPackets, keepsContents: true });
    for (let to = 1; to <= targets; to++) {
      for (let i = 0; i < each; i++) simulation.enqueue(0, to, new Uint8Array(CONTENT));
      given.set(to, 0);
    }
    simulation.wake(simulation.nodes[0] as never);
    while (simulation.givenCount < (targets * each) / 2) expect(simulation.network.step()).toBe(true);
    const halves = [...given.keys()].map((to) => simulation.given.get(`0>${4 * to}`)?.length ?? 0);
    expect(Math.min(...halves)).toBeGreaterThan(0.7 * Math.max(...halves));
    expect(simulation.run()).toBe(true);
    expect(simulation.givenCount).toBe(targets * each);
    expect(refused()).toBeGreaterThan(0);
    expect(retransmitted(simulation)).toBe(0);
  });

  it("which takes one at a time, acknowledges to all origins", () => {
    const [origins, each] = [16, 200];
    const topology = { kind: "tree", arity: 32, levels: 2 } as const;
    const links: Link[] = [];
    let isBlocked = false;
    const around = (link: Link): Link => (links.push(link) === 1 ? blocked(link, () => isBlocked) : link);
    const { simulation, refused } = watched({ nodes: origins + 1, topology, linkPackets: 1, around });
    // The acknowledgments of many sessions are due when the target has room for one again.
    simulation.network.at(50, () => {
      isBlocked = true;
    });
    simulation.network.at(200, () => {
      isBlocked = false;
      links[0]?.onRoom();
    });
    for (let i = 0; i < each; i++)
      for (let from = 1; from <= origins; from++) simulation.enqueue(from, 0, new Uint8Array(64));
    for (let from = 1; from <= origins; from++) simulation.submit(from, 0, new Uint8Array(64));
    expect(simulation.run()).toBe(true);
    expect(simulation.givenCount).toBe(origins * (each + 1));
    expect(refused()).toBeGreaterThan(0);
    expect(retransmitted(simulation)).toBe(0);
  });

  it.each([false, true])("serves 60 targets in turns, faithful: %s", (isFaithful) => {
    const topology = { kind: "tree", arity: 64, levels: 2 } as const;
    const { simulation, refused, alarms } = watched({ nodes: 61, topology, linkPackets: 4, isFaithful });
    for (let to = 1; to <= 60; to++) for (let i = 0; i < 100; i++) simulation.enqueue(0, to, new Uint8Array(CONTENT));
    simulation.submit(0, 1, new Uint8Array(8));
    expect(simulation.run()).toBe(true);
    expect(simulation.givenCount).toBe(6001);
    expect(refused()).toBeGreaterThan(0);
    expect([retransmitted(simulation), alarms()]).toEqual([0, 0]);
    expect(simulation.nodes[0]?.sessions.inUse).toEqual({ initiators: 0, responders: 0, txQueues: 0, buffered: 0 });
  });
});

describe("a link that has no room for long", () => {
  /** Two nodes; the links of those in `of` take nothing from a time on, for so many microseconds. */
  function transfer(of: readonly number[], from: number, lasting: number, key?: Uint8Array): Watched {
    const links: Link[] = [];
    let isBlocked = from === 0;
    const around = (link: Link): Link => {
      const node = links.push(link) - 1;
      return of.includes(node) ? blocked(link, () => isBlocked) : link;
    };
    const all = watched({ nodes: 2, key, around });
    const { network } = all.simulation;
    network.at(from, () => {
      isBlocked = true;
    });
    network.at(from + lasting, () => {
      isBlocked = false;
      for (const node of of) links[node]?.onRoom();
    });
    for (let i = 0; i < 500; i++) all.simulation.submit(0, 1, new Uint8Array(CONTENT));
    return all;
  }

  it.each<[string, number[], number, number]>([
    ["a minute, of the origin, from the connect packet on", [0], 0, MINUTE],
    ["a minute, of the origin, amid data", [0], 100, MINUTE],
    ["a minute, of both nodes, amid data", [0, 1], 100, MINUTE],
    // The origin gives up a target that is silent for ten seconds.
    ["five seconds, of the target, from the answer on", [1], 0, MINUTE / 12],
    ["five seconds, of the target, amid data", [1], 100, MINUTE / 12],
  ])("%s: everything comes, and nothing is given up", (_, of, from, lasting) => {
    const { simulation, refused } = transfer(of, from, lasting);
    expect(simulation.run()).toBe(true);
    expect(refused()).toBeGreaterThan(0);
    expect([simulation.givenCount, simulation.lost]).toEqual([500, []]);
  });

  it.each([
    [0, false],
    [0, true],
    [100, false],
    [100, true],
  ])("the origin's session goes on, and no packet is sent twice: from %i µs on, with a key: %s", (from, hasKey) => {
    const { simulation, alarms } = transfer([0], from, MINUTE, hasKey ? keyOf(5) : undefined);
    simulation.run(MINUTE - 1);
    expect(simulation.givenCount).toBeLessThan(500);
    expect(simulation.run()).toBe(true);
    expect([simulation.givenCount, alarms(), retransmitted(simulation)]).toEqual([500, 0, 0]);
    expect(simulation.nodes[0]?.sessions.counts.connects).toBe(1);
  });

  it("the target acknowledges as soon as it has room, before the origin asks again", () => {
    const { simulation, refused } = transfer([1], 1001, 400);
    // Each asks for an acknowledgment at once. The link refuses the first one, and the second waits at its responder.
    for (const time of [1000, 1050]) simulation.network.at(time, () => void simulation.submit(0, 1, new Uint8Array(8)));
    expect(simulation.run()).toBe(true);
    expect(refused()).toBe(1);
    expect([simulation.givenCount, retransmitted(simulation)]).toEqual([502, 0]);
  });

  it("lost packets wait until there is room, and each is then sent again once", () => {
    let isBlocked = false;
    let link: Link | undefined;
    const around = (own: Link): Link => {
      if (link !== undefined) return own;
      link = blocked(own, () => isBlocked);
      return link;
    };
    const { simulation } = watched({ nodes: 2, hopMicroseconds: 1000, around });
    const { network } = simulation;
    let [data, lost] = [0, 0];
    // A hundred data packets are lost, and the link has no room while that becomes known.
    network.isLost = (from, _, packet) => {
      if (from === 1 || packet.length < CONTENT || ++data <= 2000 || lost === 100) return false;
      if (++lost < 100) return true;
      network.at(network.now + 1000, () => {
        isBlocked = true;
      });
      network.at(network.now + 10_000, () => {
        isBlocked = false;
        link?.onRoom();
      });
      return true;
    };
    for (let i = 0; i < 6000; i++) simulation.enqueue(0, 1, new Uint8Array(CONTENT));
    simulation.submit(0, 1, new Uint8Array(8));
    expect(simulation.run()).toBe(true);
    expect(simulation.givenCount).toBe(6001);
    expect([lost, retransmitted(simulation)]).toEqual([100, 100]);
  });

  it("keeps a bounded number of packets back", () => {
    let isBlocked = true;
    let tried = 0;
    const links: Link[] = [];
    const around = (link: Link): Link => {
      if (links.push(link) > 1) return link;
      const own = blocked(link, () => isBlocked);
      const send = own.send.bind(own);
      own.send = (to, packet) => {
        tried++;
        return send(to, packet);
      };
      return own;
    };
    const { simulation } = watched({ nodes: 201, around });
    for (let from = 1; from <= 200; from++) simulation.submit(from, 0, new Uint8Array(8));
    simulation.run(1_000_000);
    expect(tried).toBe(1);
    isBlocked = false;
    tried = 0;
    links[0]?.onRoom();
    expect(tried).toBe(64);
    expect(simulation.run()).toBe(true);
    expect(simulation.givenCount).toBe(200);
  });
});
