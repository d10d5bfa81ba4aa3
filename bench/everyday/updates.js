// @ts-check
// Updates at random words of a table that is spread over two tasks: by an aggregator, by buckets that are made by hand and sent
// with sendImmediate(), and by Atomics.
import { isMainThread } from "node:worker_threads";
import { attach, EAGAIN, launch } from "pamir";

const TASKS = 2;
const UPDATES = 2 ** 20;
/** Words of each task. */
const SHARE = 2 ** 18;
/** Updates of a call of updateMany(). */
const BATCH = 1024;
const BUCKET = 1;
/** Updates of a bucket: as many as sendImmediate() takes. */
const BUCKET_UPDATES = 512;

/** @typedef {"update" | "updateMany" | "reserve" | "buckets" | "Atomics"} By */
/**
 * A pass updates as `random` says. When it returns, all tasks' updates are applied.
 * @typedef {{ table: Int32Array, pass(random: number): void }} Updates
 */

/** xorshift32 @param {number} random */
function next(random) {
  random ^= random << 13;
  random ^= random >>> 17;
  return random ^ (random << 5);
}

/** @param {number} random */
const rankOf = (random) => (random >>> 20) & (TASKS - 1);
/** @param {number} random */
const indexOf = (random) => random & (SHARE - 1);

/** @param {import("pamir").Geometry} world @param {boolean} areMany @returns {Promise<Updates>} */
async function aggregated(world, areMany) {
  const region = await world.shareRegion(SHARE * Int32Array.BYTES_PER_ELEMENT);
  const updates = await world.createAggregator({ type: Int32Array, region, operation: "xor" });
  /** @param {number} random */
  function pass(random) {
    for (let left = UPDATES / TASKS; left > 0; left--) {
      random = next(random);
      const to = rankOf(random);
      while (updates.update(to, indexOf(random), random) === EAGAIN) updates.whenRoomSync(to);
    }
    updates.finishSync();
  }
  const [ranks, indices, values] = [new Uint8Array(BATCH), new Int32Array(BATCH), new Int32Array(BATCH)];
  /** @param {number} random */
  function passOfMany(random) {
    for (let left = UPDATES / TASKS; left > 0; left -= BATCH) {
      for (let at = 0; at < BATCH; at++) {
        random = next(random);
        ranks[at] = rankOf(random);
        indices[at] = indexOf(random);
        values[at] = random;
      }
      for (let at = 0; at < BATCH; ) {
        const taken = updates.updateMany(ranks, indices, values, 0, at);
        if (taken === -EAGAIN) updates.whenRoomSync(ranks[at] ?? 0);
        else at += taken;
      }
    }
    updates.finishSync();
  }
  return { table: region.view(Int32Array), pass: areMany ? passOfMany : pass };
}

/** Items of an index and a value, written in place. @param {import("pamir").Geometry} world @returns {Promise<Updates>} */
async function reserved(world) {
  const table = new Int32Array(SHARE);
  const items = await world.createAggregator({ type: Int32Array, length: 2, onItems: (words) => change(table, words) });
  const elements = items.elements();
  return {
    table,
    pass(random) {
      for (let left = UPDATES / TASKS; left > 0; left--) {
        random = next(random);
        const to = rankOf(random);
        let at = items.reserve(to);
        while (at === -EAGAIN) {
          items.whenRoomSync(to);
          at = items.reserve(to);
        }
        elements[at] = indexOf(random);
        elements[at + 1] = random;
      }
      items.finishSync();
    },
  };
}

/** @param {Int32Array} table @param {Int32Array} words */
function change(table, words) {
  for (let at = 0; at < words.length; at += 2) {
    const index = words[at] ?? 0;
    table[index] = (table[index] ?? 0) ^ (words[at + 1] ?? 0);
  }
}

/** @param {import("pamir").Context} context @param {import("pamir").Geometry} world @returns {Updates} */
function byHand(context, world) {
  const table = new Int32Array(SHARE);
  const buckets = world.endpoints.map((to) => ({ to, words: new Int32Array(2 * BUCKET_UPDATES), filled: 0 }));
  let ended = 0;
  context.dispatch(BUCKET, (message) => {
    // A task's last message is empty.
    if (message.payloadBytes === 0) ended++;
    else change(table, message.view(Int32Array));
  });
  /** @param {typeof buckets[number]} bucket */
  function send(bucket) {
    const words = bucket.filled === bucket.words.length ? bucket.words : bucket.words.subarray(0, bucket.filled);
    while (context.sendImmediate(bucket.to, BUCKET, undefined, words) === EAGAIN) context.advance();
    bucket.filled = 0;
  }
  return {
    table,
    pass(random) {
      for (let left = UPDATES / TASKS; left > 0; left--) {
        random = next(random);
        const bucket = /** @type {typeof buckets[number]} */ (buckets[rankOf(random)]);
        bucket.words[bucket.filled++] = indexOf(random);
        bucket.words[bucket.filled++] = random;
        if (bucket.filled === bucket.words.length) send(bucket);
      }
      for (const bucket of buckets) {
        if (bucket.filled > 0) send(bucket);
        send(bucket);
      }
      context.advanceUntil(() => ended >= TASKS);
      ended -= TASKS;
    },
  };
}

/** @param {import("pamir").Geometry} world @returns {Promise<Updates>} */
async function atomic(world) {
  const region = await world.shareRegion(SHARE * Int32Array.BYTES_PER_ELEMENT);
  const tables = Array.from({ length: TASKS }, (_, rank) => region.view(Int32Array, rank));
  return {
    table: region.view(Int32Array),
    pass(random) {
      for (let left = UPDATES / TASKS; left > 0; left--) {
        random = next(random);
        Atomics.xor(/** @type {Int32Array} */ (tables[rankOf(random)]), indexOf(random), random);
      }
      world.barrierSync();
    },
  };
}

/** @param {import("pamir").Client} client @param {{ by: By, passes: number }} how */
async function measure(client, { by, passes }) {
  const context = client.createContext();
  const world = await client.world();
  const updates = await {
    update: () => aggregated(world, false),
    updateMany: () => aggregated(world, true),
    reserve: () => reserved(world),
    buckets: () => byHand(context, world),
    Atomics: () => atomic(world),
  }[by]();
  const times = [];
  for (let pass = 0; pass < passes; pass++) {
    world.barrierSync();
    const start = performance.now();
    // The same updates each time: after an odd number of passes they have changed the table.
    updates.pass(0x9e3779b9 ^ world.rank);
    times.push(performance.now() - start);
  }
  world.barrierSync();
  return { times, summary: String(updates.table.reduce((sum, word) => (sum + word) | 0, 0)) };
}

/** @param {{ by: By, passes: number }} options @returns µs of a pass, the median */
export async function run(options) {
  const job = await launch(new URL(import.meta.url), { tasks: TASKS, join: true, args: options });
  const { times, summary } = await measure(job.client, options);
  await job.terminate();
  const sorted = times.toSorted((a, b) => a - b);
  return { figure: (sorted[times.length >> 1] ?? 0) * 1000, summary };
}

if (!isMainThread) {
  const client = await attach();
  await measure(client, /** @type {{ by: By, passes: number }} */ (client.args));
}
