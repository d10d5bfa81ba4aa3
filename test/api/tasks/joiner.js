// @ts-check
// A worker that others start: joins a job through a port, or parentPort, as often as it is asked.
import { parentPort, workerData } from "node:worker_threads";
import { attach } from "pamir";
import { DATA, OTHER, QUIT } from "./support.js";

/**
 * One job: answers calls until it is told to leave. What it came to.
 * @param {import("pamir").AttachPort} [port]
 */
export async function join(port) {
  const client = await attach(port);
  const context = client.createContext();
  context.dispatch(DATA, ({ payload }) => Uint8Array.of(payload[0] ?? 0, client.task, client.size));
  context.dispatch(OTHER, () => process.exit(5));
  context.dispatch(QUIT, () => client.close());
  while (!client.closed) {
    try {
      await context.progress();
    } catch (error) {
      const { code } = /** @type {{ code: string }} */ (error);
      // Whoever is slow to leave is interrupted too: a thread that had no core for a while goes on to what it was asked.
      if (code !== "PAMIR_INTERRUPTED") return code;
    }
  }
  return `task ${client.task} of ${client.size}, ${client.args}`;
}

/** What piscina calls. @param {{ port: import("node:worker_threads").MessagePort }} given */
export default async function run({ port }) {
  const came = await join(port);
  port.close();
  return came;
}

const how = workerData?.joins;
if (how === "parentPort" && parentPort !== null) {
  const came = await join(parentPort);
  parentPort.postMessage(came);
} else if (how === "ports") {
  parentPort?.once("message", (/** @type {import("node:worker_threads").MessagePort[]} */ ports) => {
    for (const [i, port] of ports.entries()) {
      const tell = (/** @type {string} */ came) => parentPort?.postMessage([i, came]);
      join(port).then(tell, (error) => tell(error.code));
    }
  });
} else if (how === "launched") await join();
