// @ts-check
// A task in a process that a launcher has started. It talks to all others; then its argument says how some of them end.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { attach, EAGAIN, info, SUCCESS } from "pamir";

const [how = "", waits = "", milliseconds = "0"] = process.argv.slice(2);
/** Messages before an exit. */
const LAST = 200;
const PATIENCE = { timeout: 60_000 };
const client = await attach();
const context = client.createContext();
const region = client.createRegion(4096);
let came = 0;
let sum = 0;
/** @type {number[]} */
const handles = [];
/** @type {number[]} */
const pids = [];
context.dispatch(1, (message) => {
  came++;
  sum += message.getInt32(0);
  handles[message.origin & 0xffffff] = message.getInt32(4);
  pids[message.origin & 0xffffff] = message.getInt32(8);
});
let ready = 0;
context.dispatch(2, () => void ready++);
/** Sends words, once there is room. @param {number} to @param {number} id @param {number[]} words */
const say = async (to, id, ...words) => {
  while (context.sendImmediate(to, id, null, new Int32Array(words)) === EAGAIN)
    await context.whenRoom(to, 4 * words.length, PATIENCE);
};
/** What this task saw of the ends of others, by task. */
/** @type {Record<number, number>} */
const seen = {};
/** @param {number} task */
const sees = async (task) => {
  await context.whenEnded(client.endpoint(task), PATIENCE);
  seen[task] = context.sendImmediate(task, 1, null, new Int32Array(3));
};
const sleep = (milliseconds = 20) => new Promise((resolve) => setTimeout(resolve, milliseconds));
/** @param {number} pid */
const isAlive = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
// Task 1 has left before the others say anything to it; it leaves its pid.
if (how === "early") {
  if (client.task === 1) {
    writeFileSync(waits, `${process.pid}`);
    process.exit();
  }
  while (!existsSync(waits) || readFileSync(waits, "utf8") === "" || isAlive(Number(readFileSync(waits, "utf8"))))
    await sleep();
  await sees(1);
  console.log(JSON.stringify({ task: client.task, seen }));
  process.exit();
}
// The node of task 1 is refused by others: neither side reaches the other. All stay until all have seen that.
if (how === "refused") {
  for (const task of client.task === 1 ? [0, 2] : [1]) await sees(task);
  writeFileSync(`${waits}-${client.task}`, "");
  for (let task = 0; task < client.size; task++) while (!existsSync(`${waits}-${task}`)) await sleep();
  console.log(JSON.stringify({ task: client.task, seen }));
  process.exit();
}
for (let to = 0; to < client.size; to++) await say(to, 1, client.task, region.handle, process.pid);
// Half of them block, where they may; the others do not.
if (client.task % 2 === 0 && client.capabilities.blockingWaits)
  context.advanceUntil(() => came === client.size, PATIENCE);
