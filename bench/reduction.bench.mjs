// @ts-check
// The kernels of reductions: wasm against the twin, and against a loop in C at -O3 if gcc is there. Ratios of medians, all
// measured in turn. By itself: node bench/reduction.bench.mjs [--quick]
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** @typedef {typeof import("../src/collective/kernel.js") & typeof import("../src/core/reduction.js") & typeof import("../src/kernel/kernel.js")} Internals */
/** @typedef {import("../src/core/reduction.js").ElementType} ElementType */
/** @typedef {import("../src/core/reduction.js").Operation} Operation */

const root = fileURLToPath(new URL("..", import.meta.url));
const quick = process.argv.includes("--quick");
const ROUNDS = quick ? 1 : 9;
const CALLS = quick ? 20 : 200;
const BYTES_MAX = 1024 ** 2;
const folder = mkdtempSync(join(tmpdir(), "pamir-bench-"));

/** @returns {Promise<Internals>} */
async function internals() {
  const modules = ["collective/kernel", "core/reduction", "kernel/kernel"];
  const { outputFiles } = await build({
    stdin: {
      contents: modules.map((name) => `export * from "./src/${name}.ts";`).join("\n"),
      resolveDir: root,
      loader: "ts",
    },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
  });
  const file = join(folder, "internals.mjs");
  writeFileSync(file, /** @type {import("esbuild").OutputFile} */ (outputFiles[0]).contents);
  return await import(pathToFileURL(file).href);
}

/** The program of loops.c; undefined: there is no gcc. */
function loopsInC() {
  const program = join(folder, "loops");
  try {
    execFileSync("gcc", ["-O3", "-o", program, join(root, "bench/reduction/loops.c")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return program;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return undefined;
    throw error;
  }
}

/** @param {number[]} values */
const median = (values) => /** @type {number} */ (values.toSorted((a, b) => a - b)[values.length >> 1]);

/** Nanoseconds a call. @param {() => void} call */
function timeOf(call) {
  const times = [];
  for (let i = 0; i < CALLS; i++) {
    const start = performance.now();
    call();
    times.push((performance.now() - start) * 1e6);
  }
  return median(times);
}

/** Nanoseconds a call of many that are timed together. @param {() => void} call */
function timeOfMany(call) {
  return (
    timeOf(() => {
      for (let i = 0; i < 1000; i++) call();
    }) / 1000
  );
}

/** @type {readonly { operation: Operation; type: ElementType; bytes: number }[]} */
const ROWS = [
  { operation: "sum", type: "f64", bytes: 8 },
  { operation: "sum", type: "f64", bytes: 4096 },
  { operation: "sum", type: "f64", bytes: BYTES_MAX },
  { operation: "sum", type: "i32", bytes: BYTES_MAX },
  { operation: "min", type: "f32", bytes: BYTES_MAX },
  { operation: "max", type: "i64", bytes: BYTES_MAX },
  { operation: "product", type: "c128", bytes: BYTES_MAX },
  { operation: "minloc", type: "f64_i32", bytes: BYTES_MAX },
];

const { ELEMENT_TYPES, OPERATIONS, memoryOf, twinCollectiveKernel, wasmCollectiveKernel } = await internals();
const program = loopsInC();
const pages = (2 * BYTES_MAX) / 65536 + 1;
const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
const memory = memoryOf(/** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (shared.buffer)), undefined, shared);
const kernels = [wasmCollectiveKernel(shared), twinCollectiveKernel(memory)];
const rows = ROWS.map(({ operation, type, bytes }) => {
  const { number, bytes: size } = ELEMENT_TYPES[type];
  const count = bytes / size;
  const name = `${operation}_${type}`;
  const isInC =
    program !== undefined && bytes === BYTES_MAX && ["sum_f64", "sum_i32", "min_f32", "max_i64"].includes(name);
  /** @type {number[][]} */
  const times = [[], [], []];
  for (let round = 0; round < ROUNDS; round++) {
    kernels.forEach((kernel, i) => {
      memory.bytes.fill(0);
      const call = () => kernel.reduce(OPERATIONS[operation], number, 0, 0, BYTES_MAX, count);
      times[i]?.push(bytes < BYTES_MAX ? timeOfMany(call) : timeOf(call));
    });
    if (isInC) times[2]?.push(Number(execFileSync(program, [name, `${count}`, `${CALLS}`], { encoding: "utf8" })));
  }
  const [wasm, twin, c] = /** @type {[number, number, number]} */ (
    times.map((all) => median(all.length > 0 ? all : [Number.NaN]))
  );
  return {
    kernel: name,
    bytes,
    "wasm ns": Math.round(wasm),
    "twin ns": Math.round(twin),
    "twin / wasm": Number((twin / wasm).toFixed(2)),
    "C / wasm": isInC ? Number((c / wasm).toFixed(2)) : "",
  };
});
rmSync(folder, { recursive: true });
console.table(rows);
