// What both sides of a node stand on: what it was given, what it counts, the numbers that it gives out, and which life of
// another node is the latest.
import {
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_WORDS_MAX,
  PACKET_BYTES_MAX,
  PACKET_RIGHT,
  PACKET_SIZE,
  SEGMENT_SIZE,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Memory, PacketKernel } from "../kernel/kernel.js";
import type { Address, Link } from "../link/link.js";
import { type KeySchedule, type Seal, sealed } from "./key-schedule.js";
import type { ReceivedPacket } from "./received-packet.js";
import type { ReplayWindow } from "./replay-window.js";
import type { Counts, Outgoing, Shared } from "./session.js";
import type { Arena } from "./streams.js";
import { Time } from "./time.js";

/** Bytes of the smallest packets that a link must take: an acknowledgment with all of its mask, and a tag. */
const LINK_BYTES_MIN = PACKET_SIZE + ACKNOWLEDGE_MASK_OFFSET + 4 * ACKNOWLEDGE_WORDS_MAX + TAG_BYTES;
/**
 * Packets that a session sends, from the least that may be set to the most. It ends when it has sent so many and all are
 * there, and at once when they are twice as many: a counter has 32 bits, and none comes twice under one key.
 */
const SESSION_PACKETS_MIN = 64;
const SESSION_PACKETS_MAX = 2 ** 30;

/** Lives that one start of a node has for another node: 16 bits, and of 10 s each at the least, unless refused, a week. */
const GIVEN_UP_MAX = 0xffff;

/** What a node is given. */
export interface SessionsOptions {
  readonly kernel: PacketKernel;
  readonly memory: Memory;
  readonly arena: Arena;
  readonly link: Link;
  /** Microseconds; it should be monotonic, and may jump. */
  readonly now: () => number;
  /** Any u32; with a keySchedule from a cryptographic source. */
  readonly random: () => number;
  /** Number of this node, and how often it has been started: of two nodes of one number that are alive, one is refused. */
  readonly node: number;
  readonly epoch: number;
  /** Of the job: nodes have numbers below it. */
  readonly nodes: number;
  /** Of the job: endpoints have ordinals below it. */
  readonly endpoints: number;
  /** The node of an endpoint. */
  readonly nodeOf: (endpoint: number) => number;
  /** Fingerprint of the job. */
  readonly job: number;
  /** Where a node is, and where its packets come from; of a number that is no node's, an empty string. It must not throw. */
  readonly addressOf: (node: number) => Address;
  /** What the job key makes; undefined: packets travel as they are, and sealed ones are dropped. */
  readonly keySchedule?: KeySchedule | undefined;
  /** Packets that a session sends until another takes its index, with other keys: 64 to 2^30. */
  readonly sessionPackets?: number | undefined;
  readonly initiators?: number | undefined;
  readonly responders?: number | undefined;
  /** Bytes that may wait for one node. */
  readonly txQueueBytes?: number | undefined;
  /** Gets each segment in order, by a pointer that is valid until it returns. */
  readonly give: (segment: number) => void;
  /**
   * A node does not answer, or has been started anew: what was for it is lost.
   * @param refused why it does not want any of it: REFUSED_NODE, REFUSED_NAME; 0: it says nothing
   */
  readonly lost: (node: number, isRestarted: boolean, refused: number) => void;
}

/** Why a packet was dropped, and how often. */
export interface Dropped {
  /** By the rule that was broken: PACKET_WRONG_…. */
  readonly wrong: number[];
  /** Of a session that is none, or another's. */
  unknown: number;
  /** Data packets that came more than once. */
  repeated: number;
  /** Data packets beyond what was allowed, or for which there was no room. */
  heldBack: number;
  /** Acknowledgments of what was never sent. */
  untrue: number;
  /** With a key: those without a seal, and those that another key sealed or that were changed. Without: sealed ones. */
  unsealed: number;
  /** Sealed ones that came before, or too late to tell. */
  replayed: number;
  /** Of a node whose number is another's: its packets come from another address. */
  misnamed: number;
  /** From or to a node or an endpoint that is not where it says, or not there at all. */
  foreign: number;
  /** Of an earlier life of a node. */
  stale: number;
  /** Answers to another attempt than the last, to one that has an answer already, or to none. */
  unasked: number;
}

export class NodeState implements Shared {
  readonly options: SessionsOptions;
  /** `taken`: packets that came and were not dropped; `refused`: connect packets for which there was no responder. */
  readonly counts: Counts & { acknowledgments: number; connects: number; refused: number; taken: number } = {
    data: 0,
    retransmitted: 0,
    acknowledgments: 0,
    connects: 0,
    refused: 0,
    taken: 0,
  };
  readonly dropped: Dropped = {
    wrong: [],
    unknown: 0,
    repeated: 0,
    heldBack: 0,
    untrue: 0,
    unsealed: 0,
    replayed: 0,
    misnamed: 0,
    foreign: 0,
    stale: 0,
    unasked: 0,
  };
  readonly out: Outgoing;
  reorderingDelay = 0;
  /** Bytes of the largest packet that it sends, without a tag. */
  readonly packetBytes: number;
  readonly sessionPackets: number;
  readonly time: Time;
  readonly #lost: SessionsOptions["lost"];
  /** Latest epoch of each node that was heard of; 0: none was. */
  #epochs = new Uint32Array(64);
  /** How often a node was given up: for it, this one begins another life each time. */
  readonly #givenUp = new Map<number, number>();
  #generation: number;
  /** Connect packets that this node has sent. */
  #serial = 0;

