// How calls of a pool end: each one once, whatever happens to its worker, its signal, its pool and its neighbors.
import { type Pool, pool, proxy } from "pamir/pool";
import { describe, expect, it } from "vitest";
import { endOf, starter } from "./pools.js";
import { run } from "./run-program.js";
import type { api } from "./tasks/pool-worker.js";

type Api = typeof api;
const ENTRY = new URL("./tasks/pool-worker.js", import.meta.url);
const { start, open } = starter<Api>(ENTRY, { workers: 2 });

const LONG = 600_000;

/** A number that comes once the gate is opened. */
function gated(number: number): { readonly gate: Promise<number>; open(): void } {
  let open = (): void => {};
  const gate = new Promise<number>((resolve) => {
    open = () => resolve(number);
  });
  return { gate, open };
}

describe("a call that waits", () => {
  it("goes to a free worker, though others wait for one that is busy", async () => {
    const workers = await start();
    await workers.warmUp();
    const busy = endOf(workers[0]?.untilAborted(LONG) as Promise<unknown>);
    const waiting = endOf(workers[0]?.square(1) as Promise<unknown>);
    expect(await workers.square(5)).toBe(25);
    await workers.terminate();
    // Which of both it is: whether the worker's end or that of the caller's context is heard first.
    expect(await busy).toMatch(/^PAMIR_(SHUTDOWN|CLOSED)$/);
    expect(await waiting).toBe("PAMIR_CLOSED");
  });

  it("for one place gets a new worker there, if that one dies or is replaced", async () => {
    const workers = await start({ min: 1, max: 4 });
    const calls = [workers[3]?.exit(1), workers[3]?.square(3), workers[2]?.square(4)] as Promise<unknown>[];
    expect(await Promise.all(calls.map(endOf))).toEqual(["PAMIR_SHUTDOWN", 9, 16]);
    const other = await start({ min: 1, max: 4, recycleAfter: 1 });
    const places = [3, 3, 3, 2, 1, 0, 2];
    expect(await Promise.all(places.map((place) => endOf(other[place]?.count() as Promise<unknown>)))).toEqual(
      places.map(() => 1),
    );
  });

  it("is canceled by a signal that was aborted before, or is meanwhile; neither hurts the next one", async () => {
    const workers = await start({ workers: 1 });
    const { gate, open } = gated(7);
    const busy = workers.sumOf(1, () => gate);
    const controller = new AbortController();
    const aborted = endOf(workers.with({ signal: AbortSignal.abort() }).count());
    const meanwhile = endOf(workers.with({ signal: controller.signal }).count());
    const late = endOf(workers.with({ timeout: 1 }).count());
    const lateStream = endOf(workers.with({ timeout: 1 }).numbers.stream(1).next());
    controller.abort();
    expect(await Promise.all([aborted, meanwhile, late, lateStream])).toEqual([
      "PAMIR_CANCELED",
      "PAMIR_CANCELED",
      "PAMIR_TIMEDOUT",
      "PAMIR_TIMEDOUT",
    ]);
    open();
    expect(await busy).toBe(7);
    expect(await workers.count()).toBe(1);
    expect(workers.stats).toMatchObject({ completed: 6, failed: 4, queued: 0, running: 0 });
  });

  it("goes on if the pool is closed meanwhile and the worker dies", async () => {
    const workers = await start({ workers: 1 });
    const calls = [endOf(workers.exit(1)), endOf(workers.square(2)), endOf(workers.exit(1)), endOf(workers.square(3))];
    await workers.close();
    expect(await Promise.all(calls)).toEqual(["PAMIR_SHUTDOWN", 4, "PAMIR_SHUTDOWN", 9]);
  });

  it("does so, though this thread hears of the worker's end from the job first", async () => {
    const { waitAsync } = Atomics;
    const late = (value: Promise<"ok" | "timed-out">): Promise<"ok" | "timed-out"> =>
      value.then((end) => new Promise((resolve) => setTimeout(resolve, 20, end)));
    Atomics.waitAsync = ((...given: Parameters<typeof waitAsync>) => {
      const waited = waitAsync(...given);
      return waited.async ? { async: true, value: late(waited.value) } : waited;
    }) as typeof waitAsync;
    try {
      const workers = await start({ workers: 1 });
      const calls = [endOf(workers.exit(1)), endOf(workers.square(2))];
      await workers.close();
      expect(await Promise.all(calls)).toEqual(["PAMIR_SHUTDOWN", 4]);
    } finally {
      Atomics.waitAsync = waitAsync;
    }
  });
});

