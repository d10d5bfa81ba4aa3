// Hostile packets into a running node that has sessions with honest ones. What holds depends on what the attacker knows, and
// on whether the honest have a key that he has not:
//
//   blind    he knows the job's fingerprint and the nodes' numbers and addresses, sees packets when they are old, and sends
//            in anybody's name; but he guesses no session id or reference that is in use, and no epoch that is to come.
//            Sessions of his own he has, of nodes that are his. Then honest traffic comes once and in order; where there is a
//            key, and he has it, too, as long as he names no other.
//   knowing  he sees each packet at once, and sends any other in its place. He can lose, forge and reorder what he likes, and
//            shut a node out by an epoch of the far future. What is left: nothing traps, nothing grows, and what is given out
//            is from and for endpoints that there are. Where there is a key that he has not, he can do nothing of that:
//            honest traffic comes once and in order.
//
// In all, every packet that came is counted, taken or dropped, and one that breaks a rule of packetCheck() only there.
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
import type { KeySchedule, Seal } from "../../src/session/key-schedule.js";
import type { Sessions } from "../../src/session/sessions.js";
import { packetOf } from "../support/packets.js";
import { randomOf } from "../support/random.js";
import { JOB, keyOf } from "./nodes.js";
import { Pipe } from "./pipe.js";

/** Nodes of the job; those from HONEST on are the attacker's. */
export const NODES = 64;
const HONEST = 3;
/** Packets of earlier that the attacker has. */
const MEMORY = 64;
/** Hostile packets between two rounds of honest ones. */
const BURST = 500;
/** Segments to and from each honest node in a round. */
const ROUND = 20;
const PACKET_BYTES = 1400;
const ARENA_BYTES = 8 * 1024 * 1024;

/** What the attacker is. */
export interface Way {
  readonly isKnowing: boolean;
  readonly isFaithful: boolean;
  /** Who has a job key: nobody, the honest, or the attacker, too. */
  readonly key: "none" | "honest" | "all";
}

const KEY_SCHEDULE = keyScheduleOf(keyOf(1), JOB);
/** Sessions that he has at a time. */
const SESSIONS = 16;

export interface Fuzzed {
  readonly injected: number;
  /** By what packetCheck() says of them. */
  readonly rules: number[];
  readonly dropped: Sessions["dropped"];
  readonly taken: number;
  readonly wrong: string[];
}

/** All that was dropped. */
export function droppedOf({ malformed, ...others }: Sessions["dropped"]): number {
  return [...malformed, ...Object.values(others)].reduce((sum, count = 0) => sum + count, 0);
}

/** Numbers at which something may go wrong. */
const EDGES = [
  0, 1, 2, 3, 31, 32, 33, 63, 64, 1023, 1024, 1025, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
];

/** A packet, and the address that it bears. */
interface Made {
  readonly from: string;
  readonly packet: Uint8Array;
}

/** A session of the attacker's. */
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
  /** Connect packets of his nodes, by their references. */
  readonly #connects = new Map<number, DataView>();
  readonly #own: Own[] = [];
  #serial = 0;
  /** Those that went to the victim, and from whom. */
  readonly #old: { from: number; packet: Uint8Array }[] = [];

  constructor(random: (below: number) => number, { isKnowing, key }: Way) {
    this.#random = random;
    this.#isKnowing = isKnowing;
    this.#keySchedule = key === "all" ? KEY_SCHEDULE : undefined;
  }

  /** A packet came to a node that is his: what accepts a connect packet of his is a session. */
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
    if (kind === 2) return { from, packet }; // once more
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

  /** A connect packet of a node that is his: of several lives, and by half. */
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

  /** Data, or the end of it, in a session of his own. */
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

  /** A right header, and whatever behind it. */
  #made(): Made {
    const bytes = this.#body();
    // Whoever has the key, and names another, can shut him out.
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
    // No place ends like that: it is in use by nobody.
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
      // In the name of one that is there only with an epoch that it has, or had.
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

  /** Segments that fill a body. */
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

  /** It is longer than it says, or than any can be. */
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

  /** Another value in some words, or other segments. */
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

/** So many hostile packets, drawn from a seed. */
export function fuzz(seed: number, count: number, way: Way): Fuzzed {
  const { isFaithful, key } = way;
  /** Whether what he sends can be taken for what the honest send. */
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
  /** Numbers of the last segment that came, and that was sent, by stream of honest nodes. */
  const came = new Int32Array(HONEST * HONEST).fill(-1);
  const sent = new Int32Array(HONEST * HONEST).fill(-1);
  const giveAt = (node: number) => (segment: number) => {
    const at = segment >>> 2;
    const [origin, target] = [
      words[at + SEGMENT_ORIGIN_OFFSET / 4] as number,
      words[at + SEGMENT_TARGET_OFFSET / 4] as number,
    ];
    const length = (words[at + SEGMENT_LENGTH_OFFSET / 4] as number) & 0xffff;
    if (target !== node || origin === node || origin < 0 || origin >= NODES || length > PACKET_BYTES)
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
        if (nodes[from]?.submit(to, from, to, 1, new Uint8Array(content.buffer)))
          sent[stream] = (sent[stream] as number) + 1;
      }
    }
  };

  // Another kernel, over memory of its own, says what is to become of each packet.
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
      const fits = packet.length <= PACKET_BYTES;
      if (fits) judged.bytes.set(packet, 0);
      const rule = fits ? judge.packetCheck(0, packet.length, JOB) : 1;
      rules[rule] = (rules[rule] ?? 0) + 1;
      victim.receive(from, packet);
      // Now and then among what is honest and under way.
      if (random(50) === 0) {
        for (const one of nodes) one.advance();
        pipe.carry();
        pipe.now += random(1000);
      }
    }
    pipe.run();
    // Responders that nobody uses are free again.
    pipe.now += 6e6;
    const { inUse, kept } = victim;
    const { initiators, responders, txQueues } = inUse;
    const is = { ...kept, initiators, responders, txQueues, arena: pipe.arena.used };
    bounds ??= {
      ...is,
      epochs: NODES,
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
    // Behind a seal that is right there may be more of them.
    const [is, was] = [dropped.malformed[rule] ?? 0, rules[rule] ?? 0];
    if (key === "all" ? is < was : is !== was)
      wrong.push(`rule ${rule}: broken by ${rules[rule]} packets, and counted for ${dropped.malformed[rule]}`);
  }
  const counted = counts.taken + counts.refused + droppedOf(dropped);
  if (counted !== received) wrong.push(`${received} packets came, ${counted} are counted`);
  return { injected: count, rules, dropped, taken: counts.taken, wrong };
}
