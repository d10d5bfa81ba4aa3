// @ts-check
// A worker of a page that has a pool of its own, and blocks for its results.
import { move, pool } from "pamir/pool";

/** @type {import("pamir/pool").Pool<typeof import("./pool-worker.js")["api"]>} */
const workers = await pool(() => new Worker(new URL("./pool-worker.js", import.meta.url), { type: "module" }), {
  workers: 1,
  heapBytes: 2 ** 24,
});
/** What a call that blocks gives, or the code of its error. @param {() => unknown} call */
function blocked(call) {
  try {
    return call();
  } catch (error) {
    return /** @type {{ code: string }} */ (error).code;
  }
}
const bytes = () => move(new Uint8Array(100));
const sync = [
  blocked(() => workers.sync.square(12)),
  await workers.square(5),
  // An argument is moved also where the caller blocks, a result is not.
  blocked(() => workers.sync.size(bytes())),
  blocked(() => workers.sync.back(bytes())),
];
postMessage([...sync, (await workers.back(bytes())).length]);
await workers.close();
