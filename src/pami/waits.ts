// The waits that do not block their thread: progress(), waits for a condition, and the loop that advances while calls are
// pending.
import { checkKeys, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError, show } from "../core/error.js";
import { type Result, TIMEDOUT } from "../core/result.js";
import type { Awaited } from "../node/park.js";
import { Spins } from "../node/spins.js";
import { WAITS, type WaitName } from "../node/wait-kinds.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Task } from "../protocol/task.js";
import { hearAbort } from "../support/abort.js";
import { nextTurn, throwUncaught } from "../support/host.js";
import type { AbortSignalLike } from "../support/like.js";

/** Options of the waits. */
export interface WaitOptions {
  /** Milliseconds after which the wait gives up: any number from 0 to Infinity. Default: no limit. */
  timeout?: number | undefined;
}

/** Options of `context.progress`. */
export interface ProgressOptions extends WaitOptions {
  /** Aborting it ends the wait, which rejects with PAMIR_CANCELED. */
  signal?: AbortSignalLike | undefined;
}

export const PROGRESS_KEYS: Keys<ProgressOptions> = { timeout: true, signal: true };
const WAIT_KEYS: Keys<WaitOptions> = { timeout: true };

export class Waits {
  readonly #task: Task;
  readonly #core: ContextCore;
  /** Milliseconds of spinning before a sleep. */
  readonly #spin: number;
  readonly #checkOpen: (call: string) => void;
  readonly #advance: (rounds: number) => number;
  /** Statistics of the spins of this context's waits. */
  readonly spins = new Spins();
  readonly #restless = () => this.#core.isRestless();
  /** Count of progress() calls that are under way. */
  #progressing = 0;
  /** How many times progress() calls ended because another wait ended. */
  #settlings = 0;
  #isSettling = false;
  /** The parker's `turns` when a promise was last settled while no progress() was under way. */
  #settledAt = -1;
  /** Whether #awaitCalls() is running. */
  #areCallsAwaited = false;

  /**
   * @param core of the context whose waits they are
   * @param spin milliseconds of spinning before a sleep
   * @param checkOpen throws PAMIR_CLOSED
   * @param advance of the context, which may be closed, or advanced already
   */
  constructor(
    task: Task,
    core: ContextCore,
    spin: number,
    checkOpen: (call: string) => void,
    advance: (rounds: number) => number,
  ) {
    this.#task = task;
    this.#core = core;
    this.#spin = spin;
    this.#checkOpen = checkOpen;
    this.#advance = advance;
  }

