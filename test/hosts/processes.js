// A task of `pamir run --processes`: hears of all others, once while it blocks and once by its event loop.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
const heard = [0, 0];
context.dispatch(1, (message) => {
  heard[message.getInt32(0)] += 1;
});
const tell = (/** @type {number} */ round) => {
  for (let to = 0; to < client.size; to++) {
    context.send({ to: client.endpoint(to), dispatch: 1, payload: Int32Array.of(round) });
  }
};
tell(0);
context.advanceUntil(() => heard[0] === client.size, { timeout: 60_000 });
tell(1);
while (heard[1] < client.size) await context.progress({ timeout: 60_000 });
console.log(`heard all ${client.size}, blocked and not`);
await client.close({ drain: true, timeout: 60_000 });
