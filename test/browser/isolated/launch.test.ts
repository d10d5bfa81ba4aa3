// Jobs on a page that is cross-origin isolated: the page is task 0 and never blocks, the other tasks are Web Workers.
import { type Client, type Context, info, type Job, launch, type MemRegion, SHUTDOWN, SUCCESS } from "pamir";
import { afterEach, describe, expect, it, vi } from "vitest";
import { laterSuite } from "../../conformance/later.suite.js";
import { seeingSuite } from "../../conformance/seeing.suite.js";
import { ANSWER, CLOSE, FLOOD, LOOP, QUIT, REGION, REJECT, THROW, TWICE } from "./tasks/peer.js";

const TIMEOUT = { timeout: 60_000 };

interface Page {
  readonly job: Job;
  readonly client: Client;
  readonly context: Context;
}

async function onPage(tasks: number, kernel: "wasm" | "ts", body: (page: Page) => Promise<void>): Promise<void> {
  const entry = new URL("./tasks/peer.js", import.meta.url);
  const job = await launch(entry, { tasks, kernel, join: true, heapBytes: 16 * 1024 ** 2 });
  try {
    await body({ job, client: job.client, context: job.client.createContext() });
  } finally {
    await job.terminate();
  }
}

/** Advances until something holds. */
async function until(context: Context, condition: () => boolean): Promise<void> {
  while (!condition()) await context.progress(TIMEOUT);
}

