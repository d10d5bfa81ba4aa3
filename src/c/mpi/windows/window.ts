// A window: for each rank, the memory that others may read and write, and what is under way to it from here.
import type { Endpoint, Geometry, MemRegion, RegionHandle } from "../../../index.js";
import type { RankGroup } from "../../../mpi/engine.js";
import { Epochs } from "./epochs.js";

/** The memory of one rank. */
export interface RankMemory {
  /** Endpoint of the task that owns the region: that of another rank, if the window is shared. */
  readonly owner: Endpoint;
  readonly region: RegionHandle;
  /** Addresses, in the memory of the rank's node: of the region's first byte, and of the window's. */
  readonly regionBase: number;
  readonly base: number;
  /** Bytes of the window. */
  readonly size: number;
  /** Bytes of a displacement of 1. */
  readonly unit: number;
  /** Whether this task can read and write the memory itself. */
  readonly isLocal: boolean;
  /** The region with the rank's lock words. */
  readonly locks: RegionHandle;
}

/** What a window is made of. */
export interface WindowParts {
  readonly number: number;
  readonly rank: number;
  readonly endpoints: readonly Endpoint[];
  readonly flavor: number;
  /** undefined: this rank is alone. */
  readonly geometry: Geometry | undefined;
  readonly parts: readonly RankMemory[];
  /** This rank's lock words. */
  readonly locks: MemRegion;
  /** Memory that the window has made. */
  readonly own: MemRegion | undefined;
}

export class Window implements RankGroup {
  /** The same at all ranks of the window. No other window of any of these ranks has it. */
  readonly number: number;
  readonly rank: number;
  readonly endpoints: readonly Endpoint[];
  readonly flavor: number;
  readonly geometry: Geometry | undefined;
  readonly parts: readonly RankMemory[];
  readonly locks: MemRegion;
  readonly own: MemRegion | undefined;
  readonly epochs: Epochs;
  /** Operations to each rank that are not over. */
  readonly pending: Int32Array;
  /** Ranks of which an operation has failed since the last look. */
  readonly failed = new Set<number>();
  /** Messages of MPI_Win_post() and MPI_Win_complete() that have come from each rank, and that no call has taken. */
  readonly posts: Int32Array;
  readonly completes: Int32Array;
  /** Of a dynamic window: pieces of memory, by their addresses. */
  readonly attached = new Map<number, number>();
  readonly attributes = new Map<number, number>();
  /** Hints of the call that made the window, and of MPI_Win_set_info(). */
  readonly info = new Map<string, string>();
  errorHandler: number;
  name = "";

  constructor(made: WindowParts, errorHandler: number) {
    const { endpoints } = made;
    this.number = made.number;
    this.rank = made.rank;
    this.endpoints = endpoints;
    this.flavor = made.flavor;
    this.geometry = made.geometry;
    this.parts = made.parts;
    this.locks = made.locks;
    this.own = made.own;
    this.errorHandler = errorHandler;
    this.epochs = new Epochs(endpoints.length);
    this.pending = new Int32Array(endpoints.length);
    this.posts = new Int32Array(endpoints.length);
    this.completes = new Int32Array(endpoints.length);
  }

  get size(): number {
    return this.endpoints.length;
  }
}
