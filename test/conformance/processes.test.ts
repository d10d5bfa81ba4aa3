// The API over processes that share a memory: one process for each task, and several tasks in each.
import { info, launch } from "pamir";
import { expect, it } from "vitest";
import { linked, mixed, OTHER_NODE } from "../support/launches.js";
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

const SUITES: readonly ApiSuite[] = [
  { name: "a process for each task, wasm", kernels: ["wasm"], many: 6, launch: inProcesses(6) },
  { name: "two processes, wasm and twin", kernels: ["wasm", "ts"], many: 6, launch: inProcesses(2) },
  { name: "two processes, wasm, engine", kernels: ["wasm"], engine: "thread", many: 6, launch: inProcesses(2) },
  { name: "a process for each task, a link, wasm", kernels: ["wasm"], many: 6, launch: linked(inProcesses(6)) },
  { name: "two processes, a link, twin", kernels: ["ts"], many: 6, launch: linked(inProcesses(2)) },
];
const MIXED_SUITES: readonly ApiSuite[] = [
  { name: "processes of two Nodes, wasm and twin", kernels: ["wasm", "ts"], many: 6, launch: mixed(inProcesses(6)) },
  { name: "processes of two Nodes, a link, wasm", kernels: ["wasm"], many: 6, launch: mixed(linked(inProcesses(6))) },
];
const hasOtherNode = OTHER_NODE !== undefined;

if (IS_HERE) for (const suite of [...SUITES, ...(hasOtherNode ? MIXED_SUITES : [])]) apiSuite(suite);
if (!hasOtherNode) console.log("not run: the API over processes of two Nodes, since PAMIR_OTHER_NODE names none");
if (!IS_HERE) it("processes share a memory on Linux alone", () => expect(process.platform).not.toBe("linux"));
