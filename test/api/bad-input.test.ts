// Bad input: each comes to an error with a stable code and the values in its text, and nothing is left half done.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  attach,
  type Client,
  type Context,
  type DispatchHints,
  EAGAIN,
  ENOMEM,
  type Endpoint,
  errorText,
  INTERRUPTED,
  info,
  type Job,
  type LaunchOptions,
  launch,
  PamiError,
  type ReceiveOptions,
  SHUTDOWN,
  SUCCESS,
} from "pamir";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from "vitest";
import {
  DATA,
  fillHeap,
  OTHER,
  pattern,
  rejectionOf,
  thrownBy,
  until,
  VARIANTS,
  type Variant,
  withJob,
} from "./support.js";

const variant = VARIANTS[2] as Variant;
const sleeper = new URL("tasks/sleeper.js", import.meta.url);

interface Case {
  readonly name: string;
  readonly call: (given: { context: Context; client: Client }) => unknown;
  readonly code: string;
  readonly text: readonly string[];
}

const send = (context: Context, to: unknown, dispatch: unknown, header?: unknown, payload?: unknown) =>
  context.sendImmediate(to as Endpoint, dispatch as number, header as Uint8Array, payload as Uint8Array);

const noop = () => {};

/** Receives what is offered, with options. */
function received({ context }: { context: Context }, options: ReceiveOptions): void {
  context.dispatch(105, (message) => message.receive(new Uint8Array(8), undefined, undefined, options));
  context.send({ to: context.endpoint, dispatch: 105, payload: new Uint8Array(8), rendezvous: true, onLocal: noop });
  until(context, () => false);
}

