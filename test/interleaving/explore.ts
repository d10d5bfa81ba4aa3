// Runs the explorer: builds its threads from the sources that ship, and lets them run one scenario.
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { instrument } from "./instrument.js";
import { type Exploration, type ExploreOptions, MEMORY_PAGES, type Orders, SHARED_BYTES } from "./runner.js";
import type { Scenario } from "./scenario.js";

let bundle: Promise<URL> | undefined;

/** The threads' code in one file. */
async function bundled(): Promise<URL> {
  const outfile = join(mkdtempSync(join(tmpdir(), "pamir-interleaving-")), "runner.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("runner.ts", import.meta.url))],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "es2022",
    outfile,
  });
  return pathToFileURL(outfile);
}

/** A run that takes longer hangs: the least is some 10⁷ steps. */
const PATIENCE_MS = 100_000;

export interface Request {
  readonly scenario: Scenario;
  readonly kernel: "wasm" | "ts";
  /** Another module than the one that ships. */
  readonly wasm?: Uint8Array;
}

/** Runs one scenario under every schedule that the options ask for, or until one goes wrong. */
export async function explore({ scenario, kernel, wasm }: Request, options: ExploreOptions): Promise<Exploration> {
  bundle ??= bundled();
  const url = await bundle;
  const module = wasm ?? readFileSync(new URL("../../dist/pamir.wasm", import.meta.url));
  const instrumented = new WebAssembly.Module(instrument(module) as BufferSource);
  const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES, shared: true });
  const shared = new SharedArrayBuffer(SHARED_BYTES);
  const workers = scenario.threads.map((_, me) => {
    const workerData: Orders = { scenario: scenario.name, kernel, instrumented, memory, shared, me, options };
    return new Worker(url, { workerData });
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${scenario.name}: no end after ${PATIENCE_MS} ms`)), PATIENCE_MS);
      for (const worker of workers) {
        worker.on("error", reject);
        worker.on("message", resolve);
      }
    });
  } finally {
    clearTimeout(timer);
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
