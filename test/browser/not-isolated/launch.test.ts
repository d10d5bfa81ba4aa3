// A page that is not cross-origin isolated: tasks talk by messages, as api.test.ts shows; here, what is different then.
import { info, type Job, launch, SUCCESS } from "pamir";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { laterSuite } from "../../conformance/later.suite.js";
import { seeingSuite } from "../../conformance/seeing.suite.js";
import { ANSWER, ECHO, FORWARD, SIZE } from "../../conformance/tasks/ids.js";

const ENTRY = new URL("../isolated/tasks/peer.js", import.meta.url);
const PEER = new URL("../../conformance/tasks/peer.js", import.meta.url);
const DATA = 1;

it("info() says where one stands, and why", () => {
  expect(crossOriginIsolated).toBe(false);
  expect(info()).toMatchObject({ mode: "messages", isolated: false, kernel: "wasm" });
  expect(info().why).toMatch(/not cross-origin isolated.*Cross-Origin-Opener-Policy: same-origin/);
});

it("advanceUntil() names the headers that are missing", async () => {
  const job = await launch(ENTRY, { tasks: 1, join: true, heapBytes: 16 * 1024 ** 2 });
  expect(() => job.client.createContext().advanceUntil(() => true)).toThrowError(
    expect.objectContaining({
      code: "PAMIR_NOT_ISOLATED",
      message: expect.stringMatching(/Cross-Origin-Embedder-Policy: require-corp\. Await progress\(\)/),
    }),
  );
  await job.terminate();
});

it("a blocking form of an operation begins nothing, and names the call", async () => {
  const job = await launch(ENTRY, { tasks: 1, join: true, heapBytes: 16 * 1024 ** 2 });
  const world = await job.client.world();
  const error = { code: "PAMIR_NOT_ISOLATED", message: expect.stringMatching(/^barrierSync\(\).*Await barrier\(\)/s) };
  expect(() => world.barrierSync()).toThrowError(expect.objectContaining(error));
  await world.barrier();
  await job.terminate();
});

it("a task of a job whose launcher has not joined", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  const job = await launch(ENTRY, { tasks: 2, heapBytes: 16 * 1024 ** 2 });
  setTimeout(() => job.interrupt(1), 100);
  const exits = await job.exited;
  const failed = expect.stringMatching(/^pamir: task \d failed:\nPamiError: advanceUntil\(\).*\n.*peer\.js/s);
  expect(said.mock.calls.flat()).toEqual([failed, failed]);
  said.mockRestore();
  expect(exits.map(({ cause, errorCode }) => [cause, errorCode])).toEqual([
    ["error", "PAMIR_NOT_ISOLATED"],
    ["error", "PAMIR_NOT_ISOLATED"],
  ]);
});

it("there is no engine thread, whoever asks for one, and nothing lacks", async () => {
  const warn = vi.spyOn(console, "warn");
  const job = await launch(ENTRY, { tasks: 2, join: true, heapBytes: 16 * 1024 ** 2, engine: "thread" });
  const { client } = job;
  const context = client.createContext();
  const [from, into] = [client.createRegion(2 ** 20), client.createRegion(2 ** 20)];
  from.bytes.fill(7);
  into.bytes.fill(0);
  context.put({ to: context.endpoint, local: from, remote: into.handle });
  await context.flush({ timeout: 60_000 });
  expect(into.bytes.every((byte) => byte === 7)).toBe(true);
  expect(job.engine).toBe("inline");
  await job.terminate();
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});

