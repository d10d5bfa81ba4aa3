// Draws collective operations: all types, algorithms, elements, operations, roots, lengths and places, from a seed.

import { MEMBER_INLINE_BYTES } from "../../assembly/layout.js";
import { COLLECTIVE_TYPES, type CollectiveType } from "../../src/collective/operations.js";
import { FLAT_MEMBERS } from "../../src/collective/shared/shared-steps.js";
import * as tuning from "../../src/collective/tuning.js";
import { ELEMENT_TYPES, type ElementType, hasOperation, OPERATIONS, type Operation } from "../../src/core/reduction.js";
import type { AlgorithmInfo, Geometry } from "../../src/index.js";
import { type Case, elementBytes, type Form, isReduction } from "../conformance/tasks/collective-case.js";

/** Lengths in bytes around the limits of what carries them: of a record, of eager messages. */
const SHORT = [0, 1, 7, 8, 64, 65, 255, 1024];
const LONG = [2048, 4096, 4104, 40_000];
const HUGE = 1024 ** 2;

/** The types whose default changes at a limit in bytes; that in members is among the numbers of members. */
const BY_LIMIT: Readonly<Record<keyof typeof tuning, readonly CollectiveType[]>> = {
  BROADCAST_SHORT: ["broadcast"],
  ALLREDUCE_SHORT: ["allreduce"],
  GATHER_SHORT: ["gather", "scatter"],
  ALLGATHER_SHORT: ["allgather"],
  ALLTOALL_SHORT: ["alltoall"],
  ALLTOALL_MEMBERS: [],
  BROADCAST_MEMBERS: [],
  REDUCE_SHORT: ["reduce"],
  REDUCE_SCATTER_SHORT: ["reduceScatter"],
  OPERANDS_SHORT: ["reduce", "allreduce"],
  FLAT_SHORT: ["reduce", "allreduce"],
};

/** The types whose vector, block, or blocks of all members together go into a slot. */
const INLINE: readonly CollectiveType[] = [
  "broadcast",
  "reduce",
  "allreduce",
  "gather",
  "gatherv",
  "allgather",
  "allgatherv",
];
const INLINE_TOGETHER: readonly CollectiveType[] = ["scatter", "alltoall"];

/** The limits at which a type changes, in bytes of a vector or of a block. */
function limitsOf(type: CollectiveType, size: number): readonly number[] {
  const limits = Object.entries(tuning).flatMap(([name, bytes]) =>
    BY_LIMIT[name as keyof typeof tuning].includes(type) ? [bytes] : [],
  );
  if (INLINE.includes(type)) limits.push(MEMBER_INLINE_BYTES);
  if (INLINE_TOGETHER.includes(type)) limits.push(Math.floor(MEMBER_INLINE_BYTES / size));
  return limits;
}

export interface Draw {
  readonly size: number;
  readonly forms: readonly Form[];
  /** The most bytes of all members' blocks together. */
  readonly most?: number;
  readonly types?: readonly CollectiveType[];
}

type Random = (below: number) => number;

const pick = <T>(random: Random, items: readonly T[]): T => items[random(items.length)] as T;

const ELEMENTS = Object.keys(ELEMENT_TYPES) as ElementType[];
const NAMES = Object.keys(OPERATIONS) as Operation[];

const isVector = (type: CollectiveType): boolean => isReduction(type) || type === "broadcast";

function operationOf(random: Random): { element: ElementType; operation: string } {
  if (random(5) === 0) return { element: "u32", operation: pick(random, ["compose", "add"]) };
  const element = pick(random, ELEMENTS);
  return {
    element,
    operation: pick(
      random,
      NAMES.filter((operation) => hasOperation(element, operation)),
    ),
  };
}

/** A case without bytes. */
function emptyCase(random: Random, { size, forms }: Draw, type: CollectiveType): Case {
  const { element, operation } = isReduction(type)
    ? operationOf(random)
    : { element: pick(random, ELEMENTS), operation: "" };
  const isFloat = element.startsWith("f") || element.startsWith("c");
  return {
    type,
    element,
    operation,
    root: random(size),
    count: 0,
    counts: new Array<number>(size).fill(0),
    gap: pick(random, [0, 0, 1, 2, 3]),
    inPlace: random(4) === 0,
    exclusive: random(2) === 0,
    isShared: random(3) === 0,
    isAnyFloat: isFloat && (operation === "sum" || operation === "product") && random(2) === 0,
    form: pick(random, forms),
    seed: random(2 ** 31),
  };
}

