// @ts-check
// SHA-256 of many blocks by a pool of workers. Some workers die on purpose: their calls are begun again on others. Prints how far
// it is, and checks the hash of all hashes.
// Shows: pool, serve, map, retries, a callback, events, stats.
//   node examples/hash-pool.js [wasm | ts]
import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";
import { pool, serve } from "pamir/pool";

const BLOCKS = 40;
const BLOCK_BYTES = 2 ** 20;
const DEATHS = 4;
const CORRECT = "456b5e1e";

const functions = {
  /**
   * The caller keeps `isFatal`, and knows which blocks have been tried.
   * @param {Uint8Array} block @param {() => boolean} isFatal
   */
  async hash(block, isFatal) {
    if (await isFatal()) process.exit(1); // as if it were out of memory
    return createHash("sha256").update(block).digest();
  },
};

/** The same bytes on each machine. @param {number} number */
function blockOf(number) {
  const words = new Uint32Array(BLOCK_BYTES / 4);
  for (let i = 0, word = number + 1; i < words.length; i++) {
    word = Math.imul(word ^ (word >>> 15), 0x2c1b3c6d) + i;
    words[i] = word;
  }
  return new Uint8Array(words.buffer);
}

async function start() {
  const kernel = /** @type {import("pamir").KernelName | undefined} */ (process.argv[2]);
  /** @type {import("pamir/pool").Pool<typeof functions>} */
  const workers = await pool(new URL(import.meta.url), { workers: 2, retries: 1, kernel });
  let deaths = 0;
  const stop = workers.events(({ type }) => {
    if (type === "exit") deaths++;
  });
  const tried = new Set();
  const numbers = Array.from({ length: BLOCKS }, (_, number) => number);
  const begin = performance.now();
  const hashes = workers.map(numbers, (number) =>
    workers.hash(blockOf(number), () => {
      const isFirst = !tried.has(number);
      tried.add(number);
      return isFirst && number % (BLOCKS / DEATHS) === 1;
    }),
  );
  const all = createHash("sha256");
  let done = 0;
  for await (const hash of hashes) {
    all.update(hash);
    if (++done % (BLOCKS / 4) === 0) console.log(`${done} of ${BLOCKS} blocks`);
  }
  const rate = (BLOCKS * BLOCK_BYTES) / 1e3 / (performance.now() - begin);
  stop();
  await workers.close();
  const root = all.digest("hex").slice(0, 8);
  const isRight = root === CORRECT && deaths === DEATHS && workers.stats.failed === 0;
  console.log(
    `hash: ${root} ${isRight ? "as it must be" : `instead of ${CORRECT}`}, ${deaths} workers died, ${Math.round(rate)} MB/s`,
  );
  process.exitCode = isRight ? 0 : 1;
}

if (isMainThread) await start();
else serve(functions);
