// Buffers for the bytes of frames. A fresh one of 64 KiB costs 1 to 4 µs, and more where its pages are touched for the first
// time. One that is used again costs nothing, and is in the cache.

/** Bytes of a buffer that is kept: egress fills a frame with so many bytes of records, and one record has a prefix more. */
export const BUFFER_BYTES = 66_560;
/** Buffers that are kept. */
const SPARE_MAX = 16;

export class FrameBuffers {
  readonly #spare: Uint8Array[] = [];
  readonly #own = new WeakSet<ArrayBufferLike>();

  /** A buffer of at least so many bytes, which are not cleared. */
  take(bytes: number): Uint8Array {
    if (bytes > BUFFER_BYTES) return new Uint8Array(bytes);
    const spare = this.#spare.pop();
    if (spare !== undefined) return spare;
    const buffer = new Uint8Array(BUFFER_BYTES);
    this.#own.add(buffer.buffer);
    return buffer;
  }

  /** Takes back what take() gave, or a part of it: nothing refers to it any more. Other bytes are left alone. */
  give({ buffer }: Uint8Array): void {
    if (this.#spare.length < SPARE_MAX && this.#own.has(buffer)) this.#spare.push(new Uint8Array(buffer));
  }
}

/** Bytes of runs together. */
export function lengthOf(runs: readonly Uint8Array[]): number {
  return runs.reduce((sum, { length }) => sum + length, 0);
}
