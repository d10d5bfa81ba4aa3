// @ts-check
// The tank by pamir, as the page has it: task 0, which draws, and says which rows are whose.
import { codecs, dispatchId, launch } from "pamir";
import { tracedWith } from "../more/page-lane.js";
import { Pages } from "../more/pages.js";
import * as ids from "./layout.js";

/** Tasks of one job, those that have ended included: each start of one takes a number. */
const TASKS_MAX = 64;
const TRACE_EVENTS = 16_384;
const json = /** @type {import("pamir").Codec<any>} */ (codecs.json());
const told = (/** @type {number} */ id) => dispatchId(id, json);

/**
 * A worker as the visitor has it: a task, and another one after an end.
 * @typedef {object} Slot
 * @property {number} task
 * @property {"starting" | "running" | "gone"} state
 * @property {number} halo handle of its halos
 * @property {boolean} [isKilled] it ends
 */
/**
 * @typedef {object} TankEvents
 * @property {() => void} changed the workers, or their rows
 * @property {(report: import("./gauge.js").Figures & { task: number }) => void} report
 * @property {(worker: number, heardMs: number, wentOnMs: number) => void} recovered ms after the end of a worker
 * @property {(text: string) => void} failed
 */

export class TankJob {
  by = "pamir";
  /** @type {Slot[]} */
  slots = [];
  isPaused = false;
  #epoch = 0;
  /** @type {import("./layout.js").Plan | undefined} */
  #plan;
  /** Tasks that have answered in this epoch. */
  #answered = new Set();
  /** Of these, bridges whose pages have taken their rows with them. */
  #lost = new Set();
  #caughtUp = -1;
  /** Tasks that are to leave, in no slot any more, and those that have ended. */
  #leaving = new Set();
  #gone = new Set();
  #isChanging = false;
  #isToChange = false;
  #isClosed = false;
  /** @type {{ worker: number, task: number, at: number, heard: number, waits: Set<number> | undefined } | undefined} */
  #killed;
  /** @type {(() => void)[]} */
  #looks = [];

  /**
   * @param {{ size: number, workers: number, stop?: number, pace: import("./water.js").Pace }} options
   * @param {TankEvents} events
   */
  static async launch({ size, workers, pace, stop = -1 }, events) {
    const tank = new TankJob(size, pace, events);
    const job = await launch(new URL("./tank-task.js", import.meta.url), {
      tasks: workers + 1,
      maxTasks: TASKS_MAX,
      join: true,
      contexts: 1,
      heapBytes: ids.regionBytes(size) + 2 ** 24,
      trace: { events: TRACE_EVENTS },
      args: { size, stop },
      onExit: ({ task, cause, error }) => tank.#ended(task, cause === "terminated" ? undefined : error),
    });
    tank.#begin(job, workers);
    return tank;
  }

  /** @param {number} size @param {import("./water.js").Pace} pace @param {TankEvents} events */
  constructor(size, pace, events) {
    this.size = size;
    this.pace = pace;
    this.events = events;
    /** Rows of heights, by their numbers. @type {Float32Array[]} */
    this.rows = [];
  }

