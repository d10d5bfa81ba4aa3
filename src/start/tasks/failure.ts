// Failures of tasks: which exit is a failure, and the text that is printed.
import { PamiError, show } from "../../core/error.js";
import { unsettledText } from "../process/exit-code.js";
import type { TaskExit } from "./monitor.js";

/** The reaction to a failure: `launch({ onError })`. */
export type OnError = "report" | "abort" | "ignore";

/** Most characters that are printed of one error. */
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
 * The text that is printed of a failed task, without a line end: one line, unless the error has a stack.
 * @param shown the error with its stack, if the caller has more of it than `exit`
 */
export function failureText(exit: TaskExit, onError: OnError, shown = withStack(exit)): string {
  const { task, code, cause, error } = exit;
  const end = onError === "abort" ? ", the job ends" : "";
  const gap = shown.includes("\n") ? "\n" : " ";
  if (cause === "error") return `pamir: task ${task} failed${end}:${gap}${shown.slice(0, SHOWN_MAX)}`;
  if (cause === "memory") return `pamir: task ${task} ran out of memory${end}: ${error}`;
  return error === undefined
    ? `pamir: task ${task} exited with code ${code}${unsettledText(code)}${end}`
    : `pamir: task ${task} is lost${end}: ${error}`;
}

/** The error with its stack. Not every browser begins a stack with the error. */
function withStack({ error = "", stack }: TaskExit): string {
  if (stack === undefined) return error;
  return stack.includes(error) ? stack : `${error}\n${stack}`;
}
