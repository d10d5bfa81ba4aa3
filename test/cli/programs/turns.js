// @ts-check
// A program for `pamir run --restart`: each end of a stream is killed in its turn, and goes on in a new process. Task 1 ends
// in the middle of what it receives, and task 2 has its rank; then task 0 ends while it sends, and task 3 has its rank.
import { attach, EAGAIN, SHUTDOWN } from "pamir";

const [DATA, COUNT, LEAVE] = [1, 2, 3];
const NUMBERS = 2000;
const PATIENCE = { timeout: 60_000 };
const client = await attach();
const context = client.createContext();
const die = () => process.kill(process.pid, "SIGKILL");
let [came, wrong] = [0, 0];
context.dispatch(DATA, (message) => {
  if (message.getInt32(0) !== came++) wrong++;
  if (client.task === 1 && came === NUMBERS / 2) die();
});
context.dispatch(COUNT, () => Int32Array.of(came, wrong));
let hasLeft = false;
context.dispatch(LEAVE, () => {
  hasLeft = true;
});

/** Sends numbers until the target ends, or until so many have gone. @param {number} to @param {number} most */
async function stream(to, most) {
  for (let number = 0; number < most; ) {
    const result = context.sendImmediate(client.endpoint(to), DATA, null, Int32Array.of(number));
    if (result === SHUTDOWN) return;
    if (result !== EAGAIN) number++;
    else await context.whenRoom(client.endpoint(to), 4, PATIENCE).catch(() => {});
    if (number % 100 === 0) context.advance();
  }
}
/** All numbers, to a task that has begun. @param {number} to */
async function deliver(to) {
  await context.whenStarted(to, PATIENCE);
  await stream(to, NUMBERS);
  const reply = await context.call(client.endpoint(to), COUNT, null, PATIENCE);
  return [...new Int32Array(reply.slice().buffer)];
}

if (client.task === 0) {
  await stream(1, Number.POSITIVE_INFINITY);
  await context.whenEnded(client.endpoint(1), PATIENCE);
  console.log(JSON.stringify({ task: 0, delivered: await deliver(2) }));
  // What is printed goes on its way first.
  process.stdout.write("", die);
  await context.progress(PATIENCE);
} else if (client.task === 2) {
  await context.whenEnded(client.endpoint(0), PATIENCE);
  console.log(JSON.stringify({ task: 2, rank: client.rank, delivered: await deliver(3) }));
  context.sendImmediate(client.endpoint(3), LEAVE);
} else while (!hasLeft) await context.progress(PATIENCE);
await client.close({ drain: true, ...PATIENCE });
