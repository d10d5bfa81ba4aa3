// The calls of a pool, each from its begin to its end: on a worker, again on another one, as a stream, and blocking.
import { PamiError } from "../../index.js";
import { hasGone, isMoved } from "../exchange/move.js";
import { readStream } from "../exchange/streams.js";
import { FUNCTIONS, packed } from "../exchange/wire.js";
import { type PoolCallOptions, type PoolOptions, QUEUE_MAX } from "../options.js";
import { closedError, type PoolWorker } from "./crew.js";
import type { PoolStats } from "./stats.js";
import { now, type PoolCall } from "./waiting.js";
import type { Workers } from "./workers.js";

/** The code of an error of pamir's own; undefined for what a function has thrown, whatever code that has. */
const codeOf = (error: unknown): string | undefined => (error instanceof PamiError ? error.code : undefined);

/** The error for a call whose worker has died, and which is not begun again, if that is for what it has moved. */
function notRetried({ retries, args }: PoolCall, error: unknown): unknown {
  if (retries === 0 || codeOf(error) !== "PAMIR_SHUTDOWN" || !hasGone(args)) return error;
  const text = `${(error as Error).message}. It is not begun again (retries): what it moved is lost`;
  return new PamiError("PAMIR_SHUTDOWN", text, { cause: error });
}

/** Calls of functions on workers. */
export class PoolCalls {
  readonly #workers: Workers;
  readonly #options: PoolOptions;
  #closing: Promise<void> | undefined;
  #onQuiet: (() => void)[] = [];

  constructor(workers: Workers, options: PoolOptions) {
    this.#workers = workers;
    this.#options = options;
  }

  /** Calls a function on a worker. @param place the only one where it may run */
  run(number: number, args: unknown[], options: PoolCallOptions, place: number | undefined): Promise<unknown> {
    const refusal = this.#refusal(place);
    if (refusal !== undefined) return Promise.reject(refusal);
    const call = this.#call(number, args, options, place);
    this.#workers.tally.open++;
    const worker = call.retries === 0 ? this.#workers.take(place) : undefined;
    return worker === undefined ? this.#runLater(call) : this.#runOn(worker, call);
  }

  /** Calls a function once a worker is free, and again if that worker dies. */
  async #runLater(call: PoolCall): Promise<unknown> {
    for (;;) {
      let worker: PoolWorker;
      try {
        worker = await this.#workers.workerFor(call);
      } catch (error) {
        this.#settled(true);
        throw error;
      }
      try {
        return await this.#runOn(worker, call);
      } catch (error) {
        if (!this.#isRetried(call, error)) throw notRetried(call, error);
        call.retries--;
      }
    }
  }

