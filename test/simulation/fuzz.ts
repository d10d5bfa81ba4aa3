// Hostile packets to a running node that has sessions with honest nodes. What holds depends on what the attacker knows, and
// on whether the honest nodes have a key that the attacker does not have:
//
//   blind    The attacker knows the job's fingerprint and the nodes' numbers and addresses, sees old packets, and forges
//            addresses. It cannot guess a session id or reference in use, or a future epoch. It has nodes and sessions of
//            its own. Honest traffic is delivered once and in order. If the attacker has the key of the job, that holds as
//            long as it does not speak in the name of honest nodes.
//   knowing  The attacker sees each packet at once, and can replace it. It can drop, forge and reorder packets, and shut a
//            node out by an epoch of the far future. Still nothing traps, nothing grows, and segments are only delivered
//            from and to endpoints that exist. With a key that the attacker does not have, it can do none of that: honest
//            traffic is delivered once and in order.
//
// Every received packet is counted once: as taken, or as dropped. One that breaks a rule of packetCheck() is counted there.
import {
  ACCEPT_EPOCH_OFFSET,
  ACCEPT_NONCE_OFFSET,
  ACCEPT_RESPONDER_OFFSET,
  ACKNOWLEDGE_MASK_OFFSET,
  CONNECT_EPOCH_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_KNOWN_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_OPTIONS_OFFSET,
  CONNECT_SERIAL_OFFSET,
  CONNECT_SIZE,
  CONNECT_TARGET_OFFSET,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_BYTES_MAX,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_JOB_OFFSET,
  PACKET_LENGTH_OFFSET,
  PACKET_MAGIC,
  PACKET_NUMBER_OFFSET,
  PACKET_REFUSE,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  PACKET_VERSION,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORDER_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { memoryOf } from "../../src/kernel/kernel.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import type { Sessions } from "../../src/session/sessions.js";
import type { KeySchedule, Seal } from "../../src/session/wire/key-schedule.js";
import { packetOf } from "../support/packets.js";
import { randomOf } from "../support/random.js";
import { submit } from "../support/submit.js";
import { JOB, keyOf } from "./nodes.js";
import { Pipe } from "./pipe.js";

/** Nodes of the job. The attacker owns those from HONEST on. */
export const NODES = 64;
const HONEST = 3;
/** Old packets that the attacker remembers. */
const MEMORY = 64;
/** Hostile packets between two rounds of honest ones. */
const BURST = 500;
/** Segments to and from each honest node in a round. */
const ROUND = 20;
const PACKET_BYTES = 1400;
const ARENA_BYTES = 8 * 1024 * 1024;

/** What the attacker knows. */
export interface Way {
  readonly isKnowing: boolean;
  readonly isFaithful: boolean;
  /** Which nodes have the job key: none, the honest ones, or all, the attacker included. */
  readonly key: "none" | "honest" | "all";
}

const KEY_SCHEDULE = keyScheduleOf(keyOf(1), JOB);
/** Open sessions of the attacker. */
const SESSIONS = 16;

export interface Fuzzed {
  readonly injected: number;
  /** Injected packets, by the result of packetCheck(). */
  readonly rules: number[];
  readonly dropped: Sessions["dropped"];
  readonly taken: number;
  readonly wrong: string[];
}

/** The sum of all counters of dropped packets. */
export function droppedOf({ malformed, ...others }: Sessions["dropped"]): number {
  return [...malformed, ...Object.values(others)].reduce((sum, count = 0) => sum + count, 0);
}

/** Boundary values. */
const EDGES = [
  0, 1, 2, 3, 31, 32, 33, 63, 64, 1023, 1024, 1025, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
];

/** A packet and its sender's address, true or forged. */
interface Made {
  readonly from: string;
  readonly packet: Uint8Array;
}

/** A session of the attacker. */
interface Own {
  readonly node: number;
  readonly id: number;
  readonly seal: Seal | undefined;
  sent: number;
}

class Attacker {
  readonly #random: (below: number) => number;
  readonly #isKnowing: boolean;
  readonly #keySchedule: KeySchedule | undefined;
  /** Connect packets of the attacker's nodes, by reference. */
  readonly #connects = new Map<number, DataView>();
  readonly #own: Own[] = [];
  #serial = 0;
  /** Packets that went to the victim, and their senders. */
  readonly #old: { from: number; packet: Uint8Array }[] = [];

  constructor(random: (below: number) => number, { isKnowing, key }: Way) {
    this.#random = random;
    this.#isKnowing = isKnowing;
    this.#keySchedule = key === "all" ? KEY_SCHEDULE : undefined;
  }

  /** A packet came to the attacker's node. If it accepts a connect packet, the attacker has another session. */
  gets(node: number, bytes: Uint8Array): void {
    const packet = new DataView(bytes.slice().buffer);
    const connect = this.#connects.get(packet.getUint32(PACKET_SESSION_OFFSET, true));
    if (packet.getUint8(2) !== PACKET_ACCEPT || connect === undefined) return;
    const word = (of: DataView, offset: number): number => of.getUint32(PACKET_SIZE + offset, true);
    const words = (of: DataView, offset: number): number[] => [0, 4, 8, 12].map((at) => word(of, offset + at));
    const id = word(packet, ACCEPT_RESPONDER_OFFSET);
    const seals = this.#keySchedule?.session({
      origin: node,
      target: 0,
      originEpoch: word(connect, CONNECT_EPOCH_OFFSET),
      targetEpoch: word(packet, ACCEPT_EPOCH_OFFSET),
      initiator: word(connect, CONNECT_INITIATOR_OFFSET),
      responder: id,
      connectNonce: words(connect, CONNECT_NONCE_OFFSET),
      acceptNonce: words(packet, ACCEPT_NONCE_OFFSET),
    });
    this.#own[this.#random(SESSIONS)] = { node, id, seal: seals?.toTarget, sent: 1 };
  }

  sees(from: number, packet: Uint8Array): void {
    const one = { from, packet: packet.slice() };
    if (this.#old.length < MEMORY) this.#old.push(one);
    else this.#old[this.#random(MEMORY)] = one;
  }

  #word(): number {
    const random = this.#random;
    return random(2) === 0 ? random(2 ** 32) : (EDGES[random(EDGES.length)] as number);
  }

  #anybody(): string {
    return String(this.#random(8) === 0 ? this.#random(NODES) : this.#random(HONEST));
  }

  next(): Made {
    const random = this.#random;
    const known = this.#old[random(this.#old.length)];
    const kind = random(this.#isKnowing ? 7 : 5);
    if (kind === 0 || known === undefined) return { from: this.#anybody(), packet: this.#noise() };
    if (kind === 1) return [this.#made, this.#connect, this.#data][random(3)]?.call(this) as Made;
    const from = random(4) === 0 ? this.#anybody() : String(known.from);
    const packet = known.packet.slice();
    if (kind === 2) return { from, packet }; // a replay
    if (kind === 3) return { from, packet: packet.subarray(0, random(packet.length)) };
    if (kind === 4) return { from, packet: this.#longer(packet) };
    if (kind === 5) for (let i = 1 + random(4); i > 0; i--) this.#flip(packet);
    else this.#change(packet);
    return { from, packet };
  }

  #noise(): Uint8Array {
    const packet = new Uint8Array(this.#random(100));
    for (let i = 0; i < packet.length; i++) packet[i] = this.#random(256);
    return packet;
  }

  /** Seals a packet, if there is a seal. */
  #sealed({ buffer }: DataView<ArrayBuffer>, seal: Seal | undefined): Uint8Array {
    const bytes = new Uint8Array(buffer);
    if (seal === undefined) return bytes;
    const sealed = new Uint8Array(bytes.length + TAG_BYTES);
    const packet = new DataView(sealed.buffer);
    sealed.set(bytes);
    packet.setUint8(3, packet.getUint8(3) | PACKET_SEALED);
    packet.setUint16(PACKET_LENGTH_OFFSET, sealed.length, true);
    const body = Math.min(packet.getUint16(PACKET_LENGTH_OFFSET + 2, true), bytes.length);
    seal.seal(sealed, body, packet.getUint32(PACKET_SENT_OFFSET, true));
    return sealed;
  }

  /** A connect packet of the attacker's node, of one of several incarnations, with or without 0-RTT. */
  #connect(): Made {
    const random = this.#random;
    const node = HONEST + random(NODES - HONEST);
    const initiator = 1 + random(0xffffffff);
    const packet = packetOf({ kind: PACKET_CONNECT, body: Array(CONNECT_SIZE).fill(0) });
    const set = (offset: number, value: number): void => packet.setUint32(PACKET_SIZE + offset, value, true);
    packet.setUint32(PACKET_JOB_OFFSET, JOB, true);
    set(CONNECT_INITIATOR_OFFSET, initiator);
    set(CONNECT_NODE_OFFSET, node);
    set(CONNECT_EPOCH_OFFSET, 65536 + random(4));
    set(CONNECT_OPTIONS_OFFSET, random(2));
    set(CONNECT_KNOWN_OFFSET, random(2) * 65536);
    set(CONNECT_SERIAL_OFFSET, ++this.#serial);
    for (let at = 0; at < 16; at += 4) set(CONNECT_NONCE_OFFSET + at, random(2 ** 32));
    this.#connects.set(initiator, packet);
    return { from: String(node), packet: this.#sealed(packet, this.#keySchedule?.handshake) };
  }

  /** Data or DISCONNECT in a session of the attacker. */
  #data(): Made {
    const random = this.#random;
    const own = this.#own[random(SESSIONS)];
    if (own === undefined) return this.#connect();
    const isEnd = random(16) === 0;
    const packet = packetOf({
      kind: isEnd ? PACKET_DISCONNECT : PACKET_DATA,
      session: own.id,
      body: isEnd ? [] : Array(SEGMENT_SIZE + 4 * random(20)).fill(random(256)),
    });
    packet.setUint32(PACKET_JOB_OFFSET, JOB, true);
    packet.setUint32(PACKET_SENT_OFFSET, random(8) === 0 ? this.#word() || 1 : ++own.sent, true);
    if (!isEnd) {
      packet.setUint32(PACKET_NUMBER_OFFSET, random(8) === 0 ? this.#word() || 1 : 1 + random(own.sent), true);
      if (random(4) > 0) this.#segments(packet, PACKET_SIZE, own.node);
    }
    return { from: String(own.node), packet: this.#sealed(packet, own.seal) };
  }

  /** A valid header, followed by any body. */
  #made(): Made {
    const bytes = this.#body();
    // A holder of the key that names an honest node can shut that node out.
    const isMeant = bytes[2] !== PACKET_CONNECT || this.#isKnowing;
    const packet = this.#sealed(new DataView(bytes.buffer), isMeant ? this.#keySchedule?.handshake : undefined);
    return { from: this.#anybody(), packet };
  }

  #body(): Uint8Array<ArrayBuffer> {
    const random = this.#random;
    const body = 4 * random(random(8) === 0 ? 400 : 16);
    const bytes = new Uint8Array(PACKET_SIZE + body);
    const packet = new DataView(bytes.buffer);
    const kinds = [PACKET_CONNECT, PACKET_DATA, PACKET_DISCONNECT, PACKET_ACCEPT, PACKET_REFUSE, PACKET_ACKNOWLEDGE];
    const kind = kinds[random(kinds.length)] as number;
    for (let at = PACKET_SIZE; at < bytes.length; at += 4) packet.setUint32(at, this.#word(), true);
    packet.setUint8(0, PACKET_MAGIC);
    packet.setUint8(1, random(32) === 0 ? random(256) : PACKET_VERSION);
    packet.setUint8(2, random(32) === 0 ? random(256) : kind);
    packet.setUint8(3, random(4) === 0 ? random(8) : 0);
    packet.setUint16(PACKET_LENGTH_OFFSET, bytes.length, true);
    packet.setUint16(PACKET_LENGTH_OFFSET + 2, PACKET_SIZE + (random(8) === 0 ? 4 * random(20) : 0), true);
    packet.setUint32(PACKET_JOB_OFFSET, random(16) === 0 ? random(2 ** 32) : JOB, true);
    // No reference in use has such low bits.
    packet.setUint32(
      PACKET_SESSION_OFFSET,
      random(32) === 0 || kind === PACKET_CONNECT ? 0 : (this.#word() | 0xfff) >>> 0,
      true,
    );
    packet.setUint32(PACKET_SENT_OFFSET, this.#word(), true);
    packet.setUint32(PACKET_NUMBER_OFFSET, kind === PACKET_DATA ? this.#word() || 1 : 0, true);
    const set = (offset: number, value: number): void => {
      if (PACKET_SIZE + offset + 4 <= bytes.length) packet.setUint32(PACKET_SIZE + offset, value, true);
    };
    if (kind === PACKET_CONNECT && body >= CONNECT_SIZE) {
      set(CONNECT_INITIATOR_OFFSET, this.#word() || 1);
      set(CONNECT_TARGET_OFFSET, random(8));
      const node = random(8) === 0 ? this.#word() : random(2) === 0 ? random(HONEST) : random(2 * NODES);
      set(CONNECT_NODE_OFFSET, node);
      // In the name of a real node, only with its present epoch or an earlier one.
      set(CONNECT_EPOCH_OFFSET, node < HONEST && !this.#isKnowing ? 65536 - random(2) : this.#word());
      if (random(2) === 0) set(CONNECT_KNOWN_OFFSET, 65536);
      set(CONNECT_SERIAL_OFFSET, ++this.#serial);
      set(16, random(2));
    }
    if (kind === PACKET_DATA && random(2) === 0) this.#segments(packet, PACKET_SIZE);
    if (kind === PACKET_ACKNOWLEDGE && body >= ACKNOWLEDGE_MASK_OFFSET)
      set(20, random((body - ACKNOWLEDGE_MASK_OFFSET) / 4 + 1));
    return bytes;
  }

  /** Fills a body with segments. */
  #segments(packet: DataView, body: number, node = this.#random(HONEST)): void {
    const random = this.#random;
    for (let at = body; packet.byteLength - at >= SEGMENT_SIZE; ) {
      const room = packet.byteLength - at - SEGMENT_SIZE;
      const length = random(2) === 0 || room < 20 + SEGMENT_SIZE ? room : random(20);
      const origin = [node, random(NODES), this.#word()][random(3)] as number;
      packet.setUint32(at + SEGMENT_ORIGIN_OFFSET, origin, true);
      packet.setUint32(at + SEGMENT_TARGET_OFFSET, random(4) > 0 ? 0 : this.#word(), true);
      packet.setUint32(at + SEGMENT_ORDER_OFFSET, random(2) === 0 ? random(3000) : this.#word(), true);
      packet.setUint32(at + SEGMENT_LENGTH_OFFSET, length | ((1 + random(15)) << 16), true);
      at += SEGMENT_SIZE + ((length + 3) & ~3);
    }
  }

  /** Makes it longer than its length field, or than any packet may be. */
  #longer(packet: Uint8Array): Uint8Array {
    const more = 1 + this.#random(this.#random(8) === 0 ? 70_000 : 100);
    const longer = new Uint8Array(packet.length + more);
    longer.set(packet);
    return longer;
  }

  #flip(packet: Uint8Array): void {
    const at = this.#random(packet.length);
    packet[at] = (packet[at] as number) ^ (1 << this.#random(8));
  }

  /** Changes some words, or its segments. */
  #change(packet: Uint8Array): void {
    const random = this.#random;
    const view = new DataView(packet.buffer);
    if (packet[2] === PACKET_DATA && random(2) === 0) {
      this.#segments(view, PACKET_SIZE);
      view.setUint32(PACKET_NUMBER_OFFSET, view.getUint32(PACKET_NUMBER_OFFSET, true) + random(40), true);
      return;
    }
    for (let i = 1 + random(3); i > 0; i--) {
      const at = 4 * random(packet.length >>> 2);
      const value = random(2) === 0 ? this.#word() : view.getUint32(at, true) + random(5) - 2;
      if (at >= PACKET_SENT_OFFSET) view.setUint32(at, value, true);
    }
  }
}

/** Sends hostile packets that are drawn from a seed. */
export function fuzz(seed: number, count: number, way: Way): Fuzzed {
  const { isFaithful, key } = way;
  /** Whether packets of the attacker can pass for packets of honest nodes. */
  const isBelieved = way.isKnowing && key !== "honest";
  const random = randomOf(seed);
  const wrong: string[] = [];
  const pipe = new Pipe(
    NODES,
    {
      isFaithful,
      packetBytes: PACKET_BYTES,
      kernelName: random(2) === 0 ? "wasm" : "ts",
      keySchedule: key === "none" ? undefined : KEY_SCHEDULE,
    },
    ARENA_BYTES,
  );
  const attacker = new Attacker(random, way);
  const { words, bytes } = pipe.memory;
  let received = 0;
  pipe.tap = (from, to, packet) => {
    if (from === 0 && to >= HONEST) attacker.gets(to, packet);
    if (to !== 0) return;
    received++;
    attacker.sees(from, packet);
  };
  /** Numbers of the last segments delivered and sent, by stream between honest nodes. */
  const came = new Int32Array(HONEST * HONEST).fill(-1);
  const sent = new Int32Array(HONEST * HONEST).fill(-1);
  const giveAt = (node: number) => (segment: number) => {
    const at = segment >>> 2;
    const [origin, target] = [
      words[at + SEGMENT_ORIGIN_OFFSET / 4] as number,
      words[at + SEGMENT_TARGET_OFFSET / 4] as number,
    ];
    const length = (words[at + SEGMENT_LENGTH_OFFSET / 4] as number) & 0xffff;
    if (target !== node || origin === node || origin < 0 || origin >= NODES || length > PACKET_BYTES_MAX)
      wrong.push(`node ${node} is given ${length} bytes from ${origin} for ${target}`);
    if (isBelieved || origin >= HONEST) return;
    const stream = origin * HONEST + target;
    const number = new DataView(bytes.buffer, segment + SEGMENT_SIZE).getInt32(0, true);
    if (length !== 8 || number !== (came[stream] as number) + 1)
      wrong.push(`node ${node}: ${number} of ${length} bytes from ${origin} comes after ${came[stream]}`);
    came[stream] = number;
  };
  const nodes = Array.from({ length: HONEST }, (_, node) => pipe.start(node, giveAt(node)));
  const [victim] = nodes as [Sessions];
  const content = new DataView(new ArrayBuffer(8));
  const exchange = (): void => {
    for (let i = 0; i < ROUND; i++) {
      for (const [from, to] of [
        [0, 1],
        [0, 2],
        [1, 0],
        [2, 0],
      ] as const) {
        const stream = from * HONEST + to;
        content.setInt32(0, (sent[stream] as number) + 1, true);
        if (submit(nodes[from], to, from, to, 1, new Uint8Array(content.buffer)))
          sent[stream] = (sent[stream] as number) + 1;
      }
    }
  };

  // Another kernel, over its own memory, tells which rule each packet breaks.
  const judged = memoryOf(new SharedArrayBuffer(2 * 65536));
  const judge = twinPacketKernel(judged);
  const rules: number[] = [];
  exchange();
  pipe.run();
  let bounds: Record<string, number> | undefined;
  for (let injected = 0; injected < count; ) {
    exchange();
    for (let i = 0; i < BURST && injected < count; i++, injected++) {
      const { from, packet } = attacker.next();
      received++;
      const fits = packet.length <= PACKET_BYTES_MAX;
      if (fits) judged.bytes.set(packet, 0);
      const rule = fits ? judge.packetCheck(0, packet.length, JOB) : 1;
      rules[rule] = (rules[rule] ?? 0) + 1;
      victim.receive(from, packet);
      // Sometimes in between honest packets in flight.
      if (random(50) === 0) {
        for (const one of nodes) one.advance();
        pipe.carry();
        pipe.now += random(1000);
      }
    }
    pipe.run();
    // Idle responders are free again.
    pipe.now += 6e6;
    const { inUse, kept } = victim;
    const { initiators, responders, txQueues } = inUse;
    const is = { ...kept, initiators, responders, txQueues, arena: pipe.arena.used };
    bounds ??= {
      ...is,
      // A table of words is doubled when three of four entries are in use.
      epochs: 4 * NODES,
      connects: NODES,
      streams: NODES,
      givenUp: NODES,
      spare: 2 ** 21 / (PACKET_BYTES - 16),
      responders: 64,
      arena: key === "honest" ? is.arena : ARENA_BYTES,
    };
    for (const [name, value] of Object.entries(is)) {
      if (value > (bounds[name] as number)) wrong.push(`${name} grows: ${value}, after ${injected} packets`);
    }
    if (wrong.length > 5) break;
  }
  exchange();
  pipe.run();
  for (const [stream, last] of sent.entries()) {
    if (!isBelieved && came[stream] !== last)
      wrong.push(`stream ${stream}: the last that came is ${came[stream]}, not ${last}`);
  }
  const { counts, dropped } = victim;
  for (let rule = 1; rule < Math.max(rules.length, dropped.malformed.length); rule++) {
    // Packets that open may break more rules.
    const [is, was] = [dropped.malformed[rule] ?? 0, rules[rule] ?? 0];
    if (key === "all" ? is < was : is !== was)
      wrong.push(`rule ${rule}: broken by ${rules[rule]} packets, and counted for ${dropped.malformed[rule]}`);
  }
  const counted = counts.taken + counts.refused + droppedOf(dropped);
  if (counted !== received) wrong.push(`${received} packets came, ${counted} are counted`);
  return { injected: count, rules, dropped, taken: counts.taken, wrong };
}
