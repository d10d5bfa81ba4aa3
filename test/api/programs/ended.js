// Ends an unreferenced job by terminate(), which the program awaits: "all", of all tasks; "one", of the last; "connect", of a
// connection to a worker that the program has started.
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { attach, launch } from "pamir";
import { connect, serve } from "pamir/pool";

const how = process.argv[2];
if (!isMainThread) {
  if (how === "connect") serve({ square: (/** @type {number} */ n) => n ** 2 }, { port: parentPort ?? undefined });
  else {
    const context = (await attach()).createContext();
    for (;;) context.advanceUntil(() => false);
  }
} else {
  for (let i = 0; i < 5; i++) {
    if (how === "connect") {
      const worker = await connect(new Worker(new URL(import.meta.url), { argv: [how] }));
      await worker.close();
      continue;
    }
    const job = await launch(new URL(import.meta.url), { tasks: 2, join: true });
    job.unref();
    if (how === "one") await job.terminate(1);
    await job.terminate();
  }
  console.log("over");
}
