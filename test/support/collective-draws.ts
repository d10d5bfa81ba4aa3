// Draws collective operations: all types, algorithms, elements, operations, roots, lengths and places, from a seed.

import { MEMBER_INLINE_BYTES } from "../../assembly/layout.js";
import { FLAT_MEMBERS } from "../../src/collective/shared-steps.js";
import { COLLECTIVE_TYPES, type CollectiveType } from "../../src/collective/signature.js";
import { ELEMENT_TYPES, type ElementType, hasOperation, OPERATIONS, type Operation } from "../../src/core/reduction.js";
import type { AlgorithmInfo, Geometry } from "../../src/index.js";
import { type Case, elementBytes, type Form, isReduction } from "../conformance/tasks/collective-case.js";

/** Lengths in bytes around the limits: of a slot's inline bytes, of eager messages, of the default algorithms. */
const SHORT = [0, 1, 7, 8, 64, 65, ...[-8, -1, 0, 1, 8].map((by) => MEMBER_INLINE_BYTES + by), 255, 1024];
const LONG = [2048, 4096, 4104, 16_383, 16_384, 16_385, 40_000];
const HUGE = 1024 ** 2;

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

/** A case, of a type and algorithm that are drawn too if they are not given. */
export function drawCase(
  random: Random,
  draw: Draw,
  algorithms: Geometry["algorithms"],
  wanted?: CollectiveType,
): Case {
  const { size, forms, most = 2 * HUGE } = draw;
  const type = wanted ?? pick(random, draw.types ?? COLLECTIVE_TYPES);
  const { element, operation } = isReduction(type)
    ? operationOf(random)
    : { element: pick(random, ELEMENTS), operation: "" };
  const isFloat = element.startsWith("f") || element.startsWith("c");
  const bytes = lengthOf(random, most / (isReduction(type) || type === "broadcast" ? 1 : size));
  const width = elementBytes({ element } as Case);
  const count = Math.floor(bytes / width);
  const one: Case = {
    type,
    element,
    operation,
    root: random(size),
    count,
    counts: Array.from({ length: size }, () => (random(3) === 0 ? 0 : random(1 + Math.ceil((2 * count) / size)))),
    gap: pick(random, [0, 0, 1, 2, 3]),
    inPlace: random(4) === 0,
    exclusive: random(2) === 0,
    isShared: random(3) === 0,
    isAnyFloat: isFloat && (operation === "sum" || operation === "product") && random(2) === 0,
    form: pick(random, forms),
    seed: random(2 ** 31),
  };
  const algorithm = pick(random, [undefined, ...algorithms(type).filter((info) => works(info, one, size))]);
  return algorithm === undefined ? one : { ...one, algorithm: algorithm.name };
}

function lengthOf(random: Random, most: number): number {
  const drawn = random(10) < 6 ? pick(random, SHORT) : random(12) === 0 ? HUGE : pick(random, LONG);
  return Math.min(drawn, Math.floor(most));
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
