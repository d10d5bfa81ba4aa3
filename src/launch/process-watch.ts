// A thread that notices how the other processes of a job end, where a launcher other than pamir has started them. Each process
// has one. So no end of a process keeps the others from learning of the next one. Several may mark the same task dead.
import { sharedAtomics } from "../kernel/atomics.js";
import { openMemory } from "../kernel/select.js";
import { readMap } from "../memory/map.js";
import { markDead, markEngineDead } from "../node/liveness.js";
import { openFfi } from "../process/ffi.js";
import { type FutexSetup, futexOf } from "../process/futex.js";
import { startTimeOf } from "../process/identity.js";
import { nodeModule } from "../support/host.js";

/** Another process, with the task that it is. */
export interface WatchedProcess {
  readonly task: number;
  readonly pid: number;
  /** See startTimeOf(). */
  readonly started: string;
  /** Whether the node's agent is a thread of that process. */
  readonly hasAgent: boolean;
}

/** The data that the thread gets at its start. */
export interface WatchSetup {
  readonly shared: WebAssembly.Memory;
  readonly futex: FutexSetup;
  /** Pointer to the job header. */
  readonly job: number;
  readonly processes: readonly WatchedProcess[];
  /** A descriptor that becomes readable once the thread is to end. */
  readonly stop: number;
}

const { parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const { closeSync } = nodeModule("fs") as typeof import("node:fs");
const { shared, futex, job, processes, stop } = workerData as WatchSetup;
const ffi = openFfi(futex.ffi);
const memory = openMemory(shared, futexOf(futex, shared));
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
parentPort?.postMessage({ up: true });
/** By descriptor: the process that it stands for. */
const watched = new Map<number, WatchedProcess>();

function ended({ task, hasAgent }: WatchedProcess): void {
  markDead(sync, map, task);
  if (hasAgent) markEngineDead(sync, map);
}

for (const one of processes) {
  const { pid, started } = one;
  const descriptor = ffi.openProcess(pid);
  // The descriptor is that of the process, or of one that has got its number since: the time tells.
  if (descriptor >= 0 && startTimeOf(pid) === started) watched.set(descriptor, one);
  else {
    if (descriptor >= 0) closeSync(descriptor);
    ended(one);
  }
}
for (let isAsked = false; !isAsked && watched.size > 0; ) {
  for (const descriptor of ffi.awaitReadable([stop, ...watched.keys()])) {
    const one = watched.get(descriptor);
    if (one === undefined) {
      isAsked = true;
      break;
    }
    watched.delete(descriptor);
    closeSync(descriptor);
    ended(one);
  }
}
for (const descriptor of watched.keys()) closeSync(descriptor);
