// @ts-check
// The space-time strip: a lane for each task, bars for its handlers and sleeps, arrows for messages. Live, or paused and read
// whole: then it is scrubbed and zoomed.
import { CanvasView } from "./canvas-view.js";
import { listen } from "./gestures.js";
import { StripModel } from "./model.js";
import { make, makePanel } from "./panel.js";
import { rowsOf, summaryOf } from "./selection-text.js";
import { roundUp, TimeRange } from "./time-range.js";
import { clockStep, TraceReader } from "./trace-reader.js";

/** @typedef {import("pamir").Job} Job @typedef {import("pamir").Trace} Trace @typedef {import("./canvas-view.js").Arrow} Arrow */

/** Milliseconds between two live pictures; between two readings of which tasks have ended. */
const LIVE_MS = 66;
const ENDED_MS = 500;
/** Milliseconds for which a live picture keeps the lane of a task that has ended. */
const ENDED_SHOWN_MS = 10_000;
/** Messages that can be gone through step by step. */
const STEPS_MAX = 2000;

/**
 * Shows the trace of a job in an element.
 * @param {HTMLElement} element
 * @param {() => Job | undefined} getJob the job that runs now, launched with `trace`
 */
export function mountStrip(element, getJob) {
  const strip = new Strip(element, getJob);
  strip.start();
  return strip;
}

class Strip {
  /** @type {StripModel} */
  model = new StripModel({ traceEvents: [], origin: 0 });
  range = new TimeRange();
  reader = new TraceReader();
  isLive = true;
  /** @type {Trace | undefined} */
  #trace;
  /** The longest that drawing a picture took, in milliseconds. */
  longestDraw = 0;
  /** @type {Arrow | undefined} */
  #chosen;
  /** @type {Arrow[]} */
  #steps = [];
  /** @type {Job | undefined} */
  #job;
  /** Time of the axis' 0, as the origin of a trace. @type {number | undefined} */
  #base;
  /** When each task of this job was first seen to have ended, on the axis. @type {Map<number, number>} */
  #ended = new Map();
  /** A span that was chosen while live, in microseconds. @type {number | undefined} */
  #span;
  /** Tasks of the job when it was first seen: later ones were spawned. */
  #began = 0;
  #isReading = false;
  #isDrawn = false;
  #lastRead = 0;
  #lastEnded = 0;
  #lastSummary = 0;
  #frame = 0;
  #isOver = false;
  /** The walk through an allreduce that is shown. @type {import("./tour.js").Tour | undefined} */
  tour;

  /** @param {HTMLElement} element @param {() => Job | undefined} getJob */
  constructor(element, getJob) {
    this.getJob = getJob;
    this.panel = makePanel(element);
    this.view = new CanvasView(this.panel.canvas);
    this.step = clockStep();
  }

