// Tasks that come later. `pamir run --restart` starts a task that has failed again, with a number that no other task has had. A
// variable tells each process about such tasks, since PMI-1 knows no later processes. For launch(), `maxTasks` allows later
// tasks.
import { PamiError } from "../core/error.js";
import { quote } from "./text.js";

/** Name of the variable: a Later, as JSON. */
export const LATER = "PAMIR_LATER";

/** Key of the number of tasks that have come later so far: the launcher stores the number before it starts each later task. */
export const LATER_BEGUN = "later-begun";

/** Barriers of joinBy(), in which all nodes meet. After the last barrier, later nodes can come. */
export const NODE_BARRIERS = 4;
/** Barriers in which all processes meet when they attach: the barriers of joinBy(), and the barrier of agreeOnKey(). */
export const JOIN_BARRIERS: number = NODE_BARRIERS + 1;

/** The launcher's data about tasks that come later. */
export interface Later {
  /** Tasks with which the job begins, and tasks that it has at the most. */
  readonly world: number;
  readonly most: number;
  /** A descriptor from which the agent of a node reads orders: see ProcessNodeOrder. */
  readonly news?: number | undefined;
  /** A descriptor to which the agent's process writes what later nodes need: a StartReport, as JSON. */
  readonly report?: number | undefined;
  /** If this process comes later: its rank, the nodes that have ended, and the tasks whose processes have ended for certain. */
  readonly rank?: number | undefined;
  readonly ended?: readonly number[] | undefined;
  readonly gone?: readonly number[] | undefined;
}

/** What the agent of a node hears of others. */
export type EndOrder =
  /** Another node has lost its link: the process of its first task has ended, or nothing is heard of its host. */
  | { readonly lost: number }
  /** The process of a task of another node has ended: that task does not go on without a link. */
  | { readonly gone: number };

/** What later nodes need of the nodes with which a job began. */
export interface StartReport {
  /** Nodes with which the job began, and tasks of each. */
  readonly nodes: number;
  readonly perNode: number;
  /** Of pamir's memories: a later node's must be the same. */
  readonly layoutHash: number;
  /** The job's fingerprint, which sessions state: a u32. */
  readonly random: number;
  /** The PAMIR_OPTIONS of rank 0, which hold for the job: its link among them. */
  readonly options: object;
  /** Whether `pamir top` may see the job. */
  readonly isVisible: boolean;
  /** The machine and the network namespace of all nodes with which the job began; empty: they have several. */
  readonly machine: string;
  readonly network: string;
  /** By node, later ones included; null: it has ended, or comes to this node. */
  readonly addresses: readonly (string | null)[];
}

/** Takes the data about tasks that come later from the environment, and removes the variable. @throws PAMIR_LAUNCHER */
export function takeLater(env: Record<string, string | undefined>): Later | undefined {
  const text = env[LATER];
  delete env[LATER];
  if (text === undefined) return undefined;
  try {
    const later = JSON.parse(text) as Later;
    const { world, most, news = 0, report = 0, rank = 0, ended = [], gone = [] } = later;
    if (
      [world, most, news, report, rank, ...ended, ...gone].every((value) => Number.isSafeInteger(value) && value >= 0)
    )
      return later;
  } catch {
    // The check below reports malformed text.
  }
  throw new PamiError("PAMIR_LAUNCHER", `${LATER} is ${quote(text)}, not what pamir run writes there`);
}
