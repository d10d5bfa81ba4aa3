// The kernels one by one, WebAssembly against TypeScript, and what things weigh. Called by run.mjs; by itself:
// node bench/kernel.bench.mjs [--quick]
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { instantiate } from "@assemblyscript/loader";
import asc from "assemblyscript/asc";
import { build } from "esbuild";
import { Bench } from "tinybench";
import { BUNDLE_MAX, WASM_MAX } from "../scripts/bounds.mjs";
import { bundleSizes } from "../scripts/bundle.mjs";

/** @typedef {typeof import("../assembly/layout.js")} Layout */
/** @typedef {Layout & typeof import("../src/kernel/kernel.js") & typeof import("../src/kernel/wasm.js") & typeof import("../src/kernel/twin/index.js") & typeof import("../src/memory/map.js") & typeof import("../src/memory/format.js") & typeof import("../src/generated/version.js")} Internals */
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
async function bundle(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    logLevel: "error",
  });
  return /** @type {import("esbuild").OutputFile} */ (outputFiles[0]).contents;
}

/** @returns {Promise<Internals>} */
async function internals() {
  const folder = mkdtempSync(join(tmpdir(), "pamir-bench-"));
  const file = join(folder, "internals.mjs");
  const modules = [
    "kernel/kernel",
    "kernel/wasm",
    "kernel/twin/index",
    "memory/map",
    "memory/format",
    "generated/version",
  ];
  const layout = `export * from "./assembly/layout.ts";`;
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
  const kernel = name === "wasm" ? modules.wasmKernel(shared) : modules.twinPacketKernel(memory);
  modules.formatMemory(map, memory, 2);
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

/** Slots of the large FIFO of the scan, and how many of them wait for their bit. */
const SCAN_SLOTS = 2 ** 20;
const SCAN_PENDING = 1_000_000;
/** Places of the one bit that is set, far from each other. */
const SCAN_PLACES = 64;
const SCAN_FEW = "completionTake, one among 10";
const SCAN_MANY = "completionTake, one among 1,000,000";

/**
 * Finds and takes the one completion whose bit is set, among 10 and among 10^6 that are pending: the oldest, as on shared
 * memory, where an engine works in order, or anywhere, behind others that have no callback. The bit is set by plain
 * stores, as many for the one as for the other; between two calls the FIFO is put back.
 * @param {Internals} modules
 * @param {KernelName} name
 * @returns {Record<string, () => void>}
 */
function scans(modules, name) {
  const suite = (/** @type {number} */ slots, /** @type {number} */ pending, inOrder = true) => {
    const fifo = 65536;
    const pages = Math.ceil((fifo + modules.INJECTION_MASK_OFFSET + slots * (modules.DESCRIPTOR_SIZE + 1)) / 65536);
    const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const memory = modules.memoryOf(/** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (shared.buffer)));
    const { words } = memory;
    const kernel = name === "wasm" ? modules.wasmKernel(shared) : modules.twinPacketKernel(memory);
    modules.formatInjection(memory, fifo, slots);
    words[(fifo + modules.INJECTION_STAGED_OFFSET) >>> 2] = modules.DESCRIPTOR_FENCE;
    for (let i = 0; i < pending; i++) if (kernel.inject(fifo, 0) !== i) throw new Error("the FIFO is full");
    // First word of each level, and a word that nobody reads for the levels that this FIFO does not have.
    const levels = [(fifo + modules.INJECTION_MASK_OFFSET) >>> 2];
    for (let count = slots >>> 5; count > modules.MASK_TOP_WORDS; count >>>= 5) {
      levels.push(/** @type {number} */ (levels.at(-1)) + count);
    }
    const used = levels.length;
    const oldest = (fifo + modules.INJECTION_OLDEST_OFFSET) >>> 2;
    const left = (fifo + modules.INJECTION_PENDING_OFFSET) >>> 2;
    let place = 0;
    return () => {
      for (let i = 0; i < CALLS; i++) {
        const slot = inOrder ? place : Math.floor((place * pending) / SCAN_PLACES);
        if (++place === (inOrder ? pending : SCAN_PLACES)) place = 0;
        for (let level = 0, bit = slot; level < 4; level++, bit >>>= 5) {
          const word = level < used ? /** @type {number} */ (levels[level]) + (bit >>> 5) : level;
          words[word] = 1 << (bit & 31);
        }
        if ((kernel.completionTake(fifo) & (SCAN_SLOTS - 1)) !== slot) throw new Error("the wrong completion");
        words[oldest] = inOrder ? place : 0;
        words[left] = pending;
      }
    };
  };
  return {
    [SCAN_FEW]: suite(16, 10),
    [SCAN_MANY]: suite(SCAN_SLOTS, SCAN_PENDING),
    "completionTake, one among 1,000,000, anywhere": suite(SCAN_SLOTS, SCAN_PENDING, false),
  };
}

