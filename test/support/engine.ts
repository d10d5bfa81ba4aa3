// Jobs whose engine thread is the test's to run: tasks of this thread, made of the parts that launch() makes them of.
import { Worker } from "node:worker_threads";
import { JOB_DUE_OFFSET, TASK_PARKED_OFFSET, TASK_STATE_OFFSET, TASK_UP } from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { engineSource } from "../../src/generated/engine.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import { wasmModule } from "../../src/kernel/wasm.js";
import { engineSlot, type Limits, type MemoryMap } from "../../src/memory/map.js";
import { markEngineDead } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import { makeClient } from "../../src/start/client.js";
import type { EngineSetup } from "../../src/start/tasks/engine-worker.js";

export interface EngineJob {
  readonly clients: readonly Client[];
  /** As the tasks have it, but for `wrap`. */
  readonly kernel: Kernel;
  readonly map: MemoryMap;
  readonly words: Int32Array;
  /** One turn of the engine, on this thread; how many contexts have something left. */
  serve(): number;
  /** Whether it has been called, so that there may be something to do. */
  isCalled(): boolean;
  /** The engine ends, between two turns. */
  end(): void;
  /** Has a thread be the engine; resolves once it is. `stop` ends the thread, of which nobody is told. */
  start(): Promise<{ stop(): Promise<number> }>;
  /** Whether that sleeps, or is about to. */
  isAsleep(): boolean;
  /** Free pages of the heap. */
  free(): number;
}

const LIMITS: Limits = { tasks: 2, contexts: 3, laneBytes: 16_384, heapBytes: 32 * 1024 ** 2 };

/** @param wrap what the tasks have in place of the kernel */
export function engineJob(
  name: KernelName,
  limits: Partial<Limits> = {},
  wrap: (kernel: Kernel) => Kernel = (kernel) => kernel,
): EngineJob {
  const room = makeJobMemory(
    { limits: { ...LIMITS, ...limits, engine: true }, isFixed: true, base: 0 },
    name === "wasm",
  );
  const { map, shared, memory } = room;
  const kernel = selectKernel(name, shared, memory);
  const slot = engineSlot(map);
  const clients = Array.from({ length: map.tasks }, (_, task) =>
    makeClient({ kernel: wrap(kernel), memory, map, task }),
  );
  return {
    clients,
    kernel,
    map,
    words: memory.words,
    serve: () => {
      kernel.storeWord(slot + TASK_STATE_OFFSET, TASK_UP);
      return kernel.engineServe(map.job);
    },
    isCalled: () => {
      const words = (map.tasks * map.contexts + 31) >>> 5;
      return Array.from({ length: words }, (_, i) => kernel.loadWord(map.job + JOB_DUE_OFFSET + 4 * i)).some(Boolean);
    },
    end: () => markEngineDead(kernel, map),
    start: async () => {
      const workerData: EngineSetup = { shared, module: name === "wasm" ? wasmModule() : undefined, job: map.job };
      const worker = new Worker(engineSource, { eval: true, workerData });
      await new Promise((resolve) => worker.once("online", resolve));
      return { stop: () => worker.terminate() };
    },
    isAsleep: () => kernel.loadWord(slot + TASK_PARKED_OFFSET) !== 0,
    free: () => kernel.heapFreePages(map.job),
  };
}
