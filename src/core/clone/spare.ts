// Memory of large ArrayBuffers that a program has given back, for those of later values. New memory takes a page fault for
// each 4 KiB, and work of the garbage collector: a call with 1 MiB of bytes took 700 us, and 100 with memory of this kind.
import { copyInto, copyOf, isDetached } from "../../support/copy.js";
import { PamiError, show } from "../error.js";

/** Least bytes of an ArrayBuffer that is kept, and most of all that a thread keeps. */
const BYTES_MIN = 16_384;
const KEPT_MAX = 2 ** 26;

/** By their bytes. */
const spare = new Map<number, ArrayBuffer[]>();
let kept = 0;

/**
 * Gives the memory of an ArrayBuffer back that a call has brought: the next one of as many bytes that comes to this thread, in
 * whatever call, takes no new memory. The ArrayBuffer is detached, so that no view of it ever sees another value: reading it
 * gives nothing. A thread keeps up to 64 MiB, and no ArrayBuffer of less than 16 KiB.
 * @param bytes an ArrayBuffer, or a view, which gives all of its ArrayBuffer back
 * @throws PAMIR_INVAL for shared memory, and for what is detached or can't be
 */
export function recycle(bytes: ArrayBufferLike | ArrayBufferView): void {
  const buffer = ArrayBuffer.isView(bytes) ? bytes.buffer : bytes;
  let own: unknown;
  try {
    if (isDetached(buffer)) throw notRecycled(bytes);
    own = structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
  } catch (cause) {
    throw notRecycled(bytes, cause);
  }
  // Node 20 copies its own buffer of small Buffers, which must not be detached.
  if (!(own instanceof ArrayBuffer) || buffer.byteLength > 0) throw notRecycled(bytes);
  const { byteLength, resizable } = own as ArrayBuffer & { resizable?: boolean };
  if (byteLength < BYTES_MIN || byteLength > KEPT_MAX || resizable === true) return;
  if (kept + byteLength > KEPT_MAX) {
    // They are of sizes that come no more.
    spare.clear();
    kept = 0;
  }
  kept += byteLength;
  const all = spare.get(byteLength);
  if (all === undefined) spare.set(byteLength, [own]);
  else all.push(own);
}

function notRecycled(bytes: unknown, cause?: unknown): PamiError {
  const text = `recycle() takes an ArrayBuffer that can be detached, or a view of one, not ${show(bytes)}`;
  return new PamiError("PAMIR_INVAL", text, { cause });
}

/** As copyOf(), in memory that was given back, if there is some of this size. */
export function copyInSpare(source: Uint8Array): Uint8Array<ArrayBuffer> {
  const { length } = source;
  const all = kept === 0 || length < BYTES_MIN ? undefined : spare.get(length);
  const own = all?.pop();
  if (own === undefined) return copyOf(source);
  if (all?.length === 0) spare.delete(length);
  kept -= length;
  const copy = new Uint8Array(own);
  copyInto(copy, 0, source);
  return copy;
}
