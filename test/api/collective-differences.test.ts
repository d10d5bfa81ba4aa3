// Debug mode: one member calls something else than the others. Each member hears which one it is and how it differs; nothing is
// kept, and the next operations work. Every type, every algorithm, every way to differ, in one memory and over messages.
import { describe, expect, it } from "vitest";
import { MEMBER_INLINE_BYTES } from "../../assembly/layout.js";
import { COLLECTIVE_TYPES, type CollectiveType } from "../../src/collective/operations.js";
import { ERROR, type Geometry } from "../../src/index.js";
// Loaded before members need it, which have so many rounds.
import "../../src/pami/extensions/extensions.js";
import { byEffort, SEED } from "../support/effort.js";
import { type Carrier, type Mortal, MortalJob } from "../support/mortal-members.js";
import { randomOf } from "../support/random.js";
import { replayNote } from "../support/seed.js";

/** What a member calls. */
interface Call {
  readonly type: CollectiveType;
  /** Elements of a block; or of the whole vector of a broadcast or reduction. */
  readonly count: number;
  readonly root: number;
  readonly operation: string;
  readonly Elements: typeof Int32Array | typeof Float32Array;
  readonly algorithm: string | undefined;
  readonly exclusive: boolean;
  /** Elements that this member gives or awaits beyond what the others await or give. */
  readonly more: number;
}

/** Elements of 4 bytes: none, one, a slot's and one more, an eager message's and one more. */
const COUNTS = [0, 1, 22, 23, 4096, 4097];
const ROOTED: readonly CollectiveType[] = ["broadcast", "reduce", "gather", "gatherv", "scatter", "scatterv"];
const REDUCTIONS: readonly CollectiveType[] = ["reduce", "allreduce", "scan", "reduceScatter"];
const VECTORS: readonly CollectiveType[] = ["gatherv", "scatterv", "allgatherv", "alltoallv"];

/** The error of a barrier of a certain algorithm, which only the form with a callback has. */
const FAILED = "onDone got ERROR";

function begin(call: Call, geometry: Geometry): Promise<unknown> {
  const { rank, size } = geometry;
  const { type, count, root, operation, Elements, algorithm, exclusive, more } = call;
  const view = (length: number): Int32Array | Float32Array => new Elements(length);
  const options = { ...(algorithm === undefined ? {} : { algorithm }), ...(ROOTED.includes(type) ? { root } : {}) };
  const isRoot = rank === root;
  const counts = new Array<number>(size).fill(count);
  const longer = counts.map((each, other) => (other === (rank + 1) % size ? each + more : each));
  const own = count + more;
  const given = (): object => {
    switch (type) {
      case "barrier":
        return {};
      case "broadcast":
        return { buffer: view(count) };
      case "reduceScatter":
        return { send: view(count * size), operation };
      case "scan":
        return { send: view(count), operation, exclusive };
      case "reduce":
      case "allreduce":
        return { send: view(count), operation };
      case "gather":
      case "allgather":
        return { send: view(count) };
      case "alltoall":
        return { send: view(count * size) };
      case "scatter":
        return { send: isRoot ? view(count * size) : undefined, receive: view(count) };
      case "gatherv":
        return isRoot
          ? { send: view(count), receive: view(count * size + more), counts: longer }
          : { send: view(own), counts: undefined };
      case "scatterv":
        return isRoot
          ? { send: view(count * size + more), receive: view(count), counts: longer }
          : { receive: view(own) };
      case "allgatherv":
        return { send: view(count), receive: view(count * size + more), counts: longer };
      case "alltoallv":
        return {
          send: view(count * size + more),
          receive: view(count * size),
          sendCounts: longer,
          receiveCounts: counts,
        };
    }
  };
  const named = geometry as unknown as Record<CollectiveType, (given: object) => Promise<unknown>>;
  if (type !== "barrier") return named[type]({ ...given(), ...options });
  if (algorithm === undefined) return geometry.barrier();
  return new Promise((resolve, reject) => {
    const onDone = (_: unknown, result: number): void =>
      result === ERROR ? reject(new Error(FAILED)) : resolve(result);
    geometry.collective("barrier", { ...options, onDone });
  });
}

