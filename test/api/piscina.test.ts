// Programs for piscina: each runs over piscina itself and over pamir/piscina, and says the same. Over the latter also once its
// workers have joined a job, which the first hundred tasks need not.
import { spawnSync } from "node:child_process";
import { createSecretKey } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { MessageChannel } from "node:worker_threads";
import Default, { Piscina as Ours } from "pamir/piscina";
import { Piscina as Theirs } from "piscina";
import { afterEach, describe, expect, it } from "vitest";

type Options = NonNullable<ConstructorParameters<typeof Ours>[0]>;
type Say = (...values: unknown[]) => void;
type Make = (options?: Options) => Promise<Ours>;
interface Program {
  readonly title: string;
  run(make: Make, say: Say, Piscina: typeof Ours): Promise<void>;
}

const file = (name: string): string => new URL(`./tasks/${name}`, import.meta.url).href;
const filename = file("piscina-worker.cjs");
const JOIN_AFTER = 100;

/** What a promise has come to, as text. Paths are left out. */
async function endOf(promise: PromiseLike<unknown> | (() => unknown)): Promise<string> {
  try {
    return `gives ${inspect(await (typeof promise === "function" ? promise() : promise), { depth: 9 })}`;
  } catch (error) {
    if (!(error instanceof Error)) return `throws ${inspect(error)}`;
    const cause = error.cause === undefined ? "" : ` because of ${inspect(String(error.cause))}`;
    return `throws ${error.constructor.name} ${error.name}: ${error.message.split("\n")[0]}${cause}`;
  }
}

/** Resolves once all workers have joined the job. */
async function joined(pool: Ours): Promise<void> {
  const threads = new Set<{ hasJoined: boolean }>();
  pool.on("workerCreate", (worker: object) => {
    const [symbol] = Object.getOwnPropertySymbols(worker);
    threads.add((worker as never)[symbol as never]);
  });
  for (let calls = 0; calls < JOIN_AFTER || [...threads].some(({ hasJoined }) => !hasJoined); calls++) {
    await Promise.all(Array.from({ length: pool.threads.length }, () => pool.run(0, { name: "same" })));
  }
}

/** What a program says. */
async function said({ run }: Program, Piscina: typeof Ours, isJoined: boolean): Promise<string[]> {
  const lines: string[] = [];
  const pools: Ours[] = [];
  const make = async (options: Options = {}): Promise<Ours> => {
    const pool = new Piscina({ filename, minThreads: 1, maxThreads: 1, ...options });
    pools.push(pool);
    if (isJoined) await joined(pool);
    return pool;
  };
  try {
    await run(make, (...values) => lines.push(values.join(" ")), Piscina);
  } finally {
    for (const pool of pools) await pool.destroy();
  }
  return lines;
}

const cyclic: { self?: unknown; list: number[] } = { list: [1] };
cyclic.self = cyclic;
class Point {
  x = 1;
  get y(): number {
    return 2;
  }
}

const VALUES: unknown[] = [
  undefined,
  null,
  -0,
  Number.NaN,
  2n ** 70n,
  "a\ud800é文",
  // biome-ignore lint/suspicious/noSparseArray: a hole stays one.
  [1, , 3],
  new Date(7),
  /a+/giu,
  new Map<unknown, unknown>([
    ["rows", [1, undefined, new Date(7)]],
    [{ key: 1 }, new Set([1, "1"])],
  ]),
  cyclic,
  new Point(),
  new Float32Array([1.5, -0]),
  new DataView(new ArrayBuffer(3)),
  Buffer.from("bytes"),
  Object(7),
  "long ".repeat(30_000),
  new Uint8Array(200_000).fill(7),
  new RangeError("a value", { cause: new Error("inner") }),
];

