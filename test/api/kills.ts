// Kills at random moments, under traffic of every kind, in two sizes: those who are left learn it, lose nothing, hang
// nowhere, and get all memory back. Each victim takes a new place. They are rounds of the soak with so many kills, each in a
// process of its own: Node may abort that, and it is run again.
import type { KernelName } from "pamir";
import { describe, expect, it } from "vitest";
import { drawRound, ENDS, OPERATIONS } from "../soak/draw.js";
import { runAlone } from "../soak/run-alone.js";
import { byEffort, sample } from "../support/effort.js";
import { chooseSeed, PATIENCE } from "./support.js";

const ROWS: readonly { readonly kernels: readonly KernelName[]; readonly engine: "inline" | "thread" }[] = [
  { kernels: ["wasm"], engine: "inline" },
  { kernels: ["ts"], engine: "inline" },
  { kernels: ["wasm", "ts"], engine: "inline" },
  { kernels: ["ts", "wasm"], engine: "inline" },
  { kernels: ["wasm", "ts"], engine: "thread" },
];

/** PAMIR_SEED=… runs the same again, as far as the threads' timing lets it. */
export function killSuite(kills: number, timeout: number): void {
  describe(`${kills} kills in each row, at random moments, under traffic of every kind`, () => {
    const seed = chooseSeed();
    const drawn = sample([...ROWS.entries()], byEffort({ quick: 1, normal: 1, deep: ROWS.length }), "kills");
    for (const [row, { kernels, engine }] of drawn) {
      it(`${kernels.join(" and ")}, engine ${engine} (PAMIR_SEED=${seed})`, { timeout }, async () => {
        const limits = { kernels, tasks: [3, 3], milliseconds: timeout, patience: PATIENCE } as const;
        const round = {
          ...drawRound(seed, row, limits),
          kernels,
          engine,
          engineEnd: undefined,
          kills,
          survivors: 2,
          join: true,
          contexts: 1,
          ends: ENDS,
          operations: OPERATIONS,
          laneBytes: 2048,
          heapBytes: 2 ** 27,
          isTight: false,
          slow: false,
          blockBytes: 4096,
        };
        const { failures, notes, dump, ...seen } = await runAlone(round, () => console.log("Node aborted: once more"));
        const wrong = Object.entries(failures).filter(([, count]) => count > 0);
        expect({ seed, wrong, notes, dump }).toEqual({ seed, wrong: [], notes: [], dump: "" });
        expect(seen.kills).toBe(kills);
        expect(seen.messages).toBeGreaterThan(kills);
      });
    }
  });
}
