// @ts-check
// A job of four tasks that are all asleep; prints the share of a core that the process takes for two seconds.
import { launch } from "pamir";

const task = new URL("../tasks/sleeper.js", import.meta.url);
const kernel = process.argv[2] === "ts" ? "ts" : "wasm";
const job = await launch(task, { tasks: 4, join: true, kernel, heapBytes: 2 ** 22 });
const context = job.client.createContext();
const pause = (/** @type {number} */ milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const isIdle = () => {
  const tasks = job.dump().tasks.slice(1);
  return tasks.every(({ state, parked }) => state === "up" && parked);
};
while (!isIdle()) await pause(20);
const sleeping = context.progress().catch(() => {});
await pause(300); // what starting has left to do: compilation, collection
const [before, start] = [process.cpuUsage(), performance.now()];
await pause(2000);
const used = process.cpuUsage(before);
const share = (used.user + used.system) / 1000 / (performance.now() - start);
console.log(JSON.stringify({ share, parked: job.dump().tasks.every(({ parked }) => parked) }));
await job.terminate();
await sleeping;
