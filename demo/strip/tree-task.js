// @ts-check
// A task of the allreduce through which the strip steps: its number goes up a tree, and the sum of all comes down it.
import { attach } from "pamir";
import { BEGIN, SUM, THERE } from "./tree-ids.js";

const client = await attach();
const context = client.createContext();
const page = client.endpoint(0);
let mayBegin = false;
context.dispatch(BEGIN, () => {
  mayBegin = true;
});
const { members } = /** @type {{ members: number[] }} */ (client.args);
const all = await client.createGeometry(members);
context.sendImmediate(page, THERE);
while (!mayBegin) await context.progress();
// Tasks of one memory need no messages for allreduce(). These two algorithms send them, as between machines.
const send = Int32Array.of(client.task);
const sum = await all.reduce({ send, operation: "sum", algorithm: "binomial" });
const buffer = Int32Array.from(sum ?? [0]);
await all.broadcast({ buffer, algorithm: "binomial" });
context.sendImmediate(page, SUM, null, buffer);
while (client.task > 0) await context.progress();
