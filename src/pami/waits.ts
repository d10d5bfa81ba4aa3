// The waits that do not block their thread: progress(), waits for a condition, and the loop that advances while calls are
// pending.
import { checkKeys, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError, show } from "../core/error.js";
import type { Activity } from "../core/progress.js";
import { type Result, TIMEDOUT } from "../core/result.js";
import type { Awaited } from "../node/park.js";
import { Spins } from "../node/spins.js";
import { WAITS, type WaitName } from "../node/wait-kinds.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Task } from "../protocol/task.js";
import { hearAbort } from "../support/abort.js";
import { isLoopIdle, nextTurn, throwUncaught } from "../support/host.js";
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
export const WAIT_KEYS: Keys<WaitOptions> = { timeout: true };

/** What a wait needs of its context. */
interface WaitHost {
  readonly core: ContextCore;
  readonly task: Task;
  readonly spins: Spins;
  /** As that of the context, which may be closed, or advanced already. */
  advance(rounds: number): number;
}

/**
 * A wait of a context that does not block its thread. A class, since closures would be made and compiled anew for each wait. Its
 * methods repeat some lines: V8 interprets each function that a wait of a cold program enters. `bench -- counts` counts them.
 */
abstract class ContextWait implements Awaited {
  readonly name: WaitName;
  readonly kind: number;
  readonly block: number;
  readonly spins: Spins;
  readonly lasts: (() => void) | undefined;
  readonly activity: Activity;
  readonly restless: () => boolean;
  found = false;
  /** Count of the task's interrupts that do not end it. */
  interrupts: number;
  protected readonly host: WaitHost;
  protected readonly core: ContextCore;

  constructor(host: WaitHost, name: WaitName) {
    const { core, task, spins } = host;
    this.name = name;
    this.kind = WAITS[name];
    this.block = core.block;
    this.spins = spins;
    this.activity = core.activity;
    this.restless = core.isRestless;
    this.lasts = task.observers.isStrict ? task.observers.whenLasting(name, core.endpoint) : undefined;
    this.interrupts = task.interruptsTaken;
    this.host = host;
    this.core = core;
  }

  abstract poll(rounds: number): boolean;
  abstract lastLook(): boolean;
}

/** The wait for the replies to all calls of a context. */
class CallsWait extends ContextWait {
  /** The earliest deadline when it fell asleep: a call that begins meanwhile may have to end before that. */
  sleepEnd = Number.POSITIVE_INFINITY;
  readonly isStopped = (): boolean => this.core.isClosed || this.host.task.interrupts !== this.interrupts;

  poll(rounds: number): boolean {
    const { core, host } = this;
    const { calls } = core;
    for (let hasLooked = false; ; hasLooked = true) {
      if (calls.settled > 0 || calls.size === 0 || core.isClosed) return true;
      if (calls.soonest < this.sleepEnd || host.task.interrupts !== this.interrupts) return true;
      if (hasLooked || (core.isAdvancing ? host.advance(rounds) : core.advance(rounds)) === 0) return false;
    }
  }

  lastLook(): boolean {
    const { core, host } = this;
    const { calls } = core;
    if (calls.settled > 0 || calls.size === 0 || core.isClosed) return true;
    return calls.soonest < this.sleepEnd || host.task.interrupts !== this.interrupts || core.lastLook();
  }
}

/** A wait whose promise the program has. */
abstract class EventWait<Value> extends ContextWait {
  signal: AbortSignalLike | undefined;
  readonly isStopped = (): boolean =>
    this.core.isClosed || this.host.task.interrupts !== this.interrupts || this.signal?.aborted === true;

  /** What its promise resolves with, once it is over. */
  abstract readonly value: Value;
  /** It is over, or has failed. */
  abstract end(): void;
}

class ProgressWait extends EventWait<number> {
  readonly mayNap: (() => boolean) | undefined;
  readonly #waits: Waits;
  #before = 0;
  #settledBefore = 0;

  constructor(host: WaitHost, waits: Waits, mayNap: (() => boolean) | undefined) {
    super(host, "progress()");
    this.mayNap = mayNap;
    this.#waits = waits;
  }

  /** From now on it waits for an event. */
  begin(): void {
    this.#before = this.core.events;
    this.#settledBefore = this.#waits.settlings;
    this.signal = undefined;
  }

