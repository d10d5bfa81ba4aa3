// Elements of a datatype in memory, as runs of bytes: those of the origin, and those of the target.
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState } from "../state.js";
import { type Datatype, isDense } from "../types.js";

/** Elements in memory, from an address on. */
export interface Elements {
  readonly address: number;
  readonly count: number;
  readonly type: Datatype;
  /** Bytes of data. */
  readonly bytes: number;
}

/** @throws MpiFailure MPI_ERR_COUNT, MPI_ERR_TYPE */
export function elementsOf(state: MpiState, address: number, count: number, typeHandle: number): Elements {
  if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
  const type = state.types.committed(typeHandle);
  return { address: address >>> 0, count, type, bytes: count * type.bytes };
}

/** The addresses of the first byte, and behind the last one, that a side reads or writes. */
export function boundsOf({ address, count, type }: Elements): readonly [first: number, end: number] {
  const { runs, extent } = type;
  if (count === 0 || runs.length === 0) return [address, address];
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let run = 0; run < runs.length; run += 2) {
    low = Math.min(low, runs[run] as number);
    high = Math.max(high, (runs[run] as number) + (runs[run + 1] as number));
  }
  const last = (count - 1) * extent;
  return [address + low + Math.min(0, last), address + high + Math.max(0, last)];
}

/** Calls `each` with each run of a side, in the order of packing, and with the place of its bytes in packed data. */
export function eachRun(side: Elements, each: (address: number, bytes: number, place: number) => void): void {
  const { address, count, type, bytes } = side;
  if (bytes === 0) return;
  if (isDense(type)) {
    each(address, bytes, 0);
    return;
  }
  const { runs, extent } = type;
  let place = 0;
  for (let element = 0; element < count; element++) {
    for (let run = 0; run < runs.length; run += 2) {
      const length = runs[run + 1] as number;
      each(address + element * extent + (runs[run] as number), length, place);
      place += length;
    }
  }
}

/** Calls `each` with what is contiguous on both sides, which have equally many bytes. */
export function eachPair(
  one: Elements,
  other: Elements,
  each: (one: number, other: number, bytes: number) => void,
): void {
  if (isDense(one.type)) {
    eachRun(other, (address, bytes, place) => each(one.address + place, address, bytes));
    return;
  }
  if (isDense(other.type)) {
    eachRun(one, (address, bytes, place) => each(address, other.address + place, bytes));
    return;
  }
  const runs: number[] = [];
  eachRun(other, (address, bytes) => runs.push(address, bytes));
  let run = 0;
  let used = 0;
  eachRun(one, (address, bytes) => {
    for (let done = 0; done < bytes; ) {
      const left = (runs[run + 1] as number) - used;
      const length = Math.min(left, bytes - done);
      each(address + done, (runs[run] as number) + used, length);
      done += length;
      used += length;
      if (length === left) {
        run += 2;
        used = 0;
      }
    }
  });
}
