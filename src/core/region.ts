// A region of the job's memory as its owner sees it, and the handle that names it in other tasks.
import { NONE } from "../../assembly/layout.js";
import { markCopy, PamiError, show } from "./error.js";
import { type PayloadView, viewOf } from "./message/view.js";

/**
 * Names a region in every task of the job: generation × 2^20 + index, a number of up to 52 bits. Send it as an f64.
 */
export type RegionHandle = number;

const HANDLE_INDEX_SIZE = 2 ** 20;
const HANDLE_LIMIT = HANDLE_INDEX_SIZE * 2 ** 32;

/** Returns the index of the region entry that a handle names; NONE if the value is not a handle. */
export function indexOf(handle: RegionHandle): number {
  return Number.isInteger(handle) && handle >= 0 && handle < HANDLE_LIMIT ? handle % HANDLE_INDEX_SIZE : NONE;
}

export function generationOf(handle: RegionHandle): number {
  return Math.floor(handle / HANDLE_INDEX_SIZE) >>> 0;
}

/** State that a region shares with its table. */
export interface RegionState {
  closed: boolean;
  /** Whether others may use the region: its handle was read, or a one-sided operation named it. */
  exposed: boolean;
  /** Collective operations under way that have a buffer in it: close() takes effect at the end of the last one. */
  users: number;
  /** Closes the region, which close() was called for while it had users. */
  closeLater: (() => void) | undefined;
}

/** State of a region that is open. */
export function openState(exposed: boolean): RegionState {
  return { closed: false, exposed, users: 0, closeLater: undefined };
}

/** A collective operation with a buffer in the region is over. */
export function letGo(state: RegionState): void {
  if (--state.users === 0) state.closeLater?.();
}

/** A part of the job's memory. Its owner reads and writes it directly; other tasks use one-sided operations. */
export class MemRegion {
  /**
   * The region's bytes. After close() their contents are undefined. Their `fill()` is as fast as on ordinary memory. On other
   * views of shared memory, including `subarray()` of these bytes, V8 fills byte by byte.
   */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** Length of the region in bytes. */
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
    state: RegionState = openState(true),
  ) {
    this.bytes = bytes;
    this.length = bytes.length;
    this.index = index;
    this.generation = generation;
    this.#state = state;
    this.#close = close;
  }

  /** The region's name for other tasks; send it in a message. Once it was read, the region can't be given away (`transfer`). */
  get handle(): RegionHandle {
    this.#state.exposed = true;
    return this.generation * HANDLE_INDEX_SIZE + this.index;
  }

  /**
   * Returns a view of the region's bytes in place, as a typed array or a DataView: `region.view(Float64Array)`. A region begins
   * at a multiple of 8 bytes in its buffer, so it is aligned for every type. After close() the view's contents are undefined.
   * @throws PAMIR_INVAL if the region is not a whole number of elements; PAMIR_CLOSED
   */
  view<View extends ArrayBufferView>(type: PayloadView<View>): View {
    if (this.closed) throw new PamiError("PAMIR_CLOSED", "view() of a region that is closed");
    const { buffer, byteOffset, length } = this.bytes;
    return viewOf(type, buffer, byteOffset, length);
  }

  /** @internal Marks the region as used by a one-sided operation: an engine may access it. */
  expose(): void {
    this.#state.exposed = true;
  }

  /** Whether close() has been called, or the region was given away. */
  get closed(): boolean {
    return this.#state.closed || this.#state.closeLater !== undefined;
  }

  /**
   * Gives the region back. Its handle is stale everywhere from now on. The memory can be used again once every context of
   * the job has passed an `advance()` that began after this. This task then frees it when it needs memory, or at the next
   * notice of a change (of a region or task). A collective operation of this task with a buffer in the region keeps it, and
   * its handle, until that is over. A second call does nothing.
   */
  close(): void {
    if (this.closed) return;
    const state = this.#state;
    const end = (): void => {
      state.closed = true;
      this.#close(this);
    };
    if (state.users > 0) state.closeLater = end;
    else end();
  }

  /** Calls close() at the end of a block with `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

markCopy(MemRegion);

/** Throws unless a value is a region of the job with this memory. @throws PAMIR_INVAL */
export function checkOwn(name: string, region: unknown, { buffer }: ArrayBufferView): asserts region is MemRegion {
  if (!(region instanceof MemRegion)) throw new PamiError("PAMIR_INVAL", `${name} is ${show(region)}, not a MemRegion`);
  if (region.bytes.buffer !== buffer) throw new PamiError("PAMIR_INVAL", `${name} is a region of another job`);
}
