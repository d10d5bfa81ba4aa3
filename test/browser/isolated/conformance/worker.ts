// Runs the conformance suites of one group, in this Web Worker, and posts what came of each test.
import "./globals.js";
import { chainSuite } from "../../../conformance/chain.suite.js";
import { kernelSuite } from "../../../conformance/kernel.suite.js";
import { rmaSuite } from "../../../conformance/rma.suite.js";
import type { Start } from "./node.js";
import { cases, type Outcome, run } from "./vitest.js";

/** What came of a test, or a worker that is to be started; `over`: how many tests there were. */
export type Report = Outcome | Start | { readonly over: number };

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

for (const one of cases) postMessage((await run(one)) satisfies Report);
postMessage({ over: cases.length } satisfies Report);
