// @ts-check
// A task that sends one message to the other, and ends with the other's.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
let came = false;
context.dispatch(1, () => {
  came = true;
});
context.sendImmediate(client.endpoint(1 - client.task), 1);
context.advanceUntil(() => came);
const { flags } = /** @type {{ flags: Int32Array }} */ (client.args);
Atomics.add(flags, 0, 1);
Atomics.notify(flags, 0);
client.close();
