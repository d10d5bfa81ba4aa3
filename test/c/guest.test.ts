// pamir as a guest in the memory of a program: test/c/guests/ring.c, with threads that pamir starts, and with its own.
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { type Client, type Job, type LaunchOptions, launch, SUCCESS } from "pamir";
import { pamirImports, programRegion } from "pamir/c";
import { describe, expect, it } from "vitest";

const ENTRY = new URL("guest-task.js", import.meta.url);
const module = new WebAssembly.Module(readFileSync(new URL("built/ring.wasm", import.meta.url)));
const BYTES = 8 << 20;
const STACK_BYTES = 65_536;
const TASKS = 3;
const CANARY = 0x77;

/** The program before it has threads: its memory, and a block there that holds what another use has left. */
class Program {
  readonly memory = new WebAssembly.Memory({ initial: 32, maximum: 4096, shared: true });
  readonly allocate: (bytes: number) => number;
  readonly block: number;
  readonly around: readonly number[];
  readonly stacks: number[];
  readonly results = new Int32Array(new SharedArrayBuffer(4 * TASKS)).fill(-1);

  constructor() {
    const pami = new Proxy({}, { get: (_, name) => () => expect.fail(String(name)) });
    const { exports } = new WebAssembly.Instance(module, { env: { memory: this.memory }, pami });
    this.allocate = exports.allocate as Program["allocate"];
    const before = this.allocate(4096);
    this.block = this.allocate(BYTES);
    this.around = [before, this.allocate(4096)];
    this.fill(this.block, BYTES, 0xa5);
    for (const at of this.around) this.fill(at, 4096, CANARY);
    this.stacks = Array.from({ length: TASKS }, () => this.allocate(STACK_BYTES) + STACK_BYTES);
  }

  fill(at: number, bytes: number, value: number): void {
    new Uint8Array(this.memory.buffer, at, bytes).fill(value);
  }

  options(name: "run" | "outlive", members?: number): LaunchOptions {
    const { memory, block, stacks, results } = this;
    const args = { module, memory, stacks, results, block, bytes: BYTES, name, members };
    return { memory, memoryBase: block, bytes: BYTES, args };
  }

  /** Whether the bytes before and behind the block are what the program has written. */
  get isWhole(): boolean {
    return this.around.every((at) => new Uint8Array(this.memory.buffer, at, 4096).every((byte) => byte === CANARY));
  }
}

const exitsOf = async (job: Job) => (await job.exited).map(({ code }) => code);

