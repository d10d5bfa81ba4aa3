// attach() in a process that a launcher has started: mpiexec, mpirun, srun, or a script. The processes of a host share one
// memory. The first one makes it; the others open it by their right to open that process's descriptors.
import { JOB_STARTED_OFFSET } from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import type { Bootstrap } from "../bootstrap/bootstrap.js";
import { type OpenedBootstrap, openBootstrap } from "../bootstrap/open.js";
import { PamiError } from "../core/error.js";
import { VERSION } from "../generated/version.js";
import { watchSource } from "../generated/watch.js";
import type { Memory } from "../kernel/kernel.js";
import { openMemory, selectKernel } from "../kernel/select.js";
import { readMap } from "../memory/map.js";
import { makeJobMemory, taskErrorsIn } from "../node/memory.js";
import { openFfi } from "../process/ffi.js";
import { type FutexSetup, futexOf } from "../process/futex.js";
import { hostIdentity, startTimeOf } from "../process/identity.js";
import { type MappedMemory, mapProcessMemory } from "../process/mapping.js";
import { findKoffi, ProcessMemories } from "../process/process-memory.js";
import { environment, nodeModule } from "../support/host.js";
import { decodeText, encodeText } from "../support/text.js";
import type { TaskBootstrap } from "./bootstrap.js";
import { checkLimits } from "./limits.js";
import type { WatchedProcess, WatchSetup } from "./process-watch.js";

/** What a process says of itself. */
interface Introduction {
  readonly host: string;
  readonly pid: number;
  readonly started: string;
  readonly version: string;
  readonly layoutHash: number;
}

/** The memory that rank 0 has made. */
interface Offer {
  readonly descriptor: number;
  readonly bytes: number;
  /** Pointer to the job header. */
  readonly job: number;
}

const MEMORY_KEY = "memory";

/** What a task in this process needs. */
export interface Joined {
  readonly start: TaskBootstrap;
  readonly memory: Memory;
  /** To call once the client is closed. */
  readonly onLeave: () => void;
}

/** Joins the job of the launcher that started this process. @throws PAMIR_NOT_IN_JOB and what openBootstrap() throws */
export async function joinByLauncher(): Promise<Joined> {
  const { bootstrap } = await openBootstrap(process.env, { insecure: environment("PAMIR_INSECURE") === "1" }).catch(
    (cause: unknown): OpenedBootstrap => {
      const { code, message } = cause as PamiError;
      if (code !== "PAMIR_LAUNCHER" || !message.startsWith("no launcher")) throw cause;
      throw new PamiError("PAMIR_NOT_IN_JOB", `attach() in a thread that no job started: use launch(), here or above`, {
        cause,
      });
    },
  );
  try {
    return await joinBy(bootstrap);
  } finally {
    await bootstrap.close();
  }
}

async function joinBy(bootstrap: Bootstrap): Promise<Joined> {
  const { rank, size } = bootstrap;
  const own: Introduction = {
    host: hostIdentity(),
    pid: process.pid,
    started: startTimeOf(process.pid),
    version: VERSION,
    layoutHash: LAYOUT_HASH,
  };
  await put(bootstrap, `task-${rank}`, own);
  await bootstrap.barrier();
  const all: Introduction[] = [];
  for (let task = 0; task < size; task++) all.push(await get<Introduction>(bootstrap, `task-${task}`));
  for (const [task, { host, version, layoutHash }] of all.entries()) {
    if (layoutHash !== LAYOUT_HASH) {
      const text = `task ${task} has pamir ${version} (layout ${layoutHash}), this one ${VERSION} (layout ${LAYOUT_HASH})`;
      throw new PamiError("PAMIR_VERSION", `${text}: use one copy`);
    }
    if (host === "" || host !== own.host) {
      const text = `task ${task} runs on another host, or in another container, than task ${rank}`;
      throw new PamiError("PAMIR_NO_PROCESSES", `processes can't share memory here: ${text}`);
    }
  }
  const mapped = rank === 0 ? await makeMemory(bootstrap, size) : await openOffered(bootstrap, all[0] as Introduction);
  const memory = openMemory(mapped.shared, futexOf(mapped.futex));
  const others = all.map(({ pid, started }, task) => ({ task, pid, started })).filter(({ task }) => task !== rank);
  const stop = watch(mapped, others);
  const forget = recordErrors(memory, mapped.job, rank);
  const start: TaskBootstrap = {
    version: VERSION,
    layoutHash: LAYOUT_HASH,
    memory: mapped.shared,
    room: undefined,
    why: "",
    job: mapped.job,
    module: undefined,
    task: rank,
    started: size,
    kernel: "wasm",
    args: undefined,
    debug: undefined,
    lock: "",
    futex: mapped.futex,
  };
  const onLeave = (): void => {
    stop();
    forget();
  };
  return { start, memory, onLeave };
}

