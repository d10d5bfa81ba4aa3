// Whether to spin before a sleep: learned from what the last spins of the same waits came to. A spin is won where what it
// waited for came meanwhile, and lost where it slept after all, or where another thread needed the core.
import type { Clock } from "../support/clock.js";

/** Milliseconds without a spin after the first that was lost: four times the default length of a spin. */
const BACK_OFF_MS = 0.2;
/** Each further loss doubles that, up to 25.6 ms. */
const LOST_MAX = 8;
/** A spin that another thread interrupted counts twice: it took the core from that thread, and waited for it too. */
const PREEMPTED_WEIGHT = 2;
/** Wins that make up for a later loss: a lost spin takes 50 µs, and a won one spares a sleep of 12 µs at the least. */
const WINS_A_LOSS = 4;
/**
 * Losses that wins make up for in advance. Without, one preemption of a peer ended the spins of both sides for milliseconds,
 * and they slept at each hop (8 B there and back in a loop: 1.4 µs instead of 2.2, far cores).
 */
const SAVED_LOSSES = 8;

export class Spins {
  /** Wins that no loss has used up. */
  #wins = 0;
  /** Losses in a row for which there were no wins; 0: spinning pays. */
  #lost = 0;
  /** When the next spin may be tried. */
  #again = 0;

  /** Whether to spin. Reads the clock only after a loss. */
  pays(clock: Clock): boolean {
    return this.#lost === 0 || clock.now() >= this.#again;
  }

  /** What was awaited came during a spin. */
  won(): void {
    if (this.#lost > 0) this.#lost--;
    else if (this.#wins < SAVED_LOSSES * WINS_A_LOSS) this.#wins++;
  }

  /** A spin ended without it. @param preempted the thread lost its core meanwhile */
  lost(now: number, preempted: boolean): void {
    const losses = preempted ? PREEMPTED_WEIGHT : 1;
    this.#wins -= losses * WINS_A_LOSS;
    if (this.#wins >= 0) return;
    this.#wins = 0;
    this.#lost = Math.min(LOST_MAX, this.#lost + losses);
    this.#again = now + BACK_OFF_MS * 2 ** (this.#lost - 1);
  }
}
