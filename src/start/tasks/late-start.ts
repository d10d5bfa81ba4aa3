// Warns of tasks that have not attached 10 s after their start: calls to them wait, and fail with no error.
import { after } from "../../support/timers.js";

/** Milliseconds after its start in which a task attaches. A cold start on a busy machine takes 1 s. */
const LATE_MS = 10_000;

/** Most tasks that a text names. */
const SHOWN_MAX = 16;

/**
 * Calls `tell` once, LATE_MS from now, with a line about the tasks that have not attached by then; not if all have.
 * @param isUnattached whether a task runs, and has not attached
 * @param isHeld whether the wait keeps a thread of Node running
 */
export function watchStart(
  tasks: readonly number[],
  isUnattached: (task: number) => boolean,
  tell: (text: string) => void,
  isHeld = false,
): void {
  after(
    LATE_MS,
    () => {
      const late = tasks.filter(isUnattached);
      if (late.length > 0) tell(lateText(late));
    },
    isHeld,
  );
}

function lateText(tasks: readonly number[]): string {
  const shown = tasks.slice(0, SHOWN_MAX).join(", ");
  const more = tasks.length > SHOWN_MAX ? ` and ${tasks.length - SHOWN_MAX} more` : "";
  const [late, modules] =
    tasks.length === 1 ? [`task ${shown} has`, "its module"] : [`tasks ${shown}${more} have`, "their modules"];
  const why = `${modules} may not call attach(), may be loading, or may wait in a top-level await`;
  return `pamir: ${late} not attached ${LATE_MS / 1000} s after the start: ${why}`;
}
