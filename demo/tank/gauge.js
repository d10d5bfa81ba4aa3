// @ts-check
// What a worker measures of itself, for the figures on the page.
import { tickOf } from "../times.js";

/**
 * @typedef {object} Figures since the last report
 * @property {number} steps
 * @property {number} messages that this worker has sent
 * @property {number} waited ms in which it has not computed
 * @property {number} milliseconds
 * @property {number} handOff ns, 0 if it has measured none
 * @property {number} grain ns by which a hand-off is known
 */

export const REPORT_MS = 250;

export class Gauge {
  tick = tickOf();
  steps = 0;
  computed = 0;
  handOff = 0;
  grain = 0;
  #sent = 0;
  #since = performance.now();

  /** @param {number} milliseconds @param {number} turns hops there and back in this time */
  handedOff(milliseconds, turns) {
    this.handOff = (milliseconds * 1e6) / (2 * turns);
    this.grain = (this.tick * 1e6) / (2 * turns);
  }

  /** Begins anew: what was before is not reported. */
  reset() {
    this.#since = performance.now();
    this.steps = 0;
    this.computed = 0;
  }

  get isDue() {
    return performance.now() - this.#since >= REPORT_MS;
  }

  /** @param {number} sent messages so far @returns {Figures} */
  report(sent) {
    const milliseconds = performance.now() - this.#since;
    const waited = Math.max(0, milliseconds - this.computed);
    const { steps, handOff, grain } = this;
    const figures = { steps, messages: sent - this.#sent, waited, milliseconds, handOff, grain };
    this.#sent = sent;
    this.handOff = 0;
    this.reset();
    return figures;
  }
}
