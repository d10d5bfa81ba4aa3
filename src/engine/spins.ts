// Whether to spin before a sleep: learned from what the last spins of the same waits came to. A spin is won where what it
// waited for came meanwhile, and lost where it slept after all, or where another thread needed the core.
import type { Clock } from "../support/clock.js";

/** Milliseconds without a spin after the first that was lost: four times the default length of a spin. */
const BACK_OFF_MS = 0.2;
/** Each further loss doubles that, up to 25.6 ms. */
const LOST_MAX = 8;
/** A spin that another thread interrupted counts twice: it took the core from that thread, and waited for it too. */
const PREEMPTED_WEIGHT = 2;

export class Spins {
  /** Losses that no win has made up for; 0: spinning pays. */
  #lost = 0;
  /** When the next spin may be tried. */
  #again = 0;

  /** Whether to spin. Reads the clock only after a loss. */
  pays(clock: Clock): boolean {
    return this.#lost === 0 || clock.now() >= this.#again;
  }

  /** What was awaited came during a spin: it makes up for one loss. */
  won(): void {
    if (this.#lost > 0) this.#lost--;
  }

  /** A spin ended without it. @param preempted the thread lost its core meanwhile */
  lost(now: number, preempted: boolean): void {
    this.#lost = Math.min(LOST_MAX, this.#lost + (preempted ? PREEMPTED_WEIGHT : 1));
    this.#again = now + BACK_OFF_MS * 2 ** (this.#lost - 1);
  }
}
