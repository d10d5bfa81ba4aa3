// The state that the initiators and the responders of a node share: what identifies the node, its counters, and the
// references that it assigns.
import {
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_WORDS_MAX,
  PACKET_BYTES_MAX,
  PACKET_RIGHT,
  PACKET_SIZE,
  SEGMENT_SIZE,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { Incarnations } from "./incarnations.js";
import { DelayController, type MakeController } from "./pace/congestion.js";
import { Routes } from "./routes.js";
import type { Counts, SessionShared } from "./session.js";
import type { SessionsOptions } from "./sessions-options.js";
import { Time } from "./time.js";
import type { KeySchedule, Seal } from "./wire/key-schedule.js";
import { LinkQueue } from "./wire/link-queue.js";
import type { ReceivedPacket } from "./wire/received-packet.js";
import type { ReplayWindow } from "./wire/replay-window.js";

/** The smallest `packetBytes` that a link may have: an acknowledgment with a full mask and a tag. */
const LINK_BYTES_MIN = PACKET_SIZE + ACKNOWLEDGE_MASK_OFFSET + 4 * ACKNOWLEDGE_WORDS_MAX + TAG_BYTES;
/**
 * Bounds of `sessionPackets`. A session that has sent this many packets ends once all are acknowledged, and at once when it
 * has sent twice as many. Transmission numbers have 32 bits, so none is used twice under one key.
 */
const SESSION_PACKETS_MIN = 64;
export const SESSION_PACKETS_MAX = 2 ** 30;

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
  /**
   * Connect packets of a node that is elsewhere. With a key: handshakes of another process than the node is, by
   * Routes.admits(), and refusals that come from elsewhere.
   */
  wrongAddress: number;
  /** The node or endpoint does not exist, or an endpoint is not on the node that the packet says. */
  foreign: number;
  /** Packets of an earlier incarnation of a node. */
  stale: number;
  /** Answers to a connect packet that was not sent, is not the latest, or has been answered. */
  unsolicited: number;
}

const defaultController: MakeController = (rtt, lastSent) => new DelayController(rtt, lastSent);

/** The options of both sides. `onLost` must make them forget the node before it passes the loss on. */
type NodeOptions = Pick<
  SessionsOptions,
  | "link"
  | "now"
  | "random"
  | "node"
  | "epoch"
  | "job"
  | "addressOf"
  | "keySchedule"
  | "sessionPackets"
  | "congestion"
  | "onLost"
>;

export class NodeState implements SessionShared {
  /** The number of this node, and the job's fingerprint. */
  readonly node: number;
  readonly job: number;
  /** Returns any u32. */
  readonly random: () => number;
  /** Undefined: packets travel unsealed. */
  readonly keySchedule: KeySchedule | undefined;
  /** Whether the link is faithful. */
  readonly isFaithful: boolean;
  readonly incarnations: Incarnations;
  readonly routes: Routes;
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
  readonly out: LinkQueue;
  readonly makeController: MakeController;
  reorderingDelay = 0;
  /** Bytes of the largest packet that the node sends, without the tag. */
  readonly packetBytes: number;
  readonly sessionPackets: number;
  readonly time: Time;
  #generation: number;
  /** The instance of this start of the node. */
  readonly #instance: readonly number[];
  /** Connect packets that this node has sent. */
  #serial = 0;

  constructor(options: NodeOptions) {
    const { link, random, now, sessionPackets = SESSION_PACKETS_MAX, congestion = defaultController } = options;
    checkMultiple("packetBytes of a link", link.packetBytes, 4, LINK_BYTES_MIN, PACKET_BYTES_MAX);
    checkMultiple("sessionPackets", sessionPackets, 1, SESSION_PACKETS_MIN, SESSION_PACKETS_MAX);
    this.node = options.node;
    this.job = options.job;
    this.random = random;
    this.keySchedule = options.keySchedule;
    this.isFaithful = link.isFaithful;
    this.routes = new Routes(options.addressOf, options.keySchedule !== undefined);
    this.incarnations = new Incarnations(options.epoch, (node, why, refused) => {
      this.routes.forget(node);
      options.onLost(node, why, refused);
    });
    this.sessionPackets = sessionPackets;
    this.makeController = congestion;
    this.time = new Time(now);
    this.packetBytes = link.packetBytes - TAG_BYTES;
    this.out = new LinkQueue(link);
    this.#generation = random();
    this.#instance = [random(), random()];
  }

  /** A nonce for a handshake: two new random words, of which the first is not 0, and the instance. */
  nextNonce(): number[] {
    return [(this.random() | 1) >>> 0, this.random(), ...this.#instance];
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
    const { dropped } = this;
    if (this.keySchedule === undefined) return true;
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
}

function checkMultiple(name: string, value: number, unit: number, least: number, most: number): void {
  if (Number.isInteger(value / unit) && value >= least && value <= most) return;
  const what = unit === 1 ? "an integer" : `a multiple of ${unit}`;
  throw new RangeError(`${name} is ${value}, not ${what} from ${least} to ${most}`);
}