const PROGRAMS: Program[] = [
  {
    title: "values go there and back",
    async run(make, say) {
      const pool = await make({ name: "same" });
      for (const value of VALUES) {
        const back = await pool.run(value);
        // Stacks have the lines of this file, and of what has run it.
        if (value instanceof Error) say(String(back), String(back.cause), back instanceof RangeError);
        else say(inspect(back, { depth: 9, maxArrayLength: 5, maxStringLength: 20 }), back?.length, back?.[99_999]);
      }
    },
  },
  {
    title: "functions are found by name, by file, by URL, in CommonJS and in modules, behind promises too",
    async run(make, say) {
      const pool = await make();
      const task = { a: 4, b: 6 };
      const esm = fileURLToPath(file("piscina-esm.mjs"));
      say(await endOf(pool.run(task)));
      say(await endOf(pool.run(task, { filename: null, name: null })));
      say(await endOf(pool.run(task, { filename: esm })));
      say(await endOf(pool.run(21, { filename: file("piscina-esm.mjs"), name: "twice" })));
      say(await endOf(pool.run(21, { name: "promised" })));
      say(await endOf(pool.run(1, { name: "thenable" })));
      for (let i = 0; i < 3; i++) say(await endOf(pool.run(1, { name: "count" })));
    },
  },
  {
    title: "what is not there, is no function, or throws while it is loaded",
    async run(make, say) {
      const pool = await make();
      for (const name of ["none", "number", "toString", "__proto__", "length"]) {
        say(name, (await endOf(pool.run(1, { name }))).replace(filename, "FILE"));
      }
      const esm = file("piscina-esm.mjs");
      for (const name of ["none", "notAFunction"]) say(name, await endOf(pool.run(1, { filename: esm, name })));
      say(await endOf(pool.run(1, { filename: file("piscina-throws.cjs") })));
      say((await endOf(pool.run(1, { filename: "/no/such/file.js" }))).replace(/imported from .*/, ""));
      say(await endOf(pool.run({ a: 1, b: 2 })), pool.threads.length);
    },
  },
  {
    title: "errors of functions, and whatever else they throw",
    async run(make, say) {
      const pool = await make();
      say(await endOf(pool.run(1, { name: "fail" })));
      say(await endOf(pool.run("of a promise", { name: "reject" })));
      for (const value of ["text", 7, undefined, { field: [1] }]) {
        say(await endOf(pool.run(value, { name: "throwValue" })));
      }
      say(pool.completed >= 6, await endOf(pool.run({ a: 1, b: 2 })));
    },
  },
  {
    title: "a task that can't be copied is refused, and the next one is run",
    async run(make, say) {
      const pool = await make({ name: "same" });
      for (const value of [() => {}, Symbol("s"), { f() {} }, new WeakMap(), Promise.resolve(1)]) {
        say(await endOf(pool.run(value)));
      }
      say(await endOf(pool.run({ a: 1, b: 2 }, { name: "default" })));
    },
  },
  {
    title: "a list or move() transfers, shared memory is shared, and keys are copied",
    async run(make, say, Piscina) {
      const pool = await make({ name: "same" });
      const bytes = new Uint8Array(100).fill(7);
      const back = await pool.run(bytes, { transferList: [bytes.buffer] });
      say(back.length, back[99], bytes.length);
      for (const large of [new Uint8Array(100), new ArrayBuffer(7)]) {
        say((await pool.run(Piscina.move(large))).byteLength, large.byteLength);
      }
      const { port1, port2 } = new MessageChannel();
      const heard = new Promise((resolve) => port1.once("message", resolve));
      await pool.run(Piscina.move(port2), { name: "postBy" });
      say(await heard);
      port1.close();
      const marked = {
        get [Piscina.transferableSymbol]() {
          return [bytes.buffer];
        },
        get [Piscina.valueSymbol]() {
          return { other: "value" };
        },
      };
      say(await endOf(pool.run(Piscina.move(marked as never))));
      const shared = new Int32Array(new SharedArrayBuffer(4));
      const same = await pool.run(shared);
      same[0] = 5;
      say(shared[0]);
      const theirs = await pool.run(0, { name: "shared" });
      say(theirs.buffer instanceof SharedArrayBuffer, Piscina.move(7 as never), Piscina.move(null as never));
      say(await endOf(pool.run(bytes, { transferList: [bytes.buffer, bytes.buffer] })));
      say((await pool.run({ key: createSecretKey("secret", "utf8") })).key.export());
    },
  },
  {
    title: "signals abort tasks before they run, while they run, and while they wait; the others go on",
    async run(make, say) {
      const pool = await make();
      say(await endOf(pool.run(1, { signal: AbortSignal.abort("early") })));
      const [running, waiting] = [new AbortController(), new AbortController()];
      const emitter = new EventEmitter();
      const first = endOf(pool.run(1, { name: "never", signal: running.signal }));
      const second = endOf(pool.run({ a: 1, b: 2 }));
      const third = endOf(pool.run(1, { name: "never", signal: waiting.signal }));
      const fourth = endOf(pool.run(1, { name: "never", signal: emitter }));
      waiting.abort();
      emitter.emit("abort");
      say(await third, await fourth, pool.queueSize);
      running.abort(new Error("because"));
      say(await first, await second, pool.queueSize, pool.threads.length);
      const over = new AbortController();
      say(await endOf(pool.run(7, { name: "same", signal: over.signal })));
      over.abort();
      say(await endOf(pool.run(8, { name: "same" })), emitter.listenerCount("abort"));
    },
  },
  {
    title: "workers that end, or throw outside of their tasks, are replaced",
    async run(make, say) {
      const pool = await make({ concurrentTasksPerWorker: 2 });
      for (const name of ["exit", "uncaught", "unhandled"]) {
        const other = endOf(pool.run(1, { name: "never" }));
        say(await endOf(pool.run(undefined, { name })), await other);
        say(await endOf(pool.run({ a: 1, b: 2 })), pool.threads.length);
      }
      const idle = await make({ atomics: "disabled" });
      const errors: unknown[] = [];
      idle.on("error", (error) => errors.push(error));
      const destroyed = once(idle, "workerDestroy");
      const word = new Int32Array(new SharedArrayBuffer(4));
      say(await endOf(idle.run(word, { name: "exitLater" })));
      // Its answer has come: then it exits.
      Atomics.store(word, 0, 1);
      Atomics.notify(word, 0);
      await destroyed;
      say(errors.length, await endOf(idle.run({ a: 1, b: 2 })));
    },
  },
  {
    title: "queues have limits, and say when they are full",
    async run(make, say) {
      for (const maxQueue of [0, 1, "auto"] as const) {
        const pool = await make({ maxQueue });
        const word = new Int32Array(new SharedArrayBuffer(4));
        // The thread is there before tasks count.
        await pool.run(1, { name: "same" });
        const ends = [1, 2, 3].map((n) => endOf(n === 1 ? pool.run(word, { name: "wait" }) : pool.run({ a: n, b: n })));
        await Promise.resolve();
        // piscina keeps what it has refused in its queue if that has no room at all.
        say(maxQueue, pool.options.maxQueue, maxQueue === 0 || pool.queueSize, pool.needsDrain);
        Atomics.store(word, 0, 1);
        Atomics.notify(word, 0);
        for (const end of ends) say((await end).replace(/'(ok|not-equal)'/, "woken"));
        say(pool.queueSize);
      }
    },
  },
  {
    title: "a pool that closes runs what it has, and takes no more; one that is destroyed drops it",
    async run(make, say) {
      const pool = await make();
      pool.on("close", () => say("close"));
      const ends = [1, 2, 3].map((n) => endOf(pool.run(n, { name: "later" })));
      const closed = endOf(pool.close());
      say(await endOf(pool.run({ a: 1, b: 2 })));
      say(await Promise.all(ends), await closed, pool.threads.length);
      const forced = await make();
      const tasks = [1, 2].map((n) => endOf(forced.run(n, { name: "later" })));
      say(await endOf(forced.close({ force: true })), await Promise.all(tasks));
      const slow = await make({ closeTimeout: 5 });
      slow.on("error", (error) => say("error", error));
      const never = endOf(slow.run(1, { name: "never" }));
      say(await endOf(slow.close()), await never);
      const destroyed = await make();
      const lost = [1, 2].map(() => endOf(destroyed.run(1, { name: "never" })));
      const end = endOf(destroyed.destroy());
      say(await endOf(destroyed.run({ a: 1, b: 2 })), await Promise.all(lost), await end);
      await destroyed.destroy();
      await destroyed.close();
      say(destroyed.threads.length, destroyed.queueSize);
      const used = await make();
      await used[Symbol.asyncDispose]();
      say(used.threads.length);
    },
  },
  {
    title: "workers share tasks as the options say, and tell of themselves",
    async run(make, say) {
      const pool = await make({ minThreads: 2, maxThreads: 2 });
      const threads = await Promise.all([pool.run(1, { name: "thread" }), pool.run(1, { name: "thread" })]);
      say(new Set(threads).size, pool.threads.map(({ threadId }) => threads.includes(threadId)).join());
      say(pool.minThreads, pool.maxThreads, pool.idleThreads, pool.completed > 1, pool.duration > 0);
      say(pool.utilization > 0, pool.histogram.runTime?.mean === pool.histogram.runTime?.average);
      const wide = await make({ concurrentTasksPerWorker: 3 });
      await wide.run(1, { name: "same" });
      const word = new Int32Array(new SharedArrayBuffer(4));
      const order: number[] = [];
      const all = [1, 2, 3, 4].map((n) => wide.run(n, { name: "later" }).then((value) => order.push(value)));
      await Promise.resolve();
      say(wide.queueSize, wide.needsDrain);
      const drained = once(wide, "drain");
      await Promise.all(all);
      await drained;
      say(order.join(), wide.queueSize, wide.needsDrain, word[0]);
    },
  },
  {
    title: "workers have the environment, arguments and data of the options, and post messages",
    async run(make, say) {
      const pool = await make({
        env: { PISCINA_TEST: "of the worker" },
        argv: ["one", "two"],
        execArgv: ["--no-warnings"],
        workerData: { rows: new Map([[1, 2]]) },
        resourceLimits: { maxOldGenerationSizeMb: 128 },
      });
      say(inspect(await pool.run(1, { name: "where" })), inspect(await pool.run(1, { name: "data" })));
      say(pool.threads[0]?.resourceLimits?.maxOldGenerationSizeMb);
      const message = once(pool, "message");
      await pool.run({ from: "the worker" }, { name: "post" });
      say(inspect(await message));
    },
  },
  {
    title: "queues and balancers of the program are asked",
    async run(make, say, Piscina) {
      const queued: unknown[] = [];
      const pool = await make({
        taskQueue: {
          get size() {
            return queued.length;
          },
          // The last one first.
          shift: () => (queued.pop() ?? null) as never,
          push: (task) => void queued.push(task),
          remove: (task) => void queued.splice(queued.indexOf(task), 1),
        },
      });
      await pool.run(0, { name: "same" });
      const order: number[] = [];
      const task = (n: number) => ({ n, [Piscina.queueOptionsSymbol]: { priority: n } });
      const tasks = [1, 2, 3].map((n) => pool.run(task(n), { name: "same" }).then(() => order.push(n)));
      say(queued.map((one) => inspect((one as never)[Piscina.queueOptionsSymbol as never])).join());
      await Promise.all(tasks);
      say(order.join());
      const balanced = await make({
        minThreads: 2,
        maxThreads: 2,
        loadBalancer: ({ name, isAbortable }, workers) => {
          const all = workers.filter(({ currentUsage }) => currentUsage === 0);
          return name === "data" || isAbortable ? null : (all[0] ?? null);
        },
      });
      say(await endOf(balanced.run(7, { name: "same" })));
    },
  },
  {
    title: "bad arguments of run() and close()",
    async run(make, say, Piscina) {
      const pool = await make();
      for (const options of [null, 7, "x"]) say(await endOf(pool.run(1, options as never)));
      for (const transferList of [null, 7, {}]) say(await endOf(pool.run(1, { transferList } as never)));
      for (const key of ["filename", "name", "signal"]) say(await endOf(pool.run(1, { [key]: 7 } as never)));
      for (const options of [null, 7, { force: 1 }]) say(await endOf(pool.close(options as never)));
      say(await endOf(pool.run(1, { name: "same" })));
      const bare = new Piscina({ minThreads: 1, maxThreads: 1 });
      say(await endOf(bare.run(1)), await endOf(bare.run({ a: 1, b: 2 }, { filename })));
      await bare.destroy();
    },
  },
];

