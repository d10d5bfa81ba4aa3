// @ts-check
// Ordinary buffers to a worker that reads every cache line, by call() one after the other, or by send() as a stream.
import { isMainThread } from "node:worker_threads";
import { attach, EAGAIN, launch } from "pamir";
import { repeat, touch } from "./meter.js";

const DATA = 1;

/** @param {{ by: "call" | "send", bytes: number, seconds: number }} options @returns bytes per second */
export async function run({ by, bytes, seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true });
  const context = job.client.createContext();
  const to = job.client.endpoint(1);
  const payload = new Uint8Array(bytes).fill(1);
  const call = () => context.call(to, DATA, payload);
  const send = async () => {
    while (context.send({ to, dispatch: DATA, payload, queue: false }) === EAGAIN) await context.whenRoom(to, bytes);
  };
  const time = await repeat(seconds, by === "call" ? call : send);
  await job.terminate();
  return { figure: bytes / time };
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  context.dispatch(DATA, (message) => touch(message.payload));
  while (!context.closed) await context.progress();
}
