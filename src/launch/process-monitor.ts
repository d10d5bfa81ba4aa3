// The monitor of a process of tasks: it runs on the main thread of the process, maps the job's memory, and starts the tasks as
// workers. It marks its dead tasks itself, so the others learn of their end even if the launching process is stopped.
import { sharedAtomics } from "../kernel/atomics.js";
import { openMemory } from "../kernel/select.js";
import { readMap } from "../memory/map.js";
import { hasLeft, interruptTask, markDead } from "../node/liveness.js";
import { taskErrorsIn } from "../node/memory.js";
import { openFfi } from "../process/ffi.js";
import { futexOf } from "../process/futex.js";
import { mapProcessMemory } from "../process/mapping.js";
import { nodeModule } from "../support/host.js";
import { Lifecycle } from "./lifecycle.js";
import type { ProcessOrder, ProcessReport, ProcessSetup } from "./task-process.js";
import { TaskWorkers } from "./task-workers.js";

const { orders, memory: setup, job, labels } = (globalThis as unknown as { pamirProcess: ProcessSetup }).pamirProcess;
process.title = `pamir: ${orders.bootstraps.map(({ task }) => `task ${task}`).join(", ")}`;
// No process stays behind: this one is killed when the thread that started it ends, which is its launcher's monitor.
openFfi(setup.ffi).dieWithParent();
const { shared, futex } = mapProcessMemory(setup, job);
(nodeModule("fs") as typeof import("node:fs")).closeSync(setup.descriptor);
const memory = openMemory(shared, futexOf(futex, shared));
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
let left = orders.bootstraps.length;
const lifecycle = new Lifecycle(taskErrorsIn(memory, map), {
  hasLeft: (task) => hasLeft(sync, map, task),
  interrupt: (task) => interruptTask(sync, map, task),
  markDead: (task) => markDead(sync, map, task),
  ended: (ended, _, shown) => {
    const isLast = --left === 0;
    process.send?.({ ended, shown } satisfies ProcessReport, () => {
      if (isLast && process.connected) process.disconnect?.();
    });
  },
});
process.on("message", ({ terminate }: ProcessOrder) => lifecycle.terminate(terminate));
// A terminal sends it to the whole job. As with threads, the launching process decides what becomes of the tasks.
process.on("SIGINT", () => {});
// The launching process has ended, maybe before this one asked for that.
process.on("disconnect", () => {
  if (left > 0) process.kill(process.pid, "SIGKILL");
});
const bootstraps = orders.bootstraps.map((bootstrap) => ({ ...bootstrap, memory: shared, futex }));
new TaskWorkers(lifecycle, sync, map, { labels, isForeign: true }).start({ ...orders, bootstraps });
