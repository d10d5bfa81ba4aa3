// Events of a pool: what happens to its workers, for their listeners.
import { PamiError, type TaskExit } from "../../index.js";
import { shown } from "../check.js";

/** An event of a pool. */
export type PoolEvent =
  | { readonly type: "start" | "ready"; readonly worker: number }
  | { readonly type: "exit"; readonly worker: number; readonly exit: TaskExit }
  | { readonly type: "drain" };

/** Listeners to a pool's events. */
export class Events {
  readonly #listeners = new Set<(event: PoolEvent) => void>();

  tell(event: PoolEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        // It is uncaught, and the pool goes on.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  listen(listener: (event: PoolEvent) => void): () => void {
    if (typeof listener !== "function") {
      throw new PamiError("PAMIR_INVAL", `events() takes a function, not ${shown(listener)}`);
    }
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