const QUEUE_WINDOWS = [16, 256, 4096, 65536];
const QUEUE_IN_ORDER = "queueInsert, queueNext, in order, window 16";
/** Order of arrival of the packets of a window: place → packet. */
const ARRIVALS = {
  "in order": (/** @type {number} */ place) => place,
  reversed: (/** @type {number} */ place, /** @type {number} */ window) => window - 1 - place,
  random: (/** @type {number} */ place) => place, // and shuffled
  "one late": (/** @type {number} */ place, /** @type {number} */ window) => (place + 1) % window,
};

/**
 * In the same way each time.
 * @param {Uint32Array} numbers
 */
function shuffle(numbers) {
  let state = 1;
  for (let i = numbers.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    const number = /** @type {number} */ (numbers[i]);
    numbers[i] = /** @type {number} */ (numbers[j]);
    numbers[j] = number;
  }
}

/**
 * A packet inserted into a FIFO message queue, and what is in sequence by then taken; window after window.
 * @param {Internals} modules
 * @param {KernelName} name
 * @returns {Record<string, () => void>}
 */
function queues(modules, name) {
  const queue = 65536;
  const bytes = modules.QUEUE_SLOTS_OFFSET + ((3 * modules.QUEUE_WINDOW_MAX) << modules.QUEUE_ENTRY_SHIFT);
  const suite = (/** @type {number} */ window, /** @type {keyof typeof ARRIVALS} */ kind) => {
    const pages = Math.ceil((queue + bytes) / 65536);
    const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const memory = modules.memoryOf(/** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (shared.buffer)));
    const kernel = name === "wasm" ? modules.wasmKernel(shared) : modules.twinPacketKernel(memory);
    kernel.queueInit(queue, window, 0, false);
    const arrivals = Uint32Array.from({ length: window }, (_, place) => ARRIVALS[kind](place, window));
    if (kind === "random") shuffle(arrivals);
    let first = 0;
    let place = 0;
    return () => {
      for (let i = 0; i < CALLS; i++) {
        const order = (first + /** @type {number} */ (arrivals[place])) >>> 0;
        if (kernel.queueInsert(queue, order, order | 1) !== 0) throw new Error("the packet is refused");
        if (++place === window) {
          place = 0;
          first = (first + window) >>> 0;
        }
        while (kernel.queueNext(queue) !== 0);
      }
    };
  };
  return Object.fromEntries(
    QUEUE_WINDOWS.flatMap((window) =>
      Object.keys(ARRIVALS).map((kind) => [
        `queueInsert, queueNext, ${kind}, window ${window}`,
        suite(window, /** @type {keyof typeof ARRIVALS} */ (kind)),
      ]),
    ),
  );
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
  /** @type {Set<string>} */
  const names = new Set();
  for (const name of /** @type {KernelName[]} */ (["wasm", "ts"])) {
    for (const [what, run] of Object.entries({
      ...suites(modules, name),
      ...scans(modules, name),
      ...queues(modules, name),
    })) {
      names.add(what);
      bench.add(`${name} ${what}`, run);
    }
  }
  await bench.run();
  const nanoseconds = (/** @type {KernelName} */ name, /** @type {string} */ what) => {
    const result = bench.getTask(`${name} ${what}`)?.result;
    if (result === undefined || !("latency" in result)) throw new Error(`${name} ${what} failed`, { cause: result });
    return (result.latency.p50 * 1e6) / CALLS;
  };
  return [...names].map((what) => {
    const wasm = nanoseconds("wasm", what);
    const ts = nanoseconds("ts", what);
    return { what, wasm_ns: rounded(wasm), ts_ns: rounded(ts), ts_over_wasm: rounded(ts / wasm) };
  });
}

const COPY_SIZES = [8, 16, 32, 64, 96, 128, 256, 512, 1024, 4096, 16384, 65536, 1048576];
/** Up to here loads and stores of its own are tried; the engine does so up to SMALL_BYTES in assembly/engine.ts. */
const INLINE_MAX = 128;

/**
 * The ways to copy of copies/index.ts, compiled as the kernels are.
 * @returns {Promise<Record<"memoryCopy" | "inline" | "loop", (to: number, from: number, bytes: number, times: number) => void>>}
 */
