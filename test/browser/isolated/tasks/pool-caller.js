// @ts-check
// A worker of a page that has a pool of its own, and blocks for its results.
import { pool } from "pamir/pool";

/** @type {import("pamir/pool").Pool<typeof import("./pool-worker.js")["api"]>} */
const workers = await pool(() => new Worker(new URL("./pool-worker.js", import.meta.url), { type: "module" }), {
  workers: 1,
  heapBytes: 2 ** 24,
});
/** @type {unknown} */
let blocked;
try {
  blocked = workers.sync.square(12);
} catch (error) {
  blocked = /** @type {{ code: string }} */ (error).code;
}
postMessage([blocked, await workers.square(5)]);
await workers.close();