type JoinedMemory = MappedMemory & { readonly job: number };

/** In task 0: makes the memory, and offers it until all have mapped it. */
async function makeMemory(bootstrap: Bootstrap, tasks: number): Promise<JoinedMemory> {
  const memories = new ProcessMemories();
  const limits = checkLimits({}, tasks);
  const { map, memory, shared } = makeJobMemory({ limits, isFixed: false, base: 0 }, true, memories.make);
  const kernel = selectKernel("ts", shared, memory);
  kernel.storeWord(map.job + JOB_STARTED_OFFSET, tasks);
  const { descriptor, bytes } = memories.setup as { descriptor: number; bytes: number };
  await put(bootstrap, MEMORY_KEY, { descriptor, bytes, job: map.job } satisfies Offer);
  await bootstrap.barrier();
  await bootstrap.barrier();
  fs().closeSync(descriptor);
  return { shared: shared as WebAssembly.Memory, futex: memories.futex as FutexSetup, job: map.job };
}

async function openOffered(bootstrap: Bootstrap, { pid }: Introduction): Promise<JoinedMemory> {
  await bootstrap.barrier();
  const { descriptor: theirs, bytes, job } = await get<Offer>(bootstrap, MEMORY_KEY);
  const descriptor = fs().openSync(`/proc/${pid}/fd/${theirs}`, "r+");
  try {
    return { ...mapProcessMemory({ descriptor, bytes, ffi: findKoffi() }, job), job };
  } finally {
    fs().closeSync(descriptor);
    await bootstrap.barrier();
  }
}

/** Starts the thread that watches the other processes. Returns what ends it. */
function watch({ shared, futex, job }: JoinedMemory, processes: readonly WatchedProcess[]): () => void {
  if (processes.length === 0) return () => {};
  const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  const stop = openFfi(futex.ffi).makeEvent();
  const workerData: WatchSetup = { shared, futex, job, processes, stop };
  const worker = new Worker(watchSource, {
    eval: true,
    workerData,
    name: "pamir watch",
    execArgv: [],
    trackUnmanagedFds: false,
  });
  worker.unref();
  let isOver = false;
  const end = (): void => {
    if (!isOver) fs().writeSync(stop, new BigUint64Array([1n]));
  };
  // The thread blocks in a foreign call, and Node waits for its end when it exits.
  process.once("exit", end);
  worker.once("exit", () => {
    isOver = true;
    process.off("exit", end);
    fs().closeSync(stop);
  });
  return end;
}

/** Records the error that ends this process, for the others. Returns what ends that. */
function recordErrors(memory: Memory, job: number, task: number): () => void {
  const errors = taskErrorsIn(memory, readMap(memory, job));
  const record = (thrown: unknown): void => {
    const { name = "Error", message = String(thrown), code, stack } = (thrown ?? {}) as Error & { code?: string };
    errors.write(task, { name, message, code, stack });
  };
  process.on("uncaughtExceptionMonitor", record);
  return () => process.off("uncaughtExceptionMonitor", record);
}

const fs = (): typeof import("node:fs") => nodeModule("fs") as typeof import("node:fs");

function put(bootstrap: Bootstrap, key: string, value: object): Promise<void> {
  return bootstrap.put(key, encodeText(JSON.stringify(value)));
}

async function get<Value>(bootstrap: Bootstrap, key: string): Promise<Value> {
  const bytes = await bootstrap.get(key);
  if (bytes === undefined) throw new PamiError("PAMIR_BOOTSTRAP", `a process of the job has not stored ${key}`);
  return JSON.parse(decodeText(bytes)) as Value;
}
