// @ts-check
// Gives strips to a page by pamir/pool: their pixels, or only word that they are drawn, in memory that the page shares.
import { attach } from "pamir";
import { serve } from "pamir/pool";
import { drawInto, drawStrip, STRIP_ROWS, STRIPS, WIDTH } from "./strip.js";

const { frame } = /** @type {{ frame: SharedArrayBuffer }} */ ((await attach()).args);
const bytes = WIDTH * STRIP_ROWS;
const strips = Array.from({ length: STRIPS }, (_, strip) => new Uint32Array(frame, strip * bytes * 4, bytes));

export const api = serve({
  draw: drawStrip,
  /** @param {number} frame @param {number} strip */
  drawShared: (frame, strip) => drawInto(/** @type {Uint32Array} */ (strips[strip]), frame, strip),
});
