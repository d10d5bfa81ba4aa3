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

/** [functions entered, calls into a kernel, promises] at most: what was measured, and a tenth. */
const MOST: Record<string, { caller: number[]; callee?: number[] }> = {
  // A call entered 142 and 154 functions, then 85 and 85, before its steps were written out where they are taken.
  "a call, both asleep": { caller: [54, 7, 14], callee: [51, 8, 8] },
  "a message, awake": { caller: [9, 1.5, 0.3], callee: [5, 0.5, 0.3] },
  "a put of 64 bytes": { caller: [6, 1.2, 0.1] },
  // The other member may find the first one's word while it spins, and looks some more times then. With new arrays in each call,
  // a member entered 161 functions before a call took what an earlier one had made.
  "an allreduce of 8 bytes, both asleep": { caller: [82, 6, 10] },
  // 33 and 47 functions, and those of a look at the other member, before meet() was one.
  "a barrier that blocks, the other is there": { caller: [15, 4, 3] },
  "an allreduce that blocks, again, the other is there": { caller: [33, 5, 3] },
};

/** A side that spins looks more often: the least of some runs has no spin. */
const RUNS = 3;

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

it("no operation does more work than it did", { timeout: 120_000 }, () => {
  const runs = Array.from({ length: RUNS }, run);
  for (const rows of runs) expect(rows.map(({ what }) => what)).toEqual(Object.keys(MOST));
  for (const [place, [what, most]] of Object.entries(MOST).entries()) {
    for (const side of Object.keys(most) as ("caller" | "callee")[]) {
      const of = runs.map((rows) => (rows[place] as Row)[side]);
      const least = [
        Math.min(...of.map(({ entered }) => entered)),
        Math.min(...of.map(({ kernel }) => kernel)),
        Math.min(...of.map(({ promises }) => promises)),
      ];
      // Nothing is free: a count of 0 would be one of nothing.
      expect(least[0], `${what}, ${side}`).toBeGreaterThan(1);
      for (const [i, value] of least.entries()) {
        expect(value, `${what}, ${side}: ${least.join(", ")}`).toBeLessThanOrEqual(most[side]?.[i] as number);
      }
    }
  }
});
