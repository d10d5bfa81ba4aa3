// Authentication (D9): nodes with a job key, and attackers on their links without one. The attackers record, change, replay
// and forge packets. Every such packet must be dropped and counted, and nothing else may happen.
import { describe, expect, it } from "vitest";
import {
  ACCEPT_ECHO_OFFSET,
  ACCEPT_NONCE_OFFSET,
  ACCEPT_RESPONDER_OFFSET,
  CONNECT_HALF,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_OPTIONS_OFFSET,
  CONNECT_SERIAL_OFFSET,
  CONNECT_TARGET_OFFSET,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_HALF,
  PACKET_JOB_OFFSET,
  PACKET_LENGTH_OFFSET,
  PACKET_REFUSE,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  PACKET_WRONG_BODY,
  PACKET_WRONG_SEGMENT,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import { RIGHT } from "../support/packets.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { droppedOf } from "./fuzz.js";
import { JOB, keyOf, type SimulatedNode, Simulation, type SimulationOptions } from "./nodes.js";

const KEY = keyOf(1);
const text = (i: number): Buffer => Buffer.from(`segment ${i}`);
const expected = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}:segment ${i}`);
const nodeOf = (simulation: Simulation, number: number): SimulatedNode => simulation.nodes[number] as SimulatedNode;

interface Recorded {
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
}

const kindOf = ({ bytes }: Recorded): number => bytes[2] as number;
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** A simulation with a key, and all packets that are sent in it. */
function recorded(options: Partial<SimulationOptions> = {}): { simulation: Simulation; sent: Recorded[] } {
  const simulation = new Simulation({ seed: 1, nodes: 3, key: KEY, ...options });
  const sent: Recorded[] = [];
  simulation.network.isLost = (from, to, packet) => {
    sent.push({ from, to, bytes: packet.slice() });
    return false;
  };
  return { simulation, sent };
}

/** How many packets a node has dropped, for any reason. */
const droppedBy = ({ sessions }: SimulatedNode): number => droppedOf(sessions.dropped);

/** Two nodes with a session that is open and at rest, and a packet of each kind that was sent in it or before. */
function rested(): { simulation: Simulation; sent: Recorded[]; kinds: Map<number, Recorded> } {
  const { simulation, sent } = recorded({ sessions: { responders: 1 } });
  // Of two that connect at once, one is refused; then both sessions end.
  for (const from of [0, 2]) simulation.submit(from, 1, text(0));
  simulation.run();
  simulation.submit(0, 1, text(1));
  simulation.run(simulation.network.now + 10_000);
  const kinds = new Map<number, Recorded>();
  for (const one of sent) if (one.from === 0 || one.to === 0) kinds.set(kindOf(one), one);
  kinds.set(PACKET_REFUSE, sent.find((one) => kindOf(one) === PACKET_REFUSE) as Recorded);
  expect([...kinds.keys()].sort()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(simulation.given.get("0>4")).toEqual(expected(2));
  expect(nodeOf(simulation, 0).sessions.inUse).toMatchObject({ initiators: 1 });
  sent.length = 0;
  return { simulation, sent, kinds };
}

const KINDS: [name: string, kind: number][] = [
  ["connect", PACKET_CONNECT],
  ["data", PACKET_DATA],
  ["disconnect", PACKET_DISCONNECT],
  ["accept", PACKET_ACCEPT],
  ["refuse", PACKET_REFUSE],
  ["acknowledge", PACKET_ACKNOWLEDGE],
];

describe("D9 sessions with a key", () => {
  it("D9 segments arrive with 0-RTT and full handshakes; neither they nor the key can be read on the link", () => {
    for (const isFaithful of [false, true]) {
      const { simulation, sent } = recorded({ isFaithful });
      for (let round = 0; round < 2; round++) {
        for (let i = 0; i < 100; i++) simulation.submit(0, 1, text(100 * round + i));
        expect(simulation.run()).toBe(true);
      }
      expect(simulation.given.get("0>4")).toEqual(expected(200));
      const zeroRtt = sent.filter(({ bytes }) => ((bytes[3] as number) & PACKET_HALF) !== 0);
      // Not before the target's epoch is known.
      expect(zeroRtt.length > 0).toBe(isFaithful);
      const connects = sent.flatMap((one, i) => (kindOf(one) === PACKET_CONNECT ? [i] : []));
      expect(connects).toHaveLength(2);
      expect(sent.indexOf(zeroRtt[0] as Recorded)).toBe(isFaithful ? (connects[1] as number) + 1 : -1);
      for (const { bytes } of sent) {
        expect((bytes[3] as number) & PACKET_SEALED).toBe(PACKET_SEALED);
        const link = Buffer.from(bytes);
        expect(link.includes("segment")).toBe(false);
        for (let at = 0; at <= KEY.length - 4; at++)
          expect(link.includes(Buffer.from(KEY.subarray(at, at + 4)))).toBe(false);
      }
    }
  });

  it("D9 no transmission number is used twice under a key: retransmissions have new ones, and sessions end before they wrap", () => {
    const faults = { loss: 0.1, duplicate: 0, reorder: 0.2, reorderMicroseconds: 300 };
    const { simulation, sent } = recorded({ faults, sessions: { sessionPackets: 64 } });
    const content = (i: number): Buffer => Buffer.alloc(1000, i);
    for (let i = 0; i < 1000; i++) simulation.submit(0, 1, content(i));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4")).toEqual(
      Array.from({ length: 1000 }, (_, i) => `${i}:${content(i).toString("latin1")}`),
    );
    const used = new Map<string, Set<number>>();
    let again = 0;
    const numbers = new Set<string>();
    for (const { from, to, bytes } of sent) {
      if ([PACKET_CONNECT, PACKET_ACCEPT, PACKET_REFUSE].includes(bytes[2] as number)) continue;
      const view = viewOf(bytes);
      const session = `${from}>${to} ${view.getUint32(PACKET_SESSION_OFFSET, true)}`;
      const counters = used.get(session) ?? new Set();
      used.set(session, counters);
      const counter = view.getUint32(PACKET_SENT_OFFSET, true);
      expect(counters.has(counter)).toBe(false);
      counters.add(counter);
      const number = `${session} ${view.getUint32(20, true)}`;
      if (bytes[2] === PACKET_DATA && numbers.has(number)) again++;
      numbers.add(number);
    }
    expect(again).toBeGreaterThan(50);
    expect(used.size).toBeGreaterThan(2 * (1000 / 64) - 2);
    for (const counters of used.values()) expect(Math.max(...counters)).toBeLessThanOrEqual(128);
  });

  it.each([
    ["another key", { keySchedule: keyScheduleOf(keyOf(2), JOB) }],
    ["no key, to a node that has one", { keySchedule: undefined }],
  ])(
    "D9 %s: nothing is delivered or answered, both nodes are given up in bounded time, and others go on",
    (_, other) => {
      for (const [from, to] of [
        [0, 1],
        [1, 0],
      ] as const) {
        // Node 0 has what the others have not.
        const { simulation, sent } = recorded({ sessionsOf: (node) => (node === 0 ? other : {}) });
        simulation.submit(from, to, text(0));
        simulation.submit(1, 2, text(0));
        expect(simulation.run(20e6)).toBe(true);
        expect([...simulation.given.keys()]).toEqual(["4>8"]);
        expect(simulation.lost).toEqual([[from, to, false]]);
        const connects = sent.filter((one) => one.from === from && one.to === to);
        expect(connects.length).toBeGreaterThan(5);
        expect(connects.every((one) => kindOf(one) === PACKET_CONNECT)).toBe(true);
        expect(sent.filter((one) => one.from === to && one.to === from)).toEqual([]);
        const { sessions } = nodeOf(simulation, to);
        expect(sessions.dropped.unauthenticated).toBe(connects.length);
        expect(sessions.inUse.responders).toBe(0);
        expect(simulation.arena.used).toBe(simulation.fixedBytes);
      }
    },
  );
});

describe.each(KINDS)("D9 a hostile packet: %s", (_, kind) => {
  /** Sends each changed packet alone: it is counted once, not answered, and the open session goes on. */
  function attack(changes: (one: Recorded, random: (below: number) => number) => Iterable<Recorded>): number {
    const { simulation, sent, kinds } = rested();
    const { network } = simulation;
    const inUse = simulation.nodes.map(({ sessions }) => sessions.inUse);
    const random = randomOf(SEED);
    let count = 0;
    for (const { from, to, bytes } of changes(kinds.get(kind) as Recorded, random)) {
      const before = simulation.nodes.map(droppedBy);
      network.carry(from, to, bytes);
      // No time passes for the nodes: the session stays open.
      for (const node of simulation.nodes) node.skew -= 20;
      simulation.run(network.now + 20);
      const after = simulation.nodes.map(droppedBy);
      const what = `from ${from} to ${to}: ${Buffer.from(bytes).toString("hex")}, ${replayNote()}`;
      expect(after, what).toEqual(before.map((number, node) => (node === to ? number + 1 : number)));
      expect(sent, what).toHaveLength(1);
      sent.length = 0;
      count++;
    }
    expect(simulation.nodes.map(({ sessions }) => sessions.inUse)).toEqual(inUse);
    expect(simulation.arena.used).toBe(simulation.fixedBytes);
    simulation.submit(0, 1, text(2));
    expect(simulation.run()).toBe(true);
    expect(sent.map(kindOf)).toEqual([PACKET_DATA, PACKET_ACKNOWLEDGE, PACKET_DISCONNECT]);
    expect(simulation.given.get("0>4")).toEqual(expected(3));
    expect(simulation.lost).toEqual([]);
    return count;
  }

  it("D9 with any bit flipped", () => {
    const count = attack(function* ({ from, to, bytes }) {
      for (let bit = 0; bit < 8 * bytes.length; bit++) {
        const flipped = bytes.slice();
        flipped[bit >>> 3] = (flipped[bit >>> 3] as number) ^ (1 << (bit & 7));
        yield { from, to, bytes: flipped };
      }
    });
    expect(count).toBeGreaterThanOrEqual(8 * (PACKET_SIZE + TAG_BYTES));
  });

  it("D9 truncated anywhere, with a length field that agrees or does not", () => {
    const count = attack(function* ({ from, to, bytes }) {
      for (let length = 0; length < bytes.length; length++) {
        const cut = bytes.slice(0, length);
        yield { from, to, bytes: cut };
        if (length < PACKET_SIZE) continue;
        const agreed = cut.slice();
        viewOf(agreed).setUint16(PACKET_LENGTH_OFFSET, length, true);
        yield { from, to, bytes: agreed };
      }
    });
    expect(count).toBeGreaterThan(PACKET_SIZE + TAG_BYTES);
  });

  it("D9 forged: without a seal, or with any other", () => {
    attack(function* ({ from, to, bytes }, random) {
      const plain = bytes.slice(0, -TAG_BYTES);
      viewOf(plain).setUint16(PACKET_LENGTH_OFFSET, plain.length, true);
      plain[3] = (plain[3] as number) & ~PACKET_SEALED;
      yield { from, to, bytes: plain };
      // With numbers that did not come yet, and what a body may hold.
      for (let i = 0; i < 200; i++) {
        const made = bytes.slice();
        viewOf(made).setUint32(PACKET_SENT_OFFSET, 1 + random(random(2) === 0 ? 2000 : 0xffffffff), true);
        for (let at = PACKET_SIZE; at < made.length; at++) if (random(3) === 0) made[at] = random(256);
        yield { from, to, bytes: made };
        const other = made.slice();
        const names = { origin: 0, target: 1, originEpoch: 1, targetEpoch: 1, initiator: 1, responder: 1 };
        const nonces = { connectNonce: [1, 2, 3, 4], acceptNonce: [1, 2, 3, 4] };
        const { toTarget, toOrigin } = keyScheduleOf(keyOf(3), JOB).session({ ...names, ...nonces });
        for (const seal of [toTarget, toOrigin, keyScheduleOf(keyOf(3), JOB).handshake]) {
          seal.seal(other, PACKET_SIZE, viewOf(other).getUint32(PACKET_SENT_OFFSET, true));
          yield { from, to, bytes: other };
        }
      }
    });
  });

  it("D9 replayed: at once, many times, in the other direction, and from another address", () => {
    attack(function* ({ from, to, bytes }) {
      for (let i = 0; i < 100; i++) yield { from, to, bytes };
      // A connect packet names its target, so that is refused, which others see: see below.
      if (kind !== PACKET_CONNECT) yield { from: to, to: from, bytes };
      if (kind !== PACKET_CONNECT) yield { from: 2, to, bytes };
      if (kind !== PACKET_CONNECT) yield { from, to: 2, bytes };
    });
  });
});

describe("D9 recorded packets", () => {
  it("D9 a connect packet to another node is refused by an answer that is no longer, one from another address is dropped, and it has no effect", () => {
    for (const [from, to, answers] of [
      [0, 2, [PACKET_REFUSE]],
      [1, 0, [PACKET_REFUSE]],
      [2, 1, []],
    ] as const) {
      const { simulation, sent, kinds } = rested();
      const { bytes } = kinds.get(PACKET_CONNECT) as Recorded;
      simulation.network.carry(from, to, bytes);
      simulation.run(simulation.network.now + 1000);
      expect(sent.slice(1).map(kindOf)).toEqual(answers);
      for (const answer of sent.slice(1)) expect(answer.bytes.length).toBeLessThanOrEqual(bytes.length);
      expect(nodeOf(simulation, 1).sessions.inUse.responders).toBe(1);
      simulation.submit(0, 1, text(2));
      expect(simulation.run()).toBe(true);
      expect(simulation.given.get("0>4")).toEqual(expected(3));
      expect(simulation.lost).toEqual([]);
    }
  });

  /** Sessions of node 0 with node 1, one after the other: all that was sent in them. */
  function lives(options: Partial<SimulationOptions> = {}): { simulation: Simulation; sent: Recorded[] } {
    const { simulation, sent } = recorded({ sessions: { responders: 4 }, ...options });
    for (let i = 0; i < 50; i++) {
      simulation.submit(0, 1, text(i));
      expect(simulation.run()).toBe(true);
    }
    expect(sent.filter((one) => kindOf(one) === PACKET_CONNECT)).toHaveLength(50);
    return { simulation, sent };
  }

  it.each([false, true])(
    "D9 all of them, later: each is dropped, no responder is taken, nothing is delivered twice (0-RTT: %s)",
    (isFaithful) => {
      const { simulation, sent } = lives({ isFaithful });
      const { network } = simulation;
      const recording = sent.splice(0);
      const before = simulation.nodes.map(droppedBy);
      for (const { from, to, bytes } of recording) network.carry(from, to, bytes);
      expect(simulation.run()).toBe(true);
      expect(sent).toHaveLength(recording.length);
      expect(nodeOf(simulation, 1).sessions.inUse.responders).toBe(0);
      const after = simulation.nodes.map(droppedBy);
      expect(after.reduce((sum, number) => sum + number) - before.reduce((sum, number) => sum + number)).toBe(
        recording.length,
      );
      expect(simulation.given.get("0>4")).toEqual(expected(50));
    },
  );

  it.each([false, true])(
    "D9 to a node that has restarted: no data opens, few responders are taken, and they are reused (0-RTT: %s)",
    (isFaithful) => {
      const { simulation, sent } = lives({ isFaithful });
      const { network } = simulation;
      const recording = sent.splice(0).filter(({ to }) => to === 1);
      const target = nodeOf(simulation, 1);
      target.epoch++;
      simulation.start(target);
      const before = droppedBy(target);
      simulation.given.clear();
      let bytes = 0;
      for (const one of recording) {
        network.carry(one.from, one.to, one.bytes);
        bytes += one.bytes.length;
      }
      simulation.run(network.now + 1000);
      // One node holds no more before it has proven itself.
      expect(target.sessions.inUse.responders).toBe(2);
      // A node that has the key gets a responder as soon as one has been idle for a second.
      simulation.submit(2, 1, text(0));
      simulation.run(network.now + 3e6);
      expect(simulation.given.get("8>4@2")).toEqual(expected(1));
      expect([...simulation.given.keys()]).toEqual(["8>4@2"]);
      expect(target.sessions.inUse.responders).toBeLessThanOrEqual(4);
      expect(droppedBy(target)).toBeGreaterThan(before);
      const answers = sent.filter((one) => one.from === 1 && one.to === 0);
      expect(answers.length).toBeGreaterThan(0);
      expect(answers.reduce((sum, one) => sum + one.bytes.length, 0)).toBeLessThanOrEqual(bytes);
      expect(simulation.lost).toEqual([]);
      // The second time, no connect packet is new.
      sent.length = 0;
      for (const one of recording) network.carry(one.from, one.to, one.bytes);
      simulation.run(network.now + 3e6);
      expect(sent.filter((one) => one.from === 1 && one.to === 0)).toEqual([]);
    },
  );

  it("D9 of an earlier incarnation of the origin: they do not prove its epoch, and the live session goes on", () => {
    const { simulation, sent } = lives();
    const { network } = simulation;
    const recording = sent.splice(0).filter(({ to }) => to === 1);
    const [origin, target] = [nodeOf(simulation, 0), nodeOf(simulation, 1)];
    for (const node of [origin, target]) {
      node.epoch += 2;
      simulation.start(node);
    }
    simulation.given.clear();
    // The target has restarted, too. The old packets come before it has segments for the origin's node.
    for (const one of recording) network.carry(one.from, one.to, one.bytes);
    simulation.run(network.now + 1000);
    for (let i = 0; i < 20; i++) {
      simulation.submit(1, 0, text(i));
      simulation.submit(0, 1, text(i));
    }
    simulation.run(network.now + 10_000);
    for (const one of recording) network.carry(one.from, one.to, one.bytes);
    simulation.run(network.now + 10e6);
    expect(simulation.given.get("0>4@3")).toEqual(expected(20));
    expect(simulation.given.get("4>0@3")).toEqual(expected(20));
    expect(simulation.lost).toEqual([]);
  });
});

describe("D9 others on the link", () => {
  it.each(["without a seal", "with another key's", "with the connect packet's tag"])(
    "D9 an attacker that accepts each connection in the target's name, %s: only connect packets are sent, and the target is given up",
    (how) => {
      const { simulation, sent } = recorded();
      const watch = simulation.network.isLost;
      const other = keyScheduleOf(keyOf(2), JOB).handshake;
      simulation.network.isLost = (from, to, packet) => {
        watch(from, to, packet);
        if (from !== 0) return false;
        const connect = viewOf(packet.slice());
        const accept = new Uint8Array(packet.length);
        accept.set(packet);
        const answer = viewOf(accept);
        accept[2] = PACKET_ACCEPT;
        answer.setUint32(PACKET_SESSION_OFFSET, connect.getUint32(PACKET_SIZE + CONNECT_INITIATOR_OFFSET, true), true);
        for (const word of [0, 4]) {
          const nonce = connect.getUint32(PACKET_SIZE + CONNECT_NONCE_OFFSET + word, true);
          answer.setUint32(PACKET_SIZE + ACCEPT_ECHO_OFFSET + word, nonce, true);
        }
        let bytes = accept;
        if (how === "with another key's") other.seal(accept, PACKET_SIZE, 1);
        if (how === "without a seal") {
          bytes = accept.slice(0, -TAG_BYTES);
          bytes[3] = 0;
          viewOf(bytes).setUint16(PACKET_LENGTH_OFFSET, bytes.length, true);
        }
        simulation.network.carry(1, 0, bytes);
        return true;
      };
      simulation.submit(0, 1, text(0));
      expect(simulation.run(20e6)).toBe(true);
      const connects = sent.filter((one) => one.from === 0);
      expect(connects.every((one) => kindOf(one) === PACKET_CONNECT)).toBe(true);
      expect(nodeOf(simulation, 0).sessions.dropped.unauthenticated).toBe(connects.length);
      expect(simulation.lost).toEqual([[0, 1, false]]);
      expect(simulation.given.size).toBe(0);
    },
  );

  it("D9 a peer that has the key and seals nonsense: sealed packets are checked as unsealed ones are", () => {
    const { simulation, sent, kinds } = rested();
    const { network } = simulation;
    const before = droppedBy(nodeOf(simulation, 1));
    const [connect, accept, data] = [PACKET_CONNECT, PACKET_ACCEPT, PACKET_DATA].map(
      (kind) => (kinds.get(kind) as Recorded).bytes,
    ) as [Uint8Array, Uint8Array, Uint8Array];
    const word = (bytes: Uint8Array, offset: number): number => viewOf(bytes).getUint32(PACKET_SIZE + offset, true);
    const words = (bytes: Uint8Array, offset: number): number[] => [0, 4, 8, 12].map((at) => word(bytes, offset + at));
    const { toTarget } = keyScheduleOf(KEY, JOB).session({
      origin: 0,
      target: 1,
      originEpoch: 1 << 16,
      targetEpoch: 1 << 16,
      initiator: word(connect, CONNECT_INITIATOR_OFFSET),
      responder: word(accept, ACCEPT_RESPONDER_OFFSET),
      connectNonce: words(connect, CONNECT_NONCE_OFFSET),
      acceptNonce: words(accept, ACCEPT_NONCE_OFFSET),
    });
    const nonsense = data.slice();
    viewOf(nonsense).setUint32(PACKET_SENT_OFFSET, 1000, true);
    nonsense.fill(0xff, PACKET_SIZE);
    toTarget.seal(nonsense, PACKET_SIZE, 1000);
    network.carry(0, 1, nonsense);
    const noInitiator = connect.slice();
    viewOf(noInitiator).setUint32(PACKET_SIZE + CONNECT_INITIATOR_OFFSET, 0, true);
    viewOf(noInitiator).setUint32(PACKET_SIZE + CONNECT_SERIAL_OFFSET, 1000, true);
    keyScheduleOf(KEY, JOB).handshake.seal(noInitiator, PACKET_SIZE, 1);
    network.carry(0, 1, noInitiator);
    simulation.run(network.now + 1000);
    const { malformed, unauthenticated } = nodeOf(simulation, 1).sessions.dropped;
    expect([malformed[PACKET_WRONG_SEGMENT], malformed[PACKET_WRONG_BODY], unauthenticated]).toEqual([1, 1, 0]);
    // It has no other effect.
    expect(droppedBy(nodeOf(simulation, 1))).toBe(before + 2);
    expect(sent).toHaveLength(2);
    expect(simulation.arena.used).toBe(simulation.fixedBytes);
    simulation.submit(0, 1, text(2));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4")).toEqual(expected(3));
  });

  it("D9 a session that its target no longer knows: no packet may say so, but the origin reconnects within a second", () => {
    const { simulation } = recorded({ sessions: { txQueueBytes: 1e9 } });
    const { network } = simulation;
    const target = nodeOf(simulation, 1);
    for (let i = 0; i < 1000; i++) simulation.submit(0, 1, Buffer.alloc(1000));
    network.at(400, () => {
      expect(simulation.given.get("0>4")?.length).toBeGreaterThan(0);
      target.epoch++;
      simulation.start(target);
    });
    simulation.run(1e6);
    expect(target.sessions.dropped.unknownSession).toBeGreaterThan(0);
    expect(simulation.lost).toEqual([[0, 1, true]]);
    simulation.submit(0, 1, text(0));
    expect(simulation.run()).toBe(true);
    expect(simulation.given.get("0>4@2")).toEqual(expected(1));
  });

  /** Packets of all kinds that an attacker without a key can make for a node. */
  function* made(random: (below: number) => number, from: number, to: number, isSealed: boolean): Iterable<Uint8Array> {
    const nonce = 1 + random(0xffffffff);
    for (const make of Object.values(RIGHT)) {
      const right = new Uint8Array(make().buffer);
      const bytes = new Uint8Array(right.length + (isSealed ? TAG_BYTES : 0));
      bytes.set(right);
      const view = viewOf(bytes);
      view.setUint32(PACKET_JOB_OFFSET, JOB, true);
      view.setUint16(PACKET_LENGTH_OFFSET, bytes.length, true);
      if (isSealed) bytes[3] = PACKET_SEALED;
      for (let at = right.length; at < bytes.length; at++) bytes[at] = random(256);
      if (bytes[2] === PACKET_CONNECT) {
        view.setUint32(PACKET_SIZE + CONNECT_NODE_OFFSET, random(2) === 0 ? from : random(1000), true);
        view.setUint32(PACKET_SIZE + CONNECT_TARGET_OFFSET, random(2) === 0 ? to : random(1000), true);
        view.setUint32(PACKET_SIZE + CONNECT_NONCE_OFFSET, nonce, true);
        view.setUint32(PACKET_SIZE + CONNECT_OPTIONS_OFFSET, random(2) * CONNECT_HALF, true);
      } else view.setUint32(PACKET_SESSION_OFFSET, 1 + random(0xffffffff), true);
      if (bytes[2] === PACKET_DATA && random(2) === 0) bytes[3] = (bytes[3] as number) | PACKET_HALF;
      yield bytes;
    }
    // The smallest data packet: a segment without content; without and with the 0-RTT flag.
    const right = new Uint8Array((RIGHT.data as () => DataView)().buffer).slice(0, 40);
    viewOf(right).setUint16(PACKET_LENGTH_OFFSET, right.length, true);
    viewOf(right).setUint32(PACKET_JOB_OFFSET, JOB, true);
    viewOf(right).setUint32(PACKET_SIZE + 12, 1 << 16, true);
    yield right;
    const zeroRtt = right.slice();
    zeroRtt[3] = PACKET_HALF;
    viewOf(zeroRtt).setUint32(PACKET_SESSION_OFFSET, nonce, true);
    yield zeroRtt;
  }

  it.each([
    ["with a key", KEY],
    ["without a key", undefined],
  ])(`D9 amplification: no answer is longer than the packet that it answers, %s (${replayNote()})`, (_, key) => {
    const random = randomOf(SEED);
    const { simulation, sent } = recorded({ key, sessions: { responders: 8 } });
    const { network } = simulation;
    let [came, answered] = [0, 0];
    for (let i = 0; i < 500; i++) {
      for (const isSealed of [false, true]) {
        for (const bytes of made(random, 2, 1, isSealed)) {
          sent.length = 0;
          network.carry(2, 1, bytes);
          simulation.run(network.now + 50);
          const answers = sent.filter((one) => one.from === 1);
          const length = answers.reduce((sum, one) => sum + one.bytes.length, 0);
          expect(length).toBeLessThanOrEqual(bytes.length);
          came += bytes.length;
          answered += length;
        }
      }
    }
    simulation.run(network.now + 10e6);
    expect(answered).toBeLessThanOrEqual(came);
    // Without a key, some packets are answered; with a key, none is.
    expect(answered > 0).toBe(key === undefined);
    expect(simulation.given.size).toBe(0);
    const { inUse } = nodeOf(simulation, 1).sessions;
    expect(inUse).toMatchObject({ initiators: 0, txQueues: 0, buffered: 0 });
    expect(inUse.responders).toBeLessThanOrEqual(key === undefined ? 8 : 0);
    expect(simulation.arena.used).toBe(simulation.fixedBytes);
  });

  it(`D9 amid traffic: copies are changed, delayed, misdirected and returned, and all streams are delivered once and in order (${replayNote()})`, () => {
    for (let round = 0; round < 4; round++) {
      const random = randomOf(SEED + round);
      const simulation = new Simulation({
        seed: SEED + round,
        nodes: 4,
        key: KEY,
        isFaithful: round % 2 === 1,
        sessions: { initiators: 1, responders: 2 },
      });
      const { network } = simulation;
      let hostile = 0;
      let isHostile = false;
      network.isLost = (from, to, packet) => {
        if (isHostile) return false;
        const bytes = packet.slice();
        const what = random(5);
        if (what < 2) bytes[random(bytes.length)] = random(256);
        const [origin, target] = what === 3 ? [to, from] : [from, what === 4 ? random(4) : to];
        hostile++;
        network.at(network.now + random(10 ** (1 + random(6))), () => {
          isHostile = true;
          network.carry(origin, target, bytes);
          isHostile = false;
        });
        return false;
      };
      for (let i = 0; i < 100; i++) {
        for (let from = 0; from < 4; from++)
          for (let to = 0; to < 4; to++)
            if (from !== to) network.at(i * 1000, () => simulation.submit(from, to, text(i)));
      }
      expect(simulation.run(60e6)).toBe(true);
      for (let from = 0; from < 4; from++)
        for (let to = 0; to < 4; to++)
          if (from !== to) expect(simulation.given.get(`${4 * from}>${4 * to}`)).toEqual(expected(100));
      expect(simulation.lost).toEqual([]);
      expect(hostile).toBeGreaterThan(500);
      for (const { sessions } of simulation.nodes) {
        expect(sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0, buffered: 0 });
        expect(sessions.dropped.replayed).toBeGreaterThan(0);
        expect(sessions.dropped.unauthenticated).toBeGreaterThan(0);
      }
      expect(simulation.arena.used).toBe(simulation.fixedBytes);
    }
  });
});
