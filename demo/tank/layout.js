// @ts-check
// Where the tank lies in the region of the page: step counters, then two planes of heights and two of speeds.
import { rowsOf } from "./water.js";

/** Dispatch ids of the tank. To a task: the plan, an end of the steps, a catch-up, a push, a pause, a ball of the probe. */
export const PLAN = 1;
export const STOP = 2;
export const CATCH_UP = 3;
export const PUSH = 4;
export const PAUSE = 5;
export const BALL = 6;
export const RETURN = 7;
/** To the page: a task is there, has stopped, has caught up, has gone on, has heard of an end, reports. */
export const HERE = 10;
export const STOPPED = 11;
export const CAUGHT_UP = 12;
export const GOES_ON = 13;
export const HEARD = 14;
export const REPORT = 15;
/** To a bridge, which stands for another page (demo/more): where to meet it. */
export const MEET = 20;
/** Of a bridge: it is there, or is not; the page has come, leaves, is lost; what both have recorded. */
export const MET = 21;
export const CAME = 22;
export const LEAVES = 23;
export const LOST = 24;
export const LANES = 25;

/** Bytes before the planes: a step counter for each member of the plan. */
const HEAD = 4096;
export const MEMBERS_MAX = 16;
/** Other pages that have a part. */
export const PAGES_MAX = 8;

/** @param {number} size @returns {number} bytes of the region */
export const regionBytes = (size) => HEAD + 16 * size * size;

/**
 * Views of the region, in whichever task.
 * @param {ArrayBufferLike} memory
 * @param {number} offset of the region
 * @param {number} size
 */
export function viewsOf(memory, offset, size) {
  const plane = (/** @type {number} */ which) =>
    rowsOf(new Float32Array(memory, offset + HEAD + 4 * which * size * size, size * size), size);
  return {
    steps: new Int32Array(memory, offset, MEMBERS_MAX + PAGES_MAX),
    heights: [plane(0), plane(1)],
    speeds: [plane(2), plane(3)],
  };
}

/** Offset of a row of heights in the region. @param {number} size @param {number} plane @param {number} row */
export const heightOffset = (size, plane, row) => HEAD + 4 * (plane * size * size + row * size);

/** First rows of the parts of a tank, and its end. @param {number} size @param {number} parts */
export const partsOf = (size, parts) =>
  Array.from({ length: parts + 1 }, (_, part) => Math.round((part * size) / parts));

/**
 * A plan: the members and their rows, from a step on.
 * @typedef {object} Plan
 * @property {number} epoch
 * @property {number} step
 * @property {number[]} members tasks, from the top down
 * @property {number[]} halos handles of their halos
 * @property {number} workers members that are workers of the page: they come first
 * @property {number[]} firsts first rows, and the end
 * @property {number} region handle of the page's region
 * @property {number} offset of that region
 * @property {import("./water.js").Pace} pace
 */

/**
 * What has to be done before a plan: parts of the last one are brought to one step.
 * @typedef {object} CatchUp
 * @property {number} epoch
 * @property {number[]} firsts first rows of the parts, and the end
 * @property {number} offset of the page's region
 * @property {import("./water.js").Pace} pace until now
 * @property {number} ratio of a step's time from now on to that until now
 * @property {number[]} lost parts whose rows are gone
 */
