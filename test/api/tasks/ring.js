// @ts-check
// A task that hears from the task before it, and tells the next one.
import { attach } from "pamir";
import { DATA, PATIENCE } from "./support.js";

const client = await attach();
const context = client.createContext();
let heard = 0;
context.dispatch(DATA, () => {
  heard++;
});
const next = client.endpoint((client.task + 1) % client.size);
context.send({ to: next, dispatch: DATA, payload: new Uint8Array(100_000), onLocal: () => {} });
while (heard === 0) await context.progress({ timeout: PATIENCE });
await client.close({ drain: true, timeout: PATIENCE });
