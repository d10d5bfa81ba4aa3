// @ts-check
// A program for `pamir run --detach`: each task waits until it has heard from each other one, or of its end, and says so. With
// "throw", it fails once its launcher has ended.
import { writeSync } from "node:fs";
import { attach } from "pamir";

const launcher = process.ppid;
const client = await attach();
const context = client.createContext();
/** @type {Set<number>} */
const known = new Set([client.task]);
context.dispatch(1, (message) => known.add(message.getInt32(0)));
for (let to = 0; to < client.size; to++) {
  context.whenEnded(to, () => known.add(to));
  context.send({ to, dispatch: 1, payload: Int32Array.of(client.task) });
}
const end = performance.now() + 60_000;
while (known.size < client.size && performance.now() < end) await context.progress({ timeout: 1000 });
// At once: a worker's process.stdout waits for the launcher's thread.
writeSync(1, `${JSON.stringify({ task: client.task, known: known.size })}\n`);
while (process.argv[2] === "throw" && process.ppid === launcher)
  await new Promise((resolve) => setTimeout(resolve, 20));
if (process.argv[2] === "throw") throw new RangeError(`task ${client.task}, on purpose`);
client.close();
