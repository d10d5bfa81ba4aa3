// Runs the conformance suites of one group, in this Web Worker, and posts what came of each test.
import "./globals.js";
import { chainSuite } from "../../../conformance/chain.suite.js";
import { kernelSuite } from "../../../conformance/kernel.suite.js";
import { rmaSuite } from "../../../conformance/rma.suite.js";
import { BROWSER_PARTS, isInPart } from "../../../support/effort.js";
import type { Start } from "./node.js";
import { cases, type Outcome, run } from "./vitest.js";

/** What came of a test, or a worker that is to be started; `over`: how many tests were run, of how many. */
export type Report = Outcome | Start | { readonly over: number; readonly of: number };

type Rig = Parameters<typeof kernelSuite>[1];

const GROUPS: Record<string, readonly Rig[]> = {
  wasm: [{ producer: "wasm" }],
  debug: [{ producer: "debug" }],
  twin: [{ producer: "twin" }],
  mixed: [
    { producer: "wasm", consumer: "twin" },
    { producer: "twin", consumer: "wasm" },
  ],
};

for (const rig of GROUPS[self.name] as readonly Rig[]) {
  const name = `${rig.producer} to ${rig.consumer ?? rig.producer}`;
  kernelSuite(name, rig);
  rmaSuite(name, rig);
  chainSuite(name, rig);
}

const chosen = cases.filter(({ name }) => isInPart(name, BROWSER_PARTS));
for (const one of chosen) postMessage((await run(one)) satisfies Report);
postMessage({ over: chosen.length, of: cases.length } satisfies Report);
