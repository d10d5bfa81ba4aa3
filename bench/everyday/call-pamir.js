// @ts-check
// A small call and its reply, one after the other.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { repeat } from "./meter.js";

const CALL = 1;

/** @param {{ seconds: number }} options @returns µs of a call */
export async function run({ seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true });
  const context = job.client.createContext();
  const to = job.client.endpoint(1);
  const request = new Uint8Array(8);
  const time = await repeat(seconds, () => context.call(to, CALL, request));
  await job.terminate();
  return { figure: time * 1e6 };
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  const reply = new Uint8Array(8);
  context.dispatch(CALL, () => reply);
  while (!context.closed) await context.progress();
}
