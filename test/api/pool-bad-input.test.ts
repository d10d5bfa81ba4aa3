// pamir/pool with wrong input: what each mistake's error says, and that the pool goes on.
import { Worker } from "node:worker_threads";
import { connect, expose, move, type Pool, type PoolOptions, pool, proxy, serve } from "pamir/pool";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { api } from "./tasks/pool-worker.js";

type Api = typeof api;
const ENTRY = new URL("./tasks/pool-worker.js", import.meta.url);
const BAD = new URL("./tasks/pool-bad.js", import.meta.url);
const INVALID = "PAMIR_INVAL";
/** A value with a part that can't be copied. */
const WRONG = { rows: [1, Symbol("s")] };
/** A value that is nested deeper than the stack. */
function nested(): unknown {
  let value: unknown = 1;
  for (let depth = 0; depth < 1_000_000; depth++) value = [value];
  return { value };
}

describe("an option of the wrong type or range:", () => {
  const count = (name: string, most: number, least = 1): [unknown, string][] =>
    [0 - 1 + least, 1.5, "2", null, {}, Number.NaN, Number.POSITIVE_INFINITY, 2n, Symbol("s"), () => 1].map((value) => [
      { [name]: value },
      `an integer from ${least} to ${most}`,
    ]);
  const time = (name: string): [unknown, string][] =>
    [-1, "2", null, {}, Number.NaN, 2n].map((value) => [{ [name]: value }, "a number of milliseconds from 0 on"]);
  it.each<[unknown, string]>([
    ...count("workers", 500),
    ...count("max", 500),
    ...count("concurrency", 65_536),
    ...count("recycleAfter", Number.MAX_SAFE_INTEGER),
    ...count("maxQueue", Number.MAX_SAFE_INTEGER, 0),
    ...count("retries", 1000, 0),
    ...time("timeout"),
    ...time("idleTimeout"),
    ...time("killAfter"),
    ...time("startTimeout"),
    [{ retries: 1001 }, "retries of pool() is 1001, not an integer from 0 to 1000"],
    [{ workers: 2, min: 3, max: 2 }, "min is 3, not an integer from 0 to 2"],
    [{ min: -1 }, "min is -1, not an integer from 0 to "],
    [{ processes: 1 }, "processes is 1, not a boolean"],
    [{ wrkers: 1 }, 'options of pool(): there is no "wrkers", but workers, min, max, '],
    [null, "options of pool() are null, not an object"],
    [7, "options of pool() are 7, not an object"],
    ["workers", 'options of pool() are "workers", not an object'],
    [{ kernel: "c" }, "kernel"],
    [{ debug: 5 }, "debug"],
    [{ args: () => 1 }, "args or workerOptions can't be sent to a worker"],
    [{ args: { at: Symbol("s") } }, "args or workerOptions can't be sent to a worker"],
    [{ workerOptions: 5 }, "workerOptions are 5, not an object"],
    [{ onError: "ignor" }, 'onError is "ignor", not "report"'],
    [{ top: 1 }, "top is 1, not a boolean"],
    [{ timeout: 5n }, "timeout of pool() is 5n, not a number of milliseconds"],
  ])("%o", async (options, text) => {
    await expect(pool(ENTRY, options as PoolOptions)).rejects.toMatchObject({
      code: INVALID,
      message: expect.stringContaining(text),
    });
  });
});

