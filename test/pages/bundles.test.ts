// A tiny app that uses the packed package, built by the bundlers that people use, and run in a browser on an isolated page.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** What a user writes; `entry` is how the task's module is named. */
const mainOf = (entry: string): string => `
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
while (answers < 2) await context.progress({ timeout: 20_000 });
const exits = await job.exited;
globalThis.result = { sum, mode: info().mode, kernel: info().kernel, codes: exits.map(({ code }) => code) };
`;
const TASK = `
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
`;
const RESULT = { sum: 86, mode: "shared", kernel: "wasm", codes: [0, 0] };
const URL_ENTRY = `new URL("./task.js", import.meta.url)`;
const WORKER_ENTRY = `() => new Worker(${URL_ENTRY}, { type: "module" })`;

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

/** A folder with the app; it finds the package above it. */
function app(name: string, entry: string): string {
  const folder = join(root, name);
  mkdirSync(join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "main.js"), mainOf(entry));
  writeFileSync(join(folder, "task.js"), TASK);
  const page = (script: string) => `<!doctype html><title>app</title><script type="module" src="${script}"></script>`;
  writeFileSync(join(folder, "index.html"), page("./main.js"));
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
      .waitForFunction(() => "result" in globalThis, undefined, { timeout: 30_000 })
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

it("esbuild", async () => {
  const folder = app("esbuild", URL_ENTRY);
  const { metafile } = await esbuild.build({
    entryPoints: [join(folder, "main.js"), join(folder, "task.js")],
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
  expect(await runFiles(join(folder, "dist"))).toEqual(RESULT);
  for (const output of Object.values(metafile.outputs)) expect(output.bytes).toBeLessThan(MINIFIED_MAX);
});

it("rollup", async () => {
  const folder = app("rollup", URL_ENTRY);
  const input = { main: join(folder, "main.js"), task: join(folder, "task.js") };
  const bundle = await rollup({ input, plugins: [nodeResolve({ browser: true })] });
  const { output } = await bundle.write({ dir: join(folder, "dist"), format: "es", entryFileNames: "[name].js" });
  // What a program loads at first: neither collective operations nor what only tasks without shared memory need.
  const chunks = new Map(output.flatMap((file) => (file.type === "chunk" ? [[file.fileName, file]] : [])));
  const first = new Set(["main.js", "task.js"]);
  for (const name of first) for (const imported of chunks.get(name)?.imports ?? []) first.add(imported);
  const code = [...first].map((name) => chunks.get(name)?.code).join("");
  expect(gzipSync(code).length).toBeLessThan(121_100);
  expect(await runFiles(join(folder, "dist"))).toEqual(RESULT);
});

it("webpack", async () => {
  const folder = app("webpack", WORKER_ENTRY);
  const compiler = webpack({
    mode: "production",
    // The same bound as esbuild's, in place of webpack's hint at 244 KiB; more is a warning.
    performance: { maxAssetSize: MINIFIED_MAX, maxEntrypointSize: MINIFIED_MAX },
    context: folder,
    entry: "./main.js",
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
  expect(await runFiles(join(folder, "dist"))).toEqual(RESULT);
});

it("Vite, dev and build", async () => {
  const folder = app("vite", WORKER_ENTRY);
  // As the document prints it.
  const recipe = /^```js\n(\/\/ vite\.config\.js\n[\s\S]*?)^```/m.exec(readFileSync("docs/headers.md", "utf8"));
  const config = recipe?.[1] as string;
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
  expect(await run(dev.resolvedUrls?.local[0] as string)).toEqual(RESULT);
  await dev.close();
  await vite.build(options);
  const shown = await vite.preview(options);
  expect(await run(shown.resolvedUrls?.local[0] as string)).toEqual(RESULT);
  await shown.close();
});
