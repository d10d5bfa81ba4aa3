// @ts-check
// A program for `pamir run --restart` in nodes of two tasks: the node of tasks 2 and 3 ends by a signal, while task 0 has a
// call under way there. Task 0 hears of both tasks that come in their place, and these two talk to each other.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
const PATIENCE = { timeout: 60_000 };
/** @param {number} task */
const ask = (task) => context.call(client.endpoint(task), 1, null, PATIENCE);
let isOver = false;
context.dispatch(1, () => (client.task === 2 ? new Promise(() => {}) : Uint8Array.of(client.task, client.rank)));
context.dispatch(2, async (message) => ask(message.getInt32(0)));
context.dispatch(3, () => {
  isOver = true;
});
if (client.rank === 0) {
  const pending = ask(2).catch(({ code }) => code);
  await ask(1);
  await ask(3);
  context.sendImmediate(client.endpoint(2), 4);
  const ended = await pending;
  const next = [];
  for (const task of [4, 5]) {
    await context.whenEnded(client.endpoint(task - 2), PATIENCE);
    await context.whenStarted(task, PATIENCE);
    next.push([...(await ask(task))]);
  }
  const between = await context.call(client.endpoint(4), 2, Int32Array.of(5), PATIENCE);
  console.log(JSON.stringify({ ended, ranks: next.map(([, rank]) => rank).sort(), between: between[0] }));
  for (const task of [1, 4, 5]) context.sendImmediate(client.endpoint(task), 3);
  await context.drain();
} else {
  context.dispatch(4, () => process.kill(process.pid, "SIGKILL"));
  while (!isOver) await context.progress(PATIENCE);
}
client.close();
