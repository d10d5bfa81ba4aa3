// What collective operations are to give, computed from the inputs of all members one after the other.

import { powerBelow } from "../../src/collective/schedule/shape.js";
import type { ElementType, Operation } from "../../src/core/reduction.js";
import {
  blocksOf,
  type Case,
  COMBINE,
  elementBytes,
  isReduction,
  lengthsOf,
  parametersOf,
  placesOf,
  valuesOf,
} from "../conformance/tasks/collective-case.js";
import { randomOf } from "./random.js";
import { reduceElement, withOneNaN } from "./reduction-model.js";

/** Elements that are looked at in a long result: its ends, places where slices or blocks meet, and others by chance. */
function positions(count: number, size: number, seed: number): readonly number[] {
  if (count <= 400) return Array.from({ length: count }, (_, i) => i);
  const random = randomOf(seed);
  const found = new Set<number>([0, count - 1]);
  for (let slice = 1; slice < size; slice++) {
    const cut = Math.floor((count * slice) / size);
    for (const at of [cut - 1, cut, cut + 1]) found.add(at);
  }
  while (found.size < 300) found.add(random(count));
  return [...found].filter((at) => at >= 0 && at < count);
}

/** The result of `left op right`, for one element. */
function combined(one: Case, left: Uint8Array<ArrayBuffer>, right: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const user = COMBINE[one.operation as keyof typeof COMBINE] as (typeof COMBINE)["add"] | undefined;
  if (user === undefined) {
    const result = reduceElement(one.element as ElementType, one.operation as Operation, left, right);
    return result as Uint8Array<ArrayBuffer>;
  }
  const out = new Uint32Array(1);
  const words = (bytes: Uint8Array): Uint32Array => new Uint32Array(bytes.slice().buffer);
  user.combine(words(left), words(right), out);
  return new Uint8Array(out.buffer);
}

type Operand = Uint8Array<ArrayBuffer>;

/** In the order that the documents promise. */
export function inTreeOrder(operands: readonly Operand[], combine: (a: Operand, b: Operand) => Operand): Operand {
  const power = powerBelow(operands.length);
  const pairs = operands.length - power;
  let level = Array.from({ length: power }, (_, at) =>
    at < pairs
      ? combine(operands[2 * at] as Operand, operands[2 * at + 1] as Operand)
      : (operands[at + pairs] as Operand),
  );
  while (level.length > 1) {
    const below = level;
    level = Array.from({ length: below.length / 2 }, (_, at) =>
      combine(below[2 * at] as Operand, below[2 * at + 1] as Operand),
    );
  }
  return level[0] as Operand;
}

/** The order of a scan: the operands of the last 1, 2, 4, … members first. @param operands those of the members before, too */
function inScanOrder(
  operands: readonly Operand[],
  isExclusive: boolean,
  combine: (a: Operand, b: Operand) => Operand,
): Operand {
  const rank = isExclusive ? operands.length : operands.length - 1;
  let recent = [...operands];
  let result: Operand | undefined;
  for (let distance = 1; distance <= rank; distance *= 2) {
    const before = recent;
    const lower = before[rank - distance] as Operand;
    result = result === undefined ? lower : combine(lower, result);
    recent = recent.map((value, at) => (at < distance ? value : combine(before[at - distance] as Operand, value)));
  }
  return (isExclusive ? result : recent.at(-1)) as Operand;
}

function reductionProblem(
  one: Case,
  rank: number,
  size: number,
  got: Uint8Array,
  before: Uint8Array,
): string | undefined {
  const { type, counts, count, exclusive } = one;
  const width = elementBytes(one);
  const whole = type === "reduceScatter" ? counts.reduce((sum, each) => sum + each, 0) : count;
  const from = type === "reduceScatter" ? counts.slice(0, rank).reduce((sum, each) => sum + each, 0) : 0;
  const length = type === "reduceScatter" ? (counts[rank] as number) : count;
  const inputs = Array.from({ length: size }, (_, member) => valuesOf(one, member, whole));
  const members = type === "scan" ? inputs.slice(0, rank + (exclusive ? 0 : 1)) : inputs;
  if (members.length === 0) return differ("the first member of an exclusive scan", got, before);
  for (const at of positions(length, size, one.seed)) {
    const operands = members.map((bytes) => bytes.slice((from + at) * width, (from + at + 1) * width));
    const combine = (left: Operand, right: Operand): Operand => combined(one, left, right);
    const expected = type === "scan" ? inScanOrder(operands, exclusive, combine) : inTreeOrder(operands, combine);
    const element = got.slice(at * width, (at + 1) * width);
    withOneNaN(one.element as ElementType, expected);
    withOneNaN(one.element as ElementType, element);
    const problem = differ(`element ${at}`, element, expected);
    if (problem !== undefined) return problem;
  }
  return differ("bytes behind the result", got.subarray(length * width), before.subarray(length * width));
}

function differ(what: string, got: Uint8Array, expected: Uint8Array): string | undefined {
  if (Buffer.compare(got, expected) === 0) return undefined;
  const at = expected.findIndex((byte, i) => byte !== got[i]);
  return `${what}: byte ${at} is ${got[at]}, not ${expected[at]} (${got.length} bytes, ${expected.length} expected)`;
}

/** What a member's view is to have after an operation that moves bytes. */
function moved(one: Case, rank: number, size: number, before: Uint8Array): Uint8Array {
  const { type, root } = one;
  const width = elementBytes(one);
  const out = before.slice();
  const own = lengthsOf(one, rank, size).receive as number;
  const put = (at: number, bytes: Uint8Array): void => out.set(bytes, at * width);
  /** The block that a member has for this one. */
  const blockOf = (from: number): Uint8Array => {
    const blocks = blocksOf(one, from, size);
    const start = blocks.slice(0, rank).reduce((sum, each) => sum + each, 0);
    const values = valuesOf(
      one,
      from,
      blocks.reduce((sum, each) => sum + each, 0),
    );
    return values.subarray(start * width, (start + (blocks[rank] as number)) * width);
  };
  if (type === "broadcast") return valuesOf(one, root, one.count);
  if (type === "scatter" || type === "scatterv") {
    put(0, blockOf(root));
    return out.subarray(0, own * width);
  }
  const blocks = blocksOf(one, rank, size);
  const places = type.endsWith("v") ? placesOf(one, blocks).places : blocks.map((count, other) => other * count);
  for (const [from, count] of blocks.entries()) {
    put(places[from] as number, type.startsWith("alltoall") ? blockOf(from) : valuesOf(one, from, count));
  }
  return out;
}

/** What is wrong with a member's view; undefined: nothing. */
export function problemOf(one: Case, rank: number, size: number, got: Uint8Array): string | undefined {
  const { received } = parametersOf(one, rank, size, (_, bytes) => new Uint8Array(bytes));
  const { before } = received as NonNullable<typeof received>;
  if (isReduction(one.type)) return reductionProblem(one, rank, size, got, before);
  return differ("the view", got, moved(one, rank, size, before));
}
