// @ts-check
// What the engine thread is for. A thread draws a frame every 16 ms, and sends 1 GiB to another one meanwhile: by how much is
// a frame late at most, and for how long is the thread busy? Where it moves the bytes itself, in between (engine inline);
// where a thread of the job's does (engine thread); and where it posts them, and they are cloned.
// Shows: launch with an engine thread, a payload that stays where it is, receive into a region.
//   node examples/frames.js [MiB]
import { on } from "node:events";
import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { attach, errorText, launch, PamiError, SUCCESS } from "pamir";

const FRAME_MS = 16;
const PATIENCE_MS = 60_000;
const POST_MS = 20_000; // what takes longer is given up: Deno 2.9 takes a second and more for each MiB
const MIB = 1024 ** 2;
const READY = 1; // target → sender: there is a place for the payload
const PAYLOAD = 2; // sender → target; as many words as it is told to send
const CHECKED = 3; // target → sender; payload: u8, whether each word was what it must be

/** Calls of pamir return what they came to; here all but success is the end. @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(errorText(result));
}

/** @param {Uint8Array} bytes */
const wordsOf = ({ buffer, byteOffset, length }) => new Uint32Array(buffer, byteOffset, length / 4);

/** @param {Uint8Array} bytes */
function fill(bytes) {
  const words = wordsOf(bytes);
  for (let i = 0; i < words.length; i++) words[i] = i;
}

/** @param {Uint8Array} bytes */
function isFilled(bytes) {
  const words = wordsOf(bytes);
  let wrong = 0;
  for (let i = 0; i < words.length; i++) if (words[i] !== i) wrong++;
  return wrong === 0;
}

/** Draws frames from now on. What is returned is called when all is there; it says how they got on meanwhile. */
function drawFrames() {
  const start = performance.now();
  const before = performance.eventLoopUtilization();
  let last = start;
  let longest = 0; // that a frame came late, in milliseconds
  let drawn = () => {};
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - FRAME_MS);
    last = now;
    drawn();
  }, FRAME_MS);
  return async () => {
    const took = performance.now() - start;
    const { active } = performance.eventLoopUtilization(before); // not idle: drawing takes nothing here
    // One more frame, which may be waiting now.
    await /** @type {Promise<void>} */ (new Promise((resolve) => (drawn = resolve)));
    clearInterval(timer);
    return { longest, active, took };
  };
}

/** @param {"inline" | "thread"} engine @param {number} bytes */
async function byPamir(engine, bytes) {
  // Two regions, and some room for lanes.
  const heapBytes = 2 * bytes + 16 * MIB;
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true, engine, heapBytes, args: bytes });
  const context = job.client.createContext();
  const target = job.client.endpoint(1);
  const { bytes: payload } = job.client.createRegion(bytes);
  fill(payload);
  let isReady = false;
  let isThere = false;
  let isRight = false;
  let isOver = false;
  context.dispatch(READY, () => {
    isReady = true;
  });
  context.dispatch(CHECKED, (message) => {
    isRight = message.getUint8(0) === 1;
    isOver = true;
  });
  // Waits as long as it takes, and lets the thread's timers have their turn.
  const until = async (/** @type {() => boolean} */ condition) => {
    while (!condition()) await context.progress({ timeout: PATIENCE_MS });
  };
  await until(() => isReady);

  const stop = drawFrames();
  // With onLocal the payload stays where it is until all of it is where the target wants it.
  const onLocal = (/** @type {unknown} */ _, /** @type {number} */ result) => {
    check(result);
    isThere = true;
  };
  check(context.send({ to: target, dispatch: PAYLOAD, payload, rendezvous: true, onLocal }));
  await until(() => isThere);
  const figures = await stop();

  await until(() => isOver);
  await job.terminate();
  return { ...figures, isRight };
}

/** The other task. */
async function receive() {
  const client = await attach();
  const context = client.createContext();
  const region = client.createRegion(/** @type {number} */ (client.args));
  region.bytes.fill(0);
  let isThere = false;
  context.dispatch(PAYLOAD, (message) => {
    message.receive(region.bytes, (_, result) => {
      check(result);
      isThere = true;
    });
  });
  check(context.sendImmediate(client.endpoint(0), READY));
  check(context.advanceUntil(() => isThere, { timeout: PATIENCE_MS }));
  check(context.sendImmediate(client.endpoint(0), CHECKED, null, Uint8Array.of(Number(isFilled(region.bytes)))));
  await client.close({ drain: true });
}

/** What it came to; undefined where it is not there after POST_MS. @param {number} bytes */
async function byPostMessage(bytes) {
  const worker = new Worker(new URL(import.meta.url), { workerData: "postMessage" });
  // The second answer may come while the last frame is awaited: messages wait here until they are asked for.
  const messages = on(worker, "message");
  const heard = async () => (await messages.next()).value[0];
  const payload = new Uint8Array(bytes);
  fill(payload);
  await heard();

  const stop = drawFrames();
  const there = heard();
  worker.postMessage(payload);
  const tooLate = new AbortController();
  const late = setTimeout(POST_MS, "late", { signal: tooLate.signal }).catch(() => {});
  const isLate = (await Promise.race([there, late])) === "late";
  tooLate.abort();
  const figures = await stop();

  const isRight = isLate || (await heard());
  await worker.terminate();
  return isLate ? undefined : { ...figures, isRight };
}

/** The other thread. */
function receivePosted() {
  const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
  port.on("message", (/** @type {Uint8Array} */ payload) => {
    port.postMessage("there");
    port.postMessage(isFilled(payload));
  });
  port.postMessage("ready");
}

/** All three, if the host has the memory. @param {number} bytes */
async function compare(bytes) {
  const cells = (/** @type {string[]} */ [name = "", ...others]) =>
    console.log(name.padEnd(20) + others.map((text) => text.padStart(20)).join(""));
  const time = (/** @type {number} */ milliseconds) => `${milliseconds.toFixed(1)} ms`;
  /** @param {string} name @param {Awaited<ReturnType<typeof byPamir>>} figures */
  const row = (name, { longest, active, took, isRight }) => {
    if (!isRight) throw new Error(`${name}: what arrived is not what was sent`);
    // Only Node tells how long a thread was busy.
    cells([name, time(longest), active === 0 ? "–" : time(active), time(took)]);
  };
  const inline = await byPamir("inline", bytes);
  cells([`${bytes / MIB} MiB`, "a frame was late by", "it was busy for", "all was there after"]);
  row("engine inline", inline);
  row("engine thread", await byPamir("thread", bytes));
  const name = "postMessage (clone)";
  const posted = await byPostMessage(bytes);
  if (posted !== undefined) row(name, posted);
  else console.log(`${name} given up after ${time(POST_MS)}`);
}

async function start() {
  for (let bytes = Number(process.argv[2] ?? 1024) * MIB; ; bytes /= 2) {
    try {
      return await compare(bytes);
    } catch (error) {
      const isRefused = error instanceof PamiError ? error.code === "PAMIR_MEMORY" : error instanceof RangeError;
      if (!isRefused || bytes <= MIB) throw error;
      console.log(`${bytes / MIB} MiB are too much here: ${/** @type {Error} */ (error).message}. Half of it:`);
    }
  }
}

if (isMainThread) await start();
else if (workerData === "postMessage") receivePosted();
else await receive();
