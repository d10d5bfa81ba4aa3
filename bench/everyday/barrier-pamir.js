// @ts-check
// A barrier of four tasks by messages: all tell the first, which tells all.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { repeatBlocking } from "./meter.js";

const TASKS = 4;
const ARRIVED = 1;
const GO = 2;

/** The barrier of a task. @param {import("pamir").Client} client */
function barrier(client) {
  const context = client.createContext();
  const others = Array.from({ length: TASKS - 1 }, (_, i) => client.endpoint(i + 1));
  const first = client.endpoint(0);
  let arrived = 0;
  let isOpen = false;
  context.dispatch(ARRIVED, () => {
    arrived++;
  });
  context.dispatch(GO, () => {
    isOpen = true;
  });
  const allArrived = () => arrived === others.length;
  const mayGo = () => isOpen;
  return () => {
    if (client.task === 0) {
      context.advanceUntil(allArrived);
      arrived = 0;
      for (const to of others) context.sendImmediate(to, GO);
    } else {
      context.sendImmediate(first, ARRIVED);
      context.advanceUntil(mayGo);
      isOpen = false;
    }
  };
}

/** @param {{ seconds: number }} options @returns µs of a barrier */
export async function run({ seconds }) {
  const job = await launch(new URL(import.meta.url), { tasks: TASKS, join: true });
  const time = repeatBlocking(seconds, barrier(job.client));
  await job.terminate();
  return { figure: time * 1e6 };
}

if (!isMainThread) {
  const pass = barrier(await attach());
  for (;;) pass();
}
