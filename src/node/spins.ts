// Learns whether to spin before a sleep, from the last spins of one context's waits. A spin is won if the awaited event
// came during it. It is lost if the thread slept after all, or if another thread needed the core.
import { JOB_SPINNING_OFFSET } from "../../assembly/layout.js";
import { popcount } from "../kernel/atomics.js";
import type { Kernel } from "../kernel/kernel.js";
import type { Clock } from "../support/clock.js";

/** Milliseconds without a spin after the first lost one: four times the default length of a spin. */
const BACK_OFF_MS = 0.2;
/** Losses in a row that still double BACK_OFF_MS: up to 25.6 ms. */
const LOST_MAX = 8;
/** A spin that another thread preempted counts twice: it kept the core from that thread, and waited for the core too. */
const PREEMPTED_WEIGHT = 2;
/** Wins that make up for a later loss: a lost spin costs 50 µs, a won one saves a sleep of at least 12 µs. */
const WINS_A_LOSS = 4;
/**
 * Losses that wins make up for in advance. Without them, one preemption of a peer ended both sides' spins for milliseconds,
 * and they slept at each hop. 8 B there and back in a loop, far cores: 2.2 µs; with them 1.4.
 */
const SAVED_LOSSES = 8;

/** Whether a core is free for a spin of the node's agent or engine thread: tasks come first. */
export function mayAgentSpin(kernel: Pick<Kernel, "loadWord">, job: number, tasks: number, cores: number): boolean {
  if (cores < 2) return false;
  let spinning = 0;
  for (let at = 0; at < tasks; at += 32) spinning += popcount(kernel.loadWord(job + JOB_SPINNING_OFFSET + (at >>> 3)));
  return spinning < cores;
}

export class Spins {
  /** Wins that no loss has used up. */
  #wins = 0;
  /** Losses in a row that no wins made up for; 0: spinning pays. */
  #lost = 0;
  /** Time of the next spin, in milliseconds. */
  #again = 0;

  /** Whether to spin. Reads the clock only after a loss. */
  pays(clock: Clock): boolean {
    return this.#lost === 0 || clock.now() >= this.#again;
  }

  /** Notes that the awaited event came during a spin. */
  won(): void {
    if (this.#lost > 0) this.#lost--;
    else if (this.#wins < SAVED_LOSSES * WINS_A_LOSS) this.#wins++;
  }

  /** Notes that a spin ended without the event. @param preempted the thread lost its core meanwhile */
  lost(now: number, preempted: boolean): void {
    const losses = preempted ? PREEMPTED_WEIGHT : 1;
    this.#wins -= losses * WINS_A_LOSS;
    if (this.#wins >= 0) return;
    this.#wins = 0;
    this.#lost = Math.min(LOST_MAX, this.#lost + losses);
    this.#again = now + BACK_OFF_MS * 2 ** (this.#lost - 1);
  }
}
