// @ts-check
// What keeps a process alive: argv names what is unreferenced. Prints "ready" and leaves the rest to the event loop.
import { launch } from "pamir";

const unreferenced = process.argv.slice(2);
const join = !unreferenced.includes("alone");
const task = new URL("../tasks/sleeper.js", import.meta.url);
const job = await launch(task, { tasks: join ? 2 : 1, join, heapBytes: 2 ** 22 });
if (unreferenced.includes("job")) job.unref();
if (unreferenced.includes("job again")) job.ref();
if (join) {
  const { client } = job;
  if (unreferenced.includes("client")) client.unref();
  if (unreferenced.includes("client again")) client.ref();
  void client
    .createContext()
    .progress()
    .catch(() => {});
}
console.log("ready");
