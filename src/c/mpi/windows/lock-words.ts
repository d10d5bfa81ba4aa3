// Locks of windows: words in a region of the target, which origins change by rmws, so that the target need not do anything.
//
// Word 0 has the rank that holds the exclusive lock, plus 1. Word 1 + r is 1 while rank r holds a shared one, or wants it. An
// origin that wants a shared lock sets its word, then looks at word 0; the other way round for an exclusive lock. So of two
// that want locks which exclude each other, at least one sees the other. The lock of a rank that has ended counts no more.
import { EAGAIN, type MemRegion, type Result, type RmwOperation, SHUTDOWN, SUCCESS } from "../../../index.js";
import { LOCK_EXCLUSIVE } from "../constants.js";
import type { MpiState } from "../state.js";
import { ended } from "./transfers.js";
import type { RankMemory, Window } from "./window.js";

const EXCLUSIVE = 0;

export class LockWords {
  readonly #state: MpiState;
  /** Gets the old values of words. */
  #old: MemRegion | undefined;

  constructor(state: MpiState) {
    this.#state = state;
  }

  /** Waits for a lock of a rank's memory. @throws MpiFailure MPIX_ERR_PROC_FAILED that rank has ended */
  acquire(window: Window, rank: number, kind: number): void {
    if (kind === LOCK_EXCLUSIVE) this.#acquireExclusive(window, rank);
    else this.#acquireShared(window, rank);
  }

  release(window: Window, rank: number, kind: number): void {
    const word = kind === LOCK_EXCLUSIVE ? EXCLUSIVE : 4 * (1 + window.rank);
    this.#change(window, rank, word, "fetch-set", 0);
  }

  #acquireShared(window: Window, rank: number): void {
    const own = 4 * (1 + window.rank);
    for (;;) {
      this.#change(window, rank, own, "fetch-set", 1);
      if (!this.#isHeld(window, rank, EXCLUSIVE)) return;
      this.#change(window, rank, own, "fetch-set", 0);
      while (this.#isHeld(window, rank, EXCLUSIVE)) this.#state.engine.rest();
    }
  }

  #acquireExclusive(window: Window, rank: number): void {
    const own = window.rank + 1;
    for (let test = 0; ; ) {
      const holder = this.#change(window, rank, EXCLUSIVE, "fetch-compare-set", own, test);
      if (holder === test) break;
      const hasEnded = holder !== 0 && this.#state.engine.hasEnded(window, holder - 1);
      test = hasEnded ? holder : 0;
      if (!hasEnded) this.#state.engine.rest();
    }
    for (let reader = 0; reader < window.size; reader++) {
      if (reader === window.rank) continue;
      while (this.#isHeld(window, rank, 4 * (1 + reader), reader)) this.#state.engine.rest();
    }
  }

  /** @param holder whose word it is; undefined: the word says so itself */
  #isHeld(window: Window, rank: number, word: number, holder?: number): boolean {
    const value = this.#change(window, rank, word, "fetch-add", 0);
    return value !== 0 && !this.#state.engine.hasEnded(window, holder ?? value - 1);
  }

  /** @returns the old value of a rank's word */
  #change(window: Window, rank: number, word: number, operation: RmwOperation, value: number, test?: number): number {
    const { context, engine } = this.#state;
    this.#old ??= engine.scratch(8);
    const old = this.#old;
    const { locks, isLocal } = window.parts[rank] as RankMemory;
    let result: Result | undefined;
    const onDone = isLocal
      ? undefined
      : (_: unknown, given: Result): void => {
          result = given;
        };
    const to = window.endpoints[rank] as number;
    const common = { to, remote: locks, remoteOffset: word, operation, value, result: old, onDone };
    const start = (): Result => context.rmw(test === undefined ? common : { ...common, test });
    let begun: Result = SUCCESS;
    try {
      begun = start();
      if (begun === EAGAIN) {
        engine.waitUntil(() => {
          begun = start();
          return begun !== EAGAIN;
        });
      }
    } catch (error) {
      if ((error as { code?: string }).code === "PAMIR_STALE") throw ended(rank);
      throw error;
    }
    if (begun === SHUTDOWN) throw ended(rank);
    if (!isLocal) {
      engine.waitUntil(() => result !== undefined || engine.hasEnded(window, rank));
      if (result !== SUCCESS) throw ended(rank);
    }
    return this.#state.word(old.bytes.byteOffset);
  }
}
