// Calls that wait several times, in two forms: a promise, and one that blocks its thread. Both take the same steps.
import { PamiError } from "../core/error.js";
import { type Result, SUCCESS, TIMEDOUT } from "../core/result.js";
import type { Task } from "../protocol/task.js";
import type { GeometryContext } from "./context.js";
import type { LedOperation, LedWaits } from "./led-waits.js";
import type { ProgressOptions, WaitOptions } from "./waits.js";

/** A wait of such a call. What handlers throw meanwhile does not end the wait: the context throws it after that. */
export interface Step {
  /** What is awaited: what wakes its wait, or a condition. */
  readonly until: LedOperation | (() => boolean);
  /** Milliseconds at most, if the call has more. */
  readonly timeout?: number;
  /** The error of a wait that was given up: TIMEDOUT or INTERRUPTED. */
  readonly late: (result: Result, cause?: unknown) => Error;
}
export type Steps<Value> = Generator<Step, Value, void>;

/** What waits. */
export interface StepHost {
  readonly host: GeometryContext;
  readonly waits: LedWaits;
}

/** Awaits each step. @throws what the steps throw; as `progress()` */
export async function awaitSteps<Value>(steps: Steps<Value>, by: StepHost, options: ProgressOptions): Promise<Value> {
  let next = steps.next();
  while (next.done !== true) {
    next = await wait(next.value, by, options).then(
      () => steps.next(),
      (error) => steps.throw(error),
    );
  }
  return next.value;
}

async function wait(
  { until, timeout, late }: Step,
  { host, waits }: StepHost,
  options: ProgressOptions,
): Promise<void> {
  const bounded = boundedBy(timeout, options);
  try {
    if (typeof until === "function") await host.until(until, bounded, true);
    else await waits.until(until, bounded, true);
  } catch (error) {
    throw error instanceof PamiError && error.code === "PAMIR_TIMEDOUT" ? late(TIMEDOUT, error) : error;
  }
}

/** Blocks the thread for each step. @throws what the steps throw */
export function blockOnSteps<Value>(steps: Steps<Value>, host: GeometryContext, options: WaitOptions): Value {
  let next = steps.next();
  while (next.done !== true) {
    const error = block(next.value, host, options);
    next = error === undefined ? steps.next() : steps.throw(error);
  }
  return next.value;
}

/** @returns why the wait has not ended well */
function block({ until, timeout, late }: Step, { core, advanceUntil }: GeometryContext, options: WaitOptions): unknown {
  const isOver = typeof until === "function" ? until : () => until.isOver;
  try {
    core.keepsErrors = true;
    try {
      const result = advanceUntil(isOver, boundedBy(timeout, options));
      return result === SUCCESS ? undefined : late(result);
    } finally {
      core.keepsErrors = false;
      core.throwKept();
    }
  } catch (error) {
    return error;
  }
}

function boundedBy<Options extends WaitOptions>(most: number | undefined, options: Options): Options {
  return most === undefined ? options : { ...options, timeout: Math.min(most, options.timeout ?? most) };
}

/** @param call "barrier" @throws PAMIR_NOT_ISOLATED, PAMIR_WOULD_BLOCK if its blocking form may not block this thread */
export function checkMayBlock({ parker: { mayBlock, whyPrivate } }: Task, call: string): void {
  if (mayBlock && whyPrivate === "") return;
  const [code, why] =
    whyPrivate === ""
      ? (["PAMIR_WOULD_BLOCK", "on a thread that must not block"] as const)
      : (["PAMIR_NOT_ISOLATED", `would get no messages: ${whyPrivate}`] as const);
  throw new PamiError(code, `${call}Sync() ${why}. Await ${call}()`);
}