const BAD_OPTIONS: Record<string, unknown>[] = [
  ...["filename", "name"].flatMap((key) => [{ [key]: 7 }, { [key]: {} }]),
  ...["minThreads", "maxThreads", "idleTimeout", "maxQueue", "concurrentTasksPerWorker", "closeTimeout"].flatMap(
    (key) => [-1, "1", null, {}].map((value) => ({ [key]: value })),
  ),
  ...[0, -1].flatMap((value) => [{ maxThreads: value }, { concurrentTasksPerWorker: value }]),
  { minThreads: 8, maxThreads: 4 },
  ...["atomics", "resourceLimits", "taskQueue", "niceIncrement", "trackUnmanagedFds", "loadBalancer"].flatMap((key) =>
    [7, "x", -1, false].map((value) => ({ [key]: value })),
  ),
  { resourceLimits: null },
  { taskQueue: { size: 0, shift() {}, push() {} } },
  { loadBalancer: () => null },
  { workerHistogram: 1 },
  { stricterFIFO: "yes" },
];

const theirs = Theirs as unknown as typeof Ours;

describe("the same as in piscina", () => {
  it.each(PROGRAMS)("$title", async (program) => {
    expect(await said(program, Ours, false)).toEqual(await said(program, theirs, false));
  });

  it.each(PROGRAMS)("once workers have joined: $title", async (program) => {
    expect(await said(program, Ours, true)).toEqual(await said(program, theirs, false));
  });

  it("bad options", async () => {
    for (const options of BAD_OPTIONS) {
      const ends = await Promise.all(
        [theirs, Ours].map((Piscina) =>
          endOf(async () => {
            const pool = new Piscina({ minThreads: 0, ...options } as Options);
            await pool.destroy();
            return "a pool";
          }),
        ),
      );
      expect([options, ends[1]]).toEqual([options, ends[0]]);
    }
  });
});

