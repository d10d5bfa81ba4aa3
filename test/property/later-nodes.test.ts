// Nodes that come later than the others, on a simulated network: two nodes of two tasks, and two later ones of a task each. The
// first frame of a later node says that its task is there.
import { describe, expect, it } from "vitest";
import { JOB_STARTED_OFFSET } from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { Context } from "../../src/pami/context.js";
import { type Networked, NetworkedJob } from "../support/networked.js";
import { replayNote, SEED } from "../support/seed.js";

const WORLD = 4;
const LIMITS = { tasks: 6, contexts: 2, laneBytes: 2048, heapBytes: 2 ** 22, regions: 8, fifos: 2, slots: 8 };
const FAULTS = { loss: 0.1, duplicate: 0.1, reorder: 0.3, reorderMicroseconds: 3000 };

function laterJob(kernels: readonly KernelName[], more: number) {
  const job = new NetworkedJob({
    seed: SEED + more,
    limits: LIMITS,
    kernels,
    tasksPerNode: 2,
    world: WORLD,
    faults: FAULTS,
  });
  for (const { kernel, map, client } of job.tasks) {
    kernel.storeWord(map.job + JOB_STARTED_OFFSET, Math.max(WORLD, client.task + 1));
  }
  const contexts = job.tasks.map(({ client }) => client.createContext());
  for (const [task, context] of contexts.entries()) context.dispatch(1, () => Int32Array.of(task));
  const one = (task: number): Context => contexts[task] as Context;
  const member = (task: number): Networked => job.tasks[task] as Networked;
  const until = async (condition: () => boolean): Promise<void> => {
    for (let turns = 0; turns < 2000 && !condition(); turns++) {
      for (const [task, context] of contexts.entries()) if (!member(task).isDown && !context.closed) context.advance();
      await job.turn();
    }
    expect(condition()).toBe(true);
  };
  /** The answer of a task, or the code of an error. */
  const ask = async (from: number, to: number): Promise<unknown> => {
    let answer: unknown;
    one(from)
      .call(one(to).endpoint, 1)
      .then((reply) => {
        answer = new Int32Array(reply.slice().buffer)[0];
      })
      .catch(({ code }) => {
        answer = code;
      });
    await until(() => answer !== undefined);
    return answer;
  };
  const close = (): void => {
    for (const { client, isDown } of job.tasks) if (!isDown) client.close();
  };
  return { job, member, until, ask, close };
}

const KERNELS = [["wasm"], ["ts"], ["wasm", "ts"]].map((kernels) => ({ kernels: kernels as KernelName[] }));
describe.each(KERNELS)(`later nodes, $kernels (${replayNote()})`, ({ kernels }) => {
  it.each([0, 1, 2])("are counted once they greet, and reach all others, + %i", async (more) => {
    const { member, until, ask, close } = laterJob(kernels, more);
    const sizes = (): number[] => [0, 1, 2, 3].map((task) => member(task).client.size);
    expect(sizes()).toEqual([4, 4, 4, 4]);
    for (const node of [0, 1]) member(4).node.greet(node);
    await until(() => sizes().every((size) => size === 5));
    for (const node of [0, 1, 2]) member(5).node.greet(node);
    await until(() => [...sizes(), member(4).client.size].every((size) => size === 6));
    for (const [from, to] of [
      [1, 4],
      [4, 3],
      [3, 5],
      [5, 4],
      [4, 5],
    ] as const)
      expect(await ask(from, to)).toBe(to);
    close();
  });

  it("one ends: the others learn it, and go on", async () => {
    const { job, member, until, ask, close } = laterJob(kernels, 3);
    for (const later of [4, 5]) for (const node of [0, 1]) member(later).node.greet(node);
    await until(() => member(3).client.size === 6);
    expect(await ask(3, 4)).toBe(4);
    job.endNode(4);
    // The launcher says so.
    for (const task of [0, 2, 5]) member(task).node.lose(2);
    for (const from of [0, 1, 3, 5]) expect(await ask(from, 4)).toBe("PAMIR_SHUTDOWN");
    expect(await ask(1, 5)).toBe(5);
    close();
  });
});