  start() {
    const { buttons, picture, place, steps, canvas } = this.panel;
    const act = {
      pause: () => void (this.isLive ? this.pause() : this.resume()),
      earlier: () => this.#scrub(-0.25),
      later: () => this.#scrub(0.25),
      zoomIn: () => this.#zoom(0.5, 0.5),
      zoomOut: () => this.#zoom(2, 0.5),
      fit: () => this.#fit(),
      previous: () => this.#choose(-1),
      next: () => this.#choose(1),
      tour: () => void this.#startTour(),
      save: () => void this.#save(),
    };
    for (const [name, button] of Object.entries(buttons)) {
      button.addEventListener("click", act[/** @type {keyof typeof act} */ (name)]);
    }
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.#scrub(-0.1),
      ArrowRight: () => this.#scrub(0.1),
      "Shift+ArrowLeft": () => this.#scrub(-1),
      "Shift+ArrowRight": () => this.#scrub(1),
      "+": act.zoomIn,
      "=": act.zoomIn,
      "-": act.zoomOut,
      Home: act.fit,
      " ": act.pause,
      p: () => (this.tour === undefined ? act.previous() : this.tour.step(-1)),
      n: () => (this.tour === undefined ? act.next() : this.tour.step(1)),
      Escape: () => this.#select(undefined),
    };
    listen(picture, {
      scrub: (share) => this.#scrub(share),
      zoom: (factor, at) => this.#zoom(factor, at),
      press: (x, y) => this.#select(this.view.arrowAt(x, y)),
      key: (key) => {
        keys[key]?.();
        return key in keys;
      },
    });
    place.addEventListener("input", () => this.#goTo(Number(place.value) / 1000));
    steps.addEventListener("input", () => this.#showSteps(Number(steps.value)));
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#restyle());
    this.#restyle();
    // With reduced motion, nothing moves before it is asked for.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.isLive = false;
    this.#showMode();
    this.#frame = requestAnimationFrame(this.#tick);
  }

  /** Ends it: no picture comes after this one. */
  stop() {
    this.#isOver = true;
    cancelAnimationFrame(this.#frame);
  }

  #restyle() {
    this.view.restyle();
    this.redraw();
  }

  redraw() {
    this.#isDrawn = false;
  }

  #tick = () => {
    if (this.#isOver) return;
    this.#frame = requestAnimationFrame(this.#tick);
    const now = performance.now();
    const job = this.getJob();
    if (this.isLive && job !== undefined) this.#follow(job);
    const { top, bottom } = this.panel.canvas.getBoundingClientRect();
    const isSeen = bottom > 0 && top < innerHeight;
    if (this.isLive && isSeen && now - this.#lastRead >= LIVE_MS) {
      this.#lastRead = now;
      void this.#readLive();
    }
    if (this.#isDrawn || !isSeen) return;
    this.#isDrawn = true;
    this.#draw();
  };

  async #readLive() {
    const job = this.getJob();
    if (job === undefined || this.#isReading) return;
    this.#isReading = true;
    try {
      const given = this.reader.live(job);
      const trace = given instanceof Promise ? await given : given;
      if (this.isLive && job === this.#job) this.#showLive(job, trace);
      this.#note("");
    } catch (error) {
      this.#note(`Nothing to see: ${/** @type {Error} */ (error).message}.`);
    } finally {
      this.#isReading = false;
    }
  }

  /** @param {Job} job */
  #follow(job) {
    if (job === this.#job) return;
    this.#job = job;
    this.#began = job.tasks;
    this.#ended.clear();
  }

  /** @param {Job} job @param {Trace} trace */
  #showLive(job, trace) {
    this.#take(trace);
    const { model, range } = this;
    this.#findEnds(job);
    const firsts = model.lanes
      .filter(({ ended, first }) => ended > model.end && first < model.end)
      .map(({ first }) => first);
    // As far back as most lanes are read: a task that sleeps reaches back for seconds.
    const middle = firsts.sort((one, other) => other - one)[firsts.length >> 1] ?? model.begin;
    const span = this.#span ?? roundUp(Math.max(1, (model.end - middle) / 2));
    range.begin = Math.min(model.begin, model.end - span);
    range.end = model.end;
    range.show(model.end - span, model.end);
    this.redraw();
  }

  /** All times lie on one axis. @param {Trace} trace */
  #baseOf({ origin }) {
    if (origin > 0) this.#base ??= origin;
    return this.#base ?? origin;
  }

  /** Takes over a trace. @param {Trace} trace @param {StripModel} [model] of it */
  #take(trace, model = new StripModel(trace, this.#baseOf(trace))) {
    this.#trace = trace;
    this.model = model;
    this.#chosen = undefined;
    this.#steps = [];
  }

