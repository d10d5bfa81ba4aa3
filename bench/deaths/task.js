// @ts-check
// A task that ends: busy with traffic, parked in advanceUntil(), or asleep in progress().
import { attach } from "pamir";
import { END, end, READY } from "./ends.js";

const client = await attach();
const { how, state, shared } = /** @type {{ how: string, state: string, shared: SharedArrayBuffer }} */ (client.args);
const words = new Int32Array(shared);
const context = client.createContext();
context.dispatch(1, () => end(how, shared));
// A call whose reply never comes.
context.dispatch(2, () => new Promise(() => {}));
Atomics.store(words, READY, 1);
Atomics.notify(words, READY);
if (state === "busy") {
  while (Atomics.load(words, END) === 0) {
    context.sendImmediate(client.endpoint(0), 1, null, null, false);
    context.advance();
  }
  end(how, shared);
}
if (state === "parked") context.advanceUntil(() => false);
for (;;) await context.progress();
