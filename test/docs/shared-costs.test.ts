// docs/collectives.md: what it says of the algorithms in one memory is counted, load by load; its limits are those of the code.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { MEMBER_INLINE_BYTES, MEMBER_SLOTS } from "../../assembly/layout.js";
import { prefixSums } from "../../src/collective/schedule/shape.js";
import { ALGORITHMS } from "../../src/collective/select.js";
import {
  BarrierSteps,
  BroadcastSteps,
  FLAT_MEMBERS,
  FlatReduceSteps,
  GatherSteps,
  ScatterSteps,
  SliceReduceSteps,
  UniformScatterSteps,
} from "../../src/collective/shared/shared-steps.js";
import * as limits from "../../src/collective/tuning.js";
import { type Cost, CountingCrowd } from "../support/counting-members.js";
import { byEffort } from "../support/effort.js";
import { evaluated } from "../support/formulas.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";

const page = readFileSync("docs/collectives.md", "utf8");
const ROOT = 0;
const SIZES = [2, 3, 4, 8, 16, 64];
/** Where no limit of members or of a slot is in the way. */
const MANY = byEffort({ quick: [], normal: [], deep: [128] });
/** Operations of one size: behind the first ones, all slots have been used. */
const ROUNDS = byEffort({ quick: 2, normal: 4, deep: 16 });

type Make = Parameters<CountingCrowd["operate"]>[0];

interface Case {
  /** Of the whole vector, or of a block. */
  bytes(n: number): number;
  sent(n: number): number;
  received(n: number): number;
  /** What goes into a slot; default: `bytes`. */
  inSlot?(n: number): number;
  readonly make: Make;
}

const blocks = (size: number, bytes: number) => {
  const counts = new Array<number>(size).fill(bytes);
  return { counts, offsets: prefixSums(counts) };
};
const INLINE = [8, MEMBER_INLINE_BYTES];
const BLOCK = 128;
const LONG = 192;

/** All members have vectors of one length. */
const vector = (bytes: Case["bytes"], make: Make): Case => ({ bytes, sent: bytes, received: bytes, make });
/** Blocks of this length; each member has so many of them to send, and so many to receive. */
const block = (bytes: number, sent: Case["bytes"], received: Case["bytes"], make: Make): Case => ({
  bytes: () => bytes,
  sent: (n) => bytes * sent(n),
  received: (n) => bytes * received(n),
  make,
});
const one = (): number => 1;
const each = (n: number): number => n;
const inline = (make: (bytes: number) => Case): readonly Case[] => INLINE.map(make);

const gather = (root: number | undefined, bytes: number): Case =>
  block(bytes, one, each, ({ shared }) => new GatherSteps(shared, root, blocks(shared.size, bytes)));
const uniform = (root: number | undefined): Case =>
  block(LONG, each, root === undefined ? each : one, ({ shared }) => new UniformScatterSteps(shared, root, LONG));
/** Blocks that go into a slot together. */
const uniformInline = (root: number | undefined): readonly Case[] =>
  [(): number => 1, (n: number): number => Math.floor(MEMBER_INLINE_BYTES / n)].map((bytes) => ({
    bytes,
    sent: (n) => n * bytes(n),
    received: (n) => (root === undefined ? n : 1) * bytes(n),
    inSlot: (n) => n * bytes(n),
    make: ({ shared }) => new UniformScatterSteps(shared, root, bytes(shared.size)),
  }));
const various = (root: number | undefined): Case =>
  block(LONG, each, root === undefined ? each : one, ({ shared }) => {
    const all = blocks(shared.size, LONG);
    const received = root === undefined ? all : { ...all, offsets: all.offsets.map(() => 0) };
    return new ScatterSteps(shared, root, root === undefined || root === shared.rank ? all : undefined, received);
  });
const slices = (root: number | undefined): Case =>
  vector(
    (n) => BLOCK * n,
    ({ shared, buffers }) => new SliceReduceSteps(shared, buffers, root),
  );

