// Packets that once broke a running node, or might have: each alone.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  CONNECT_HALF,
  CONNECT_KNOWN_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_OPTIONS_OFFSET,
  CONNECT_SIZE,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_HALF,
  PACKET_JOB_OFFSET,
  PACKET_LENGTH_OFFSET,
  PACKET_NUMBER_OFFSET,
  PACKET_REFUSE,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  REFUSE_WAIT_OFFSET,
  REFUSED_BUSY,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { packetOf, type SegmentFields, segmentsOf } from "../support/packets.js";
import { submit } from "../support/submit.js";
import { droppedOf } from "./fuzz.js";
import { JOB, Simulation } from "./nodes.js";
import { Pipe } from "./pipe.js";

const NODES = 8;

/** Nodes 0 and 1, which have exchanged segments, and the last packet of each kind that went to node 0. */
function running() {
  const pipe = new Pipe(NODES);
  const last = new Map<number, Uint8Array>();
  pipe.tap = (_, to, packet) => {
    if (to === 0) last.set(packet[2] as number, packet.slice());
  };
  const given: number[] = [];
  const node = pipe.start(0, (segment) => given.push(segment));
  const other = pipe.start(1, () => {});
  /** Sends one segment each way; the sessions stay open. */
  const exchange = (): void => {
    submit(node, 1, 0, 1, 1, Uint8Array.of(1));
    submit(other, 0, 1, 0, 1, Uint8Array.of(2));
    for (let i = 0; i < 6; i++) {
      node.advance();
      other.advance();
      pipe.carry();
    }
  };
  exchange();
  const seen = (kind: number): DataView => new DataView((last.get(kind) as Uint8Array).slice().buffer);
  const get = (packet: DataView, from = "1"): void => pipe.inject(0, from, new Uint8Array(packet.buffer));
  return { pipe, node, other, given, exchange, seen, get };
}

/** Moves a packet into the session of another packet, as its successor. */
function inSession(packet: DataView, of: DataView, ahead = 1): DataView {
  packet.setUint32(PACKET_SESSION_OFFSET, of.getUint32(PACKET_SESSION_OFFSET, true), true);
  packet.setUint32(PACKET_SENT_OFFSET, of.getUint32(PACKET_SENT_OFFSET, true) + ahead, true);
  if (packet.getUint8(2) === PACKET_DATA)
    packet.setUint32(PACKET_NUMBER_OFFSET, of.getUint32(PACKET_NUMBER_OFFSET, true) + ahead, true);
  packet.setUint32(8, JOB, true);
  return packet;
}

interface Case {
  readonly name: string;
  readonly hex: string;
  /** Bytes, with zeros behind those of `hex`. */
  readonly length?: number;
  readonly rule: number;
}

const CORPUS = JSON.parse(readFileSync(new URL("corpus/rules.json", import.meta.url), "utf8")) as Case[];

describe("packets of the corpus", () => {
  it("reach each rule of packetCheck()", () => {
    expect([...new Set(CORPUS.map(({ rule }) => rule))].sort((a, b) => a - b)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ]);
  });

  it.each(CORPUS)("$name", ({ hex, length = hex.length / 2, rule }) => {
    const { node, given, get, exchange } = running();
    const taken = node.counts.taken;
    const packet = new Uint8Array(length);
    packet.set(Buffer.from(hex, "hex"));
    get(new DataView(packet.buffer));
    expect(node.dropped.malformed).toEqual([...Array(rule).fill(undefined), 1]);
    expect([droppedOf(node.dropped), node.counts.taken]).toEqual([1, taken]);
    exchange();
    expect(given).toHaveLength(2);
  });
});

