// @ts-check
// A job whose tasks add up their numbers in a tree of messages, once; its trace, and what each task has got.
import { launch } from "pamir";
import { BEGIN, SUM, THERE } from "./tree-ids.js";

/** @typedef {import("pamir").Trace} Trace @typedef {import("pamir").TraceEvent} TraceEvent */

/** Milliseconds within which a page that starts workers goes on. */
const PATIENCE_MS = 60_000;

/**
 * @param {number} count of tasks
 * @param {import("./trace-reader.js").TraceReader} reader
 * @returns {Promise<{ trace: Trace, sums: number[] }>} events from where a task begins to where it has the sum
 */
export async function runTree(count, reader) {
  const members = Array.from({ length: count }, (_, place) => place + 1);
  const job = await launch(new URL("./tree-task.js", import.meta.url), {
    tasks: count + 1,
    join: true,
    contexts: 1,
    heapBytes: 2 ** 23,
    trace: { events: 1024 },
    args: { members },
  });
  try {
    const context = job.client.createContext();
    let there = 0;
    /** @type {number[]} */
    const sums = [];
    context.dispatch(THERE, () => {
      there++;
    });
    context.dispatch(SUM, (message) => void sums.push(message.getInt32(0)));
    const until = async (/** @type {() => boolean} */ condition) => {
      for (const end = performance.now() + PATIENCE_MS; !condition(); ) {
        if (performance.now() > end) throw new Error("a task does not answer");
        await context.progress({ timeout: PATIENCE_MS });
      }
    };
    await until(() => there === count);
    for (const member of members) context.sendImmediate(job.client.endpoint(member), BEGIN);
    await until(() => sums.length === count);
    return { trace: partOf(await reader.all(job)), sums };
  } finally {
    await job.terminate();
  }
}

/**
 * What the tasks did for the sum alone: behind what the page has sent to each, and before its own message to the page.
 * @param {Trace} trace @returns {Trace}
 */
function partOf({ traceEvents, ...rest }) {
  /** Tasks that have begun, and those that are through. @type {Set<number>} */
  const begun = new Set();
  /** @type {Set<number>} */
  const over = new Set();
  let isKept = false;
  const isPart = (/** @type {TraceEvent} */ { ph, tid, cat, args = {} }) => {
    if (tid === 0) return false;
    if (ph === "M") return true;
    // The ends of an arrow follow their events.
    if (ph === "s" || ph === "f") return isKept;
    if (cat === "send" && String(args.to).startsWith("0.") && begun.has(tid)) over.add(tid);
    isKept = begun.has(tid) && !over.has(tid);
    if (cat === "handler" && String(args.from).startsWith("0.")) begun.add(tid);
    return isKept;
  };
  return /** @type {Trace} */ ({ ...rest, traceEvents: traceEvents.filter(isPart) });
}
