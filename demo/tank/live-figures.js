// @ts-check
// The figures beside the tank: from the reports of the workers, and from this thread's own clock.

import { tickOf } from "../times.js";

/** Hand-offs of which the median is shown, and ms of the past that the others cover. */
const HAND_OFFS = 32;
const PAST_MS = 5000;
const SHOW_MS = 250;

/** @param {number} number */
const short = (number) =>
  number.toLocaleString("en", { maximumSignificantDigits: 3, notation: number >= 1e6 ? "compact" : "standard" });

/** @param {number} nanoseconds */
export function duration(nanoseconds) {
  if (nanoseconds < 1000) return `${short(nanoseconds)} ns`;
  return nanoseconds < 1e6 ? `${short(nanoseconds / 1000)} µs` : `${short(nanoseconds / 1e6)} ms`;
}

/** The largest of the last values. */
class Largest {
  /** @type {[at: number, value: number][]} */
  #values = [];

  /** @param {number} value */
  add(value) {
    const now = performance.now();
    // Values that a later one exceeds can't be the largest again.
    while (this.#values.length > 0 && this.#values[this.#values.length - 1][1] <= value) this.#values.pop();
    this.#values.push([now, value]);
  }

  get value() {
    const since = performance.now() - PAST_MS;
    while (this.#values.length > 0 && this.#values[0][0] < since) this.#values.shift();
    return this.#values[0]?.[1];
  }

  clear() {
    this.#values = [];
  }
}

/** @typedef {import("./gauge.js").Figures & { task: number }} Report */

export class LiveFigures {
  /** The last report of each task. @type {Map<number, Report>} */
  #reports = new Map();
  /** @type {{ handOff: number, grain: number }[]} */
  #handOffs = [];
  #blocked = new Largest();
  #frame = new Largest();
  #drawn = 0;
  #shown = 0;
  /** ms by which this thread's clock steps: what is shorter is not seen. */
  #tick = tickOf();

  /** @param {(id: string) => HTMLElement} element */
  constructor(element) {
    this.element = element;
  }

  clear() {
    this.#reports.clear();
    this.#handOffs = [];
    this.#blocked.clear();
    this.#frame.clear();
    this.#drawn = 0;
    this.#shown = 0;
  }

  /** @param {Report} report */
  add(report) {
    this.#reports.set(report.task, report);
    if (report.handOff > 0) this.#handOffs.push(report);
    if (this.#handOffs.length > HAND_OFFS) this.#handOffs.shift();
  }

  /** @param {number[]} tasks that are there */
  keep(tasks) {
    for (const task of this.#reports.keys()) if (!tasks.includes(task)) this.#reports.delete(task);
  }

  /** This thread did something, during which it could do nothing else. @template T @param {() => T} work */
  busy(work) {
    const start = performance.now();
    const result = work();
    this.#blocked.add(performance.now() - start);
    return result;
  }

  /** A picture was drawn. */
  frame() {
    const now = performance.now();
    if (this.#drawn > 0) this.#frame.add(now - this.#drawn);
    this.#drawn = now;
  }

  /** No picture is due: the next one is not late. */
  rest() {
    this.#drawn = 0;
  }

  /** The figures as numbers. */
  get values() {
    const reports = [...this.#reports.values()];
    const rate = (/** @type {"steps" | "messages"} */ what) =>
      reports.map((report) => (1000 * report[what]) / report.milliseconds);
    const handOffs = this.#handOffs.toSorted((a, b) => a.handOff - b.handOff);
    const median = handOffs[Math.floor(handOffs.length / 2)];
    return {
      workers: reports.length,
      steps: rate("steps").reduce((sum, each) => sum + each, 0) / Math.max(1, reports.length),
      messages: rate("messages").reduce((sum, each) => sum + each, 0),
      waited: reports.reduce((sum, { waited, milliseconds }) => sum + waited / milliseconds / reports.length, 0),
      handOff: median?.handOff ?? 0,
      grain: median?.grain ?? 0,
      blocked: this.#blocked.value ?? 0,
      frame: this.#frame.value ?? 0,
    };
  }

  show() {
    if (performance.now() - this.#shown < SHOW_MS) return;
    this.#shown = performance.now();
    const { workers, steps, messages, waited, handOff, grain, blocked, frame } = this.values;
    const set = (/** @type {string} */ id, /** @type {string} */ text, /** @type {string} */ note) => {
      this.element(id).textContent = text;
      this.element(`${id}-note`).textContent = note;
    };
    const known = workers > 0;
    set("steps", known ? short(steps) : "–", "all rows, once");
    set("messages", known ? short(messages) : "–", "of all workers, halos and probes");
    set("hand-off", ...handOffText(handOff, grain, workers));
    set("waited", known ? `${short(100 * waited)} %` : "–", "mean of the workers, of the last 250 ms");
    const least = blocked < this.#tick;
    set("blocked", `${least ? "≤ " : ""}${short(Math.max(blocked, this.#tick))} ms`, "at a stretch, of the last 5 s");
    set("frame", frame > 0 ? `${short(frame)} ms` : "–", "between two pictures, of the last 5 s");
  }
}

/** @param {number} handOff ns @param {number} grain @param {number} workers @returns {[text: string, note: string]} */
function handOffText(handOff, grain, workers) {
  if (workers === 1) return ["–", "takes two workers"];
  if (handOff === 0) return grain > 0 ? [`≤ ${duration(grain)}`, "the clock shows no less"] : ["–", "not yet measured"];
  if (handOff < grain) return [`≤ ${duration(grain)}`, "the clock shows no less"];
  return [duration(handOff), `p50, known to ${duration(grain)}`];
}
