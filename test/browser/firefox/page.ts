// The suites on a page without Vitest: test/pages/firefox.test.ts reads what comes of them.
import "../isolated/conformance/globals.js";
import { apiSuite } from "../../conformance/api.suite.js";
import { cases } from "../isolated/conformance/vitest.js";
import type { Outcome } from "../isolated/conformance/worker.js";

const kernels = ["wasm", "ts"] as const;
const outcomes: Outcome[] = [];
Object.assign(globalThis, { outcomes, isOver: false });

apiSuite({ name: crossOriginIsolated ? "shared memory" : "messages", kernels });
for (const { name, body } of cases) {
  try {
    await body();
    outcomes.push({ name });
  } catch (thrown) {
    outcomes.push({ name, error: thrown instanceof Error ? `${thrown.message}\n${thrown.stack}` : String(thrown) });
  }
}

/** The kernels' own suites, in a worker. */
async function inWorker(group: string): Promise<void> {
  const worker = new Worker(new URL("../isolated/conformance/worker.ts", import.meta.url), {
    type: "module",
    name: group,
  });
  await new Promise<void>((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message || "the worker was not loaded"));
    worker.onmessage = ({ data }: MessageEvent<Outcome>) => {
      if ("over" in data) resolve();
      else outcomes.push({ ...data, name: `${group}: ${data.name}` });
    };
  });
  worker.terminate();
}

if (crossOriginIsolated) for (const group of ["wasm", "debug", "twin", "mixed"]) await inWorker(group);
Object.assign(globalThis, { isOver: true });