describe("better than in piscina", () => {
  const open: Ours[] = [];
  const make = (options: Options = {}): Ours => {
    const pool = new Ours({ filename, minThreads: 1, maxThreads: 1, ...options });
    open.push(pool);
    return pool;
  };
  afterEach(async () => {
    for (const pool of open.splice(0)) await pool.destroy();
  });

  it.each([false, true])("a result that can't be copied fails its task alone; joined: %s", async (isJoined) => {
    const pool = make({ concurrentTasksPerWorker: 2 });
    if (isJoined) await joined(pool);
    const other = pool.run(7, { name: "later" });
    for (const [name, what] of [
      ["aFunction", "() => {}"],
      ["aSymbol", "Symbol(s)"],
    ] as const) {
      await expect(pool.run(1, { name })).rejects.toMatchObject({
        name: "DataCloneError",
        message: `${what} could not be cloned.`,
      });
    }
    expect(await other).toBe(7);
  });

  it.each([false, true])("errors keep their fields and names; joined: %s", async (isJoined) => {
    const pool = make();
    if (isJoined) await joined(pool);
    const thrown = pool.run({ code: "E_CODE", name: "Named" }, { name: "throwError" });
    await expect(thrown).rejects.toMatchObject({ code: "E_CODE", name: "Named" });
  });

  it("refuses NaN where a number is needed", () => {
    for (const key of [
      "minThreads",
      "maxThreads",
      "idleTimeout",
      "maxQueue",
      "concurrentTasksPerWorker",
      "closeTimeout",
    ]) {
      expect(() => make({ [key]: Number.NaN })).toThrow(TypeError);
    }
  });

  it("runs what a caller waits for that blocks its thread behind run()", async () => {
    const pool = make();
    const words = [new Int32Array(new SharedArrayBuffer(4)), new Int32Array(new SharedArrayBuffer(4))];
    for (const word of words) {
      const told = pool.run(word, { name: "tell" });
      expect(Atomics.wait(word, 0, 0)).not.toBe("timed-out");
      await told;
      await joined(pool);
    }
  });

  it("a program ends behind its last line, and not before", () => {
    const program = fileURLToPath(file("piscina-program.mjs"));
    const { status, stdout, stderr } = spawnSync(process.execPath, [program], { encoding: "utf8", timeout: 100_000 });
    expect({ status, stderr, lines: stdout.split("\n") }).toEqual({
      status: 0,
      stderr: "",
      lines: ["printed", "3 undefined", "first closed", "all closed", "7", ""],
    });
  });

  it("is what require() gives, with the names of piscina", () => {
    const require = createRequire(import.meta.url);
    const required = require("pamir/piscina") as typeof Ours & Record<string, unknown>;
    expect(required.Piscina).toBe(required);
    expect(Object.getOwnPropertyNames(required)).toEqual(
      expect.arrayContaining(
        Object.getOwnPropertyNames(Theirs).filter((name) => !/^(prototype|name|length)$/.test(name)),
      ),
    );
    expect(Object.getOwnPropertyNames(Ours.prototype)).toEqual(
      expect.arrayContaining(Object.getOwnPropertyNames(Theirs.prototype)),
    );
    expect(Default).toBe(Ours);
  });
});
