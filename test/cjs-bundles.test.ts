// A program whose tasks are in processes, made into one CommonJS file by the bundlers that people use. There import.meta.url is
// undefined or made up. The file does what the modules do: without koffi a link joins the processes, and a warning says why.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { build } from "esbuild";
import { rollup } from "rollup";
import * as vite from "vite";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import webpack from "webpack";

const PROGRAM = `
import { isMainThread } from "node:worker_threads";
import { pathToFileURL } from "node:url";
import { attach, info, launch } from "pamir";

async function task() {
  const client = await attach();
  const context = client.createContext();
  let isHeard = false;
  context.dispatch(1, () => {
    isHeard = true;
  });
  context.send({ to: client.endpoint(1 - client.task), dispatch: 1 });
  while (!isHeard) await context.progress({ timeout: 60000 });
  console.log("task " + client.task + " heard the other");
  await client.close({ drain: true });
}

async function start() {
  const job = await launch(pathToFileURL(__filename), { tasks: 2, processes: 2 });
  for (const { task, code, cause } of await job.exited) console.log("exit of " + task + ": " + code + ", " + cause);
}

(isMainThread && !process.send ? start : task)().catch((error) => {
  console.error("failed: " + error.stack);
  process.exitCode = 1;
});
`;

let folder: string;
let source: string;

beforeAll(() => {
  folder = mkdtempSync(join(inject("folder"), "cjs-"));
  // A copy: webpack writes the path of the package into the file, and this repository has koffi above it.
  const installed = join(folder, "source", "node_modules", "pamir");
  mkdirSync(installed, { recursive: true });
  for (const name of ["dist", "package.json"]) cpSync(name, join(installed, name), { recursive: true });
  source = join(folder, "source", "program.js");
  writeFileSync(source, PROGRAM);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Format = "cjs" | "esm";

/** What makes one file of the program, in a folder. */
const BUNDLERS: Record<string, (out: string, format: Format) => Promise<unknown>> = {
  esbuild: (out, format) =>
    build({
      entryPoints: [source],
      outfile: join(out, format === "cjs" ? "program.cjs" : "program.mjs"),
      bundle: true,
      platform: "node",
      format,
      // CommonJS has no import.meta: esbuild says so.
      logOverride: { "empty-import-meta": "silent" },
      banner:
        format === "cjs" ? {} : { js: "const __filename = (await import('node:url')).fileURLToPath(import.meta.url);" },
      logLevel: "error",
    }),
  async rollup(out) {
    const bundle = await rollup({
      input: source,
      plugins: [nodeResolve({ exportConditions: ["node"] })],
      external: /^node:/,
    });
    await bundle.write({ file: join(out, "program.cjs"), format: "cjs", inlineDynamicImports: true });
  },
  Vite: (out) =>
    vite.build({
      root: join(folder, "source"),
      logLevel: "error",
      configFile: false,
      build: {
        ssr: source,
        outDir: out,
        emptyOutDir: false,
        rollupOptions: { output: { format: "cjs", entryFileNames: "program.cjs", codeSplitting: false } },
      },
      ssr: { noExternal: true },
    }),
  webpack: (out) =>
    new Promise((resolve, reject) => {
      webpack(
        {
          mode: "none",
          target: "node20",
          entry: source,
          output: { path: out, filename: "program.cjs", library: { type: "commonjs2" }, asyncChunks: false },
        },
        (error, stats) => {
          const [problem] = stats?.toJson({ errors: true }).errors ?? [];
          if (error || problem) reject(error ?? new Error(problem?.message));
          else resolve(undefined);
        },
      );
    }),
};

/** Builds the program, and runs it where nothing is installed, or koffi alone. */
async function run(bundler: string, format: Format, hasKoffi = false) {
  const out = mkdtempSync(join(folder, "out-"));
  await BUNDLERS[bundler]?.(out, format);
  if (hasKoffi) {
    mkdirSync(join(out, "node_modules"));
    symlinkSync(realpathSync("node_modules/koffi"), join(out, "node_modules", "koffi"), "junction");
  }
  const file = join(out, format === "cjs" ? "program.cjs" : "program.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8", timeout: 100_000 });
  return { status, lines: stdout.trimEnd().split("\n").sort(), stderr };
}

const LINES = ["exit of 0: 0, exit", "exit of 1: 0, exit", "task 0 heard the other", "task 1 heard the other"];
/** Node 26 calls the system's functions itself. */
const isLinked = !isBuiltin("node:ffi") || process.platform !== "linux";
const WARNING = /\[PAMIR_LINK\] Warning: processes can't share memory here: .*; a link on loopback joins them instead/;

it.each<[bundler: string, format: Format]>([
  ["esbuild", "cjs"],
  ["esbuild", "esm"],
  ["rollup", "cjs"],
  ["Vite", "cjs"],
  ["webpack", "cjs"],
])("%s, format %s: without koffi a link joins the processes, with a warning", async (bundler, format) => {
  const { status, lines, stderr } = await run(bundler, format);
  expect({ status, lines, others: stderr.match(/TypeError|createRequire|failed/g) }).toEqual({
    status: 0,
    lines: LINES,
    others: null,
  });
  if (isLinked) expect(stderr).toMatch(WARNING);
  expect(stderr.match(/PAMIR_\w+/g)?.length ?? 0).toBe(isLinked ? 1 : 0);
});

it.runIf(process.platform === "linux")(
  "esbuild, format cjs: with koffi beside the file, processes share a memory",
  async () => {
    expect(await run("esbuild", "cjs", true)).toEqual({ status: 0, lines: LINES, stderr: "" });
  },
);
