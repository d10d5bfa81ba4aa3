// @ts-check
// A job whose tasks send the launching thread a message, or meet with it in a barrier.
//   node bench/launch/pamir.js message|barrier WORKERS [FOLDER OF ANOTHER BUILD]
import { isMainThread } from "node:worker_threads";
import { report, rss } from "./report.js";

const HERE = 1;
const before = isMainThread ? rss() : 0;
const [, , first, workers, folder] = process.argv;
const { attach, launch } = await import(folder ? `${folder}/dist/index.js` : "pamir");

if (isMainThread) {
  const tasks = Number(workers) + 1;
  const start = performance.now();
  const job = await launch(new URL(import.meta.url), {
    tasks,
    join: true,
    workerOptions: { argv: process.argv.slice(2) },
  });
  if (first === "barrier") await (await job.client.world()).barrier();
  else {
    const context = job.client.createContext();
    let come = 1;
    context.dispatch(HERE, () => {
      come++;
    });
    while (come < tasks) await context.progress();
  }
  report(start, before);
} else {
  const client = await attach();
  const context = client.createContext();
  if (first === "barrier") await (await client.world()).barrier();
  else context.sendImmediate(client.endpoint(0), HERE);
  for (;;) await context.progress();
}
