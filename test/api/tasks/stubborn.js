// @ts-check
// A worker of somebody else that reads no message until its flag is up: it does not leave when it is asked to.
import { parentPort, workerData } from "node:worker_threads";
import { attach } from "pamir";

const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
const client = await attach(port);
client.createContext();
port.postMessage("blocks");
Atomics.wait(new Int32Array(workerData.flag), 0, 0);
