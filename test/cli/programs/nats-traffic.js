// @ts-check
// Each task sends so many numbered messages of many sizes to all others, and looks at what comes: once each, and in order. The
// second argument: milliseconds between messages.
import { setTimeout as delay } from "node:timers/promises";
import { attach, EAGAIN } from "pamir";

const [count, pause = 0] = process.argv.slice(2).map(Number);
if (count === undefined) throw new Error("no count");
const PATIENCE = { timeout: 90_000 };
const LENGTHS = [8, 64, 300, 8, 4000, 64, 60_000, 16];
const NUMBERED = 1;

const client = await attach();
const { task, size } = client;
const context = client.createContext();
const others = Array.from({ length: size }, (_, other) => other).filter((other) => other !== task);
const came = new Map(others.map((other) => [other, 0]));
/** @type {string[]} */
const wrong = [];
context.dispatch(NUMBERED, ({ origin, payload }) => {
  const number = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
  const awaited = came.get(origin) ?? -1;
  if (number !== awaited || payload.length !== LENGTHS[number % LENGTHS.length])
    wrong.push(`${number} for ${awaited} from ${origin}`);
  came.set(origin, number + 1);
});
const world = await client.world(PATIENCE);
await world.barrier(PATIENCE);
console.log("begins");
const bytes = new Uint8Array(Math.max(...LENGTHS));
for (let number = 0; number < count; number++) {
  new DataView(bytes.buffer).setUint32(0, number, true);
  const payload = bytes.subarray(0, LENGTHS[number % LENGTHS.length]);
  for (const other of others)
    while (context.send({ to: other, dispatch: NUMBERED, payload }) === EAGAIN) await context.progress(PATIENCE);
  if (pause > 0) await delay(pause);
  if (number % 16 === 0 || pause > 0) context.advance();
}
while ([...came.values()].some((number) => number < count)) await context.progress(PATIENCE);
await world.barrier(PATIENCE);
console.log(wrong.length === 0 ? "all came" : `wrong: ${wrong.slice(0, 5).join("; ")}`);
client.close();