describe("an acknowledgment with something behind it", () => {
  const joined = (...parts: readonly DataView[]): DataView =>
    new DataView(
      new Uint8Array(Buffer.concat(parts.map(({ buffer }) => new Uint8Array(buffer as ArrayBuffer)))).buffer,
    );

  const ofAnotherJob = (packet: DataView): DataView => {
    packet.setUint32(PACKET_JOB_OFFSET, JOB + 1, true);
    return packet;
  };

  it.each([
    ["another acknowledgment", (packet: DataView) => packet, [0, 2]],
    ["a packet of another job", ofAnotherJob, [1, 1]],
    ["zeros", () => new DataView(new ArrayBuffer(PACKET_SIZE)), [1, 0]],
    ["less than a header", () => new DataView(new ArrayBuffer(PACKET_SIZE - 4)), [1, 0]],
    ["nothing", () => new DataView(new ArrayBuffer(0)), [0, 1]],
  ] as const)("%s: each packet counts once, as dropped or taken", (_, behind, counts) => {
    const { node, given, seen, get, exchange } = running();
    const before = node.counts.taken;
    get(joined(seen(PACKET_ACKNOWLEDGE), behind(seen(PACKET_ACKNOWLEDGE))));
    expect([droppedOf(node.dropped), node.counts.taken - before]).toEqual(counts);
    exchange();
    expect(given).toHaveLength(2);
  });

  it.each([0, 1, 20, 23, 25, 26, 100, 0xffff])("that says it has %i bytes: one packet, dropped", (length) => {
    const { node, given, seen, get, exchange } = running();
    const first = seen(PACKET_ACKNOWLEDGE);
    first.setUint16(PACKET_LENGTH_OFFSET, length, true);
    get(joined(first, seen(PACKET_DATA)));
    expect(droppedOf(node.dropped)).toBe(1);
    exchange();
    expect(given).toHaveLength(2);
  });

  it.each([PACKET_CONNECT, PACKET_DATA, PACKET_ACCEPT])("no packet of kind %i has another behind it", (kind) => {
    const { node, given, seen, get, exchange } = running();
    get(joined(seen(kind), seen(PACKET_ACKNOWLEDGE)));
    expect(droppedOf(node.dropped)).toBe(1);
    exchange();
    expect(given).toHaveLength(2);
  });
});

