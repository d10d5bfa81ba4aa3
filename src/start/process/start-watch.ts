// Starts the thread that watches the other processes of a job: process-watch.ts.
import { watchSource } from "../../generated/watch.js";
import { openFfi } from "../../process/ffi.js";
import type { MappedMemory } from "../../process/mapping.js";
import { nodeModule } from "../../support/host.js";
import { startError, startWorker } from "../node/start-worker.js";
import type { WatchSetup } from "./process-watch.js";

/**
 * Resolves once the thread is up, with a function that ends it. The thread also ends with this process, and does not keep the
 * process running.
 * @throws PAMIR_NO_WORKERS, PAMIR_DESCRIPTORS
 */
export async function startWatch(
  { shared, futex, job }: MappedMemory & { readonly job: number },
  watched: Pick<WatchSetup, "processes" | "launcher">,
): Promise<() => void> {
  const { closeSync, writeSync } = nodeModule("fs") as typeof import("node:fs");
  const stop = openFfi(futex.ffi).makeEvent();
  const workerData: WatchSetup = { shared, futex, job, ...watched, stop };
  const worker = startWorker(watchSource, { workerData, name: "pamir watch", trackUnmanagedFds: false });
  let isOver = false;
  const end = (): void => {
    if (!isOver) writeSync(stop, new BigUint64Array([1n]));
  };
  // The thread blocks in a foreign call, and Node waits at its exit for the thread's end.
  process.once("exit", end);
  worker.once("exit", () => {
    isOver = true;
    process.off("exit", end);
    closeSync(stop);
  });
  // Held until the thread has loaded koffi: Node 20 aborts a process that exits meanwhile.
  await new Promise((resolve, reject) => {
    worker.once("message", resolve).once("error", (error) => reject(startError(error)));
  });
  worker.on("error", ({ message }) => {
    process.emitWarning(`pamir: this process learns no more of others that die: ${message}`);
  });
  worker.unref();
  return end;
}
