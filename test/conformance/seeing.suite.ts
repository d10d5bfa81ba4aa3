// Dumps and traces of a whole job, whether tasks share memory or not: a node that can't answer is named.
import { type Context, type Job, type LaunchOptions, launch } from "pamir";
import { describe, expect, it } from "vitest";
import { ANSWER, BUSY, ECHO, THROW } from "./tasks/ids.js";

const TIMEOUT = { timeout: 60_000 };
const ENTRY = new URL("./tasks/peer.js", import.meta.url);
/** Milliseconds that no busy task answers in. */
const SOON = { timeout: 300 };

interface Given {
  readonly job: Job;
  readonly context: Context;
  readonly isShared: boolean;
  /** Sends something that each of these tasks answers by one message. */
  ask(tasks: readonly number[], dispatch: number): Promise<void>;
  /** Has a task be busy for ever. It says so before: where tasks share no memory, this waits until it answers no more. */
  occupy(task: number): Promise<void>;
}

/** A job of which this thread is task 0. */
async function withJob(options: LaunchOptions, body: (given: Given) => Promise<void>): Promise<void> {
  const common = { join: true, heapBytes: 16 * 1024 ** 2, args: {}, onError: "ignore" } as const;
  const job = await launch(ENTRY, { ...common, ...options });
  const { client } = job;
  const context = client.createContext();
  let answers = 0;
  context.dispatch(ANSWER, () => {
    answers++;
  });
  const ask = async (tasks: readonly number[], dispatch: number): Promise<void> => {
    const all = answers + tasks.length;
    for (const task of tasks) context.sendImmediate(client.endpoint(task), dispatch);
    while (answers < all) await context.progress(TIMEOUT);
  };
  const isShared = client.localTasks.length > 1;
  const occupy = async (task: number): Promise<void> => {
    await ask([task], BUSY);
    const isSilent = async () =>
      (await job.dumpAll(SOON)).some(({ tasks, state }) => tasks.includes(task) && state === "silent");
    while (!isShared && !(await isSilent()));
  };
  try {
    await body({ job, context, isShared, ask, occupy });
  } finally {
    await job.terminate();
  }
}

export function seeingSuite(name: string): void {
  describe(`${name}: dumps and traces of the whole job`, () => {
    it("each node's dump is there, and has its own tasks", () =>
      withJob({ tasks: 3 }, async ({ job, isShared, ask }) => {
        await ask([1, 2, 1], ECHO);
        const dumps = await job.dumpAll(TIMEOUT);
        expect(dumps.map(({ tasks, state }) => [tasks, state])).toEqual(
          isShared ? [[[0, 1, 2], "answered"]] : [0, 1, 2].map((task) => [[task], "answered"]),
        );
        const taken = [0, 1, 2].map((number) => {
          const dump = dumps.find(({ tasks }) => tasks.includes(number))?.dump;
          expect(String(dump)).toMatch(/^heap: \d+ of \d+ bytes free/);
          const { state, contexts } = dump?.tasks.find(({ task }) => task === number) ?? {};
          return [state, contexts?.[0]?.messages];
        });
        expect(taken).toEqual([
          ["up", 3],
          ["up", 2],
          ["up", 1],
        ]);
      }));

    it("one that is busy is silent, one that has ended is named, and both after it has become known", () =>
      withJob({ tasks: 3 }, async ({ job, context, isShared, occupy }) => {
        await occupy(1);
        context.sendImmediate(job.client.endpoint(2), THROW);
        await context.whenEnded(job.client.endpoint(2), TIMEOUT);
        const states = async (options: { timeout: number }) =>
          (await job.dumpAll(options)).map(({ state, dump }) => [state, dump === undefined]);
        const both = await Promise.all([states(SOON), states({ timeout: 0 })]);
        if (isShared) expect(both).toEqual([[["answered", false]], [["answered", false]]]);
        else {
          // Without time for an answer the caller's own is there.
          const silent = [
            ["answered", false],
            ["silent", true],
            ["ended", true],
          ];
          expect(both).toEqual([silent, silent]);
        }
        // One that is asked may end, and then none waits for it.
        const asked = states({ timeout: Number.POSITIVE_INFINITY });
        await job.terminate(1);
        expect((await asked).map(([state]) => state)).toEqual(isShared ? ["answered"] : ["answered", "ended", "ended"]);
        await job.terminate();
        expect((await states(TIMEOUT)).length).toBe(isShared ? 1 : 3);
      }));

    it("of a job whose launcher has not joined", async () => {
      const job = await launch(ENTRY, { tasks: 2, args: {}, heapBytes: 16 * 1024 ** 2 });
      const dumps = await job.dumpAll(TIMEOUT);
      expect(dumps.flatMap(({ tasks }) => tasks)).toEqual([0, 1]);
      expect(dumps.every(({ state, dump }) => state === "answered" && dump !== undefined)).toBe(true);
      await job.terminate();
    });

    it("the trace has the events of all tasks, with arrows between them; of one that is busy it says that", () =>
      withJob({ tasks: 2, trace: { events: 1024 } }, async ({ job, isShared, ask, occupy }) => {
        await ask([1, 1, 1], ECHO);
        const count = async (ph: string) => (await job.traceAll(TIMEOUT)).traceEvents.filter((e) => e.ph === ph).length;
        const end = performance.now() + TIMEOUT.timeout;
        while (((await count("s")) < 6 || (await count("f")) < 6) && performance.now() < end);
        const { traceEvents } = await job.traceAll(TIMEOUT);
        expect(traceEvents.filter(({ cat, tid }) => cat === "send" && tid === 1).length).toBe(3);
        const ends = (ph: string) => traceEvents.filter((event) => event.ph === ph).map(({ id }) => id);
        expect([ends("s").length, ends("f").sort()]).toEqual([6, ends("s").sort()]);
        await occupy(1);
        const names = (await job.traceAll(SOON)).traceEvents
          .filter(({ ph }) => ph === "M")
          .map(({ args }) => args?.name);
        expect(names).toEqual(["task 0", isShared ? "task 1" : "task 1, not read"]);
      }));

    it("wrong options are refused, and a trace of a job without one", () =>
      withJob({ tasks: 1 }, async ({ job }) => {
        const code = "PAMIR_INVAL";
        await expect(job.dumpAll({ timeout: -1 })).rejects.toMatchObject({ code });
        await expect(job.dumpAll({ some: 1 } as object)).rejects.toMatchObject({ code });
        await expect(job.traceAll({ timeout: Number.NaN })).rejects.toMatchObject({ code });
        await expect(job.traceAll()).rejects.toMatchObject({ code, message: expect.stringMatching(/without trace/) });
      }));
  });
}
