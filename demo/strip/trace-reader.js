// @ts-check
// Reads the trace of a job: a part of it for a live picture, as much as a frame has time for; or all of it.
import { info } from "pamir";
import { tickOf } from "../times.js";

/** @typedef {import("pamir").Job} Job @typedef {import("pamir").Trace} Trace */

/** Milliseconds that a reading may keep the page: a frame has 16, and others need them, too. */
const READ_MS = 2.5;
/** Milliseconds that a reading may keep the page when it is asked for. */
const HOLD_MS = 100;
const EVENTS_MIN = 24;
const EVENTS_MAX = 1000;
/** Without shared memory each task is asked by a message: milliseconds to wait for it, live and when it is asked for. */
const ANSWER_MS = 500;
const ANSWER_ALL_MS = 5000;

export class TraceReader {
  /** Entries of each task that the next live reading takes. */
  #events = 100;
  /** The longest of the live readings so far, in milliseconds. */
  longest = 0;
  /** Whether tasks share memory: else they are asked. */
  isShared = info().mode === "shared";

  /** The last events, as many as take READ_MS to read. @param {Job} job @returns {Trace | Promise<Trace>} */
  live(job) {
    if (!this.isShared) return job.traceAll({ timeout: ANSWER_MS, events: 200 });
    const start = performance.now();
    const trace = job.trace({ events: Math.round(this.#events) });
    const took = performance.now() - start;
    this.longest = Math.max(this.longest, took);
    const wanted = this.#events * Math.min(1.5, READ_MS / Math.max(took, 0.1));
    this.#events = Math.min(EVENTS_MAX, Math.max(EVENTS_MIN, wanted));
    return trace;
  }

  /** The events of all rings, if that takes a moment, else the last of them. @param {Job} job @returns {Promise<Trace>} */
  async all(job) {
    if (!this.isShared) return await job.traceAll({ timeout: ANSWER_ALL_MS });
    return job.trace({ events: Math.round((this.#events * HOLD_MS) / READ_MS) });
  }

  /** Tasks that have ended. @param {Job} job @returns {ReadonlySet<number>} */
  ended(job) {
    if (!this.isShared) return new Set();
    const { tasks } = job.dump();
    return new Set(tasks.filter(({ state }) => state === "dead" || state === "closed").map(({ task }) => task));
  }
}

/** The step of this page's clock, in microseconds: 5 in an isolated page of Chromium, up to 1,000 elsewhere. */
export const clockStep = () => Math.max(1, Math.round(tickOf() * 1000));