describe("packets of a live session", () => {
  const data = (...segments: readonly SegmentFields[]): DataView =>
    packetOf({ kind: PACKET_DATA, body: segmentsOf(...segments) });

  it.each([
    ["from an endpoint of another node", { origin: 2, target: 0 }],
    ["from an endpoint that does not exist", { origin: 0xffffffff, target: 0 }],
    ["for an endpoint of another node", { origin: 1, target: 3 }],
    ["for an endpoint that does not exist", { origin: 1, target: NODES }],
  ])("D8 a segment %s is dropped, creates no stream, and its packet is not acknowledged", (_, where) => {
    const { node, given, get, seen } = running();
    const { streams } = node.kept;
    const { acknowledgments } = node.counts;
    get(
      inSession(
        data({ ...where, order: 0, content: [1] }, { origin: 1, target: 0, order: 1, content: [1] }),
        seen(PACKET_DATA),
      ),
    );
    expect(node.dropped.foreign).toBe(1);
    expect(node.kept.streams).toBe(streams);
    expect(given).toHaveLength(1);
    expect(node.counts.acknowledgments).toBe(acknowledgments);
  });

  it("D9 without a key, a packet with a tag is dropped: no part of the tag is read as a segment", () => {
    const { node, given, get, seen } = running();
    const sealed = packetOf({
      kind: PACKET_DATA,
      body: segmentsOf({ origin: 1, target: 0, order: 1, content: [1] }),
      sealed: true,
    });
    const tag = segmentsOf({ origin: 1, target: 0, order: 2, content: Array(60_000) }).slice(0, TAG_BYTES);
    new Uint8Array(sealed.buffer).set(tag, sealed.byteLength - TAG_BYTES);
    expect(sealed.getUint8(3)).toBe(PACKET_SEALED);
    get(inSession(sealed, seen(PACKET_DATA)));
    expect(node.dropped.unauthenticated).toBe(1);
    expect(given).toHaveLength(1);
  });

  it("D8 an order number beyond the window takes no memory", () => {
    const { pipe, node, given, get, seen } = running();
    const before = pipe.arena.used;
    get(inSession(data({ origin: 1, target: 0, order: 1 + 1024, content: [1] }), seen(PACKET_DATA)));
    expect(node.dropped.noRoom).toBe(1);
    expect(pipe.arena.used).toBe(before);
    expect(given).toHaveLength(1);
  });

  it.each([0, 0x80000000, 0xffffffff])("D8 order number %d has no effect while 1 is next", (order) => {
    const { pipe, node, given, get, seen } = running();
    const before = pipe.arena.used;
    get(inSession(data({ origin: 1, target: 0, order, content: [1] }), seen(PACKET_DATA)));
    expect(node.streams.duplicates + node.dropped.noRoom).toBe(1);
    expect(pipe.arena.used).toBe(before);
    expect(given).toHaveLength(1);
  });

  it.each([
    ["all", 0],
    ["echo", 4],
  ])("an acknowledgment of what was never sent is dropped and counted: %s", (_, offset) => {
    const { node, get, seen } = running();
    const acknowledgment = seen(PACKET_ACKNOWLEDGE);
    acknowledgment.setUint32(PACKET_SIZE + offset, acknowledgment.getUint32(PACKET_SIZE + offset, true) + 1000, true);
    get(acknowledgment);
    expect(node.dropped.protocolViolation).toBe(1);
  });

  it("an acknowledgment with a delay longer than the packet was in flight is no round-trip sample", () => {
    // All round trips are compared with the shortest one. If that were 0, the window would stay small for ever.
    const time = (isForged: boolean): number => {
      const simulation = new Simulation({ seed: 1, nodes: 2, hopMicroseconds: 1000, sessions: { txQueueBytes: 1e9 } });
      let forged = 0;
      simulation.network.isLost = (_, __, packet) => {
        if (isForged && packet[2] === PACKET_ACKNOWLEDGE && forged++ === 0)
          packet.fill(0xff, PACKET_SIZE + 8, PACKET_SIZE + 12);
        return false;
      };
      for (let i = 0; i < 1000; i++) simulation.submit(0, 1, Buffer.alloc(1000));
      simulation.run();
      expect(forged > 0).toBe(isForged);
      expect(simulation.given.get("0>4")).toHaveLength(1000);
      return simulation.network.now;
    };
    expect(time(true)).toBeLessThan(1.2 * time(false));
  });
});

