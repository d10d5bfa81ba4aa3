// @ts-check
// A task of bench/nats.bench.mjs: task 0 sends to task 1, and prints what it has measured: microseconds one way, messages and bytes a second.
import { attach, EAGAIN } from "pamir";

const [rounds = 0, small = 0, large = 0] = process.argv.slice(2).map(Number);
const PATIENCE = { timeout: 60_000 };
const [PING, DATA, DONE] = [1, 2, 3];
const client = await attach();
const context = client.createContext();
let [pings, data, isDone] = [0, 0, false];
const short = new Uint8Array(64);
context.dispatch(PING, () => {
  pings++;
  if (client.task === 1) context.sendImmediate(0, PING, null, short);
});
context.dispatch(DATA, () => void data++);
context.dispatch(DONE, () => {
  isDone = true;
});
const world = await client.world(PATIENCE);
await world.barrier(PATIENCE);

/** @param {number} count @param {Uint8Array} payload @returns {Promise<number>} seconds */
async function stream(count, payload) {
  isDone = false;
  const start = performance.now();
  for (let sent = 0; sent < count; sent++)
    if (context.send({ to: 1, dispatch: DATA, payload }) === EAGAIN)
      await context.sendWhenRoom({ to: 1, dispatch: DATA, payload }, PATIENCE);
  while (!isDone) await context.progress(PATIENCE);
  return (performance.now() - start) / 1000;
}

let awaited = 0;
/** Some may have come before it is called. @param {number} count */
async function take(count) {
  awaited += count;
  while (data < awaited) await context.progress(PATIENCE);
  context.sendImmediate(0, DONE);
}

const [WARM, MIB] = [200, 2 ** 20];
if (client.task === 0) {
  const times = [];
  for (let round = 0; round < WARM + rounds; round++) {
    const before = pings;
    const start = performance.now();
    context.sendImmediate(1, PING, null, short);
    while (pings === before) await context.progress(PATIENCE);
    if (round >= WARM) times.push(((performance.now() - start) * 1000) / 2);
  }
  times.sort((a, b) => a - b);
  const rate = small / (await stream(small, short));
  const bytes = (large * MIB) / (await stream(large, new Uint8Array(MIB)));
  console.log(JSON.stringify({ oneWay: times[times.length >> 1], rate, bytes }));
} else {
  while (pings < WARM + rounds) await context.progress(PATIENCE);
  await take(small);
  await take(large);
}
await world.barrier(PATIENCE);
client.close();
