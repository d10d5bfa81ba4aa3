// @ts-check
// The lane of a page in the strip, and its arrows to and from its bridge, from what both have recorded.
import { ASLEEP, CAME, FIELDS, STEP, WENT } from "./marks.js";

/** @typedef {import("pamir").Trace} Trace @typedef {import("pamir").TraceEvent} TraceEvent @typedef {import("pamir").Job} Job */
/** Lanes of pages stand behind those of tasks. */
const FIRST_LANE = 1000;
/** Marks of a page that are kept. */
const KEPT = 20_000;
/** Ids of arrows: the trace's own are below. */
const ARROWS = 2 ** 40;
/** Messages back have this side. */
const BACK = 2;
/** ms for which a page that is gone keeps its lane. */
const SHOWN_MS = 10_000;
const LEAST_US = 0.5;

/** @param {number} milliseconds */
const micros = (milliseconds) => Math.round(milliseconds * 1e6) / 1e3;

export class PageLane {
  /** @type {number[]} */
  #marks = [];
  ended = Number.POSITIVE_INFINITY;

  /** @param {number} number of the page @param {number} task its bridge */
  constructor(number, task) {
    this.number = number;
    this.task = task;
  }

  end() {
    this.ended = performance.now();
  }

  /** Whether the strip has it: a lane stays for a while behind the end. */
  get isShown() {
    return this.#marks.length > 0 && performance.now() < this.ended + SHOWN_MS;
  }

  /** @param {number[]} marks @param {number} offset of their clock, in ms */
  add(marks, offset) {
    for (let at = 1; at < marks.length; at += FIELDS) marks[at] -= offset;
    this.#marks.push(...marks);
    // Now and then: it moves all the others.
    if (this.#marks.length > 2 * KEPT * FIELDS) this.#marks.splice(0, this.#marks.length - KEPT * FIELDS);
  }

  /**
   * The events since a time.
   * @param {number} origin time of the trace's 0, in ms
   * @param {number} [most] marks that are read: a live picture has little time
   * @returns {TraceEvent[]}
   */
  events(origin, most = 2 * KEPT) {
    const tid = FIRST_LANE + this.number;
    const page = `page ${this.number}`;
    /** @type {TraceEvent[]} */
    const events = [
      { ph: "M", name: "thread_name", ts: 0, pid: 1, tid, args: { name: page } },
      { ph: "M", name: "thread_name", ts: 0, pid: 1, tid: this.task, args: { name: `task ${this.task}, to ${page}` } },
    ];
    const marks = this.#marks;
    for (let at = Math.max(0, marks.length - most * FIELDS); at < marks.length; at += FIELDS) {
      if (marks[at + 1] < origin) continue;
      const [kind, time, took, message, isBridge] = marks.slice(at, at + FIELDS);
      this.#add(events, { kind, message, ts: micros(time - origin), dur: micros(took), isBridge });
    }
    return events;
  }

  /** @param {TraceEvent[]} events @param {{ kind: number, message: number, ts: number, dur: number, isBridge: number }} mark */
  #add(events, { kind, message, ts, dur, isBridge }) {
    const page = `page ${this.number}`;
    const [own, other] = isBridge === 1 ? [`${this.task}.0`, page] : [page, `${this.task}.0`];
    const of = { pid: 1, tid: isBridge === 1 ? this.task : FIRST_LANE + this.number };
    const step = Math.floor(message / 3);
    const arrow = ARROWS + (this.task * 2 ** 33 + message);
    const name = message % 3 === BACK ? `rows of step ${step}` : `row of step ${step}`;
    if (kind === ASLEEP) events.push({ ph: "X", name: "asleep, waits for rows", cat: "park", ts, dur, ...of });
    else if (kind === STEP) {
      events.push({ ph: "X", name: `step ${message}`, cat: "handler", ts, dur, ...of, args: { from: own, to: own } });
    } else if (kind === WENT) {
      const args = { from: own, to: other };
      events.push({ ph: "X", name: `send ${name}`, cat: "send", ts, dur: LEAST_US, ...of, args });
      events.push({ ph: "s", name: "message", cat: "message", ts, ...of, id: arrow });
    } else if (kind === CAME) {
      const args = { from: other, to: own };
      events.push({ ph: "X", name, cat: "handler", ts, dur: LEAST_US, ...of, args });
      events.push({ ph: "f", bp: "e", name: "message", cat: "message", ts, ...of, id: arrow });
    }
  }
}

/**
 * A trace with the lanes of pages.
 * @param {Trace} trace @param {PageLane[]} lanes @param {number | undefined} events of each lane at most @returns {Trace}
 */
function withLanes(trace, lanes, events) {
  const given = lanes.flatMap((lane) => lane.events(trace.origin, events));
  if (given.length === 0 || trace.origin === 0) return trace;
  // Viewers report arrows that lack an end.
  const idsOf = (/** @type {string} */ end) => new Set(given.filter(({ ph }) => ph === end).map(({ id }) => id));
  const [begins, ends] = [idsOf("s"), idsOf("f")];
  /** @param {TraceEvent} event */
  const isWhole = ({ ph, id }) => (ph === "s" ? ends.has(id) : ph === "f" ? begins.has(id) : ph !== "M");
  // Names come last: a bridge has another one here. Events of one lane are in order; both ends of an arrow follow their event.
  const all = [...trace.traceEvents, ...given.filter(isWhole)].sort((one, other) => one.ts - other.ts);
  const traceEvents = [...all, ...given.filter(({ ph }) => ph === "M")];
  const { displayTimeUnit, origin } = trace;
  return { traceEvents, displayTimeUnit, origin, toString: () => JSON.stringify({ traceEvents, displayTimeUnit }) };
}

/**
 * A job as the strip reads it: its trace has the lanes of pages, too.
 * @param {Job} job @param {() => PageLane[]} lanesOf
 */
export function tracedWith(job, lanesOf) {
  /** @type {Pick<Job, "tasks" | "trace" | "traceAll" | "dump">} */
  const traced = {
    get tasks() {
      return job.tasks;
    },
    trace: (options) => withLanes(job.trace(options), lanesOf(), options?.events),
    traceAll: async (options) => withLanes(await job.traceAll(options), lanesOf(), options?.events),
    dump: () => job.dump(),
  };
  return /** @type {Job} */ (traced);
}
