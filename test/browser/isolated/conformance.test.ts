// The conformance suites of the kernels, in real Web Workers on an isolated page.
import { expect, it } from "vitest";
import { startWorker } from "./conformance/node.js";
import type { Outcome } from "./conformance/vitest.js";
import type { Report } from "./conformance/worker.js";

it.each(["wasm", "debug", "twin", "mixed"])(
  "%s",
  async (group) => {
    const worker = new Worker(new URL("./conformance/worker.ts", import.meta.url), { type: "module", name: group });
    const failed: Outcome[] = [];
    let done = 0;
    const { over, of } = await new Promise<{ over: number; of: number }>((resolve, reject) => {
      worker.onerror = (event) => reject(new Error(event.message || "the worker was not loaded"));
      worker.onmessage = ({ data }: MessageEvent<Report>) => {
        if ("over" in data) return resolve(data);
        if ("start" in data) return startWorker(data);
        done++;
        if (data.error !== undefined) failed.push(data);
      };
    });
    worker.terminate();
    expect(failed).toEqual([]);
    expect(done).toBe(over);
    expect(of).toBeGreaterThan(150);
    console.log(`${group}: ${over} of ${of} tests`);
  },
  300_000,
);
