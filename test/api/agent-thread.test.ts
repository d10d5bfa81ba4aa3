// Nodes whose agent has a thread of its own: tasks block, also where a node has one task; frames go through ports between the
// agents. An agent that dies takes no task with it.
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import type { KernelName } from "../../src/core/kernel-name.js";
import { SHUTDOWN } from "../../src/core/result.js";
import { sharedAtomics } from "../../src/kernel/atomics.js";
import { nodeLimits } from "../../src/node/limits.js";
import { markDead, markEngineDead } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { bundle } from "../support/bundle.js";
import type { WorkerSetup } from "./node/worker.js";

const LIMITS = { contexts: 2, laneBytes: 16_384, heapBytes: 2 ** 24, regions: 64, fifos: 2, slots: 16 };
const source = bundle(new URL("./node/worker.ts", import.meta.url));

/** A job of nodes, each with a memory, an agent's worker and a worker for each task. */
async function start(tasks: number, tasksPerNode: number, kernels: readonly KernelName[], program: string) {
  const url = await source;
  const nodes = Math.ceil(tasks / tasksPerNode);
  const agents: Worker[] = [];
  const workers: Worker[] = [];
  const results: Promise<unknown>[] = [];
  /** What each task tells first, before its end. */
  const news: Promise<string>[] = [];
  const made = Array.from({ length: nodes }, (_, node) => {
    const limits = nodeLimits({ ...LIMITS, tasks }, tasksPerNode, tasks - tasksPerNode);
    const kernel = kernels[node % kernels.length] as KernelName;
    const room = makeJobMemory({ limits, isFixed: true, base: 0, first: node * tasksPerNode }, kernel === "wasm");
    return { ...room, kernel };
  });
  const setupOf = (node: number, slot: number | undefined): WorkerSetup => {
    const { shared, kernel, map } = made[node] as (typeof made)[0];
    return { shared: shared as never, kernel, job: map.job, tasksPerNode, slot, program };
  };
  for (const [node, { map, memory }] of made.entries()) {
    const agent = new Worker(url, { workerData: setupOf(node, undefined) });
    agents.push(agent);
    agent.on("message", (news) => {
      if (news === "up") return;
      agents[news.connect]?.postMessage({ from: node, end: news.end }, [news.end]);
    });
    agent.on("exit", (code) => {
      // An agent that has served to the end has said what its tasks said last.
      const hasLeft = code === 0;
      markEngineDead(sharedAtomics(memory), map);
      for (const [other, worker] of agents.entries()) {
        if (other === node) continue;
        for (let slot = 0; slot < tasksPerNode; slot++)
          worker.postMessage({ ended: node * tasksPerNode + slot, hasLeft });
      }
    });
  }
  await Promise.all(agents.map((agent) => new Promise((resolve) => agent.once("message", resolve))));
  for (let task = 0; task < tasks; task++) {
    const node = Math.floor(task / tasksPerNode);
    const slot = task % tasksPerNode;
    const worker = new Worker(url, { workerData: setupOf(node, slot) });
    workers.push(worker);
    news.push(new Promise((resolve) => worker.once("message", (told) => resolve(told.news))));
    results.push(
      // The others wait for a task that fails: the test ends at once.
      new Promise((resolve, reject) => {
        worker.on("message", (end) => {
          if ("error" in end) reject(new Error(`task ${task}: ${end.error}`));
          else if (!("news" in end)) resolve(end);
        });
        worker.on("error", reject);
        worker.on("exit", () => {
          const { memory, map } = made[node] as (typeof made)[0];
          markDead(sharedAtomics(memory), map, slot);
        });
      }),
    );
  }
  const stop = async (): Promise<void> => {
    await Promise.all([...workers, ...agents].map((worker) => worker.terminate()));
  };
  return { agents, workers, results, news, stop };
}

const KERNELS = [["wasm"], ["ts"], ["wasm", "ts"]] as const;

describe.each(KERNELS.map((kernels) => ({ kernels })))("agents with threads: $kernels", ({ kernels }) => {
  let job: Awaited<ReturnType<typeof start>> | undefined;
  afterEach(() => job?.stop());

  it.each([1, 2])("tasks of two nodes block while they wait for each other, with %i tasks a node", async (perNode) => {
    job = await start(2 * perNode, perNode, kernels, "pingPong");
    const results = await Promise.all(job.results);
    expect(results[0]).toEqual({ result: 2000 });
    expect(results.at(-1)).toEqual({ result: 2000 });
  });

  it.each([
    [2, 1],
    [4, 2],
    [6, 2],
  ])("messages, puts, rmws, gets, calls and offers among %i tasks, %i a node", async (tasks, perNode) => {
    job = await start(tasks, perNode, kernels, "all");
    const results = (await Promise.all(job.results)) as { result: { sums: number[]; sum: number } }[];
    const all = Array.from({ length: tasks }, (_, task) => task);
    const sum = (tasks * (tasks + 1)) / 2;
    expect(results).toEqual(
      all.map((task) => ({
        result: { sums: all.filter((other) => other !== task).map((other) => other + 1), sum: sum - task - 1 },
      })),
    );
  });

  it("an agent that dies: its tasks go on among themselves, and what is for other nodes comes to SHUTDOWN", async () => {
    job = await start(4, 2, kernels, "cutOff");
    expect(await Promise.all(job.news.slice(0, 2))).toEqual(["known", "known"]);
    await job.agents[0]?.terminate();
    const results = await Promise.all(job.results.slice(0, 2));
    for (const result of results) expect(result).toEqual({ result: [SHUTDOWN, SHUTDOWN, 1] });
  });
});
