// How members are arranged in a grid, as MPI_Dims_create and MPI_Cart_create have it: the last coordinate varies fastest.
import { checkInteger, PamiError, show } from "../../core/error.js";

/**
 * Arranges members in so many dimensions, as evenly as possible, the larger numbers first.
 * @param given what is fixed in each dimension; 0: to be chosen
 * @throws PAMIR_INVAL: the product can't be the number of members
 */
export function arrange(members: number, given: readonly number[]): number[] {
  const fixed = given.reduce((product, one) => product * (one || 1), 1);
  const open = given.filter((one) => one === 0).length;
  if (members % fixed !== 0 || (open === 0 && fixed !== members)) {
    throw new PamiError("PAMIR_INVAL", `processes [${given.join(", ")}] do not make ${members} members`);
  }
  const chosen = divide(members / fixed, open);
  let next = 0;
  return given.map((one) => one || (chosen[next++] as number));
}

/** So many factors of a number, the larger first, with the least sum: the most even ones. */
function divide(number: number, factors: number, most = number): number[] {
  if (factors === 0) return [];
  if (factors === 1) return [number];
  let best: number[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (let first = Math.min(number, most); first ** factors >= number && first > 0; first--) {
    if (number % first !== 0) continue;
    const rest = divide(number / first, factors - 1, first);
    const sum =
      rest[0] === undefined || rest[0] > first ? Number.POSITIVE_INFINITY : rest.reduce((a, b) => a + b, first);
    if (sum < least) {
      least = sum;
      best = [first, ...rest];
    }
  }
  return best;
}

export function coordinatesOf(rank: number, processes: readonly number[]): number[] {
  const coordinates: number[] = [];
  let rest = rank;
  for (const count of [...processes].reverse()) {
    coordinates.unshift(rest % count);
    rest = Math.floor(rest / count);
  }
  return coordinates;
}

/** @returns undefined: there is no such place, beyond an end that is not periodic */
export function rankAt(
  coordinates: readonly number[],
  processes: readonly number[],
  periodic: readonly boolean[],
): number | undefined {
  let rank = 0;
  for (const [dimension, count] of processes.entries()) {
    let at = coordinates[dimension] as number;
    if (at < 0 || at >= count) {
      if (periodic[dimension] !== true) return undefined;
      at = ((at % count) + count) % count;
    }
    rank = rank * count + at;
  }
  return rank;
}

/** Where the block of a coordinate begins: blocks differ by one cell at most. */
export function beginOf(coordinate: number, cells: number, processes: number): number {
  return Math.floor((coordinate * cells) / processes);
}

/** A list of integers, one for each dimension. @throws PAMIR_INVAL */
export function integers(name: string, given: unknown, least: number, most: number, length?: number): number[] {
  const list = typeof given === "number" && length !== undefined ? new Array<unknown>(length).fill(given) : given;
  if (!Array.isArray(list) || list.length < 1 || list.length > 3 || (length ?? list.length) !== list.length) {
    const what = length === undefined ? "1, 2 or 3 numbers" : `${length} numbers`;
    throw new PamiError("PAMIR_INVAL", `${name} is ${show(given)}, not a list of ${what}`);
  }
  for (const one of list) checkInteger(name, one, least, most);
  return list as number[];
}
