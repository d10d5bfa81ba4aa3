// @ts-check
// A job with an engine thread, of which only the caller is left; argv says how it goes on.
import { launch } from "pamir";

const how = process.argv[2];
const options = { join: true, heapBytes: 2 ** 24, engine: /** @type {const} */ ("thread") };
const task = new URL("../tasks/ends.js", import.meta.url);
const tasks = how === "alone" ? 1 : 3;
const job = await launch(task, { ...options, tasks, maxTasks: tasks + Number(how === "spare") });
const { client } = job;
if (how === "spare") await new Promise((resolve) => setTimeout(resolve, 200));
else await job.exited;
const context = client.createContext();
const [local, remote] = [client.createRegion(2 ** 20), client.createRegion(2 ** 20)];
local.bytes.fill(7);
let moved = false;
context.put({
  to: context.endpoint,
  local,
  remote: remote.handle,
  onRemote: () => {
    moved = remote.bytes.every((byte) => byte === 7);
  },
});
while (!moved) await context.progress({ timeout: 60_000 });
console.log(`moved ${job.engine}`);
if (how === "terminate") await job.terminate();
if (how === "close") {
  client.close();
  await job.exited;
}
