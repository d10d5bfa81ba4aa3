// Tasks that come later: spawned in the place of one that has ended, or adopted from whoever has started their worker.
import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { type Context, type Endpoint, type Job, launch, SHUTDOWN, SUCCESS, type TaskExit } from "pamir";
import { Piscina } from "piscina";
import { describe, expect, it } from "vitest";
import {
  DATA,
  expectFree,
  OTHER,
  PATIENCE,
  processesOf,
  QUIT,
  rejectionOf,
  thrownBy,
  until,
  VARIANTS,
  type Variant,
} from "./support.js";

const module = new URL("tasks/joiner.js", import.meta.url);
const file = module.pathname;

interface Given {
  readonly job: Job;
  readonly context: Context;
  readonly exits: TaskExit[];
  /** What a task answers: what it was sent, its number, how many there are. */
  ask(task: number, byte?: number): Promise<number[]>;
}

async function withMaxTasks(variant: Variant, tasks: number, maxTasks: number, body: (given: Given) => Promise<void>) {
  const exits: TaskExit[] = [];
  const options = {
    tasks,
    maxTasks,
    join: true,
    kernel: variant.kernels.length === 1 ? variant.kernels[0] : undefined,
    heapBytes: 8 * 2 ** 20,
    args: "given",
    workerOptions: { workerData: { joins: "launched" } },
    onExit: (exit: TaskExit) => void exits.push(exit),
    ...processesOf(variant, tasks),
  };
  const job = await launch(tasks === 1 ? null : module, options);
  const context = job.client.createContext();
  const ask = async (task: number, byte = 7) => [
    ...(await context.call(job.client.endpoint(task), DATA, Uint8Array.of(byte), { timeout: PATIENCE })),
  ];
  try {
    await body({ job, context, exits, ask });
  } finally {
    await job.terminate();
  }
}

/** Until an endpoint has ended, as its senders see it. */
function untilEnded(context: Context, to: Endpoint): void {
  until(context, () => context.sendImmediate(to, QUIT) === SHUTDOWN);
}

it.each([
  ["ts", "wasm"],
  ["wasm", "ts"],
] as const)("a job of %s takes a later task of %s", async (kernel, later) => {
  const workerOptions = { workerData: { joins: "launched" } };
  const options = { tasks: 1, maxTasks: 2, join: true, kernel, heapBytes: 2 ** 20, workerOptions };
  await using job = await launch(module, options);
  const context = job.client.createContext();
  const to = job.client.endpoint(job.spawn({ kernel: later }));
  expect([...(await context.call(to, DATA, Uint8Array.of(7), { timeout: PATIENCE }))]).toEqual([7, 1, 2]);
});

const UNMIXED = VARIANTS.slice(0, 2);
const IN_PROCESSES = VARIANTS.filter(({ processes }) => processes !== undefined);

