// @ts-check
// Answers by its port.
import { parentPort, workerData } from "node:worker_threads";
import { attach } from "pamir";

const client = await attach(workerData?.isAdopted ? (parentPort ?? undefined) : undefined);
const context = client.createContext();
context.ready();
const port = /** @type {import("node:worker_threads").MessagePort | undefined} */ (
  /** @type {unknown} */ (client.port)
);
port?.on("message", (given) => {
  if (given === "end") port.postMessage("last");
  if (given === "close" || given === "end") client.close();
  if (given?.port === undefined) return;
  given.port.postMessage(`${client.task}: ${given.buffer.byteLength}`);
  port.postMessage("heard");
});
try {
  while (!client.closed) await context.progress();
} catch {
  // The job is over.
}
