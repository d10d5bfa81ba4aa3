// @ts-check
// The kernels of reductions and of packing: wasm against the twin, and against a loop in C at -O3 if gcc is there. Ratios of
// the least of nine medians, measured in turn: what else runs on the machine only adds. Then an allreduce of two tasks against
// memory copies. By itself:
// node bench/loops.bench.mjs [--quick]
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** @typedef {typeof import("../src/kernel/collective.js") & typeof import("../src/types/type-loops.js") & typeof import("../src/core/reduction.js") & typeof import("../src/kernel/kernel.js")} Internals */
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
  const modules = ["kernel/collective", "types/type-loops", "core/reduction", "kernel/kernel"];
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
    execFileSync("gcc", ["-O3", "-o", program, join(root, "bench/loops/loops.c")], {
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
const REDUCTIONS = [
  { operation: "sum", type: "f64", bytes: 8 },
  { operation: "sum", type: "f64", bytes: 4096 },
  { operation: "sum", type: "f64", bytes: BYTES_MAX },
  { operation: "sum", type: "i32", bytes: BYTES_MAX },
  { operation: "min", type: "f32", bytes: BYTES_MAX },
  { operation: "max", type: "i64", bytes: BYTES_MAX },
  { operation: "product", type: "c128", bytes: BYTES_MAX },
  { operation: "minloc", type: "f64_i32", bytes: BYTES_MAX },
];
/** Blocks of a column, in a row each. */
const COLUMNS = [
  { name: "pack_f64", block: 8, count: 1024, stride: 8192 },
  { name: "unpack_f64", block: 8, count: 1024, stride: 8192 },
  { name: "pack_f64", block: 8, count: 1024, stride: 64 },
  { name: "pack_24", block: 24, count: 1024, stride: 64 },
];
/** What loops.c has. */
const IN_C = ["sum_f64", "sum_i32", "min_f32", "max_i64", "pack_f64", "unpack_f64", "pack_24"];
/** Where the elements of a column lie, behind what is packed, and its LAYOUT. */
const [GRID, LAYOUT] = [BYTES_MAX, 10 * BYTES_MAX];

const { ELEMENT_TYPES, OPERATIONS, layoutWords, memoryOf, twinCollectiveKernel, wasmCollectiveKernel } =
  await internals();
const program = loopsInC();
const pages = (10 * BYTES_MAX) / 65536 + 1;
const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
const memory = memoryOf(/** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (shared.buffer)), undefined, shared);
const kernels = [wasmCollectiveKernel(shared), twinCollectiveKernel(memory)];
memory.bytes.fill(0);

/**
 * Times a loop by the kernels and in C, in turn.
 * @param {string} kernel
 * @param {number} bytes of data
 * @param {(kernel: import("../src/kernel/collective.js").CollectiveKernel) => void} call
 * @param {readonly number[]} inC numbers for the program in C; none: it is not timed
 */
function row(kernel, bytes, call, inC) {
  const isInC = program !== undefined && inC.length > 0 && IN_C.includes(kernel);
  /** @type {number[][]} */
  const times = [[], [], []];
  const time = bytes < 65536 ? timeOfMany : timeOf;
  for (let round = 0; round < ROUNDS; round++) {
    kernels.forEach((one, i) => void times[i]?.push(time(() => call(one))));
    if (!isInC) continue;
    const given = [kernel, ...inC.map(String), String(bytes < 65536 ? 100 * CALLS : CALLS)];
    times[2]?.push(Number(execFileSync(program, given, { encoding: "utf8" })));
  }
  const [wasm, twin, c] = /** @type {[number, number, number]} */ (times.map((all) => Math.min(...all)));
  return {
    kernel,
    bytes,
    stride: inC[1] ?? "",
    "wasm ns": Math.round(wasm),
    "twin ns": Math.round(twin),
    "twin / wasm": Number((twin / wasm).toFixed(2)),
    "C / wasm": isInC ? Number((c / wasm).toFixed(2)) : "",
  };
}

const rows = [
  ...REDUCTIONS.map(({ operation, type, bytes }) => {
    const { number, bytes: size } = ELEMENT_TYPES[type];
    const count = bytes / size;
    /** @type {Parameters<typeof row>[2]} */
    const call = (kernel) => kernel.reduce(OPERATIONS[operation], number, 0, 0, BYTES_MAX, count);
    return row(`${operation}_${type}`, bytes, call, bytes === BYTES_MAX ? [count] : []);
  }),
  ...COLUMNS.map(({ name, block, count, stride }) => {
    const words = layoutWords([{ offset: 0, count, stride, bytes: block, inner: undefined }], count * stride);
    memory.words.set(words, LAYOUT / 4);
    const isPacking = name.startsWith("pack");
    /** @type {Parameters<typeof row>[2]} */
    const call = (kernel) => kernel[isPacking ? "pack" : "unpack"](LAYOUT, 0, GRID, 0, count * block);
    return row(name, count * block, call, [count, stride]);
  }),
];
rmSync(folder, { recursive: true });
console.table(rows);

const output = execFileSync(
  process.execPath,
  [join(root, "dist/cli.js"), "run", "-n", "2", "-x", "PAMIR_BENCH", join(root, "bench/loops/against-copy.js")],
  { encoding: "utf8", env: { ...process.env, PAMIR_BENCH: String(ROUNDS) }, stdio: ["ignore", "pipe", "inherit"] },
);
/** @type {{ allreduce: number, copy: number, copied: number }} */
const { allreduce, copy, copied } = JSON.parse(/RESULT (.*)/.exec(output)?.[1] ?? "{}");
console.log(
  `allreduce of ${BYTES_MAX} bytes by two tasks: ${allreduce.toFixed(1)} µs; each copies ${copied} bytes in ${copy.toFixed(1)} µs: copy / allreduce ${(copy / allreduce).toFixed(2)}`,
);

/** A ratio of the first table. @param {string} kernel @param {"twin / wasm" | "C / wasm"} column */
const ratioOf = (kernel, column, bytes = BYTES_MAX, stride = "") => {
  const found = rows.find((one) => one.kernel === kernel && one.bytes === bytes && `${one.stride}`.startsWith(stride));
  return Number(found?.[column] || Number.NaN);
};
/** Ratios of times: how many times as fast, at least. */
const GOALS = [
  { what: "sum of f64, 1 MiB, against the twin", ratio: ratioOf("sum_f64", "twin / wasm"), goal: 2, hoped: 3 },
  { what: "sum of f64, 1 MiB, against C at -O3", ratio: ratioOf("sum_f64", "C / wasm"), goal: 0.7, hoped: 0.95 },
  {
    what: "pack of 8 B from 1,024 rows of 8 KiB against C at -O3",
    ratio: ratioOf("pack_f64", "C / wasm", 8192, "8192"),
    goal: 0.6,
    hoped: 0.9,
  },
  { what: "allreduce of 1 MiB against copies of 3/2 of it", ratio: copy / allreduce, goal: 0.6, hoped: 0.85 },
];
console.table(
  GOALS.map(({ what, ratio, goal, hoped }) => ({
    what,
    ratio: Number.isNaN(ratio) ? "not measured" : ratio.toFixed(2),
    goal: `≥ ${goal}`,
    "hoped for": `≥ ${hoped}`,
    met: Number.isNaN(ratio) ? "" : ratio >= goal ? "yes" : "NO",
  })),
);
