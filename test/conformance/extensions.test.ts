import { describe } from "vitest";
import { launch } from "../../src/index.js";
import { NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";
import { extensionsSuite, type WithMembers } from "./extensions.suite.js";

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

/** The members are tasks of nodes of a simulated network. */
const nodes =
  (tasksPerNode: number): WithMembers =>
  async (size, body) => {
    const limits = { ...LIMITS, tasks: size };
    const faults = { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 300 };
    const job = new NetworkedJob({ seed: SEED, limits, kernels: ["wasm", "ts"], tasksPerNode, faults });
    const clients = job.tasks.map(({ client }) => client);
    const contexts = clients.map((client) => client.createContext());
    const drive = async <T>(promise: Promise<T>): Promise<T> => {
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
    };
    const geometries = await drive(
      Promise.all(clients.map((client) => client.createGeometry({ from: 0, to: size - 1 }, OPTIONS))),
    );
    await body({ clients, contexts, geometries, drive });
    for (const client of clients) client.close();
  };

describe("contexts of one task", () => {
  extensionsSuite("wasm", contextsOfOneTask("wasm"));
  extensionsSuite("twin", contextsOfOneTask("ts"));
});

describe("nodes of a network that loses, repeats and reorders", () => {
  extensionsSuite("one task each", nodes(1));
  extensionsSuite("two tasks each", nodes(2));
});
