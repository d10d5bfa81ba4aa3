// The API over processes that share a memory: one process for each task, and several tasks in each.
import { info, launch } from "pamir";
import { describe, it } from "vitest";
import { type ApiSuite, apiSuite } from "./api.suite.js";

const IS_HERE = process.platform === "linux";

/** launch() with so many processes, or as many as there are tasks. */
const inProcesses =
  (most: number): typeof launch =>
  (entry, options = {}) => {
    const { tasks = Math.max(2, info().hardwareThreads), join = false } = options;
    const workers = join ? tasks - 1 : tasks;
    return launch(entry, workers === 0 ? options : { ...options, processes: Math.min(most, workers) });
  };

/** As inProcesses(), on a system that seems not to share memory between processes: each task is a node, and UDP joins them. */
const linked =
  (most: number): typeof launch =>
  async (entry, options) => {
    const { platform } = process;
    Object.defineProperty(process, "platform", { value: "freebsd" });
    try {
      return await inProcesses(most)(entry, options);
    } finally {
      Object.defineProperty(process, "platform", { value: platform });
    }
  };

const SUITES: readonly ApiSuite[] = [
  { name: "a process for each task, wasm", kernels: ["wasm"], many: 6, launch: inProcesses(6) },
  { name: "two processes, wasm and twin", kernels: ["wasm", "ts"], many: 6, launch: inProcesses(2) },
  { name: "two processes, wasm, engine", kernels: ["wasm"], engine: "thread", many: 6, launch: inProcesses(2) },
  { name: "a process for each task, a link, wasm", kernels: ["wasm"], many: 6, launch: linked(6) },
  { name: "two processes, a link, twin", kernels: ["ts"], many: 6, launch: linked(2) },
];

if (IS_HERE) for (const suite of SUITES) apiSuite(suite);
describe.skipIf(IS_HERE)("processes that share a memory", () => {
  it.skip("are not run: this is not Linux", () => {});
});
