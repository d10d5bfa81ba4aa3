// Tells every five seconds which processes a job still waits for.
import type { PmiServer } from "../../bootstrap/pmi/pmi-server.js";
import { runsOf } from "../../bootstrap/text.js";
import { every } from "../../support/timers.js";
import { say } from "../usage.js";

const REPORT_MS = 5000;

/** Writes lines to standard error. @param what is awaited, or undefined at times when nothing is @returns what ends it */
export function reportWaits(what: () => string | undefined): () => void {
  let waited = 0;
  return every(REPORT_MS, () => {
    const text = what();
    waited = text === undefined ? 0 : waited + REPORT_MS;
    if (text !== undefined) say(`pamir run: for ${waited / 1000} s, ${text}`);
  });
}

/** What is awaited of tasks: some attach or have attached, others run and have not. Undefined if nothing is. */
export function missingTasks(
  { silent, absent }: Pick<PmiServer, "silent" | "absent">,
  running: ReadonlySet<number>,
  size: number,
): string | undefined {
  // A task in a barrier waits for all that are not, also for those that have stopped within attach().
  const awaited = absent.length < size ? absent : silent;
  const missing = awaited.filter((task) => running.has(task));
  if (missing.length === 0 || awaited.length === size) return undefined;
  return `the others wait for ${tasksText(missing)} to attach`;
}

/** "task 1", "tasks 1, 3-5". */
export function tasksText(tasks: readonly number[]): string {
  return `${tasks.length === 1 ? "task" : "tasks"} ${runsOf(tasks).replaceAll(",", ", ")}`;
}
