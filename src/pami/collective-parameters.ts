// The parameters of collective operations.
import type { CollectiveType, OperationType } from "../collective/operations.js";
import type { Keys } from "../core/check.js";
import type { ElementType, Operation } from "../core/reduction.js";
import type { Callback } from "../core/result.js";

/** An operation of the user's. */
export interface UserOperation<View extends ArrayBufferView = ArrayBufferView> {
  /**
   * Writes `left op right` to `out`, element by element; left comes from lower ranks. The views have the class of `send`, equal
   * lengths, and whole elements, of which a call may get any number. Each view begins at a multiple of the largest power of two
   * that divides the bytes of an element, at most 8: so bytes of which `elementBytes` is a multiple of 8 may be read by a
   * `Float64Array` over `left.buffer`. `out` may be one of the others. The views are valid during the call. If it throws at a
   * member, the operation fails at all members; the error is the `cause` where it was thrown.
   */
  readonly combine: (left: View, right: View, out: View) => void;
  /** Whether `left op right` equals `right op left` (default false); the same at all members. It may be grouped in any way. */
  readonly commutative?: boolean | undefined;
  /**
   * Bytes of an element, such as a struct, that `combine` takes as a whole (default: those of the array's class, or of `type`;
   * so a byte of bytes is an element by itself). The same at all members, a multiple of the default. The vectors have whole
   * elements, and no algorithm cuts one: `16` for complex numbers in a `Float64Array`, `type.extent` for elements of a type.
   */
  readonly elementBytes?: number | undefined;
}

/** Parameters that all operations take. */
export interface CollectiveParameters {
  /** Name of an algorithm, from `algorithms()`; all members choose the same. Default: by size, members and placement. */
  readonly algorithm?: string | undefined;
  /** For `collective()`: called in a later `advance()` with `cookie` and the result. */
  readonly onDone?: Callback | undefined;
  /** The first argument of `onDone`. */
  readonly cookie?: unknown;
}

export interface BroadcastParameters<View extends ArrayBufferView = ArrayBufferView> extends CollectiveParameters {
  /** Of the root: what the others get. Of the others: where it goes; it has the same length. */
  readonly buffer: View;
  /** Rank of the root (default 0). */
  readonly root?: number | undefined;
}

/** Parameters of operations that send and receive. */
export interface ExchangeParameters<View extends ArrayBufferView = ArrayBufferView> extends CollectiveParameters {
  /** What this member gives. null, or the same bytes as `receive`: its part of `receive` (in place). */
  readonly send: View | null;
  /**
   * What this member gets: elements of the type of `send`. Where it gets nothing, the operation ignores it. A promise makes it,
   * if it is missing; not for `scatter`, `scatterv` and `alltoallv`.
   */
  readonly receive?: View | null | undefined;
}

export interface RootedParameters<View extends ArrayBufferView = ArrayBufferView> extends ExchangeParameters<View> {
  /** Rank of the root (default 0). */
  readonly root?: number | undefined;
}

export interface GathervParameters<View extends ArrayBufferView = ArrayBufferView> extends RootedParameters<View> {
  /** Elements of each member's block. Only the root needs them. */
  readonly counts?: ArrayLike<number> | undefined;
  /** Where each block begins in the root's view, in elements (default: one behind the other). Any whole number for a count of 0. */
  readonly displacements?: ArrayLike<number> | undefined;
}

export interface AllgathervParameters<View extends ArrayBufferView = ArrayBufferView> extends ExchangeParameters<View> {
  /** Elements of each member's block. */
  readonly counts: ArrayLike<number>;
  /** Where each block begins in `receive`, in elements (default: one behind the other). Any whole number for a count of 0. */
  readonly displacements?: ArrayLike<number> | undefined;
}

export interface AlltoallvParameters<View extends ArrayBufferView = ArrayBufferView> extends ExchangeParameters<View> {
  /** Elements of the block for each member. `sendDisplacements`: where it begins in `send`, in elements. */
  readonly sendCounts: ArrayLike<number>;
  /** Default: one behind the other. Any whole number for a count of 0. */
  readonly sendDisplacements?: ArrayLike<number> | undefined;
  /** Elements of the block from each member. `receiveDisplacements`: where it begins in `receive`, in elements. */
  readonly receiveCounts: ArrayLike<number>;
  /** Default: one behind the other. Any whole number for a count of 0. */
  readonly receiveDisplacements?: ArrayLike<number> | undefined;
}

