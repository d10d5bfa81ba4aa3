// The host of a node whose link is real: the clock and the timers of this thread, and cryptographic random numbers.

import { systemClock } from "../../support/clock.js";
import { nextTurn } from "../../support/host.js";
import { randomWords } from "../../support/randomness.js";
import { after, every } from "../../support/timers.js";
import type { LinkNodeHost } from "./link-node.js";

/**
 * Microseconds below which a timer is too coarse: the alarm then waits for turns of the event loop instead. Such turns keep a
 * processor busy. With 1000, the turns went on as long as a packet was under way, since a probe timeout is not shorter
 * (loss.ts).
 */
const TIMER_MIN = 500;

export class LinkHost implements LinkNodeHost {
  readonly random: () => number = randomWords();
  /** Called with each node that is lost. */
  readonly onLost: NonNullable<LinkNodeHost["onLost"]>;
  /** See LinkNodeHost. */
  hasProcessEnded: (task: number) => boolean = () => false;
  /** Called when a node has not answered, so many times in a row. */
  onUnanswered: (node: number, attempts: number) => void = () => {};
  /** Whether this host's timers keep a thread of Node running. */
  readonly #isHeld: boolean;
  /** When the alarm is due, in microseconds; Infinity: there is none. */
  #time = Number.POSITIVE_INFINITY;
  #call: () => void = () => {};
  #cancel: () => void = () => {};
  /** Whether the alarm waits for a turn of the event loop. */
  #isTurning = false;
  /** When this thread was last known to run, and the longest time for which it did not run, in milliseconds. */
  #ranAt = 0;
  #longestStop = 0;
  #endWatch: () => void = () => {};

  /** @param isHeld whether its timers keep a thread of Node running */
  constructor(onLost: LinkHost["onLost"] = () => {}, isHeld = true) {
    this.onLost = onLost;
    this.#isHeld = isHeld;
  }

  now(): number {
    return systemClock.now() * 1000;
  }

  /** Sets the alarm. It replaces the previous one, since a node asks anew only for an earlier time. */
  at(microseconds: number, call: () => void): void {
    this.#time = microseconds;
    this.#call = call;
    this.#wait();
  }

  /** Node's event loop delivers all datagrams that have arrived before the next turn. */
  soon(call: () => void): void {
    void nextTurn().then(call);
  }

  #wait(): void {
    this.#cancel();
    this.#cancel = () => {};
    const left = this.#time - this.now();
    if (left === Number.POSITIVE_INFINITY) return;
    if (left < TIMER_MIN) this.#turn();
    else this.#cancel = after(left / 1000, () => this.#turn(), this.#isHeld);
  }

  /**
   * Looks at the clock after a turn of the event loop. If this thread did not run for a while, timers run before the packets
   * that have arrived meanwhile: a deadline would pass although its packet has arrived.
   */
  #turn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    void nextTurn().then(() => {
      this.#isTurning = false;
      this.#check();
    });
  }

  #check(): void {
    if (this.now() < this.#time) {
      this.#wait();
      return;
    }
    this.#time = Number.POSITIVE_INFINITY;
    this.#call();
  }

  /** In Node: from now on, longestStop() says for how long this thread did not run. @param milliseconds between two looks */
  watchStops(milliseconds: number): void {
    this.#ranAt = systemClock.now();
    this.#endWatch = every(milliseconds, () => void this.longestStop());
  }

  /** The longest time for which this thread did not run since watchStops(), in milliseconds: stopped by a signal, or at work. */
  longestStop(): number {
    const now = systemClock.now();
    if (this.#ranAt > 0) {
      this.#longestStop = Math.max(this.#longestStop, now - this.#ranAt);
      this.#ranAt = now;
    }
    return this.#longestStop;
  }

  /** Cancels the alarm. A node that is closed sets no other. */
  close(): void {
    this.#endWatch();
    this.#time = Number.POSITIVE_INFINITY;
    this.#wait();
  }
}
