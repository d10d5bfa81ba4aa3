// A task that failed: which end is a failure, and what is said of it.
import { PamiError, show } from "../core/error.js";
import type { ErrorParts } from "../core/task-errors.js";
import type { TaskExit } from "./monitor.js";

/** What is done when a task fails: `launch({ onError })`. */
export type OnError = "report" | "abort" | "ignore";

/** Characters that are printed of one error. */
const SHOWN_MAX = 65536;

/** @throws PAMIR_INVAL */
export function checkOnError(onError: unknown): asserts onError is OnError | undefined {
  if (onError === undefined || onError === "report" || onError === "abort" || onError === "ignore") return;
  throw new PamiError("PAMIR_INVAL", `onError is ${show(onError)}, not "report", "abort" or "ignore"`);
}

/** Whether a task ended by an error, or with an exit code of its own. `job.terminate()` makes no failure. */
export function isFailure({ cause, code }: TaskExit): boolean {
  return cause !== "terminated" && (cause !== "exit" || code !== 0);
}

/**
 * What is printed of a task that failed, without a line end behind it.
 * @param shown the error with its stack, where the caller has more of it than `exit`
 */
export function failureText(exit: TaskExit, onError: OnError, shown = withStack(exit)): string {
  const { task, code, cause, error } = exit;
  const end = onError === "abort" ? ", the job ends" : "";
  if (cause === "error") return `pamir: task ${task} failed${end}:\n${shown.slice(0, SHOWN_MAX)}`;
  if (cause === "memory") return `pamir: task ${task} ran out of memory${end}: ${error}`;
  return error === undefined
    ? `pamir: task ${task} exited with code ${code}${end}`
    : `pamir: task ${task} is lost${end}: ${error}`;
}

/** The error by which a task ended, as other tasks have it in `TaskErrors`. */
export function errorOf({ cause, error, errorCode: code, stack }: TaskExit): ErrorParts | undefined {
  if (error === undefined || cause === "terminated") return undefined;
  const name = /^\w+(?=: )/.exec(error)?.[0];
  const message = name === undefined ? error : error.slice(name.length + 2);
  return { name: name ?? "Error", message, code, stack };
}

/** Not every browser begins a stack with the error. */
function withStack({ error = "", stack }: TaskExit): string {
  if (stack === undefined) return error;
  return stack.includes(error) ? stack : `${error}\n${stack}`;
}