describe("a call that has begun", () => {
  it("is begun again also while the pool closes", async () => {
    const workers = await start({ workers: 1, retries: 3 });
    const calls = [endOf(workers.exit(1)), endOf(workers.square(3))];
    await workers.close();
    expect(await Promise.all(calls)).toEqual(["PAMIR_SHUTDOWN", 9]);
  });

  it("is begun as often as its retries allow, and once without them", async () => {
    const workers = await start({ workers: 1 });
    for (const retries of [0, 2]) {
      let begun = 0;
      expect(await endOf(workers.with({ retries }).dieAfter(() => ++begun))).toBe("PAMIR_SHUTDOWN");
      expect(begun).toBe(1 + retries);
    }
    expect(workers.stats).toMatchObject({ completed: 2, failed: 2, running: 0, queued: 0 });
    let begun = 0;
    const call = workers.with({ retries: 1000, timeout: 300 }).dieAfter(() => ++begun);
    expect(await endOf(call)).toMatch(/PAMIR_(TIMEDOUT|SHUTDOWN)/);
    expect(begun).toBeLessThan(1000);
  });

  it("is no call of a dead worker, and not given up, because a function throws an error with such a code", async () => {
    const workers = await start({ workers: 1, retries: 2 });
    for (const code of ["PAMIR_SHUTDOWN", "PAMIR_TIMEDOUT", "PAMIR_CANCELED", "PAMIR_CLOSED"]) {
      expect(await endOf(workers.throwCode(code))).toBe(code);
    }
    // The same worker, and each was called once.
    expect(await workers.count()).toBe(1);
    expect(workers.stats).toMatchObject({ completed: 5, failed: 4, running: 0 });
  });

  it("is not killed with its worker because of a call beside it that was given up, and has ended", async () => {
    const workers = await start({ workers: 1, concurrency: 2, killAfter: 20_000 });
    const { gate, open } = gated(7);
    const long = workers.sumOf(1, () => gate);
    expect(await endOf(workers.with({ timeout: 5 }).untilAborted(LONG))).toBe("PAMIR_TIMEDOUT");
    // Its place is free at once, not when the other call ends.
    while (workers.stats.running > 1) await new Promise((resolve) => setTimeout(resolve, 1));
    open();
    expect(await endOf(long)).toBe(7);
  });

  it("of sync times out, and its worker gets calls once it has ended", async () => {
    const workers = await start({ workers: 1, timeout: 30, killAfter: 20 });
    expect(() => workers.sync.spin(LONG)).toThrow(expect.objectContaining({ code: "PAMIR_TIMEDOUT" }));
    expect(await workers.with({ timeout: LONG }).square(3)).toBe(9);
  });

  it("of sync rejects a callback that gives a promise, which the blocked thread could not settle", async () => {
    const workers = await start({ workers: 1 });
    const blocked = expect.objectContaining({
      code: "PAMIR_WOULD_BLOCK",
      message: expect.stringMatching(/^callback \d+ gives a promise: its call by sync blocks this thread, /),
    });
    expect(() => workers.sync.sumOf(3, async (n: number) => n)).toThrow(blocked);
    expect(await workers.sumOf(3, async (n: number) => n)).toBe(3);
    // A callback that nothing awaits ends no worker.
    expect(await workers.count()).toBe(1);
    workers.sync.tellsOften(async () => 1);
    expect(await workers.count()).toBe(2);
  });

  it.each([
    ["thread", {}],
    ["process", { processes: true }],
    ["thread, with a timeout", { timeout: LONG }],
  ])("of sync throws when its worker dies: %s", async (_, options) => {
    const workers = await start({ workers: 1, ...options });
    const died = expect.objectContaining({ code: "PAMIR_SHUTDOWN", cause: expect.objectContaining({ exitCode: 3 }) });
    expect(() => workers.sync.exit(3)).toThrow(died);
    expect(() => workers.sync.square(3)).toThrow(expect.objectContaining({ code: "PAMIR_WOULD_BLOCK" }));
    expect(await workers.square(3)).toBe(9);
    expect(workers.sync.square(4)).toBe(16);
  });

  it("of sync goes to another worker behind one that has died", async () => {
    const workers = await start({ workers: 2 });
    await workers.warmUp();
    expect(() => workers.sync.exit(3)).toThrow(expect.objectContaining({ code: "PAMIR_SHUTDOWN" }));
    expect(workers.sync.square(3)).toBe(9);
  });

  it("of all is refused by a pool that is closed", async () => {
    const workers = await start();
    const closed = workers.close();
    expect(await endOf(workers.all.square(3))).toBe("PAMIR_CLOSED");
    await closed;
    expect(await endOf(workers.all.square(3))).toBe("PAMIR_CLOSED");
  });
});

