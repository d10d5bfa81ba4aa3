// @ts-check
// A program for `pamir run --restart`: rank 1 fails until it has failed so often; rank 0 hears of each task in its place.
import { attach } from "pamir";

const [failures = "0", how = "exit", leave] = process.argv.slice(2);
const client = await attach();
const context = client.createContext();
context.dispatch(1, () => Uint8Array.of(client.task, client.rank));
const PATIENCE = { timeout: 60_000 };
if (client.rank === 0 && leave === "leave") console.log("rank 0 leaves");
else if (client.rank === 0) {
  const told = [];
  let partner = 1;
  for (let next = 2; next < 2 + Number(failures); next++) {
    await context.whenEnded(client.endpoint(partner), PATIENCE);
    await context.whenStarted(next, PATIENCE);
    partner = next;
    told.push(partner);
  }
  const reply = await context.call(client.endpoint(partner), 1, null, PATIENCE);
  console.log(JSON.stringify({ told, reply: [...reply], size: client.size }));
  context.sendImmediate(client.endpoint(partner), 2);
  await context.drain();
} else if (client.task < 1 + Number(failures)) {
  if (how === "exit") process.exit(5);
  if (how === "kill") process.kill(process.pid, "SIGKILL");
  throw new RangeError("on purpose");
} else {
  let isOver = false;
  context.dispatch(2, () => {
    isOver = true;
  });
  while (!isOver) await context.progress(PATIENCE);
}
client.close();
