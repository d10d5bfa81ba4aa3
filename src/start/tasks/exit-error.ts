// How a task ended, as an error for the other tasks. Launchers and tasks load it.
import type { ErrorParts } from "../../core/task-errors.js";
import { unsettledText } from "../process/exit-code.js";
import type { TaskExit } from "./monitor.js";

const NO_LOOP_TEXT = "does it lack a loop of progress, `while (!context.closed) await context.progress()`?";

/** How a task ended, as an error for the other tasks. Undefined: the task closed its client, and then ended well. */
export function errorOf(exit: TaskExit, hasLeft: boolean): ErrorParts | undefined {
  const { task, code: exitCode, cause, error, errorCode: code, stack, signal } = exit;
  const how = { exitCode, signal };
  if (error !== undefined && cause !== "terminated") {
    const name = /^\w+(?=: )/.exec(error)?.[0];
    const message = name === undefined ? error : error.slice(name.length + 2);
    return { name: name ?? "Error", message, code, stack, ...how };
  }
  const text = endText(exit, hasLeft);
  return text === undefined ? undefined : { name: "Error", message: `task ${task} ${text}`, ...how };
}

/** How a task ended that has thrown no error. */
function endText({ code, cause }: TaskExit, hasLeft: boolean): string | undefined {
  if (cause === "terminated") return hasLeft ? undefined : "was ended by terminate()";
  if (code !== 0) return `exited with code ${code}${unsettledText(code)}`;
  return hasLeft ? undefined : `ended with exit code 0, but did not close its client: ${NO_LOOP_TEXT}`;
}
