// @ts-check
// Task 1 joins, and then blocks its thread.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
const world = await client.world({ timeout: 90_000 });
await world.barrier({ timeout: 90_000 });
console.log("begins");
// What it said still goes out.
if (client.task === 1) setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000), 100);
for (;;) await context.progress({ timeout: 600_000 });
