// Watches the clock on a thread of its own: see ../crowd.ts.
import { parentPort } from "node:worker_threads";
import { usualShare } from "../crowd.js";

parentPort?.on("message", (milliseconds: number) => parentPort?.postMessage(usualShare(milliseconds)));
