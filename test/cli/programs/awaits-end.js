// @ts-check
// Task 0 waits for the end of the last task, which goes on for ever. All say when they have met.
import { attach } from "pamir";

const PATIENCE = { timeout: 90_000 };
const client = await attach();
const context = client.createContext();
context.dispatch(1, () => {});
const world = await client.world(PATIENCE);
await world.barrier(PATIENCE);
console.log("begins");
const last = client.size - 1;
if (client.task === last) for (;;) await context.progress({ timeout: 600_000 });
await context.whenEnded(last, PATIENCE);
console.log(`task ${last} has ended`);
client.close();
