// Tasks that come later. `pamir run --restart` starts a task that has failed again, with a number that no other task has had.
// It tells each process about them by a variable, since PMI-1 knows no such processes. launch() has `maxTasks`.
import { PamiError } from "../core/error.js";
import { quote } from "./text.js";

/** Name of the variable: a Later, as JSON. */
export const LATER = "PAMIR_LATER";

/** Key of the number of tasks that have come later so far: the launcher stores it before it starts each one. */
export const LATER_BEGUN = "later-begun";

/** Barriers of joinBy(), in which all nodes meet. Behind the last one, others can come. */
export const NODE_BARRIERS = 4;
/** Barriers in which all processes meet when they attach: also that of agreeOnKey(). */
export const JOIN_BARRIERS: number = NODE_BARRIERS + 1;

/** What a launcher says of tasks that come later. */
export interface Later {
  /** Tasks with which the job begins, and tasks that it has at the most. */
  readonly world: number;
  readonly most: number;
  /** A descriptor from which the agent of a node reads orders: see LinkAgentOrder. */
  readonly news?: number | undefined;
  /** If this process comes later: its rank, the nodes that have ended, and the tasks whose processes have ended for certain. */
  readonly rank?: number | undefined;
  readonly ended?: readonly number[] | undefined;
  readonly gone?: readonly number[] | undefined;
}

/** What the environment says of tasks that come later. The variable is removed. @throws PAMIR_LAUNCHER */
export function takeLater(env: Record<string, string | undefined>): Later | undefined {
  const text = env[LATER];
  delete env[LATER];
  if (text === undefined) return undefined;
  try {
    const later = JSON.parse(text) as Later;
    const { world, most, news = 0, rank = 0, ended = [], gone = [] } = later;
    if ([world, most, news, rank, ...ended, ...gone].every((value) => Number.isSafeInteger(value) && value >= 0))
      return later;
  } catch {
    // It is told below.
  }
  throw new PamiError("PAMIR_LAUNCHER", `${LATER} is ${quote(text)}, not what pamir run writes there`);
}
