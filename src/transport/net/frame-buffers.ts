// Buffers for the bytes of frames. A fresh one of 64 KiB costs 1 to 4 µs, and more where its pages are touched for the first
// time. One that is used again costs nothing, and is in the cache.
import { SLICE_BYTES } from "../../../assembly/layout.js";

/** Bytes of a short buffer: egress fills a frame with so many bytes of records, and one record has a prefix more. */
export const BUFFER_BYTES = 66_560;
/** Bytes of a long one, for a slice of a transfer and what goes with it. A fresh one costs 60 µs, and garbage besides. */
export const LONG_BUFFER_BYTES = SLICE_BYTES + 8192;
/** Buffers of each kind that are kept: long ones for the puts that one FIFO sends ahead. */
const SPARE_MAX = 16;

export class FrameBuffers {
  readonly #short: Uint8Array[] = [];
  readonly #long: Uint8Array[] = [];
  readonly #own = new WeakSet<ArrayBufferLike>();

  /** A buffer of at least so many bytes, which are not cleared. */
  take(bytes: number): Uint8Array {
    if (bytes > LONG_BUFFER_BYTES) return new Uint8Array(bytes);
    const isShort = bytes <= BUFFER_BYTES;
    const spare = (isShort ? this.#short : this.#long).pop();
    if (spare !== undefined) return spare;
    const buffer = new Uint8Array(isShort ? BUFFER_BYTES : LONG_BUFFER_BYTES);
    this.#own.add(buffer.buffer);
    return buffer;
  }

  /** Takes back what take() gave, or a part of it: nothing refers to it any more. Other bytes are left alone. */
  give({ buffer }: ArrayBufferView): void {
    const spare = buffer.byteLength === BUFFER_BYTES ? this.#short : this.#long;
    if (spare.length < SPARE_MAX && this.#own.has(buffer)) spare.push(new Uint8Array(buffer));
  }
}

/** Bytes of runs together. */
export function lengthOf(runs: readonly Uint8Array[]): number {
  return runs.reduce((sum, { length }) => sum + length, 0);
}
