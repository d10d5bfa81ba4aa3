// @ts-check
// Updates at random places of a table that is spread over all tasks, after RandomAccess of the HPC Challenge. Each task draws
// its places and values; an aggregator packs the updates for each other task into messages. The same updates once more give the
// table back as it was. Shows: an aggregator with a region, back-pressure, finish().
//   node examples/random.js [tasks]; their number divides WORDS
//   npx pamir run --hosts a:4,b:4 examples/random.js
import { attach, EAGAIN, errorText, launch, SUCCESS } from "pamir";

const WORDS = 3 * 2 ** 18; // of the table
const UPDATES = 4 * WORDS;

/** @param {import("pamir").Client} client */
async function update(client) {
  const world = await client.world();
  const { rank, size } = world;
  if (WORDS % size !== 0) throw new Error(`${size} tasks do not divide a table of ${WORDS} words`);

  const share = WORDS / size;
  const region = await world.shareRegion(share * Int32Array.BYTES_PER_ELEMENT);
  const table = region.view(Int32Array);
  for (let at = 0; at < share; at++) table[at] = rank * share + at;
  const updates = await world.createAggregator({ type: Int32Array, region, operation: "xor" });

  /** This task's part of all updates: the same places and values at each call. */
  function pass() {
    let random = 0x9e3779b9 ^ rank; // xorshift32
    for (let left = UPDATES / size; left > 0; left--) {
      random ^= random << 13;
      random ^= random >>> 17;
      random ^= random << 5;
      const place = (random >>> 0) % WORDS;
      const to = Math.floor(place / share);
      let result = updates.update(to, place - to * share, random);
      while (result === EAGAIN) {
        updates.whenRoomSync(to);
        result = updates.update(to, place - to * share, random);
      }
      if (result !== SUCCESS) throw new Error(errorText(result));
    }
    updates.finishSync(); // all updates of all tasks are applied
  }

  const start = client.now();
  pass();
  const seconds = client.now() - start;
  const changed = table.reduce((count, word, at) => count + Number(word !== rank * share + at), 0);
  pass();
  const wrong = table.reduce((count, word, at) => count + Number(word !== rank * share + at), 0);

  const [allChanged = 0, allWrong] = await world.allreduce({ send: Int32Array.of(changed, wrong), operation: "sum" });
  if (allChanged < 0.9 * WORDS) throw new Error(`only ${allChanged} of ${WORDS} words have changed`);
  if (allWrong !== 0) throw new Error(`${allWrong} of ${WORDS} words are wrong`);
  const rate = UPDATES / seconds / 1e6;
  if (rank === 0)
    console.log(`tasks: ${size}, wrong words: ${allWrong} as it must be, ${rate.toFixed(1)} million updates/s`);
  await client.close({ drain: true });
}

async function start() {
  const counts = process.argv[2] === undefined ? [1, 2, 4] : [Number(process.argv[2])];
  for (const tasks of counts) {
    const job = await launch(new URL(import.meta.url), { tasks });
    for (const { task, code, cause, error = cause } of await job.exited) {
      if (code === 0) continue;
      console.error(`task ${task} of ${tasks}: ${error}`);
      process.exitCode = 1;
    }
  }
}

// A task gets its client: a thread that start() launched, or a process of `pamir run`, mpiexec, mpirun, srun.
const client = await attach().catch((error) => {
  if (error.code !== "PAMIR_NOT_IN_JOB") throw error;
});
await (client === undefined ? start() : update(client));