/** Whether its algorithm works for it: else its caller gets PAMIR_INVAL, and nothing begins. */
function works({ algorithm, count, Elements }: Call): boolean {
  if (algorithm === "flat") return 4 * count <= MEMBER_INLINE_BYTES;
  return algorithm !== "ring" || Elements === Int32Array;
}

/** What one member does otherwise, and what the error names. */
interface Difference {
  readonly name: string;
  readonly other: Partial<Call>;
  readonly text: RegExp;
}

/** All ways in which a member can call something else. */
function differencesOf(call: Call, size: number, algorithms: readonly string[]): Difference[] {
  const { type, count, root } = call;
  const found: Difference[] = [];
  const add = (name: string, other: Partial<Call>, text: RegExp): void => void found.push({ name, other, text });
  if (type !== "barrier" && !VECTORS.includes(type)) {
    for (const bytes of COUNTS) {
      if (bytes !== count) add(`${bytes} elements, not ${count}`, { count: bytes }, /with (bytes|counts) /);
    }
  }
  if (VECTORS.includes(type)) {
    for (const more of [1, 23, 4097]) add(`${more} elements more`, { more }, /bytes for rank|with counts/);
    if (count > 0) add("no elements", { more: -count }, /bytes for rank|with counts/);
  }
  if (ROOTED.includes(type)) add("root", { root: (root + 1) % size }, /with root/);
  if (REDUCTIONS.includes(type)) {
    add("operation", { operation: "max" }, /by sum.*by max|by max.*by sum/);
  }
  if (type !== "barrier") add("elements", { Elements: Float32Array }, /of i32.*of f32|of f32.*of i32/);
  if (type === "scan") add("exclusive", { exclusive: true }, /exclusive scan/);
  for (const algorithm of algorithms) {
    if (algorithm !== call.algorithm) add(`algorithm ${algorithm}`, { algorithm }, /with algorithm/);
  }
  for (const other of COLLECTIVE_TYPES) {
    if (other !== type) add(other, { type: other, algorithm: undefined }, new RegExp(`${other}\\(\\)`));
  }
  return found;
}

/** The operation with which each run ends. */
async function sums(geometry: Geometry, length: number): Promise<void> {
  const sum = await geometry.allreduce({ send: new Int32Array(length).fill(geometry.rank + 1), operation: "sum" });
  if (sum.some((value) => value !== (geometry.size * (geometry.size + 1)) / 2)) throw new Error("a wrong sum");
}

/** All ways to differ of a type, in one geometry: each operation but those of `sums` fails, for all. */
async function run(type: CollectiveType, carrier: Carrier, size: number): Promise<number> {
  const job = new MortalJob(size, carrier, { heapBytes: 2 ** 25 }, true);
  const random = randomOf(SEED ^ size);
  let runs = 0;
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const geometries = await job.outcomes((member) => member.geometry(endpoints));
    const of = (member: Mortal): Geometry => geometries.get(member) as Geometry;
    const algorithms = of(job.members[0] as Mortal)
      .algorithms(type)
      .map(({ name }) => name);
    const counts = type === "barrier" ? [0] : byEffort({ quick: [0, 4097], normal: [0, 4097], deep: COUNTS });
    for (const algorithm of algorithms) {
      for (const count of counts) {
        const call: Call = {
          type,
          count,
          root: random(size),
          operation: "sum",
          Elements: Int32Array,
          algorithm,
          exclusive: false,
          more: 0,
        };
        if (!works(call)) continue;
        const all = differencesOf(call, size, algorithms);
        const most = byEffort({ quick: 2, normal: 8, deep: all.length });
        for (const { name, other, text } of all.filter(() => random(all.length) < most)) {
          const odd = random(size);
          const different: { -readonly [Key in keyof Call]: Call[Key] } = { ...call, ...other };
          // Without its algorithm, it has the default.
          if (!works(different)) {
            if (other.algorithm !== undefined) continue;
            different.algorithm = undefined;
          }
          const what = `${algorithm}, ${count} elements, rank ${odd} of ${size}: ${name}`;
          try {
            const outcomes = await job.outcomes((member) => {
              const geometry = of(member);
              return begin(geometry.rank === odd ? different : call, geometry);
            });
            await job.outcomes((member) => sums(of(member), 3));
            for (const [member, error] of outcomes) {
              expect(error, `member ${member.number}`).toBeInstanceOf(Error);
              const { message } = error as Error;
              if (message === FAILED) continue;
              expect(message).toMatch(text);
              if (size > 2) expect(message).toContain(`rank ${odd}`);
            }
            runs++;
          } catch (error) {
            throw new Error(what, { cause: error });
          }
        }
      }
    }
    const after = await job.outcomes((member) => sums(of(member), 5000));
    for (const outcome of after.values()) expect(outcome).toBeUndefined();
    for (const geometry of geometries.values()) (geometry as Geometry).close();
    for (let round = 0; round < 2; round++) {
      await job.quiet();
      for (const { task } of job.living) task.reclaim();
    }
    expect(job.regionBytes()).toEqual([]);
    return runs;
  } finally {
    await job.close();
  }
}

