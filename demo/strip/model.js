// @ts-check
// A trace as lanes: one for each task, with a track for each kind of event, and arrows from sends to their handlers.
import { Track } from "./track.js";

/** @typedef {import("pamir").Trace} Trace @typedef {import("pamir").TraceEvent} TraceEvent */
/** @typedef {"handler" | "send" | "transfer" | "fence" | "park" | "death"} Kind */

/** @type {readonly Kind[]} */
export const KINDS = ["park", "fence", "handler", "transfer", "send", "death"];

export class Lane {
  /** @type {Record<Kind, Track>} */
  tracks = {
    handler: new Track(),
    send: new Track(),
    transfer: new Track(),
    fence: new Track(),
    park: new Track(),
    death: new Track(),
  };
  first = Number.POSITIVE_INFINITY;
  last = Number.NEGATIVE_INFINITY;
  /** When the task ended; Infinity: it goes on. */
  ended = Number.POSITIVE_INFINITY;

  /** @param {number} task @param {string} name */
  constructor(task, name) {
    this.task = task;
    this.name = name;
  }
}

/** Milliseconds of a slice in which a long trace is taken up; events between two looks at the clock. */
const SLICE_MS = 8;
const SLICE_EVENTS = 256;

export class StripModel {
  /** @type {Lane[]} */
  lanes = [];
  /** Texts that events name by their number. */
  labels = [""];
  events = 0;
  arrows = 0;
  begin = 0;
  end = 0;

  /**
   * @param {Pick<Trace, "traceEvents" | "origin">} trace
   * @param {number} base time of the axis' 0, as the trace's origin: milliseconds
   */
  constructor({ traceEvents, origin }, base = origin) {
    const builder = new Builder(this, (origin - base) * 1000);
    for (const event of traceEvents) builder.add(event);
    builder.finish();
  }

  /**
   * As the constructor, of a long trace: in slices, between which the page does other things.
   * @param {Pick<Trace, "traceEvents" | "origin">} trace
   * @param {number} [base]
   */
  static async inSlices({ traceEvents, origin }, base = origin) {
    const model = new StripModel({ traceEvents: [], origin }, base);
    const builder = new Builder(model, (origin - base) * 1000);
    let start = performance.now();
    for (const [place, event] of traceEvents.entries()) {
      builder.add(event);
      if (place % SLICE_EVENTS > 0 || performance.now() - start < SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      start = performance.now();
    }
    builder.finish();
    return model;
  }

  /** The lane of a task. @param {number} task */
  laneOf(task) {
    return this.lanes.find((lane) => lane.task === task);
  }
}

const DEATH = /^task (\d+) /;

/** Makes a model, event by event. */
class Builder {
  /** Place of each lane, by task. @type {Map<number, number>} */
  #places = new Map();
  /** @type {Map<string, number>} */
  #labels = new Map([["", 0]]);
  /** Sends and handlers at the ends of arrows, by the arrow's id. @type {Map<number, [lane: number, place: number]>} */
  #begins = new Map();
  /** @type {Map<number, [lane: number, place: number]>} */
  #ends = new Map();
  /** Fences that are not over. @type {Map<number, [lane: number, place: number]>} */
  #fences = new Map();
  /** @type {[task: number, time: number][]} */
  #deaths = [];

  /** @param {StripModel} model @param {number} offset of its times, in microseconds */
  constructor(model, offset) {
    this.model = model;
    this.offset = offset;
  }

  /** @param {number} task */
  #laneOf(task) {
    const known = this.#places.get(task);
    if (known !== undefined) return known;
    const place = this.model.lanes.push(new Lane(task, `task ${task}`)) - 1;
    this.#places.set(task, place);
    return place;
  }

  /** @param {string} text */
  #label(text) {
    const known = this.#labels.get(text);
    if (known !== undefined) return known;
    const label = this.model.labels.push(text) - 1;
    this.#labels.set(text, label);
    return label;
  }

  /** @param {TraceEvent} event */
  add(event) {
    const { ph, tid, cat, id = 0 } = event;
    const place = this.#laneOf(tid);
    const lane = this.model.lanes[place];
    if (ph === "M") {
      lane.name = String(event.args?.name ?? lane.name);
      return;
    }
    const begin = event.ts + this.offset;
    if (ph === "s") this.#begins.set(id, [place, lane.tracks.send.size - 1]);
    else if (ph === "f") this.#ends.set(id, [place, lane.tracks.handler.size - 1]);
    else if (ph === "e") this.#fenceEnds(id, begin);
    else {
      const kind = /** @type {Kind} */ (cat);
      const at = this.#addTo(lane, kind, event, begin);
      if (ph === "b") this.#fences.set(id, [place, at]);
      const died = kind === "death" ? DEATH.exec(event.name)?.[1] : undefined;
      if (died !== undefined) this.#deaths.push([Number(died), begin]);
    }
    lane.first = Math.min(lane.first, begin);
    lane.last = Math.max(lane.last, begin + (event.dur ?? 0));
  }

  /** @param {Lane} lane @param {Kind} kind @param {TraceEvent} event @param {number} begin */
  #addTo(lane, kind, { ph, name, dur = 0, args = {} }, begin) {
    this.model.events++;
    const other = String((kind === "handler" ? args.from : args.to) ?? "");
    // A fence that is not over lasts to the end of the picture.
    const end = ph === "b" ? Number.POSITIVE_INFINITY : begin + dur;
    const details = { label: this.#label(name), other: this.#label(other) };
    return lane.tracks[kind].add(begin, end, {
      ...details,
      count: Number(args.count ?? 0),
      bytes: Number(args.bytes ?? 0),
    });
  }

  /** @param {number} id @param {number} time */
  #fenceEnds(id, time) {
    const begun = this.#fences.get(id);
    if (begun === undefined) return;
    this.model.lanes[begun[0]].tracks.fence.end[begun[1]] = time;
    this.#fences.delete(id);
  }

  finish() {
    const { model } = this;
    const { lanes } = model;
    const seen = lanes.filter(({ first }) => Number.isFinite(first));
    model.begin = seen.length === 0 ? 0 : Math.min(...seen.map(({ first }) => first));
    model.end = seen.length === 0 ? 0 : Math.max(...seen.map(({ last }) => last));
    for (const [lane, place] of this.#fences.values()) lanes[lane].tracks.fence.end[place] = model.end;
    for (const [id, [from, send]] of this.#begins) {
      const [to, handler] = this.#ends.get(id) ?? [-1, -1];
      if (to < 0) continue;
      const [sends, handlers] = [lanes[from].tracks.send, lanes[to].tracks.handler];
      sends.join(send, to, handler);
      handlers.join(handler, from, send);
      sends.arrival[send] = Math.max(sends.begin[send], handlers.begin[handler]);
      model.arrows++;
    }
    for (const [task, time] of this.#deaths) {
      const lane = model.laneOf(task);
      if (lane !== undefined) lane.ended = Math.min(lane.ended, time);
    }
    for (const { tracks } of lanes) for (const track of Object.values(tracks)) track.seal();
  }
}