  /** Lanes of spawned tasks say so. Lanes of tasks that have ended, end: with the last of their events, if no other task's event says when. @param {Job} job */
  #findEnds(job) {
    for (const lane of this.model.lanes) {
      // Others have a name of their own.
      if (lane.task >= this.#began && lane.name === `task ${lane.task}`) lane.name += ", spawned";
    }
    const now = performance.now();
    if (now - this.#lastEnded > ENDED_MS) {
      this.#lastEnded = now;
      for (const task of this.reader.ended(job)) {
        const lane = this.model.laneOf(task);
        if (lane !== undefined && !this.#ended.has(task)) this.#ended.set(task, lane.last);
      }
    }
    for (const lane of this.model.lanes) {
      if (Number.isFinite(lane.ended) && !this.#ended.has(lane.task)) this.#ended.set(lane.task, lane.ended);
      lane.ended = this.#ended.get(lane.task) ?? lane.ended;
    }
  }

  /** Runs an allreduce, and shows it round by round. */
  async #startTour() {
    const { buttons, tour } = this.panel;
    this.isLive = false;
    this.#endTour();
    this.#showMode();
    buttons.tour.disabled = true;
    this.#note("Tasks start, and add up their numbers …");
    try {
      const { Tour } = await import("./tour.js");
      const show = (/** @type {Trace} */ trace) => {
        if (this.isLive) return undefined;
        this.show(trace);
        return this.model;
      };
      const walk = new Tour(tour, { show, highlight: (arrows) => this.#highlight(arrows), reader: this.reader });
      const isShown = await walk.run();
      this.#note("");
      if (!isShown) return;
      this.tour = walk;
      tour.hidden = false;
      walk.next.focus();
    } catch (error) {
      tour.hidden = true;
      this.#note(`Nothing to see: ${/** @type {Error} */ (error).message}.`);
    } finally {
      buttons.tour.disabled = false;
    }
  }

  #endTour() {
    this.tour = undefined;
    this.panel.tour.hidden = true;
  }

  /** Makes arrows stand out, where they are. @param {Arrow[]} arrows */
  #highlight(arrows) {
    const { model, range } = this;
    range.fit();
    if (arrows.length > 0) {
      const times = arrows.flatMap(({ lane, place }) => {
        const { send } = model.lanes[lane].tracks;
        return [send.begin[place], model.lanes[send.peerLane(place)].tracks.handler.begin[send.peer(place)]];
      });
      const [from, to] = [Math.min(...times), Math.max(...times)];
      // A third of the picture is what was before and comes after.
      range.show(from - (to - from) / 4, to + (to - from) / 4);
    }
    this.#moved();
    this.#steps = arrows;
  }

  /** Reads the rings once, as far back as a moment allows, and stays with that. */
  async pause() {
    const job = this.getJob() ?? this.#job;
    this.isLive = false;
    this.#endTour();
    this.#showMode();
    if (job === undefined) return;
    this.#follow(job);
    this.#note("Reading the events …");
    // The page shows the button and the note first.
    await new Promise((resolve) => setTimeout(resolve, 30));
    try {
      const { from, to } = this.range;
      const had = this.model.events > 0;
      const trace = await this.reader.all(job);
      const model = await StripModel.inSlices(trace, this.#baseOf(trace));
      if (this.isLive) return;
      this.show(trace, model);
      this.#lastEnded = 0;
      this.#findEnds(job);
      if (had) this.range.show(from, to);
      this.#moved();
      this.#note("");
    } catch (error) {
      this.#note(`Nothing to see: ${/** @type {Error} */ (error).message}.`);
    }
  }

  resume() {
    this.isLive = true;
    this.#endTour();
    this.#span = undefined;
    this.#select(undefined);
    this.#showMode();
  }

  /** Shows a trace, of this job or from a file, and stops following. @param {Trace} trace @param {StripModel} [model] of it */
  show(trace, model) {
    this.isLive = false;
    this.#take(trace, model);
    const { begin, end } = this.model;
    this.range.limit(begin, end);
    this.range.fit();
    this.#showMode();
    this.#moved();
  }

  #showMode() {
    const { buttons, paused } = this.panel;
    buttons.pause.textContent = this.isLive ? "Hold" : "Live";
    paused.hidden = this.isLive;
    for (const button of [buttons.earlier, buttons.later, buttons.previous, buttons.next])
      button.disabled = this.isLive;
    this.redraw();
  }

  /** @param {string} text */
  #note(text) {
    if (this.panel.note.textContent !== text) this.panel.note.textContent = text;
  }

