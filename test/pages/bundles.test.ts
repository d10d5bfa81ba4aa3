// A tiny app that uses the packed package, built by the bundlers that people use, and run in a browser on an isolated page.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import * as esbuild from "esbuild";
import type { Browser } from "playwright";
import { rollup } from "rollup";
import * as vite from "vite";
import { afterAll, beforeAll, expect, it } from "vitest";
import webpack from "webpack";
import { filesOf, ISOLATION, onPage, openBrowser, serve } from "./support.js";

const URL_ENTRY = `new URL("./worker.js", import.meta.url)`;
const WORKER_ENTRY = `() => new Worker(${URL_ENTRY}, { type: "module" })`;

/** A program of two modules: what a user writes. */
interface Program {
  readonly name: string;
  readonly extension: "js" | "ts";
  /** @param entry how the worker's module is named */
  readonly main: (entry: string) => string;
  readonly worker: string;
  /** What the page's `result` must be. */
  readonly result: unknown;
}

const JOB: Program = {
  name: "job",
  extension: "js",
  main: (entry) => `
import { info, launch } from "pamir";
const job = await launch(${entry}, { tasks: 3, join: true, heapBytes: 2 ** 24 });
const context = job.client.createContext();
let sum = 0;
let answers = 0;
context.dispatch(2, (message) => {
  sum += message.getInt32(0);
  answers++;
});
for (let task = 1; task < 3; task++) context.sendImmediate(job.client.endpoint(task), 1, null, new Int32Array([20 + task]));
while (answers < 2) await context.progress({ timeout: 100_000 });
const exits = await job.exited;
globalThis.result = { sum, mode: info().mode, kernel: info().kernel, codes: exits.map(({ code }) => code) };
`,
  worker: `
import { attach } from "pamir";
const client = await attach();
const context = client.createContext();
let done = false;
context.dispatch(1, (message) => {
  context.sendImmediate(message.origin, 2, null, new Int32Array([2 * message.getInt32(0)]));
  done = true;
});
context.advanceUntil(() => done);
await client.close({ drain: true });
`,
  result: { sum: 86, mode: "shared", kernel: "wasm", codes: [0, 0] },
};

/** The first two blocks of JavaScript under a heading of the documents about pools and programs in C. */
function recipe(heading: string): [main: string, worker: string] {
  const text = ["recipes/pool", "c"].map((name) => readFileSync(`docs/${name}.md`, "utf8")).join("");
  const section = text.split(`# ${heading}\n`)[1] ?? expect.fail(heading);
  const [main, worker] = [...section.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string);
  return [main as string, worker as string];
}

const [POOL_MAIN, POOL_WORKER] = recipe("In a page");
const POOL: Program = {
  name: "pool",
  extension: "js",
  // As the document prints it, where the entry is a function that makes the worker.
  main: (entry) => {
    const [, start] = /^const start = (.*);$/m.exec(POOL_MAIN) ?? expect.fail("no worker is made");
    return `${POOL_MAIN.replace(start as string, () => entry)}globalThis.result = document.body.textContent;\n`;
  },
  worker: POOL_WORKER,
  result: "144 4950",
};
const [C_MAIN, C_WORKER] = recipe("Ranks in a page");
/** A program in C; hello.wasm lies beside the page. */
const IN_C: Program = {
  name: "c",
  extension: "js",
  main: (entry) => {
    const [, start] = /^const start = (.*);$/m.exec(C_MAIN) ?? expect.fail("no worker is made");
    const text = "document.body.textContent.trim().split(/\\n+/).sort()";
    return `${C_MAIN.replace(start as string, () => entry)}globalThis.result = { code, lines: ${text} };\n`;
  },
  worker: C_WORKER,
  result: { code: 0, lines: [0, 1, 2, 3].map((rank) => `[${rank}] rank ${rank} of 4, sum 6`) },
};
const TYPED: Program = {
  ...POOL,
  name: "pool-typed",
  extension: "ts",
  main: (entry) =>
    `import type { api } from "./worker.js";\n${POOL.main(entry).replace("pool(start", "pool<typeof api>(start")}`,
  worker: POOL_WORKER.replace("(number)", "(number: number)").replace("(count)", "(count: number)"),
};
/** A page that might join a job at a NATS server: the package of NATS's client is not installed. */
const WEB: Program = {
  name: "web",
  extension: "js",
  main: () => `
import { join } from "pamir/web";
globalThis.result = await join("nothing").catch(({ code }) => code);
`,
  worker: "globalThis.isWorker = true;\n",
  result: "PAMIR_TICKET",
};

