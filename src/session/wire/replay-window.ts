// A replay window (RFC 6479): each number is accepted once, in any order. Numbers far below the highest count as replayed.
import { seqDelta } from "../../../assembly/seq.js";

/** Words for the packets of a session: room for twice the packets that may be in flight. */
export const REPLAY_WINDOW_WORDS = 64;

export class ReplayWindow {
  #highest: number;
  /** Bit number & 31 of word (number >>> 5) & mask. */
  readonly #words: Int32Array;

  /**
   * @param words a power of two; the window covers at least the latest 32 × (words - 1) numbers
   * @param highest the number before the first expected one
   */
  constructor(words: number, highest = 0) {
    this.#words = new Int32Array(words);
    this.#highest = highest >>> 0;
  }

  /** The highest number that was added. */
  get highest(): number {
    return this.#highest;
  }

  /** Whether a number was added, or lies below the window, so that it may have been. */
  has(number: number): boolean {
    const words = this.#words;
    const ahead = seqDelta(number, this.#highest);
    if (ahead > 0) return false;
    if (-ahead >= 32 * (words.length - 1)) return true;
    return (((words[(number >>> 5) & (words.length - 1)] as number) >>> (number & 31)) & 1) === 1;
  }

  /** Marks a number as received. has() must have returned false for it. */
  add(number: number): void {
    const words = this.#words;
    const mask = words.length - 1;
    if (seqDelta(number, this.#highest) > 0) {
      // The words that the window moves into still hold bits of the previous lap.
      const from = this.#highest >>> 5;
      const entered = Math.min(((number >>> 5) - from) & 0x7ffffff, words.length);
      for (let i = 1; i <= entered; i++) words[(from + i) & mask] = 0;
      this.#highest = number;
    }
    const word = (number >>> 5) & mask;
    words[word] = (words[word] as number) | (1 << (number & 31));
  }
}
