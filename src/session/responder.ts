// The target's side of a session (D3): which data packets have come, and when and how they are acknowledged.
import { ACKNOWLEDGE_WORDS_MAX, PACKET_ACKNOWLEDGE } from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import type { Seal, SessionSeals } from "./wire/key-schedule.js";
import type { Packet } from "./wire/packet.js";
import { REPLAY_WINDOW_WORDS, ReplayWindow } from "./wire/replay-window.js";

/** Packet numbers after the first missing one that may be in flight: as many as an acknowledgment has bits. */
export const SESSION_WINDOW = 32 * ACKNOWLEDGE_WORDS_MAX;
/** Microseconds by which an acknowledgment is delayed, so that it acknowledges more packets (RFC 9002: max_ack_delay). */
export const ACK_DELAY_MAX = 200;
/** Data packets after which an acknowledgment is sent at once. */
const ACKNOWLEDGE_EVERY = 4;

/** What both sides stated when the session opened. */
export interface SessionParameters {
  readonly from: Address;
  /** The initiator's reference: the `session` field of packets to it. */
  readonly initiator: number;
  readonly node: number;
  readonly epoch: number;
  /** Of the first connect packet that came. */
  readonly serial: number;
  readonly connectNonce: readonly number[];
  readonly acceptNonce: readonly number[];
  /** Whether the session takes 0-RTT data: the connect packet named this incarnation of the node (D5b). */
  readonly isZeroRtt: boolean;
  /** With a key. */
  readonly seals: SessionSeals | undefined;
  /** With a key: the seal of 0-RTT data. */
  readonly zeroRttSeal: Seal | undefined;
}

export class Responder {
  /** The session id. */
  readonly id: number;
  readonly parameters: SessionParameters;
  /** When its first connect packet came, and the last packet of the session, in microseconds. */
  readonly begin: number;
  lastReceived: number;
  /** Whether another packet than the connect packet has come. With a key, a replayed connect packet brings no other. */
  isProven = false;
  /** With a key: the transmission numbers that have come. */
  readonly replayWindow = new ReplayWindow(REPLAY_WINDOW_WORDS);
  /** The first packet number that is missing. */
  #firstMissing = 1;
  /** Bit i: packet #firstMissing + 1 + i has come. */
  readonly #mask = new Int32Array(ACKNOWLEDGE_WORDS_MAX);
  /** Bits that are set in it. */
  #ahead = 0;
  /** The highest packet number that has come. */
  #highest = 0;
  /** Packet numbers must be below it: the initiator was told so. */
  #limit = 1 + SESSION_WINDOW;
  #duplicates = 0;
  /** Transmission number and arrival time of the last data packet. */
  #lastSent = 0;
  #lastTime = 0;
  /** Data packets since the last acknowledgment. */
  #unacknowledged = 0;
  /** Packets that this side has sent. */
  #sent = 0;

  constructor(id: number, parameters: SessionParameters, now: number) {
    this.id = id;
    this.parameters = parameters;
    this.begin = now;
    this.lastReceived = now;
  }

  /** Whether a data packet has come before. */
  has(number: number): boolean {
    const ahead = seqDelta(number, this.#firstMissing);
    if (ahead < 0) return true;
    if (ahead === 0) return false;
    return (((this.#mask[(ahead - 1) >>> 5] as number) >>> ((ahead - 1) & 31)) & 1) === 1;
  }

  /** Whether a packet number is beyond the limit. */
  isBeyond(number: number): boolean {
    return seqDelta(number, this.#limit) >= 0;
  }

  /**
   * Marks a new data packet as received, once the streams have accepted all of its segments.
   * @param sent its transmission number @param isPrompt whether its sender asks for an acknowledgment at once
   * @returns whether an acknowledgment is due at once
   */
  add(number: number, sent: number, now: number, isPrompt: boolean): boolean {
    const ahead = seqDelta(number, this.#firstMissing);
    const before = this.#ahead;
    if (ahead === 0) this.#moveOn();
    else {
      const word = (ahead - 1) >>> 5;
      this.#mask[word] = (this.#mask[word] as number) | (1 << ((ahead - 1) & 31));
      this.#ahead++;
    }
    this.#noteArrival(sent, now);
    // A gap is reported when it opens and when it is closed, but not with each packet in between.
    const isNewGap = seqDelta(number, this.#highest) > 1;
    if (seqDelta(number, this.#highest) > 0) this.#highest = number;
    const isGapClosed = before > 0 && this.#ahead === 0;
    return isPrompt || isNewGap || ++this.#unacknowledged >= ACKNOWLEDGE_EVERY || isGapClosed;
  }

  /** Counts a data packet that has come before. */
  addDuplicate(sent: number, now: number): void {
    this.#duplicates++;
    this.#noteArrival(sent, now);
  }

  #noteArrival(sent: number, now: number): void {
    this.lastReceived = now;
    this.#lastSent = sent;
    this.#lastTime = now;
  }

  /** The first missing packet has come: moves past it and the packets that follow without a gap. */
  #moveOn(): void {
    const mask = this.#mask;
    this.#firstMissing = (this.#firstMissing + 1) >>> 0;
    if (this.#ahead === 0) return;
    let run = 0;
    while (mask[run >>> 5] === -1) run += 32;
    run += 31 - Math.clz32(~(mask[run >>> 5] ?? 0) & -~(mask[run >>> 5] ?? 0));
    this.#firstMissing = (this.#firstMissing + run) >>> 0;
    this.#ahead -= run;
    // Bit `run` belongs to the new first missing packet, which has no bit. The bit after it becomes bit 0.
    const [words, bits] = [(run + 1) >>> 5, (run + 1) & 31];
    for (let word = 0; word < mask.length; word++) {
      const [low, high] = [mask[word + words] ?? 0, mask[word + words + 1] ?? 0];
      mask[word] = bits === 0 ? low : (low >>> bits) | (high << (32 - bits));
    }
  }

  /** When an acknowledgment is due, in microseconds; Infinity: there is nothing to acknowledge. */
  get due(): number {
    return this.#unacknowledged > 0 ? this.#lastTime + ACK_DELAY_MAX : Number.POSITIVE_INFINITY;
  }

  /** Writes an acknowledgment of all packets that have come. */
  acknowledge(packet: Packet, job: number, now: number): Packet {
    this.#unacknowledged = 0;
    this.#limit = (this.#firstMissing + SESSION_WINDOW) >>> 0;
    let words = this.#mask.length;
    while (words > 0 && this.#mask[words - 1] === 0) words--;
    packet
      .begin(PACKET_ACKNOWLEDGE, job)
      .word(this.#firstMissing)
      .word(this.#lastSent)
      .word(now - this.#lastTime);
    packet.word(this.#limit).word(this.#duplicates).word(words);
    for (let word = 0; word < words; word++) packet.word(this.#mask[word] as number);
    return packet.address(this.parameters.initiator, this.nextSent(), 0);
  }

  /** The transmission number of the next packet that this side sends. */
  nextSent(): number {
    return ++this.#sent;
  }
}
