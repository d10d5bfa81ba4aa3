// @ts-check
// The contestants. Each runs until it is through, and tells what it has measured as it goes.
import { launch, SHUTDOWN } from "pamir";
import { KILL, LATENCIES, RATE } from "./ids.js";

/**
 * @typedef {object} Report
 * @property {(latencies: Float32Array) => void} latencies half round trips in ns
 * @property {(rate: number) => void} rate messages a second
 * @property {(milliseconds: number) => void} busy time that this thread has spent inside pamir
 */

/** A worker was killed while the race ran. */
export class Killed extends Error {}

/** Why a task of a job has failed; undefined: none has. @param {readonly import("pamir").TaskExit[]} exits */
export const failureIn = (exits) => exits.find(({ cause }) => cause === "error" || cause === "memory")?.error;

/**
 * @param {"wasm" | "ts"} kernel
 * @param {number} milliseconds of each part
 * @param {Report} report
 * @param {AbortSignal} killed kills a worker
 */
export async function racePamir(kernel, milliseconds, report, killed) {
  const entry = new URL("./task.js", import.meta.url);
  // The page says itself that a worker was killed.
  const options = { tasks: 3, join: true, kernel, heapBytes: 2 ** 24, args: { milliseconds }, onError: "ignore" };
  const over = new AbortController();
  const job = await launch(entry, /** @type {import("pamir").LaunchOptions} */ (options));
  /** @type {readonly import("pamir").TaskExit[]} */
  let exits = [];
  let isLost = false;
  try {
    const context = job.client.createContext();
    const [leader, other] = [job.client.endpoint(1), job.client.endpoint(2)];
    context.dispatch(LATENCIES, ({ payload }) => report.latencies(new Float32Array(payload.slice().buffer)));
    context.dispatch(RATE, ({ payload }) =>
      report.rate(/** @type {number} */ (new Float64Array(payload.slice().buffer)[0])),
    );
    // It may have been pressed while the workers started.
    isLost = killed.aborted;
    killed.addEventListener("abort", () => context.sendImmediate(other, KILL), { signal: over.signal });
    while (!isLost && context.resume([leader]) !== SHUTDOWN) {
      isLost = context.resume([other]) === SHUTDOWN;
      // A frame at a time: the page draws what has come, and what pamir costs it is seen.
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const start = performance.now();
      while (context.advance() > 0);
      report.busy(performance.now() - start);
    }
  } finally {
    over.abort();
    exits = await job.terminate();
  }
  // The leader may fail because the other one was killed.
  if (isLost && killed.aborted) throw new Killed("a worker was killed");
  const failure = failureIn(exits) ?? (isLost ? "a worker has ended" : undefined);
  if (failure !== undefined) throw new Error(failure);
}

/**
 * The same by postMessage.
 * @param {number} milliseconds
 * @param {Report} report
 * @param {AbortSignal} killed
 */
export async function racePostMessage(milliseconds, report, killed) {
  const url = new URL("./post-message.js", import.meta.url);
  const [leader, other] = [new Worker(url, { type: "module" }), new Worker(url, { type: "module" })];
  try {
    const { port1, port2 } = new MessageChannel();
    await new Promise((resolve, reject) => {
      // Nobody tells when a worker has gone: without this, the race would wait for ever.
      killed.addEventListener("abort", () => {
        other.terminate();
        reject(new Killed("a worker was killed"));
      });
      leader.onerror = other.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message || "a worker of postMessage could not be loaded"));
      };
      leader.onmessage = ({ data }) => {
        if (data.latencies !== undefined) report.latencies(data.latencies);
        if (data.rate !== undefined) report.rate(data.rate);
        if (data.done) resolve(undefined);
      };
      leader.postMessage({ port: port1, leads: true, milliseconds }, [port1]);
      other.postMessage({ port: port2, leads: false, milliseconds }, [port2]);
    });
  } finally {
    leader.terminate();
    other.terminate();
  }
}
