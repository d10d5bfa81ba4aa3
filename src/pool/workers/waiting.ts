// Calls that wait for a worker: each until it has one, its signal is aborted, or its time is over.
import { type AbortSignalLike, PamiError } from "../../index.js";
import { systemClock } from "../../support/clock.js";
import { after } from "../../support/timers.js";
import type { PoolCallOptions } from "../options.js";
import type { PoolWorker } from "./crew.js";
import type { Item, PriorityQueue } from "./queue.js";

/** Milliseconds on the clock of calls. */
export const { now } = systemClock;

/** A call that the pool has taken. */
export interface PoolCall {
  readonly number: number;
  readonly args: unknown[];
  readonly options: PoolCallOptions;
  /** The only place where it may run; undefined: any. */
  readonly place: number | undefined;
  /** When it was made, and when it times out. */
  readonly since: number;
  readonly deadline: number;
  /** How often it may still be begun again. */
  retries: number;
}

/** A call in the queue. */
export class Waiting implements Item<Waiting> {
  readonly place: number | undefined;
  readonly priority: number;
  readonly resolve: (worker: PoolWorker) => void;
  readonly reject: (error: unknown) => void;
  order = 0;
  previous: Waiting | undefined;
  next: Waiting | undefined;

  constructor(
    { place, options: { priority = 0 } }: PoolCall,
    resolve: (worker: PoolWorker) => void,
    reject: (error: unknown) => void,
  ) {
    this.place = place;
    this.priority = priority;
    this.resolve = resolve;
    this.reject = reject;
  }
}

/** A worker for a call, which waits in the queue until then. @throws PAMIR_CANCELED, PAMIR_TIMEDOUT */
export function waitFor(queue: PriorityQueue<Waiting>, call: PoolCall): Promise<PoolWorker> {
  const { deadline, options } = call;
  const { signal } = options;
  if (signal?.aborted === true) return Promise.reject(canceledError(signal));
  return new Promise((resolve, reject) => {
    let stopTimer = (): void => {};
    const forget = (): void => {
      stopTimer();
      signal?.removeEventListener("abort", cancel);
    };
    const waiting = new Waiting(
      call,
      (worker) => {
        forget();
        resolve(worker);
      },
      (error) => {
        forget();
        reject(error as Error);
      },
    );
    const cancel = (): void => {
      if (queue.remove(waiting)) waiting.reject(canceledError(signal as AbortSignalLike));
    };
    if (deadline !== Number.POSITIVE_INFINITY) {
      const late = (): void => {
        const text = "no worker was free for a call within its timeout";
        if (queue.remove(waiting)) waiting.reject(new PamiError("PAMIR_TIMEDOUT", text));
      };
      stopTimer = after(Math.max(0, deadline - now()), late);
    }
    signal?.addEventListener("abort", cancel, { once: true });
    queue.push(waiting);
  });
}

const canceledError = (signal: AbortSignalLike): PamiError =>
  new PamiError("PAMIR_CANCELED", "a call was canceled that waited for a worker", { cause: signal.reason });
