// Two tasks greet each other: the example of the README.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

if (isMainThread) {
  const job = await launch(new URL(import.meta.url), { tasks: 2 });
  await job.exited;
} else {
  const client = await attach();
  const context = client.createContext();
  let greeted = false;
  context.dispatch(1, (message) => {
    console.log(`task ${client.task} hears: ${new TextDecoder().decode(message.payload.slice())}`);
    greeted = true;
  });
  const other = client.endpoint(1 - client.task);
  context.sendImmediate(other, 1, null, new TextEncoder().encode(`hello from task ${client.task}`));
  context.advanceUntil(() => greeted, { timeout: 10_000 });
}
