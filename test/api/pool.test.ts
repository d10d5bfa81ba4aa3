// pamir/pool: functions of workers by name, with any value.
import { spawnSync } from "node:child_process";
import { stat } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { connect, type PoolOptions, pool, proxy } from "pamir/pool";
import { describe, expect, it } from "vitest";
import { endOf, starter } from "./pools.js";
import type { api } from "./tasks/pool-worker.js";

type Api = typeof api;
const ENTRY = new URL("./tasks/pool-worker.js", import.meta.url);
const { start } = starter<Api>(ENTRY, { workers: 2 });

/** Whether an array is what fill() makes: in no time, where toEqual() takes 300 ms. */
const isFilled = (array: Uint8Array | Uint8ClampedArray, length: number, byte: number): boolean =>
  array.length === length && array.every((one) => one === byte);

const WAYS: [name: string, options: PoolOptions][] = [["threads", {}]];
if (process.platform === "linux") WAYS.push(["processes", { processes: true }]);

describe("what a function leaves behind its answer", () => {
  const STEPS = 40;
  const here = {
    timers: () => setTimeout(1),
    reads: () => stat(ENTRY),
    microtasks: () => Promise.resolve(),
  };

  it.each(["timers", "reads", "microtasks"] as const)("%s: is not held up by a worker that blocks", async (kind) => {
    const workers = await start({ workers: 1 });
    let ratio = Number.POSITIVE_INFINITY;
    // Each step late by a nap would take 10 ms. The least of some turns, on a busy machine.
    for (let turn = 0; turn < 20 && ratio > 3; turn++) {
      await workers.chain(kind, STEPS);
      const begin = performance.now();
      for (let i = 0; i < STEPS; i++) await here[kind]();
      const took = performance.now() - begin;
      let there = 0;
      while (there === 0) {
        await setTimeout(50);
        there = await workers.chained();
      }
      ratio = there / Math.max(took, 2);
    }
    expect(ratio).toBeLessThan(3);
  });

  it("nor what it awaits of other threads before its answer", async () => {
    const workers = await start({ workers: 1 });
    let ratio = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < 20 && ratio > 3; turn++) {
      const begin = performance.now();
      for (let i = 0; i < STEPS; i++) await crypto.subtle.digest("SHA-256", new Uint8Array(8));
      const took = performance.now() - begin;
      await setTimeout(20);
      ratio = ((await workers.hash(STEPS)) as number) / Math.max(took, 2);
    }
    expect(ratio).toBeLessThan(3);
  });
});

