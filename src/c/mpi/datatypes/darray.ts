// The part of a distributed array that one rank has. Source: MPI 5.0, section 5.1.4.
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import { type Datatype, derived } from "../types.js";

/** MPI_DISTRIBUTE_…. */
const NONE = 16;
const BLOCK = 17;
const CYCLIC = 18;
const DEFAULT = 19;

/** A dimension: its elements, how they are dealt out, by which argument, and among how many ranks. */
export interface DarrayDim {
  readonly size: number;
  readonly how: number;
  readonly argument: number;
  readonly ranks: number;
  /** The coordinate of this rank. */
  readonly at: number;
}

/** The elements of a dimension that a rank has. @throws MpiFailure MPI_ERR_ARG */
function ownIndices({ size, how, argument, ranks, at }: DarrayDim): number[] {
  if (how === NONE) {
    if (ranks !== 1) throw new MpiFailure(ERR.ARG, `a dimension that is not distributed has ${ranks} ranks, not 1`);
    return Array.from({ length: size }, (_, index) => index);
  }
  if (how !== BLOCK && how !== CYCLIC) throw new MpiFailure(ERR.ARG, `${how} is no distribution`);
  const isDefault = argument === DEFAULT;
  const length = how === BLOCK ? (isDefault ? Math.ceil(size / ranks) : argument) : isDefault ? 1 : argument;
  if (length < 1) throw new MpiFailure(ERR.ARG, `blocks of ${length} elements`);
  if (how === BLOCK && length * ranks < size)
    throw new MpiFailure(ERR.ARG, `${ranks} blocks of ${length} elements do not hold ${size}`);
  const indices: number[] = [];
  for (let start = at * length; start < size; start += ranks * length)
    for (let index = start; index < Math.min(start + length, size); index++) indices.push(index);
  return indices;
}

/** @param dims the last one runs fastest */
export function darray(dims: readonly DarrayDim[], type: Datatype): Datatype {
  let inner = type;
  let step = type.extent;
  for (const dim of [...dims].reverse()) {
    const part = inner;
    const parts = ownIndices(dim).map((index) => ({ offset: index * step, count: 1, type: part }));
    inner = derived("darray", parts, { lowerBound: 0, extent: dim.size * step });
    step *= dim.size;
  }
  return inner;
}
