// A region as its owner holds it, and the handle that names it in other tasks.
import { NONE } from "../../assembly/layout.js";

/**
 * Names a region in every task of the job: generation × 2^20 + index, a number of up to 52 bits. Send it as a f64.
 */
export type RegionHandle = number;

const HANDLE_INDEX_SIZE = 2 ** 20;
const HANDLE_LIMIT = HANDLE_INDEX_SIZE * 2 ** 32;

/** Index of the entry that a handle names, and its generation; NONE for what is no handle. */
export function indexOf(handle: RegionHandle): number {
  return Number.isInteger(handle) && handle >= 0 && handle < HANDLE_LIMIT ? handle % HANDLE_INDEX_SIZE : NONE;
}

export function generationOf(handle: RegionHandle): number {
  return Math.floor(handle / HANDLE_INDEX_SIZE) >>> 0;
}

/** What is known of an open region by itself and its table. */
export interface RegionState {
  closed: boolean;
  /** Whether others may be at it: its handle was read, or it was named in a one-sided operation. */
  exposed: boolean;
}

/** A piece of the job's memory that its owner reads and writes as it likes, and others by one-sided operations. */
export class MemRegion {
  /**
   * The region's bytes. After close() they may show anything. Their `fill()` is as fast as that of ordinary memory; that of
   * other views of shared memory, their `subarray()` too, V8 does byte by byte.
   */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** Bytes of the region. */
  readonly length: number;
  /** @internal */
  readonly index: number;
  /** @internal */
  readonly generation: number;
  readonly #close: (region: MemRegion) => void;
  readonly #state: RegionState;

  /** @internal */
  constructor(
    bytes: Uint8Array<SharedArrayBuffer>,
    index: number,
    generation: number,
    close: (region: MemRegion) => void,
    state: RegionState = { closed: false, exposed: true },
  ) {
    this.bytes = bytes;
    this.length = bytes.length;
    this.index = index;
    this.generation = generation;
    this.#state = state;
    this.#close = close;
  }

  /** For other tasks: send it to them in a message. A region whose handle was read can't be given away (`transfer`). */
  get handle(): RegionHandle {
    this.#state.exposed = true;
    return this.generation * HANDLE_INDEX_SIZE + this.index;
  }

  /** @internal A one-sided operation names it: an engine may be at it. */
  expose(): void {
    this.#state.exposed = true;
  }

  /** Whether close() has been called, or it was given away. */
  get closed(): boolean {
    return this.#state.closed;
  }

  /**
   * Gives the region back: from now on its handle is stale everywhere. Its bytes are used again once every context of the
   * job has passed an `advance()` that began after this, and this task then hears of a change (of another region, or
   * task), or needs memory. A second call does nothing.
   */
  close(): void {
    if (this.#state.closed) return;
    this.#state.closed = true;
    this.#close(this);
  }

  /** close(), at the end of a block that says `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}
