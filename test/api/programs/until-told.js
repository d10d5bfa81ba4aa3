// @ts-check
// Each task sends numbered messages to all others until a file is there, and looks at what comes: once each, and in order.
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { attach, EAGAIN } from "pamir";

const [file = ""] = process.argv.slice(2);
const PATIENCE = { timeout: 90_000 };
const LENGTHS = [8, 300, 4000, 64, 20_000];
const [NUMBERED, LAST] = [1, 2];
/** Messages between two looks at what has come. */
const BURST = 10;

const client = await attach();
const { task, size } = client;
const context = client.createContext();
const others = Array.from({ length: size }, (_, other) => other).filter((other) => other !== task);
const came = new Map(others.map((other) => [other, 0]));
/** How many each other task has sent. @type {Map<number, number>} */
const sent = new Map();
/** @type {string[]} */
const wrong = [];
context.dispatch(NUMBERED, ({ origin, payload }) => {
  const number = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
  const awaited = came.get(origin) ?? -1;
  if (number !== awaited || payload.length !== LENGTHS[number % LENGTHS.length])
    wrong.push(`${number} for ${awaited} from ${origin}`);
  came.set(origin, number + 1);
});
context.dispatch(LAST, (message) => void sent.set(message.origin, message.getInt32(0)));
const world = await client.world(PATIENCE);
await world.barrier(PATIENCE);
console.log("begins");
const bytes = new Uint8Array(Math.max(...LENGTHS));
let count = 0;
for (; !existsSync(file); await delay(10)) {
  for (let i = 0; i < BURST; i++, count++) {
    new DataView(bytes.buffer).setUint32(0, count, true);
    const payload = bytes.subarray(0, LENGTHS[count % LENGTHS.length]);
    for (const other of others)
      while (context.send({ to: other, dispatch: NUMBERED, payload }) === EAGAIN) await context.progress(PATIENCE);
  }
  context.advance();
}
for (const other of others)
  while (context.sendImmediate(other, LAST, null, Int32Array.of(count)) === EAGAIN) await context.progress(PATIENCE);
while (others.some((other) => came.get(other) !== sent.get(other))) await context.progress(PATIENCE);
await world.barrier(PATIENCE);
console.log(wrong.length === 0 ? "all came" : `wrong: ${wrong.slice(0, 5).join("; ")}`);
client.close();
