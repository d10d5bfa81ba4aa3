// @ts-check
// Tasks in a ring, in processes that a launcher has started. In each round a task sends many messages and a large payload to
// the next one, puts into its region, reads that, and adds to a word. It says how many rounds it has done, and what was wrong.
import { attach, EAGAIN, SHUTDOWN, SUCCESS } from "pamir";

const [rounds = "1"] = process.argv.slice(2);
const PATIENCE = { timeout: 60_000 };
const COUNT = 300;
const LARGE = 2 ** 20;
const PUT = 100_000;
/** Bytes of message i: some share packets, others take several. */
const sizeOf = (/** @type {number} */ i) => 4 + ((i * 37) % 3000);
const [NUMBER, BULK, REGION, OVER] = [1, 2, 3, 4];

const client = await attach();
const context = client.createContext();
const next = (client.task + 1) % client.size;
const own = client.createRegion(8 + PUT);
const local = client.createRegion(2 * PUT);
const large = new Uint8Array(LARGE).map((_, i) => i ^ (i >>> 8));
/** @type {string[]} */
const wrong = [];
let [numbers, bulks, handle] = [0, 0, -1];
context.dispatch(NUMBER, (message) => {
  const number = message.getInt32(0);
  if (number !== numbers || message.payloadBytes !== sizeOf(number % COUNT)) wrong.push(`${number}, not ${numbers}`);
  numbers++;
});
context.dispatch(BULK, (message) => {
  const into = new Uint8Array(message.payloadBytes);
  message.receive(into, (_, result) => {
    if (result === SUCCESS && Buffer.compare(into, large) !== 0) wrong.push("bytes of a large payload");
    bulks++;
  });
});
context.dispatch(REGION, (message) => {
  handle = message.getInt32(0);
});
const previous = (client.task + client.size - 1) % client.size;
const neighbors = new Set([next, previous]);
/** Neighbors that need this task no more. */
const over = new Set();
context.dispatch(OVER, (message) => void over.add(message.origin));
let [done, isOver] = [0, false];
/** The next task ends, or this one closes its client. */
const end = () => {
  isOver = true;
};
for (const neighbor of neighbors) {
  const leave = () => {
    over.add(neighbor);
    if (neighbor === next) end();
  };
  void context.whenEnded(client.endpoint(neighbor)).then(leave, leave);
}

/** Repeats an operation while it gives EAGAIN. @param {() => number} operation @param {number} bytes */
const submit = async (operation, bytes) => {
  for (;;) {
    const result = operation();
    if (result === SHUTDOWN) isOver = true;
    if (result !== EAGAIN) return;
    await context.whenRoom(next, bytes, PATIENCE).catch(end);
  }
};
/** @param {() => boolean} condition */
const until = async (condition) => {
  while (!condition() && !isOver) {
    await context.progress(PATIENCE);
  }
};
await submit(() => context.sendImmediate(previous, REGION, null, Int32Array.of(own.handle)), 4);
await until(() => handle >= 0);
for (; done < Number(rounds) && !isOver; done++) {
  for (let i = 0; i < COUNT && !isOver; i++) {
    const payload = new Uint8Array(sizeOf(i));
    new DataView(payload.buffer).setInt32(0, done * COUNT + i, true);
    await submit(() => context.send({ to: next, dispatch: NUMBER, payload }), payload.length);
  }
  let left = 3;
  const isDone = () => void left--;
  await submit(() => context.send({ to: next, dispatch: BULK, payload: large, rendezvous: true, onLocal: isDone }), 4);
  local.bytes.fill(1 + client.task + done);
  const place = { to: next, local, remote: handle, remoteOffset: 8, bytes: PUT };
  await submit(() => context.put({ ...place, onRemote: isDone }), 4);
  await submit(() => context.rmw({ to: next, remote: handle, operation: "add", value: 1, onDone: isDone }), 4);
  await until(() => left === 0);
  await submit(() => context.get({ ...place, localOffset: PUT, onLocal: () => void left-- }), 4);
  await until(() => left === -1);
  if (!isOver && Buffer.compare(local.bytes.subarray(0, PUT), local.bytes.subarray(PUT)) !== 0)
    wrong.push("bytes of a put");
  await until(() => numbers >= (done + 1) * COUNT && bulks > done);
  if (isOver) break;
  if (done === 0) console.log("under way");
}
// The neighbors may still need this task.
for (const to of neighbors) await submit(() => context.sendImmediate(to, OVER), 0);
// The next one may have ended: the previous one may not have done all its rounds.
while (over.size < neighbors.size) await context.progress(PATIENCE);
console.log(JSON.stringify({ task: client.task, done, wrong, isOver }));
await context.drain(PATIENCE).catch(() => {});
client.close();
