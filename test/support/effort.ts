// How much of the tests a run takes, and which part. Both come from the environment: `scripts/test.mjs` sets it. The part
// is drawn from the seed, so two runs of one commit take the same, and the next commit takes another.
import { randomOf } from "./random.js";

/** `PAMIR_SEED=…`: replays a failure. */
const givenSeed = process.env.PAMIR_SEED;

if (givenSeed !== undefined && !Number.isInteger(Number(givenSeed)))
  throw new Error(`PAMIR_SEED is "${givenSeed}", not an integer`);

/** The seed of this run. */
export const SEED = givenSeed === undefined ? (Math.random() * 0x7fffffff) | 0 : Number(givenSeed) | 0;

export type Effort = "quick" | "normal" | "deep";

const EFFORTS: readonly string[] = ["quick", "normal", "deep"] satisfies Effort[];
const given = process.env.PAMIR_EFFORT;
if (given !== undefined && !EFFORTS.includes(given))
  throw new Error(`PAMIR_EFFORT is "${given}": one of ${EFFORTS.join(", ")}`);

/** `npm run test:quick`, `npm test` and tests that are run by Vitest's own command, or `npm run test:deep`. */
export const EFFORT = (given ?? "normal") as Effort;

/** What this run takes of something that comes in three sizes. */
export function byEffort<T>(sizes: Readonly<Record<Effort, T>>): T {
  return sizes[EFFORT];
}

/** So many random cases, of a number that is right for a look at all sides of what is tested. */
export function scaled(cases: number): number {
  return Math.ceil(cases * byEffort({ quick: 0.2, normal: 0.3, deep: 3 }));
}

/** The numbers below `count`: in test:deep all, else some sixteen at even distances, from another one on with each seed. */
export function stepsOf(count: number): readonly number[] {
  const stride = byEffort({ quick: Math.ceil(count / 16), normal: Math.ceil(count / 16), deep: 1 });
  const first = Math.abs(SEED) % stride;
  return Array.from({ length: Math.ceil((count - first) / stride) }, (_, i) => first + i * stride);
}

/** A number that belongs to a text, as evenly as if it were drawn; the same in each run. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return randomOf(hash)(2 ** 32);
}

/** Whether a test is in the part of so many that a run takes, where no runner of ours can choose before it is known. */
export function isInPart(test: string, parts: Readonly<Record<Effort, number>>): boolean {
  return hashOf(`${SEED} ${test}`) % byEffort(parts) === 0;
}

/** What a browser runs of the suites that Node runs too: their logic is the same there. */
export const BROWSER_PARTS: Readonly<Record<Effort, number>> = { quick: 16, normal: 16, deep: 1 };

/** So many of the items, in their order, drawn from the seed; another draw for each text. */
export function sample<T>(items: readonly T[], count: number, text = ""): readonly T[] {
  if (count >= items.length) return items;
  const random = randomOf(SEED ^ hashOf(text));
  const places = items.map((_, i) => i);
  for (let i = 0; i < count; i++) {
    const other = i + random(places.length - i);
    [places[i], places[other]] = [places[other] as number, places[i] as number];
  }
  return places
    .slice(0, count)
    .sort((a, b) => a - b)
    .map((place) => items[place] as T);
}