const CASES: readonly Case[] = [
  {
    name: "an endpoint of a task that does not exist",
    call: ({ client }) => client.endpoint(1),
    code: "PAMIR_INVAL",
    text: ["task is 1", "0 to 0"],
  },
  {
    name: "an endpoint of a context that does not exist",
    call: ({ client }) => client.endpoint(0, 4),
    code: "PAMIR_INVAL",
    text: ["context is 4", "0 to 3"],
  },
  {
    name: "more contexts than the job allows",
    call: ({ client }) => Array.from({ length: 5 }, () => client.createContext()),
    code: "PAMIR_INVAL",
    text: ["context 4 of task 0", "4 a task"],
  },
  {
    name: "sendImmediate over the limit",
    call: ({ context }) => send(context, context.endpoint, DATA, new Uint8Array(1), new Uint8Array(4096)),
    code: "PAMIR_TOO_LARGE",
    text: ["4104", "4096", "send()"],
  },
  {
    name: "a header over the limit",
    call: ({ context }) => context.send({ to: context.endpoint, dispatch: DATA, header: new Uint8Array(65_536) }),
    code: "PAMIR_TOO_LARGE",
    text: ["65536", "65535"],
  },
  {
    name: "a reservation over the limit",
    call: ({ context }) => context.reserve(context.endpoint, DATA, 70_000),
    code: "PAMIR_INVAL",
    text: ["payloadBytes is 70000", "69632"],
  },
  {
    name: "a dispatch id that is taken",
    call: ({ context }) => [1, 2].map(() => context.dispatch(100, noop)),
    code: "PAMIR_DISPATCH_TAKEN",
    text: ["100"],
  },
  ...[-1, 4096, 1.5, "1", undefined].map(
    (id): Case => ({
      name: `dispatch(${JSON.stringify(id)})`,
      call: ({ context }) => context.dispatch(id as number, noop),
      code: "PAMIR_INVAL",
      text: [`dispatch id is ${JSON.stringify(id)}`, "0 to 4095"],
    }),
  ),
  {
    name: "a handler that is none",
    call: ({ context }) => context.dispatch(101, {} as never),
    code: "PAMIR_INVAL",
    text: ["handler is Object"],
  },
  ...(
    [
      ["recvContiguous", "disable"],
      ["recvCopy", "disable"],
      ["consistency", "disable"],
      ["useShmem", "disable"],
      ["useRdma", "enable"],
      ["bufferRegistered", "enable"],
      ["remoteAsyncProgress", "enable"],
      ["recvImmediate", "perhaps"],
      ["unheardOf", "enable"],
    ] as const
  ).map(
    ([hint, value]): Case => ({
      name: `hint ${hint}: ${value}`,
      call: ({ context }) => context.dispatch(102, noop, { [hint]: value } as DispatchHints),
      code: "PAMIR_HINT",
      text: [hint],
    }),
  ),
  {
    name: "a long header where the hint forbids it",
    call: ({ context }) => {
      context.dispatch(103, noop, { longHeader: "disable" });
      context.send({ to: context.endpoint, dispatch: 103, header: new Uint8Array(4097) });
    },
    code: "PAMIR_TOO_LARGE",
    text: ["103", "4097", "4096"],
  },
  {
    name: "work that is none",
    call: ({ context }) => context.post(7 as never),
    code: "PAMIR_INVAL",
    text: ["work is 7"],
  },
  { name: "advance(0)", call: ({ context }) => context.advance(0), code: "PAMIR_INVAL", text: ["max is 0"] },
  {
    name: "a timeout that is none",
    call: ({ context }) => context.advanceUntil(() => true, { timeout: -1 }),
    code: "PAMIR_INVAL",
    text: ["timeout is -1"],
  },
  {
    name: "whenRoom of more than a message",
    call: ({ context }) => context.whenRoom(context.endpoint, 2 ** 31, noop),
    code: "PAMIR_INVAL",
    text: ["bytes is 2147483648", "2147483647"],
  },
  {
    name: "an attribute that does not exist",
    call: ({ client }) => client.query("CLIENT_COLOUR" as never),
    code: "PAMIR_INVAL",
    text: ['"CLIENT_COLOUR"', "CLIENT_NUM_TASKS"],
  },
  ...(
    [
      ["fragment", 63, "64 to 1073741824"],
      ["fragment", 2 ** 30 + 1, "64 to 1073741824"],
      ["fragment", 100.5, "64 to 1073741824"],
      ["fragment", "64", "64 to 1073741824"],
      ["depth", 0, "1 to 4"],
      ["depth", 5, "1 to 4"],
      ["depth", Number.NaN, "1 to 4"],
    ] as const
  ).flatMap(([option, value, limits]): Case[] => {
    const code = "PAMIR_INVAL";
    const text = [`${option} is ${typeof value === "string" ? JSON.stringify(value) : value}`, limits];
    const options = { [option]: value } as object;
    return [
      { code, text, name: `${option} ${value} of a context`, call: ({ client }) => client.createContext(options) },
      { code, text, name: `${option} ${value} of a receive()`, call: (given) => received(given, options) },
    ];
  }),
  {
    name: "a signal of a receive() that is none",
    call: (given) => received(given, { signal: 7 as never }),
    code: "PAMIR_INVAL",
    text: ["signal of receive() is 7"],
  },
  ...[undefined, new Uint8Array(100_000)].map(
    (payload): Case => ({
      name: `a signal of a send() that is none, ${payload === undefined ? "without" : "with"} a payload`,
      call: ({ context }) =>
        context.send({
          to: context.endpoint,
          dispatch: 104,
          payload,
          rendezvous: false,
          onLocal: noop,
          signal: {} as never,
        }),
      code: "PAMIR_INVAL",
      text: ["signal of send() is Object"],
    }),
  ),
  ...[{ onLocal: noop }, { payload: new Uint8Array(8) }, {}].map(
    (parameters): Case => ({
      name: `rendezvous of a send() with ${Object.keys(parameters)}`,
      call: ({ context }) => {
        // Its lane is there: the direct path asks too.
        context.sendImmediate(context.endpoint, 104);
        context.send({ to: context.endpoint, dispatch: 104, rendezvous: true, ...parameters });
      },
      code: "PAMIR_INVAL",
      text: ["rendezvous", "payload", "onLocal"],
    }),
  ),
  {
    name: "options of a context",
    call: ({ client }) => client.createContext({ spin: Number.NaN }),
    code: "PAMIR_INVAL",
    text: ["spin is NaN"],
  },
];

