// @ts-check
// What a bridge and its page record of their messages, for the strip: the jobs of a page and of its host keep no common trace.
import { clock } from "./words.js";

/** Kinds of marks: asleep, a message has come, a step is computed, a message goes. */
export const ASLEEP = 0;
export const CAME = 1;
export const STEP = 2;
export const WENT = 3;
/** A mark: kind, time and duration in milliseconds, number of the message, and whether it is of the bridge. */
export const FIELDS = 5;
/** Marks that are kept until they are taken. */
const KEPT = 4096;

export class Marks {
  /** @type {number[]} */
  #values = [];

  /** @param {number} isBridge 1: a bridge; 0: its page */
  constructor(isBridge) {
    this.isBridge = isBridge;
  }

  /** @param {number} kind @param {number} message @param {number} [since] */
  add(kind, message, since) {
    const now = clock();
    const begin = since ?? now;
    if (this.#values.length < KEPT * FIELDS) this.#values.push(kind, begin, now - begin, message, this.isBridge);
  }

  /** The marks since the last call. */
  take() {
    const taken = Float64Array.from(this.#values);
    this.#values = [];
    return taken;
  }
}

/** The number of a message that carries a row of a step. @param {number} step @param {number} side 0: above, 1: below, 2: back */
export const messageOf = (step, side) => 3 * step + side;
