// Copying bytes between ordinary and shared memory.

/**
 * Length from which Node's native copy wins over TypedArray.set, which V8 does word by word where one side is shared:
 * 1 KiB 50 against 42 ns, 4 KiB 69 against 171, 64 KiB 628 against 2042 (Node 20, Zen 5).
 */
const NATIVE_BYTES = 1400;
/**
 * The same where the two places differ modulo 8, so that V8 copies byte by byte: 256 B 87 against 59 ns, 1 KiB 301 against 67.
 * To ask for `byteOffset` takes 3 ns in V8s that have `Array.fromAsync` (Node 22), but 12 in Node 20, where it is not asked.
 */
const UNEVEN_BYTES = "fromAsync" in Array ? 384 : NATIVE_BYTES;

interface BufferClass {
  prototype: { fill: (this: Uint8Array, ...args: unknown[]) => unknown };
  allocUnsafeSlow?(count: number): Uint8Array<ArrayBuffer>;
}

const { Buffer } = globalThis as { Buffer?: BufferClass };

/** Node's `fill` with a view as long as the range is one memcpy, on any Uint8Array; nothing elsewhere. */
const fill = Buffer?.prototype.fill;

/** Bytes from which memory that is not zeroed is worth a second view of it: 256 KiB 27 against 7 µs. */
const UNZEROED_BYTES = 8192;

/** Copies all of `source` to `target` from `offset` on, where it must fit. Allocates nothing. */
export function copyInto(target: Uint8Array, offset: number, source: Uint8Array): void {
  const { length } = source;
  const isLong =
    length >= NATIVE_BYTES || (length >= UNEVEN_BYTES && ((target.byteOffset + offset - source.byteOffset) & 7) !== 0);
  if (isLong && fill !== undefined) fill.call(target, source, offset, offset + length);
  else target.set(source, offset);
}

/** A copy of bytes, which may be shared memory, in an ArrayBuffer of its own. */
export function copyOf(source: Uint8Array): Uint8Array<ArrayBuffer> {
  const { length } = source;
  const unzeroed = length < UNZEROED_BYTES ? undefined : Buffer?.allocUnsafeSlow?.(length).buffer;
  // A host may give a part of a larger one.
  const copy = unzeroed?.byteLength === length ? new Uint8Array(unzeroed) : new Uint8Array(length);
  copyInto(copy, 0, source);
  return copy;
}

/**
 * As copyInto(), into memory of the user's, whose buffer may have been detached or shrunk since it was given.
 * @returns false: the bytes have no place there any more, and nothing was copied
 */
export function copyIntoIfThere(target: Uint8Array, offset: number, source: Uint8Array): boolean {
  // By `byteLength`: see wasCut().
  if (offset + source.length > target.byteLength) return false;
  copyInto(target, offset, source);
  return true;
}

/**
 * Whether the buffer of a view that had so many bytes was detached or shrunk since. By `byteLength`: Node 20 gives
 * the former `length` of a detached view in optimized code that resizable buffers have gone through too.
 */
export function wasCut(view: ArrayBufferView, bytes: number): boolean {
  return view.byteLength !== bytes;
}

/** Whether a buffer is detached: no view of it has bytes, and none can be made. */
export function isDetached(buffer: ArrayBufferLike): boolean {
  if (buffer.byteLength > 0) return false;
  try {
    return new Uint8Array(buffer).length > 0;
  } catch {
    return true;
  }
}
