// @ts-check
// A job to look at: tasks 1 and 2 play ping-pong, and the launching thread, task 0, is blocked for as long as it runs.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

const PING = 1;
const options = { tasks: 3, join: true, ...(process.argv[2] === "top" && { top: true }) };
const job = isMainThread ? await launch(new URL(import.meta.url), options) : undefined;
const client = job?.client ?? (await attach());
const context = client.createContext();
if (client.task === 0) {
  for (let i = 0; i < 10; i++) context.sendImmediate(client.endpoint(1), 7, null, new Uint8Array(64));
  context.dispatch(2, () => {
    process.stdout.write("up\n");
  });
  context.advanceUntil(() => false);
}
let heard = 0;
context.dispatch(PING, ({ origin }) => {
  if (heard++ === 0 && client.task === 2) context.sendImmediate(client.endpoint(0), 2);
  context.sendImmediate(origin, PING);
});
if (client.task === 1) context.sendImmediate(client.endpoint(2), PING);
for (;;) await context.progress();
