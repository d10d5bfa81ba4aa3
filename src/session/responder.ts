// The target's side of a session (D3): which of its data packets are here, and what its initiator is told of that.
import { ACKNOWLEDGE_WORDS_MAX, PACKET_ACKNOWLEDGE } from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import type { Seal, SessionSeals } from "./key-schedule.js";
import type { Packet } from "./packet.js";
import { REPLAY_WINDOW_WORDS, ReplayWindow } from "./replay-window.js";

/** Data packets behind the first that is missing that may be under way: bits of an acknowledgment. */
export const SESSION_WINDOW = 32 * ACKNOWLEDGE_WORDS_MAX;
/** Data packets that are acknowledged together, as long as they come in order. */
const ACKNOWLEDGE_EVERY = 4;
/** Microseconds that an acknowledgment waits for more to acknowledge. */
const ACKNOWLEDGE_WAIT = 200;

/** What came with a connect packet, and what the answer to it was. */
export interface Opening {
  readonly from: Address;
  /** The initiator's reference: `session` of what goes back. */
  readonly initiator: number;
  readonly node: number;
  readonly epoch: number;
  readonly nonce: readonly number[];
  /** What the answer brought. */
  readonly answerNonce: readonly number[];
  /** Whether data may come before its initiator knows the session id: it is for this life of this node (D5b). */
  readonly isZeroRtt: boolean;
  /** With a key. */
  readonly seals: SessionSeals | undefined;
  /** With a key: of data that comes before its initiator knows the session id. */
  readonly zeroRtt: Seal | undefined;
}

export class Responder {
  /** The session id. */
  readonly id: number;
  readonly opening: Opening;
  /** When something of it came last, in microseconds. */
  heard: number;
  /** Whether anything came of it but its connect packet: with a key, an old connect packet brings no more. */
  isProven = false;
  /** With a key: which of its packets came already. */
  readonly replayWindow = new ReplayWindow(REPLAY_WINDOW_WORDS);
  /** Every data packet with a number below it is here. */
  #all = 1;
  /** Bit i: packet #all + 1 + i is here, too. */
  readonly #mask = new Int32Array(ACKNOWLEDGE_WORDS_MAX);
  /** Packets behind #all that are here. */
  #ahead = 0;
  /** Largest number that has come. */
  #highest = 0;
  #limit = 1 + SESSION_WINDOW;
  #repeated = 0;
  #lastSent = 0;
  #lastTime = 0;
  /** Data packets that came since the last acknowledgment. */
  #since = 0;
  /** Packets that it has sent. */
  #sent = 0;

  constructor(id: number, opening: Opening, now: number) {
    this.id = id;
    this.opening = opening;
    this.heard = now;
  }

  /** Whether nothing of a packet is to be looked at: it was here, or lies beyond what is allowed. */
  isKnown(number: number): boolean {
    const ahead = seqDelta(number, this.#all);
    if (ahead < 0) return true;
    if (ahead === 0) return false;
    return (((this.#mask[(ahead - 1) >>> 5] as number) >>> ((ahead - 1) & 31)) & 1) === 1;
  }

  /** Whether a packet lies beyond what was allowed. */
  isBeyond(number: number): boolean {
    return seqDelta(number, this.#limit) >= 0;
  }

  /**
   * Takes note of a data packet, all segments of which were taken.
   * @returns whether it is to be acknowledged at once
   */
  note(number: number, sent: number, now: number, isPrompt: boolean): boolean {
    const ahead = seqDelta(number, this.#all);
    const before = this.#ahead;
    if (ahead === 0) this.#moveOn();
    else {
      const word = (ahead - 1) >>> 5;
      this.#mask[word] = (this.#mask[word] as number) | (1 << ((ahead - 1) & 31));
      this.#ahead++;
    }
    this.#cameAt(sent, now);
    // A gap is told of once it is there, and once it is filled: not with each packet behind it.
    const isNewGap = seqDelta(number, this.#highest) > 1;
    if (seqDelta(number, this.#highest) > 0) this.#highest = number;
    return isPrompt || isNewGap || ++this.#since >= ACKNOWLEDGE_EVERY || (before > 0 && this.#ahead === 0);
  }

  /** A data packet came that was here before. */
  noteRepeated(sent: number, now: number): void {
    this.#repeated++;
    this.#cameAt(sent, now);
  }

  #cameAt(sent: number, now: number): void {
    this.heard = now;
    this.#lastSent = sent;
    this.#lastTime = now;
  }

  /** The first that was missing is here, and so are those that follow it. */
  #moveOn(): void {
    const mask = this.#mask;
    this.#all = (this.#all + 1) >>> 0;
    if (this.#ahead === 0) return;
    let run = 0;
    while (mask[run >>> 5] === -1) run += 32;
    run += 31 - Math.clz32(~(mask[run >>> 5] ?? 0) & -~(mask[run >>> 5] ?? 0));
    this.#all = (this.#all + run) >>> 0;
    this.#ahead -= run;
    // Bit run is the first that is not there: bit 0 from now on is the one behind it.
    const [words, bits] = [(run + 1) >>> 5, (run + 1) & 31];
    for (let word = 0; word < mask.length; word++) {
      const [low, high] = [mask[word + words] ?? 0, mask[word + words + 1] ?? 0];
      mask[word] = bits === 0 ? low : (low >>> bits) | (high << (32 - bits));
    }
  }

  /** When it has to be acknowledged at the latest, in microseconds; Infinity: nothing is to be. */
  get due(): number {
    return this.#since > 0 ? this.#lastTime + ACKNOWLEDGE_WAIT : Number.POSITIVE_INFINITY;
  }

  /** Writes an acknowledgment of all that is here. */
  acknowledge(packet: Packet, job: number, now: number): Packet {
    this.#since = 0;
    this.#limit = (this.#all + SESSION_WINDOW) >>> 0;
    let words = this.#mask.length;
    while (words > 0 && this.#mask[words - 1] === 0) words--;
    packet
      .begin(PACKET_ACKNOWLEDGE, job)
      .word(this.#all)
      .word(this.#lastSent)
      .word(now - this.#lastTime);
    packet.word(this.#limit).word(this.#repeated).word(words);
    for (let word = 0; word < words; word++) packet.word(this.#mask[word] as number);
    return packet.address(this.opening.initiator, this.nextSent(), 0);
  }

  /** Number of the next packet that it sends. */
  nextSent(): number {
    return ++this.#sent;
  }
}
