// The state that the initiators and the responders of a node share: options, counters, the ids that the node assigns, and
// the latest incarnation of every other node.
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
import type { Arena } from "./arena.js";
import { DelayController, type MakeController } from "./congestion.js";
import { type KeySchedule, type Seal, sealed } from "./key-schedule.js";
import type { ReceivedPacket } from "./received-packet.js";
import type { ReplayWindow } from "./replay-window.js";
import type { Counts, Outgoing, Shared } from "./session.js";
import { Time } from "./time.js";

/** The smallest `packetBytes` that a link may have: an acknowledgment with a full mask and a tag. */
const LINK_BYTES_MIN = PACKET_SIZE + ACKNOWLEDGE_MASK_OFFSET + 4 * ACKNOWLEDGE_WORDS_MAX + TAG_BYTES;
/**
 * Bounds of `sessionPackets`. A session that has sent this many packets ends once all are acknowledged, and at once when it
 * has sent twice as many. Transmission numbers have 32 bits, so none is used twice under one key.
 */
const SESSION_PACKETS_MIN = 64;
const SESSION_PACKETS_MAX = 2 ** 30;

/**
 * Incarnations that one start of a node can have for another node. The count has 16 bits. Each takes at least 10 s unless
 * the other node refuses it, so the count lasts a week.
 */
const GIVEN_UP_MAX = 0xffff;

export interface SessionsOptions {
  readonly kernel: PacketKernel;
  readonly memory: Memory;
  readonly arena: Arena;
  readonly link: Link;
  /** Microseconds. The clock should be monotonic, but may jump. */
  readonly now: () => number;
  /** Returns any u32. With a key schedule, the source must be cryptographic. */
  readonly random: () => number;
  /** The number of this node. Of two live nodes with the same number, one is refused. */
  readonly node: number;
  /** How often this node has been started. */
  readonly epoch: number;
  /** Nodes of the job: their numbers are below it. */
  readonly nodes: number;
  /** Endpoints of the job: their ordinals are below it. */
  readonly endpoints: number;
  /** The node of an endpoint. */
  readonly nodeOf: (endpoint: number) => number;
  /** The job's fingerprint. */
  readonly job: number;
  /**
   * The address of a node, for packets in both directions. It must return an empty string for a number that no node has, and
   * must not throw.
   */
  readonly addressOf: (node: number) => Address;
  /** Derived from the job key. If it is undefined, packets travel unsealed, and sealed ones are dropped. */
  readonly keySchedule?: KeySchedule | undefined;
  /** Packets that a session sends before another session with other keys replaces it: 64 to 2^30. */
  readonly sessionPackets?: number | undefined;
  /** Makes the congestion controller of each session; the default is DelayController. */
  readonly congestion?: MakeController | undefined;
  /** DC initiator contexts (default 8). */
  readonly initiators?: number | undefined;
  /** Responders (default 64). */
  readonly responders?: number | undefined;
  /** Bytes of content that may be queued for one node (default 1 MiB). */
  readonly txQueueBytes?: number | undefined;
  /** Gets a pointer to each segment, in order. The pointer is valid until it returns. */
  readonly deliver: (segment: number) => void;
  /**
   * Another node was given up, or has restarted. Everything that was queued for it is lost.
   * @param refused why the node refuses this one: REFUSED_NODE, REFUSED_NAME; 0: it did not answer
   */
  readonly onLost: (node: number, isRestarted: boolean, refused: number) => void;
}

/** Dropped packets, counted by reason. */
export interface Dropped {
  /** Malformed packets, by the rule that they break: PACKET_WRONG_…. */
  readonly malformed: number[];
  /** The session does not exist, or belongs to another node. */
  unknownSession: number;
  /** Data packets that came before. */
  duplicate: number;
  /** Data packets beyond the limit, and those for which there was no room. */
  noRoom: number;
  /** Acknowledgments of packets that were never sent; with a key, also refusals of unknown sessions. */
  protocolViolation: number;
  /** With a key: unsealed packets, and packets that do not open. Without a key: sealed packets. */
  unauthenticated: number;
  /** Sealed packets that came before, or that lie below the replay window. */
  replayed: number;
  /** Connect packets of a node that came from another address than that node has. */
  wrongAddress: number;
  /** The node or endpoint does not exist, or an endpoint is not on the node that the packet says. */
  foreign: number;
  /** Packets of an earlier incarnation of a node. */
  stale: number;
  /** Answers to a connect packet that was not sent, is not the latest, or has been answered. */
  unsolicited: number;
}

const defaultController: MakeController = (rtt, lastSent) => new DelayController(rtt, lastSent);

