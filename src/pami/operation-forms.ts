// The operations of geometries as methods: geometry.ts defines them from the rows of collective/operations.ts.
import type { Result } from "../core/result.js";
import type {
  AllgathervParameters,
  AlltoallvParameters,
  AmBroadcastParameters,
  AmGatherParameters,
  AmReduceParameters,
  AmScatterParameters,
  BroadcastParameters,
  ExchangeParameters,
  GathervParameters,
  ReduceParameters,
  ReduceScatterParameters,
  ReductionParameters,
  RootedParameters,
  ScanParameters,
} from "./collective-parameters.js";
import type { ProgressOptions, WaitOptions } from "./waits.js";

/** Each operation as a promise, and as a call that blocks the thread. */
export interface OperationForms {
  /** Copies the root's buffer to those of all members. Resolves with `buffer`. */
  broadcast<View extends ArrayBufferView>(
    parameters: BroadcastParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As broadcast(), but blocks the thread. @returns as barrierSync() */
  broadcastSync(parameters: BroadcastParameters, options?: WaitOptions): Result;

  /** Reduces the elements of all members, in the order of ranks; the root gets the result. Resolves with it, or undefined. */
  reduce<View extends ArrayBufferView>(
    parameters: ReduceParameters<View>,
    options?: ProgressOptions,
  ): Promise<View | undefined>;
  /** As reduce(), but blocks the thread. @returns as barrierSync() */
  reduceSync(parameters: ReduceParameters, options?: WaitOptions): Result;

  /**
   * As reduce(), and all members get the result. The order in which elements are combined depends on the number of members
   * alone, so a sum of floating-point numbers has the same bits in every run, and wherever the members are.
   */
  allreduce<View extends ArrayBufferView>(
    parameters: ReductionParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As allreduce(), but blocks the thread. @returns as barrierSync() */
  allreduceSync(parameters: ReductionParameters, options?: WaitOptions): Result;

  /** Collects a block from each member at the root, in the order of ranks. Resolves with them there, else with undefined. */
  gather<View extends ArrayBufferView>(
    parameters: RootedParameters<View>,
    options?: ProgressOptions,
  ): Promise<View | undefined>;
  /** As gather(), but blocks the thread. @returns as barrierSync() */
  gatherSync(parameters: RootedParameters, options?: WaitOptions): Result;

  /** As gather(), with blocks of different lengths. */
  gatherv<View extends ArrayBufferView>(
    parameters: GathervParameters<View>,
    options?: ProgressOptions,
  ): Promise<View | undefined>;
  /** As gatherv(), but blocks the thread. @returns as barrierSync() */
  gathervSync(parameters: GathervParameters, options?: WaitOptions): Result;

  /** Gives each member its block of the root's `send`. `receive` of the root may be null: its block stays where it is. */
  scatter<View extends ArrayBufferView>(parameters: RootedParameters<View>, options?: ProgressOptions): Promise<View>;
  /** As scatter(), but blocks the thread. @returns as barrierSync() */
  scatterSync(parameters: RootedParameters, options?: WaitOptions): Result;

  /** As scatter(), with blocks of different lengths. The root gives `counts` and `displacements`. */
  scatterv<View extends ArrayBufferView>(parameters: GathervParameters<View>, options?: ProgressOptions): Promise<View>;
  /** As scatterv(), but blocks the thread. @returns as barrierSync() */
  scattervSync(parameters: GathervParameters, options?: WaitOptions): Result;

  /** As gather(), and all members get the blocks. */
  allgather<View extends ArrayBufferView>(
    parameters: ExchangeParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As allgather(), but blocks the thread. @returns as barrierSync() */
  allgatherSync(parameters: ExchangeParameters, options?: WaitOptions): Result;

  /** As allgather(), with blocks of different lengths. */
  allgatherv<View extends ArrayBufferView>(
    parameters: AllgathervParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As allgatherv(), but blocks the thread. @returns as barrierSync() */
  allgathervSync(parameters: AllgathervParameters, options?: WaitOptions): Result;

  /** Each member gives each one a block. */
  alltoall<View extends ArrayBufferView>(
    parameters: ExchangeParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As alltoall(), but blocks the thread. @returns as barrierSync() */
  alltoallSync(parameters: ExchangeParameters, options?: WaitOptions): Result;

  /** As alltoall(), with blocks of different lengths. */
  alltoallv<View extends ArrayBufferView>(
    parameters: AlltoallvParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As alltoallv(), but blocks the thread. @returns as barrierSync() */
  alltoallvSync(parameters: AlltoallvParameters, options?: WaitOptions): Result;

  /** Each member gets the reduction of the elements of all members up to it. */
  scan<View extends ArrayBufferView>(parameters: ScanParameters<View>, options?: ProgressOptions): Promise<View>;
  /** As scan(), but blocks the thread. @returns as barrierSync() */
  scanSync(parameters: ScanParameters, options?: WaitOptions): Result;

  /** Reduces, and gives each member a part of the result. */
  reduceScatter<View extends ArrayBufferView>(
    parameters: ReduceScatterParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As reduceScatter(), but blocks the thread. @returns as barrierSync() */
  reduceScatterSync(parameters: ReduceScatterParameters, options?: WaitOptions): Result;

  /**
   * Calls a handler at each other member, with the same bytes. The others do not begin anything. Resolves once the bytes have
   * left this member, which may be before any handler runs.
   * @throws PAMIR_INVAL, PAMIR_CLOSED, PAMIR_SHUTDOWN (a member to which they go has ended); as `progress()`
   */
  amBroadcast(parameters: AmBroadcastParameters, options?: ProgressOptions): Promise<void>;
  /** As amBroadcast(), but blocks the thread. @returns as barrierSync() */
  amBroadcastSync(parameters: AmBroadcastParameters, options?: WaitOptions): Result;

  /** Calls a handler at each other member, with its block. Resolves as amBroadcast(). @throws also PAMIR_BOUNDS */
  amScatter(parameters: AmScatterParameters, options?: ProgressOptions): Promise<void>;
  /** As amScatter(), but blocks the thread. @returns as barrierSync() */
  amScatterSync(parameters: AmScatterParameters, options?: WaitOptions): Result;

  /**
   * Calls a handler at each other member, and resolves with what they return, by rank.
   * @throws PAMIR_COLLECTIVE (a handler threw, or returned a block of another length), PAMIR_SHUTDOWN, PAMIR_INVAL,
   *   PAMIR_NO_MEMORY (a member drops messages without a handler); as `progress()`
   */
  amGather<View extends ArrayBufferView>(
    parameters: AmGatherParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As amGather(), but blocks the thread. @returns as barrierSync() */
  amGatherSync(parameters: AmGatherParameters, options?: WaitOptions): Result;

  /**
   * Calls a handler at each other member, and resolves with the reduction of what they return, in the order of ranks.
   * @throws as amGather()
   */
  amReduce<View extends ArrayBufferView>(
    parameters: AmReduceParameters<View>,
    options?: ProgressOptions,
  ): Promise<View>;
  /** As amReduce(), but blocks the thread. @returns as barrierSync() */
  amReduceSync(parameters: AmReduceParameters, options?: WaitOptions): Result;
}