describe("a large value", () => {
  it("whose getter detaches or resizes an ArrayBuffer before it is sent is that of a second look, or is refused", async () => {
    const workers = await start({ workers: 1 });
    type Resizable = ArrayBuffer & { resize(bytes: number): void };
    const Buffers = ArrayBuffer as unknown as new (bytes: number, options: { maxByteLength: number }) => Resizable;
    const changed = (buffer: ArrayBuffer, change: () => void): object => ({
      buffer,
      get late() {
        change();
        return 1;
      },
    });
    for (const bytes of [1000, 2 ** 21]) {
      const buffer = new Buffers(2 ** 20, { maxByteLength: 2 ** 21 });
      const { buffer: same } = (await workers.same(changed(buffer, () => buffer.resize(bytes)))) as {
        buffer: ArrayBuffer;
      };
      expect(same.byteLength).toBe(bytes);
    }
    const gone = new ArrayBuffer(2 ** 20);
    const detach = (): void => void (gone.byteLength > 0 && structuredClone(gone, { transfer: [gone] }));
    await expect((async () => await workers.same(changed(gone, detach)))()).rejects.toThrow("detached");
  });
});

describe("map()", () => {
  it.each([true, false])(
    "throws the error of its items behind the results of those before it; ordered: %s",
    async (ordered) => {
      const workers = await start();
      function* items(): Generator<number> {
        yield* [1, 2, 3];
        throw new Error("no more items");
      }
      const values: number[] = [];
      const read = async (): Promise<void> => {
        for await (const value of workers.map(items(), (item) => workers.square(item), { ordered })) values.push(value);
      };
      await expect(read()).rejects.toThrow("no more items");
      expect(values.sort()).toEqual([1, 4, 9]);
    },
  );
});