describe("a worker's module that", () => {
  const missing = new URL("./absent-worker.js", import.meta.url);
  it.each<[how: string, entry: unknown, code: string, text: RegExp, cause: object]>([
    ["does not exist", missing, "PAMIR_ENTRY", /absent-worker\.js/, {}],
    ["is no URL", 7, "PAMIR_ENTRY", /^entry is 7/, {}],
    ["throws", BAD, "PAMIR_SHUTDOWN", /has ended/, { name: "RangeError", message: "while loading" }],
    ["rejects", BAD, "PAMIR_SHUTDOWN", /has ended/, { name: "TypeError", message: "while awaiting" }],
    ["exits", BAD, "PAMIR_SHUTDOWN", /exited with code 7/, { exitCode: 7 }],
    [
      "returns",
      BAD,
      "PAMIR_SHUTDOWN",
      /^worker 0 has ended without a call of serve\(\): file:.*\/pool-bad\.js$/,
      { exitCode: 0 },
    ],
    [
      "reserved",
      BAD,
      "PAMIR_SHUTDOWN",
      /has ended/,
      { code: INVALID, message: /a function can't be named close, which/ },
    ],
    ["digits", BAD, "PAMIR_SHUTDOWN", /has ended/, { code: INVALID, message: /a function can't be named 0, which/ }],
    ["nothing", BAD, "PAMIR_SHUTDOWN", /has ended/, { message: "serve() got an object without functions" }],
    ["null", BAD, "PAMIR_SHUTDOWN", /has ended/, { message: "serve() takes an object of functions, not null" }],
    ["function", BAD, "PAMIR_SHUTDOWN", /has ended/, { message: "serve() takes an object of functions, not function" }],
    ["many", BAD, "PAMIR_SHUTDOWN", /has ended/, { code: "PAMIR_TOO_LARGE", message: /5000 functions .*at most 4080/ }],
  ])("%s", async (how, entry, code, text, cause) => {
    const env = { ...process.env, HOW: how };
    const error = await pool(entry as URL, {
      workers: 1,
      workerOptions: { env },
      onError: "ignore",
      startTimeout: 20_000,
    }).then(
      async (workers) => {
        await workers.terminate();
        throw new Error("a pool");
      },
      (thrown) => thrown as Error & { code: string },
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(text) });
    for (const [key, value] of Object.entries(cause)) {
      const given = (error.cause as Record<string, unknown>)[key];
      if (value instanceof RegExp) expect(given).toMatch(value);
      else expect(given).toBe(value);
    }
  });
});

it.each([
  "all",
  "by",
  "close",
  "events",
  "map",
  "stats",
  "sync",
  "terminate",
  "warmUp",
  "with",
  "then",
  "toJSON",
  "12",
])("serve() refuses a function named %s at once", (name) => {
  expect(() => serve({ fine: () => 1, [name]: () => 1 })).toThrow(
    expect.objectContaining({
      code: INVALID,
      message: `serve(): a function can't be named ${name}, which is a name of the pool's own`,
    }),
  );
});

describe("what is no option, no context and no key:", () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      "an option",
      () => serve({ fine: () => 1 }, { prt: 1 } as never),
      /^options of serve\(\): there is no "prt", but port$/,
    ],
    ["options", () => serve({ fine: () => 1 }, null as never), /^options of serve\(\) are null, not an object$/],
    ["a port", () => serve({ fine: () => 1 }, { port: 5 as never }), /^port of serve\(\) is 5, not a port/],
    ["a context", () => expose(5 as never, { fine: () => 1 }), /^expose\(\) takes a context, not 5$/],
    ["a worker", () => connect(5 as never), /^connect\(\) takes a worker, or a context and an endpoint, not 5$/],
    [
      "options behind a worker",
      () => connect({ postMessage() {} } as never, {} as never),
      /takes a context, not an obj/,
    ],
  ])("%s", async (_, act, text) => {
    await expect((async () => await act())()).rejects.toMatchObject({
      code: INVALID,
      message: expect.stringMatching(text),
    });
  });
});