/** Arguments of a send, each wrong in one way; the first message opens the direct path, where they must be found too. */
const BAD_SENDS: readonly (readonly [string, (self: number) => readonly unknown[], string])[] = [
  [
    "endpoint of a task beyond the job",
    () => [5, DATA],
    "endpoint 5 is context 0 of task 5: the job has 1 tasks with 4 contexts",
  ],
  ["endpoint of a context beyond the job", () => [4 << 24, DATA], "is context 4 of task 0"],
  ["endpoint -1", () => [-1, DATA], "endpoint -1"],
  ["endpoint 2^32", () => [2 ** 32, DATA], "endpoint 4294967296"],
  ["endpoint 0.5", () => [0.5, DATA], "endpoint 0.5"],
  ["endpoint undefined", () => [undefined, DATA], "endpoint is undefined"],
  ["endpoint null", () => [null, DATA], "endpoint is null"],
  ['endpoint "0"', () => ["0", DATA], 'endpoint is "0"'],
  ["dispatch id 4096", (self) => [self, 4096], "dispatch is 4096"],
  ["dispatch id -1", (self) => [self, -1], "dispatch is -1"],
  ['dispatch id "1"', (self) => [self, "1"], 'dispatch is "1"'],
  ["a string as header", (self) => [self, DATA, "header"], 'header is "header"'],
  ["a string as payload", (self) => [self, DATA, null, "payload"], 'payload is "payload"'],
  ["an ArrayBuffer as header", (self) => [self, DATA, new ArrayBuffer(8)], "header is ArrayBuffer"],
  ["an ArrayBuffer as payload", (self) => [self, DATA, null, new ArrayBuffer(100)], "payload is ArrayBuffer"],
  ["an array as payload", (self) => [self, DATA, null, [1, 2, 3]], "payload is Array"],
];

