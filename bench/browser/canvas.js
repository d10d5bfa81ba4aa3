// @ts-check
// Frames of a canvas whose strips two workers draw: pixels that pamir/pool returns, pixels that the workers draw in memory that
// the page shares, and pixels that postMessage transfers.
import { pool } from "pamir/pool";
import { median } from "./measure.js";
import { pixelOf, STRIP_ROWS, STRIPS, WIDTH } from "./strip.js";

const WORKERS = 2;

function canvas() {
  const element = document.createElement("canvas");
  [element.width, element.height] = [WIDTH, STRIPS * STRIP_ROWS];
  document.body.append(element);
  return /** @type {CanvasRenderingContext2D} */ (element.getContext("2d", { willReadFrequently: true }));
}

/** @param {CanvasRenderingContext2D} context @param {number} strip @param {Uint8ClampedArray<ArrayBuffer>} pixels */
const paint = (context, strip, pixels) => context.putImageData(new ImageData(pixels, WIDTH), 0, strip * STRIP_ROWS);

/** @param {CanvasRenderingContext2D} context @param {number} frame */
function check(context, frame) {
  for (let strip = 0; strip < STRIPS; strip++) {
    const { data } = context.getImageData(WIDTH - 1, (strip + 1) * STRIP_ROWS - 1, 1, 1);
    const [found] = new Uint32Array(data.buffer);
    if (found !== pixelOf(frame, strip)) throw new Error(`strip ${strip} is ${found}, not ${pixelOf(frame, strip)}`);
  }
}

/** Milliseconds of a frame: the median. @param {number} count @param {(frame: number) => Promise<void>} draw */
async function frames(count, draw) {
  const times = [];
  for (let frame = 0; frame < count; frame++) {
    const start = performance.now();
    await draw(frame);
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve));
  }
  return median(times);
}

/** The three ways, a round each in turn. @param {number} count @param {number} rounds */
export async function canvasFrames(count, rounds) {
  const context = canvas();
  const strips = Array.from({ length: STRIPS }, (_, strip) => strip);
  const bytes = WIDTH * STRIP_ROWS * 4;
  const frame = new SharedArrayBuffer(STRIPS * bytes);
  const shared = strips.map((strip) => new Uint8ClampedArray(frame, strip * bytes, bytes));
  const image = new ImageData(WIDTH, STRIP_ROWS);
  /** @type {import("pamir/pool").Pool<typeof import("./strip-pool.js")["api"]>} */
  const workers = await pool(new URL("./strip-pool.mjs", import.meta.url), {
    workers: WORKERS,
    concurrency: STRIPS / WORKERS,
    args: { frame },
    // A worker has its part of half of the heap for large results: with the 32 MiB of a page, strips would go in packets.
    heapBytes: 2 ** 30,
  });
  await workers.warmUp();
  const byPool = async (/** @type {number} */ frame) => {
    await Promise.all(strips.map(async (strip) => paint(context, strip, await workers.draw(frame, strip))));
  };
  const byShared = async (/** @type {number} */ number) => {
    await Promise.all(
      strips.map(async (strip) => {
        await workers.drawShared(number, strip);
        image.data.set(/** @type {Uint8ClampedArray} */ (shared[strip]));
        context.putImageData(image, 0, strip * STRIP_ROWS);
      }),
    );
  };
  const posting = Array.from({ length: WORKERS }, () => {
    return new Worker(new URL("./strip-post.mjs", import.meta.url), { type: "module" });
  });
  const byPost = (/** @type {number} */ frame) =>
    new Promise((resolve) => {
      let painted = 0;
      for (const worker of posting) {
        worker.onmessage = ({ data: { strip, pixels } }) => {
          paint(context, strip, pixels);
          if (++painted === STRIPS) resolve(undefined);
        };
      }
      for (const strip of strips) posting[strip % WORKERS]?.postMessage({ frame, strip });
    });
  /** @type {{ ours: number[], shared: number[], theirs: number[] }} */
  const times = { ours: [], shared: [], theirs: [] };
  for (let round = -1; round < rounds; round++) {
    const ours = await frames(count, byPool);
    check(context, count - 1);
    const inPlace = await frames(count, byShared);
    check(context, count - 1);
    const theirs = await frames(count, /** @type {(frame: number) => Promise<void>} */ (byPost));
    check(context, count - 1);
    if (round < 0) continue; // warm
    times.ours.push(ours);
    times.shared.push(inPlace);
    times.theirs.push(theirs);
  }
  for (const worker of posting) worker.terminate();
  await workers.close();
  return times;
}