describe.each(WAYS)("a pool of %s", (_, options) => {
  it("calls functions by name, with any values", async () => {
    const workers = await start(options);
    const shared = { name: "shared" };
    const values = [
      1,
      -0,
      "ü😀",
      undefined,
      null,
      new Map([[shared, new Set([shared])]]),
      new Date(7),
      /a/g,
      5n,
      // biome-ignore lint/suspicious/noSparseArray: a hole is what is sent
      [1, , 3],
    ];
    const [first, ...rest] = values;
    expect(await workers.echo(first, ...rest)).toEqual(values);
    expect(Object.is(await workers.same(-0), -0)).toBe(true);
    expect(await workers.same(undefined)).toBe(undefined);
    expect(await workers.same([1, 2])).toEqual([1, 2]);
    expect(await workers.echo()).toEqual([]);
    const bytes = new Uint8Array(3_000_000).fill(7);
    expect(Buffer.compare((await workers.same(bytes)) as Uint8Array, bytes)).toBe(0);
    expect(await Promise.all(Array.from({ length: 100 }, (_, i) => workers.square(i)))).toEqual(
      Array.from({ length: 100 }, (_, i) => i ** 2),
    );
  });

  it("takes large ArrayBuffers as they are when the call is made, and when the function gives them", async () => {
    const workers = await start({ ...options, workers: 1, concurrency: 40, heapBytes: 2 ** 22 });
    const calls = Array.from({ length: 40 }, async (_, i) => {
      const pixels = new Uint8ClampedArray(100_000 + i).fill(i);
      const value = { i, frame: { pixels, again: pixels, rest: new Float64Array(pixels.buffer, 8, 2) } };
      const echoed = workers.same(value) as Promise<typeof value>;
      pixels.fill(255);
      const { frame, ...back } = await echoed;
      expect(back).toEqual({ i });
      expect(isFilled(frame.pixels, 100_000 + i, i)).toBe(true);
      expect(frame.again).toBe(frame.pixels);
      expect(frame.rest.buffer).toBe(frame.pixels.buffer);
    });
    await Promise.all(calls);
    // The function changes what it has given: the result is as it was.
    const changing = await Promise.all(Array.from({ length: 20 }, (_, i) => workers.changing(200_000, i)));
    for (const [i, bytes] of changing.entries()) expect(isFilled(bytes, 200_000, i)).toBe(true);
    const streamed: number[] = [];
    for await (const bytes of workers.frames.stream(5, 70_000)) {
      expect(isFilled(bytes, 70_000, streamed.length)).toBe(true);
      streamed.push(bytes.length);
    }
    expect(streamed).toEqual(Array.from({ length: 5 }, () => 70_000));
  });

  it("rejects with what a function throws, and says what can't be copied", async () => {
    const workers = await start(options);
    await expect(workers.fail()).rejects.toMatchObject({
      name: "RangeError",
      message: "on purpose",
      detail: { seven: 7 },
    });
    await expect(workers.same({ rows: [Symbol("x")] })).rejects.toMatchObject({
      code: "PAMIR_CLONE",
      message: "argument 1: value.rows[0] can't be copied to another task: it is a symbol",
    });
  });

  it("streams what a generator gives, and ends the generator of a loop that is left", async () => {
    const workers = await start({ ...options, workers: 1 });
    let sum = 0;
    for await (const number of workers.numbers.stream(1000)) sum += number;
    expect(sum).toBe(499_500);
    for await (const number of workers.numbers.stream(1e9)) if (number === 500) break;
    const slow: number[] = [];
    for await (const number of workers.slowly.stream(10)) slow.push(number);
    expect(slow).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const got: number[] = [];
    await expect(
      (async () => {
        for await (const number of workers.failing.stream()) got.push(number);
      })(),
    ).rejects.toThrow("in mid-stream");
    expect(got).toEqual([1]);
    expect(await workers.stopped()).toBe(2);
  });

  it("calls callbacks back, until their call has ended; proxy() keeps what it is given", async () => {
    const workers = await start({ ...options, workers: 1 });
    expect(await workers.sumOf(4, async (i) => i * 10)).toBe(60);
    await workers.later(() => {});
    while ((await workers.lastError()) === undefined);
    expect(await workers.lastError()).toMatch(/^callback \d+ is lent no more/);
    const kept = new Promise((resolve) => void workers.later(proxy(resolve)));
    expect(await kept).toBe("too late");
    const counter = (await workers.counter()) as unknown as { add(by: number): Promise<number> };
    expect([await counter.add(2), await counter.add(3)]).toEqual([2, 5]);
    expect(await workers.callObject(proxy({ run: async (number: number) => number + 1 }))).toBe(21);
  });

  it("passes signals on, and aborts calls by signal and timeout", async () => {
    const workers = await start({ ...options, workers: 1 });
    const controller = new AbortController();
    const reason = workers.reasonOf(controller.signal);
    controller.abort("because");
    expect(await reason).toBe("because");
    expect(await endOf(workers.with({ timeout: 20 }).untilAborted(60_000))).toBe("PAMIR_TIMEDOUT");
    expect(await workers.stopped()).toBe(1);
    const other = new AbortController();
    const call = endOf(workers.with({ signal: other.signal }).untilAborted(60_000));
    other.abort();
    expect(await call).toBe("PAMIR_CANCELED");
    expect(await workers.stopped()).toBe(2);
  });

  it("replaces a worker that dies: its calls reject with how it ended, or are begun again", async () => {
    const workers = await start(options);
    await expect(workers.exit(3)).rejects.toMatchObject({ code: "PAMIR_SHUTDOWN", cause: { exitCode: 3 } });
    expect(await Promise.all([1, 2, 3, 4].map((number) => workers.square(number)))).toEqual([1, 4, 9, 16]);
    expect(await endOf(workers.with({ retries: 2 }).exit(4))).toBe("PAMIR_SHUTDOWN");
    expect(await workers.square(5)).toBe(25);
  });

  it("ends a worker that goes on after its call was given up", async () => {
    const workers = await start({ ...options, workers: 1, killAfter: 50 });
    const first = await workers.pid();
    expect(await endOf(workers.with({ timeout: 30 }).spin(600_000))).toBe("PAMIR_TIMEDOUT");
    const second = await workers.pid();
    expect(options.processes === true ? first !== second : first === second).toBe(true);
  });

  it("blocks for a result by sync", async () => {
    const workers = await start(options);
    expect(workers.sync.square(12)).toBe(144);
    expect(() => workers.sync.fail()).toThrow("on purpose");
    expect(await workers.square(3)).toBe(9);
  });
});