for (const variant of [...UNMIXED, ...IN_PROCESSES]) {
  describe(`later tasks: ${variant.name}`, () => {
    it("whenStarted() awaits a task that comes later, which has the rank that spawn() gives it", () =>
      withMaxTasks(variant, 2, 3, async ({ job, context, ask }) => {
        const order: string[] = [];
        const started = context.whenStarted(2, { timeout: PATIENCE }).then(() => void order.push("started"));
        await context.whenStarted(1, { timeout: PATIENCE });
        await ask(1);
        order.push("spawn");
        expect(job.spawn({ rank: 1 })).toBe(2);
        await started;
        expect(order).toEqual(["spawn", "started"]);
        expect(job.client.rank).toBe(0);
        expect((await ask(2)).slice(0, 2)).toEqual([7, 2]);
        expect(await rejectionOf(context.whenStarted(3))).toMatchObject({ code: "PAMIR_INVAL" });
        expect(await rejectionOf(context.whenStarted(2, { timeout: -1 }))).toMatchObject({ code: "PAMIR_INVAL" });
      }));

    it("a new task takes the place of one that died: a new number, all memory back, resume() works", () =>
      withMaxTasks(variant, 3, 13, async ({ job, context, exits, ask }) => {
        const { client } = job;
        expect([client.size, job.tasks, client.localTasks]).toEqual([3, 3, [0, 1, 2]]);
        await ask(1);
        await ask(2);
        const { free } = job.dump().heap;
        for (let round = 0; round < 10; round++) {
          const victim = client.endpoint(job.tasks - 1);
          expect((await rejectionOf(context.call(victim, OTHER))).code).toBe("PAMIR_SHUTDOWN");
          expect(context.resume([victim])).toBe(SHUTDOWN);
          const task = job.spawn();
          expect(task).toBe(3 + round);
          const to = client.endpoint(task);
          expect(context.resume([to])).toBe(SUCCESS);
          expect(await ask(task)).toEqual([7, task, 4 + round]);
          expect(context.purge([to])).toBe(SUCCESS);
          expect(await ask(task)).toEqual([7, task, 4 + round]);
          expect(await ask(1)).toEqual([7, 1, 4 + round]);
          expect(job.dump().heap.free).toBe(free);
        }
        const all = "the job has had 13 tasks, see launch({ maxTasks })";
        expect(thrownBy(() => job.spawn())).toEqual({ code: "PAMIR_INVAL", text: `spawn() of task 13: ${all}` });
        expect(exits.map(({ task, code, cause }) => [task, code, cause])).toEqual(
          Array.from({ length: 10 }, (_, i) => [2 + i, 5, "exit"]),
        );
      }));

    it("messages sent before the task is there wait for it", () =>
      withMaxTasks(variant, 2, 3, async ({ job, context }) => {
        const early = context.call(job.client.endpoint(2), DATA, Uint8Array.of(1), { timeout: PATIENCE });
        await context.progress({ timeout: 20 }).catch(() => {});
        job.spawn();
        expect([...(await early)]).toEqual([1, 2, 3]);
        expect(thrownBy(() => job.client.endpoint(3))).toMatchObject({ code: "PAMIR_INVAL" });
      }));
  });
}