async function copies() {
  /** @type {Uint8Array<ArrayBuffer> | undefined} */
  let binary;
  const { error, stderr } = await asc.main(
    [
      ...["bench/copies/index.ts", "--outFile", "copies.wasm", "-O3", "--converge", "--noAssert", "--runtime", "stub"],
      ...["--importMemory", "--noExportMemory", "--sharedMemory", "--initialMemory", "64", "--maximumMemory", "64"],
      ...["--enable", "threads", "--enable", "simd", "--enable", "bulk-memory", "--baseDir", root],
    ],
    {
      writeFile: (_, contents) => {
        if (typeof contents !== "string") binary = Uint8Array.from(contents);
      },
    },
  );
  if (error || binary === undefined) throw new Error(`bench/copies does not compile: ${stderr}`);
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true });
  const { exports } = await instantiate(binary, { env: { memory } });
  return /** @type {any} */ (exports);
}

/**
 * ns a copy, each way, both buffers in the cache; what the engine makes of it stands at SMALL_BYTES.
 * @param {boolean} quick
 */
async function compareCopies(quick) {
  const ways = await copies();
  const [to, from] = [1024 ** 2, 2.5 * 1024 ** 2];
  return COPY_SIZES.map((bytes) => {
    const times = quick ? 2 : Math.max(20, Math.floor(4e6 / (bytes + 40)));
    const time = (/** @type {keyof typeof ways} */ way) => {
      let best = Number.POSITIVE_INFINITY;
      for (let run = 0; run < (quick ? 1 : 15); run++) {
        const start = performance.now();
        ways[way](to, from, bytes, times);
        best = Math.min(best, ((performance.now() - start) * 1e6) / times);
      }
      return rounded(best);
    };
    const inline = bytes <= INLINE_MAX ? time("inline") : null;
    const loop = bytes >= 64 ? time("loop") : null;
    const memoryCopy = time("memoryCopy");
    const least = Math.min(inline ?? memoryCopy, loop ?? memoryCopy, memoryCopy);
    const best = least === inline ? "inline" : least === loop ? "loop" : "memory.copy";
    return { bytes, "inline ns": inline, "loop ns": loop, "memory.copy ns": memoryCopy, best };
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
  const job = await launch(entry, { tasks: 1, join: true, contexts: 127, heapBytes: 4 * 1024 ** 2 });
  const used = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  for (let i = 0; i < 27; i++) job.client.createContext();
  const before = used();
  for (let i = 0; i < 100; i++) job.client.createContext();
  const after = used();
  await job.terminate();
  return Math.round((after - before) / 100);
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
  const heap = await contextHeap().catch(() => null);
  return [
    { what: "a context, shared memory (2 endpoints)", bytes: default_.contextSize, goal: 262144 },
    { what: "a context, JavaScript heap", bytes: heap, goal: null },
    { what: "a lane", bytes: lane, goal: null },
    { what: "a talking pair: a lane each way", bytes: 2 * lane, goal: 65536 },
    { what: "a task's slot", bytes: modules.taskSlot(map, 1) - modules.taskSlot(map, 0), goal: null },
    { what: `import "pamir", minified and gzipped`, bytes: (await bundleSizes()).first, goal: BUNDLE_MAX },
    { what: "pamir.wasm", bytes: modules.WASM_BYTES, goal: WASM_MAX },
  ].map((row) => ({ ...row, met: row.goal === null || row.bytes === null ? null : row.bytes <= row.goal }));
}

/** @param {Awaited<ReturnType<typeof compareKernels>>} kernels */
function kernelRatios(kernels) {
  const time = (/** @type {string} */ name) => kernels.find(({ what }) => what === name)?.wasm_ns ?? Number.NaN;
  const worst = Math.max(...kernels.filter(({ what }) => what.startsWith("queueInsert")).map(({ wasm_ns }) => wasm_ns));
  const ratios = [
    { what: "a completion among 1,000,000 against one among 10", ratio: time(SCAN_MANY) / time(SCAN_FEW), goal: 1.5 },
    {
      what: "a packet in the worst order of arrival and window against in order, window 16",
      ratio: worst / time(QUEUE_IN_ORDER),
      goal: 4,
    },
  ];
  return ratios.map(({ what, ratio, goal }) => ({ what, ratio: rounded(ratio), goal, met: ratio <= goal }));
}

/** All of it: `{ kernels, ratios, copies, sizes }`. */
export async function benchKernels({ quick = false } = {}) {
  const modules = await internals();
  const kernels = await compareKernels(modules, quick);
  return { kernels, ratios: kernelRatios(kernels), copies: await compareCopies(quick), sizes: await weigh(modules) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { kernels, ratios, copies, sizes } = await benchKernels({ quick: process.argv.includes("--quick") });
  console.table(kernels);
  console.table(ratios);
  console.table(copies);
  console.table(sizes);
}