describe("a pool", () => {
  it("calls one worker by its place or a key, and all of them", async () => {
    const workers = await start();
    await workers.warmUp();
    expect([await workers[0]?.count(), await workers[0]?.count(), await workers[1]?.count()]).toEqual([1, 2, 1]);
    expect((await workers.all.count()).sort()).toEqual([2, 3]);
    const [one, two] = [await workers.by("key").count(), await workers.by("key").count()];
    expect(two).toBe(one + 1);
  });

  it("maps items in order, and as they come, with bounded concurrency", async () => {
    const workers = await start();
    const ordered: number[] = [];
    for await (const value of workers.map([3, 1, 2], (number) => workers.square(number))) ordered.push(value);
    expect(ordered).toEqual([9, 1, 4]);
    const free: number[] = [];
    for await (const value of workers.map([3, 1, 2], (number) => workers.square(number), { ordered: false }))
      free.push(value);
    expect(free.sort()).toEqual([1, 4, 9]);
  });

  it("takes calls of a higher priority first, and bounds its queue", async () => {
    const workers = await start({ workers: 1, maxQueue: 3 });
    const order: string[] = [];
    const busy = workers.spin(50).then(() => order.push("busy"));
    const low = workers.square(1).then(() => order.push("low"));
    const high = workers
      .with({ priority: 1 })
      .square(2)
      .then(() => order.push("high"));
    const next = workers.square(3).then(() => order.push("next"));
    expect(await endOf(workers.square(4))).toBe("PAMIR_QUEUE_FULL");
    await Promise.all([busy, low, high, next]);
    expect(order).toEqual(["busy", "high", "low", "next"]);
    expect(workers.stats).toMatchObject({ queued: 0, running: 0, completed: 4, workers: 1, idle: 1 });
  });

  it("starts workers as calls wait, and ends those that are idle", async () => {
    const workers = await start({ min: 1, max: 3, idleTimeout: 20 });
    const left: number[] = [];
    const gone = new Promise<void>((resolve) => {
      workers.events((event) => {
        if (event.type === "exit" && left.push(event.worker) === 2) resolve();
      });
    });
    await Promise.all(Array.from({ length: 30 }, () => workers.spin(20)));
    await gone;
    expect(workers.stats.workers).toBe(1);
    expect(await workers.square(2)).toBe(4);
  });

  it("replaces a worker after so many calls", async () => {
    const workers = await start({ workers: 1, recycleAfter: 2 });
    const counts: number[] = [];
    for (let i = 0; i < 5; i++) counts.push(await workers.count());
    expect(counts).toEqual([1, 2, 1, 2, 1]);
  });

  it("close() lets calls end; after it, and after terminate(), calls are refused", async () => {
    const workers = await start({ workers: 1 });
    const calls = [workers.spin(20), workers.square(3)];
    const closed = workers.close();
    expect(await endOf(workers.square(1))).toBe("PAMIR_CLOSED");
    expect(await Promise.all(calls)).toEqual(["spun", 9]);
    await closed;
    const other = await start({ workers: 1 });
    const waiting = [endOf(other.spin(600_000)), endOf(other.square(3))];
    await other.terminate();
    expect(await Promise.all(waiting)).toEqual(["PAMIR_SHUTDOWN", "PAMIR_CLOSED"]);
  });
});