/** A function differs at rank 1 from that at the others. @param options of the function, there and elsewhere, and their words */
async function functionsDiffer(
  type: CollectiveType,
  carrier: Carrier,
  options: readonly [object, object],
  words: readonly [string, string],
): Promise<void> {
  const job = new MortalJob(3, carrier, {}, true);
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const geometries = await job.outcomes((member) => member.geometry(endpoints));
    const combine = (): void => {};
    const outcomes = await job.outcomes((member) => {
      const geometry = geometries.get(member) as Geometry;
      const operation = { combine, ...options[geometry.rank === 1 ? 0 : 1] };
      const named = geometry as unknown as Record<CollectiveType, (given: object) => Promise<unknown>>;
      return named[type]({ send: new Int32Array(9), operation });
    });
    const [one, other] = words.map((word) => `${type}() of i32 by a function${word}`);
    const text = `rank 1 has begun ${one}, rank 0 ${other}`;
    for (const error of outcomes.values()) expect((error as Error).message).toMatch(text);
  } finally {
    await job.close();
  }
}

describe.each(["one memory", "ports"] as const)("%s", (carrier) => {
  it.each(REDUCTIONS)("%s: a function commutes at one member alone", (type) =>
    functionsDiffer(type, carrier, [{ commutative: true }, {}], [" that commutes", ""]),
  );

  it.each(REDUCTIONS)("%s: elements have other bytes at one member", (type) =>
    functionsDiffer(type, carrier, [{ elementBytes: 12 }, {}], [" with elements of 12 bytes", ""]),
  );

  it.each(COLLECTIVE_TYPES.flatMap((type) => [2, 3, 5].map((size) => [type, size] as const)))(
    `%s of %i members: one calls something else (${replayNote()})`,
    { timeout: 300_000 },
    async (type, size) => {
      expect(await run(type, carrier, size)).toBeGreaterThan(0);
    },
  );
});

const ITEMS = { type: Int32Array, onItems(): void {} };

