// @ts-check
// Two jobs, one after the other, whose tasks send each other ten messages; the environment says whether they are traced.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { DATA } from "./support.js";

if (isMainThread) {
  for (let i = 0; i < 2; i++) await (await launch(new URL(import.meta.url), { tasks: 2 })).exited;
} else {
  const client = await attach();
  const context = client.createContext();
  let heard = 0;
  context.dispatch(DATA, () => {
    heard++;
  });
  for (let i = 0; i < 10; i++) context.sendImmediate(client.endpoint(1 - client.task), DATA);
  context.advanceUntil(() => heard === 10, { timeout: 60_000 });
  client.close();
}