describe.each(["wasm", "ts"] as const)("%s", (kernel) => {
  it("messages go to workers and back", () =>
    onPage(3, kernel, async ({ client, context }) => {
      expect(info()).toMatchObject({ isolated: true, sharedMemory: true });
      const answers: number[] = [];
      context.dispatch(ANSWER, (message) => {
        answers.push(message.getInt32(0));
      });
      for (let i = 0; i < 1000; i++) {
        const to = client.endpoint(1 + (i % 2));
        expect(context.sendImmediate(to, TWICE, null, new Int32Array([i]))).toBe(SUCCESS);
        if (i % 50 === 49) await until(context, () => answers.length === i + 1);
      }
      expect(answers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => 2 * i));
    }));

  it("large messages, puts and gets", () =>
    onPage(2, kernel, async ({ client, context }) => {
      let remote = -1;
      context.dispatch(ANSWER, (message) => {
        remote = new Float64Array(message.payload.slice().buffer)[0] as number;
      });
      const bytes = 1024 ** 2;
      context.sendImmediate(client.endpoint(1), REGION, null, new Int32Array([bytes]));
      await until(context, () => remote >= 0);
      const local = client.createRegion(bytes);
      context.get({ to: client.endpoint(1), local, remote });
      await context.flush(TIMEOUT);
      expect(local.bytes.every((byte) => byte === 7)).toBe(true);
      local.bytes.fill(9);
      context.put({ to: client.endpoint(1), local, remote });
      await context.flush(TIMEOUT);
      local.bytes.fill(0);
      context.get({ to: client.endpoint(1), local, remote });
      await context.flush(TIMEOUT);
      expect(local.bytes.every((byte) => byte === 9)).toBe(true);
    }));

  it("a blocking form of an operation begins nothing on the page's own thread, and names the call", () =>
    onPage(1, kernel, async ({ client }) => {
      const world = await client.world(TIMEOUT);
      const receive = new Int32Array(1);
      const sum = { send: Int32Array.of(7), receive, operation: "sum" } as const;
      for (const [call, block] of [
        ["barrierSync() ", () => world.barrierSync()],
        ["allreduceSync() ", () => world.allreduceSync(sum)],
      ] as const) {
        const error = { code: "PAMIR_WOULD_BLOCK", message: expect.stringContaining(call) };
        expect(block).toThrowError(expect.objectContaining(error));
      }
      expect(receive).toEqual(Int32Array.of(0));
      await expect(world.allreduce(sum, TIMEOUT)).resolves.toEqual(Int32Array.of(7));
    }));

  it("the page's own thread never blocks: advanceUntil() says so", () =>
    onPage(1, kernel, async ({ context }) => {
      expect(() => context.advanceUntil(() => true)).toThrowError(
        expect.objectContaining({ code: "PAMIR_WOULD_BLOCK" }),
      );
      await expect(context.progress({ timeout: 50 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
      // Its timers go on meanwhile; how often in a time depends on what else runs, so one of them ends the wait.
      let ticks = 0;
      const controller = new AbortController();
      const timer = setInterval(() => {
        if (++ticks > 2) controller.abort();
      }, 1);
      const { signal } = controller;
      await expect(context.progress({ ...TIMEOUT, signal })).rejects.toMatchObject({ code: "PAMIR_CANCELED" });
      clearInterval(timer);
    }));
});

it("without Atomics.waitAsync a doorbell wakes the page", async () => {
  const { waitAsync } = Atomics;
  Object.assign(Atomics, { waitAsync: undefined });
  try {
    expect(info().waitAsync).toBe(false);
    await onPage(2, "wasm", async ({ client, context }) => {
      let answers = 0;
      context.dispatch(ANSWER, () => {
        answers++;
      });
      for (let i = 1; i <= 100; i++) {
        context.sendImmediate(client.endpoint(1), TWICE, null, new Int32Array([i]));
        await until(context, () => answers === i);
      }
      await expect(context.progress({ timeout: 20 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
    });
  } finally {
    Object.assign(Atomics, { waitAsync });
  }
});

describe("how tasks end", () => {
  /** How it ends, what is said of that on the console, and what a call to it rejects with. */
  const endOf = async (order: number): Promise<{ end: unknown; said: unknown[]; error: Error }> => {
    const console_ = vi.spyOn(console, "error").mockImplementation(() => {});
    let end: unknown;
    let error = new Error();
    try {
      await onPage(2, "wasm", async ({ job, client, context }) => {
        const to = client.endpoint(1);
        context.sendImmediate(to, order);
        [end] = await job.exited;
        context.advance();
        expect(context.sendImmediate(to, TWICE)).toBe(SHUTDOWN);
        error = await context.call(to, TWICE, null, TIMEOUT).then(
          () => new Error("it was answered"),
          (reason) => reason,
        );
      });
      return { end, said: console_.mock.calls.flat(), error };
    } finally {
      console_.mockRestore();
    }
  };

  it("by closing its client", async () => {
    const { end, said, error } = await endOf(QUIT);
    expect(end).toEqual({ task: 1, code: 0, cause: "exit" });
    expect(said).toEqual([]);
    expect(error).toMatchObject({ code: "PAMIR_SHUTDOWN" });
    expect(error.cause).toBeUndefined();
  });

  it("by an error that nobody catches", async () => {
    const { end, said, error } = await endOf(THROW);
    expect(end).toMatchObject({ task: 1, code: 1, cause: "error", error: "RangeError: thrown in a task" });
    expect((end as { stack: string }).stack).toContain("peer.js");
    expect(said).toEqual([expect.stringMatching(/^pamir: task 1 failed:\nRangeError: thrown in a task\n.*peer\.js/)]);
    expect(error).toMatchObject({
      code: "PAMIR_SHUTDOWN",
      cause: { name: "RangeError", message: "thrown in a task", stack: expect.stringContaining("peer.js") },
    });
  });

  it("by a promise that is rejected", async () => {
    const { end, said } = await endOf(REJECT);
    expect(end).toMatchObject({ task: 1, cause: "error", error: "TypeError: rejected in a task" });
    expect(said).toEqual([expect.stringMatching(/^pamir: task 1 failed:\nTypeError: rejected in a task\n.*peer\.js/)]);
  });

  it("by closing its worker", async () => {
    const { end, said } = await endOf(CLOSE);
    expect(end).toMatchObject({ task: 1, code: 1, cause: "exit", error: expect.stringMatching(/without closing/) });
    expect(said).toEqual(["pamir: task 1 is lost: its worker ended without closing the client"]);
  });

  it.each(["abort", "ignore"] as const)("by an error, with onError: %s", async (onError) => {
    const console_ = vi.spyOn(console, "error").mockImplementation(() => {});
    const entry = new URL("./tasks/peer.js", import.meta.url);
    const job = await launch(entry, { tasks: 3, join: true, heapBytes: 16 * 1024 ** 2, onError });
    const context = job.client.createContext();
    context.sendImmediate(job.client.endpoint(1), THROW);
    await context.whenEnded(job.client.endpoint(1), TIMEOUT).catch(() => {});
    if (onError === "ignore") {
      const answered = new Promise((resolve) => context.dispatch(ANSWER, resolve));
      context.sendImmediate(job.client.endpoint(2), TWICE, null, new Int32Array([1]));
      await Promise.race([answered, context.progress(TIMEOUT)]);
      await job.terminate();
    }
    expect((await job.exited).map(({ task, cause }) => [task, cause])).toEqual([
      [1, "error"],
      [2, "terminated"],
    ]);
    expect(job.client.closed).toBe(true);
    const said = [expect.stringMatching(/^pamir: task 1 failed, the job ends:\nRangeError/)];
    expect(console_.mock.calls.flat()).toEqual(onError === "abort" ? said : []);
    console_.mockRestore();
  });

  it("by terminate(), also in an endless loop", () =>
    onPage(2, "wasm", async ({ job, client, context }) => {
      context.sendImmediate(client.endpoint(1), LOOP);
      expect(await job.terminate()).toEqual([{ task: 1, code: 1, cause: "terminated" }]);
    }));

  it("by terminate() of it alone, which says how", () =>
    onPage(3, "wasm", async ({ job, client, context }) => {
      const end = { task: 1, code: 1, cause: "terminated" };
      expect(await job.terminate(1)).toEqual(end);
      expect(await job.terminate(1)).toEqual(end);
      await context.whenEnded(client.endpoint(1), TIMEOUT);
      let answer = 0;
      context.dispatch(ANSWER, (message) => {
        answer = message.getInt32(0);
      });
      context.sendImmediate(client.endpoint(2), TWICE, null, new Int32Array([3]));
      await until(context, () => answer === 6);
    }));

  it("by terminate() in the midst of sending: from then on it writes into nobody's memory", () =>
    onPage(3, "wasm", async ({ job, client, context }) => {
      let heard = 0;
      context.dispatch(ANSWER, () => {
        heard++;
      });
      context.sendImmediate(client.endpoint(1), FLOOD);
      await until(context, () => heard > 1000);
      void job.terminate(1);
      await context.whenEnded(client.endpoint(1), TIMEOUT);
      // All memory that it had.
      const regions: MemRegion[] = [];
      for (let bytes = 2 ** 16; bytes >= 4096; ) {
        try {
          regions.push(client.createRegion(bytes));
        } catch {
          bytes /= 2;
        }
      }
      for (const { bytes } of regions) bytes.fill(0);
      const before = heard;
      // Chromium lets a worker go on for 2 s.
      const end = performance.now() + 2500;
      while (performance.now() < end) {
        context.advance();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect(regions.reduce((wrong, { bytes }) => wrong + bytes.filter((byte) => byte !== 0).length, 0)).toBe(0);
      expect(heard).toBe(before);
    }));

  it("because its file does not exist: what it probably is", async () => {
    const job = await launch(new URL("./tasks/missing.js", import.meta.url), { tasks: 1, onError: "ignore" });
    const [end] = await job.exited;
    expect(end).toMatchObject({ task: 0, cause: "error" });
    expect((end as { error: string }).error).toMatch(/missing\.js: its script was not loaded: .*404/);
  });
});

laterSuite("shared memory");
seeingSuite("shared memory");

it("the entry may be a function that makes the worker, as bundlers want it", async () => {
  const make = () => new Worker(new URL("./tasks/peer.js", import.meta.url), { type: "module" });
  const job = await launch(make, { tasks: 2, join: true, heapBytes: 16 * 1024 ** 2 });
  const context = job.client.createContext();
  let answer = 0;
  context.dispatch(ANSWER, (message) => {
    answer = message.getInt32(0);
  });
  context.sendImmediate(job.client.endpoint(1), TWICE, null, new Int32Array([4]));
  await until(context, () => answer === 8);
  await job.terminate();
});

it("an entry that gives no worker, or throws, is refused, and leaves no worker behind", async () => {
  let made = 0;
  let terminated = 0;
  const make = (last: () => unknown) => () => {
    if (++made % 3 === 0) return last() as Worker;
    const worker = new Worker(new URL("./tasks/peer.js", import.meta.url), { type: "module" });
    worker.terminate = () => {
      terminated++;
      Worker.prototype.terminate.call(worker);
    };
    return worker;
  };
  const options = { tasks: 3, heapBytes: 16 * 1024 ** 2 };
  const given = launch(
    make(() => "a worker"),
    options,
  );
  await expect(given).rejects.toMatchObject({
    code: "PAMIR_ENTRY",
    message: expect.stringMatching(/entry\(\) gave "a worker"/),
  });
  const thrown = launch(
    make(() => {
      throw new RangeError("none left");
    }),
    options,
  );
  await expect(thrown).rejects.toMatchObject({ code: "PAMIR_ENTRY", message: expect.stringMatching(/none left/) });
  const elsewhere = launch("https://elsewhere.example/task.js", { ...options, tasks: 1 });
  await expect(elsewhere).rejects.toMatchObject({ code: "PAMIR_ENTRY", message: expect.stringMatching(/elsewhere/) });
  expect(terminated).toBe(4);
});

it("args that can't be cloned are refused at once", async () => {
  const entry = new URL("./tasks/peer.js", import.meta.url);
  await expect(launch(entry, { tasks: 1, args: () => {} })).rejects.toMatchObject({ code: "PAMIR_INVAL" });
});

describe("where a host has no workers", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("several tasks are an error that says so; one works, on this thread", async () => {
    vi.stubGlobal("Worker", undefined);
    expect(info()).toMatchObject({ mode: "alone", why: "this host has no workers" });
    const entry = new URL("./tasks/peer.js", import.meta.url);
    await expect(launch(entry, { tasks: 2, join: true })).rejects.toMatchObject({
      code: "PAMIR_NO_WORKERS",
      message: "launch() of 2 tasks: this host has no workers. One task with join: true works",
    });
    const job = await launch(null, { tasks: 1, join: true, heapBytes: 16 * 1024 ** 2 });
    const context = job.client.createContext();
    let heard = 0;
    context.dispatch(1, (message) => {
      heard = message.getInt32(0);
    });
    expect(context.sendImmediate(context.endpoint, 1, null, Int32Array.of(7))).toBe(SUCCESS);
    await until(context, () => heard === 7);
    expect(await job.terminate()).toEqual([]);
  });
});
