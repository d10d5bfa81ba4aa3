// @ts-check
// The water: a damped wave equation on a square grid, by a star of five points. All programs of the tank call these functions,
// and so come to the same bits.

/** What is smaller by 16 digits is rounded off: floats below 1e-38 take a processor ten times as long as others. */
const FLOOR = 1e-12;
/** Steps a second that are taken for granted before any has been counted. */
export const RATE = 1000;
/** Parts of the tank that a wave crosses in a second, seconds after which a third of it is left, and between two drops. */
const [WAY, FADE, DROPS] = [0.45, 4, 0.7];

/**
 * The pace of the water: the same for all programs that are to come to the same bits.
 * @typedef {object} Pace
 * @property {number} pull square of a wave's way in one step, in cells: less than half
 * @property {number} keep part of the speed that is left after a step
 * @property {number} every steps from one drop to the next
 */

/**
 * The pace by which waves look alike on fast machines and on slow ones.
 * @param {number} size @param {number} rate steps a second @returns {Pace}
 */
export function paceOf(size, rate) {
  const way = Math.min(0.6, (WAY * size) / rate);
  return { pull: way * way, keep: 1 - 1 / (FADE * rate), every: Math.max(1, Math.round(DROPS * rate)) };
}

/**
 * One step of one row: Δ speed is the pull of the four neighbors, Δ height the speed.
 * @param {Float32Array} height of the row, behind the step
 * @param {Float32Array} speed behind the step
 * @param {Float32Array} row its height before the step
 * @param {Float32Array} before its speed before the step
 * @param {{ up: Float32Array, down: Float32Array, pull: number, keep: number }} given heights of the rows beside it, before the
 *   step, and the pace
 */
function stepRow(height, speed, row, before, { up, down, pull, keep }) {
  const last = row.length - 1;
  let left = row[0];
  let here = row[1];
  for (let x = 1; x < last; x++) {
    const right = row[x + 1];
    const now = keep * (before[x] + pull * (up[x] + down[x] + left + right - 4 * here)) + FLOOR - FLOOR;
    speed[x] = now;
    height[x] = here + now;
    left = here;
    here = right;
  }
}

/**
 * Rows of the tank. Planes 0 and 1 take turns: step n stands in plane n & 1, so a step that was broken off can be done again.
 * @typedef {object} Rows
 * @property {number} first number of the first row in the tank
 * @property {number} count
 * @property {number} size rows and columns of the tank
 * @property {Pace} pace
 * @property {[Float32Array[], Float32Array[]]} heights by plane: the row above, the rows, the row below
 * @property {[Float32Array[], Float32Array[]]} speeds by plane: the rows
 */

/** Brings rows from a step to the next one. @param {Rows} rows @param {number} step */
export function stepRows(rows, step) {
  const { heights, speeds, count, pace } = rows;
  const { pull, keep } = pace;
  const now = step & 1;
  const [from, to] = [heights[now], heights[1 - now]];
  for (let y = 1; y <= count; y++) {
    const given = { up: from[y - 1], down: from[y + 1], pull, keep };
    stepRow(to[y], speeds[1 - now][y - 1], from[y], speeds[now][y - 1], given);
  }
  if (step % pace.every === 0) drop(rows, step);
}

/** A drop falls where its step says. @param {Rows} rows @param {number} step */
function drop(rows, step) {
  const { size } = rows;
  const part = (/** @type {number} */ salt) => 0.1 + (0.8 * (Math.imul(step + 1, salt) >>> 8)) / 2 ** 24;
  const [x, y] = [Math.floor(size * part(0x9e3779b1)), Math.floor(size * part(0x85ebca6b))];
  push(rows, (step & 1) ^ 1, { x, y, radius: size / 40, height: 0.9 });
}

/** Where the water is lifted, in cells. @typedef {{ x: number, y: number, radius: number, height: number }} Lift */

/** Lifts the water at a place. @param {Rows} rows @param {number} plane @param {Lift} lift */
export function push({ heights, first, count, size }, plane, { x, y, radius, height }) {
  const reach = Math.ceil(2.5 * radius);
  const end = Math.min(first + count, y + reach);
  for (let at = Math.max(first, y - reach + 1); at < end; at++) {
    const row = heights[plane][at - first + 1];
    for (let column = Math.max(1, x - reach + 1); column < Math.min(size - 1, x + reach); column++) {
      const far = ((at - y) ** 2 + (column - x) ** 2) / radius ** 2;
      row[column] += height * Math.exp(-far);
    }
  }
}

/** Rows of memory, one behind the other. @param {Float32Array} cells @param {number} size @returns {Float32Array[]} */
export const rowsOf = (cells, size) =>
  Array.from({ length: cells.length / size }, (_, y) => cells.subarray(y * size, (y + 1) * size));

/**
 * The whole tank on one thread.
 * @param {number} size @param {number} steps @param {Pace} pace @returns {Float32Array} heights
 */
export function sequential(size, steps, pace = paceOf(size, RATE)) {
  const still = new Float32Array(size);
  const planes = [0, 1].map(() => new Float32Array(size * size));
  const heights = planes.map((plane) => [still, ...rowsOf(plane, size), still]);
  const speeds = planes.map(() => rowsOf(new Float32Array(size * size), size));
  const rows = /** @type {Rows} */ ({ first: 0, count: size, size, pace, heights, speeds });
  for (let step = 0; step < steps; step++) stepRows(rows, step);
  return planes[steps & 1];
}