describe("packets that open sessions", () => {
  const connect = (node: number, epoch: number): DataView => {
    const body = new DataView(new ArrayBuffer(CONNECT_SIZE));
    for (const [i, word] of [9, node, epoch, 0, 0, 0, 0, 1, 2, 3, 4].entries()) body.setUint32(4 * i, word, true);
    const packet = packetOf({ kind: PACKET_CONNECT, body: [...new Uint8Array(body.buffer)] });
    packet.setUint32(8, JOB, true);
    return packet;
  };

  it.each([NODES, 0x7fffffff, 0xffffffff])(
    "D6 in the name of node %d, which does not exist: nothing is kept",
    (node) => {
      const { node: victim, get } = running();
      const { kept, inUse } = victim;
      get(connect(node, 65536), "nobody");
      expect(victim.dropped.foreign).toBe(1);
      expect([victim.kept, victim.inUse]).toEqual([kept, inUse]);
    },
  );

  it.each([0, 65535])("D8 in the name of an earlier incarnation, epoch %d: streams do not restart", (epoch) => {
    const { node: victim, get, exchange, given } = running();
    get(connect(1, epoch));
    expect(victim.dropped.stale).toBe(1);
    exchange();
    expect(given).toHaveLength(2);
  });

  it("D8 in the name of an unknown node, with the invalid epoch 0: it gets no responder", () => {
    const { node: victim, get } = running();
    const { inUse } = victim;
    get(connect(2, 0), "2");
    expect(victim.dropped.stale).toBe(1);
    expect(victim.inUse).toEqual(inUse);
  });

  it("D5b D10 a node that was shut out by a forged epoch is given up, and is not asked again for ever", () => {
    const simulation = new Simulation({ seed: 2, nodes: 2, isFaithful: true });
    // 0-RTT, with data: a connect packet alone does not prove its epoch.
    const forged = connect(1, 0x7fff0000);
    forged.setUint32(PACKET_SIZE + CONNECT_OPTIONS_OFFSET, CONNECT_HALF, true);
    forged.setUint32(PACKET_SIZE + CONNECT_KNOWN_OFFSET, 1 << 16, true);
    const data = packetOf({ kind: PACKET_DATA, body: segmentsOf({ origin: 4, target: 0, order: 0, content: [1] }) });
    data.setUint8(3, PACKET_HALF);
    data.setUint32(8, JOB, true);
    data.setUint32(PACKET_SESSION_OFFSET, 1, true);
    for (const packet of [forged, data]) simulation.network.carry(1, 0, new Uint8Array(packet.buffer));
    simulation.run();
    // Node 0 connects with 0-RTT to the forged epoch. Node 1 refuses the data, and its true epoch is stale at node 0.
    simulation.submit(0, 1, Buffer.from("segment 0"));
    expect(simulation.run()).toBe(true);
    expect(simulation.lost).toEqual([[0, 1, false]]);
    expect(simulation.nodes[0]?.sessions.counts.connects).toBeLessThan(50);
    expect(simulation.network.now).toBeLessThan(20e6);
    expect(simulation.nodes[0]?.sessions.inUse).toMatchObject({ initiators: 0, txQueues: 0 });
  });

  it("D9 an answer without the nonce opens no session", () => {
    const { node, get, seen } = running();
    const accept = seen(PACKET_ACCEPT);
    accept.setUint32(PACKET_SIZE + 16, accept.getUint32(PACKET_SIZE + 16, true) ^ 1, true);
    get(accept);
    expect(node.dropped.unsolicited).toBe(1);
  });

  it("D7 a refusal that asks to wait for an hour delays the next attempt by less than two seconds", () => {
    const pipe = new Pipe(2);
    let given = 0;
    const origin = pipe.start(0, () => {});
    let connects = 0;
    pipe.tap = (from, _, packet) => {
      if (from !== 0 || packet[2] !== PACKET_CONNECT) return;
      if (connects++ > 0) return;
      const view = new DataView(packet.slice().buffer);
      const body = new DataView(new ArrayBuffer(16));
      body.setUint32(0, REFUSED_BUSY, true);
      body.setUint32(REFUSE_WAIT_OFFSET, 3_600_000_000, true);
      for (const i of [0, 4]) body.setUint32(8 + i, view.getUint32(PACKET_SIZE + CONNECT_NONCE_OFFSET + i, true), true);
      const refusal = packetOf({
        kind: PACKET_REFUSE,
        body: [...new Uint8Array(body.buffer)],
        session: view.getUint32(PACKET_SIZE, true),
      });
      refusal.setUint32(8, JOB, true);
      answers.push(refusal);
    };
    const answers: DataView[] = [];
    submit(origin, 1, 0, 1, 1, Uint8Array.of(1));
    origin.advance();
    pipe.carry(); // node 1 does not exist yet
    pipe.inject(0, "1", new Uint8Array((answers[0] as DataView).buffer));
    pipe.start(1, () => given++);
    pipe.run();
    expect(origin.counts.connects).toBe(2);
    expect(given).toBe(1);
    expect(pipe.now).toBeLessThan(2_000_000);
  });
});