let browser: Browser;
let root: string;

beforeAll(async () => {
  browser = await openBrowser();
  // As npm would install it.
  root = mkdtempSync(join(tmpdir(), "pamir-bundles-"));
  const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", root]);
  const installed = join(root, "node_modules", "pamir");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(root, packed.toString().trim()), "-C", installed, "--strip-components=1"]);
});
afterAll(async () => {
  await browser.close();
  rmSync(root, { recursive: true });
});

/** A folder with a program; it finds the package above it. */
function app(bundler: string, program: Program, entry: string): string {
  const { name, extension, main, worker } = program;
  const folder = join(root, `${bundler}-${name}`);
  for (const output of ["dist", "public"]) {
    mkdirSync(join(folder, output), { recursive: true });
    copyFileSync("test/c/built/hello.wasm", join(folder, output, "hello.wasm"));
  }
  writeFileSync(join(folder, `main.${extension}`), main(entry));
  writeFileSync(join(folder, `worker.${extension}`), worker);
  const page = (script: string) =>
    `<!doctype html><title>app</title><body><script type="module" src="${script}"></script>`;
  writeFileSync(join(folder, "index.html"), page(`./main.${extension}`));
  writeFileSync(join(folder, "dist", "index.html"), page("./main.js"));
  return folder;
}

/** What the app comes to in the browser; errors on its console are failures. */
function run(url: string): Promise<unknown> {
  return onPage(browser, url, async (page) => {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !/favicon/.test(message.location().url)) errors.push(message.text());
    });
    await page.reload();
    await page
      .waitForFunction(() => "result" in globalThis)
      .catch((error: Error) => {
        errors.push(error.message);
      });
    expect(errors).toEqual([]);
    return page.evaluate(() => (globalThis as { result?: unknown }).result);
  });
}

function runFiles(folder: string): Promise<unknown> {
  return serve(filesOf(folder, ISOLATION), run);
}

/** Bytes of what a page loads at first of the library, minified and not compressed. */
const MINIFIED_MAX = 262_000;
/** What pamir/pool adds to that. */
const POOL_MINIFIED_MAX = 54_600;
/** What pamir/c adds: MPI, PAMI, WASI, the loader of programs and the limits of their ranks, all in the file of a worker. */
const C_MINIFIED_MAX = 186_000;
const ESBUILD = JSON.stringify(createRequire(import.meta.url).resolve("esbuild"));

it.each([
  { program: JOB, entry: URL_ENTRY },
  { program: POOL, entry: URL_ENTRY },
  { program: TYPED, entry: WORKER_ENTRY },
  { program: IN_C, entry: URL_ENTRY },
  { program: WEB, entry: URL_ENTRY },
])("esbuild: $program.name by $entry", async ({ program, entry }) => {
  const folder = app("esbuild", program, entry);
  const { metafile } = await esbuild.build({
    entryPoints: ["main", "worker"].map((name) => join(folder, `${name}.${program.extension}`)),
    bundle: true,
    minify: true,
    format: "esm",
    // What only tasks without shared memory load is a file of its own then, as with the other bundlers.
    splitting: true,
    outdir: join(folder, "dist"),
    logLevel: "error",
    metafile: true,
    write: true,
  });
  expect(await runFiles(join(folder, "dist"))).toEqual(program.result);
  for (const output of Object.values(metafile.outputs)) expect(output.bytes).toBeLessThan(MINIFIED_MAX);
});

