// @ts-check
// Ordinary buffers to a worker that reads every cache line, by call() one after the other, or by send() as a stream.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { onMessage, sender } from "./large.js";
import { repeat, touch } from "./meter.js";

const CALL = 1;
const SEND = 2;

/** @param {{ by: "call" | "send", bytes: number, seconds: number }} options @returns bytes per second */
export async function run({ by, bytes, seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true });
  const context = job.client.createContext();
  const to = job.client.endpoint(1);
  const payload = new Uint8Array(bytes).fill(1);
  const send = sender(context, to, SEND);
  const round = by === "call" ? () => context.call(to, CALL, payload) : () => send(payload);
  const time = await repeat(seconds, round);
  await job.terminate();
  return { figure: bytes / time };
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  for (const id of [CALL, SEND]) onMessage(context, id, touch);
  while (!context.closed) await context.progress();
}
