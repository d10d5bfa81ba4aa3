// Buffers for the bytes of frames. A fresh buffer of 64 KiB costs 1 to 4 µs, and more when its pages are touched for the first
// time. A reused buffer costs nothing, and is in the cache.
import { SLICE_BYTES } from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import { copyInto } from "../../support/copy.js";

/** Bytes of a short buffer: so many bytes of records as egress puts into a frame, and the prefix of one more record. */
export const BUFFER_BYTES = 66_560;
/**
 * Bytes of a long buffer, for a slice of a transfer and the frame's other fields. A fresh long buffer costs 60 µs, and garbage
 * besides.
 */
export const LONG_BUFFER_BYTES = SLICE_BYTES + 8192;
/** Bytes of each kind that are kept: as many as may be on their way for a pair of contexts, or are sent ahead for a FIFO. */
const SPARE_BYTES = 4_194_304;

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

  /** Takes back a buffer of take(), or a part of it, to which nothing refers any more. Other bytes are left alone. */
  give({ buffer }: ArrayBufferView): void {
    const spare = buffer.byteLength === BUFFER_BYTES ? this.#short : this.#long;
    if (spare.length * buffer.byteLength < SPARE_BYTES && this.#own.has(buffer)) spare.push(new Uint8Array(buffer));
  }
}

/** The memory in which the bytes of a frame are put together, until it is sent. */
export class FrameScratch {
  #bytes = new Uint8Array(0);

  /** Memory for a frame, in place of the last frame's memory; not cleared. Its buffer has whole words. */
  take(bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes > this.#bytes.length) this.#bytes = new Uint8Array(alignUp(Math.max(bytes, BUFFER_BYTES), 4));
    return this.#bytes.subarray(0, bytes);
  }

  /** Joins runs of bytes. A single run is returned as it is. */
  join(runs: readonly Uint8Array[]): Uint8Array {
    if (runs.length === 1) return runs[0] as Uint8Array;
    const bytes = this.take(runs.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const run of runs) {
      copyInto(bytes, at, run);
      at += run.length;
    }
    return bytes;
  }
}
