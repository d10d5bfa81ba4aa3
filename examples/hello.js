// Two tasks send each other a number: the example of the README.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

if (isMainThread) await launch(new URL(import.meta.url), { tasks: 2 });
else {
  const client = await attach();
  const context = client.createContext();
  let heard = 0;
  context.dispatch(1, (message) => {
    heard = message.getInt32(0);
    console.log(`task ${client.task} hears ${heard}`);
  });
  context.sendImmediate(1 - client.task, 1, null, new Int32Array([42 + client.task]));
  context.advanceUntil(() => heard > 0, { timeout: 10_000 });
}
