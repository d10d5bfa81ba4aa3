// The pending callback list of one injection FIFO: one place for each slot. The callback of a completion descriptor stands in
// the place of the descriptor's slot, until the slot's completion bit is taken.
import * as L from "../../../assembly/layout.js";
import type { CompletionQueue } from "../../core/completion.js";
import { type Callback, resultOf } from "../../core/result.js";
import type { ContextParts } from "../base.js";
import type { FifoWork } from "./fifo-work.js";

const SLOT_MASK = 2 ** L.COMPLETION_RESULT_SHIFT - 1;

export class PendingCallbacks {
  /** Callbacks in the list. */
  count = 0;
  readonly #callbacks: (Callback | undefined)[];
  readonly #cookies: unknown[];
  readonly #completions: CompletionQueue;
  readonly #work: FifoWork;

  constructor({ map, completions }: ContextParts, work: FifoWork) {
    // As many as there are slots: a power of two.
    this.#callbacks = Array.from({ length: map.slots }, () => undefined);
    this.#cookies = [...this.#callbacks];
    this.#completions = completions;
    this.#work = work;
  }

  /** Enters a callback. `place` is not yet reduced modulo the number of slots. */
  list(place: number, callback: Callback, cookie: unknown): void {
    const slot = place & (this.#callbacks.length - 1);
    this.#callbacks[slot] = callback;
    this.#cookies[slot] = cookie;
    this.count++;
    this.#work.add(1);
  }

  /** The callback of a slot is due. @param taken slot and result, of completionTake() */
  complete(taken: number): void {
    const slot = taken & SLOT_MASK;
    const callback = this.#callbacks[slot] as Callback;
    const cookie = this.#cookies[slot];
    this.#callbacks[slot] = undefined;
    this.#cookies[slot] = undefined;
    this.count--;
    this.#work.add(-1);
    this.#completions.push(callback, cookie, resultOf(taken >>> L.COMPLETION_RESULT_SHIFT));
  }
}