  /** @param {number} share */
  #scrub(share) {
    if (this.isLive) return;
    this.range.scrub(share);
    this.#moved();
  }

  /** @param {number} factor @param {number} at */
  #zoom(factor, at) {
    if (this.isLive) {
      // Live, the picture ends now.
      this.#span = Math.max(1, this.range.span * factor);
      return;
    }
    this.range.zoom(factor, at);
    this.#moved();
  }

  #fit() {
    this.#span = undefined;
    if (this.isLive) return;
    this.range.fit();
    this.#moved();
  }

  /** @param {number} share of what there is, from 0 to 1 */
  #goTo(share) {
    const { range } = this;
    const from = range.begin + share * (range.end - range.begin - range.span);
    range.show(from, from + range.span);
    this.#moved();
  }

  /** Another part is seen: the sliders follow. */
  #moved() {
    const { place, steps, stepsText } = this.panel;
    const { begin, end, from, span } = this.range;
    const room = end - begin - span;
    place.value = String(room > 0 ? (1000 * (from - begin)) / room : 0);
    place.disabled = room <= 0;
    this.#steps = [];
    const count = this.#count();
    const found = this.#messages(count).length;
    steps.value = "0";
    steps.max = String(found);
    steps.disabled = found === 0;
    const many = count > STEPS_MAX ? ": zoom in to go through them" : "";
    stepsText.textContent = `${count.toLocaleString("en")} messages are sent in this picture${many}.`;
    this.redraw();
  }

  /** Sends in the picture. */
  #count() {
    const { model, range } = this;
    const inLane = (/** @type {import("./track.js").Track} */ send) => send.from(range.to) - send.from(range.from);
    return model.lanes.reduce((sum, { tracks }) => sum + inLane(tracks.send), 0);
  }

  /** The messages that are sent in the picture, in order; of too many, none. @param {number} count of them @returns {Arrow[]} */
  #messages(count = this.#count()) {
    const { model, range } = this;
    if (count > STEPS_MAX) return [];
    /** @type {Arrow[]} */
    const found = [];
    for (const [lane, { tracks }] of model.lanes.entries()) {
      const last = tracks.send.from(range.to);
      for (let place = tracks.send.from(range.from); place < last; place++) {
        if (tracks.send.peerLane(place) >= 0) found.push({ lane, place });
      }
    }
    const time = (/** @type {Arrow} */ { lane, place }) => model.lanes[lane].tracks.send.begin[place];
    return found.sort((one, other) => time(one) - time(other));
  }

  /** @param {number} count of the picture's messages that stand out */
  #showSteps(count) {
    this.#steps = this.#messages().slice(0, count);
    this.#select(this.#steps.at(-1));
  }

  /** Goes to the next message, or to the one before. @param {1 | -1} by */
  #choose(by) {
    if (this.isLive) return;
    const all = this.#messages();
    if (all.length === 0) return;
    const chosen = this.#chosen;
    const at = all.findIndex(({ lane, place }) => lane === chosen?.lane && place === chosen.place);
    this.#select(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length]);
  }

  /** @param {Arrow | undefined} arrow */
  #select(arrow) {
    this.#chosen = arrow;
    const rows = arrow === undefined ? [] : rowsOf(this.model, arrow, this.step);
    const parts = rows.map(({ key, name, text, time }) => {
      const value = make("dd", { "data-key": key, ...(time === undefined ? {} : { "data-us": String(time) }) }, [text]);
      return make("div", {}, [make("dt", {}, [name]), value]);
    });
    this.panel.chosen.replaceChildren(...parts);
    this.redraw();
  }

  /** The lanes that the picture has: in a live one, not those that have ended long ago. */
  shownLanes() {
    const { lanes, end } = this.model;
    const all = lanes.map((_, place) => place);
    if (!this.isLive) return all;
    return all.filter((place) => lanes[place].ended > end - ENDED_SHOWN_MS * 1000);
  }

  #draw() {
    const start = performance.now();
    const lanes = this.shownLanes();
    this.view.draw(this.model, this.range, { lanes, chosen: this.#chosen, steps: this.#steps });
    this.longestDraw = Math.max(this.longestDraw, performance.now() - start);
    // A text that changes with each picture would be read out without end.
    if (this.isLive && start - this.#lastSummary < 1000) return;
    this.#lastSummary = start;
    const summary = this.model.events === 0 ? "Nothing runs yet." : summaryOf(this.model, this.range, lanes);
    this.panel.canvas.setAttribute("aria-label", summary);
  }

  /** Saves the trace as a file for Perfetto. Of a job that runs, all events of its rings. */
  async #save() {
    if (this.isLive) await this.pause();
    const trace = this.#trace;
    if (trace === undefined || this.model.events === 0) {
      this.#note("There are no events yet.");
      return;
    }
    const { traceEvents, displayTimeUnit } = trace;
    const url = URL.createObjectURL(
      new Blob([JSON.stringify({ traceEvents, displayTimeUnit })], { type: "application/json" }),
    );
    make("a", { href: url, download: "pamir-trace.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    this.panel.perfetto.hidden = false;
  }
}