  /** See `Context.progress`. */
  async progress(options: ProgressOptions = {}): Promise<number> {
    const before = this.#core.events;
    const settledBefore = this.#settlings;
    const isOver = () => this.#core.events !== before || this.#settlings !== settledBefore;
    this.#progressing++;
    if (this.#settledAt === this.#task.parker.turns) this.#settleSoon();
    try {
      await this.#wait("progress()", options, (rounds) => isOver() || this.#advance(rounds) > 0, isOver);
    } finally {
      this.#progressing--;
    }
    return (this.#core.events - before) | 0;
  }

  /**
   * Advances until `condition()` is true, without blocking the thread. Another wait that advances may make it true: the
   * event that it processed has rung the bell, so this wait looks again. The first true ends the wait.
   * @param keepsErrors whether what handlers throw meanwhile does not end the wait: the context throws it after that
   */
  async until(wait: WaitName, condition: () => boolean, options: ProgressOptions, keepsErrors = false): Promise<void> {
    const core = this.#core;
    let over = false;
    const isOver = (): boolean => {
      over ||= condition();
      return over;
    };
    let isFirst = true;
    const poll = (rounds: number): boolean => {
      if (isFirst && isOver()) return true;
      isFirst = false;
      if (!over) {
        core.keepsErrors = keepsErrors;
        try {
          this.#advance(rounds);
        } finally {
          core.keepsErrors = false;
        }
      }
      return isOver();
    };
    try {
      await this.#wait(wait, options, poll, isOver);
    } finally {
      this.settled();
      if (keepsErrors) core.throwKept();
    }
  }

  /** Called when a promise of this context is settled: code behind it may do what a progress() awaits, so that ends too. */
  settled(): void {
    if (this.#progressing === 0) {
      // A turn of the event loop for each call would cost more than the call: only where a progress() begins before the next.
      this.#settledAt = this.#task.parker.turns;
      return;
    }
    this.#settleSoon();
  }

  #settleSoon(): void {
    if (this.#isSettling) return;
    this.#isSettling = true;
    void nextTurn().then(() => {
      this.#isSettling = false;
      if (this.#progressing === 0) return;
      this.#settlings++;
      this.#task.parker.ring();
    });
  }

  /** Advances while calls are pending. @param isSooner the new call's deadline is before all others */
  advanceForCalls(isSooner: boolean): void {
    if (this.#areCallsAwaited) {
      if (isSooner) this.#task.parker.ring();
      return;
    }
    this.#areCallsAwaited = true;
    // In a microtask: calls that are made together go out together.
    void Promise.resolve().then(() => this.#awaitCalls());
  }

  /** Advances until no call is pending. */
  async #awaitCalls(): Promise<void> {
    const { calls } = this.#core;
    const { parker, clock } = this.#task;
    let interrupts = this.#task.interruptsTaken;
    const isStopped = () => this.#core.isClosed || this.#task.interrupts !== interrupts;
    // A call that began during the sleep may have to end before it.
    let sleepEnd = Number.POSITIVE_INFINITY;
    const isOver = () => calls.settled > 0 || calls.size === 0 || calls.soonest < sleepEnd || isStopped();
    const awaited = this.awaited(
      "call()",
      (rounds) => isOver() || (this.#advance(rounds) > 0 && isOver()),
      () => isOver() || this.#core.hasWork(),
    );
    while (calls.size > 0 && !this.#core.isClosed) {
      calls.settled = 0;
      sleepEnd = calls.soonest;
      try {
        // If the reply comes during the spin, there is no sleep to prepare.
        if (parker.spin(awaited, this.#spin)) await parker.turn();
        else await parker.waitAsync(awaited, sleepEnd - clock.now(), 0, isStopped, true);
      } catch (error) {
        // A handler threw it, not a call.
        throwUncaught(error);
        await nextTurn();
      }
      if (!this.#core.isClosed && isStopped()) {
        this.#task.takeInterrupts();
        interrupts = this.#task.interruptsTaken;
        calls.interrupt(() => new PamiError("PAMIR_INTERRUPTED", `${this.#nameOf("call()")} was interrupted`));
      }
      if (calls.soonest !== Number.POSITIVE_INFINITY) calls.expire(clock.now(), ({ to }) => this.#late(to));
    }
    this.#areCallsAwaited = false;
  }

  /** The error of a call whose blocking wait came to TIMEDOUT or INTERRUPTED. */
  unanswered(to: Endpoint, result: Result): PamiError {
    if (result === TIMEDOUT) return this.#late(to);
    return new PamiError("PAMIR_INTERRUPTED", `${this.#nameOf("call()")} was interrupted`);
  }

  #late(to: Endpoint): PamiError {
    return new PamiError("PAMIR_TIMEDOUT", `${this.#nameOf("call()")}: no reply from ${nameOf(to)} in time`);
  }

  #nameOf(call: string): string {
    return `${call} of ${nameOf(this.#core.endpoint)}`;
  }

  /** The error with which a wait rejects when its signal is aborted. */
  canceled(call: string, signal: AbortSignalLike): PamiError {
    return new PamiError("PAMIR_CANCELED", `${this.#nameOf(call)} was canceled`, { cause: signal.reason });
  }

  /**
   * Waits without blocking the thread until `poll` says that the wait is over.
   * @param isOver as `poll`, without an advance
   * @throws as progress()
   */
  async #wait(
    wait: WaitName,
    options: ProgressOptions,
    poll: (rounds: number) => boolean,
    isOver = () => false,
  ): Promise<void> {
    checkProgress(wait, options);
    const { timeout, signal } = options;
    const milliseconds = checkTimeout(timeout);
    this.#checkOpen(wait.slice(0, -2));
    // If a handler began this wait, its round is over after a microtask.
    if (this.#core.isAdvancing) await undefined;
    const interrupts = this.#task.interruptsTaken;
    const isStopped = () => this.#core.isClosed || signal?.aborted === true || this.#task.interrupts !== interrupts;
    const wake = () => this.#task.parker.ring();
    const forget = hearAbort(signal, wake);
    let over = false;
    try {
      over = await this.#task.parker.waitAsync(
        this.awaited(
          wait,
          (rounds) => !isStopped() && poll(rounds),
          () => isStopped() || isOver() || this.#core.hasWork(),
        ),
        milliseconds,
        this.#spin,
        isStopped,
      );
    } finally {
      forget();
    }
    if (over) return;
    const what = this.#nameOf(wait);
    if (signal?.aborted) throw this.canceled(wait, signal);
    if (this.#core.isClosed) throw new PamiError("PAMIR_CLOSED", `${what}: the context was closed`);
    if (isStopped()) {
      this.#task.takeInterrupts();
      throw new PamiError("PAMIR_INTERRUPTED", `${what} was interrupted`);
    }
    throw new PamiError("PAMIR_TIMEDOUT", `${what}: not over after ${milliseconds} ms`);
  }

  /** Describes a wait to the parker. @param found whether earlier looks found an event */
  awaited(wait: WaitName, poll: (rounds: number) => boolean, peek: () => boolean, found = false): Awaited {
    const lasts = this.#task.observers.whenLasting(wait, this.#core.endpoint);
    const { block } = this.#core;
    return { kind: WAITS[wait], block, poll, found, peek, restless: this.#restless, spins: this.spins, lasts };
  }
}

/** Checks the options of a wait that does not block its thread. @param call "progress()" @throws PAMIR_INVAL */
export function checkProgress(call: string, options: ProgressOptions): void {
  if (options === NO_OPTIONS) return;
  checkKeys(`options of ${call}`, options, PROGRESS_KEYS);
  checkTimeout(options.timeout);
  checkSignal(call, options.signal);
}

/**
 * Checks the options of a wait that blocks its thread.
 * @param call "advanceUntil()"
 * @returns milliseconds; Infinity without a timeout
 * @throws PAMIR_INVAL
 */
export function checkWait(call: string, options: WaitOptions): number {
  checkKeys(`options of ${call}`, options, WAIT_KEYS);
  return checkTimeout(options.timeout);
}

/** Checks a timeout. @returns milliseconds; Infinity without one @throws PAMIR_INVAL */
export function checkTimeout(timeout: number | undefined): number {
  if (timeout === undefined) return Number.POSITIVE_INFINITY;
  if (typeof timeout !== "number" || !(timeout >= 0)) {
    throw new PamiError("PAMIR_INVAL", `timeout is ${show(timeout)}, not a number of milliseconds from 0`);
  }
  return timeout;
}
