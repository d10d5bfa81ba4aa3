// The operations of geometries, a row each. All differences between operations follow from the rows: their numbers in messages,
// the checks of parameters, the array that a promise makes, their methods, and the table of docs/geometries.md.

/** A member's data on one side: nothing, a vector as long as every other member's, a block, or a block for each member. */
type Side = "" | "vector" | "block" | "blocks";

export interface OperationRow {
  /** The data that a member gives. */
  readonly gives: Side;
  /** The data that a member gets; for an active message, the data that its root gets from the handlers. */
  readonly gets: Side;
  /** The side that only the root has; empty: there is no root. */
  readonly root: "" | "gives" | "gets";
  /** The parameter that is null in place. */
  readonly inPlace: "" | "send" | "receive";
  /** Whether blocks have lengths of their own, by counts. */
  readonly isUneven: boolean;
  readonly isReduction: boolean;
}

const row = (
  gives: Side,
  gets: Side,
  root: OperationRow["root"] = "",
  inPlace: OperationRow["inPlace"] = "",
  isReduction = false,
): OperationRow => ({ gives, gets, root, inPlace, isReduction, isUneven: false });
const uneven = (even: OperationRow): OperationRow => ({ ...even, isUneven: true });
const reduction = row("vector", "vector", "", "send", true);
const gather = row("block", "blocks", "gets", "send");
const scatter = row("blocks", "block", "gives", "receive");
const allgather = row("block", "blocks", "", "send");
const alltoall = row("blocks", "blocks", "", "send");

/** Operations that all members begin, in the order of their numbers in messages. */
const COLLECTIVE_ROWS = {
  barrier: row("", ""),
  broadcast: row("vector", "vector", "gives"),
  reduce: row("vector", "vector", "gets", "send", true),
  allreduce: reduction,
  gather,
  gatherv: uneven(gather),
  scatter,
  scatterv: uneven(scatter),
  allgather,
  allgatherv: uneven(allgather),
  alltoall,
  alltoallv: uneven(alltoall),
  scan: reduction,
  reduceScatter: row("blocks", "block", "", "send", true),
};

/** Operations that one member begins alone, as their root, in the order of their numbers in messages. */
const ACTIVE_ROWS = {
  amBroadcast: row("vector", ""),
  amScatter: row("blocks", ""),
  amGather: row("block", "blocks"),
  amReduce: row("vector", "vector", "", "", true),
};

/** The types of collective operations that all members begin. */
export type CollectiveType = keyof typeof COLLECTIVE_ROWS;
/** The calls that begin an active message. */
export type ActiveType = keyof typeof ACTIVE_ROWS;
export type OperationType = CollectiveType | ActiveType;

export const COLLECTIVE_TYPES = Object.keys(COLLECTIVE_ROWS) as readonly CollectiveType[];
export const ACTIVE_TYPES = Object.keys(ACTIVE_ROWS) as readonly ActiveType[];
export const OPERATION_ROWS: Readonly<Record<OperationType, OperationRow>> = { ...COLLECTIVE_ROWS, ...ACTIVE_ROWS };