describe("a stream", () => {
  it("of an iterator whose next() gives no object ends with a TypeError, behind the values before it", async () => {
    const workers = await start({ workers: 1 });
    const values: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const value of workers.malformed.stream()) values.push(value);
    };
    await expect(read()).rejects.toMatchObject({
      name: "TypeError",
      message: expect.stringContaining("gave 5, not an object"),
    });
    expect(values).toEqual([0]);
    expect(await workers.square(3)).toBe(9);
  });

  it("gives the values before one that can't be copied, whichever of an answer that is, and whether more come", async () => {
    const workers = await start({ workers: 1 });
    for (const [place, count] of [
      [0, 1],
      [1, 2],
      [5, 9],
      [63, 64],
      [64, 65],
      [100, 300],
    ] as const) {
      const values: unknown[] = [];
      const read = async (): Promise<void> => {
        for await (const value of workers.refused.stream(count, place)) values.push(value);
      };
      await expect(read()).rejects.toMatchObject({ code: "PAMIR_CLONE" });
      expect(values).toEqual(Array.from({ length: place }, (_, i) => i));
    }
    expect(await workers.square(3)).toBe(9);
  });

  it("calls callbacks and hears signals until it is over", async () => {
    const workers = await start({ workers: 1 });
    const controller = new AbortController();
    const values: unknown[] = [];
    for await (const value of workers.told.stream(5, (i) => i * 2, controller.signal)) {
      values.push(value);
      if (value === 4) controller.abort("enough");
    }
    expect(values.slice(0, 3)).toEqual([0, 2, 4]);
    expect(values.at(-1)).toMatch(/aborted: enough|over/);
  });

  it("ends the iterator also of a function that gives it after its reader has left", async () => {
    const workers = await start({ workers: 1 });
    const controller = new AbortController();
    const first = workers.with({ signal: controller.signal }).givesLate.stream().next();
    setTimeout(() => controller.abort(), 5);
    expect(await endOf(first)).toBe("PAMIR_CANCELED");
    expect(await workers.square(2)).toBe(4);
    expect(await endOf(workers.with({ timeout: 5 }).startsLate.stream().next())).toBe("PAMIR_TIMEDOUT");
    expect(workers.stats).toMatchObject({ completed: 3, failed: 2 });
  });

  it("tells its generator by currentCall() that it was left, and frees its worker once that has ended", async () => {
    const workers = await start({ workers: 1 });
    for await (const value of workers.lingering.stream(20)) if (value === 3) break;
    expect(await workers.stopped()).toBe(1);
    const killing = await start({ workers: 1, killAfter: 10 });
    for await (const value of killing.lingering.stream(LONG)) if (value === 3) break;
    expect(await killing.count()).toBe(1);
  });

  it("that is left drops what its finally throws, however far the worker is ahead; one read to its end gives it", async () => {
    const workers = await start({ workers: 1 });
    for (const count of [1, 3, 1000]) {
      for await (const value of workers.endsBadly.stream(count)) if (value === 0) break;
    }
    for await (const value of workers.endsBadlyLater.stream()) if (value === 0) break;
    expect(await workers.stopped()).toBe(4);
    const values: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const value of workers.endsBadly.stream(3)) values.push(value);
    };
    await expect(read()).rejects.toThrow("a finally's own");
    expect(values).toEqual([0, 1, 2]);
    expect(await workers.stopped()).toBe(5);
  });

  it("awaits the promises of a sync generator, and ends that once one of them rejects", async () => {
    const workers = await start({ workers: 1 });
    const values: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const value of workers.promises.stream(100)) values.push(value);
    };
    await expect(read()).rejects.toThrow("a promise's own");
    expect(values).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(await workers.stopped()).toBe(1);
  });

  it("that is read no more, and was not ended, ends once its iterator is collected", async () => {
    const out = "9\n{ value: 0, done: false }\n45\n{ value: 0, done: false }\n1 0\nover\n";
    expect(await run(["--expose-gc"], ["dropped"], {}, "pool.js")).toMatchObject({ out, err: "", code: 0 });
  });

  it("refuses a function that gives no iterable", async () => {
    const workers = await start({ workers: 1 });
    await expect(workers.square.stream(2).next()).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: "stream() of a function that gave number: it gives an iterable, as function* does",
    });
    expect(await workers.square(2)).toBe(4);
  });
});

