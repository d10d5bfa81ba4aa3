// @ts-check
// A task in a process that a launcher has started. It talks to all others; then its argument says how some of them end.
import { attach, SUCCESS } from "pamir";

const [how = ""] = process.argv.slice(2);
const PATIENCE = { timeout: 30_000 };
const client = await attach();
const context = client.createContext();
const region = client.createRegion(4096);
let came = 0;
let sum = 0;
/** @type {number[]} */
const handles = [];
context.dispatch(1, (message) => {
  came++;
  sum += message.getInt32(0);
  handles[message.origin & 0xffffff] = message.getInt32(4);
});
for (let to = 0; to < client.size; to++)
  while (context.sendImmediate(to, 1, null, new Int32Array([client.task, region.handle])) !== 0) context.advance();
// Half of them block, the others do not.
if (client.task % 2 === 0) context.advanceUntil(() => came === client.size, PATIENCE);
else while (came < client.size) await context.progress(PATIENCE);
/** What this task saw of the ends of others, by task. */
/** @type {Record<number, number>} */
const seen = {};
/** @param {number} task */
const sees = async (task) => {
  await context.whenEnded(client.endpoint(task), PATIENCE);
  seen[task] = context.sendImmediate(task, 1, null, new Int32Array(2));
};
if (how === "kill" || how === "throw") {
  if (client.task === 1 && how === "kill") process.kill(process.pid, "SIGKILL");
  if (client.task === 1) throw new RangeError("on purpose");
  await sees(1);
}
if (how === "leave" && client.task > 0) await sees(0);
if (how === "late" && client.task === 1) {
  for (let task = 0; task < client.size; task++) if (task !== 1) await sees(task);
  process.kill(process.pid, "SIGKILL");
}
console.log(
  JSON.stringify({
    kernel: client.kernel,
    task: client.task,
    size: client.size,
    sum,
    seen,
    success: SUCCESS,
    pid: process.pid,
  }),
);
if (how !== "kill" && how !== "throw" && how !== "leave") await context.drain();
client.close();
