// @ts-check
// A buffer goes to a worker and back: filled by the sender, summed by the receiver, one way and the other.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { fill, repeat, sumOf } from "./meter.js";

const GIVE = 1;

/** @param {{ bytes: number, seconds: number }} options @returns bytes per second, each way counted */
export async function run({ bytes, seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true });
  const { client } = job;
  const context = client.createContext();
  const to = client.endpoint(1);
  let region = client.createRegion(bytes);
  let sum = 0;
  let isBack = false;
  context.dispatch(GIVE, (message) => {
    region = message.keep();
    sum = sumOf(region.bytes);
    isBack = true;
  });
  let value = 0;
  const time = await repeat(seconds, async () => {
    fill(region.bytes, ++value & 127);
    isBack = false;
    context.send({ to, dispatch: GIVE, payload: region.bytes, transfer: true });
    while (!isBack) await context.progress();
  });
  await job.terminate();
  if (sum === 0) throw new Error("the sum is 0");
  return { figure: (2 * bytes) / time };
}

if (!isMainThread) {
  const client = await attach();
  const context = client.createContext();
  context.dispatch(GIVE, (message) => {
    const region = message.keep();
    fill(region.bytes, (sumOf(region.bytes) & 127) | 1);
    context.send({ to: message.origin, dispatch: GIVE, payload: region.bytes, transfer: true });
  });
  while (!context.closed) await context.progress();
}
