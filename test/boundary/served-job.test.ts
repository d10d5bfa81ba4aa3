// The launcher of `pamir run --nodes` and `--hosts`, with tasks that a test plays: which ends it tells of.
import { once } from "node:events";
import { type Duplex, duplexPair, PassThrough } from "node:stream";
import { expect, it, vi } from "vitest";
import { JOIN_BARRIERS, LATER } from "../../src/bootstrap/later.js";
import type { Restarts } from "../../src/cli/run/restarts.js";
import { type LaterTask, ServedJob } from "../../src/cli/run/served.js";
import type { RunTask, TaskEnd } from "../../src/cli/run/task.js";

/** A task of a node of its own. */
class PlayedTask implements RunTask {
  readonly task: number;
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly pmi: Duplex;
  readonly ended: Promise<TaskEnd>;
  readonly told: unknown[] = [];
  readonly kill = vi.fn();
  readonly pass = vi.fn();
  readonly #own: Duplex;
  #end: (end: TaskEnd) => void = () => {};

  constructor(task: number) {
    this.task = task;
    [this.pmi, this.#own] = duplexPair();
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  tell(news: string): void {
    this.told.push(JSON.parse(news));
  }

  /** Says by PMI what attach() says, as far as the launcher looks at it. */
  async attach(): Promise<void> {
    const put = `cmd=put kvsname=pamir_${process.pid} key=address-${this.task} value=1.AA`;
    const barriers = Array.from({ length: JOIN_BARRIERS }, () => "cmd=barrier_in");
    for (const line of ["cmd=init pmi_version=1 pmi_subversion=1", put, ...barriers]) {
      this.#own.write(`${line}\n`);
      await once(this.#own, "data");
    }
  }

  end(code: number): void {
    this.#end({ code, signal: null });
  }

  /** The connection to its host has ended. */
  lose(): void {
    this.#end({ code: null, signal: null, lost: "the connection to host far has ended" });
  }
}

/** Lets streams and promises pass on what they have. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
}

it("a task that is started again is told of tasks and nodes that have ended before, while, and after it starts", async () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  try {
    const tasks = [0, 1, 2, 3, 4].map((task) => new PlayedTask(task));
    const [, second, third, fourth] = tasks as [PlayedTask, PlayedTask, PlayedTask, PlayedTask];
    const later = new PlayedTask(tasks.length);
    let asked: LaterTask | undefined;
    let answer: () => void = () => {};
    const restarts = { spare: 1, replace: (task: number) => (task === 2 ? { task: 5, rank: 2 } : undefined) };
    const job = new ServedJob({
      size: tasks.length,
      timeout: 60_000,
      restarts: restarts as unknown as Restarts,
      onError: "report",
      labels: undefined,
      start: (one) => {
        asked = one;
        return new Promise((resolve) => {
          answer = () => resolve(later);
        });
      },
    });
    const ended = job.run(tasks);
    await Promise.all(tasks.map((task) => task.attach()));
    second.end(1);
    await settle();
    third.end(1);
    await settle();
    expect(JSON.parse(asked?.env[LATER] as string)).toMatchObject({ rank: 2, ended: [1, 2], gone: [1, 2] });
    fourth.end(1);
    await settle();
    expect(later.told).toEqual([]);
    answer();
    await settle();
    expect(later.told).toEqual([{ gone: 3 }, { lost: 3 }]);
    tasks[4]?.end(1);
    await settle();
    // The end of a task's process is certain, whether its link is lost or not.
    expect(later.told).toEqual([3, 4].flatMap((task) => [{ gone: task }, { lost: task }]));
    expect(tasks[0]?.told).toEqual([1, 2, 3, 4].flatMap((task) => [{ gone: task }, { lost: task }]));
    for (const task of [tasks[0], later]) task?.end(0);
    expect(await ended).toBe(1);
  } finally {
    write.mockRestore();
  }
});

it("where the connection to a host has ended, its tasks count as silent: they may go on for a while", async () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  try {
    const tasks = [0, 1, 2].map((task) => new PlayedTask(task));
    const [first, second, third] = tasks as [PlayedTask, PlayedTask, PlayedTask];
    const later = new PlayedTask(tasks.length);
    let asked: LaterTask | undefined;
    const restarts = { spare: 1, replace: () => (asked === undefined ? { task: 3, rank: 1 } : undefined) };
    const job = new ServedJob({
      size: tasks.length,
      timeout: 60_000,
      restarts: restarts as unknown as Restarts,
      onError: "report",
      labels: undefined,
      start: async (one) => {
        asked = one;
        return later;
      },
    });
    const ended = job.run(tasks);
    await Promise.all(tasks.map((task) => task.attach()));
    second.lose();
    await settle();
    expect(first.told).toEqual([{ lost: 1 }]);
    expect(JSON.parse(asked?.env[LATER] as string)).toMatchObject({ rank: 1, ended: [1], gone: [] });
    third.lose();
    await settle();
    expect(later.told).toEqual([{ lost: 2 }]);
    for (const task of [first, later]) task.end(0);
    expect(await ended).toBe(1);
  } finally {
    write.mockRestore();
  }
});