  /** @param lost as in the options, and both sides are to forget the node */
  constructor(options: SessionsOptions, lost: SessionsOptions["lost"]) {
    const { link, random, now, sessionPackets = SESSION_PACKETS_MAX } = options;
    checkMultiple("packetBytes of a link", link.packetBytes, 4, LINK_BYTES_MIN, PACKET_BYTES_MAX);
    checkMultiple("sessionPackets", sessionPackets, 1, SESSION_PACKETS_MIN, SESSION_PACKETS_MAX);
    this.options = options;
    this.sessionPackets = sessionPackets;
    this.time = new Time(now);
    this.packetBytes = link.packetBytes - TAG_BYTES;
    const buffer = new Uint8Array(link.packetBytes);
    this.out = {
      send: (to, packet, seal) => link.send(to, seal === undefined ? packet.bytes : sealed(packet, seal, buffer)),
    };
    this.#lost = lost;
    this.#generation = random();
  }

  /** A number that nobody had for long, with the index in its low bits. */
  nextReference(index: number): number {
    this.#generation = (this.#generation + 1) & 0xfffff;
    return ((this.#generation << 12) | (index + 1)) >>> 0;
  }

  /** Number of the next connect packet: those of a life of this node are told apart by it. */
  nextSerial(): number {
    this.#serial = (this.#serial + 1) >>> 0;
    return this.#serial;
  }

  /** Bytes of the content of a segment, at the most. */
  get contentMax(): number {
    return this.packetBytes - PACKET_SIZE - SEGMENT_SIZE;
  }

  /**
   * Takes the seal off a packet.
   * @param replayWindow of a session: which of its packets came already
   * @returns false: it does not count, for what is counted in `dropped`
   */
  unseal(packet: ReceivedPacket, seal: Seal | undefined, replayWindow?: ReplayWindow): boolean {
    const { dropped, options } = this;
    if (options.keySchedule === undefined) return true;
    const { sent } = packet;
    if (replayWindow?.has(sent) === true) {
      dropped.replayed++;
      return false;
    }
    const rule = seal === undefined ? undefined : packet.open(seal);
    if (rule === undefined) {
      dropped.unsealed++;
      return false;
    }
    replayWindow?.add(sent);
    if (rule !== PACKET_RIGHT) dropped.wrong[rule] = (dropped.wrong[rule] ?? 0) + 1;
    return rule === PACKET_RIGHT;
  }

  /** The latest epoch of a node that is certain; 0: it has not been heard of. */
  epochOf(node: number): number {
    return this.#epochs[node] ?? 0;
  }

  /**
   * What another node is told as this one's epoch. Whoever gives a node up begins another life for it: what either had under
   * way is lost, and both say so.
   */
  epochFor(node: number): number {
    return ((this.options.epoch << 16) + (this.#givenUp.get(node) ?? 0)) >>> 0;
  }

  /** Whether an epoch of a node is none, or a later one is known. */
  isOver(node: number, epoch: number): boolean {
    const known = this.epochOf(node);
    return epoch === 0 || (known !== 0 && seqDelta(epoch, known) < 0);
  }

  /**
   * An epoch of a node that is not over; of a later one all that was before is forgotten. It must be certain: what an old
   * packet says in a new life of this node is not.
   */
  noteEpoch(node: number, epoch: number): void {
    const known = this.epochOf(node);
    if (known === epoch) return;
    if (node >= this.#epochs.length) this.#epochs = grown(this.#epochs, node);
    this.#epochs[node] = epoch;
    if (known !== 0) this.#lost(node, true, 0);
  }

  /** A node is given up: it does not answer (D10), or refuses what is for it. @param refused why; 0: it says nothing */
  giveUp(node: number, refused: number): void {
    this.#givenUp.set(node, Math.min((this.#givenUp.get(node) ?? 0) + 1, GIVEN_UP_MAX));
    this.#lost(node, false, refused);
  }

  /** What grows with the nodes that were heard of, and given up: words, entries. */
  get kept(): { epochs: number; givenUp: number } {
    return { epochs: this.#epochs.length, givenUp: this.#givenUp.size };
  }
}

/** The same, and so long that there is a index for one. */
export function grown(words: Uint32Array<ArrayBuffer>, index: number): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(Math.max(words.length, 2 ** Math.ceil(Math.log2(index + 1))));
  longer.set(words);
  return longer;
}

function checkMultiple(name: string, value: number, unit: number, least: number, most: number): void {
  if (Number.isInteger(value / unit) && value >= least && value <= most) return;
  const what = unit === 1 ? "an integer" : `a multiple of ${unit}`;
  throw new RangeError(`${name} is ${value}, not ${what} from ${least} to ${most}`);
}
