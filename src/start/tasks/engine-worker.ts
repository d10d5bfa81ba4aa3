// The engine thread: a worker that serves all tasks of a job, and sleeps while there is nothing to do. Its code is a string,
// so that no bundler can lose its file. The monitor starts it in Node; in a browser, the launching thread does.

import { openMemory, type SharedMemory } from "../../kernel/open.js";
import { selectEngineKernel } from "../../kernel/select.js";
import { serve } from "../../node/serve.js";
import { type FutexSetup, futexOf } from "../../process/futex.js";
import { nodeModule } from "../../support/host.js";

/** The data that the engine thread gets at its start. */
export interface EngineSetup {
  readonly shared: SharedMemory;
  /** The kernels; undefined on a host without wasm: then the engine thread runs their twin. */
  readonly module: WebAssembly.Module | undefined;
  /** Pointer to the job header. */
  readonly job: number;
  /** How threads sleep, if tasks run in processes. */
  readonly futex?: FutexSetup | undefined;
}

function start({ shared, module, job, futex }: EngineSetup): void {
  const memory = openMemory(shared, futex && futexOf(futex, shared as WebAssembly.Memory));
  serve(selectEngineKernel(shared, memory, module), memory, job);
}

const threads = nodeModule("worker_threads");
if (threads !== undefined) start(threads.workerData as EngineSetup);
else {
  const begin = ({ data }: MessageEvent<EngineSetup>): void => {
    start(data);
    postMessage("over");
  };
  addEventListener("message", begin, { once: true });
}
