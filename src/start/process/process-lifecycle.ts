// The tasks of a process that launch() has started, on its main thread: reports their ends by the channel, and ends with the
// launching process.
import type { TaskErrors } from "../../core/task-errors.js";
import { serveInput } from "../output/input.js";
import { failureText, isFailure } from "../tasks/failure.js";
import { Lifecycle, type LifecycleHost } from "../tasks/lifecycle.js";
import type { ProcessReport, ProcessSetup } from "./task-process.js";

/** @param setup of this process @param errors where the errors of dead tasks are written */
export function processLifecycle(
  { orders, isDetached }: Pick<ProcessSetup, "orders" | "isDetached">,
  errors: Pick<TaskErrors, "write"> | undefined,
  host: Omit<LifecycleHost, "ended" | "stays">,
): Lifecycle {
  const tasks = orders.bootstraps.map(({ task }) => task);
  process.title = `pamir: ${tasks.map((task) => `task ${task}`).join(", ")}`;
  let left = tasks.length;
  for (const { input } of orders.bootstraps) if (input !== undefined) serveInput(input);
  // A terminal sends SIGINT to the whole job. As with threads, the launching process decides what becomes of the tasks.
  process.on("SIGINT", () => {});
  // The launching process has ended, maybe before this process asked for that event.
  process.on("disconnect", () => {
    if (left > 0 && !isDetached) process.kill(process.pid, "SIGKILL");
  });
  // The launching process also decides what becomes of the tasks once their output has no reader.
  for (const unwritable of ["stdout", "stderr"] as const) {
    process[unwritable].on("error", () => {
      if (process.connected) process.send?.({ unwritable } satisfies ProcessReport, () => {});
      else if (left > 0) process.exit(1);
    });
  }
  return new Lifecycle(errors, {
    ...host,
    // No task of such a process is adopted.
    stays: () => {},
    ended: (ended, error, shown) => {
      const isLast = --left === 0;
      if (!process.connected) {
        // The launching process, which prints failures, has ended.
        if (isDetached && isFailure(ended)) process.stderr.write(`${failureText(ended, "report", shown)}\n`);
        return;
      }
      process.send?.({ ended, error, shown } satisfies ProcessReport, () => {
        if (isLast && process.connected) process.disconnect?.();
      });
    },
  });
}