describe("bad input", () => {
  it.each(CASES)("$name", ({ call, code, text }) =>
    withJob(variant, { tasks: 1 }, ({ client, context }) => {
      const thrown = thrownBy(() => call({ client, context }));
      expect(thrown.code).toBe(code);
      for (const part of text) expect(thrown.text).toContain(part);
      // Whatever was refused has left nothing behind.
      let seen = 0;
      context.dispatch(OTHER, () => seen++);
      context.sendImmediate(context.endpoint, OTHER);
      until(context, () => seen === 1);
    }),
  );

  for (const direct of [false, true]) {
    it.each(BAD_SENDS)(`%s, ${direct ? "after" : "instead of"} a first message`, (_, make, text) =>
      withJob(variant, { tasks: 1 }, ({ job, context }) => {
        const self = context.endpoint;
        const seen: number[] = [];
        context.dispatch(DATA, (message) => seen.push(message.payloadBytes));
        if (direct) expect(context.sendImmediate(self, DATA, null, new Uint8Array(1))).toBe(SUCCESS);
        const [to, dispatch, header, payload] = make(self);
        for (const call of [
          () => send(context, to, dispatch, header, payload),
          () => context.send({ to, dispatch, header, payload } as never),
        ]) {
          const thrown = thrownBy(call);
          expect(thrown.code).toBe("PAMIR_INVAL");
          expect(thrown.text).toContain(text);
        }
        expect(job.dump().stuck).toEqual([]);
        context.sendImmediate(self, DATA, null, new Uint8Array(2));
        while (context.advance() > 0);
        expect(seen).toEqual(direct ? [1, 2] : [2]);
      }),
    );
  }

  it("use after close, of a context and of a client", () =>
    withJob(variant, { tasks: 1 }, async ({ client, context }) => {
      const to = context.endpoint;
      context.close();
      context.close();
      const calls: (() => unknown)[] = [
        () => context.dispatch(DATA, noop),
        () => context.sendImmediate(to, DATA),
        () => context.send({ to, dispatch: DATA }),
        () => context.room(to),
        () => context.whenRoom(to, 8, noop),
        () => context.reserve(to, DATA, 8),
        () => context.commit(to),
        () => context.abort(to),
        () => context.post(noop),
        () => context.advance(),
        () => context.advanceUntil(() => true),
      ];
      for (const call of calls) expect(thrownBy(call).code).toBe("PAMIR_CLOSED");
      expect(thrownBy(calls[1] as () => unknown).text).toBe("sendImmediate() of a context that is closed");
      expect((await rejectionOf(context.progress())).code).toBe("PAMIR_CLOSED");
      const other = client.createContext();
      expect(other.index).toBe(1);
      client[Symbol.dispose]();
      expect(other.closed).toBe(true);
      for (const call of [() => client.createContext(), () => client.advance()]) {
        expect(thrownBy(call).code).toBe("PAMIR_CLOSED");
      }
    }));

  it("a message without a handler is kept; a queue with a limit of 0 refuses", () =>
    withJob(variant, { tasks: 1, context: { pendingBytes: 0 } }, ({ context }) => {
      let seen = 0;
      context.sendImmediate(context.endpoint, DATA);
      expect(context.advance()).toBe(1);
      while (context.sendImmediate(context.endpoint, DATA, null, new Uint8Array(4000)) === SUCCESS) seen--;
      expect(seen).toBeLessThan(0);
      expect(context.sendImmediate(context.endpoint, DATA, null, new Uint8Array(4000))).toBe(EAGAIN);
      context.dispatch(DATA, () => seen++);
      until(context, () => seen === 1);
    }));

  it("without memory for a larger lane: what may wait goes in packets, all else is told", () =>
    withJob(variant, { tasks: 1, contexts: 2, laneBytes: 4096, heapBytes: 2 ** 20 }, async ({ client, context }) => {
      const to = context.endpoint;
      const sizes: number[] = [];
      context.dispatch(DATA, ({ payloadBytes }) => {
        sizes.push(payloadBytes);
      });
      const regions = fillHeap(client);
      const payload = pattern(20_000);
      expect(context.send({ to, dispatch: DATA, payload, queue: false })).toBe(ENOMEM);
      expect(context.reserve(to, DATA, 20_000)).toBe(-ENOMEM);
      expect(await rejectionOf(context.whenRoom(to, 20_000))).toMatchObject({ code: "PAMIR_NO_MEMORY" });
      const told: number[] = [];
      context.whenRoom(to, 20_000, (_, result) => told.push(result));
      until(context, () => told.length === 1);
      expect(told).toEqual([ENOMEM]);
      const onRemote = (_: unknown, result: number) => {
        told.push(result);
      };
      expect(context.send({ to, dispatch: DATA, payload })).toBe(SUCCESS);
      expect(context.send({ to, dispatch: DATA, payload: new Uint8Array(69_632), onRemote })).toBe(SUCCESS);
      expect(context.sendImmediate(to, DATA, null, new Uint8Array(8))).toBe(SUCCESS);
      until(context, () => sizes.length === 3 && told.length === 2);
      expect([sizes, told]).toEqual([
        [20_000, 69_632, 8],
        [ENOMEM, SUCCESS],
      ]);
      for (const region of regions) region.close();
      context.advance();
      expect(context.send({ to, dispatch: DATA, payload, queue: false })).toBe(SUCCESS);
      expect(context.reserve(to, DATA, 20_000)).toBeGreaterThan(0);
      context.abort(to);
    }));

  it("without memory for a larger lane: what the pending queue can't hold is refused", () =>
    withJob(variant, { tasks: 1, laneBytes: 4096, heapBytes: 2 ** 20, context: { pendingBytes: 30_000 } }, (given) => {
      const { client, context } = given;
      const to = context.endpoint;
      const sizes: number[] = [];
      context.dispatch(DATA, ({ payloadBytes }) => {
        sizes.push(payloadBytes);
      });
      fillHeap(client);
      const send = (bytes: number) => context.send({ to, dispatch: DATA, payload: new Uint8Array(bytes) });
      expect(send(30_001)).toBe(ENOMEM);
      expect([send(20_000), send(20_000), send(30_001)]).toEqual([SUCCESS, EAGAIN, EAGAIN]);
      until(context, () => sizes.length === 1 && send(20_000) === SUCCESS);
      until(context, () => sizes.length === 2);
      expect(sizes).toEqual([20_000, 20_000]);
    }));

  it("regions leave memory for the first lanes of all contexts that there may be", () =>
    withJob(variant, { tasks: 1, contexts: 3, heapBytes: 2 ** 20 }, ({ client, context }) => {
      fillHeap(client);
      const { text } = thrownBy(() => client.createRegion(4096));
      expect(text).toMatch(/^no 4096 bytes in one piece: \d+ are free, of which 221184 are kept for lanes;/);
      const others = [1, 2].map(() => client.createContext());
      let seen = 0;
      for (const to of [context, ...others]) {
        to.dispatch(DATA, () => seen++);
        for (const from of [context, ...others]) expect(from.sendImmediate(to.endpoint, DATA)).toBe(SUCCESS);
      }
      for (let i = 0; i < 10; i++) client.advance();
      expect(seen).toBe(9);
    }));

  it("a region's memory is there for a lane as soon as nobody is at it any more", () =>
    withJob(variant, { tasks: 1, heapBytes: 2 ** 20 }, ({ client, context }) => {
      const to = context.endpoint;
      const payload = new Uint8Array(20_000);
      const regions = fillHeap(client);
      expect(context.send({ to, dispatch: DATA, payload, queue: false })).toBe(ENOMEM);
      for (const region of regions) region.close();
      context.advance();
      expect(context.send({ to, dispatch: DATA, payload, queue: false })).toBe(SUCCESS);
    }));

  it("no memory for a lane is ENOMEM, and other lanes go on", () =>
    withJob(variant, { tasks: 1, contexts: 127, heapBytes: 2 ** 19 }, ({ client, context }) => {
      let seen = 0;
      context.dispatch(DATA, () => seen++);
      expect(context.sendImmediate(context.endpoint, DATA)).toBe(SUCCESS);
      const results = Array.from({ length: 126 }, (_, i) => context.sendImmediate(client.endpoint(0, i + 1), DATA));
      expect(results.at(-1)).toBe(ENOMEM);
      expect(context.sendImmediate(context.endpoint, DATA)).toBe(SUCCESS);
      until(context, () => seen === 2);
    }));

  it("to wait for room where there is no memory for a lane ends with that", () =>
    withJob(variant, { tasks: 1, contexts: 127, heapBytes: 2 ** 19 }, async ({ client, context }) => {
      const to = client.endpoint(0, 126);
      for (let i = 1; context.resume([client.endpoint(0, i)]) === SUCCESS; ) i++;
      expect(await rejectionOf(context.whenRoom(to, 8))).toMatchObject({
        code: "PAMIR_NO_MEMORY",
        text: "whenRoom(): no memory for a lane to context 126 of task 0 that takes 8 bytes",
      });
      const other = client.createContext();
      expect(context.purge([other.endpoint])).toBe(SUCCESS);
      other.advance();
      await context.whenRoom(to, 8);
    }));

  it("attach() outside a job", async () => {
    const { code, text } = await rejectionOf(attach());
    expect(code).toBe("PAMIR_NOT_IN_JOB");
    expect(text).toContain("launch()");
  });

  it("using ends a client with its block, await using a job", async () => {
    const seen: { job: Job; client: Client }[] = [];
    {
      await using job = await launch(sleeper, { tasks: 2, join: true, heapBytes: 2 ** 20 });
      using client = job.client;
      expect(client.createContext().closed).toBe(false);
      seen.push({ job, client });
    }
    for (const { job, client } of seen) {
      expect(thrownBy(() => client.createContext()).code).toBe("PAMIR_CLOSED");
      expect((await job.exited).map(({ task, cause }) => [task, cause])).toEqual([[1, "terminated"]]);
    }
  });

  it("job.client without join; asyncDispose ends the job", async () => {
    const job = await launch(sleeper, {
      tasks: 1,
      heapBytes: 2 ** 20,
      onError: "ignore",
    });
    expect(thrownBy(() => job.client).code).toBe("PAMIR_NOT_IN_JOB");
    await job[Symbol.asyncDispose]();
    expect((await job.exited).map(({ cause }) => cause)).toEqual(["terminated"]);
  });

  const REFUSED: readonly (readonly [string, unknown, unknown, string, string])[] = [
    [
      "a module that does not exist",
      new URL("tasks/nowhere.js", import.meta.url),
      {},
      "PAMIR_ENTRY",
      "nowhere.js does not exist",
    ],
    ["an entry that is no URL", "./task.js", {}, "PAMIR_ENTRY", '"./task.js"'],
    ["no tasks", sleeper, { tasks: 0 }, "PAMIR_INVAL", "tasks is 0"],
    ["too many tasks", sleeper, { tasks: 1025 }, "PAMIR_INVAL", "tasks is 1025"],
    ["too many endpoints", sleeper, { tasks: 1024, contexts: 2 }, "PAMIR_MEMORY", "2048 endpoints, the limit is 1024"],
    ["a lane that is no power of two", sleeper, { laneBytes: 1000 }, "PAMIR_INVAL", "laneBytes is 1000"],
    ["a lane that is too small", sleeper, { laneBytes: 32 }, "PAMIR_INVAL", "laneBytes is 32"],
    ["a heap that no lane fits in", sleeper, { heapBytes: 8192 }, "PAMIR_MEMORY", "heapBytes is 8192"],
    ["a heap beyond 4 GiB", sleeper, { heapBytes: 2 ** 33 }, "PAMIR_INVAL", "heapBytes is 8589934592"],
    ["a map beyond 4 GiB", sleeper, { heapBytes: 4 * 1024 ** 3 - 65536 }, "PAMIR_MEMORY", "heapBytes 4294901760"],
    ["an unknown kernel", sleeper, { kernel: "fpga" }, "PAMIR_INVAL", '"fpga"'],
    ["too few kernels", sleeper, { tasks: 3, kernel: ["ts"] }, "PAMIR_INVAL", "1 entries for 3 tasks"],
    ["workerData that is no object", sleeper, { workerOptions: { workerData: 5 } }, "PAMIR_INVAL", "workerData is 5"],
    ["eval", sleeper, { workerOptions: { eval: true } }, "PAMIR_INVAL", "eval"],
    ["args that can't be cloned", sleeper, { args: noop }, "PAMIR_INVAL", "could not be cloned"],
  ];
  it.each(REFUSED)("launch with %s", async (_, entry, options, code, text) => {
    const rejection = await rejectionOf(launch(entry as URL, options as LaunchOptions));
    expect(rejection.code).toBe(code);
    expect(rejection.text).toContain(text);
  });

  it.each(["wasm", "ts"] as const)("memory that the host refuses, kernel %s", async (kernel) => {
    const { Memory } = WebAssembly;
    const Shared = globalThis.SharedArrayBuffer;
    const refuse = class {
      constructor() {
        throw new RangeError("could not allocate memory");
      }
    };
    try {
      if (kernel === "wasm") WebAssembly.Memory = refuse as never;
      else globalThis.SharedArrayBuffer = refuse as never;
      const { code, text, cause } = await rejectionOf(launch(sleeper, { tasks: 1, kernel, heapBytes: 2 ** 20 }));
      expect([code, (cause as Error).message]).toEqual(["PAMIR_MEMORY", "could not allocate memory"]);
      expect(text).toMatch(/refuses \d+ bytes/);
    } finally {
      WebAssembly.Memory = Memory;
      globalThis.SharedArrayBuffer = Shared;
    }
  });

  it("work that throws where nobody catches: the task ends with the error", async () => {
    const job = await launch(new URL("tasks/throwing.js", import.meta.url), {
      tasks: 1,
      heapBytes: 2 ** 20,
      onError: "ignore",
    });
    expect(await job.exited).toMatchObject([
      { task: 0, code: 1, cause: "error", error: "SyntaxError: thrown in posted work" },
    ]);
  });

  describe("two versions of pamir in one job", () => {
    let folder: string;
    const layout = info().layout;
    beforeAll(() => {
      folder = mkdtempSync(join(inject("folder"), "test-"));
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    beforeEach(() => writeFileSync(join(folder, "package.json"), '{ "type": "module" }'));

    it.each([1, 0])("whose layouts differ by %d", async (difference) => {
      const library = dirname(createRequire(import.meta.url).resolve("pamir"));
      const scripts = readdirSync(library).filter((name) => /^(index|protocol|chunk-\w+)\.js$/.test(name));
      const sources = scripts.map((name) => readFileSync(join(library, name), "utf8"));
      expect(sources.join()).toContain(String(layout));
      for (const [i, name] of scripts.entries()) {
        writeFileSync(join(folder, name), sources[i]?.replaceAll(String(layout), String(layout + difference)) ?? "");
      }
      const task = join(folder, "task.js");
      writeFileSync(task, 'import { attach } from "./index.js";\n(await attach()).close();\n');
      const job = await launch(pathToFileURL(task), { tasks: 1, heapBytes: 2 ** 20, onError: "ignore" });
      const [exit] = await job.exited;
      if (difference === 0) expect([exit?.code, exit?.error]).toEqual([0, undefined]);
      else {
        expect(exit).toMatchObject({ code: 1, cause: "error", errorCode: "PAMIR_VERSION" });
        expect(exit?.error).toContain(`layout ${layout})`);
        expect(exit?.error).toContain(`layout ${layout + difference})`);
      }
    });
  });

  it("errors and results have texts", () => {
    expect([SUCCESS, SHUTDOWN, INTERRUPTED, 77].map(errorText)).toEqual([
      "success",
      "the other side has ended",
      "interrupted",
      "unknown result 77",
    ]);
    expect(new PamiError("PAMIR_INVAL", "text")).toMatchObject({
      name: "PamiError",
      code: "PAMIR_INVAL",
      message: "text",
    });
  });
});

describe("client", () => {
  it("answers every attribute, and tells the time", () =>
    withJob(variant, { contexts: 3, heapBytes: 2 ** 24, module: "sleeper.js" }, ({ client }) => {
      expect(client.query("CLIENT_NUM_TASKS")).toBe(2);
      expect(client.query("CLIENT_TASK_ID")).toBe(0);
      expect(client.query("CLIENT_NUM_LOCAL_TASKS")).toBe(2);
      expect(client.query("CLIENT_LOCAL_TASKS")).toEqual([0, 1]);
      expect(client.query("CLIENT_NUM_CONTEXTS")).toBe(3);
      expect(client.query("CLIENT_CONST_CONTEXTS")).toBe(true);
      expect(client.query("CLIENT_HWTHREADS_AVAILABLE")).toBeGreaterThan(0);
      expect(client.query("CLIENT_MEMREGION_SIZE")).toBe(8);
      expect(client.query("CLIENT_MEM_SIZE")).toBe(16);
      expect(client.query("CLIENT_PROCESSOR_NAME")).not.toBe("");
      expect(client.query("CLIENT_WTICK")).toBe(1e-6);
      expect(client.query("CONTEXT_DISPATCH_ID_MAX")).toBe(4095);
      expect(client.query("DISPATCH_RECV_IMMEDIATE_MAX")).toBe(69_632);
      expect(client.query("DISPATCH_SEND_IMMEDIATE_MAX")).toBe(4096);
      const [first, second] = [client.now(), client.now()];
      expect(second).toBeGreaterThanOrEqual(first);
    }));
});

describe("an entry from which no task starts, with what to write instead", () => {
  const folder = new URL("tasks/", import.meta.url);
  const ENTRIES: readonly (readonly [string, unknown, string | RegExp])[] = [
    [
      "a path",
      "/app/task.js",
      'entry is "/app/task.js", a path: use pathToFileURL() of "node:url", in CommonJS pathToFileURL(__filename)',
    ],
    ["a path of Windows", "C:\\app\\task.js", /^entry is "C:.*, a path: use pathToFileURL\(\)/],
    ["one with slashes", "c:/app/task.js", /^entry is "c:\/app\/task.js", a path: use pathToFileURL\(\)/],
    ["a network path", "\\\\server\\task.js", /, a path: use pathToFileURL\(\)/],
    [
      "a relative path",
      "./task.js",
      'entry is "./task.js", not a URL: use new URL("./task.js", import.meta.url), in CommonJS pathToFileURL(require.resolve("./task.js"))',
    ],
    ["one without a dot", "lib/task.js", /use new URL\("\.\/lib\/task.js", import.meta.url\)/],
    ["import.meta.url of CommonJS", undefined, /^entry is undefined, not a URL: .*in CommonJS/],
    ["null", null, /^entry is null, not a URL/],
    ["import.meta", import.meta, /^entry is object, not a URL/i],
    ["a number", 5, /^entry is 5, not a URL/],
    [
      "https:",
      "https://example.org/task.js",
      'entry is "https://example.org/task.js": Node starts no worker from https:. Save the task module as a file, and use its URL',
    ],
    ["http:", new URL("http://localhost/task.js"), /Node starts no worker from http:/],
    ["blob:", "blob:nodedata:5f0", /Node starts no worker from blob:/],
    [
      "node:",
      "node:fs",
      'entry is "node:fs": a module of Node itself. Save the task module as a file, and use its URL',
    ],
    ["another scheme", "npm:pamir", /Node starts no worker from npm:/],
    ["a folder", folder, /^the task module .*tasks\/ is a directory: name a file in it$/],
    ["a device", "file:///dev/null", "the task module /dev/null is no file"],
    [
      "a file of another host",
      "file://example/task.js",
      /^the task module file:\/\/example\/task.js can't be read: File URL host/,
    ],
    [
      "a slash within a name",
      "file:///a%2Fb.js",
      /^the task module file:.* can't be read: File URL path must not include/,
    ],
    [
      "JSON",
      new URL("../../package.json", import.meta.url),
      /package.json is no program: a .json file, not a module in JavaScript$/,
    ],
  ];

  it.each(ENTRIES)("%s", async (_, entry, message) => {
    const expected = {
      code: "PAMIR_ENTRY",
      message: typeof message === "string" ? message : expect.stringMatching(message),
    };
    await expect(launch(entry as never, { tasks: 1 })).rejects.toMatchObject(expected);
  });

  it("spawn() says the same, and adopt() names what it takes", async () => {
    const job = await launch(null, { tasks: 1, maxTasks: 3, join: true, heapBytes: 2 ** 20 });
    for (const [, entry, message] of ENTRIES) {
      if (entry === undefined || entry === null) continue;
      const { code, text } = thrownBy(() => job.spawn({ entry: entry as never }));
      expect(code).toBe("PAMIR_ENTRY");
      expect(text).toMatch(message);
    }
    for (const target of ["/app/task.js", new URL("task.js", import.meta.url), undefined]) {
      const { code, text } = thrownBy(() => job.adopt(target as never));
      expect(code).toBe("PAMIR_INVAL");
      expect(text).toMatch(
        /^target of adopt\(\) is .*, not a Worker or MessagePort: spawn\(\) takes the URL of a module$/,
      );
    }
    await job.terminate();
  });

  it("a module in a data: URL starts", async () => {
    const job = await launch("data:text/javascript,process.exitCode=7", { tasks: 1, onError: "ignore" });
    expect((await job.exited).map(({ code }) => code)).toEqual([7]);
  });
});

it("an entry that is a function, in Node", async () => {
  await expect(launch((() => {}) as never, { tasks: 1 })).rejects.toMatchObject({
    code: "PAMIR_ENTRY",
    message: "entry is a function: in Node it is the URL of the task module",
  });
});

describe("memory that the host refuses", () => {
  const { Memory } = WebAssembly;
  /** A host that gives `most` bytes. */
  function refuseAbove(most: number): string[] {
    const told: string[] = [];
    vi.spyOn(console, "warn").mockImplementation((text: string) => void told.push(text));
    vi.spyOn(WebAssembly, "Memory").mockImplementation(function (this: unknown, limits: WebAssembly.MemoryDescriptor) {
      if (limits.initial * 65536 > most) throw new RangeError("could not allocate memory");
      return new Memory(limits);
    });
    return told;
  }
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it("the default heap is halved until it is given, and that is said", async () => {
    const told = refuseAbove(100 * 1024 ** 2);
    const job = await launch(sleeper, { tasks: 1, join: true });
    expect(job.dump().heap.bytes).toBe(64 * 1024 ** 2);
    expect(told).toEqual(["pamir: this host refuses a heap of 268435456 bytes; this job's has 67108864"]);
    await job.terminate();
  });

  it("not for ever, and not a heap that was asked for", async () => {
    const told = refuseAbove(10 * 1024 ** 2);
    const refused = { code: "PAMIR_MEMORY", message: expect.stringMatching(/host refuses \d+ bytes of shared memory/) };
    await expect(launch(sleeper, { tasks: 1, join: true })).rejects.toMatchObject(refused);
    await expect(launch(sleeper, { tasks: 1, heapBytes: 2 ** 26 })).rejects.toMatchObject(refused);
    expect(told).toEqual([]);
  });
});
