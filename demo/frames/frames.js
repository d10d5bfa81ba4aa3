// @ts-check
// What the engine thread is for, on a page: how long does its thread keep a frame waiting while it sends much to a worker?
import { info, launch, PamiError, SUCCESS } from "pamir";
import { CHECKED, fill, PAYLOAD, READY } from "./frames-common.js";

const MIB = 2 ** 20;
/** The tests ask for less. */
const WANTED = (Math.max(0, Number(new URLSearchParams(location.search).get("mebibytes"))) || 256) * MIB;
const PATIENCE_MS = 60_000;
/** Of a page that nobody sees, which draws none. */
const FRAME_MS = 16;

/** @typedef {{ longest: number, frames: number, took: number, isRight: boolean, engine: string }} Outcome */

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** @returns {Promise<unknown>} */
function nextFrame() {
  return new Promise((resolve) => {
    if (document.hidden) setTimeout(resolve, FRAME_MS);
    else requestAnimationFrame(resolve);
  });
}

/** Draws from now on. What is returned is called when all is there; it says how the frames got on meanwhile. */
function drawFrames() {
  const start = performance.now();
  const pointer = element("pointer");
  let last = start;
  let longest = 0;
  let frames = 0;
  let isOver = false;
  const drawing = (async () => {
    // One more frame when it is over, which may be waiting then.
    for (let isLast = false; !isLast; ) {
      isLast = isOver;
      await nextFrame();
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      frames++;
      pointer.style.transform = `rotate(${(now - start) / 5}deg)`;
    }
  })();
  return async () => {
    const took = performance.now() - start;
    isOver = true;
    await drawing;
    return { longest, frames, took };
  };
}

/** @param {"inline" | "thread"} engine @param {number} bytes @returns {Promise<Outcome>} */
async function byPamir(engine, bytes) {
  // Two regions, and some room for lanes.
  const options = { tasks: 2, join: true, engine, heapBytes: 2 * bytes + 16 * MIB, args: bytes };
  const job = await launch(new URL("./frames-task.js", import.meta.url), options);
  try {
    const context = job.client.createContext();
    const { bytes: payload } = job.client.createRegion(bytes);
    fill(payload);
    let isReady = false;
    let result = -1;
    let isRight = -1;
    context.dispatch(READY, () => {
      isReady = true;
    });
    context.dispatch(CHECKED, (message) => {
      isRight = message.getUint8(0);
    });
    const until = async (/** @type {() => boolean} */ condition) => {
      while (!condition()) await context.progress({ timeout: PATIENCE_MS });
    };
    await until(() => isReady);

    const stop = drawFrames();
    const onLocal = (/** @type {unknown} */ _, /** @type {number} */ came) => {
      result = came;
    };
    const begun = context.send({ to: job.client.endpoint(1), dispatch: PAYLOAD, payload, rendezvous: true, onLocal });
    await until(() => begun !== SUCCESS || result >= 0);
    const figures = await stop();

    await until(() => isRight >= 0);
    return { ...figures, isRight: isRight === 1 && result === SUCCESS, engine: job.engine };
  } finally {
    await job.terminate();
  }
}

/** @param {number} bytes @returns {Promise<Outcome>} */
async function byPostMessage(bytes) {
  const worker = new Worker(new URL("./frames-worker.js", import.meta.url), { type: "module" });
  try {
    const heard = () =>
      new Promise((resolve, reject) => {
        worker.onerror = (event) => {
          event.preventDefault();
          reject(new Error(event.message || "the worker of postMessage could not be loaded"));
        };
        worker.onmessage = ({ data }) => resolve(data);
        worker.onmessageerror = () => reject(new RangeError("what was posted can't be read"));
      });
    const payload = new Uint8Array(bytes);
    fill(payload);
    await heard();

    const stop = drawFrames();
    const there = heard();
    worker.postMessage(payload);
    await there;
    const checked = heard();
    const figures = await stop();

    return { ...figures, isRight: (await checked) === true, engine: "" };
  } finally {
    worker.terminate();
  }
}

const WAYS = [
  { by: "engine inline", name: "pamir: this thread moves the bytes", send: byPamir.bind(undefined, "inline") },
  { by: "engine thread", name: "pamir: the engine thread moves them", send: byPamir.bind(undefined, "thread") },
  { by: "postMessage (clone)", name: "postMessage: this thread clones them", send: byPostMessage },
];

/** @param {number} milliseconds */
const round = (milliseconds) => Math.round(10 * milliseconds) / 10;

/** @param {string} name @param {number} longest @param {number} took @param {boolean} isRight */
function rowOf(name, longest, took, isRight) {
  const row = document.createElement("tr");
  for (const text of [name, String(round(longest)), String(round(took)), isRight ? "yes" : "no"]) {
    const cell = document.createElement(row.firstChild === null ? "th" : "td");
    cell.textContent = text;
    row.append(cell);
  }
  /** @type {HTMLElement} */ (row.firstChild).setAttribute("scope", "row");
  return row;
}

/** Names the least time of a column, and says how many times as long the others are. @param {HTMLElement} rows @param {number} column */
function markLeast(rows, column) {
  const cells = [...rows.children].map(({ children }) => /** @type {HTMLElement} */ (children[column]));
  const values = cells.map(({ textContent }) => Number(textContent));
  const least = Math.min(...values);
  for (const [place, cell] of cells.entries()) {
    const note = document.createElement("small");
    const times = values[place] / least;
    note.textContent =
      times < 1.05 ? "the least" : `${times.toLocaleString("en", { maximumSignificantDigits: 2 })} times the least`;
    cell.append(" ", note);
  }
}

/** Sends so much in each way. @param {number} bytes */
async function compare(bytes) {
  const rows = element("rows");
  rows.replaceChildren();
  const results = [];
  for (const { by, name, send } of WAYS) {
    element("status").textContent = `Sending ${bytes / MIB} MiB. ${name}.`;
    // So that this is seen before the payload is made.
    await nextFrame();
    const { longest, frames, took, isRight, engine } = await send(bytes);
    // Without an engine thread, the bytes are moved here.
    const isInline = engine !== "" && engine !== "thread" && by === "engine thread";
    rows.append(rowOf(isInline ? `${name}: there is none here` : name, longest, took, isRight));
    results.push({ by, engine, right: isRight, longest_ms: round(longest), frames, took_ms: round(took) });
  }
  for (const column of [1, 2]) markLeast(rows, column);
  return { pamir: info().version, userAgent: navigator.userAgent, mebibytes: bytes / MIB, results };
}

async function run() {
  const button = /** @type {HTMLButtonElement} */ (element("run"));
  button.disabled = true;
  try {
    for (let bytes = WANTED; ; bytes /= 2) {
      try {
        element("json").textContent = JSON.stringify(await compare(bytes), null, 2);
        element("status").textContent = `Done: ${bytes / MIB} MiB in each way.`;
        return;
      } catch (error) {
        const isRefused = error instanceof PamiError ? error.code === "PAMIR_MEMORY" : error instanceof RangeError;
        if (!isRefused || bytes <= MIB) throw error;
      }
    }
  } catch (error) {
    element("status").textContent = `It ended early: ${/** @type {Error} */ (error).message}`;
  } finally {
    button.disabled = false;
  }
}

element("run").addEventListener("click", () => void run());
const { mode, why } = info();
if (mode !== "shared") {
  element("status").textContent = `Threads share no memory here, and then no thread can send for another: ${why}.`;
  /** @type {HTMLButtonElement} */ (element("run")).disabled = true;
}
