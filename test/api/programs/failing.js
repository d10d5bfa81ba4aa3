// @ts-check
// A program one of whose tasks fails. Its parameters: how that task ends; what the launching thread does; options of
// launch() as JSON; a file for which a blocked launcher waits.
import { existsSync, writeSync } from "node:fs";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { attach, launch } from "pamir";

// A task's process has the environment of the program, but not its parameters.
if (isMainThread) process.env.PARAMETERS = JSON.stringify(process.argv.slice(2));
const [how, does, options = "{}", gate = ""] = JSON.parse(process.env.PARAMETERS ?? "[]");
const THROWN = 1;

/** @param {string} text */
const say = (text) => writeSync(1, `${text}\n`);

/** @type {Record<string, () => unknown>} */
const ENDS = {
  throw() {
    throw new RangeError("thrown by the task", { cause: new TypeError("what was behind it") });
  },
  later: () => setTimeout(() => ENDS.throw?.(), 20),
  reject: () => Promise.reject(new Error("a top-level await")),
  unhandled: () => void Promise.reject(new Error("handled by none")),
  nothing() {
    throw undefined;
  },
  null() {
    throw null;
  },
  odd() {
    throw { name: 3, message: 5, code: 7, stack: {} };
  },
  code() {
    throw Object.assign(new Error("a long code"), { code: "y".repeat(10_000) });
  },
  exit: () => process.exit(3),
  kill: () => process.kill(process.pid, "SIGKILL"),
  exitCode: () => {
    process.exitCode = 4;
  },
  memory() {
    const hoard = [];
    for (;;) hoard.push(new Array(10_000).fill(hoard.length));
  },
  long() {
    throw new Error("much to say ".repeat(100_000));
  },
  return() {},
  unsettled: () => new Promise(() => {}),
  sleep: () => new Promise((resolve) => setTimeout(resolve, 60_000)),
};

async function task() {
  const client = await attach(workerData?.adopted ? /** @type {any} */ (parentPort) : undefined);
  const context = client.createContext();
  if (client.args === "spawned" || client.args === "adopted" || client.task === 1) {
    context.dispatch(THROWN, () => void ENDS[how ?? ""]?.());
    if (does === "barrier") await client.world({ timeout: 60_000 });
    await ENDS[how ?? ""]?.();
    return;
  }
  // The others go on, until they are ended or the one that fails is gone.
  if (does === "abort") context.advanceUntil(() => false, { timeout: 60_000 });
  else if (client.size > 1) await context.whenEnded(client.endpoint(1), { timeout: 60_000 });
}

/** @param {any} more */
const start = (more = {}) =>
  launch(new URL(import.meta.url), { tasks: 2, heapBytes: 2 ** 22, ...JSON.parse(options), ...more });

/** @type {Record<string, () => unknown>} */
const LAUNCHERS = {
  launch: () => start(),
  async exited() {
    const job = await start();
    const exits = await job.exited;
    say(JSON.stringify(exits.map(({ task, code, cause }) => [task, code, cause])));
  },
  onExit: () => start({ onExit: () => {} }),
  async preset() {
    process.exitCode = 7;
    await start();
  },
  /** Blocks its thread until there is a file. */
  async blocked() {
    const job = await start({ join: true });
    const context = job.client.createContext();
    const end = Date.now() + 60_000;
    while (!existsSync(gate) && Date.now() < end) context.advanceUntil(() => false, { timeout: 10 });
    say(existsSync(gate) ? "heard" : "not heard");
    job.client.close();
    await job.exited;
  },
  /** Blocks its thread, in one wait, in a job that is aborted. */
  async abort() {
    const job = await start({ join: true, tasks: 4 });
    const context = job.client.createContext();
    const start_ = Date.now();
    const result = context.advanceUntil(() => false, { timeout: 60_000 });
    const exits = await job.exited;
    say(JSON.stringify({ result, exits: exits.map(({ task, cause }) => [task, cause]), closed: job.client.closed }));
    say(Date.now() - start_ < 30_000 ? "soon" : "late");
  },
  async terminate() {
    const job = await start();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await job.terminate();
  },
  async terminateOne() {
    const job = await start();
    await job.terminate(1);
    await job.terminate();
  },
  async spawn() {
    const job = await start({ tasks: 1, maxTasks: 3, join: true });
    const task = job.spawn({ args: "spawned" });
    await job.client.createContext().whenEnded(job.client.endpoint(task), { timeout: 60_000 });
    await job.terminate();
  },
  async adopt() {
    const job = await start({ tasks: 1, maxTasks: 2, join: true });
    const worker = new Worker(new URL(import.meta.url), { workerData: { adopted: true } });
    worker.on("error", () => {});
    job.adopt(worker, { args: "adopted" });
    job.client.close();
    say(JSON.stringify((await job.exited).map(({ code, cause, error }) => [code, cause, error])));
  },
  /** The error of a dead task, as a call to it has it. */
  async call() {
    const job = await start({ join: true });
    const context = job.client.createContext();
    const error = await context.call(job.client.endpoint(1), THROWN, null, { timeout: 60_000 }).catch((e) => e);
    const room = await context.whenRoom(job.client.endpoint(1), 8).catch((e) => e);
    const { cause } = error;
    say(
      JSON.stringify({
        code: error.code,
        cause: cause && { name: cause.name, message: cause.message, length: cause.stack.length },
        hasStack: /failing\.js:\d+/.test(cause?.stack ?? ""),
        room: [room.code, room.cause?.name],
      }),
    );
    await job.terminate();
  },
  /** The end of a task, as `onExit` and a call have it, in their order. */
  async order() {
    const order = /** @type {unknown[]} */ ([]);
    const job = await start({ join: true, onExit: (/** @type {any} */ exit) => order.push(["onExit", exit.code]) });
    const context = job.client.createContext();
    const to = job.client.endpoint(1);
    const waits = [context.call(to, THROWN), context.call(to, THROWN)];
    await Promise.allSettled(waits.map((wait) => wait.catch(({ code }) => order.push(code))));
    const { message, cause } = await context.call(to, THROWN).catch((error) => error);
    say(JSON.stringify({ order, message, exitCode: cause?.exitCode, signal: cause?.signal }));
    await job.terminate();
  },
  /** The same, on a system where processes seem not to share memory. */
  orderLinked() {
    Object.defineProperty(process, "platform", { value: "freebsd" });
    return LAUNCHERS.order?.();
  },
  /** An `onExit` that always replaces a task that has ended, also once the job is over. */
  async replace() {
    const job = await start({ join: true, tasks: 3, maxTasks: 9, onExit: () => void job.spawn() });
    say(JSON.stringify((await job.terminate()).map(({ cause }) => cause)));
  },
  async replaceAsync() {
    const job = await start({ join: true, tasks: 3, maxTasks: 9, onExit: async () => void job.spawn() });
    say(JSON.stringify((await job.terminate()).map(({ cause }) => cause)));
  },
  /** An `onExit` with an error of its own. */
  broken: () =>
    start({
      onExit() {
        throw new TypeError("thrown by onExit");
      },
    }),
  /** The error of a dead member, as an operation of its geometry has it. */
  async barrier() {
    const job = await start({ join: true });
    job.client.createContext();
    const world = await job.client.world({ timeout: 60_000 });
    const { code, cause } = await world.barrier({ timeout: 60_000 }).catch((error) => error);
    say(JSON.stringify({ code, cause: cause && { name: cause.name, message: cause.message } }));
    await job.terminate();
  },
};

if (isMainThread) await LAUNCHERS[does ?? ""]?.();
else await task();