it("close() of a connection keeps the program running until the worker has left", () => {
  const program = fileURLToPath(new URL("./tasks/pool-connects.js", import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [program], { encoding: "utf8", timeout: 100_000 });
  expect([status, stdout]).toEqual([0, "closed\n"]);
});

describe("wrong input", () => {
  it.each<[PoolOptions, RegExp]>([
    [{ workers: 0 }, /workers is 0, not an integer from 1 to 500/],
    [{ min: 3, max: 2 }, /min is 3, not an integer from 0 to 2/],
    [{ concurrency: 0.5 }, /concurrency is 0.5/],
    [{ retries: 1e9 }, /retries of pool\(\) is 1000000000, not an integer from 0 to 1000/],
    [{ timeout: Number.NaN }, /timeout of pool\(\) is NaN/],
    [{ worker: 2 } as PoolOptions, /options of pool\(\): there is no "worker"/],
  ])("%j", async (options, text) => {
    await expect(pool(ENTRY, options)).rejects.toThrow(text);
  });

  it("options of a connection that there are not", async () => {
    const connection = await connect<{ one(): number }>(
      new Worker(new URL("./tasks/pool-connected.js", import.meta.url)),
    );
    const given = (options: object) => () => connection.with(options);
    expect(given({ retries: 1 })).toThrow(/options of with\(\): there is no "retries", but signal, timeout/);
    expect(given({ timeout: -1 })).toThrow(/timeout of with\(\) is -1, not a number of milliseconds/);
    expect(given({ signal: 5 })).toThrow(/signal of with\(\) is 5, not an AbortSignal/);
    expect(await connection.one()).toBe(1);
    await connection.close();
  });

  it("a stream of a connection times out where its source gives nothing", async () => {
    const connection = await connect<{ hanging(): AsyncIterable<number> }>(
      new Worker(new URL("./tasks/pool-connected.js", import.meta.url)),
    );
    const values: number[] = [];
    const read = async (): Promise<void> => {
      for await (const value of connection.with({ timeout: 1000 }).hanging.stream()) values.push(value);
    };
    await expect(read()).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
    expect(values).toEqual([1]);
    await connection.close();
  });

  it("a name that is not served is refused with those that are", async () => {
    const workers = await start({ workers: 1 });
    expect(() => (workers as unknown as { sqare(): void }).sqare()).toThrow(
      /^the worker serves no function "sqare", but echo, same, square, /,
    );
  });

  it("a worker that fails while it loads is named, with its error", async () => {
    const entry = new URL(`data:text/javascript,${encodeURIComponent('throw new RangeError("while loading")')}`);
    await expect(pool(entry, { workers: 2, onError: "ignore" })).rejects.toMatchObject({
      code: "PAMIR_SHUTDOWN",
      cause: { message: "while loading" },
    });
  });

  it("a worker that never serves is named, and ended", async () => {
    const entry = new URL(`data:text/javascript,${encodeURIComponent("setInterval(() => {}, 1000)")}`);
    await expect(pool(entry, { workers: 1, startTimeout: 300 })).rejects.toMatchObject({
      code: "PAMIR_TIMEDOUT",
      message: "worker 0 has not called serve() within 300 ms",
    });
  });
});
