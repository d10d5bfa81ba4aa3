// The data on which the members of a geometry must agree in each operation, as one word. The word goes along with the bytes. So
// a member that has begun another operation is named; otherwise members would hang or mix up their data.
//
//   bits 0–4  type   5–8  operation + 1   9–13  element type + 1   14–31  hash of root, lengths and algorithm
import { ELEMENT_TYPES, OPERATIONS } from "../core/reduction.js";
import { COLLECTIVE_TYPES, type CollectiveType } from "./operations.js";

/** Where the number of the algorithm goes into the hash. */
export const ALGORITHM_SHIFT = 24;

/** Number of a user's operation: after all other numbers. */
export const USER_OPERATION = 14;

const HASH_SHIFT = 14;

/** @param operation OPERATION_…, USER_OPERATION, or -1 @param element TYPE_…, or -1 @param bytes lengths that all share */
export function signatureOf(
  type: CollectiveType,
  operation: number,
  element: number,
  root: number,
  ...bytes: readonly number[]
): number {
  let hash = root;
  for (const length of bytes) hash = Math.imul(hash ^ length, 0x01000193) ^ (hash >>> 15);
  const words = COLLECTIVE_TYPES.indexOf(type) | ((operation + 1) << 5) | ((element + 1) << 9);
  return words | ((hash ^ (hash >>> 14)) << HASH_SHIFT);
}

/** How two members differ, as far as one word shows the difference. */
export function describeDifference(rank: number, own: number, other: number, theirs: number): string {
  const [one, two] = [describeKind(own), describeKind(theirs)];
  const both = `rank ${rank} has begun ${one}, rank ${other} ${two}`;
  const hidden = "with another root, length or algorithm: with debug: true, the error names who differs, and how";
  return one === two ? `${both} ${hidden}` : both;
}

/** Whether two members differ in root, lengths or algorithm alone. */
export function isSameKind(own: number, theirs: number): boolean {
  return ((own ^ theirs) & (2 ** HASH_SHIFT - 1)) === 0;
}

/** "allreduce() of f64 by sum" @param elementBytes named if they differ from the type's bytes */
export function describeKind(signature: number, elementBytes?: number): string {
  const type = COLLECTIVE_TYPES[signature & 31] ?? "an unknown operation";
  const operation = ((signature >>> 5) & 15) - 1;
  const element = ((signature >>> 9) & 31) - 1;
  const names = [`${type}()`];
  if (element >= 0) names.push(`of ${nameOf(ELEMENT_TYPES, ({ number }) => number === element)}`);
  if (operation === USER_OPERATION) names.push("by a function");
  else if (operation >= 0) names.push(`by ${nameOf(OPERATIONS, (number) => number === operation)}`);
  const typed = Object.values(ELEMENT_TYPES).find(({ number }) => number === element);
  if (elementBytes !== undefined && elementBytes !== typed?.bytes) names.push(`with elements of ${elementBytes} bytes`);
  return names.join(" ");
}

function nameOf<Value>(table: Readonly<Record<string, Value>>, isIt: (value: Value) => boolean): string {
  return Object.entries(table).find(([, value]) => isIt(value))?.[0] ?? "an unknown one";
}
