// The parameters of a collective operation that an algorithm needs, the same at every member except `rank`.

export interface Shape {
  readonly rank: number;
  readonly size: number;
}

/** An operation in which each member has as many bytes as any other. */
export interface UniformShape extends Shape {
  /** Bytes of one member's block. */
  readonly bytes: number;
}

/** An operation with a root. */
export interface RootedShape extends UniformShape {
  readonly root: number;
}

/** An operation in which the members have blocks of different lengths. */
export interface VectorShape extends Shape {
  /** Bytes of each member's block, and the block's offset in the whole, in bytes. */
  readonly counts: readonly number[];
  readonly offsets: readonly number[];
}

/** A reduction. */
export interface ReductionShape extends RootedShape {
  /** Bytes of an element: slices are cut between elements. */
  readonly elementBytes: number;
}

/** The largest power of two that is not above `size`. */
export function powerBelow(size: number): number {
  return 2 ** Math.floor(Math.log2(size));
}

/** The slices into which a vector is cut, one for each of `parts`: as equal as elements allow. */
export function slices(bytes: number, elementBytes: number, parts: number): { offset: number; bytes: number }[] {
  const elements = bytes / elementBytes;
  const cut = (index: number): number => Math.floor((elements * index) / parts) * elementBytes;
  return Array.from({ length: parts }, (_, index) => ({ offset: cut(index), bytes: cut(index + 1) - cut(index) }));
}

/** Where blocks begin that follow each other. */
export function prefixSums(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((count) => {
    const offset = sum;
    sum += count;
    return offset;
  });
}

export function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
