// @ts-check
// The same tank by postMessage, as the page has it: workers with channels between them, and a frame of each by transfer.
import { partsOf } from "./layout.js";

/** @typedef {import("./tank-job.js").Slot} Slot */

export class TankPost {
  by = "postMessage";
  /** @type {Slot[]} */
  slots = [];
  isPaused = false;
  step = 0;
  isShared = false;
  /** @type {Worker[]} */
  #workers = [];
  /** Workers that owe a frame. */
  #owing = new Set();
  /** Frames that are drawn, and those before: their buffers go back. @type {Map<Worker, Float32Array>} */
  #frames = new Map();
  /** @type {Map<Worker, Float32Array>} */
  #spare = new Map();
  /** @type {number[]} */
  #steps = [];

  /**
   * @param {{ size: number, workers: number, stop?: number, pace: import("./water.js").Pace }} options
   * @param {import("./tank-job.js").TankEvents} events
   */
  constructor({ size, workers, pace, stop = -1 }, events) {
    this.size = size;
    this.pace = pace;
    this.stop = stop;
    this.events = events;
    /** @type {Float32Array[]} */
    this.rows = Array.from({ length: size }, () => new Float32Array(size));
    this.slots = Array.from({ length: workers }, (_, task) => ({ task, state: "running", halo: 0 }));
    /** @type {{ worker: number, first: number, end: number }[]} */
    this.parts = [];
    this.#start();
  }

  /** Begins with still water. */
  #start() {
    this.#end();
    this.step = 0;
    const running = this.slots.filter(({ state }) => state === "running");
    const firsts = partsOf(this.size, running.length);
    const channels = running.slice(1).map(() => new MessageChannel());
    this.parts = running.map((slot, place) => ({
      worker: this.slots.indexOf(slot),
      first: firsts[place],
      end: firsts[place + 1],
    }));
    this.#steps = running.map(() => 0);
    for (const [place, { first, end }] of this.parts.entries()) {
      const worker = new Worker(new URL("./tank-post-worker.js", import.meta.url), { type: "module" });
      const [up, down] = [channels[place - 1]?.port2, channels[place]?.port1];
      const ports = [up, down].filter((port) => port !== undefined);
      const { size, stop, pace, isPaused } = this;
      const begin = { size, first, count: end - first, stop, pace, isPaused };
      worker.onmessage = ({ data }) => this.#heard(worker, place, data);
      worker.onerror = (event) => this.events.failed(event.message || "a worker could not be loaded");
      worker.postMessage({ begin, up, down }, ports);
      this.#workers.push(worker);
    }
    this.events.changed();
  }

  /** @param {Worker} worker @param {number} place @param {any} data */
  #heard(worker, place, { report, frame, step }) {
    if (report !== undefined) this.events.report({ task: place, ...report });
    if (frame === undefined) return;
    this.#owing.delete(worker);
    this.#steps[place] = step;
    this.step = Math.min(...this.#steps);
    const { first, end } = this.parts[place];
    for (let y = first; y < end; y++)
      this.rows[y] = frame.subarray((y - first) * this.size, (y - first + 1) * this.size);
    const before = this.#frames.get(worker);
    if (before !== undefined) this.#spare.set(worker, before);
    this.#frames.set(worker, frame);
  }

  /** Rows of heights as they came last; the next ones are asked for, in the buffers of the last but one. */
  now() {
    for (const worker of this.#workers) {
      if (this.#owing.has(worker)) continue;
      this.#owing.add(worker);
      const frame = this.#spare.get(worker);
      this.#spare.delete(worker);
      worker.postMessage({ frame }, frame === undefined ? [] : [frame.buffer]);
    }
    return this.rows;
  }

  #end() {
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
    this.#owing.clear();
    this.#frames.clear();
    this.#spare.clear();
  }

  /** The rows go with the worker: so all begin again. @param {number} worker */
  kill(worker) {
    const slot = this.slots[worker];
    if (slot === undefined || slot.state === "gone") return;
    slot.state = "gone";
    this.#start();
  }

  /** @param {number} worker */
  restart(worker) {
    const slot = this.slots[worker];
    if (slot !== undefined) slot.state = "running";
    this.#start();
    return true;
  }

  /** @param {number} workers */
  setWorkers(workers) {
    this.slots = Array.from({ length: workers }, (_, task) => ({ task, state: "running", halo: 0 }));
    this.#start();
    return true;
  }

  /** @param {boolean} isPaused */
  pause(isPaused) {
    this.isPaused = isPaused;
    for (const worker of this.#workers) worker.postMessage({ isPaused });
  }

  /** @param {import("./water.js").Lift} where */
  push(where) {
    for (const worker of this.#workers) worker.postMessage({ push: where });
  }

  async close() {
    this.#end();
  }
}