/** By the first three columns of the table. */
const CASES: Readonly<Record<string, readonly Case[]>> = {
  "barrier flags 0": [
    vector(
      () => 0,
      ({ shared }) => new BarrierSteps(shared),
    ),
  ],
  "broadcast direct up to 88": inline((bytes) =>
    vector(
      () => bytes,
      ({ shared }) => new BroadcastSteps(shared, ROOT),
    ),
  ),
  "broadcast direct more": [
    vector(
      () => LONG,
      ({ shared }) => new BroadcastSteps(shared, ROOT),
    ),
  ],
  "reduce flat up to 88": inline((bytes) =>
    vector(
      () => bytes,
      ({ shared }) => new FlatReduceSteps(shared, ROOT),
    ),
  ),
  "allreduce flat up to 88": inline((bytes) =>
    vector(
      () => bytes,
      ({ shared }) => new FlatReduceSteps(shared, undefined),
    ),
  ),
  "reduce slices more": [slices(ROOT)],
  "allreduce slices more": [slices(undefined)],
  "reduceScatter slices any": [
    block(BLOCK, each, one, ({ shared, buffers }) => {
      return new SliceReduceSteps(shared, buffers, undefined, blocks(shared.size, BLOCK).counts);
    }),
  ],
  "gather direct up to 88": inline((bytes) => gather(ROOT, bytes)),
  "gather direct more": [gather(ROOT, LONG)],
  "allgather direct up to 88": inline((bytes) => gather(undefined, bytes)),
  "allgather direct more": [gather(undefined, LONG)],
  "scatter direct up to 88 in all": uniformInline(ROOT),
  "scatter direct more": [uniform(ROOT)],
  "scatterv direct any": [various(ROOT)],
  "alltoall direct up to 88 in all": uniformInline(undefined),
  "alltoall direct more": [uniform(undefined)],
  "alltoallv direct any": [various(undefined)],
};

/** Rows in which each member waits for all others. */
const OF_ALL = new Set([
  "barrier flags 0",
  "allreduce flat up to 88",
  "reduce slices more",
  "allreduce slices more",
  "reduceScatter slices any",
  "allgather direct up to 88",
  "allgather direct more",
  "alltoall direct up to 88 in all",
  "alltoall direct more",
  "alltoallv direct any",
]);

const COLUMNS = ["written", "read", "readByAll", "rings", "local"] as const satisfies readonly (keyof Cost)[];

const rows = new Map(
  [...page.matchAll(/^\| `(\w+)` \| `(\w+)` \| ([\w ]+) \|(.*)\|$/gm)].map(([, type, name, bytes, cells]) => [
    `${type} ${name} ${bytes}`,
    (cells as string).split("|").map((cell) => cell.trim()),
  ]),
);

it("has a row for each algorithm in one memory that a caller can choose", () => {
  expect([...rows.keys()].sort()).toEqual(Object.keys(CASES).sort());
  const offered = Object.entries(ALGORITHMS).flatMap(([type, algorithms]) =>
    algorithms.filter(({ shared }) => shared !== undefined).map(({ name }) => `${type} ${name}`),
  );
  const listed = new Set([...rows.keys()].map((row) => row.split(" ", 2).join(" ")));
  // The page says of these that they are as others.
  for (const type of ["gather", "allgather"]) listed.add(`${type}v direct`);
  expect([...listed].sort()).toEqual(offered.sort());
});

it.each(Object.entries(CASES))("%s: costs what the table says, for 2 to 64 members", (title, cases) => {
  const formulas = rows.get(title) as string[];
  const sizes = /flat|in all/.test(title) ? SIZES : [...SIZES, ...MANY];
  for (const { bytes, sent, received, inSlot = bytes, make } of cases) {
    for (const n of sizes) {
      const crowd = new CountingCrowd(n, sent(n), received(n), randomOf(SEED + n));
      const m = bytes(n);
      const symbols = { n, m, L: m / 64, s: inSlot(n) <= 24 ? 1 : 2 };
      for (let round = 0; round < 2; round++) crowd.operate(make);
      for (let round = 0; round < (n > 64 ? 2 : ROUNDS); round++) {
        const cost = crowd.operate(make);
        for (const [i, column] of COLUMNS.entries()) {
          const formula = formulas[i] as string;
          const what = `${column} of ${n} members, ${m} bytes: ${formula}`;
          // Of two members, the one that is not the last looks, too.
          const times = column === "rings" && n === 2 && OF_ALL.has(title) ? 2 : 1;
          const should = times * evaluated(formula, symbols);
          if (formula.startsWith("≤")) expect(cost[column], what).toBeLessThanOrEqual(should);
          else expect(cost[column], what).toBeCloseTo(should, 6);
        }
      }
    }
  }
});

it("lists the limits of the code", () => {
  const listed = [...page.matchAll(/^\| `([A-Z_]+)` \| (\d+) (KiB|bytes|members|operations) \|/gm)].map(
    ([, name, value, unit]) => [name, Number(value) * (unit === "KiB" ? 1024 : 1)],
  );
  expect(Object.fromEntries(listed)).toEqual({ ...limits, FLAT_MEMBERS, MEMBER_INLINE_BYTES, MEMBER_SLOTS });
});