  /** @param {import("pamir").Job} job @param {number} workers */
  #begin(job, workers) {
    this.job = job;
    this.slots = Array.from({ length: workers }, (_, slot) => ({ task: slot + 1, state: "starting", halo: 0 }));
    const { client } = job;
    this.region = client.createRegion(ids.regionBytes(this.size));
    this.region.bytes.fill(0);
    this.offset = this.region.bytes.byteOffset;
    this.views = ids.viewsOf(client.bytes.buffer, this.offset, this.size);
    this.context = client.createContext();
    this.isShared = client.localTasks.length > 1;
    this.#listen(this.context);
    const entry = new URL("./bridge-task.js", import.meta.url);
    this.pages = new Pages({
      hear: (id, hear) => void this.context?.dispatch(told(id), hear),
      tell: (task, id, value) => this.#tell(task, id, value),
      spawn: () => {
        if (job.tasks >= TASKS_MAX) throw new Error(`this tank has had its ${TASKS_MAX} tasks: reload the page`);
        return job.spawn({ entry });
      },
      change: () => this.change(),
      isPaused: () => this.isPaused,
    });
    this.tracedJob = tracedWith(job, () => this.pages?.lanes ?? []);
    void this.#pump();
  }

  /** @param {import("pamir").Context} context */
  #listen(context) {
    const slotOf = (/** @type {number} */ task) => this.slots.find((slot) => slot.task === task);
    context.dispatch(told(ids.HERE), (/** @type {{ halo: number }} */ { halo }, task) => {
      const guest = this.pages?.guestOf(task);
      if (guest !== undefined) {
        this.pages?.here(guest);
        return;
      }
      const slot = slotOf(task);
      // It is to leave before it has begun.
      if (slot === undefined) this.#tell(task, ids.PLAN, { members: [] });
      if (slot === undefined || slot.state === "gone") return;
      slot.halo = halo;
      slot.state = "running";
      if (this.isPaused) this.#tell(task, ids.PAUSE, { isPaused: true });
      this.change();
    });
    context.dispatch(
      told(ids.STOPPED),
      (/** @type {{ epoch: number, isLost?: boolean }} */ { epoch, isLost }, task) => {
        if (epoch === this.#epoch) this.#answered.add(task);
        if (epoch === this.#epoch && isLost === true) this.#lost.add(task);
        this.#look();
      },
    );
    context.dispatch(told(ids.CAUGHT_UP), (/** @type {{ epoch: number, step: number }} */ { epoch, step }) => {
      if (epoch === this.#epoch) this.#caughtUp = step;
      this.#look();
    });
    context.dispatch(told(ids.HEARD), (/** @type {{ task: number }} */ { task: ended }) => {
      const killed = this.#killed;
      if (killed?.task === ended && killed.heard === 0) killed.heard = performance.now() - killed.at;
      if (slotOf(ended) !== undefined && this.#plan?.members.includes(ended)) this.change();
    });
    context.dispatch(told(ids.GOES_ON), (/** @type {{ epoch: number }} */ { epoch }, task) => {
      if (epoch === this.#epoch) this.#wentOn(task);
    });
    context.dispatch(told(ids.REPORT), (/** @type {Parameters<TankEvents["report"]>[0]} */ figures) =>
      this.events.report(figures),
    );
  }

  async #pump() {
    try {
      while (!this.#isClosed) await this.context?.progress();
    } catch (error) {
      if (!this.#isClosed) this.events.failed(/** @type {Error} */ (error).message);
    }
  }

  /** @param {number} task @param {number} id @param {unknown} value */
  #tell(task, id, value) {
    this.context?.send({ to: task, dispatch: told(id), payload: value });
  }

  /** A condition may have become true. */
  #look() {
    for (const look of this.#looks.splice(0)) look();
  }

  /** @param {() => boolean} condition */
  async #until(condition) {
    while (!condition() && !this.#isClosed) await new Promise((resolve) => this.#looks.push(() => resolve(undefined)));
  }

  /** @param {number} task @param {string | undefined} error */
  #ended(task, error) {
    if (this.#isClosed) return;
    const slot = this.slots.find((each) => each.task === task);
    if (error !== undefined) this.events.failed(error);
    if (this.pages?.ended(task)) this.change();
    else if (slot === undefined) this.#gone.add(task);
    else {
      slot.state = "gone";
      this.change();
    }
    this.#look();
  }

  /** Those that have parts: workers from the top down, then bridges. @returns {{ task: number, halo: number }[]} */
  get #running() {
    return [...this.slots.filter(({ state }) => state === "running"), ...(this.pages?.running ?? [])];
  }

  /** Gives the rows to the workers that are there, when all have stopped. */
  change() {
    this.#isToChange = true;
    this.events.changed();
    if (!this.#isChanging) void this.#changeAll();
  }

  async #changeAll() {
    this.#isChanging = true;
    while (this.#isToChange && !this.#isClosed) {
      this.#isToChange = false;
      await this.#changeOnce();
    }
    this.#isChanging = false;
    this.events.changed();
    this.#look();
  }

  /** Brings all rows to one step, where they stay if the tank is paused. */
  async level() {
    this.change();
    await this.#until(() => !this.#isChanging);
  }

  async #changeOnce() {
    const epoch = ++this.#epoch;
    const last = this.#plan;
    this.#answered.clear();
    this.#lost.clear();
    const isThere = (/** @type {number} */ task) => this.#running.some((slot) => slot.task === task);
    const stopping = (last?.members ?? []).filter((task) => this.#isAlive(task));
    for (const task of stopping) this.#tell(task, ids.STOP, { epoch });
    await this.#until(() => stopping.every((task) => this.#answered.has(task) || !this.#isAlive(task)));
    const leader = this.#running[0]?.task;
    // With none left, no recovery is to be told of once a worker starts again.
    if (leader === undefined) this.#killed = undefined;
    if (leader === undefined || this.#isClosed || this.region === undefined) return;
    let step = 0;
    if (last !== undefined && this.isShared) {
      this.#caughtUp = -1;
      const ratio = Math.sqrt(this.pace.pull / last.pace.pull);
      const { firsts, pace, members } = last;
      const isLost = (/** @type {number} */ task) => !this.#answered.has(task) || this.#lost.has(task);
      const lost = members.flatMap((task, part) => (this.pages?.guestOf(task) && isLost(task) ? [part] : []));
      this.#tell(leader, ids.CATCH_UP, { epoch, firsts, pace, ratio, offset: this.offset, lost });
      await this.#until(() => this.#caughtUp >= 0 || !isThere(leader));
      if (this.#caughtUp < 0) {
        this.#isToChange = true;
        return;
      }
      step = this.#caughtUp;
    }
    const running = this.#running;
    const members = running.map(({ task }) => task);
    this.views?.steps.fill(step);
    this.#plan = {
      epoch,
      step,
      members,
      halos: running.map(({ halo }) => halo),
      workers: members.filter((task) => this.pages?.guestOf(task) === undefined).length,
      firsts: ids.partsOf(this.size, members.length),
      region: this.region.handle,
      offset: this.offset ?? 0,
      pace: this.pace,
    };
    if (this.#killed !== undefined && !members.includes(this.#killed.task)) this.#killed.waits = new Set(members);
    // Also to those that are to leave: they are not in it.
    for (const task of new Set([...stopping, ...members])) this.#tell(task, ids.PLAN, this.#plan);
  }

  /** @param {number} task */
  #isAlive(task) {
    if (this.pages?.guestOf(task) !== undefined) return this.pages.isAlive(task);
    const slot = this.slots.find((each) => each.task === task);
    return slot === undefined ? this.#leaving.has(task) && !this.#gone.has(task) : slot.state !== "gone";
  }

  /** @param {number} task */
  #wentOn(task) {
    const killed = this.#killed;
    if (killed?.waits === undefined) return;
    killed.waits.delete(task);
    if (killed.waits.size > 0) return;
    this.#killed = undefined;
    this.events.recovered(killed.worker, killed.heard, performance.now() - killed.at);
  }

  /** Ends a worker as a crash would. @param {number} worker */
  kill(worker) {
    const slot = this.slots[worker];
    if (slot === undefined || slot.state === "gone") return;
    slot.isKilled = true;
    this.#killed = { worker, task: slot.task, at: performance.now(), heard: 0, waits: undefined };
    void this.job?.terminate(slot.task);
  }

  /** Starts a worker again. @param {number} worker @returns {boolean} false: the job has had all its tasks */
  restart(worker) {
    const slot = this.slots[worker];
    if (this.job === undefined || slot?.state !== "gone") return true;
    if (this.job.tasks >= TASKS_MAX) return false;
    slot.task = this.job.spawn();
    slot.state = "starting";
    slot.isKilled = false;
    if (this.#killed?.worker === worker) this.#killed = undefined;
    this.events.changed();
    return true;
  }

  /** @param {number} workers @returns {boolean} false: the job has had all its tasks */
  setWorkers(workers) {
    if (this.job === undefined || this.job.tasks + workers - this.slots.length >= TASKS_MAX) return false;
    for (const { task, state } of this.slots.splice(workers)) if (state !== "gone") this.#leaving.add(task);
    while (this.slots.length < workers) this.slots.push({ task: this.job.spawn(), state: "starting", halo: 0 });
    for (const [worker, slot] of this.slots.entries()) if (slot.state === "gone") this.restart(worker);
    this.change();
    return true;
  }

  /** @param {boolean} isPaused */
  pause(isPaused) {
    this.isPaused = isPaused;
    for (const { task } of this.#running) this.#tell(task, ids.PAUSE, { isPaused });
  }

  /** Lifts the water. @param {import("./water.js").Lift} where */
  push(where) {
    for (const { task } of this.#running) this.#tell(task, ids.PUSH, where);
  }

  /** The parts: first row, and the end; of which worker, or of which page. */
  get parts() {
    const plan = this.#plan;
    return (plan?.members ?? []).map((task, place) => ({
      worker: this.slots.findIndex((slot) => slot.task === task),
      page: this.pages?.guestOf(task)?.number,
      first: plan?.firsts[place] ?? 0,
      end: plan?.firsts[place + 1] ?? 0,
    }));
  }

  /** Least step of the parts. */
  get step() {
    const members = this.#plan?.members.length ?? 0;
    if (members === 0) return 0;
    return Math.min(...Array.from({ length: members }, (_, place) => Atomics.load(this.views?.steps ?? NONE, place)));
  }

  /** Rows of heights as they are now, in the memory of the tasks. @returns {Float32Array[]} */
  now() {
    const [plan, views] = [this.#plan, this.views];
    if (plan === undefined || views === undefined) return this.rows;
    for (let place = 0; place < plan.members.length; place++) {
      const plane = views.heights[Atomics.load(views.steps, place) & 1];
      for (let row = plan.firsts[place]; row < plan.firsts[place + 1]; row++) this.rows[row] = plane[row];
    }
    return this.rows;
  }

  async close() {
    this.#isClosed = true;
    this.pages?.close();
    this.#look();
    await this.job?.terminate();
  }
}

const NONE = new Int32Array(1);
