// @ts-check
// Answers each message with the same value, by postMessage().
import { parentPort } from "node:worker_threads";

parentPort?.on("message", (message) => parentPort?.postMessage(message));
