// Bounds the work of an operation: functions entered, calls into a kernel and promises, on both sides. Counts, since times differ.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const bench = fileURLToPath(new URL("../bench/counts.bench.mjs", import.meta.url));

interface Counts {
  readonly entered: number;
  readonly kernel: number;
  readonly promises: number;
}

/**
 * [functions entered, calls into a kernel, promises] at most: what was measured, and a tenth. Where a side sleeps, or the other one
 * is awaited, the median of the operations: a mean has those in which the other thread was late.
 */
const MOST: Record<string, { caller: number[]; callee?: number[] }> = {
  // A call entered 142 and 154 functions, then 85 and 85, before its steps were written out where they are taken. It entered 49
  // and 48, with 7 calls into the kernel each, before lastLook() and without a look that finds nothing before a sleep.
  "a call, both asleep": { caller: [43.3, 4.4, 12.1], callee: [38.5, 4.4, 6.6] },
  "a message, awake": { caller: [8.2, 1.2, 0.2], callee: [3.4, 0.2, 0.2] },
  "a put of 64 bytes": { caller: [5.8, 1.1, 0.1] },
  // The other member may find the first one's word while it spins, and looks some more times then. With new arrays in each call,
  // a member entered 161 functions before a call took what an earlier one had made.
  "an allreduce of 8 bytes, both asleep": { caller: [72.6, 4.4, 8.8] },
  // 33 and 47 functions, and those of a look at the other member, before meet() was one.
  "a barrier that blocks, the other is there": { caller: [13.5, 3.3, 2.2] },
  "an allreduce that blocks, again, the other is there": { caller: [31.1, 4.4, 2.2] },
};

/**
 * Runs at most. A side that spins, or is often disturbed, looks more often: noise only adds. So the least of all runs is compared,
 * and the runs end once each least is within its bound: one on a quiet machine. A regression is in all of them.
 */
const RUNS_MAX = 10;

interface Row {
  readonly what: string;
  readonly caller: Counts;
  readonly callee: Counts;
}

function run(): Row[] {
  const { stdout, stderr } = spawnSync(process.execPath, [bench, "--json"], { encoding: "utf8", timeout: 50_000 });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

const KINDS = ["entered", "kernel", "promises"] as const;

it("no operation does more work than it did", { timeout: 120_000 }, () => {
  const rows = Object.entries(MOST).flatMap(([what, most], place) =>
    (Object.keys(most) as ("caller" | "callee")[]).map((side) => ({
      name: `${what}, ${side}`,
      place,
      side,
      most: most[side] as number[],
      least: KINDS.map(() => Number.POSITIVE_INFINITY),
    })),
  );
  const above = () => rows.filter(({ least, most }) => least.some((value, i) => value > (most[i] as number)));
  for (let runs = 0; runs < RUNS_MAX && above().length > 0; runs++) {
    const counted = run();
    expect(counted.map(({ what }) => what)).toEqual(Object.keys(MOST));
    for (const row of rows) {
      const counts = (counted[row.place] as Row)[row.side];
      row.least = row.least.map((value, i) => Math.min(value, counts[KINDS[i] as (typeof KINDS)[number]]));
    }
  }
  // Nothing is free: a count of 0 would be one of nothing.
  for (const { name, least } of rows) expect(least[0], name).toBeGreaterThan(1);
  expect(above().map(({ name, least, most }) => `${name}: ${least.join(", ")}; at most ${most.join(", ")}`)).toEqual(
    [],
  );
});
