// @ts-check
// A program for `pamir run --detach`: groups of tasks die one after the other, and the last group goes on. Its parameters: tasks
// of a group, the groups that die, in order, and how tasks wait. The first task of the next group to die takes the heap's lock.
import { readdirSync, readlinkSync, writeSync } from "node:fs";
import { attach, SHUTDOWN, SUCCESS } from "pamir";

const [size, order, waits] = process.argv.slice(2);
const groupSize = Number(size);
const dying = /** @type {string} */ (order).split(",").map(Number);
/** Index of JOB.heapLock in the words of the memory: the map begins at 64 KiB (MAP_BASE in assembly/layout/job.ts). */
const HEAP_LOCK = 65_536 / 4 + 64;
const [CHECKED, NEVER] = [1, 2];
const PATIENCE = 60_000;
/** Milliseconds. */
const LATE = 100;
/** Bytes of a transfer that is the engine thread's, if there is one. */
const LONG = 300_000;

/** At once: a worker's process.stdout waits until it blocks no more. @param {object} what */
const say = (what) => writeSync(1, `${JSON.stringify(what)}\n`);
/** Descriptors of this process that stand for processes. */
const pidfds = () =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes("pidfd");
    } catch {
      return false; // readdir's own
    }
  }).length;

const client = await attach();
const { task } = client;
const context = client.createContext();
const all = Array.from({ length: client.size }, (_, i) => i);
/** @param {number} group */
const tasksOf = (group) => all.filter((one) => Math.floor(one / groupSize) === group);
const ownGroup = Math.floor(task / groupSize);

/** @param {() => boolean} isTrue */
async function wait(isTrue) {
  const end = performance.now() + PATIENCE;
  while (!isTrue()) {
    if (performance.now() > end) throw new Error(`task ${task} waits in vain`);
    if (waits === "blocking") context.advanceUntil(isTrue, { timeout: PATIENCE });
    else await context.progress({ timeout: PATIENCE });
  }
}

/** A region, once no other task has the heap's lock. */
async function useHeap() {
  for (const end = performance.now() + PATIENCE; ; ) {
    try {
      return client.createRegion(1).close();
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code !== "PAMIR_BUSY" || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1));
      context.advance();
    }
  }
}

/** Moves bytes from region to region. An operation that the engine thread had begun ends with ERROR, but none has begun. */
async function move() {
  const [local, remote] = [client.createRegion(LONG), client.createRegion(LONG)];
  /** @type {number | undefined} */
  let moved;
  const onDone = (/** @type {unknown} */ _, /** @type {number} */ result) => {
    moved = result;
  };
  context.put({ to: client.endpoint(task), local, remote: remote.handle, onRemote: onDone });
  await wait(() => moved !== undefined);
  if (moved !== SUCCESS) throw new Error(`task ${task}: a put came to ${moved}`);
  local.close();
  remote.close();
}

/** How many tasks are through with the stage before this one; the last entry: with all of them. */
const checked = new Array(dying.length + 1).fill(0);
context.dispatch(CHECKED, (message) => {
  checked[message.getInt32(0)]++;
});
// No task replies: these calls end with their targets.
context.dispatch(NEVER, () => new Promise(() => {}));
/** @type {Map<number, number>} */
const ended = new Map();
/** How the calls to tasks that have ended failed. @type {string[]} */
const failed = [];
const calls = all.map((to) => {
  if (to === task) return undefined;
  context.whenEnded(client.endpoint(to), (_, result) => ended.set(to, result));
  return context.call(client.endpoint(to), NEVER).catch(({ code }) => failed.push(code));
});

say({ task, pid: process.pid });
const alive = new Set(all);
for (const [stage, group] of dying.entries()) {
  const victims = tasksOf(group);
  const leader = /** @type {number} */ (victims[0]);
  // A message to oneself, too.
  while (context.sendImmediate(leader, CHECKED, null, Int32Array.of(stage)) !== 0) context.advance();
  if (ownGroup === group) {
    // The reservation takes a lane, and that the lock.
    while (context.reserve(client.endpoint(client.size - 1), CHECKED, 4) < 0) context.advance();
    if (task === leader) {
      await wait(() => checked[stage] === alive.size);
      const words = new Int32Array(client.bytes.buffer);
      while (Atomics.compareExchange(words, HEAP_LOCK, 0, task + 1) !== 0) context.advance();
      say({ holds: task });
    }
    if (waits === "blocking") context.advanceUntil(() => false);
    for (;;) await context.progress();
  }
  await wait(() => victims.every((victim) => ended.has(victim)));
  await Promise.all(victims.map((victim) => calls[victim]));
  const sent = victims.map((victim) => context.sendImmediate(victim, CHECKED, null, Int32Array.of(0)));
  if (sent.some((result) => result !== SHUTDOWN)) throw new Error(`sends to ${victims} came to ${sent}`);
  await useHeap();
  await move();
  for (const victim of victims) alive.delete(victim);
  if (task === client.size - 1 && stage === dying.length - 1) {
    // It is late: if another task closed too soon, calls to that one would fail by now.
    for (const end = performance.now() + LATE; performance.now() < end; context.advance())
      await new Promise((resolve) => setTimeout(resolve, 1));
  }
  say({ task, heard: stage, failed: failed.splice(0) });
}
// The calls to a task that closes fail, too. So each waits until the others have said how theirs had failed.
for (const one of alive)
  while (context.sendImmediate(one, CHECKED, null, Int32Array.of(dying.length)) !== 0) context.advance();
await wait(() => checked[dying.length] === alive.size);
const owners = () => client.dump().heap.owners.map((owner) => owner.task);
await wait(() => owners().every((owner) => alive.has(owner)));
say({ task, owners: owners(), pidfds: pidfds() });
client.close();