it.each([
  { program: JOB, entry: URL_ENTRY },
  { program: POOL, entry: WORKER_ENTRY },
  { program: IN_C, entry: WORKER_ENTRY },
  { program: WEB, entry: WORKER_ENTRY },
])("rollup: $program.name by $entry", async ({ program, entry }) => {
  const folder = app("rollup", program, entry);
  const input = { main: join(folder, "main.js"), worker: join(folder, "worker.js") };
  const bundle = await rollup({ input, plugins: [nodeResolve({ browser: true })] });
  const { output } = await bundle.write({ dir: join(folder, "dist"), format: "es", entryFileNames: "[name].js" });
  // What a program loads at first: neither collective operations nor what only tasks without shared memory need.
  const chunks = new Map(output.flatMap((file) => (file.type === "chunk" ? [[file.fileName, file]] : [])));
  const first = new Set(["main.js", "worker.js"]);
  for (const name of first) for (const imported of chunks.get(name)?.imports ?? []) first.add(imported);
  const code = [...first].map((name) => chunks.get(name)?.code).join("");
  if (program === JOB) expect(gzipSync(code).length).toBeLessThan(122_100);
  expect(await runFiles(join(folder, "dist"))).toEqual(program.result);
});

it.each([JOB, TYPED, IN_C, WEB])("webpack: $name", async (program) => {
  const { extension } = program;
  const folder = app("webpack", program, WORKER_ENTRY.replace(".js", `.${extension}`));
  // What ts-loader does, without its checks.
  const loader = join(folder, "loader.cjs");
  writeFileSync(loader, `module.exports = (text) => require(${ESBUILD}).transformSync(text, { loader: "ts" }).code;`);
  // The same bound as esbuild's, in place of webpack's hint at 244 KiB; more is a warning.
  const size = MINIFIED_MAX + (program === JOB ? 0 : program === IN_C ? C_MINIFIED_MAX : POOL_MINIFIED_MAX);
  const compiler = webpack({
    mode: "production",
    performance: { maxAssetSize: size, maxEntrypointSize: size },
    context: folder,
    entry: `./main.${extension}`,
    module: { rules: [{ test: /\.ts$/, use: loader }] },
    output: {
      path: join(folder, "dist"),
      filename: "main.js",
      module: true,
      publicPath: "./",
      workerChunkLoading: "import",
    },
    experiments: { outputModule: true, topLevelAwait: true },
  });
  const stats = await new Promise<webpack.Stats>((resolve, reject) => {
    compiler.run((error, result) => (result === undefined ? reject(error) : resolve(result)));
  });
  expect(stats.toJson({ errors: true, warnings: true })).toMatchObject({ errors: [], warnings: [] });
  expect(await runFiles(join(folder, "dist"))).toEqual(program.result);
});

it.each([JOB, TYPED, IN_C, WEB])("Vite, dev and build: $name", async (program) => {
  const folder = app("vite", program, WORKER_ENTRY.replace(".js", `.${program.extension}`));
  // As the document prints it.
  const vitePart = /^```js\n(\/\/ vite\.config\.js\n[\s\S]*?)^```/m.exec(readFileSync("docs/headers.md", "utf8"));
  const config = vitePart?.[1] as string;
  const configFile = join(folder, "vite.config.js");
  writeFileSync(configFile, config);
  const options: vite.InlineConfig = {
    root: folder,
    configFile,
    logLevel: "error",
    build: { emptyOutDir: true },
    server: { port: 0 },
    preview: { port: 0 },
  };
  const dev = await vite.createServer(options);
  await dev.listen();
  expect(await run(dev.resolvedUrls?.local[0] as string)).toEqual(program.result);
  await dev.close();
  await vite.build(options);
  const shown = await vite.preview(options);
  expect(await run(shown.resolvedUrls?.local[0] as string)).toEqual(program.result);
  await shown.close();
});