  /** Whether a call is begun again. */
  #isRetried({ retries, options, deadline, args }: PoolCall, error: unknown): boolean {
    if (retries === 0 || hasGone(args) || codeOf(error) !== "PAMIR_SHUTDOWN") return false;
    return options.signal?.aborted !== true && now() < deadline && !this.#workers.isTerminated;
  }

  /** Calls a function on a worker that Workers.take() has given. */
  #runOn(worker: PoolWorker, call: PoolCall): Promise<unknown> {
    const begin = now();
    this.#workers.tally.waitTime.add(begin - call.since);
    const { signal } = call.options;
    const timeout = Math.max(0, call.deadline - begin);
    const isPlain = signal === undefined && timeout === Number.POSITIVE_INFINITY;
    const reply = worker.line.ask(
      FUNCTIONS + call.number,
      packed(call.args),
      isPlain ? undefined : { signal, timeout },
    );
    return reply.then(
      (value) => {
        this.#over(worker, begin);
        this.#settled(false);
        return value;
      },
      (error) => {
        this.#failedOn(worker, begin, error);
        if (!this.#isRetried(call, error)) this.#settled(true);
        throw error;
      },
    );
  }

  /** A call has ended on its worker. */
  #over(worker: PoolWorker, begin: number): void {
    this.#workers.tally.runTime.add(now() - begin);
    this.#workers.release(worker);
  }

  #failedOn(worker: PoolWorker, begin: number, error: unknown): void {
    const code = codeOf(error);
    if (code === "PAMIR_CANCELED" || code === "PAMIR_TIMEDOUT") return void this.#settle(worker, begin);
    // The job tells of its end later: until then, it would be given calls.
    if (code === "PAMIR_SHUTDOWN") this.#workers.lost(worker);
    this.#over(worker, begin);
  }

  /** Waits until a call that was given up has ended on its worker, and ends the worker if that takes too long. */
  async #settle(worker: PoolWorker, begin: number): Promise<void> {
    try {
      await worker.line.settled({ timeout: this.#options.killAfter });
    } catch (error) {
      if (codeOf(error) === "PAMIR_TIMEDOUT") {
        this.#workers.retire(worker);
        await worker.terminate();
      } else this.#workers.lost(worker);
    }
    this.#over(worker, begin);
  }

  /** Calls a function on a worker, and iterates over what it returns. */
  async *stream(
    number: number,
    args: unknown[],
    options: PoolCallOptions,
    place: number | undefined,
  ): AsyncGenerator<unknown, void> {
    const refusal = this.#refusal(place);
    if (refusal !== undefined) throw refusal;
    const call = this.#call(number, args, options, place);
    const { timeout = this.#options.timeout, signal } = options;
    let hasFailed = true;
    this.#workers.tally.open++;
    try {
      const worker = await this.#workers.workerFor(call);
      this.#workers.tally.waitTime.add(now() - call.since);
      hasFailed = false;
      yield* this.#streamOn(worker, readStream(worker.line, number, args, { signal, timeout }));
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      this.#settled(hasFailed);
    }
  }

  async *#streamOn(worker: PoolWorker, values: AsyncGenerator<unknown, void>): AsyncGenerator<unknown, void> {
    const begin = now();
    let isOver = false;
    try {
      yield* values;
      isOver = true;
    } catch (error) {
      isOver = true;
      this.#failedOn(worker, begin, error);
      throw error;
    } finally {
      // Its loop was left: the worker's iterator may take time to end.
      if (!isOver) void this.#settle(worker, begin);
    }
    this.#over(worker, begin);
  }

  /** Calls a function, and blocks until it has ended. */
  runSync(number: number, args: unknown[]): unknown {
    if (this.#workers.isClosed) throw closedError();
    const worker = this.#workers.leastBusy();
    if (worker === undefined)
      throw new PamiError("PAMIR_WOULD_BLOCK", "sync: no worker is ready: await warmUp() before");
    this.#workers.occupy(worker);
    this.#workers.tally.open++;
    const begin = now();
    let hasFailed = true;
    try {
      const value = worker.line.askSync(FUNCTIONS + number, packed(args), { timeout: this.#options.timeout });
      hasFailed = false;
      this.#over(worker, begin);
      return value;
    } catch (error) {
      this.#failedOn(worker, begin, error);
      throw error;
    } finally {
      this.#settled(hasFailed);
    }
  }

  /** Calls a function on each worker that runs. */
  runAll(number: number, args: unknown[]): Promise<unknown[]> {
    if (this.#workers.isClosed) return Promise.reject(closedError());
    if (args.some(isMoved))
      return Promise.reject(new PamiError("PAMIR_CLONE", "all: what is moved goes to one worker alone"));
    return Promise.all(this.#workers.ready.map(({ place }) => this.run(number, args, {}, place)));
  }

  /** A call is over for its caller. */
  #settled(hasFailed: boolean): void {
    if (!this.#workers.tally.over(hasFailed)) return;
    this.#workers.events.tell({ type: "drain" });
    for (const resolve of this.#onQuiet.splice(0)) resolve();
  }

  /** The error for a call that the pool does not take. */
  #refusal(place: number | undefined): PamiError | undefined {
    if (this.#workers.isClosed) return closedError();
    const { maxQueue = QUEUE_MAX } = this.#options;
    if (this.#workers.queue.size < maxQueue || this.#workers.isFree(place)) return undefined;
    return new PamiError("PAMIR_QUEUE_FULL", `${maxQueue} calls wait for a worker (maxQueue)`);
  }

  #call(number: number, args: unknown[], options: PoolCallOptions, place: number | undefined): PoolCall {
    const { timeout = this.#options.timeout, retries = this.#options.retries ?? 0 } = options;
    const since = now();
    return { number, args, options, place, since, deadline: since + (timeout ?? Number.POSITIVE_INFINITY), retries };
  }

  get stats(): PoolStats {
    const { tally, queue, ready } = this.#workers;
    const { running, completed, failed, waitTime, runTime } = tally;
    return {
      workers: ready.length,
      idle: ready.filter((worker) => worker.running === 0).length,
      queued: queue.size,
      running,
      completed,
      failed,
      waitTime: waitTime.times,
      runTime: runTime.times,
    };
  }

  close(): Promise<void> {
    this.#workers.isClosed = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#workers.tally.open > 0) await new Promise<void>((resolve) => this.#onQuiet.push(resolve));
    await this.#workers.close();
  }
}