describe("a program in whose memory the job lies", () => {
  it.each(["inline", "thread"] as const)(
    "talks by pami.h, and its memory grows meanwhile: engine %s",
    async (engine) => {
      const program = new Program();
      const before = program.memory.buffer.byteLength;
      const job = await launch(ENTRY, { ...program.options("run"), tasks: TASKS, engine });
      expect(await exitsOf(job)).toEqual([0, 0, 0]);
      expect([...program.results]).toEqual([0, 0, 0]);
      expect(program.memory.buffer.byteLength).toBeGreaterThan(before + (9 << 20));
      expect(program.isWhole).toBe(true);
    },
  );

  it("has its own threads adopted, after the memory has grown", async () => {
    const program = new Program();
    const options = { ...program.options("run", TASKS), tasks: 1, maxTasks: TASKS, join: true };
    const job = await launch(null, options);
    const { client } = job;
    // Later than the launch, and before the other tasks: what their views must not reach.
    program.memory.grow(80);
    const workers = Array.from({ length: TASKS - 1 }, () => new Worker(ENTRY, { workerData: { isAdopted: true } }));
    for (const worker of workers) job.adopt(worker);
    const context = client.createContext();
    const world = await client.createGeometry([0, 1, 2], { context });
    const { imports, bind } = await pamirImports(client, { context, world });
    const { exports } = new WebAssembly.Instance(module, { env: { memory: program.memory }, ...imports });
    bind(exports);
    (exports.__stack_pointer as WebAssembly.Global).value = program.stacks[0];
    program.results[0] = (exports.run as (block: number, bytes: number) => number)(program.block, BYTES);
    client.close();
    expect(await exitsOf(job)).toEqual([0, 0]);
    expect([...program.results]).toEqual([0, 0, 0]);
    expect(program.isWhole).toBe(true);
    await Promise.all(workers.map((worker) => worker.terminate()));
  });

  it("hears of a thread that traps, and goes on without it", async () => {
    const program = new Program();
    const job = await launch(ENTRY, { ...program.options("outlive"), tasks: TASKS, onError: "ignore" });
    const exits = await job.exited;
    expect(exits.map(({ code, cause }) => [code, cause])).toEqual([
      [0, "exit"],
      [0, "exit"],
      [1, "error"],
    ]);
    expect(exits[2]?.error).toMatch(/RuntimeError: unreachable/);
    expect([...program.results]).toEqual([0, 0, -1]);
  });

  it("may use the block for another job once the first one is over, and not before", async () => {
    const program = new Program();
    const options = { ...program.options("run"), tasks: 1, join: true };
    const first = await launch(null, options);
    await expect(launch(null, options)).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: expect.stringMatching(/where a job is: its task 0 has not ended/),
    });
    await first.terminate();
    const second = await launch(null, options);
    await second.terminate();
    new Int32Array(program.memory.buffer)[(program.block >>> 2) + 2] ^= 1;
    await expect(launch(null, options)).rejects.toThrow(/another version of pamir has made it/);
    new Int32Array(program.memory.buffer)[program.block >>> 2] = 0;
    await (await launch(null, options)).terminate();
    expect(program.isWhole).toBe(true);
  });

  it("is told how many bytes the block must have", async () => {
    const program = new Program();
    const options = { ...program.options("run"), tasks: 2, join: true };
    const needed = async (given: LaunchOptions): Promise<number> => {
      const error = await launch(ENTRY, { ...given, bytes: 1000 }).catch((error: Error & { code?: string }) => error);
      expect(error).toMatchObject({ code: "PAMIR_MEMORY" });
      return Number(/need (\d+) bytes/.exec((error as Error).message)?.[1]);
    };
    const bytes = await needed(options);
    await expect(launch(ENTRY, { ...options, bytes: bytes - 1 })).rejects.toThrow(`need ${bytes} bytes`);
    const withHeap = { ...options, heapBytes: 1 << 20 };
    expect(await needed(withHeap)).toBeGreaterThan(bytes);
    for (const given of [
      { ...options, bytes },
      { ...withHeap, bytes: await needed(withHeap) },
    ]) {
      const behind = program.block + given.bytes;
      program.fill(behind, 4096, CANARY);
      const job = await launch(null, { ...given, tasks: 1, maxTasks: 2 });
      expect(job.client.query("CLIENT_MEM_SIZE") * 2 ** 20).toBeLessThan(given.bytes);
      await job.terminate();
      const canary = new Uint8Array(program.memory.buffer, behind, 4096);
      expect(canary.every((byte) => byte === CANARY)).toBe(true);
    }
  });
});