describe("a job with more than 1,024 endpoints", () => {
  const TIMEOUT = { timeout: 60_000 };

  it("has slots for tasks that talk, in turn: each task answers, also to others", async () => {
    const tasks = 11;
    // Eight slots a node, one of them its own.
    const job = await launch(PEER, {
      tasks,
      contexts: 127,
      join: true,
      kernel: "ts",
      args: {},
      heapBytes: 16 * 1024 ** 2,
    });
    const { client } = job;
    const context = client.createContext();
    const came: number[] = [];
    context.dispatch(ANSWER, ({ payload }) => void came.push(new Int32Array(payload.slice().buffer)[0] as number));
    for (let round = 0; round < 2; round++) {
      for (let task = 1; task < tasks; task++) {
        expect([...(await context.call(client.endpoint(task), SIZE, null, TIMEOUT))]).toEqual([task, tasks]);
      }
    }
    for (let task = 1; task < tasks; task++) {
      const header = Int32Array.of((task % (tasks - 1)) + 1);
      const to = client.endpoint(task);
      while (context.sendImmediate(to, FORWARD, header, Int32Array.of(task), false) !== SUCCESS)
        await context.whenRoom(to, 64, TIMEOUT);
    }
    while (came.length < tasks - 1) await context.progress(TIMEOUT);
    expect(came.sort((a, b) => a - b)).toEqual(Array.from({ length: tasks - 1 }, (_, i) => i + 1));
    await job.terminate();
  });

  it("gets tasks up to maxTasks", async () => {
    const given = { tasks: 1, maxTasks: 10, contexts: 127, join: true, args: {}, heapBytes: 16 * 1024 ** 2 } as const;
    const job = await launch(PEER, given);
    const { client } = job;
    const context = client.createContext();
    for (let task = 1; task < 10; task++) {
      expect(job.spawn({ kernel: "ts" })).toBe(task);
      expect([...(await context.call(client.endpoint(task), SIZE, null, TIMEOUT))]).toEqual([task, task + 1]);
    }
    expect(() => job.spawn()).toThrowError(
      expect.objectContaining({ code: "PAMIR_INVAL", message: expect.stringMatching(/the job has had 10 tasks/) }),
    );
    expect((await job.dumpAll(TIMEOUT)).map(({ state }) => state)).toEqual(Array(10).fill("answered"));
    expect((await job.terminate(9)).cause).toBe("terminated");
    await context.whenEnded(client.endpoint(9), TIMEOUT);
    await job.terminate();
  });

  it("is still refused beyond 1,024 tasks", async () => {
    const refused = { code: "PAMIR_INVAL", message: expect.stringMatching(/maxTasks is 1025.*1024/) };
    await expect(launch(PEER, { tasks: 1, maxTasks: 1025, join: true })).rejects.toMatchObject(refused);
  });
});

laterSuite("messages");
seeingSuite("messages");

