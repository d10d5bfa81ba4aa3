// The waits that do not block their thread: progress(), what awaits a condition, and calls, for which somebody advances.
import { WAIT_CALL, WAIT_PROGRESS } from "../../assembly/layout.js";
import { checkKeys, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError, show } from "../core/error.js";
import type { Awaited, Parker } from "../node/park.js";
import { Spins } from "../node/spins.js";
import type { Debug } from "../observe/debug.js";
import { nameOfWait } from "../observe/dump.js";
import type { Calls } from "../protocol/call.js";
import type { Clock } from "../support/clock.js";
import { nextTurn } from "../support/host.js";
import type { AbortSignalLike } from "../support/like.js";

/** Options of the waits. */
export interface WaitOptions {
  /** Milliseconds; without it, as long as it takes. */
  timeout?: number | undefined;
}

/** Options of `context.progress`. */
export interface ProgressOptions extends WaitOptions {
  /** Ends the wait; it rejects with PAMIR_CANCELED. */
  signal?: AbortSignalLike | undefined;
}

export const PROGRESS_KEYS: Keys<ProgressOptions> = { timeout: true, signal: true };
const WAIT_KEYS: Keys<WaitOptions> = { timeout: true };

/** What waits need of their task. @internal */
export interface WaitHost {
  readonly clock: Clock;
  readonly parker: Parker;
  /** In debug mode. */
  readonly debug: Debug | undefined;
  /** Interrupts seen so far. */
  interrupts(): number;
  /** Interrupts that have ended a wait; one begun now ends when `interrupts()` is something else. */
  interruptsTaken(): number;
  /** A wait ends with INTERRUPTED: the interrupts seen so far do not end another. */
  takeInterrupts(): void;
}

/** A context, as its waits see it. */
export interface Waiting {
  readonly endpoint: Endpoint;
  /** Pointer to its block. */
  readonly block: number;
  /** Milliseconds of spinning before a sleep. */
  readonly spin: number;
  readonly calls: Calls;
  advance(rounds: number): number;
  /** Events processed so far, modulo 2^32. */
  events(): number;
  isAdvancing(): boolean;
  isClosed(): boolean;
  /** @throws PAMIR_CLOSED */
  checkOpen(call: string): void;
  /** Whether an advance would do something. */
  hasWork(): boolean;
  /** Whether something is awaited that nobody rings for. */
  isRestless(): boolean;
}

export class Waits {
  readonly #host: WaitHost;
  readonly #own: Waiting;
  /** What the spins of this context's waits have come to. */
  readonly spins = new Spins();
  readonly #restless = () => this.#own.isRestless();
  /** progress() calls that have not ended. */
  #progressing = 0;
  /** Times that some of them ended because another wait did. */
  #settlings = 0;
  #isSettling = false;
  /** `turns` of the parker when a promise was settled, and no progress() was pending. */
  #settledAt = -1;
  /** Whether somebody advances for the calls that are pending. */
  #areCallsAwaited = false;

  constructor(host: WaitHost, own: Waiting) {
    this.#host = host;
    this.#own = own;
  }