export interface ReductionParameters<View extends ArrayBufferView = ArrayBufferView> extends ExchangeParameters<View> {
  /** What combines the elements. */
  readonly operation: Operation | UserOperation<View>;
  /**
   * Type of the elements; default: that of the array's class. Complex numbers and pairs have to be named. If it is named, the
   * views may also be bytes.
   */
  readonly type?: ElementType | undefined;
}

export interface ReduceParameters<View extends ArrayBufferView = ArrayBufferView> extends ReductionParameters<View> {
  /** Rank of the root, which gets the result (default 0). */
  readonly root?: number | undefined;
}

export interface ScanParameters<View extends ArrayBufferView = ArrayBufferView> extends ReductionParameters<View> {
  /** Whether a member's own elements are left out (default false). Rank 0 then gets nothing. */
  readonly exclusive?: boolean | undefined;
}

export interface ReduceScatterParameters<View extends ArrayBufferView = ArrayBufferView>
  extends ReductionParameters<View> {
  /** Elements of the result that each member gets (default: as many as any other). With `elementBytes`, those count. */
  readonly counts?: ArrayLike<number> | undefined;
}

/** Parameters of active messages of a geometry. Only their root begins them. */
export interface ActiveParameters extends CollectiveParameters {
  /** Dispatch id of the handlers: `geometry.dispatch`. Ids of a geometry are its own: 0 … 4095. */
  readonly dispatch: number;
  /** What each handler gets as `header`: a few bytes. It is copied. */
  readonly header?: ArrayBufferView | null | undefined;
}

export interface AmBroadcastParameters extends ActiveParameters {
  /** What each handler gets as `payload`. It is copied. */
  readonly payload?: ArrayBufferView | null | undefined;
}

export interface AmScatterParameters<View extends ArrayBufferView = ArrayBufferView> extends ActiveParameters {
  /** The blocks of all members, by rank. They are copied. */
  readonly send: View;
  /** Elements of each block (default: as many as any other). */
  readonly counts?: ArrayLike<number> | undefined;
}

export interface AmGatherParameters<View extends ArrayBufferView = ArrayBufferView> extends ActiveParameters {
  /** The root's own block. */
  readonly send: View;
  /** Gets the blocks of all members, by rank, as long as `send`. A promise makes it, if it is missing. */
  readonly receive?: View | undefined;
}

export interface AmReduceParameters<View extends ArrayBufferView = ArrayBufferView> extends AmGatherParameters<View> {
  /** What combines the elements, in the order of ranks. */
  readonly operation: Operation | UserOperation<View>;
  /** Type of the elements; default: that of the array's class. */
  readonly type?: ElementType | undefined;
}

/** The parameters of each type of operation. */
export interface CollectiveParametersOf<View extends ArrayBufferView = ArrayBufferView> {
  /** Of `geometry.barrier`. */
  barrier: CollectiveParameters;
  /** Of `geometry.broadcast`. */
  broadcast: BroadcastParameters<View>;
  /** Of `geometry.reduce`. */
  reduce: ReduceParameters<View>;
  /** Of `geometry.allreduce`. */
  allreduce: ReductionParameters<View>;
  /** Of `geometry.gather`. */
  gather: RootedParameters<View>;
  /** Of `geometry.gatherv`. */
  gatherv: GathervParameters<View>;
  /** Of `geometry.scatter`. */
  scatter: RootedParameters<View>;
  /** Of `geometry.scatterv`. */
  scatterv: GathervParameters<View>;
  /** Of `geometry.allgather`. */
  allgather: ExchangeParameters<View>;
  /** Of `geometry.allgatherv`. */
  allgatherv: AllgathervParameters<View>;
  /** Of `geometry.alltoall`. */
  alltoall: ExchangeParameters<View>;
  /** Of `geometry.alltoallv`. */
  alltoallv: AlltoallvParameters<View>;
  /** Of `geometry.scan`. */
  scan: ScanParameters<View>;
  /** Of `geometry.reduceScatter`. */
  reduceScatter: ReduceScatterParameters<View>;
  /** Of `geometry.amBroadcast`. */
  amBroadcast: AmBroadcastParameters;
  /** Of `geometry.amScatter`. */
  amScatter: AmScatterParameters<View>;
  /** Of `geometry.amGather`. */
  amGather: AmGatherParameters<View>;
  /** Of `geometry.amReduce`. */
  amReduce: AmReduceParameters<View>;
}

