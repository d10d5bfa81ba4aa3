// Views of bytes in place, of the type that a caller names.
import { PamiError, show } from "../error.js";

/** A constructor of views: of a typed array, or `DataView`. */
export type PayloadView<View extends ArrayBufferView> = new (
  // biome-ignore lint/suspicious/noExplicitAny: constructors of views differ in the buffers that they take.
  buffer: any,
  byteOffset: number,
  length: number,
) => View;

/**
 * Bytes of an element of a view; of a DataView 1.
 * @throws PAMIR_INVAL if it is no constructor of views
 */
export function viewElementBytes(type: unknown): number {
  const size = (type as { BYTES_PER_ELEMENT?: number } | null)?.BYTES_PER_ELEMENT ?? (type === DataView ? 1 : 0);
  if (typeof type === "function" && size > 0) return size;
  throw new PamiError("PAMIR_INVAL", `type of view() is ${show(type)}, not a typed array's constructor or DataView`);
}

/**
 * Makes a view of a buffer's bytes from `offset` on, which is a multiple of 8.
 * @throws PAMIR_INVAL if they are not a whole number of elements
 */
export function viewOf<View extends ArrayBufferView>(
  type: PayloadView<View>,
  buffer: ArrayBufferLike,
  offset: number,
  bytes: number,
): View {
  const size = viewElementBytes(type);
  if (bytes % size !== 0) {
    throw new PamiError("PAMIR_INVAL", `view() of ${bytes} bytes as ${type.name}, of ${size} bytes each`);
  }
  return new type(buffer, offset, bytes / size);
}