export class NodeState implements Shared {
  readonly options: SessionsOptions;
  /** `taken`: received packets that were not dropped; `refused`: connect packets that found no free responder. */
  readonly counts: Counts & { acknowledgments: number; connects: number; refused: number; taken: number } = {
    data: 0,
    retransmitted: 0,
    acknowledgments: 0,
    connects: 0,
    refused: 0,
    taken: 0,
  };
  readonly dropped: Dropped = {
    malformed: [],
    unknownSession: 0,
    duplicate: 0,
    noRoom: 0,
    protocolViolation: 0,
    unauthenticated: 0,
    replayed: 0,
    wrongAddress: 0,
    foreign: 0,
    stale: 0,
    unsolicited: 0,
  };
  readonly out: Outgoing;
  readonly makeController: MakeController;
  reorderingDelay = 0;
  /** Bytes of the largest packet that the node sends, without the tag. */
  readonly packetBytes: number;
  readonly sessionPackets: number;
  readonly time: Time;
  readonly #onLost: SessionsOptions["onLost"];
  /** The latest epoch of each node; 0: none is known. */
  #epochs = new Uint32Array(64);
  /** How often this node gave up each other node: each time, it begins another incarnation for that node. */
  readonly #givenUp = new Map<number, number>();
  #generation: number;
  /** Connect packets that this node has sent. */
  #serial = 0;

  /** @param onLost as in the options; before that, it must tell both sides to forget the node */
  constructor(options: SessionsOptions, onLost: SessionsOptions["onLost"]) {
    const { link, random, now, sessionPackets = SESSION_PACKETS_MAX, congestion = defaultController } = options;
    checkMultiple("packetBytes of a link", link.packetBytes, 4, LINK_BYTES_MIN, PACKET_BYTES_MAX);
    checkMultiple("sessionPackets", sessionPackets, 1, SESSION_PACKETS_MIN, SESSION_PACKETS_MAX);
    this.options = options;
    this.sessionPackets = sessionPackets;
    this.makeController = congestion;
    this.time = new Time(now);
    this.packetBytes = link.packetBytes - TAG_BYTES;
    const buffer = new Uint8Array(link.packetBytes);
    this.out = {
      send: (to, packet, seal) => link.send(to, seal === undefined ? packet.bytes : sealed(packet, seal, buffer)),
    };
    this.#onLost = onLost;
    this.#generation = random();
  }

  /** A reference that was not used for the last 2^20 assignments. Its low 12 bits hold the index, plus 1. */
  nextReference(index: number): number {
    this.#generation = (this.#generation + 1) & 0xfffff;
    return ((this.#generation << 12) | (index + 1)) >>> 0;
  }

  /** The serial number of the next connect packet: one start of the node uses each of them once. */
  nextSerial(): number {
    this.#serial = (this.#serial + 1) >>> 0;
    return this.#serial;
  }

  /** The most bytes of a segment's content. */
  get contentMax(): number {
    return this.packetBytes - PACKET_SIZE - SEGMENT_SIZE;
  }

  /**
   * Opens a received packet; without a key there is nothing to open.
   * @param replayWindow of the packet's session
   * @returns false: the packet is dropped, and counted in `dropped`
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
      dropped.unauthenticated++;
      return false;
    }
    replayWindow?.add(sent);
    if (rule !== PACKET_RIGHT) dropped.malformed[rule] = (dropped.malformed[rule] ?? 0) + 1;
    return rule === PACKET_RIGHT;
  }

  /** The latest epoch of a node that is certain; 0: none is known. */
  epochOf(node: number): number {
    return this.#epochs[node] ?? 0;
  }

  /**
   * The epoch that this node states to another one. When this node gives the other one up, it begins another incarnation for
   * it: the data in flight is lost in both directions, and both nodes report the loss.
   */
  epochFor(node: number): number {
    return ((this.options.epoch << 16) + (this.#givenUp.get(node) ?? 0)) >>> 0;
  }

  /** Whether an epoch of a node is invalid (0), or a later one is known. */
  isStale(node: number, epoch: number): boolean {
    const known = this.epochOf(node);
    return epoch === 0 || (known !== 0 && seqDelta(epoch, known) < 0);
  }

  /**
   * Notes an epoch that is not stale. If it is a new one, everything of the earlier incarnation is lost. The epoch must be
   * certain: a replayed packet, to a new incarnation of this node, proves none.
   */
  noteEpoch(node: number, epoch: number): void {
    const known = this.epochOf(node);
    if (known === epoch) return;
    if (node >= this.#epochs.length) this.#epochs = grown(this.#epochs, node);
    this.#epochs[node] = epoch;
    if (known !== 0) this.#onLost(node, true, 0);
  }

  /** Gives a node up: it does not answer (D10), or refuses this node. @param refused why; 0: it does not answer */
  giveUp(node: number, refused: number): void {
    this.#givenUp.set(node, Math.min((this.#givenUp.get(node) ?? 0) + 1, GIVEN_UP_MAX));
    this.#onLost(node, false, refused);
  }

  /** Sizes of what grows with the number of nodes: words of epochs, nodes that were given up. */
  get kept(): { epochs: number; givenUp: number } {
    return { epochs: this.#epochs.length, givenUp: this.#givenUp.size };
  }
}

/** A copy of an array that has an element at an index: its length is a power of two, and not less than before. */
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
