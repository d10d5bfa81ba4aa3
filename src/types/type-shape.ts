// A complete transfer type, and checks of what is moved by it.
import { checkInteger, PamiError, show } from "../core/error.js";
import type { MemRegion } from "../core/region.js";
import type { Loop } from "./type-loops.js";

/** Most bytes of a type's data and extent, and of what one call moves. */
export const BYTES_MAX = 2 ** 32 - 1;

/** A complete type. */
export interface TypeShape {
  readonly loops: readonly Loop[];
  /** Its LAYOUT. */
  readonly words: Int32Array<ArrayBuffer>;
  /** Of data in one element. */
  readonly bytes: number;
  readonly extent: number;
  readonly span: number;
  readonly isContiguous: boolean;
  readonly overlaps: boolean | undefined;
  /** A region with the LAYOUT, if that is too long for the mover's own place. */
  region?: MemRegion | undefined;
  /** Whether the type is closed: no region is made for it any more. */
  isClosed: boolean;
}

/** The bytes of a view. @throws PAMIR_INVAL */
export function viewBytes(name: string, view: unknown): Uint8Array {
  if (view instanceof Uint8Array) return view;
  if (!ArrayBuffer.isView(view)) throw new PamiError("PAMIR_INVAL", `${name} is ${show(view)}, not an ArrayBufferView`);
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Bytes from the begin of element 0 to the end of the element with the last of so many bytes of data. */
export function spanFor(shape: TypeShape | undefined, bytes: number): number {
  if (shape === undefined || bytes === 0) return bytes;
  return (Math.ceil(bytes / shape.bytes) - 1) * shape.extent + shape.span;
}

/** Checks that bytes may be written by this type. @throws PAMIR_INVAL */
export function checkTarget(name: string, { overlaps }: TypeShape): void {
  if (overlaps === true) {
    throw new PamiError("PAMIR_INVAL", `${name}: runs of it overlap, so what they would hold depends on their order`);
  }
}

/** Bytes of data of some elements. @throws PAMIR_INVAL, PAMIR_TOO_LARGE */
export function countBytes(call: string, shape: TypeShape, count: unknown): number {
  checkInteger(`count of ${call}()`, count, 0, BYTES_MAX);
  const bytes = (count as number) * shape.bytes;
  checkBytes(call, bytes);
  return bytes;
}

/** Checks that the elements with so many bytes of data lie within a memory. @throws PAMIR_BOUNDS */
export function checkElements(call: string, shape: TypeShape, bytes: number, length: number): void {
  const span = spanFor(shape, bytes);
  if (span > length) {
    throw new PamiError("PAMIR_BOUNDS", `${call}(): the elements take ${span} bytes, and there are ${length}`);
  }
}

/** Checks a number of bytes. @throws PAMIR_TOO_LARGE */
export function checkBytes(call: string, bytes: number): void {
  if (bytes <= BYTES_MAX) return;
  throw new PamiError("PAMIR_TOO_LARGE", `${call}(): a type of ${bytes} bytes, the limit is ${BYTES_MAX}`);
}