/** All that any operation takes. */
export type Given = CollectiveParameters & {
  buffer?: ArrayBufferView;
  send?: ArrayBufferView | null;
  receive?: ArrayBufferView | null;
  root?: number;
  operation?: Operation | UserOperation;
  type?: ElementType;
  exclusive?: boolean;
  counts?: ArrayLike<number>;
  displacements?: ArrayLike<number>;
  sendCounts?: ArrayLike<number>;
  sendDisplacements?: ArrayLike<number>;
  receiveCounts?: ArrayLike<number>;
  receiveDisplacements?: ArrayLike<number>;
  dispatch?: number;
  header?: ArrayBufferView | null;
  payload?: ArrayBufferView | null;
};

/** The names of what a function comes with. */
export const OPERATION_KEYS: Keys<UserOperation> = { combine: true, commutative: true, elementBytes: true };
const COMMON: Keys<CollectiveParameters> = { algorithm: true, onDone: true, cookie: true };
const EXCHANGE: Keys<ExchangeParameters> = { ...COMMON, send: true, receive: true };
const ROOTED: Keys<RootedParameters> = { ...EXCHANGE, root: true };
const VECTOR: Keys<GathervParameters> = { ...ROOTED, counts: true, displacements: true };
const REDUCTION: Keys<ReductionParameters> = { ...EXCHANGE, operation: true, type: true };
const ACTIVE: Keys<ActiveParameters> = { ...COMMON, dispatch: true, header: true };
const ACTIVE_EXCHANGE: Keys<AmGatherParameters> = { ...ACTIVE, send: true, receive: true };
/** The names of the parameters of each type. */
export const COLLECTIVE_KEYS: { readonly [Type in OperationType]: Keys<CollectiveParametersOf[Type]> } = {
  barrier: COMMON,
  broadcast: { ...COMMON, buffer: true, root: true },
  reduce: { ...REDUCTION, root: true },
  allreduce: REDUCTION,
  gather: ROOTED,
  gatherv: VECTOR,
  scatter: ROOTED,
  scatterv: VECTOR,
  allgather: EXCHANGE,
  allgatherv: { ...EXCHANGE, counts: true, displacements: true },
  alltoall: EXCHANGE,
  alltoallv: {
    ...EXCHANGE,
    sendCounts: true,
    sendDisplacements: true,
    receiveCounts: true,
    receiveDisplacements: true,
  },
  scan: { ...REDUCTION, exclusive: true },
  reduceScatter: { ...REDUCTION, counts: true },
  amBroadcast: { ...ACTIVE, payload: true },
  amScatter: { ...ACTIVE, send: true, counts: true },
  amGather: ACTIVE_EXCHANGE,
  amReduce: { ...ACTIVE_EXCHANGE, operation: true, type: true },
};

export type IsSame = (given: Given, own: Given) => boolean;

const isSameReduction: IsSame = (given, own) =>
  given.send === own.send &&
  given.receive === own.receive &&
  given.operation === own.operation &&
  given.type === own.type &&
  given.algorithm === own.algorithm;

/**
 * Whether two calls of a type have the same parameters. None with uneven blocks: their counts may have changed within. A
 * function for each type, so that V8 finds the fields of its parameters without a lookup.
 */
export const IS_SAME_CALL: { readonly [Type in CollectiveType]?: IsSame } = {
  barrier: (given, own) => given.algorithm === own.algorithm,
  broadcast: (given, own) =>
    given.buffer === own.buffer && given.root === own.root && given.algorithm === own.algorithm,
  reduce: (given, own) => isSameReduction(given, own) && given.root === own.root,
  allreduce: (given, own) =>
    given.send === own.send &&
    given.receive === own.receive &&
    given.operation === own.operation &&
    given.type === own.type &&
    given.algorithm === own.algorithm,
  gather: isSameRooted(),
  scatter: isSameRooted(),
  allgather: isSameExchange(),
  alltoall: isSameExchange(),
  scan: (given, own) => isSameReduction(given, own) && given.exclusive === own.exclusive,
  reduceScatter: (given, own) => isSameReduction(given, own) && given.counts === undefined && own.counts === undefined,
};

function isSameExchange(): IsSame {
  return (given, own) => given.send === own.send && given.receive === own.receive && given.algorithm === own.algorithm;
}

function isSameRooted(): IsSame {
  return (given, own) =>
    given.send === own.send &&
    given.receive === own.receive &&
    given.root === own.root &&
    given.algorithm === own.algorithm;
}
