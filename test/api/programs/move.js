// @ts-check
// What move() leaves in the process that has made a pool: argv names how its workers end. Prints its handles before and after.
import { move, pool } from "pamir/pool";

const [, , how] = process.argv;
/** @type {import("pamir/pool").Pool<typeof import("../tasks/move-worker.js").api>} */
const workers = await pool(new URL("../tasks/move-worker.js", import.meta.url), {
  workers: 1,
  onError: "ignore",
  recycleAfter: how === "recycled" ? 1 : undefined,
});
/** @type {(bytes: number) => Promise<unknown>} */
const moved = async (bytes) => workers.back(move(new Uint8Array(bytes)));
await moved(10);
for (let i = 0; how === "recycled" && i < 10; i++) await moved(10_000);
// Results come for calls that were given up, and are never read.
for (let i = 0; how === "given up" && i < 3; i++)
  await workers
    .with({ timeout: 1 })
    .givenUp(1000)
    .catch(() => {});
for (let i = 0; how === "died" && i < 3; i++) await workers.die(move(new ArrayBuffer(8))).catch(() => {});
if (how === "terminated") {
  const calls = [moved(1000), moved(1000), workers.late(600_000, 8)].map((call) => call.catch(() => {}));
  await workers.terminate();
  await Promise.all(calls);
}
if (how === "closed") await Promise.all([moved(1000), workers.close()]);
// Else, the pool is left as it is, with a worker that has nothing to do.
if (how !== "left") await workers.close();
await new Promise((resolve) => setImmediate(resolve));
console.log(process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length);
