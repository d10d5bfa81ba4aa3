// @ts-check
// The rows of a page that has joined: steps that wait for the rows beside them, which come by messages.
import { ownRows } from "../tank/tank-rows.js";
import { push, stepRows } from "../tank/water.js";
import { ASLEEP, CAME, Marks, messageOf, STEP, WENT } from "./marks.js";
import * as words from "./words.js";

/** Rows in a stripe of the picture that the tank gets. */
const STRIPE_ROWS = 8;

/**
 * @typedef {object} Part
 * @property {number} epoch of the plan
 * @property {number} first row
 * @property {number} count
 * @property {number} size
 * @property {import("../tank/water.js").Pace} pace
 * @property {number} step
 * @property {number} stop
 * @property {boolean} isPaused
 * @property {boolean[]} hasNeighbors above, and below
 */

export class GuestRows {
  marks = new Marks(0);
  /** @type {Part | undefined} */
  part;
  /** @type {import("../tank/water.js").Rows | undefined} */
  rows;
  step = 0;
  steps = 0;
  isPaused = false;
  /** ms in which it has computed. */
  computed = 0;
  /** By side and plane, the rows that come. @type {Float32Array[]} */
  #halo = [];
  /** By side: the last step whose row has come, and 1. */
  #come = [0, 0];
  /** Rows of the plan that are still to come. */
  #missing = 0;
  #asleep = words.clock();
  /** The stripe that goes next, and how many are owed since the last change. */
  #stripe = 0;
  #owed = 0;

  /** @param {(id: number, header: Int32Array, payload: ArrayBufferView) => void} send */
  constructor(send) {
    this.send = send;
  }

  /** @param {Part} part */
  begin(part) {
    const { size, count, first, pace, step, hasNeighbors } = part;
    this.#halo = Array.from({ length: 4 }, () => new Float32Array(size));
    const halo = (/** @type {number} */ plane, /** @type {number} */ side) => this.#halo[2 * side + plane];
    this.rows = ownRows(new Float32Array(2 * count * size), size, { first, count, pace, halo });
    this.part = part;
    this.step = step;
    this.isPaused = part.isPaused;
    this.#come = hasNeighbors.map((has) => (has ? step : Number.POSITIVE_INFINITY));
    this.#missing = 2 * count;
    this.#stripe = 0;
    this.#owed = 0;
  }

  /** The heights of its rows as they are now. */
  get heights() {
    return this.rows?.heights[this.step & 1].slice(1, -1) ?? [];
  }

  /** Rows of the plan. @param {words.Block} block @param {Float32Array} cells */
  take({ epoch, kind, row, step }, cells) {
    const { part, rows } = this;
    if (part === undefined || rows === undefined || epoch !== part.epoch) return;
    const { size } = part;
    const count = cells.length / size;
    for (let at = 0; at < count; at++) {
      const cell = cells.subarray(at * size, (at + 1) * size);
      if (kind === words.SPEEDS) rows.speeds[step & 1][row + at].set(cell);
      else rows.heights[step & 1][1 + row + at].set(cell);
    }
    this.#missing -= count;
  }

  /** The row beside its own. @param {number} epoch @param {number} step @param {number} side @param {Float32Array} row */
  hear(epoch, step, side, row) {
    if (epoch !== this.part?.epoch) return;
    this.#halo[2 * side + (step & 1)].set(row);
    this.#come[side] = step + 1;
    this.marks.add(CAME, messageOf(step, side));
  }

  get isReady() {
    const { part, step } = this;
    const hasRows = part !== undefined && this.#missing <= 0 && this.#come.every((come) => come > step);
    return hasRows && !this.isPaused && step !== part.stop;
  }

  /** One step; the rows at its borders go to the tank. */
  advance() {
    const { rows, part } = this;
    if (rows === undefined || part === undefined) return;
    const { size, epoch } = part;
    const begin = words.clock();
    if (this.#asleep < begin) this.marks.add(ASLEEP, 0, this.#asleep);
    stepRows(rows, this.step);
    this.step++;
    this.steps++;
    this.computed += words.clock() - begin;
    const heights = rows.heights[this.step & 1];
    const border = new Float32Array(2 * size);
    border.set(heights[1]);
    border.set(heights[rows.count], size);
    this.marks.add(STEP, this.step, begin);
    this.send(words.BORDER, Int32Array.of(epoch, this.step), border);
    this.marks.add(WENT, messageOf(this.step, 2));
    this.#asleep = words.clock();
    this.#change();
  }

  /** @param {import("../tank/water.js").Lift} where */
  push(where) {
    if (this.rows === undefined || this.part === undefined) return;
    push(this.rows, this.step & 1, where);
    this.#change();
  }

  #change() {
    this.#owed = Math.ceil((this.part?.count ?? 0) / STRIPE_ROWS);
  }

  /** The next stripe of the picture; undefined: the tank has all. */
  stripe() {
    const { rows, part } = this;
    if (rows === undefined || part === undefined || this.#owed === 0) return undefined;
    const { size, count, epoch } = part;
    this.#owed--;
    const row = this.#stripe * STRIPE_ROWS;
    this.#stripe = row + STRIPE_ROWS >= count ? 0 : this.#stripe + 1;
    const heights = rows.heights[this.step & 1].slice(1 + row, 1 + Math.min(count, row + STRIPE_ROWS));
    const parts = new Int16Array(heights.length * size);
    for (const [at, each] of heights.entries()) {
      for (let x = 0; x < size; x++) {
        parts[at * size + x] = Math.max(-32768, Math.min(32767, Math.round(words.PARTS * each[x])));
      }
    }
    return { header: Int32Array.of(epoch, this.step, row), payload: parts };
  }

  /** Hands all back: what another task needs to go on from here. @param {number} epoch */
  handBack(epoch) {
    const { rows, part, step } = this;
    if (rows === undefined || epoch !== part?.epoch) return;
    this.part = undefined;
    const send = (/** @type {Int32Array} */ header, /** @type {Float32Array} */ payload) =>
      this.send(words.ROWS, header, payload);
    const now = step & 1;
    words.sendRows(send, rows.heights[now].slice(1, -1), { epoch, kind: words.HEIGHTS, step });
    words.sendRows(send, rows.speeds[now], { epoch, kind: words.SPEEDS, step });
    // A neighbor may be a step behind: it needs the rows beside its own, as they were.
    const before = rows.heights[1 - now];
    for (const row of new Set([0, rows.count - 1])) {
      send(Int32Array.of(epoch, words.BEFORE, row, step), before[1 + row]);
    }
  }
}
