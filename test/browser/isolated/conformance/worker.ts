// Runs the conformance suites of one group, in this Web Worker, and posts what came of each test.
import "./globals.js";
import { chainSuite } from "../../../conformance/chain.suite.js";
import { kernelSuite } from "../../../conformance/kernel.suite.js";
import { rmaSuite } from "../../../conformance/rma.suite.js";
import { cases } from "./vitest.js";

/** What came of a test; `over`: of all of them. */
export type Outcome = { readonly name: string; readonly error?: string } | { readonly over: number };

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

for (const { name, before, body } of cases) {
  let error: string | undefined;
  try {
    for (const prepare of before) await prepare();
    await body();
  } catch (thrown) {
    error = thrown instanceof Error ? `${thrown.message}\n${thrown.stack}` : String(thrown);
  }
  postMessage((error === undefined ? { name } : { name, error }) satisfies Outcome);
}
postMessage({ over: cases.length } satisfies Outcome);
