// A thread that notices how the other processes of a job end, if no launcher of pamir does: the launcher is a foreign one, or
// the tasks go on without it. Each process has such a thread. So neither an ended nor a stopped process keeps other processes
// from learning of the next end. Several threads may mark the same task dead: markDead() may run twice, also at once.
import { sharedAtomics } from "../../kernel/atomics.js";
import { openMemory } from "../../kernel/open.js";
import { readMap } from "../../memory/map.js";
import { announceStart, markDead, markEngineDead } from "../../node/liveness.js";
import { openFfi } from "../../process/ffi.js";
import { type FutexSetup, futexOf } from "../../process/futex.js";
import { type ProcessIdentity, startTimeOf } from "../../process/identity.js";
import { nodeModule } from "../../support/host.js";
import { recordedTasks } from "./process-record.js";

/** Another process, with the tasks that it runs. */
export interface WatchedProcess extends ProcessIdentity {
  readonly tasks: readonly number[];
  /** Whether the node's agent, or the job's engine thread, runs in that process. */
  readonly hasAgent: boolean;
}

/** The data that the thread gets at its start. */
export interface WatchSetup {
  readonly shared: WebAssembly.Memory;
  readonly futex: FutexSetup;
  /** Pointer to the job header. */
  readonly job: number;
  readonly processes: readonly WatchedProcess[];
  /**
   * The process that watches the other processes while it lives. Once it has ended, the task slots name the other processes:
   * see recordProcess().
   */
  readonly launcher?: ProcessIdentity | undefined;
  /** A descriptor that becomes readable once the thread is to end. */
  readonly stop: number;
}

const { parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const { closeSync } = nodeModule("fs") as typeof import("node:fs");
const { shared, futex, job, processes, launcher, stop } = workerData as WatchSetup;
const ffi = openFfi(futex.ffi);
const memory = openMemory(shared, futexOf(futex, shared));
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
parentPort?.postMessage({ up: true });
/** By descriptor: what to do at the end of its process. */
const watched = new Map<number, () => void>();

function watch({ pid, started }: ProcessIdentity, onEnd: () => void): void {
  const descriptor = ffi.openProcess(pid);
  // The descriptor belongs to the process, or to a later one with the same number: the start time tells which.
  if (descriptor >= 0 && startTimeOf(pid) === started) watched.set(descriptor, onEnd);
  else {
    if (descriptor >= 0) closeSync(descriptor);
    onEnd();
  }
}

function markAllDead(tasks: readonly number[]): void {
  for (const task of tasks) markDead(sync, map, task);
}

/** From now on this thread does the launcher's work. The engine thread ran in the launcher. */
function succeed(): void {
  if (map.engine) markEngineDead(sync, map);
  for (const { process: one, tasks } of recordedTasks(sync, map)) {
    if (one === undefined) markAllDead(tasks);
    else if (one.pid !== process.pid) watch(one, () => markAllDead(tasks));
  }
  // The launcher may have died between the two rounds of an announcement.
  announceStart(sync, map);
}

for (const one of processes) {
  watch(one, () => {
    markAllDead(one.tasks);
    if (one.hasAgent) markEngineDead(sync, map);
  });
}
if (launcher !== undefined) watch(launcher, succeed);
for (let isAsked = false; !isAsked && watched.size > 0; ) {
  for (const descriptor of ffi.awaitReadable([stop, ...watched.keys()])) {
    const onEnd = watched.get(descriptor);
    if (onEnd === undefined) {
      isAsked = true;
      break;
    }
    watched.delete(descriptor);
    closeSync(descriptor);
    onEnd();
  }
}
for (const descriptor of watched.keys()) closeSync(descriptor);
