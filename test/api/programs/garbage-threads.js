// @ts-check
// Blocking barriers and sums in place of two threads, again and again. Task 0 prints the bytes of garbage of each, besides those of
// sleeps: on a busy machine, a thread that loses its core makes the other one sleep.
import { isMainThread } from "node:worker_threads";
import { attach, launch, SUCCESS } from "pamir";

const CALLS = 400;
/** Bytes of a sleep, at the most. */
const SLEEP_BYTES = 1000;

if (isMainThread) await launch(new URL(import.meta.url), { tasks: 2 });
else {
  const client = await attach();
  const world = await client.world();
  const receive = new Float64Array(1);
  const sum = /** @type {const} */ ({ send: null, receive, operation: "max" });
  for (const call of [() => world.barrierSync(), () => world.allreduceSync(sum)]) {
    const sleeps = () => client.dump().tasks[client.task]?.sleeps ?? 0;
    /** Bytes of some calls, and sleeps meanwhile. */
    const stretch = () => {
      const sleepsBefore = sleeps();
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < CALLS; i++) if (call() !== SUCCESS) throw world.lastError;
      const bytes = process.memoryUsage().heapUsed - before;
      return { bytes, slept: sleeps() - sleepsBefore };
    };
    for (let count = 0; count < 500; count++) stretch();
    // Below 0, the collector has run.
    const made = Array.from({ length: 250 }, stretch).filter(({ bytes }) => bytes >= 0);
    const awake = made.filter(({ slept }) => slept === 0);
    const besides = (awake.length > 0 ? awake : made).map(({ bytes, slept }) => bytes - SLEEP_BYTES * slept);
    if (client.task === 0) console.log(Math.max(0, Math.min(...besides)) / CALLS);
  }
}