for (const variant of UNMIXED) {
  describe(`workers of somebody else: ${variant.name}`, () => {
    it("a worker of somebody else joins, leaves, and joins another job", () =>
      withMaxTasks(variant, 1, 3, async ({ job, context, exits, ask }) => {
        const worker = new Worker(file, { workerData: { joins: "parentPort" } });
        const task = job.adopt(worker, { args: "adopted" });
        expect(task).toBe(1);
        expect(await ask(1, 9)).toEqual([9, 1, 2]);
        const said = once(worker, "message");
        context.sendImmediate(job.client.endpoint(1), QUIT);
        untilEnded(context, job.client.endpoint(1));
        expect(await said).toEqual(["task 1 of 2, adopted"]);
        while (exits.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        expect(exits[0]).toMatchObject({ task: 1, code: 0, cause: "exit" });
        await worker.terminate();
      }));

    it("a worker of somebody else dies, in any way: it is noticed, and its memory comes back", () =>
      withMaxTasks(variant, 1, 4, async ({ job, context, exits, ask }) => {
        const { free } = job.dump().heap;
        const ends: [(worker: Worker, to: Endpoint) => unknown, object][] = [
          [(worker) => worker.terminate(), { code: 1, error: "its worker ended without closing the client" }],
          [(_, to) => context.sendImmediate(to, OTHER), { code: 5 }],
        ];
        for (const [i, [end, how]] of ends.entries()) {
          const worker = new Worker(file, { workerData: { joins: "parentPort" } });
          worker.on("error", () => {});
          const task = job.adopt(worker);
          const to = job.client.endpoint(task);
          await ask(task);
          void end(worker, to);
          untilEnded(context, to);
          // A send may find that it has ended before this context gives its memory back.
          expectFree(variant, job, [context], free);
          while (exits.length === i) await new Promise((resolve) => setTimeout(resolve, 5));
          expect(exits[i]).toMatchObject({ task, cause: "exit", ...how });
        }
        // One that ends before it has joined.
        const worker = new Worker("setTimeout(() => {}, 20)", { eval: true });
        const task = job.adopt(worker);
        untilEnded(context, job.client.endpoint(task));
      }));

    it("a worker that calls attach() with two ports at once joins by the first, and only by that", () =>
      withMaxTasks(variant, 1, 3, async ({ job, context, ask }) => {
        const worker = new Worker(file, { workerData: { joins: "ports" } });
        const [one, other] = [new MessageChannel(), new MessageChannel()];
        worker.postMessage([one.port2, other.port2], [one.port2, other.port2]);
        const refused = once(worker, "message");
        const task = job.adopt(one.port1);
        expect(await ask(task)).toEqual([7, task, 2]);
        expect(await refused).toEqual([[1, "PAMIR_INVAL"]]);
        const left = once(worker, "message");
        context.sendImmediate(job.client.endpoint(task), QUIT);
        untilEnded(context, job.client.endpoint(task));
        expect(await left).toEqual([[0, "task 1 of 2, given"]]);
        await worker.terminate();
      }));

    it("terminate() asks it to leave, and leaves its worker alone", () =>
      withMaxTasks(variant, 1, 2, async ({ job, ask }) => {
        const worker = new Worker(file, { workerData: { joins: "parentPort" } });
        const said = once(worker, "message");
        const task = job.adopt(worker);
        await ask(task);
        const exits = await job.terminate();
        expect(exits).toMatchObject([{ task, code: 0, cause: "terminated" }]);
        // Its progress() is under way, or has just resolved with the call.
        expect(["PAMIR_CLOSED", `task ${task} of 2, given`]).toContain((await said)[0]);
        await worker.terminate();
        expect(thrownBy(() => job.spawn()).code).toBe("PAMIR_CLOSED");
        expect(thrownBy(() => job.adopt(worker)).code).toBe("PAMIR_CLOSED");
      }));

    it("a worker that does not leave is not taken for dead: terminate() of its task rejects, and it goes on", () =>
      withMaxTasks(variant, 1, 3, async ({ job, context, exits }) => {
        const flag = new Int32Array(new SharedArrayBuffer(4));
        const worker = new Worker(new URL("tasks/stubborn.js", import.meta.url), { workerData: { flag: flag.buffer } });
        const task = job.adopt(worker);
        await once(worker, "message");
        await expect(job.terminate(task)).rejects.toMatchObject({
          code: "PAMIR_TIMEDOUT",
          message: `terminate() of task ${task}: its worker, which the program has started, has not left within 1000 ms: it blocks, or computes. The task goes on until that worker ends`,
        });
        expect([exits, job.dump().tasks[task]?.state]).toEqual([[], "up"]);
        Atomics.store(flag, 0, 1);
        Atomics.notify(flag, 0);
        untilEnded(context, job.client.endpoint(task));
        expect(await job.terminate(task)).toMatchObject({ task, code: 0, cause: "terminated" });
        await worker.terminate();
      }));

    it("terminate() of all does not wait for a worker that does not leave, and says so", () =>
      withMaxTasks(variant, 1, 3, async ({ job }) => {
        const { buffer: flag } = new Int32Array(new SharedArrayBuffer(4));
        const worker = new Worker(new URL("tasks/stubborn.js", import.meta.url), { workerData: { flag } });
        const task = job.adopt(worker);
        await once(worker, "message");
        const error = "its worker, which the program has started, has not left within 1000 ms";
        expect(await job.terminate()).toEqual([{ task, code: 1, cause: "terminated", error }]);
        await worker.terminate();
      }));

    it("the workers of a piscina, one job after the other", async () => {
      const pool = new Piscina({ filename: file, minThreads: 2, maxThreads: 2 });
      for (let round = 0; round < 3; round++) {
        await withMaxTasks(variant, 1, 3, async ({ job, context, ask }) => {
          const runs = [1, 2].map((task) => {
            const { port1, port2 } = new MessageChannel();
            expect(job.adopt(port1)).toBe(task);
            return pool.run({ port: port2 }, { transferList: [port2] });
          });
          expect(await ask(1)).toEqual([7, 1, 3]);
          expect(await ask(2)).toEqual([7, 2, 3]);
          for (const task of [1, 2]) context.sendImmediate(job.client.endpoint(task), QUIT);
          expect(await Promise.all(runs)).toEqual(["task 1 of 3, given", "task 2 of 3, given"]);
        });
      }
      await pool.destroy();
    });
  });
}

it("job.exited waits for a caller that may still add tasks, and for nobody else", async () => {
  const launched: number[] = [];
  const workerOptions = { workerData: { joins: "launched" } };
  const options = { tasks: 1, maxTasks: 3, heapBytes: 2 ** 22, workerOptions };
  // Nobody joins: who wants another task says so in onExit.
  const job: Job = await launch(module, {
    ...options,
    workerOptions: { workerData: { joins: "nothing" } },
    onExit: ({ task }) => {
      if (task < 2) launched.push(job.spawn());
    },
  });
  expect((await job.exited).map(({ task, code }) => [task, code])).toEqual([
    [0, 0],
    [1, 0],
    [2, 0],
  ]);
  expect(launched).toEqual([1, 2]);
  expect(thrownBy(() => job.spawn()).code).toBe("PAMIR_CLOSED");
  const joined = await launch(null, { ...options, join: true });
  let isOver = false;
  void joined.exited.then(() => {
    isOver = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isOver).toBe(false);
  joined.client.close();
  expect(await joined.exited).toEqual([]);
});

it("job.terminate(task) ends that one, whoever is first; the others go on", async () => {
  const sleeper = new URL("tasks/sleeper.js", import.meta.url);
  const job = await launch(sleeper, { tasks: 3, join: true, heapBytes: 2 ** 22 });
  const context = job.client.createContext();
  const [once, twice] = [job.terminate(1), job.terminate(1)];
  expect(await once).toMatchObject({ task: 1, cause: "terminated" });
  expect(await twice).toEqual(await once);
  expect(await job.terminate(1)).toEqual(await once);
  await context.whenEnded(job.client.endpoint(1), { timeout: PATIENCE });
  while (job.dump().tasks[2]?.contexts.length !== 1) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(job.dump().tasks.map(({ state, contexts }) => [state, contexts.length])).toEqual([
    ["up", 1],
    ["dead", 0],
    ["up", 1],
  ]);
  for (const task of [0, 3, 1.5]) expect((await rejectionOf(job.terminate(task))).code).toBe("PAMIR_INVAL");
  const last = job.terminate(2);
  expect((await job.terminate()).map(({ task, cause }) => [task, cause])).toEqual([
    [1, "terminated"],
    [2, "terminated"],
  ]);
  expect(await last).toMatchObject({ task: 2 });
});

it("launch({ signal }): aborted before, it fails; aborted later, the job is terminated", async () => {
  const aborted = launch(module, { tasks: 1, signal: AbortSignal.abort("why") });
  expect(await rejectionOf(aborted)).toMatchObject({ code: "PAMIR_CANCELED", cause: "why" });
  const controller = new AbortController();
  const sleeper = new URL("tasks/sleeper.js", import.meta.url);
  const job = await launch(sleeper, { tasks: 2, heapBytes: 2 ** 22, signal: controller.signal });
  controller.abort();
  expect((await job.exited).map(({ cause }) => cause)).toEqual(["terminated", "terminated"]);
});

it("bad input of later tasks", async () => {
  const job = await launch(null, { tasks: 1, join: true, maxTasks: 2, heapBytes: 2 ** 22, onError: "ignore" });
  expect(thrownBy(() => job.adopt(5 as never)).text).toContain("target of adopt() is 5, not a Worker or MessagePort");
  expect(thrownBy(() => job.spawn()).text).toContain("entry is null, not a URL");
  expect(thrownBy(() => job.spawn({ entry: "nowhere" })).code).toBe("PAMIR_ENTRY");
  expect(thrownBy(() => job.spawn({ entry: module, kernel: "c" as never })).text).toContain('kernel is "c"');
  expect(thrownBy(() => job.spawn({ entry: module, args: () => {} })).text).toContain("can't be sent");
  expect(thrownBy(() => job.spawn({ entry: module, workerOptions: { eval: true } })).code).toBe("PAMIR_INVAL");
  expect(job.tasks).toBe(1);
  const refused = job.spawn({ entry: module, workerOptions: { resourceLimits: 5 as never, execArgv: ["--no-such"] } });
  await job.terminate();
  expect((await job.exited).map(({ task, cause }) => [task, cause])).toEqual([[refused, "error"]]);
  for (const maxTasks of [-1, 0, 1.5, 5000]) {
    expect(await rejectionOf(launch(null, { tasks: 1, join: true, maxTasks }))).toMatchObject({ code: "PAMIR_INVAL" });
  }
  expect((await rejectionOf(launch(null, { tasks: 2 }))).code).toBe("PAMIR_ENTRY");
});