describe("a pool", () => {
  let workers: Pool<Api>;
  beforeAll(async () => {
    workers = await pool<Api>(ENTRY, { workers: 1 });
  });
  afterAll(() => workers.terminate());

  const any = (): Record<string, (...args: unknown[]) => unknown> => workers as never;
  it.each<[string, () => unknown, code: string, text: RegExp]>([
    ["a name", () => any().sqare?.(1), INVALID, /^the worker serves no function "sqare", but echo, same, square, /],
    ["a name of all", () => (workers.all as never as typeof any)["x" as never], INVALID, /serves no function "x"/],
    ["a name of sync", () => (workers.sync as never as typeof any)["x" as never], INVALID, /serves no function "x"/],
    ["a name of with()", () => workers.with({})["x" as never], INVALID, /serves no function "x"/],
    ["a place", () => workers[1], INVALID, /^the place of a worker is 1, not an integer from 0 to 0/],
    [
      "an option of with()",
      () => workers.with({ tries: 1 } as never),
      INVALID,
      /^options of with\(\): there is no "tries"/,
    ],
    ["no options", () => workers.with(null as never), INVALID, /^options of with\(\) are null/],
    [
      "a signal",
      () => workers.with({ signal: "x" as never }),
      INVALID,
      /^signal of with\(\) is "x", not an AbortSignal/,
    ],
    ["a null signal", () => workers.with({ signal: null as never }), INVALID, /^signal of with\(\) is null/],
    ["a priority", () => workers.with({ priority: Number.NaN }), INVALID, /^priority of with\(\) is NaN, not a finite/],
    [
      "retries",
      () => workers.with({ retries: -1 }),
      INVALID,
      /^retries of with\(\) is -1, not an integer from 0 to 1000/,
    ],
    ["a timeout", () => workers.with({ timeout: -1 }), INVALID, /^timeout of with\(\) is -1/],
    ["a listener", () => workers.events(5 as never), INVALID, /^events\(\) takes a function, not 5/],
    ["what stays", () => proxy(5 as never), INVALID, /^proxy\(\) takes a function or an object, not 5/],
    ["items", () => workers.map(5 as never, () => 1).next(), INVALID, /^items of map\(\) are number, not an iterable/],
    ["work", () => workers.map([1], 5 as never).next(), INVALID, /^work of map\(\) is number, not a function/],
    ["room", () => workers.map([1], (i) => i, { concurrency: 0 }).next(), INVALID, /^concurrency of map\(\) is 0/],
    [
      "an order",
      () => workers.map([1], (i) => i, { ordered: "no" as never }),
      INVALID,
      /^ordered of map\(\) is "no", not/,
    ],
    [
      "a key",
      () => workers.by({} as never),
      INVALID,
      /^the key of by\(\) is an object, not a string, a number or a bigint/,
    ],
    ["no key", () => workers.by(undefined as never), INVALID, /^the key of by\(\) is undefined/],
    [
      "a map's option",
      () => workers.map([1], (i) => i, { order: 1 } as never),
      INVALID,
      /map\(\): there is no "order"/,
    ],
    ["a stream", () => workers.square.stream(3).next(), INVALID, /^stream\(\) of a function that gave number/],
    [
      "a symbol",
      () => workers.same(Symbol("s")),
      "PAMIR_CLONE",
      /^argument 1: value can't be copied to another task: it is a symbol$/,
    ],
    ["a symbol of two", () => workers.echo(1, { a: Symbol("s") }), "PAMIR_CLONE", /^argument 2: value\.a can't be/],
    ["a symbol in an array", () => workers.same([[Symbol("s")]]), "PAMIR_CLONE", /^argument 1: value\[0\]\[0\] can't/],
    ["two with one array", () => workers.echo([1], [1, Symbol("s")]), "PAMIR_CLONE", /^argument 2: value\[1\] can't/],
    ["a nesting", () => workers.same(nested()), "PAMIR_CLONE", /^argument 1: value can't be .*: it is nested deeper/],
    ["a nesting of two", () => workers.echo(1, nested()), "PAMIR_CLONE", /^a part of the arguments can't be .* nested/],
    [
      "a stream's argument",
      () => workers.told.stream(1, WRONG as never, undefined as never).next(),
      "PAMIR_CLONE",
      /^argument 2: value\.rows\[1\] can/,
    ],
    [
      "what is moved beside it",
      () => workers.echo(move(new ArrayBuffer(8)), WRONG),
      "PAMIR_CLONE",
      /^argument 2: value\.r/,
    ],
    ["an argument for all", () => workers.all.same(WRONG), "PAMIR_CLONE", /^argument 1: value\.rows\[1\] can't be/],
    [
      "a WeakMap",
      () => workers.same({ a: [new WeakMap()] }),
      "PAMIR_CLONE",
      /^argument 1: value\.a\[0\] .* a WeakMap$/,
    ],
    [
      "a Promise",
      () => workers.same({ a: Promise.resolve() }),
      "PAMIR_CLONE",
      /^argument 1: value\.a .*it is a Promise$/,
    ],
    [
      "shared memory",
      () => workers.same(new SharedArrayBuffer(8)),
      "PAMIR_CLONE",
      /^argument 1: value .*shared memory/,
    ],
    [
      "a URL object",
      () => workers.same(new Map([["at", new URL("x:y")]])),
      "PAMIR_CLONE",
      /^argument 1: value\.get\("at"\) .*a URL$/,
    ],
    [
      "a result",
      () => workers.unclonable(),
      "PAMIR_CLONE",
      /^the result: value\.run can't be copied to another task: it is a function/,
    ],
    [
      "a value of a stream",
      () => workers.unclonables.stream().next(),
      "PAMIR_CLONE",
      /^a value of the stream: value\.run /,
    ],
    [
      "a callback's argument",
      () => workers.tellsWrong(() => 1),
      "PAMIR_CLONE",
      /^argument 2 of a callback: value\.a\[0\] /,
    ],
    [
      "a method's argument",
      () => workers.tellsWrong(proxy({ add: () => 1 })),
      "PAMIR_CLONE",
      /^argument 2 of add\(\): value\.a\[0\] /,
    ],
    [
      "a callback's result",
      () => workers.sumOf(1, () => WRONG as never),
      "PAMIR_CLONE",
      /^the result of a callback: value\.r/,
    ],
    ["nothing to block for", () => workers.sync.same(Symbol("s")), "PAMIR_CLONE", /^argument 1: value can't be copied/],
  ])("refuses %s that is wrong, and goes on", async (_, act, code, text) => {
    const error = await (async () => await act())().then(
      () => undefined,
      (thrown) => thrown as Error,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(text) });
    expect(await workers.square(3)).toBe(9);
    expect(workers.stats).toMatchObject({ running: 0, queued: 0 });
  });
});

describe("connect() to a worker that ends before it serves", () => {
  it.each([
    ["by itself", "process.exit(3)", /has ended with exit code 3, before it served$/],
    ["at its end", "1", /has ended with exit code 0, before it served$/],
  ])("%s rejects at once, with its exit code", async (_, code, message) => {
    const connected = connect(new Worker(code, { eval: true }));
    await expect(connected).rejects.toMatchObject({ code: "PAMIR_SHUTDOWN", message: expect.stringMatching(message) });
  });

  it("and long before connect() says that it has ended", async () => {
    const worker = new Worker("1", { eval: true });
    await new Promise((resolve) => worker.once("exit", resolve));
    await expect(connect(worker)).rejects.toMatchObject({
      code: "PAMIR_SHUTDOWN",
      message: expect.stringContaining("has ended"),
    });
    expect(worker.listenerCount("exit")).toBe(0);
  });
});
