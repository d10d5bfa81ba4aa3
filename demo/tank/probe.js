// @ts-check
// How long a hand-off takes: the first two tasks throw a ball of 8 bytes, four times a second, for a moment.
import { SUCCESS } from "pamir";
import { BALL, RETURN } from "./layout.js";

/** Of one measurement: the clock's step is divided by twice as many. */
const TURNS = 128;
/** ms after which no further turn begins. */
const LONGEST_MS = 2;

export class Probe {
  balls = 0;
  #caught = 0;

  /**
   * @param {import("pamir").Client} client
   * @param {import("pamir").Context} context
   * @param {import("./gauge.js").Gauge} gauge
   * @param {(condition: () => boolean) => boolean | Promise<boolean>} until
   */
  constructor(client, context, gauge, until) {
    this.client = client;
    this.context = context;
    this.gauge = gauge;
    this.until = until;
    this.ball = new Uint8Array(8);
    context.dispatch(BALL, (message) => {
      this.balls++;
      context.sendImmediate(message.origin, RETURN, null, this.ball);
    });
    context.dispatch(RETURN, () => {
      this.#caught++;
    });
  }

  /** @param {number} task the other one @param {() => boolean} isOff @returns {Promise<void>} */
  async measure(task, isOff) {
    const peer = this.client.endpoint(task);
    // The first one waits until the other task has done its step.
    let isThere = this.#throw(peer, isOff);
    if (!(typeof isThere === "boolean" ? isThere : await isThere)) return;
    const start = performance.now();
    let turns = 0;
    let took = 0;
    while (turns < TURNS && took < LONGEST_MS) {
      isThere = this.#throw(peer, isOff);
      if (!(typeof isThere === "boolean" ? isThere : await isThere)) return;
      turns++;
      if (turns % 8 === 0) took = performance.now() - start;
    }
    this.gauge.handedOff(performance.now() - start, turns);
  }

  /** @param {number} peer @param {() => boolean} isOff @returns {boolean | Promise<boolean>} */
  #throw(peer, isOff) {
    const wanted = this.#caught + 1;
    this.balls++;
    if (this.context.sendImmediate(peer, BALL, null, this.ball) !== SUCCESS) return false;
    const come = this.until(() => isOff() || this.#caught >= wanted);
    return typeof come === "boolean" ? come && !isOff() : come.then((goesOn) => goesOn && !isOff());
  }
}
