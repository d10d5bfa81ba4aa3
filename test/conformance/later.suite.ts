// Tasks that come later, in a browser: by spawn() and adopt(), whether tasks share memory or not.
import { type Context, type Job, type LaunchOptions, launch, SHUTDOWN, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import { ASK, LEAVE } from "../browser/isolated/tasks/joiner.js";
import { ANSWER, CLOSE, ECHO, END_OF, FORWARD, SIZE, THROW } from "./tasks/ids.js";

const TIMEOUT = { timeout: 60_000 };
const ENTRY = new URL("./tasks/peer.js", import.meta.url);
const MISSING = new URL("./tasks/missing.js", import.meta.url);

/** Advances until something holds. */
async function until(context: Context, condition: () => boolean): Promise<void> {
  while (!condition()) await context.progress(TIMEOUT);
}

/** A job of which this thread is task 0. */
async function withJob(
  options: LaunchOptions,
  body: (given: { readonly job: Job; readonly context: Context; readonly answers: number[] }) => Promise<void>,
): Promise<void> {
  const common = { join: true, heapBytes: 16 * 1024 ** 2, args: {}, onError: "ignore" } as const;
  const job = await launch(ENTRY, { ...common, ...options });
  const context = job.client.createContext();
  const answers: number[] = [];
  context.dispatch(ANSWER, ({ header, payload }) => {
    const bytes = (header.length > 0 ? header : payload).slice();
    answers.push(new Int32Array(bytes.buffer)[0] as number);
  });
  try {
    await body({ job, context, answers });
  } finally {
    await job.terminate();
  }
}

export function laterSuite(name: string): void {
  describe(`${name}: tasks that come later`, () => {
    it("spawned in the place of one that has ended", () => {
      const ended: number[] = [];
      const onExit = ({ task }: { task: number }) => void ended.push(task);
      return withJob({ tasks: 2, maxTasks: 3, onExit }, async ({ job, context, answers }) => {
        context.sendImmediate(job.client.endpoint(1), THROW);
        await context.whenEnded(job.client.endpoint(1), TIMEOUT);
        expect(ended).toEqual([1]);
        expect(job.spawn()).toBe(2);
        context.sendImmediate(job.client.endpoint(2), ECHO, Int32Array.of(21));
        await until(context, () => answers.length === 1);
        expect([answers, job.client.size, job.tasks]).toEqual([[21], 3, 3]);
      });
    });

    it("every task knows how many there are", () =>
      withJob({ tasks: 2, maxTasks: 5 }, async ({ job, context }) => {
        const { client } = job;
        const sizeAt = async (task: number) => [...(await context.call(client.endpoint(task), SIZE, null, TIMEOUT))];
        expect([client.size, await sizeAt(1)]).toEqual([2, [1, 2]]);
        for (const task of [2, 3]) {
          expect(job.spawn()).toBe(task);
          expect([client.size, await sizeAt(task)]).toEqual([task + 1, [task, task + 1]]);
          // The news may still be under way.
          let size = 0;
          for (const end = performance.now() + TIMEOUT.timeout; size <= task && performance.now() < end; )
            size = (await sizeAt(1))[1] as number;
          expect(size).toBe(task + 1);
        }
      }));

    it("messages to them wait: of the caller, of another task, and of one that has left since", () =>
      withJob({ tasks: 3, maxTasks: 4 }, async ({ job, context, answers }) => {
        const { client } = job;
        expect(context.sendImmediate(client.endpoint(3), ECHO, Int32Array.of(1000))).toBe(SUCCESS);
        for (const via of [1, 2])
          context.sendImmediate(client.endpoint(via), FORWARD, Int32Array.of(3), Int32Array.of(1000 + via));
        context.sendImmediate(client.endpoint(2), CLOSE);
        await context.whenEnded(client.endpoint(2), TIMEOUT);
        answers.length = 0;
        expect(job.spawn()).toBe(3);
        await until(context, () => answers.length === 3);
        expect(answers.sort()).toEqual([1000, 1001, 1002]);
        // It hears of the end that was before it.
        expect([...(await context.call(client.endpoint(3), END_OF, Int32Array.of(2), TIMEOUT))]).toEqual([2]);
      }));

    it("one that dies while it starts: all are told, and what waited for it ends", () => {
      const ended: unknown[] = [];
      return withJob({ tasks: 2, maxTasks: 3, onExit: (exit) => void ended.push(exit) }, async ({ job, context }) => {
        const to = job.client.endpoint(2);
        const asked = context.call(to, SIZE, null, TIMEOUT).catch(({ code }) => code);
        const heard = context.call(job.client.endpoint(1), END_OF, Int32Array.of(2), TIMEOUT);
        expect(job.spawn({ entry: MISSING })).toBe(2);
        await context.whenEnded(to, TIMEOUT);
        expect(ended).toMatchObject([
          { task: 2, cause: "error", error: expect.stringMatching(/missing\.js: its script/) },
        ]);
        expect([await asked, [...(await heard)]]).toEqual(["PAMIR_SHUTDOWN", [2]]);
        expect(context.sendImmediate(to, ECHO)).toBe(SHUTDOWN);
      });
    });

    it("they are interrupted and terminated as others are", () =>
      withJob({ tasks: 2, maxTasks: 4 }, async ({ job, context }) => {
        const { client } = job;
        for (const task of [2, 3]) {
          expect(job.spawn({ args: { noWaitAsync: false } })).toBe(task);
          await context.call(client.endpoint(task), SIZE, null, TIMEOUT);
        }
        job.interrupt(2);
        await context.whenEnded(client.endpoint(2), TIMEOUT);
        expect(await job.terminate(2)).toMatchObject({ task: 2, cause: "error", errorCode: "PAMIR_INTERRUPTED" });
        expect(await job.terminate(3)).toEqual({ task: 3, code: 1, cause: "terminated" });
        await context.whenEnded(client.endpoint(3), TIMEOUT);
        await context.call(client.endpoint(1), SIZE, null, TIMEOUT);
        expect((await job.terminate()).map(({ task }) => task)).toEqual([1, 2, 3]);
      }));

    it("what is wrong is refused, and the number is not lost", () =>
      withJob({ tasks: 1, maxTasks: 2 }, async ({ job, context }) => {
        const coded = (code: string) => expect.objectContaining({ code });
        expect(() => job.spawn({ args: () => {} })).toThrowError(coded("PAMIR_INVAL"));
        expect(() => job.adopt(new MessageChannel().port1, { args: () => {} })).toThrowError(coded("PAMIR_INVAL"));
        expect(() => job.spawn({ entry: () => ({}) as Worker })).toThrowError(coded("PAMIR_ENTRY"));
        expect(() => job.spawn({ entry: "no URL" })).toThrowError(coded("PAMIR_ENTRY"));
        expect(() => job.spawn({ some: 1 } as object)).toThrowError(coded("PAMIR_INVAL"));
        expect(job.spawn()).toBe(1);
        expect(() => job.spawn()).toThrowError(coded("PAMIR_INVAL"));
        await context.call(job.client.endpoint(1), SIZE, null, TIMEOUT);
        await job.terminate();
        expect(() => job.spawn()).toThrowError(coded("PAMIR_CLOSED"));
      }));

    it("of a job whose launcher has not joined", async () => {
      const job = await launch(ENTRY, { tasks: 1, maxTasks: 2, args: {}, heapBytes: 16 * 1024 ** 2 });
      expect(job.spawn()).toBe(1);
      expect(await job.terminate(1)).toMatchObject({ task: 1, cause: "terminated" });
      expect(await job.terminate()).toMatchObject([{ task: 0 }, { task: 1 }]);
    });

    it("adopted by the worker itself, in one job after the other, and asked to leave before it has begun", async () => {
      const worker = new Worker(new URL("../browser/isolated/tasks/self-joiner.js", import.meta.url), {
        type: "module",
      });
      const left = () =>
        new Promise<void>((resolve) => {
          worker.addEventListener("message", ({ data }) => data === "left" && resolve());
        });
      const options = { tasks: 1, maxTasks: 2, join: true, heapBytes: 16 * 1024 ** 2, onError: "ignore" } as const;
      for (let round = 0; round < 3; round++) {
        const job = await launch(null, options);
        const context = job.client.createContext();
        worker.postMessage("join");
        const hasLeft = left();
        const task = job.client.endpoint(job.adopt(worker));
        if (round < 2) {
          expect([...(await context.call(task, ASK, null, TIMEOUT))]).toEqual([1, 2]);
          context.sendImmediate(task, LEAVE);
          await context.whenEnded(task, TIMEOUT);
        }
        // In the last round it is asked at once.
        const exits = await job.terminate();
        await hasLeft;
        expect(exits).toMatchObject([{ task: 1, code: 0 }]);
      }
      worker.terminate();
    });

    it("adopted, by the worker or by a port; it leaves, is asked to leave, and is killed", async () => {
      const make = () =>
        new Worker(new URL("../browser/isolated/tasks/joiner.js", import.meta.url), { type: "module" });
      const options = { tasks: 1, maxTasks: 4, join: true, heapBytes: 16 * 1024 ** 2, onError: "ignore" } as const;
      const job = await launch(null, options);
      const context = job.client.createContext();
      const worker = make();
      const left = () => new Promise((resolve) => worker.addEventListener("message", resolve, { once: true }));
      const adopt = (by: Worker) => {
        const { port1, port2 } = new MessageChannel();
        by.postMessage(port2, [port2]);
        return job.client.endpoint(job.adopt(port1));
      };
      const first = adopt(worker);
      expect([...(await context.call(first, ASK, null, TIMEOUT))]).toEqual([1, 2]);
      const hasLeft = left();
      context.sendImmediate(first, LEAVE);
      await Promise.all([hasLeft, context.whenEnded(first, TIMEOUT)]);
      const second = adopt(worker);
      expect([...(await context.call(second, ASK, null, TIMEOUT))]).toEqual([2, 3]);
      const other = make();
      const third = adopt(other);
      expect([...(await context.call(third, ASK, null, TIMEOUT))]).toEqual([3, 4]);
      other.terminate();
      await context.whenEnded(third, TIMEOUT);
      const wasAsked = left();
      const exits = await job.terminate();
      expect(exits).toMatchObject([
        { task: 1, code: 0 },
        { task: 2 },
        { task: 3, code: 1, error: "its worker ended without closing the client" },
      ]);
      await wasAsked;
      worker.terminate();
    });
  });
}