describe("what stays where it is:", () => {
  it("a signal is heard behind large arguments, with a reason that can't be copied, and by each of two calls", async () => {
    const workers = await start({ workers: 1, concurrency: 3 });
    const large = new Uint8Array(3_000_000);
    const signals = [new AbortController(), new AbortController(), new AbortController()] as const;
    const heard = workers.isAborted(large, signals[0].signal);
    signals[0].abort("at once");
    const odd = workers.isAborted(signals[1].signal);
    signals[1].abort(() => {});
    expect(await Promise.all([heard, odd])).toEqual(["at once", "the reason of the signal can't be copied"]);
    const long = workers.isAborted(signals[2].signal);
    expect(await (workers.square as (...args: unknown[]) => Promise<number>)(1, signals[2].signal)).toBe(1);
    signals[2].abort("still heard");
    expect(await long).toBe("still heard");
  });

  it("an object comes back as itself, and goes through to another worker", async () => {
    const workers = await start();
    await workers.warmUp();
    let sum = 0;
    const own = { add: (by: number) => (sum += by) };
    const [one, same] = (await workers.use(proxy(own))) as [number, unknown];
    expect(one).toBe(1);
    expect(same).toBe(own);
    const counter = (await workers[0]?.counter()) as unknown as { add(by: number): number };
    const [added, back] = (await (workers[1] as Pool<Api>).use(counter)) as [number, typeof counter];
    expect(added).toBe(1);
    expect(await back.add(5)).toBe(6);
    expect(back).toBe(counter);
  });

  it("a function in the result of a callback is refused, also while a call blocks", async () => {
    const workers = await start({ workers: 1 });
    workers.sync.awaits(() => () => 1);
    expect(await workers.lastError()).toMatch(/^PAMIR_CLONE the result of a callback: value can't be copied/);
    expect(await workers.square(3)).toBe(9);
  });

  it("a callback whose call has ended is refused when it comes back, not lost", async () => {
    const workers = await start({ workers: 1 });
    await workers.keep(() => {});
    await expect(workers.kept()).rejects.toThrow(/^callback \d+ is lent no more: its call has ended/);
    expect(await workers.square(2)).toBe(4);
    const kept = proxy(() => 7);
    await workers.keep(kept);
    expect(await workers.kept()).toBe(kept);
  });
});

describe("a callback that never settles", () => {
  const never = (): Promise<number> => new Promise(() => {});

  it("rejects in the worker once its call was given up, with the code of that, and the worker comes free", async () => {
    const workers = await start({ workers: 1 });
    const controller = new AbortController();
    const called = new Promise<void>((resolve) => {
      const call = (): Promise<number> => {
        resolve();
        return never();
      };
      void endOf(workers.with({ signal: controller.signal }).awaits(call));
    });
    await called;
    controller.abort(new Error("the user has left"));
    expect(await workers.lastError()).toMatch(
      /^PAMIR_CANCELED callback \d+ is lent no more: its call was given up PAMIR_CANCELED the user has left$/,
    );
    expect(await endOf(workers.with({ timeout: 50 }).awaits(never))).toBe("PAMIR_TIMEDOUT");
    expect(await workers.lastError()).toMatch(/^PAMIR_TIMEDOUT callback/);
    expect(await workers.square(3)).toBe(9);
  });

  it("rejects for a loop that is left, and not for another call that has the same function", async () => {
    const workers = await start({ workers: 1, concurrency: 2 });
    for await (const value of workers.awaiting.stream(never)) if (value === 1) break;
    while (workers.stats.running > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    const { gate, open } = gated(7);
    const call = (): Promise<number> => gate;
    const long = workers.sumOf(1, call);
    expect(await endOf(workers.with({ timeout: 50 }).sumOf(1, call))).toBe("PAMIR_TIMEDOUT");
    while (workers.stats.running > 1) await new Promise((resolve) => setTimeout(resolve, 1));
    open();
    expect(await endOf(long)).toBe(7);
  });

  it("ends no worker that does not await it", async () => {
    const workers = await start({ workers: 1 });
    expect(await workers.count()).toBe(1);
    expect(await endOf(workers.with({ timeout: 50 }).tellsLate(never))).toBe("PAMIR_TIMEDOUT");
    expect(await endOf(workers.with({ timeout: 50 }).tellsOften(never))).toBe("PAMIR_TIMEDOUT");
    expect(await workers.count()).toBe(2);
  });
});

describe("a late callback that nobody awaits", () => {
  it("does not end its worker: its call was given up, or has ended", async () => {
    const workers = await start({ workers: 1 });
    expect(await workers.count()).toBe(1);
    const controller = new AbortController();
    const given = workers.with({ signal: controller.signal }).tellsLate(() => controller.abort());
    expect(await endOf(given)).toBe("PAMIR_CANCELED");
    expect(await endOf(workers.with({ timeout: 50 }).tellsLate(() => {}))).toBe("PAMIR_TIMEDOUT");
    await workers.keep(() => {});
    await workers.tellKept();
    // Awaited, it rejects: behind those that nobody awaits.
    await expect(workers.callKept()).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: expect.stringMatching(/^callback \d+ is lent no more: its call has ended/),
    });
    expect(await workers.count()).toBe(2);
  });

  it("does not end its caller either, which hears what a callback throws", async () => {
    const workers = await start({ workers: 1 });
    const before = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    try {
      const heard = new Promise((resolve) => process.once("unhandledRejection", resolve));
      let late = (): Promise<unknown> => Promise.resolve();
      await workers.lends((back) => {
        late = back;
      });
      late();
      expect(await endOf(late())).toBe("PAMIR_INVAL");
      await workers.lends((back) => void back());
      expect(await heard).toMatchObject({ message: "a callback's own" });
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const listener of before) process.on("unhandledRejection", listener);
    }
  });
});

