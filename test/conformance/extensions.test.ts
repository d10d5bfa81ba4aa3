import { describe, expect, it } from "vitest";
import { type Counter, launch } from "../../src/index.js";
import { NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";
import { extensionsSuite, type Members, type WithMembers } from "./extensions.suite.js";

const OPTIONS = { timeout: 60_000 };
const LIMITS = { contexts: 1, laneBytes: 8192, heapBytes: 8 * 2 ** 20, regions: 64, fifos: 2, slots: 64 };

/** The members are contexts of one task. */
const contextsOfOneTask =
  (kernel: "wasm" | "ts"): WithMembers =>
  async (size, body) => {
    const job = await launch(null, { tasks: 1, join: true, contexts: size, kernel, heapBytes: 16 * 1024 ** 2 });
    try {
      const { client } = job;
      const contexts = Array.from({ length: size }, () => client.createContext());
      const endpoints = contexts.map(({ endpoint }) => endpoint);
      const geometries = await Promise.all(
        contexts.map((context) => client.createGeometry(endpoints, { ...OPTIONS, context })),
      );
      await body({ clients: contexts.map(() => client), contexts, geometries, drive: (promise) => promise });
    } finally {
      await job.terminate();
    }
  };

/** Has time of a simulated network go on until a promise has settled. */
async function drive<T>(job: NetworkedJob, promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  promise.then(over, over);
  while (!isOver) {
    await job.turn();
    await new Promise((done) => setImmediate(done));
  }
  return promise;
}

/** The members are tasks of nodes of a simulated network. */
const nodes =
  (tasksPerNode: number): WithNodes =>
  async (size, body) => {
    const limits = { ...LIMITS, tasks: size };
    const faults = { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 300 };
    const job = new NetworkedJob({ seed: SEED, limits, kernels: ["wasm", "ts"], tasksPerNode, faults });
    const clients = job.tasks.map(({ client }) => client);
    const contexts = clients.map((client) => client.createContext());
    const geometries = await drive(
      job,
      Promise.all(clients.map((client) => client.createGeometry({ from: 0, to: size - 1 }, OPTIONS))),
    );
    await body({ clients, contexts, geometries, drive: (promise) => drive(job, promise) }, job);
    for (const { client, isDown } of job.tasks) if (!isDown) client.close();
  };

type WithNodes = (size: number, body: (given: Members, job: NetworkedJob) => Promise<void>) => Promise<void>;

extensionsSuite("contexts of one task, wasm", contextsOfOneTask("wasm"));
extensionsSuite("contexts of one task, twin", contextsOfOneTask("ts"));
extensionsSuite("nodes of a task each", nodes(1));
extensionsSuite("nodes of two tasks each", nodes(2));

describe("nodes of a network that loses, repeats and reorders", () => {
  it("a counter that has no answer in time names the member that has the word", () =>
    nodes(1)(3, async ({ geometries, drive }) => {
      const counters = await drive(
        Promise.all(geometries.map((geometry) => geometry.createCounter({ root: 1, ...OPTIONS }))),
      );
      const [counter] = counters as [Counter];
      const text = "of rank 0 still waits for rank 1 (context 0 of task 1)";
      for (const [name, call] of [
        ["next", () => counter.next({ timeout: 0 })],
        ["add", () => counter.add(1, { timeout: 0 })],
      ] as const) {
        await expect(drive(call())).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT", message: `${name}() ${text}` });
      }
      // So many are under way that the next one waits for a place.
      const asked = Array.from({ length: 256 }, () => counter.next(OPTIONS));
      await expect(drive(counter.next({ timeout: 0 }))).rejects.toThrow(`next() ${text}`);
      await drive(Promise.all(asked));
    }));

  it.each([1, 2])("a task ends, %i a node: exchanges fail for all that still exchange", (tasksPerNode) =>
    nodes(tasksPerNode)(6, async ({ geometries, drive }, job) => {
      const parameters = { size: [12, 30], processes: [6, 1], ...OPTIONS };
      const grids = await drive(Promise.all(geometries.map((geometry) => geometry.createGrid(parameters))));
      await drive(Promise.all(grids.map((grid) => grid.exchange(0, OPTIONS))));
      const waiting = grids.slice(0, 5).map((grid) =>
        (async () => {
          for (let step = 0; ; step++) {
            const code = await grid.exchange(0, OPTIONS).then(
              () => undefined,
              (error) => error.code as string,
            );
            if (code !== undefined) return { step, code };
          }
        })(),
      );
      job.end(5);
      const ends = await drive(Promise.all(waiting));
      expect(ends.map(({ code }) => code)).toEqual(ends.map(() => "PAMIR_SHUTDOWN"));
      // A member that is farther away may get a step farther.
      for (const [rank, { step }] of ends.entries()) expect(step).toBeLessThanOrEqual(5 - rank);
    }),
  );
});
