// @ts-check
// Blocking barriers and sums in place of two threads, again and again. Task 0 prints the bytes of garbage of each.
import { isMainThread } from "node:worker_threads";
import { attach, launch, SUCCESS } from "pamir";

const CALLS = 2000;

if (isMainThread) await launch(new URL(import.meta.url), { tasks: 2 });
else {
  const client = await attach();
  const world = await client.world();
  const receive = new Float64Array(1);
  const sum = /** @type {const} */ ({ send: null, receive, operation: "max" });
  for (const call of [() => world.barrierSync(), () => world.allreduceSync(sum)]) {
    /** Bytes of some calls. */
    const stretch = () => {
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < CALLS; i++) if (call() !== SUCCESS) throw world.lastError;
      return process.memoryUsage().heapUsed - before;
    };
    for (let count = 0; count < 200; count++) stretch();
    // The least, since a thread that loses its core makes the other one sleep; but the collector may run meanwhile.
    const made = Array.from({ length: 50 }, stretch).filter((bytes) => bytes >= 0);
    if (client.task === 0) console.log(Math.min(...made) / CALLS);
  }
}
