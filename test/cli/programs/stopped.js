// @ts-check
// Tasks 2 and 3 of four are stopped until the other two have given them up, finished, and ended.
import { spawn } from "node:child_process";
import { attach } from "pamir";

const PATIENCE = { timeout: 50_000 };
const client = await attach();
client.createContext();
const world = await client.world(PATIENCE);
const pids = new Int32Array(4);
let isWhole = true;
// Task 0 stops the others once its own part is done: that of task 1 may still wait for theirs.
await world.allgather({ send: Int32Array.of(process.pid), receive: pids }).catch(() => {
  isWhole = false;
});
if (client.task === 0) {
  const [first, second, ...stopped] = pids;
  const others = stopped.join(" ");
  const isUnderWay = `kill -0 ${first} || kill -0 ${second}`;
  const script = `kill -STOP ${others}; while ${isUnderWay}; do sleep 0.05; done; kill -CONT ${others}`;
  spawn("sh", ["-c", script], { detached: true, stdio: "ignore" }).unref();
}
while (isWhole) {
  await world.barrier(PATIENCE).catch(() => {
    isWhole = false;
  });
}
try {
  console.log(`goes on with ${(await world.shrink(PATIENCE)).size}`);
} catch (error) {
  console.log(/** @type {{ code: string }} */ (error).code);
}
client.close();
