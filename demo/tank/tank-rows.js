// @ts-check
// The rows of a task, in the page's region or in a region of its own.
import { heightOffset, viewsOf } from "./layout.js";
import { rowsOf, stepRows } from "./water.js";

/** @typedef {import("./water.js").Rows} Rows */

/**
 * @typedef {object} Part
 * @property {number} first row
 * @property {number} count
 * @property {import("./water.js").Pace} pace
 * @property {(plane: number, side: number) => Float32Array} halo
 */

/**
 * Rows in the memory that the page draws from.
 * @param {ReturnType<typeof viewsOf>} views
 * @param {Part} part
 * @returns {Rows}
 */
export function sharedRows({ heights, speeds }, { first, count, pace, halo }) {
  const size = heights[0].length;
  const own = (/** @type {Float32Array[]} */ plane) => plane.slice(first, first + count);
  const height = (/** @type {number} */ plane) => [halo(plane, 0), ...own(heights[plane]), halo(plane, 1)];
  return { first, count, size, pace, heights: [height(0), height(1)], speeds: [own(speeds[0]), own(speeds[1])] };
}

/**
 * Rows in a memory of this thread alone, of still water.
 * @param {Float32Array} heights two planes
 * @param {number} size
 * @param {Part} part
 * @returns {Rows}
 */
export function ownRows(heights, size, { first, count, pace, halo }) {
  const rows = rowsOf(heights, size);
  const height = (/** @type {number} */ plane) => [
    halo(plane, 0),
    ...rows.slice(plane * count, (plane + 1) * count),
    halo(plane, 1),
  ];
  const speed = () => rowsOf(new Float32Array(count * size), size);
  return { first, count, size, pace, heights: [height(0), height(1)], speeds: [speed(), speed()] };
}

/**
 * Brings all parts of a tank to the step of the foremost one, after a task has ended in the midst of a step. Neighbors are at
 * most one step apart, and the plane of a step stays whole until its neighbors have gone on.
 * @param {ReturnType<typeof viewsOf>} views
 * @param {number[]} firsts first rows of the parts, and the end
 * @param {import("./water.js").Pace} pace
 * @returns {number} the step
 */
function catchUp(views, firsts, pace) {
  const { steps, heights } = views;
  const count = firsts.length - 1;
  const still = new Float32Array(heights[0].length);
  const parts = Array.from({ length: count }, (_, part) =>
    sharedRows(views, {
      first: firsts[part],
      count: firsts[part + 1] - firsts[part],
      pace,
      halo: (plane, side) => heights[plane][side === 0 ? firsts[part] - 1 : firsts[part + 1]] ?? still,
    }),
  );
  for (;;) {
    const at = Array.from({ length: count }, (_, part) => Atomics.load(steps, part));
    const least = at.indexOf(Math.min(...at));
    if (at[least] === Math.max(...at)) return at[least];
    stepRows(parts[least], at[least]);
    Atomics.store(steps, least, at[least] + 1);
  }
}

/**
 * What a plan begins with: all parts at one step. Parts whose rows are gone go on from their last picture, which is in both
 * planes, without speed.
 * @param {ReturnType<typeof viewsOf>} views @param {import("./layout.js").CatchUp} given @returns {number} the step
 */
export function toOneStep(views, { firsts, pace, ratio, lost }) {
  const { steps, speeds } = views;
  const kept = firsts
    .slice(1)
    .flatMap((_, part) => (lost.includes(part) && lost.length < firsts.length - 1 ? [] : [part]));
  const foremost = Math.max(...kept.map((part) => Atomics.load(steps, part)));
  for (const part of lost) {
    Atomics.store(steps, part, foremost);
    for (const plane of speeds) for (const row of plane.slice(firsts[part], firsts[part + 1])) row.fill(0);
  }
  const reached = catchUp(views, firsts, pace);
  if (ratio !== 1) scale(speeds[reached & 1], ratio);
  return reached;
}

/** A step is another time from now on: so is what the water moves in it. @param {Float32Array[]} speeds @param {number} ratio */
function scale(speeds, ratio) {
  for (const row of speeds) for (let x = 0; x < row.length; x++) row[x] *= ratio;
}

/** Where the page wants the heights of these rows. @param {Rows} rows @param {number} plane */
export const pageOffset = ({ size, first }, plane) => heightOffset(size, plane, first);
