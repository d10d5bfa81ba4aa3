// Tasks of two or more nodes: the process with the link of one node is killed, exits, or is cut off otherwise.
import { attach } from "pamir";

const [what, how] = process.argv.slice(2);
const PATIENCE = { timeout: 50_000 };
const client = await attach();
const context = client.createContext();
context.dispatch(1, () => {});
let world = await client.world(PATIENCE);
// For a task whose messages of the barrier were not out when the other one ended, the barrier fails.
await world.barrier(PATIENCE).catch(() => {});
const half = client.size / 2;

/** Ends the process that has the link of the node with the middle task. */
function end() {
  if (how === "exit") process.exit(7);
  process.kill(process.pid, "SIGKILL");
}

if (what === "shrink") {
  if (client.task === half) end();
  await world.barrier(PATIENCE).catch(() => {});
  world = await world.shrink(PATIENCE);
  console.log(`goes on with ${world.size}`);
} else {
  // One slot or none is bound so far: those of the geometry's tree. The last task has never spoken to all others.
  if (client.task === half) end();
  if (client.task > half) {
    for (let task = 0; task < half; task++) await context.whenEnded(task, PATIENCE);
    console.log("all have ended");
  }
}
