// The API over processes that share a memory: one process for each task, and several tasks in each.
import { info, launch } from "pamir";
import { describe, it } from "vitest";
import { apiSuite } from "./api.suite.js";

const IS_HERE = process.platform === "linux";

/** launch() with so many processes, or as many as there are tasks. */
const inProcesses =
  (most: number): typeof launch =>
  (entry, options = {}) => {
    const { tasks = Math.max(2, info().hardwareThreads), join = false } = options;
    const workers = join ? tasks - 1 : tasks;
    return launch(entry, workers === 0 ? options : { ...options, processes: Math.min(most, workers) });
  };

if (IS_HERE) {
  apiSuite({ name: "a process for each task, wasm", kernels: ["wasm"], many: 6, launch: inProcesses(6) });
  apiSuite({ name: "two processes, wasm and twin", kernels: ["wasm", "ts"], many: 6, launch: inProcesses(2) });
  apiSuite({
    name: "two processes, wasm, engine thread",
    kernels: ["wasm"],
    engine: "thread",
    many: 6,
    launch: inProcesses(2),
  });
} else describe.skip("processes that share a memory: this is not Linux", () => it("is not run", () => {}));
