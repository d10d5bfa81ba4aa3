// @ts-check
// What the card measures besides the race, each beside the usual way: a call by name, blocks that are copied, a barrier.
import { wrap } from "comlink";
import { codecs, dispatchId, launch } from "pamir";
import { pool } from "pamir/pool";
import { failureIn } from "../card/race.js";
import { ORDER } from "./call-api.js";
import { MEASURED } from "./sizes.js";

/** @typedef {import("./sizes.js").Measured} Measured @typedef {import("./call-api.js").api} Api */
/**
 * @typedef {object} Row
 * @property {string} what
 * @property {"µs" | "MB/s"} unit µs: less is better; MB/s: more is
 * @property {number | null} pamir null: it has failed
 * @property {number | null} usual
 * @property {string} by the usual way
 */

const WARM_CALLS = 100;

/** Rejects if one of these workers fails. @param {Worker[]} workers @returns {Promise<never>} */
const failureOf = (...workers) =>
  new Promise((_, reject) => {
    for (const worker of workers) {
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message || "a worker could not be loaded"));
      };
    }
  });

/**
 * One measurement after the other: where one fails, the others go on.
 * @param {number} milliseconds of each measurement
 * @returns {Promise<{ rows: Row[], failed: string[] }>}
 */
export async function measureEveryday(milliseconds) {
  /** @type {string[]} */
  const failed = [];
  /** @template T @param {string} what @param {(milliseconds: number) => Promise<T>} measure */
  const attempt = async (what, measure) => {
    try {
      return await measure(milliseconds);
    } catch (error) {
      failed.push(`${what} (${/** @type {Error} */ (error).message})`);
      return undefined;
    }
  };
  const ownCall = await attempt("calls by pamir", callByPamir);
  const comlinkCall = await attempt("calls by Comlink", callByComlink);
  const own = await attempt("blocks and barriers by pamir", blocksByPamir);
  const posted = await attempt("blocks and barriers by postMessage", blocksByPost);
  const round = (/** @type {number | undefined} */ value) =>
    value === undefined ? null : Number(value.toPrecision(3));
  const rate = (/** @type {Measured | undefined} */ measured) => measured && measured.bytesPerSecond / 1e6;
  /** @type {(what: string, unit: Row["unit"], figures: (number | undefined)[], by: string) => Row} */
  const row = (what, unit, [pamir, usual], by) => ({ what, unit, pamir: round(pamir), usual: round(usual), by });
  const rows = [
    row("A call by name, with an object", "µs", [ownCall, comlinkCall], "Comlink"),
    row("Blocks of 1 MiB, copied", "MB/s", [rate(own), rate(posted)], "postMessage"),
    row("A barrier of two workers", "µs", [own?.barrierUs, posted?.barrierUs], "postMessage"),
  ];
  return { rows, failed };
}

/**
 * @param {(order: typeof ORDER) => Promise<unknown>} accept
 * @param {number} milliseconds
 * @returns {Promise<number>} µs a call
 */
async function timeCalls(accept, milliseconds) {
  for (let i = 0; i < WARM_CALLS; i++) await accept(ORDER);
  const start = performance.now();
  let calls = 0;
  for (; performance.now() - start < milliseconds; calls++) await accept(ORDER);
  return (1000 * (performance.now() - start)) / calls;
}

/** @param {number} milliseconds */
async function callByPamir(milliseconds) {
  const workers = await /** @type {typeof pool<Api>} */ (pool)(new URL("./call-pamir.js", import.meta.url), {
    workers: 1,
  });
  try {
    return await timeCalls((order) => workers.accept(order), milliseconds);
  } finally {
    await workers.terminate();
  }
}

/** @param {number} milliseconds */
async function callByComlink(milliseconds) {
  const worker = new Worker(new URL("./call-comlink.js", import.meta.url), { type: "module" });
  try {
    const remote = /** @type {import("comlink").Remote<Api>} */ (wrap(worker));
    return await Promise.race([timeCalls((order) => remote.accept(order), milliseconds), failureOf(worker)]);
  } finally {
    worker.terminate();
  }
}

/** @param {number} milliseconds @returns {Promise<Measured>} */
async function blocksByPamir(milliseconds) {
  const entry = new URL("./blocks-task.js", import.meta.url);
  const options = { tasks: 3, join: true, heapBytes: 2 ** 24, args: { milliseconds }, onError: "ignore" };
  const job = await launch(entry, /** @type {import("pamir").LaunchOptions} */ (options));
  /** @type {readonly import("pamir").TaskExit[]} */
  let exits = [];
  /** @type {Measured | undefined} */
  let measured;
  try {
    const context = job.client.createContext();
    const json = /** @type {import("pamir").Codec<Measured>} */ (codecs.json());
    let isLost = false;
    context.dispatch(dispatchId(MEASURED, json), (given) => {
      measured = given;
    });
    // Task 1 ends if the other one does.
    context.whenEnded(job.client.endpoint(1), () => {
      isLost = true;
    });
    while (measured === undefined && !isLost) await context.progress();
  } finally {
    exits = await job.terminate();
  }
  if (measured === undefined) throw new Error(failureIn(exits) ?? "a worker has ended while it measured");
  return measured;
}

/** @param {number} milliseconds @returns {Promise<Measured>} */
async function blocksByPost(milliseconds) {
  const url = new URL("./blocks-post.js", import.meta.url);
  const [leader, other] = [new Worker(url, { type: "module" }), new Worker(url, { type: "module" })];
  try {
    const { port1, port2 } = new MessageChannel();
    const measured = /** @type {Promise<Measured>} */ (
      new Promise((resolve) => {
        leader.onmessage = ({ data }) => resolve(data);
      })
    );
    leader.postMessage({ port: port1, leads: true, milliseconds }, [port1]);
    other.postMessage({ port: port2, leads: false, milliseconds }, [port2]);
    return await Promise.race([measured, failureOf(leader, other)]);
  } finally {
    leader.terminate();
    other.terminate();
  }
}
