// What comes of two acts at the same moment, on real workers: 10⁶ rounds each, and some outcomes never.
import { Worker } from "node:worker_threads";
import { beforeAll, describe, expect, it } from "vitest";
import { bundle } from "../support/bundle.js";
import { MEMORY_PAGES } from "./control.js";
import type { ActorOrders } from "./outcomes/actor.js";
import { LITMUS } from "./outcomes/litmus.js";

const ROUNDS = 1e6;
let actor: URL;

beforeAll(async () => {
  actor = await bundle(new URL("outcomes/actor.ts", import.meta.url));
});

const KERNELS = [
  ["wasm", "wasm"],
  ["ts", "ts"],
  ["wasm", "ts"],
] as const;

describe.each(KERNELS)("%s with %s", (...kernels) => {
  it.each(LITMUS)("$name", async ({ name, forbidden }) => {
    const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES, shared: true });
    const meeting = new Int32Array(new SharedArrayBuffer(512));
    const workers = kernels.map((kernel, me) => {
      const workerData: ActorOrders = { litmus: name, kernel, memory, meeting, me: me as 0 | 1, rounds: ROUNDS };
      return new Worker(actor, { workerData });
    });
    try {
      const counts = await new Promise<Record<string, number>>((resolve, reject) => {
        for (const worker of workers) worker.on("error", reject);
        workers[0]?.once("message", resolve);
      });
      console.log(`${kernels.join(" with ")}, ${name}:`, counts);
      expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(ROUNDS);
      expect(Object.fromEntries(forbidden.map((outcome) => [outcome, counts[outcome] ?? 0]))).toEqual(
        Object.fromEntries(forbidden.map((outcome) => [outcome, 0])),
      );
    } finally {
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
  });
});