/** Calls that one member's own checks refuse. */
const REFUSED: readonly (readonly [string, (geometry: Geometry) => unknown, RegExp])[] = [
  ["an option", (one) => one.allreduce({ send: Int32Array.of(1), operation: "sum" }, { timeout: -1 }), /timeout is -1/],
  ["a blocking form's option", (one) => one.barrierSync({ timeout: -1 }), /timeout is -1/],
  ["a root", (one) => one.reduce({ send: Int32Array.of(1), operation: "sum", root: 9 }), /root of reduce\(\) is 9/],
  ["a name", (one) => one.gather({ send: Int32Array.of(1), rot: 1 } as never), /there is no "rot"/],
  ["an algorithm", (one) => one.collective("barrier", { algorithm: "rumor" }), /"rumor"/],
  ["a callback", (one) => one.collective("barrier", { onDone: 1 as never }), /onDone is 1/],
  ["a type", (one) => one.collective("median" as "barrier", {}), /"median" is unknown/],
  ["a block", (one) => one.allgatherv({ send: new Int8Array(2), counts: new Array(one.size).fill(1) }), /1/],
  ["a color", (one) => one.split(-1), /color is -1/],
  ["an option of a region", (one) => one.shareRegion(8, { timeout: -1 }), /timeout is -1/],
  ["a counter's root", (one) => one.createCounter({ root: 9 }), /root of createCounter\(\) is 9/],
  ["a counter's option", (one) => one.createCounter({ timeout: -1 }), /timeout is -1/],
  ["a grid's size", (one) => one.createGrid({ size: [] }), /size of createGrid\(\)/],
  ["a grid's option", (one) => one.createGrid({ size: [99], timeout: -1 }), /timeout is -1/],
  [
    "an aggregator's bytes",
    (one) => one.createAggregator({ ...ITEMS, bytes: 1 }),
    /bytes of createAggregator\(\) is 1/,
  ],
  ["an aggregator's option", (one) => one.createAggregator({ ...ITEMS, timeout: -1 }), /timeout is -1/],
];

/** What the others call: each makes an extension, so that its number has to be the same afterwards. */
const OTHERS: readonly ((geometry: Geometry) => Promise<unknown>)[] = [
  (geometry) => geometry.allreduce({ send: Int32Array.of(1), operation: "sum" }),
  (geometry) => geometry.createGrid({ size: [99] }),
  (geometry) => geometry.createAggregator(ITEMS),
];

/** Members know a grid by the same number. */
async function extensionsWork(geometry: Geometry): Promise<void> {
  const grid = await geometry.createGrid({ size: [geometry.size], periodic: true });
  grid.cells[grid.index(0)] = geometry.rank;
  await grid.exchange();
  if (grid.cells[grid.index(1)] !== (geometry.rank + 1) % geometry.size) throw new Error("a wrong halo");
  await grid.close();
}

describe.each(["one memory", "ports"] as const)("%s: a member's arguments are refused", (carrier) => {
  it.each([2, 3, 5])("%i members: the others hear which and why, and all stay in step", async (size) => {
    const job = new MortalJob(size, carrier, {}, true);
    try {
      const endpoints = job.members.map(({ endpoint }) => endpoint);
      const geometries = await job.outcomes((member) => member.geometry(endpoints));
      for (const [place, [name, call, text]] of REFUSED.entries()) {
        const odd = (place + 1) % size;
        const outcomes = await job.outcomes(async (member) => {
          const geometry = geometries.get(member) as Geometry;
          if (geometry.rank === odd) await call(geometry);
          else await OTHERS[place % OTHERS.length]?.(geometry);
        });
        for (const [{ number }, error] of outcomes) {
          const { code, message } = error as Error & { code: string };
          expect(message, name).toMatch(text);
          expect(code, name).toMatch(number === odd ? /^PAMIR_(INVAL|BOUNDS)$/ : /^PAMIR_COLLECTIVE$/);
          if (number !== odd) expect(message).toContain(`rank ${odd} has begun nothing, as its arguments were refused`);
        }
        const after = await job.outcomes((member) => sums(geometries.get(member) as Geometry, 3));
        expect([...after.values()], name).toEqual(job.members.map(() => undefined));
        const extended = await job.outcomes((member) => extensionsWork(geometries.get(member) as Geometry));
        expect([...extended.values()], name).toEqual(job.members.map(() => undefined));
      }
      // Two at once: all others hear of the first one.
      const two = await job.outcomes(async (member) => {
        const geometry = geometries.get(member) as Geometry;
        if (geometry.rank < 2) await geometry.broadcast({ buffer: Int32Array.of(1), root: -1 });
        else await geometry.barrier();
      });
      for (const [{ number }, error] of two) {
        expect((error as { code?: string }).code).toBe(number < 2 ? "PAMIR_INVAL" : "PAMIR_COLLECTIVE");
      }
      const after = await job.outcomes((member) => sums(geometries.get(member) as Geometry, 5000));
      expect([...after.values()]).toEqual(job.members.map(() => undefined));
    } finally {
      await job.close();
    }
  });
});
