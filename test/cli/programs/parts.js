// @ts-check
// Tasks of a geometry of which a part falls silent, by a cable that is cut, or since the last task stops the others.
import { attach } from "pamir";

const [how] = process.argv.slice(2);
const PATIENCE = { timeout: 50_000 };
const client = await attach();
const context = client.createContext();
/** @type {number[]} */
const pids = [];
context.dispatch(1, (message) => void pids.push(message.getInt32(0)));
let world = await client.world(PATIENCE);
await world.barrier(PATIENCE);
const last = client.size - 1;
if (how === "stop") {
  if (client.task < last) context.sendImmediate(last, 1, null, Int32Array.of(process.pid));
  else {
    while (pids.length < last) await context.progress(PATIENCE);
    for (const pid of pids) process.kill(pid, "SIGSTOP");
  }
} else console.log("under way");
await world.barrier(PATIENCE).catch(() => {});
/** @type {string[]} */
const codes = [];
while (world.size === client.size) {
  try {
    world = await world.shrink(PATIENCE);
  } catch (error) {
    const { code } = /** @type {{ code: string }} */ (error);
    if (!codes.includes(code)) codes.push(code);
    if (how !== "stop" || code !== "PAMIR_MINORITY") break;
    // Once their processes have ended, a launcher says so.
    for (const pid of pids.splice(0)) process.kill(pid, "SIGKILL");
  }
}
console.log(JSON.stringify({ task: client.task, size: world.size, codes }));
client.close();
