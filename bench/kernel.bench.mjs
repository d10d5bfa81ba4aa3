// The kernels one by one, WebAssembly against TypeScript, and what things weigh. Called by run.mjs; by itself:
// node bench/kernel.bench.mjs [--quick]
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { Bench } from "tinybench";

/** @typedef {typeof import("../src/kernel/kernel.js") & typeof import("../src/kernel/wasm.js") & typeof import("../src/kernel/twin/index.js") & typeof import("../src/memory/map.js") & { PAGE_SIZE: number }} Internals */
/** @typedef {"wasm" | "ts"} KernelName */

const root = fileURLToPath(new URL("..", import.meta.url));
/** Calls that are timed together: one takes less than reading the clock. */
const CALLS = 1000;
const LANE_BYTES = 65536;
const RECORD_MAX = 8192;

/**
 * Bundles a piece of source, since only "pamir" is public.
 * @param {string} contents
 */
async function bundle(contents, minify = false) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    minify,
    logLevel: "error",
  });
  return /** @type {import("esbuild").OutputFile} */ (outputFiles[0]).contents;
}

/** @returns {Promise<Internals>} */
async function internals() {
  const folder = mkdtempSync(join(tmpdir(), "pamir-bench-"));
  const file = join(folder, "internals.mjs");
  const modules = ["kernel/kernel", "kernel/wasm", "kernel/twin/index", "memory/map"];
  const layout = `export { PAGE_SIZE } from "./assembly/layout.ts";`;
  writeFileSync(
    file,
    await bundle(`${layout}\n${modules.map((name) => `export * from "./src/${name}.ts";`).join("\n")}`),
  );
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * A job's memory with two tasks, formatted, and a kernel over it.
 * @param {Internals} modules
 * @param {KernelName} name
 */
function makeJob(modules, name) {
  const map = modules.memoryMap({ tasks: 2, contexts: 1, laneBytes: LANE_BYTES, heapBytes: 4 * 1024 ** 2 });
  const pages = Math.ceil(map.end / 65536);
  const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const memory = modules.memoryOf(/** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (shared.buffer)));
  const kernel = name === "wasm" ? modules.wasmKernel(shared) : modules.twinKernel(memory);
  modules.formatMemory(map, memory, kernel, 2);
  return { map, memory, kernel, job: map.job };
}

/**
 * Each suite: what is done CALLS times in a row. One thread plays both sides.
 * @param {Internals} modules
 * @param {KernelName} name
 * @returns {Record<string, () => void>}
 */
function suites(modules, name) {
  const { map, kernel, job } = makeJob(modules, name);
  const context = modules.contextBlock(map, 1);
  const idle = modules.contextBlock(map, 0);
  const lane = kernel.laneOpen(job, 0, 1, LANE_BYTES, RECORD_MAX);
  const slot = modules.taskSlot(map, 1);
  const drain = () => {
    while ((kernel.advance(context, 1) & 0xffff) !== 0) kernel.release(context);
  };
  const repeat = (/** @type {() => void} */ call) => () => {
    for (let i = 0; i < CALLS; i++) call();
  };
  const send = () => {
    if (kernel.laneSendWords(lane, 8, 1, 1, 2) === 0) throw new Error("the lane is full");
  };
  const place = (/** @type {number} */ bytes) => () => {
    if (kernel.laneReserve(lane, bytes) === 0) throw new Error("the lane is full");
    kernel.laneCommit(lane, 0, bytes, 1);
    drain();
  };
  return {
    "laneSendWords 8 B, advance, release: in batches of 50": () => {
      for (let batch = 0; batch < CALLS / 50; batch++) {
        for (let i = 0; i < 50; i++) send();
        drain();
      }
    },
    "laneSendWords 8 B, advance, release: one by one": repeat(() => {
      send();
      drain();
    }),
    "laneReserve, commit, advance, release 64 B": repeat(place(64)),
    "laneReserve, commit, advance, release 1 KiB": repeat(place(1024)),
    "laneReserve, commit, advance, release 4 KiB": repeat(place(4096)),
    "advance, nothing to do": repeat(() => kernel.advance(idle, 1)),
    "advance, a silent lane": repeat(() => kernel.advance(context, 1)),
    peek: repeat(() => kernel.peek(context)),
    "heapAllocate, heapFree of 4 pages": repeat(() => kernel.heapFree(job, kernel.heapAllocate(job, 4, 0))),
    "ring, nobody asleep": repeat(() => kernel.ring(slot)),
    "bellArm, bellDisarm": repeat(() => {
      kernel.bellArm(slot);
      kernel.bellDisarm(slot);
    }),
  };
}

/**
 * ns per call of each kernel, in both.
 * @param {Internals} modules
 * @param {boolean} quick
 */
async function compareKernels(modules, quick) {
  const bench = new Bench(
    quick ? { time: 1, iterations: 2, warmupTime: 1, warmupIterations: 1 } : { time: 300, warmupTime: 100 },
  );
  for (const name of /** @type {KernelName[]} */ (["wasm", "ts"])) {
    for (const [what, run] of Object.entries(suites(modules, name))) bench.add(`${name} ${what}`, run);
  }
  await bench.run();
  const nanoseconds = (/** @type {KernelName} */ name, /** @type {string} */ what) => {
    const result = bench.getTask(`${name} ${what}`)?.result;
    if (result === undefined || !("latency" in result)) throw new Error(`${name} ${what} failed`, { cause: result });
    return (result.latency.p50 * 1e6) / CALLS;
  };
  return Object.keys(suites(modules, "ts")).map((what) => {
    const wasm = nanoseconds("wasm", what);
    const ts = nanoseconds("ts", what);
    return { what, wasm_ns: rounded(wasm), ts_ns: rounded(ts), ts_over_wasm: rounded(ts / wasm) };
  });
}

/** @param {number} value */
function rounded(value) {
  return Number(value.toPrecision(4));
}

/** Bytes of JavaScript's own heap that one more context takes. */
async function contextHeap() {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const { launch } = await import("pamir");
  const entry = new URL("data:text/javascript,");
  const job = await launch(entry, { tasks: 1, join: true, contexts: 256, heapBytes: 4 * 1024 ** 2 });
  const used = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  for (let i = 0; i < 56; i++) job.client.createContext();
  const before = used();
  for (let i = 0; i < 200; i++) job.client.createContext();
  const after = used();
  await job.terminate();
  return Math.round((after - before) / 200);
}

/**
 * What things weigh, in bytes; with the goals.
 * @param {Internals} modules
 */
async function weigh(modules) {
  const { map, kernel, job } = makeJob(modules, "wasm");
  const default_ = modules.memoryMap({ tasks: 2, contexts: 1, laneBytes: 16384, heapBytes: 0 });
  const free = kernel.heapFreePages(job);
  const { info } = await import("pamir");
  kernel.laneOpen(job, 0, 1, 16384, info().limits.sendImmediateBytes + 16);
  const lane = (free - kernel.heapFreePages(job)) * modules.PAGE_SIZE;
  const source = await bundle(`import * as pamir from "pamir"; globalThis.pamir = pamir;`, true);
  const heap = await contextHeap().catch(() => null);
  return [
    { what: "a context, shared memory (2 endpoints)", bytes: default_.contextSize, goal: 262144 },
    { what: "a context, JavaScript heap", bytes: heap, goal: null },
    { what: "a lane", bytes: lane, goal: null },
    { what: "a talking pair: a lane each way", bytes: 2 * lane, goal: 65536 },
    { what: "a task's slot", bytes: modules.taskSlot(map, 1) - modules.taskSlot(map, 0), goal: null },
    { what: `import "pamir", minified and gzipped`, bytes: gzipSync(source, { level: 9 }).length, goal: 35000 },
    { what: "pamir.wasm", bytes: modules.wasmBytes(), goal: 12000 },
  ].map((row) => ({ ...row, met: row.goal === null || row.bytes === null ? null : row.bytes <= row.goal }));
}

/** All of it: `{ kernels, sizes }`. */
export async function benchKernels({ quick = false } = {}) {
  const modules = await internals();
  return { kernels: await compareKernels(modules, quick), sizes: await weigh(modules) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { kernels, sizes } = await benchKernels({ quick: process.argv.includes("--quick") });
  console.table(kernels);
  console.table(sizes);
}