  /** See `Context.progress`. */
  async progress(options: ProgressOptions = {}): Promise<number> {
    const before = this.#own.events();
    const settledBefore = this.#settlings;
    const isOver = () => this.#own.events() !== before || this.#settlings !== settledBefore;
    this.#progressing++;
    if (this.#settledAt === this.#host.parker.turns) this.#settleSoon();
    try {
      await this.#wait(WAIT_PROGRESS, options, (rounds) => isOver() || this.#own.advance(rounds) > 0, isOver);
    } finally {
      this.#progressing--;
    }
    return (this.#own.events() - before) | 0;
  }

  /**
   * Advances until `condition()` is true, without blocking the thread. Whoever else advances may bring it about: what it
   * was that they found there rang the bell, which is up while anybody sleeps. The first true ends the wait.
   */
  async until(kind: number, condition: () => boolean, options: ProgressOptions): Promise<void> {
    let over = false;
    const isOver = (): boolean => {
      over ||= condition();
      return over;
    };
    let isFirst = true;
    const poll = (rounds: number): boolean => {
      if (isFirst && isOver()) return true;
      isFirst = false;
      if (!over) this.#own.advance(rounds);
      return isOver();
    };
    try {
      await this.#wait(kind, options, poll, isOver);
    } finally {
      this.settled();
    }
  }

  /** A promise of this context is settled. What goes on behind it may do what a progress() waits for: that ends then. */
  settled(): void {
    if (this.#progressing === 0) {
      // A turn of the event loop for each call would cost more than the call: only where a progress() begins before the next.
      this.#settledAt = this.#host.parker.turns;
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
      this.#host.parker.ring();
    });
  }

  /** Advances while calls are pending. @param isSooner one is to be given up sooner than all before */
  advanceForCalls(isSooner: boolean): void {
    if (this.#areCallsAwaited) {
      if (isSooner) this.#host.parker.ring();
      return;
    }
    this.#areCallsAwaited = true;
    // In a microtask: calls that are made together go out together.
    void Promise.resolve().then(() => this.#awaitCalls());
  }

  /** Advances until no call is pending. */
  async #awaitCalls(): Promise<void> {
    const { calls } = this.#own;
    const { parker, clock } = this.#host;
    let interrupts = this.#host.interruptsTaken();
    const isStopped = () => this.#own.isClosed() || this.#host.interrupts() !== interrupts;
    const isOver = () => calls.settled > 0 || calls.size === 0 || isStopped();
    const awaited = this.awaited(
      WAIT_CALL,
      (rounds) => isOver() || (this.#own.advance(rounds) > 0 && isOver()),
      () => isOver() || this.#own.hasWork(),
    );
    while (calls.size > 0 && !this.#own.isClosed()) {
      calls.settled = 0;
      try {
        // An answer during the spin needs nothing of what a sleep takes.
        if (parker.spin(awaited, this.#own.spin)) await parker.turn();
        else await parker.waitAsync(awaited, calls.soonest - clock.now(), 0, isStopped, true);
      } catch (error) {
        // A handler's, which is none of the callers': whoever handles what nobody handles has his turn.
        queueMicrotask(() => {
          throw error;
        });
        await nextTurn();
      }
      if (!this.#own.isClosed() && isStopped()) {
        this.#host.takeInterrupts();
        interrupts = this.#host.interruptsTaken();
        calls.giveUpAll(() => new PamiError("PAMIR_INTERRUPTED", `${this.#nameOf("call()")} was interrupted`));
      }
      if (calls.soonest !== Number.POSITIVE_INFINITY)
        calls.expire(
          clock.now(),
          ({ to }) => new PamiError("PAMIR_TIMEDOUT", `${this.#nameOf("call()")}: no reply from ${nameOf(to)} in time`),
        );
    }
    this.#areCallsAwaited = false;
  }

  #nameOf(call: string): string {
    return `${call} of ${nameOf(this.#own.endpoint)}`;
  }

  /** What a wait rejects with whose signal was aborted. */
  canceled(call: string, signal: AbortSignalLike): PamiError {
    return new PamiError("PAMIR_CANCELED", `${this.#nameOf(call)} was canceled`, { cause: signal.reason });
  }

  /**
   * Waits without blocking the thread until `poll` says that the wait is over.
   * @param isOver as `poll`, without an advance
   * @throws as progress()
   */
  async #wait(
    kind: number,
    options: ProgressOptions,
    poll: (rounds: number) => boolean,
    isOver = () => false,
  ): Promise<void> {
    const call = nameOfWait(kind);
    checkProgress(call, options);
    const { timeout, signal } = options;
    const milliseconds = checkTimeout(timeout);
    this.#own.checkOpen(call.slice(0, -2));
    // Begun in a handler: its round is over in a microtask.
    if (this.#own.isAdvancing()) await undefined;
    const interrupts = this.#host.interruptsTaken();
    const isStopped = () => this.#own.isClosed() || signal?.aborted === true || this.#host.interrupts() !== interrupts;
    const wake = () => this.#host.parker.ring();
    signal?.addEventListener("abort", wake, { once: true });
    let over = false;
    try {
      over = await this.#host.parker.waitAsync(
        this.awaited(
          kind,
          (rounds) => !isStopped() && poll(rounds),
          () => isStopped() || isOver() || this.#own.hasWork(),
        ),
        milliseconds,
        this.#own.spin,
        isStopped,
      );
    } finally {
      signal?.removeEventListener("abort", wake);
    }
    if (over) return;
    const what = this.#nameOf(call);
    if (signal?.aborted) throw this.canceled(call, signal);
    if (this.#own.isClosed()) throw new PamiError("PAMIR_CLOSED", `${what}: the context was closed`);
    if (isStopped()) {
      this.#host.takeInterrupts();
      throw new PamiError("PAMIR_INTERRUPTED", `${what} was interrupted`);
    }
    throw new PamiError("PAMIR_TIMEDOUT", `${what}: not over after ${milliseconds} ms`);
  }

  /** What the parker is told of a wait. @param found whether the looks before it have found something */
  awaited(kind: number, poll: (rounds: number) => boolean, peek: () => boolean, found = false): Awaited {
    const { debug } = this.#host;
    const lasts = debug && (() => debug.lasts(kind, this.#own.endpoint));
    return { kind, block: this.#own.block, poll, found, peek, restless: this.#restless, spins: this.spins, lasts };
  }
}

/** Options of a wait that does not block its thread. @param call "progress()" @throws PAMIR_INVAL */
export function checkProgress(call: string, options: ProgressOptions): void {
  if (options === NO_OPTIONS) return;
  checkKeys(`options of ${call}`, options, PROGRESS_KEYS);
  checkTimeout(options.timeout);
  checkSignal(call, options.signal);
}

/** Options of a wait that blocks its thread: milliseconds, Infinity for none. @param call "advanceUntil()" @throws PAMIR_INVAL */
export function checkWait(call: string, options: WaitOptions): number {
  checkKeys(`options of ${call}`, options, WAIT_KEYS);
  return checkTimeout(options.timeout);
}

/** Milliseconds of a timeout; Infinity for none. */
export function checkTimeout(timeout: number | undefined): number {
  if (timeout === undefined) return Number.POSITIVE_INFINITY;
  if (typeof timeout !== "number" || !(timeout >= 0)) {
    throw new PamiError("PAMIR_INVAL", `timeout is ${show(timeout)}, not a number of milliseconds from 0`);
  }
  return timeout;
}
