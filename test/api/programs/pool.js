// @ts-check
// What a pool does to the process that made it: argv names how it ends. "dropped" needs --expose-gc. Prints what came of it.
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";
import { connect, pool } from "pamir/pool";

const [, , how] = process.argv;
const entry = new URL("../tasks/pool-worker.js", import.meta.url);
/** @typedef {typeof import("../tasks/pool-worker.js").api} Api */
if (how === "absent") {
  await pool(new URL("absent.js", import.meta.url), { workers: 1, onError: "ignore" }).catch(({ code }) =>
    console.log(code),
  );
} else if (how === "connected" || how === "connecting") {
  const worker = new Worker(new URL("../tasks/pool-connected.js", import.meta.url));
  const connecting = connect(worker);
  if (how === "connected") await connecting;
  await worker.terminate();
  await connecting.then((connection) => /** @type {any} */ (connection).one()).catch(({ code }) => console.log(code));
} else {
  const workers = /** @type {import("pamir/pool").Pool<Api>} */ (await pool(entry, { workers: 1 }));
  console.log(await workers.square(3));
  if (how === "terminate") await workers.terminate();
  if (how === "close") await workers.close();
  if (how === "print") console.log(inspect(workers).includes("square"));
  if (how === "dropped") {
    const { gc } = /** @type {{ gc: () => void }} */ (/** @type {unknown} */ (globalThis));
    const timer = setInterval(gc, 5);
    const first = async () => {
      const iterator = workers.numbers.stream(1e9)[Symbol.asyncIterator]();
      return await iterator.next();
    };
    console.log(await first());
    // Each waits for the only worker: until the stream before has ended.
    let sum = 0;
    for await (const number of workers.slowly.stream(10)) sum += number;
    console.log(sum);
    console.log(await workers.slowly.stream(10).next());
    console.log(await workers.stopped(), workers.stats.failed);
    clearInterval(timer);
  }
  if (how === "given up") {
    console.log(
      await workers
        .with({ timeout: 10 })
        .spin(600_000)
        .catch(({ code }) => code),
    );
    await workers.close();
  }
}
console.log("over");
