// @ts-check
// A task that leaves once it has heard of the third task of the job, and has got its answer.
import { attach } from "pamir";
import { DATA, ECHO, PATIENCE } from "./support.js";

const client = await attach();
const context = client.createContext();
context.dispatch(ECHO, () => Uint8Array.of(client.task));
let met = 0;
context.dispatch(DATA, () => {
  met++;
});
await context.whenStarted(2, { timeout: PATIENCE });
const [third] = await context.call(client.endpoint(2), ECHO, null, { timeout: PATIENCE });
if (third !== 2) process.exit(1);
context.sendImmediate(client.endpoint(2), DATA);
// The third one stays until all have met it, itself included.
while (client.task === 2 && met < 3) await context.progress({ timeout: PATIENCE });
await context.drain();
client.close();
