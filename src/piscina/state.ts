// What the worker of a Piscina says to whatever copy of this entry the program's file imports.

/** Key of the state, on globalThis. */
export const WORKER: unique symbol = Symbol.for("pamir.piscina.worker") as never;

export interface WorkerState {
  readonly workerData: unknown;
}

/** The state of this worker; undefined in threads that no Piscina has started. */
export const workerState = (): WorkerState | undefined => (globalThis as { [WORKER]?: WorkerState })[WORKER];
