// Pages of Electron with nodeIntegration: process.type says so. They have worker_threads, whose constructor throws there.
import { afterEach, expect, it } from "vitest";
import { isNode, nodeModule } from "../../src/support/host.js";

const inElectron = process as NodeJS.Process & { type?: string };
afterEach(() => {
  delete inElectron.type;
});

it.each([
  { type: "renderer", isNodeThere: false },
  { type: "worker", isNodeThere: false },
  { type: "browser", isNodeThere: true },
  { type: "utility", isNodeThere: true },
  { type: undefined, isNodeThere: true },
])("where process.type is $type, Node's threads count as there: $isNodeThere", ({ type, isNodeThere }) => {
  if (type !== undefined) inElectron.type = type;
  expect(isNode()).toBe(isNodeThere);
  expect(nodeModule("fs") !== undefined).toBe(isNodeThere);
});
