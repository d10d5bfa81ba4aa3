import "./conformance/globals.js";
import { beforeEach } from "vitest";
import { apiSuite } from "../../conformance/api.suite.js";
import { BROWSER_PARTS, byEffort, isInPart } from "../../support/effort.js";

beforeEach(({ task, skip }) => skip(!isInPart(task.fullName, BROWSER_PARTS), "not in this run's part"));

apiSuite({
  name: "shared memory, wasm and twin",
  kernels: ["wasm", "ts"],
  many: byEffort({ quick: 20, normal: 20, deep: 200 }),
});
apiSuite({ name: "shared memory, without Atomics.waitAsync", kernels: ["wasm"], noWaitAsync: true, many: 20 });