// Chromium gives all threads of a page 124 of them, however small.
describe("a host that gives no more WebAssembly.Memory", () => {
  const hoard = (all: WebAssembly.Memory[]): string => {
    try {
      for (;;) all.push(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }));
    } catch (error) {
      return (error as Error).message;
    }
  };
  let hoarder: Worker;
  const own: WebAssembly.Memory[] = [];
  beforeAll(async () => {
    // Chromium lets a terminated worker go on for 2 s, longer on a busy machine: the hoarder takes what becomes free then.
    // It answers once nothing has become free in 150 rounds, which are 3 s at least.
    const code = `const all = [];
      let quiet = 0;
      setInterval(() => {
        const before = all.length;
        const told = (${hoard})(all);
        quiet = all.length > before ? 0 : quiet + 1;
        if (quiet === 150) postMessage(told);
      }, 20);`;
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    hoarder = new Worker(url);
    const told = await new Promise((resolve) => {
      hoarder.onmessage = ({ data }) => resolve(data);
    });
    URL.revokeObjectURL(url);
    expect(told).toMatch(/allocate memory/);
  });
  // What other tests have left on this page is collected by that, and had.
  beforeEach(() => void hoard(own));
  // launch() loads code before it makes a memory, and a worker of an earlier test may end meanwhile.
  let hoarding: ReturnType<typeof setInterval>;
  beforeEach(() => {
    hoarding = setInterval(() => void hoard(own), 1);
  });
  afterEach(() => clearInterval(hoarding));
  afterAll(() => {
    hoarder.terminate();
    own.length = 0;
  });

  it("each task runs the ts kernels, and says so", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    let job = await launch(PEER, { tasks: 3, join: true, args: {} });
    // A launch may find memory that another test has left, and that was collected just then.
    for (let tries = 0; tries < 5 && job.client.kernel !== "ts"; tries++) {
      await job.terminate();
      hoard(own);
      job = await launch(PEER, { tasks: 3, join: true, args: {} });
    }
    const { client } = job;
    expect(client.kernel).toBe("ts");
    const context = client.createContext();
    const answers: number[] = [];
    context.dispatch(ANSWER, ({ header }) => void answers.push(header[0] as number));
    for (const task of [1, 2]) context.sendImmediate(client.endpoint(task), ECHO, Int32Array.of(task));
    while (answers.length < 2) await context.progress({ timeout: 60_000 });
    expect(answers.sort()).toEqual([1, 2]);
    await job.terminate();
    expect(warn.mock.calls).toEqual([
      ["pamir: this host refuses another WebAssembly.Memory; this task runs the ts kernels"],
    ]);
    warn.mockRestore();
  });

  it("where wasm was asked for, that is an error", async () => {
    let refused: unknown;
    // A launch may find memory that another test has left, too.
    for (let tries = 0; tries < 5 && refused === undefined; tries++) {
      const launched = await launch(PEER, { tasks: 2, join: true, kernel: "wasm", args: {} }).catch((error) => {
        refused = error;
      });
      await launched?.terminate();
      hoard(own);
    }
    expect(refused).toMatchObject({
      code: "PAMIR_MEMORY",
      message: expect.stringMatching(/refuses \d+ bytes.*: choose a smaller heapBytes, or kernel: "ts"$/),
    });
    let exits: unknown;
    // A worker may find memory that another test's worker has left just then, and runs.
    for (let tries = 0; tries < 5 && exits === undefined; tries++) {
      const job = await launch(PEER, { tasks: 2, join: true, kernel: ["ts", "wasm"], args: {} });
      const runs = job.client
        .createContext()
        .call(job.client.endpoint(1), SIZE)
        .then(() => undefined);
      exits = await Promise.race([job.exited, runs.catch(() => job.exited)]);
      await job.terminate();
    }
    expect(exits).toMatchObject([{ task: 1, cause: "error", errorCode: "PAMIR_MEMORY" }]);
  });
});

describe.each(["wasm", "ts"] as const)("one task, %s", (kernel) => {
  const alone = async (body: (job: Job) => Promise<void>): Promise<void> => {
    const job = await launch(ENTRY, { tasks: 1, join: true, kernel, heapBytes: 16 * 1024 ** 2 });
    try {
      await body(job);
    } finally {
      expect(await job.terminate()).toEqual([]);
    }
  };

  it("talks to itself, in messages and one-sidedly", () =>
    alone(async ({ client }) => {
      const context = client.createContext();
      const heard: number[] = [];
      context.dispatch(DATA, (message) => {
        heard.push(message.getInt32(0));
      });
      for (let i = 0; i < 100; i++) {
        expect(context.sendImmediate(context.endpoint, DATA, null, new Int32Array([i]))).toBe(SUCCESS);
        while (heard.length <= i) await context.progress({ timeout: 60_000 });
      }
      expect(heard).toEqual(Array.from({ length: 100 }, (_, i) => i));
      const [from, into] = [client.createRegion(1000), client.createRegion(1000)];
      from.bytes.fill(3);
      context.put({ to: context.endpoint, local: from, remote: into.handle });
      await context.flush({ timeout: 60_000 });
      expect(into.bytes.every((byte) => byte === 3)).toBe(true);
    }));

  it("waits without blocking the page", () =>
    alone(async ({ client }) => {
      const context = client.createContext();
      await expect(context.progress({ timeout: 20 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
      let posted = false;
      setTimeout(() => {
        context.post(() => {
          posted = true;
          return SUCCESS;
        });
      }, 5);
      while (!posted) await context.progress({ timeout: 60_000 });
    }));
});
