// @ts-check
// A program with a job whose tasks run in processes. Its parameters: what it does, and more for that.
import { once } from "node:events";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { parentPort, Worker } from "node:worker_threads";
import { info, launch } from "pamir";
import { ASK, ECHO, QUIT } from "../tasks/support.js";

const [does = "", how = ""] = process.argv.slice(2);
const CROWD = new URL("../tasks/crowd.js", import.meta.url);
const PATIENCE = 60_000;

/** @param {unknown} value */
const say = (value) => console.log(JSON.stringify(value));

/** A job of so many tasks besides the caller. @param {number} others @param {object} [options] */
async function crowd(others, options) {
  const job = await launch(CROWD, { tasks: others + 1, processes: 2, join: true, heapBytes: 2 ** 22, ...options });
  const context = job.client.createContext();
  /** @param {number} task @param {string} order */
  const ask = async (task, order, given = {}) => {
    const request = new TextEncoder().encode(JSON.stringify({ order, ...given }));
    const reply = await context.call(job.client.endpoint(task), ASK, request, { timeout: PATIENCE });
    return JSON.parse(new TextDecoder().decode(reply.slice()));
  };
  /** @type {number[]} */
  const pids = [];
  for (let task = 1; task <= others; task++) pids.push((await ask(task, "process")).pid);
  return { job, context, ask, pids };
}

/** @type {Record<string, () => unknown>} */
const PROGRAMS = {
  /** One call of each task. */
  async call() {
    try {
      const { job, context } = await crowd(2);
      const bytes = [1, 2].map((task) => context.call(job.client.endpoint(task), ECHO, Uint8Array.of(7)));
      say((await Promise.all(bytes)).map((reply) => [...reply]));
      await job.terminate();
    } catch (error) {
      const { code, message } = /** @type {Error & { code?: string }} */ (error);
      say([code, message]);
    }
  },
  /** Two jobs, and how their processes talk. */
  async linked() {
    const found = [];
    for (let i = 0; i < 2; i++) {
      const { job, context } = await crowd(2);
      const bytes = [1, 2].map((task) => context.call(job.client.endpoint(task), ECHO, Uint8Array.of(7)));
      found.push(...(await Promise.all(bytes)).map((reply) => [...reply]));
      await job.terminate();
    }
    const { processes, why } = info();
    say({ found, processes, why });
  },
  /** Regions until the system has no more pages, then a message. The task before the last one goes on. */
  async shortage() {
    try {
      const { job, context } = await crowd(2, { heapBytes: 2 ** 24 });
      let regions = 0;
      const { client } = job;
      /** @type {string | undefined} */
      let code;
      while (code === undefined) {
        try {
          client.createRegion(2 ** 18).bytes.fill(1);
          regions++;
        } catch (error) {
          ({ code } = /** @type {{ code: string }} */ (error));
        }
      }
      const reply = await context.call(client.endpoint(2), ECHO, Uint8Array.of(7));
      say([code, regions, [...reply]]);
      await job.terminate();
    } catch (error) {
      const { code, message } = /** @type {Error & { code?: string }} */ (error);
      say([code, message]);
    }
  },
  /** Tasks that send, tasks that are asleep in each way. */
  async stay() {
    const jobs = [await crowd(4), await crowd(2), await crowd(2, { args: { waits: "progress" } })];
    const [busy] = jobs;
    for (let task = 1; task <= 4; task++) await busy?.ask(task, "traffic", { size: 5, sizes: [8, 5000] });
    say(jobs.flatMap(({ pids }) => pids));
    setInterval(() => {}, 60_000);
  },
  /** A job of a worker that is terminated, or ends by itself: what is left of it here. */
  async thread() {
    /** @type {(fd: string) => boolean} */
    const isMemory = (fd) => existsSync(`/proc/self/fd/${fd}`) && readlinkSync(`/proc/self/fd/${fd}`).includes("memfd");
    for (const order of ["terminate", "exit"]) {
      const worker = new Worker(new URL(import.meta.url), { argv: ["threaded"] });
      const [pids] = await once(worker, "message");
      const isOver = once(worker, "exit");
      if (order === "exit") worker.postMessage(order);
      else void worker.terminate();
      await isOver;
      const isLeft = (/** @type {number} */ pid) => existsSync(`/proc/${pid}/exe`);
      for (const end = performance.now() + PATIENCE; pids.some(isLeft) && performance.now() < end; )
        await new Promise((resolve) => setTimeout(resolve, 10));
      say([pids.length, pids.filter(isLeft).length, readdirSync("/proc/self/fd").filter(isMemory).length]);
    }
  },
  async threaded() {
    const { pids } = await crowd(2);
    parentPort?.postMessage(pids);
    parentPort?.once("message", () => process.exit());
  },
  /** Ends while its tasks are asleep. */
  async unref() {
    const { job, pids } = await crowd(2, { args: { waits: how } });
    job.unref();
    job.client.unref();
    say(pids);
  },
  /** The end of task 1's process, in which task 2 runs too. */
  async ends() {
    const workerOptions = { resourceLimits: { maxOldGenerationSizeMb: 16 } };
    const { job, context, ask, pids } = await crowd(4, { onError: "ignore", workerOptions });
    const { endpoint } = job.client;
    void ask(1, how).catch(() => {});
    await Promise.all([1, 2].map((task) => context.whenEnded(endpoint.call(job.client, task), { timeout: PATIENCE })));
    const reply = await context.call(endpoint.call(job.client, 4), ECHO, Uint8Array.of(7), { timeout: PATIENCE });
    for (const task of [3, 4]) {
      context.sendImmediate(job.client.endpoint(task), QUIT);
      await context.whenEnded(job.client.endpoint(task), { timeout: PATIENCE });
    }
    const isFree = () => job.dump().heap.free === job.dump().heap.bytes;
    for (const end = performance.now() + PATIENCE; !isFree() && performance.now() < end; ) context.advance();
    const freed = isFree();
    const exits = await job.exited;
    job.client.close();
    const left = pids.filter((pid) => existsSync(`/proc/${pid}/exe`)).length;
    say({ reply: [...reply], exits: exits.map(({ task, cause, error }) => [task, cause, error]), freed, left });
  },
  /** An interrupt from the terminal goes to all processes; this one goes on. */
  async interrupt() {
    let interrupts = 0;
    process.on("SIGINT", () => interrupts++);
    const { job, context } = await crowd(2);
    process.kill(-process.pid, "SIGINT");
    while (interrupts === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    const reply = await context.call(job.client.endpoint(1), ECHO, Uint8Array.of(7), { timeout: PATIENCE });
    say([...reply]);
    await job.terminate();
  },
  /** Eight processes that are asleep. */
  async idle() {
    const { job, context, pids } = await crowd(8, { processes: 8, args: { waits: how } });
    const isIdle = () => job.dump().tasks.every(({ task, parked }) => parked || task === 0);
    while (!isIdle()) await new Promise((resolve) => setTimeout(resolve, 10));
    say(pids);
    await context.progress();
  },
  /** All that tasks print before they end comes out. */
  async print() {
    const { job, context, ask } = await crowd(2);
    for (const task of [1, 2]) {
      await ask(task, "print", { lines: 1000 });
      context.sendImmediate(job.client.endpoint(task), QUIT);
    }
    job.client.close();
    await job.exited;
  },
};

await PROGRAMS[does]?.();