/** A case, of a type and algorithm that are drawn too if they are not given. */
export function drawCase(
  random: Random,
  draw: Draw,
  algorithms: Geometry["algorithms"],
  wanted?: CollectiveType,
): Case {
  const { size, most = 2 * HUGE } = draw;
  const type = wanted ?? pick(random, draw.types ?? COLLECTIVE_TYPES);
  const empty = emptyCase(random, draw, type);
  const bytes = lengthOf(random, type, size, most / (isVector(type) ? 1 : size));
  const count = Math.floor(bytes / elementBytes(empty));
  const counts = empty.counts.map(() => (random(3) === 0 ? 0 : random(1 + Math.ceil((2 * count) / size))));
  const one: Case = { ...empty, count, counts };
  const algorithm = pick(random, [undefined, ...algorithms(type).filter((info) => works(info, one, size))]);
  return algorithm === undefined ? one : { ...one, algorithm: algorithm.name };
}

/** The same case, with so many elements in a vector or in each block. */
function sized(random: Random, one: Case, count: number): Case {
  if (one.type !== "reduceScatter") return { ...one, count, counts: one.counts.map(() => count) };
  let left = count;
  const counts = one.counts.map((_, rank, { length }) => {
    const own = rank === length - 1 ? left : random(1 + Math.min(left, Math.ceil((2 * count) / length)));
    left -= own;
    return own;
  });
  return { ...one, count, counts };
}

/** Cases at each limit where the default of a type changes, and one element below and above it. */
export function casesAtLimits(random: Random, draw: Draw, type: CollectiveType): Case[] {
  const { size, most = 2 * HUGE } = draw;
  return limitsOf(type, size).flatMap((limit) =>
    [-1, 0, 1].flatMap((by) => {
      const one = emptyCase(random, draw, type);
      const count = Math.max(0, Math.floor(limit / elementBytes(one)) + by);
      const bytes = count * elementBytes(one) * (isVector(type) ? 1 : size);
      return bytes > most ? [] : [sized(random, one, count)];
    }),
  );
}

/** A case with 1 MiB, or other bytes: of a vector, of a block, or of the blocks of more than two members together. */
export function hugeCase(random: Random, draw: Draw, type: CollectiveType, bytes = HUGE): Case {
  const one = emptyCase(random, draw, type);
  const blocks = isVector(type) || draw.size <= 2 ? 1 : draw.size;
  return sized(random, one, Math.ceil(bytes / blocks / elementBytes(one)));
}

function lengthOf(random: Random, type: CollectiveType, size: number, most: number): number {
  const limits = limitsOf(type, size);
  const kind = random(30);
  let drawn = pick(random, kind < 12 || (kind < 25 && limits.length === 0) ? SHORT : LONG);
  if (kind === 29) drawn = HUGE;
  else if (kind >= 12 && kind < 25 && limits.length > 0) drawn = pick(random, limits) + pick(random, [-8, -1, 0, 1, 8]);
  return Math.max(0, Math.min(drawn, Math.floor(most)));
}

/** Whether an algorithm takes a case: what its conditions say in words. */
function works({ name, always }: AlgorithmInfo, one: Case, size: number): boolean {
  if (always) return true;
  if (name === "flat") {
    const isUser = one.operation === "compose" || one.operation === "add";
    return size <= FLAT_MEMBERS && one.count * elementBytes(one) <= MEMBER_INLINE_BYTES && !isUser;
  }
  if (one.operation === "add") return true;
  // Of one order alone, or of elements whose sums depend on it.
  const isOrdered = ["copy", "noop", "compose"].includes(one.operation);
  const isExact = !/^[fc]/.test(one.element) || ["min", "max", "minloc", "maxloc"].includes(one.operation);
  return !isOrdered && isExact;
}
