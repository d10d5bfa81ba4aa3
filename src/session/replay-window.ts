// Numbers that came: each is taken once, in whatever order they come (RFC 6479). Those far behind the highest count as replayWindow.
import { seqDelta } from "../../assembly/seq.js";

/** Words for the packets of a session: as many as may be under way, twice. */
export const REPLAY_WINDOW_WORDS = 64;

export class ReplayWindow {
  #highest: number;
  /** Bit number & 31 of word (number >>> 5) & mask. */
  readonly #words: Int32Array;

  /**
   * @param words a power of two; the latest 32 × (words - 1) numbers are told apart, at the least
   * @param highest the number before the first that is expected
   */
  constructor(words: number, highest = 0) {
    this.#words = new Int32Array(words);
    this.#highest = highest >>> 0;
  }

  /** Whether a number was noted, or may have been: it is too far behind. */
  has(number: number): boolean {
    const words = this.#words;
    const ahead = seqDelta(number, this.#highest);
    if (ahead > 0) return false;
    if (-ahead >= 32 * (words.length - 1)) return true;
    return (((words[(number >>> 5) & (words.length - 1)] as number) >>> (number & 31)) & 1) === 1;
  }

  add(number: number): void {
    const words = this.#words;
    const mask = words.length - 1;
    if (seqDelta(number, this.#highest) > 0) {
      // Words that are entered hold numbers of one turn before.
      const from = this.#highest >>> 5;
      const entered = Math.min(((number >>> 5) - from) & 0x7ffffff, words.length);
      for (let i = 1; i <= entered; i++) words[(from + i) & mask] = 0;
      this.#highest = number;
    }
    const word = (number >>> 5) & mask;
    words[word] = (words[word] as number) | (1 << (number & 31));
  }
}