describe("a pool that ends while workers start", () => {
  it("close() lets the calls end that wait for them; terminate() refuses those; warmUp() ends in both cases", async () => {
    const workers = await start({ min: 1, max: 3 });
    const warm = endOf(workers.warmUp());
    const calls = [workers.square(2), workers[2]?.square(3), workers[1]?.square(4)];
    await workers.close();
    expect([await warm, ...(await Promise.all(calls))]).toEqual([undefined, 4, 9, 16]);
    const other = await start({ min: 1, max: 3 });
    const cold = endOf(other.warmUp());
    const refused = [other[2]?.square(3), other[1]?.square(4)].map((call) => endOf(call as Promise<unknown>));
    await other.terminate();
    expect(await Promise.all([cold, ...refused])).toEqual(["PAMIR_CLOSED", "PAMIR_CLOSED", "PAMIR_CLOSED"]);
  });
});

describe("a pool", () => {
  it("goes on if a listener to its events throws", async () => {
    const workers = await start({ workers: 1 });
    const uncaught: unknown[] = [];
    const before = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", (error) => uncaught.push(error.message));
    let forget = (): void => {};
    try {
      forget = workers.events(() => {
        throw new Error("a listener's own");
      });
      expect(await endOf(workers.exit(1))).toBe("PAMIR_SHUTDOWN");
      expect(await workers.square(2)).toBe(4);
    } finally {
      forget();
      process.removeAllListeners("uncaughtException");
      for (const listener of before) process.on("uncaughtException", listener);
    }
    expect(new Set(uncaught)).toEqual(new Set(["a listener's own"]));
  });

  it("replaces workers that die one after the other without a call behind growing pauses", async () => {
    const entry = new URL("./tasks/pool-dying.js", import.meta.url);
    let workers: Pool<Api> | undefined;
    // The first one may have died before it was asked what it serves: then there is no pool.
    while (workers === undefined) {
      workers = await pool<Api>(entry, { workers: 1, onError: "ignore" }).catch(() => undefined);
    }
    open.push(workers);
    const starts: number[] = [];
    await new Promise<void>((resolve) => {
      (workers as Pool<Api>).events(({ type }) => {
        if (type === "start" && starts.push(performance.now()) === 8) resolve();
      });
    });
    // Between two starts lies a death: one more at once, then 10, 20, 40, … ms at the least. A timer may be early by 1 ms.
    for (let i = 2; i < starts.length; i++) {
      expect((starts[i] as number) - (starts[i - 1] as number)).toBeGreaterThan(10 * 2 ** (i - 2) - 2);
    }
    // A call goes to the next worker: it ends, as its worker does.
    expect([4, "PAMIR_SHUTDOWN"]).toContain(await endOf(workers.square(2)));
  });

  it("that is closed starts no workers; close() twice, or after terminate(), ends", async () => {
    const workers = await start();
    await Promise.all([workers.close(), workers.close()]);
    expect(await endOf(workers.warmUp())).toBe("PAMIR_CLOSED");
    await workers.terminate();
    const other = await start();
    await Promise.all([other.terminate(), other.close(), other.terminate()]);
    expect(await endOf(other.square(1))).toBe("PAMIR_CLOSED");
    expect(await endOf(other.numbers.stream(1).next())).toBe("PAMIR_CLOSED");
    expect(() => other.sync.square(1)).toThrow("the pool is closed");
  });

  it.each([
    ["terminate", "9\nover\n"],
    ["close", "9\nover\n"],
    ["nothing", "9\nover\n"],
    ["print", "9\ntrue\nover\n"],
    ["given up", "9\nPAMIR_TIMEDOUT\nover\n"],
    ["absent", "PAMIR_ENTRY\nover\n"],
    ["connected", "PAMIR_SHUTDOWN\nover\n"],
    ["connecting", "PAMIR_SHUTDOWN\nover\n"],
  ])("lets its program end: %s", async (how, out) => {
    expect(await run([], [how], {}, "pool.js")).toMatchObject({ out, err: "", code: 0 });
  });
});
