// @ts-check
// Answers each message with the same value, by postMessage(); with what is to be transferred, by a transfer list.
import { parentPort } from "node:worker_threads";

parentPort?.on("message", (message) =>
  parentPort?.postMessage(message, message.isMoved ? [message.value.buffer] : undefined),
);
