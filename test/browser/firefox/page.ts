// The suites on a page without Vitest: test/pages/firefox.test.ts reads what comes of them.
import "../isolated/conformance/globals.js";
import { apiSuite } from "../../conformance/api.suite.js";
import { laterSuite } from "../../conformance/later.suite.js";
import { poolSuite } from "../../conformance/pool.suite.js";
import { seeingSuite } from "../../conformance/seeing.suite.js";
import { BROWSER_PARTS, byEffort, isInPart } from "../../support/effort.js";
import { outcomeOf, SHARED_USES } from "../../support/shared-uses.js";
import { startWorker } from "../isolated/conformance/node.js";
import { cases, describe, HANGS_MS, type Outcome, run } from "../isolated/conformance/vitest.js";
import type { Report } from "../isolated/conformance/worker.js";

const kernels = ["wasm", "ts"] as const;
const outcomes: Outcome[] = [];
/** How many tests there are; `outcomes` has those that were run. */
let declared = 0;
Object.assign(globalThis, { outcomes, isOver: false });

const many = byEffort({ quick: 20, normal: 20, deep: 200 });
const name = crossOriginIsolated ? "shared memory" : "messages";
apiSuite({ name, kernels, many });
laterSuite(name);
seeingSuite(name);
// Node has no such suite: all of it is run.
const first = cases.length;
describe("pamir/pool", poolSuite);
declared += cases.length;
for (const [place, one] of cases.entries()) {
  if (place >= first || isInPart(one.name, BROWSER_PARTS)) outcomes.push(await run(one));
}

// The column of docs/hosts.md that says which functions of Firefox refuse shared memory.
for (const use of crossOriginIsolated ? SHARED_USES : []) {
  const outcome = await outcomeOf(use);
  const error = outcome === use.firefox ? {} : { error: `"${outcome}", not "${use.firefox}"` };
  declared++;
  outcomes.push({ name: `shared memory in ${use.name}`, ...error });
}

/** The kernels' own suites, in a worker. What waits for ever in there, or is not loaded, comes out here. */
async function inWorker(group: string): Promise<void> {
  const worker = new Worker(new URL("../isolated/conformance/worker.ts", import.meta.url), {
    type: "module",
    name: group,
  });
  await new Promise<void>((resolve) => {
    const end = (error: string) => {
      outcomes.push({ name: `${group}, behind ${outcomes.at(-1)?.name}`, error });
      resolve();
    };
    const limit = () => setTimeout(end, 2 * HANGS_MS, "hangs");
    let timer = limit();
    worker.onerror = (event) => end(event.message || "the worker was not loaded");
    worker.onmessage = ({ data }: MessageEvent<Report>) => {
      clearTimeout(timer);
      if ("over" in data) {
        declared += data.of;
        return resolve();
      }
      timer = limit();
      if ("start" in data) return startWorker(data);
      outcomes.push({ ...data, name: `${group}: ${data.name}` });
    };
  });
  worker.terminate();
}

if (crossOriginIsolated) for (const group of ["wasm", "debug", "twin", "mixed"]) await inWorker(group);
Object.assign(globalThis, { declared, isOver: true });