else while (came < client.size) await context.progress(PATIENCE);
/** How task 1 ends at once. @type {Record<string, () => void>} */
const ENDS = {
  kill: () => process.kill(process.pid, "SIGKILL"),
  abort: () => process.abort(),
  /** A foreign call that writes to where no memory is. */
  foreign() {
    const koffi = createRequire(import.meta.url)("koffi");
    koffi.load(null).func("memset", "uintptr_t", ["uintptr_t", "int", "size_t"])(0, 0, 1);
  },
  /** More than V8's heap holds. */
  memory() {
    const hoard = [];
    for (;;) hoard.push(new Array(10_000).fill(hoard.length));
  },
  throw() {
    throw new RangeError("on purpose");
  },
};
const ends = ENDS[how];
if (ends !== undefined) {
  if (client.task === 1) ends();
  await sees(1);
}
/** The errors of the ends that this task saw, by task; "": an end without one. */
/** @type {Record<number, string>} */
const causes = {};
// Task 3 throws, or exits with a code, and task 1 of another node is killed.
if (how === "causes") {
  if (client.task === 3 && waits !== "") process.exit(Number(waits));
  if (client.task === 3) ENDS.throw?.();
  await sees(3);
  if (client.task === 1) ENDS.kill?.();
  await sees(1);
  for (const task of [1, 3]) {
    const { cause } = await context.whenRoom(client.endpoint(task), 8, PATIENCE).catch((error) => error);
    causes[task] = cause === undefined ? "" : `${cause.name}: ${cause.message}`;
  }
}
if (how === "leave" && client.task > 0) await sees(0);
if (how === "late" && client.task === 1) {
  for (let task = 0; task < client.size; task++) if (task !== 1) await sees(task);
  process.kill(process.pid, "SIGKILL");
}
// The process with the agent of the second node ends without a word.
if (how === "agent") {
  await say(2, 2);
  while (client.task === 2 && ready < client.size) await context.progress(PATIENCE);
  if (client.task === 2) process.kill(process.pid, "SIGKILL");
  const others = waits === "siblings" ? [3] : [0, 1, 3];
  if (others.includes(client.task)) for (const task of client.task === 3 ? [0, 1, 2] : [2, 3]) await sees(task);
}
// The process with the agent of the second node exits behind its last message. All tasks see those of the other node end.
if (how === "exit") {
  const first = client.size / 2;
  if (client.task === first) {
    for (let i = 0; i < LAST; i++) await say(0, 2);
    if (waits === "drained") await client.close({ drain: true });
    process.exit(0);
  }
  while (client.task === 0 && ready < LAST) await context.progress(PATIENCE);
  for (let task = 0; task < client.size; task++) if (task < first !== client.task < first) await sees(task);
}
/** What the tasks that are left have summed up, by their numbers. */
let left = 0;
// A node is killed while all nodes reduce; the others go on without it.
if (how === "collective") {
  const world = await client.world(PATIENCE);
  const [send, receive] = [new Float64Array(8192).fill(client.task), new Float64Array(8192)];
  if (client.task === 2) setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);
  let code = "";
  while (code === "") {
    await world.allreduce({ send, receive, operation: "sum" }, PATIENCE).catch((error) => {
      code = error.code;
    });
  }
  if (code !== "PAMIR_SHUTDOWN") throw new Error(`the operation came to ${code}`);
  const rest = await world.shrink(PATIENCE);
  [left = -1] = await rest.allreduce({ send, receive, operation: "sum" }, PATIENCE);
  await sees(2);
  rest.close();
  world.close();
}
/** Milliseconds from the stop of task 1 to its end. */
let stopped = 0;
// Task 0 stops task 1, until that is given up, and for so long, and lets it go on.
if (how === "stop" && client.task === 0) {
  // Not before task 1 is here: what it awaits earlier would end with another error.
  while (ready === 0) await context.progress(PATIENCE);
  // Nor before it has answered all: the silence would begin before the stop.
  await context.drain(PATIENCE);
  const pid = /** @type {number} */ (pids[1]);
  const start = performance.now();
  process.kill(pid, "SIGSTOP");
  await sees(1);
  stopped = performance.now() - start;
  await sleep(Number(milliseconds) - stopped);
  process.kill(pid, "SIGCONT");
  while (isAlive(pid)) await sleep();
}
if (how === "stop" && client.task === 1) {
  await say(0, 2);
  if (waits === "blocking") context.advanceUntil(() => false, PATIENCE);
  else await context.progress(PATIENCE);
  await sleep(PATIENCE.timeout);
}
// Task 0 stops task 1 for a short time; then both talk on.
if (how === "pause") {
  if (client.task === 0) {
    const pid = /** @type {number} */ (pids[1]);
    process.kill(pid, "SIGSTOP");
    for (let round = 0; round < 20; round++) {
      await say(1, 2);
      await sleep(50);
    }
    process.kill(pid, "SIGCONT");
  }
  while (ready < (client.task === 0 ? 1 : 20)) await context.progress(PATIENCE);
  if (client.task === 1) await say(0, 2);
}
// Task 0 kills task 1, and leaves before it learns of that end.
if (how === "orphan") {
  while (client.task === 1) await context.progress(PATIENCE);
  await context.drain();
  const pid = /** @type {number} */ (pids[1]);
  process.kill(pid, "SIGKILL");
  while (isAlive(pid)) await sleep();
  await say(1, 2);
  const start = performance.now();
  process.once("exit", () => console.log(JSON.stringify({ task: 0, leaving: performance.now() - start })));
  if (waits === "exit") process.exit();
}
/** What a wait that blocks says. */
let blocked = "";
try {
  context.advanceUntil(() => false, { timeout: 0 });
} catch (error) {
  const { code, message } = /** @type {Error & { code: string }} */ (error);
  blocked = `${code} ${message}`;
}
console.log(
  JSON.stringify({
    blocked,
    kernel: client.kernel,
    processes: info().processes,
    why: info().why,
    task: client.task,
    size: client.size,
    local: client.localTasks,
    sum,
    seen,
    causes,
    left,
    success: SUCCESS,
    stopped,
    pid: process.pid,
  }),
);
if (how === "" || how === "pause" || how === "open") await context.drain();
// One that has nothing more to do ends in any case.
if (how !== "open") client.close();