  poll(rounds: number): boolean {
    const { core, host } = this;
    if (core.isClosed || host.task.interrupts !== this.interrupts || this.signal?.aborted === true) return false;
    if (core.events !== this.#before || this.#waits.settlings !== this.#settledBefore) return true;
    return (core.isAdvancing ? host.advance(rounds) : core.advance(rounds)) > 0;
  }

  lastLook(): boolean {
    const { core, host } = this;
    if (core.events !== this.#before || this.#waits.settlings !== this.#settledBefore || core.isClosed) return true;
    return host.task.interrupts !== this.interrupts || this.signal?.aborted === true || core.lastLook();
  }

  get value(): number {
    return (this.core.events - this.#before) | 0;
  }

  end(): void {
    this.#waits.progressing--;
    this.#waits.spare = this;
  }
}

class ConditionWait extends EventWait<void> {
  readonly value = undefined;
  readonly #waits: Waits;
  readonly #condition: () => boolean;
  readonly #keepsErrors: boolean;
  #hasLooked = false;
  #over = false;

  constructor(host: WaitHost, waits: Waits, name: WaitName, condition: () => boolean, keepsErrors: boolean) {
    super(host, name);
    this.#waits = waits;
    this.#condition = condition;
    this.#keepsErrors = keepsErrors;
  }

  #isOver(): boolean {
    this.#over ||= this.#condition();
    return this.#over;
  }

  poll(rounds: number): boolean {
    if (this.isStopped()) return false;
    if (!this.#hasLooked && this.#isOver()) return true;
    this.#hasLooked = true;
    if (!this.#over) this.#advance(rounds);
    return this.#isOver();
  }

  #advance(rounds: number): void {
    const { core } = this;
    core.keepsErrors = this.#keepsErrors;
    try {
      if (core.isAdvancing || core.isClosed) this.host.advance(rounds);
      else core.advance(rounds);
    } finally {
      core.keepsErrors = false;
    }
  }

  lastLook(): boolean {
    const { core } = this;
    // The condition may be about what other threads do, so it is asked behind the arming. It may also begin something.
    if (this.isStopped() || core.arm() || this.#isOver() || this.isStopped()) return true;
    return core.activity.busy !== 0 && core.hasOwnWork();
  }

  end(): void {
    this.#waits.settled();
    if (this.#keepsErrors) this.core.throwKept();
  }
}

export class Waits {
  readonly #task: Task;
  readonly #core: ContextCore;
  /** Milliseconds of spinning before a sleep. */
  readonly #spin: number;
  readonly #checkOpen: (call: string) => void;
  readonly #mayNap: (() => boolean) | undefined;
  readonly #host: WaitHost;
  /** Statistics of the spins of this context's waits. */
  readonly spins = new Spins();
  /** @internal Count of progress() calls that are under way. */
  progressing = 0;
  /** How many times progress() calls ended because another wait ended. */
  settlings = 0;
  #isSettling = false;
  /** The parker's `turns` when a promise was last settled while no progress() was under way. */
  #settledAt = -1;
  /** @internal The wait of an earlier progress(): a server needs only one. */
  spare: ProgressWait | undefined;
  #callsWait: CallsWait | undefined;
  /** Whether #awaitCalls() is running. */
  #areCallsAwaited = false;

  /**
   * @param core of the context whose waits they are
   * @param spin milliseconds of spinning before a sleep
   * @param checkOpen throws PAMIR_CLOSED
   * @param advance of the context, which may be closed, or advanced already
   * @param mayBlock whether progress() may block the thread
   */
  constructor(
    task: Task,
    core: ContextCore,
    spin: number,
    checkOpen: (call: string) => void,
    advance: (rounds: number) => number,
    mayBlock: boolean,
  ) {
    this.#task = task;
    this.#core = core;
    this.#spin = spin;
    this.#checkOpen = checkOpen;
    const { calls } = core;
    const mayNap = (): boolean => calls.answering === 0 && isLoopIdle();
    this.#mayNap = mayBlock && task.parker.whyPrivate === "" ? mayNap : undefined;
    this.#host = { core, task, spins: this.spins, advance };
  }

  /** See `Context.progress`. */
  progress(options: ProgressOptions = NO_OPTIONS): Promise<number> {
    this.progressing++;
    if (this.#settledAt === this.#task.parker.turns) this.#settleSoon();
    const wait = this.spare ?? new ProgressWait(this.#host, this, this.#mayNap);
    this.spare = undefined;
    wait.begin();
    return this.#await(wait, options);
  }

  /**
   * Advances until `condition()` is true, without blocking the thread. Another wait that advances may make it true: the
   * event that it processed has rung the bell, so this wait looks again. The first true ends the wait.
   * @param keepsErrors whether what handlers throw meanwhile does not end the wait: the context throws it after that
   */
  async until(wait: WaitName, condition: () => boolean, options: ProgressOptions, keepsErrors = false): Promise<void> {
    await this.#await(new ConditionWait(this.#host, this, wait, condition, keepsErrors), options);
  }

  /** Called when a promise of this context is settled: code behind it may do what a progress() awaits, so that ends too. */
  settled(): void {
    if (this.progressing === 0) {
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
      if (this.progressing === 0) return;
      this.settlings++;
      this.#task.parker.ring();
    });
  }

  /** Advances while calls are pending. @param isSooner the new call's deadline is before all others */
  readonly advanceForCalls = (isSooner: boolean): void => {
    if (!this.#areCallsAwaited) void this.#awaitCalls();
    else if (isSooner) this.#task.parker.ring();
  };

  /** Advances until no call is pending. */
  async #awaitCalls(): Promise<void> {
    this.#areCallsAwaited = true;
    // Calls that are made together go out together.
    await undefined;
    const { calls } = this.#core;
    const { parker, clock } = this.#task;
    this.#callsWait ??= new CallsWait(this.#host, "call()");
    const wait = this.#callsWait;
    wait.interrupts = this.#task.interruptsTaken;
    while (calls.size > 0 && !this.#core.isClosed) {
      calls.settled = 0;
      wait.sleepEnd = calls.soonest;
      try {
        // If the reply comes during the spin, there is no sleep to prepare.
        if (parker.spin(wait, this.#spin)) await parker.turn();
        else {
          const left = wait.sleepEnd === Number.POSITIVE_INFINITY ? wait.sleepEnd : wait.sleepEnd - clock.now();
          await parker.waitAsync(wait, left, 0, wait.isStopped, true);
        }
      } catch (error) {
        // A handler threw it, not a call.
        throwUncaught(error);
        await nextTurn();
      }
      if (wait.interrupts !== this.#task.interrupts && !this.#core.isClosed) {
        this.#task.takeInterrupts();
        wait.interrupts = this.#task.interruptsTaken;
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

  /** Waits without blocking the thread. @returns the wait's value @throws as progress() */
  async #await<Value>(wait: EventWait<Value>, options: ProgressOptions): Promise<Value> {
    let signal: AbortSignalLike | undefined;
    let milliseconds = Number.POSITIVE_INFINITY;
    let forget: (() => void) | undefined;
    try {
      if (options !== NO_OPTIONS) {
        checkProgress(wait.name, options);
        milliseconds = checkTimeout(options.timeout);
        signal = options.signal;
      }
      if (this.#core.isClosed) this.#checkOpen(wait.name.slice(0, -2));
      // If a handler began this wait, its round is over after a microtask.
      if (this.#core.isAdvancing) await undefined;
      wait.interrupts = this.#task.interruptsTaken;
      if (signal !== undefined) {
        wait.signal = signal;
        forget = hearAbort(signal, () => this.#task.parker.ring());
      }
      if (await this.#task.parker.waitAsync(wait, milliseconds, this.#spin, wait.isStopped)) return wait.value;
    } finally {
      forget?.();
      wait.end();
    }
    const what = this.#nameOf(wait.name);
    if (signal?.aborted) throw this.canceled(wait.name, signal);
    if (this.#core.isClosed) throw new PamiError("PAMIR_CLOSED", `${what}: the context was closed`);
    if (wait.interrupts !== this.#task.interrupts) {
      this.#task.takeInterrupts();
      throw new PamiError("PAMIR_INTERRUPTED", `${what} was interrupted`);
    }
    throw new PamiError("PAMIR_TIMEDOUT", `${what}: not over after ${milliseconds} ms`);
  }

  /** Describes a wait to the parker. @param found whether earlier looks found an event */
  awaited(wait: WaitName, poll: (rounds: number) => boolean, lastLook: () => boolean, found = false): Awaited {
    const lasts = this.#task.observers.whenLasting(wait, this.#core.endpoint);
    const { activity, block, isRestless } = this.#core;
    const { spins } = this;
    return { kind: WAITS[wait], block, poll, found, lastLook, activity, restless: isRestless, spins, lasts };
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
