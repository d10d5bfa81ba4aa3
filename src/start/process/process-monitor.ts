// The monitor of a process of tasks: it runs on the main thread of the process, maps the job's memory, and starts the tasks as
// workers. The monitor marks its dead tasks itself, so other tasks learn of their end even if the launching process is stopped.
import { sharedAtomics } from "../../kernel/atomics.js";
import { openMemory } from "../../kernel/open.js";
import { readMap } from "../../memory/map.js";
import { hasLeft, interruptTask, markDead, taskErrorsIn } from "../../node/liveness.js";
import { openFfi } from "../../process/ffi.js";
import { futexOf } from "../../process/futex.js";
import { mapProcessMemory, type ProcessMemorySetup } from "../../process/mapping.js";
import { nodeModule } from "../../support/host.js";
import { sharedOutput } from "../output/whole-lines.js";
import { TaskWorkers } from "../tasks/task-workers.js";
import { processLifecycle } from "./process-lifecycle.js";
import { recordOwnProcess } from "./process-record.js";
import { startWatch } from "./start-watch.js";
import type { ProcessOrder, ProcessSetup } from "./task-process.js";

const own = (globalThis as unknown as { pamirProcess: ProcessSetup }).pamirProcess;
const { orders, memory: given, job, labels, launcher, isDetached } = own;
const setup = given as ProcessMemorySetup;
// No process stays behind: this process is killed when the thread that started it ends, which is its launcher's monitor.
if (!isDetached) openFfi(setup.ffi).dieWithParent();
const { shared, futex } = mapProcessMemory(setup, job);
(nodeModule("fs") as typeof import("node:fs")).closeSync(setup.descriptor);
const memory = openMemory(shared, futexOf(futex, shared));
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
if (isDetached) {
  for (const { task } of orders.bootstraps) recordOwnProcess(sync, map, task, launcher);
  startWatch({ shared, futex, job }, { processes: [], launcher }).catch(({ message }: Error) => {
    process.emitWarning(`pamir: this process would not learn of others that die without their launcher: ${message}`);
  });
}
const lifecycle = processLifecycle(own, taskErrorsIn(memory, map), {
  hasLeft: (task) => hasLeft(sync, map, task),
  interrupt: (task) => interruptTask(sync, map, task),
  markDead: (task) => markDead(sync, map, task),
});
process.on("message", (order: ProcessOrder) => {
  if ("terminate" in order) lifecycle.terminate(order.terminate);
});
const bootstraps = orders.bootstraps.map((bootstrap) => ({ ...bootstrap, memory: shared, futex }));
const workers = new TaskWorkers(lifecycle, sync, map, { labels, isForeign: true, output: sharedOutput() });
workers.start({ ...orders, bootstraps });