describe("regions over arrays of the program", () => {
  const withJob = async (run: (client: Client, program: Program) => unknown): Promise<void> => {
    const program = new Program();
    const job = await launch(null, { ...program.options("run"), tasks: 1, join: true });
    try {
      await run(job.client, program);
    } finally {
      await job.terminate();
    }
  };

  it("are put and got in place, and end by close()", () =>
    withJob((client, program) => {
      const context = client.createContext();
      const at = program.around[1] as number;
      const region = programRegion(client, { at, bytes: 4096 });
      expect([region.length, region.bytes.byteOffset, region.bytes[4095]]).toEqual([4096, at, CANARY]);
      const local = client.createRegion(64);
      local.bytes.fill(9);
      const put = { to: context.endpoint, local, remote: region.handle, remoteOffset: 4000 };
      expect(context.put(put)).toBe(SUCCESS);
      context.advanceUntil(() => context.drained);
      expect([...new Uint8Array(program.memory.buffer, at + 3999, 3)]).toEqual([CANARY, 9, 9]);
      const payload = region.bytes.subarray(8, 16);
      const given = { to: context.endpoint, dispatch: 1, payload, transfer: true as const };
      expect(() => context.send(given)).toThrow(/transfer of a region whose handle was read/);
      const { handle } = region;
      region.close();
      expect(() => context.put(put)).toThrow(expect.objectContaining({ code: "PAMIR_STALE" }));
      // What was closed is no part of the heap, and nothing there is freed for it.
      const before = new Uint8Array(program.memory.buffer).slice();
      context.advance();
      const next = client.createRegion(4096);
      expect(next.handle % 2 ** 20).toBe(handle % 2 ** 20);
      const after = new Uint8Array(program.memory.buffer);
      const half = program.block + BYTES / 2;
      expect(Buffer.compare(before.subarray(half), after.subarray(half))).toBe(0);
    }));

  it.each([
    ["nothing", () => undefined, /bytes of programRegion\(\) are undefined, not an object/],
    ["no number", (): unknown => ({ at: "8", bytes: 8 }), /at is "8", not an integer/],
    ["not aligned", (_, at) => ({ at: at + 4, bytes: 8 }), /not a multiple of 8/],
    ["empty", (_, at) => ({ at, bytes: 0 }), /bytes is 0, not an integer from 1/],
    ["beyond the memory", (program) => ({ at: program.memory.buffer.byteLength - 8, bytes: 9 }), /bytes is 9/],
    ["NULL", () => ({ at: 0, bytes: 8 }), /at is 0/],
    ["into the job", (program) => ({ at: program.block - 8, bytes: 9 }), /reach into the job, which/],
    ["at the job's end", (program) => ({ at: program.block + BYTES - 4096, bytes: 8 }), /reach into the job/],
  ] as readonly (readonly [string, (program: Program, at: number) => unknown, RegExp])[])(
    "are refused: %s",
    (_, of, text) =>
      withJob((client, program) => {
        const place = of(program, program.around[0] as number) as { at: number; bytes: number };
        expect(() => programRegion(client, place)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
        expect(() => programRegion(client, place)).toThrow(text);
      }),
  );
});

describe("what is refused", () => {
  const plain = new WebAssembly.Memory({ initial: 1 });
  const ROWS: readonly (readonly [string, (program: Program) => object, RegExp])[] = [
    [
      "no memory",
      () => ({ memory: new SharedArrayBuffer(1 << 20) }),
      /memory is SharedArrayBuffer.*, not a WebAssembly\.Memory/,
    ],
    ["a memory that is not shared", () => ({ memory: plain }), /memory is not shared: link the program with --shared/],
    ["no base", () => ({ memoryBase: undefined }), /memoryBase is undefined, not an integer/],
    ["a base at NULL", () => ({ memoryBase: 0 }), /memoryBase is 0, not an integer from 128/],
    ["a base that is not aligned", ({ block }) => ({ memoryBase: block + 64 }), /not a multiple of 128/],
    ["a base beyond the memory", () => ({ memoryBase: 2 ** 31 }), /memoryBase is 2147483648, not an integer/],
    ["no bytes", () => ({ bytes: undefined }), /bytes is undefined, not an integer/],
    ["bytes beyond the memory", () => ({ bytes: 2 ** 31 }), /bytes is 2147483648, not an integer from 1/],
    ["bytes without a memory", () => ({ memory: undefined, memoryBase: undefined }), /bytes is 8388608, of no memory/],
    ["processes", () => ({ processes: 1 }), /processes can't share the memory of a program/],
  ];

  it.each(ROWS)("%s", async (_, change, text) => {
    const program = new Program();
    const options = { ...program.options("run"), tasks: 1, ...change(program) };
    const error = await launch(ENTRY, options).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "PAMIR_INVAL", message: expect.stringMatching(text) });
    expect(program.isWhole).toBe(true);
  });

  it("pamirImports() in a job with a memory of its own, and in a task without wasm", async () => {
    const program = new Program();
    const options = { tasks: 1, join: true };
    const rows = [
      [options, /pamirImports\(\) in a job with a memory of its own/],
      [{ ...options, ...program.options("run"), kernel: "ts" as const }, /with the kernels ts: they are to be wasm/],
    ] as const;
    for (const [given, text] of rows) {
      const job = await launch(null, given);
      await expect(pamirImports(job.client)).rejects.toMatchObject({
        code: "PAMIR_INVAL",
        message: expect.stringMatching(text),
      });
      expect(() => job.client.createRegion(4096).close()).not.toThrow();
      await job.terminate();
    }
    const job = await launch(null, options);
    expect(() => programRegion(job.client, { at: 8192, bytes: 8 })).toThrow(
      /programRegion\(\) in a job with a memory of its/,
    );
    await job.terminate();
  });
});
