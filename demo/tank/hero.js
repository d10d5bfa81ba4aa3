// @ts-check
// The tank on the page: which program runs it, by how many workers, and what is said of it.
import { info } from "pamir";
import { Finger } from "./finger.js";
import { MEMBERS_MAX } from "./layout.js";
import { duration, LiveFigures } from "./live-figures.js";
import { Painter } from "./painter.js";
import { TankJob } from "./tank-job.js";
import { TankPost } from "./tank-post.js";
import { paceOf, RATE } from "./water.js";
import { WorkerList } from "./worker-list.js";

const GRIDS = [64, 128, 256, 512, 1024, 2048];

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {URLSearchParams} query */
export function optionsOf(query) {
  const grid = Number(query.get("grid") ?? 512);
  const workers = Number(query.get("workers") ?? navigator.hardwareConcurrency ?? 2);
  return {
    size: GRIDS.includes(grid) ? grid : 512,
    workers: Math.min(MEMBERS_MAX, Math.max(1, Math.floor(workers) || 2)),
    stop: query.has("stop") ? Math.max(0, Math.floor(Number(query.get("stop"))) || 0) : -1,
    // Of which the water takes its pace: 0: as many as there are.
    rate: Math.max(0, Number(query.get("rate")) || (query.has("stop") ? RATE : 0)),
  };
}

/** ms of steps by which the pace of the water is chosen. */
const PACE_MS = 800;

export class Hero {
  /** @type {TankJob | TankPost | undefined} */
  tank;
  isPaused = matchMedia("(prefers-reduced-motion: reduce)").matches;
  isHidden = document.hidden;
  /** For how many others the tank leaves the cores. */
  resting = 0;
  #isStarting = false;
  /** When the first report came; -1 once the pace is chosen. */
  #paceSince = 0;
  /** Other pages that have parts, and what hears of a change. */
  #pages = 0;
  onChange = () => {};
  #isStale = false;
  /** Whether the tank stood still when a worker was killed: then the others take no step until it runs. */
  #wasStill = false;
  #pause = /** @type {HTMLButtonElement} */ (element("pause"));
  #count = /** @type {HTMLInputElement} */ (element("workers"));
  #switch = /** @type {HTMLInputElement} */ (element("by-post"));
  #status = element("status");

  /** @param {ReturnType<typeof optionsOf>} options */
  constructor(options) {
    this.options = { ...options, pace: paceOf(options.size, options.rate || RATE) };
    if (options.rate > 0) this.#paceSince = -1;
    this.figures = new LiveFigures(element);
    const canvas = /** @type {HTMLCanvasElement} */ (element("water"));
    this.painter = new Painter(canvas, options.size);
    this.finger = new Finger(canvas, element("finger"), options.size, (where) => this.tank?.push(where));
    this.list = new WorkerList(element("parts"), element("gone"), {
      kill: (worker) => this.#kill(worker),
      restart: (worker) => this.#restart(worker),
    });
    this.#count.value = String(options.workers);
    this.#count.addEventListener("change", () => this.#choose());
    this.#switch.addEventListener("change", () => void this.start());
    this.#pause.addEventListener("click", () => {
      this.isPaused = !this.isPaused;
      this.#rest();
    });
    document.addEventListener("visibilitychange", () => {
      this.isHidden = document.hidden;
      this.#rest();
    });
    this.#rest();
    requestAnimationFrame(() => this.#draw());
  }

  /** The job that runs, for the strip; undefined while none does, and by postMessage. */
  get job() {
    return this.tank instanceof TankJob ? this.tank.job : undefined;
  }

  /** The same for the strip: with the lanes of other pages. */
  get tracedJob() {
    return this.tank instanceof TankJob ? this.tank.tracedJob : undefined;
  }

  /** Starts the program that is chosen, with still water. */
  async start() {
    this.#isStale = true;
    if (this.#isStarting) return;
    this.#isStarting = true;
    while (this.#isStale) {
      this.#isStale = false;
      await this.tank?.close();
      this.tank = undefined;
      this.figures.clear();
      try {
        await this.#open();
      } catch (error) {
        this.#say(`The tank could not be started: ${/** @type {Error} */ (error).message}`);
      }
    }
    this.#isStarting = false;
  }

  async #open() {
    const byPost = this.#switch.checked;
    const events = {
      changed: () => this.#changed(),
      report: (/** @type {Parameters<LiveFigures["add"]>[0]} */ report) => {
        this.figures.add(report);
        this.#choosePace();
      },
      recovered: (/** @type {number} */ worker, /** @type {number} */ heard, /** @type {number} */ wentOn) =>
        this.#recovered(worker, heard, wentOn),
      failed: (/** @type {string} */ text) => this.#say(`A worker has failed: ${text}`),
    };
    const { options } = this;
    this.tank = byPost ? new TankPost(options, events) : await TankJob.launch(options, events);
    this.tank.pause(this.#isStill);
    this.#changed();
    const how = byPost ? "by postMessage: halos and frames are transferred" : "by pamir";
    const workers = options.workers === 1 ? "One worker runs" : `${options.workers} workers run`;
    this.#say(`${workers} the tank ${how}.`);
  }

  /** Once, by the steps of the first second: so waves look alike on each machine, and slower programs look slower. */
  #choosePace() {
    const { tank, options } = this;
    if (this.#paceSince < 0 || this.#isStill || !(tank instanceof TankJob)) return;
    const now = performance.now();
    if (this.#paceSince === 0) this.#paceSince = now;
    if (now - this.#paceSince < PACE_MS) return;
    this.#paceSince = -1;
    options.pace = paceOf(options.size, Math.max(50, this.figures.values.steps));
    tank.pace = options.pace;
    tank.change();
  }

  #draw() {
    requestAnimationFrame(() => this.#draw());
    const { tank, figures } = this;
    if (tank === undefined) return;
    figures.busy(() => {
      this.painter.draw(tank.now());
      figures.show();
    });
    element("step").textContent = tank.step.toLocaleString("en");
    figures.frame();
  }

  #changed() {
    const { tank } = this;
    if (tank === undefined) return;
    this.figures.keep(tank.slots.filter(({ state }) => state === "running").map(({ task }) => task));
    this.list.show(tank.slots, tank.parts ?? [], tank.size);
    const pages = this.pages?.running.length ?? 0;
    if (pages !== this.#pages) {
      this.#pages = pages;
      this.#rest();
      // Steps take another time now.
      if (this.options.rate === 0) this.#paceSince = 0;
    }
    this.onChange();
  }

  /** Other pages with a part of the tank that runs; undefined: none can have one. */
  get pages() {
    return this.tank instanceof TankJob && this.tank.isShared ? this.tank.pages : undefined;
  }

  /** Leaves the cores to others for a while. @param {boolean} isResting */
  rest(isResting) {
    this.resting += isResting ? 1 : -1;
    this.#rest();
  }

  get #isStill() {
    // Other pages go on while this one is hidden.
    return this.isPaused || (this.isHidden && this.#pages === 0) || this.resting > 0;
  }

  #rest() {
    const { isPaused } = this;
    this.tank?.pause(this.#isStill);
    this.#pause.textContent = isPaused ? "Run" : "Pause";
    this.figures.rest();
  }

  /** @param {string} text */
  #say(text) {
    this.#status.textContent = text;
  }

  #choose() {
    const typed = this.#count.value;
    const wanted = Number(typed);
    const workers = Math.min(MEMBERS_MAX, Math.max(1, Math.round(wanted) || 1));
    this.#count.value = String(workers);
    if (workers === wanted) this.#say(`The rows are shared among ${workers} workers now.`);
    else {
      const asked =
        typed === "" || Number.isNaN(wanted) ? "That is no number of workers" : `${wanted} workers were asked for`;
      this.#say(`${asked}: this page starts 1 to ${MEMBERS_MAX}, and so ${workers}.`);
    }
    this.options.workers = workers;
    if (this.tank?.setWorkers(workers) !== true) void this.start();
  }

  /** @param {number} worker */
  #kill(worker) {
    const { tank } = this;
    if (tank === undefined) return;
    this.#wasStill = this.#isStill;
    // Others that were killed just now have not ended yet.
    const others = tank.slots.filter(
      ({ state, isKilled }, slot) => slot !== worker && state === "running" && !isKilled,
    );
    const isLast = others.length === 0 && (this.pages?.running.length ?? 0) === 0;
    if (tank.by === "pamir") {
      const still = this.#isStill
        ? " The tank is paused: the others get its rows, and go on from there once it runs."
        : "";
      this.#say(
        `Worker ${worker + 1} is killed${isLast ? ": none is left, and the water stands still." : `.${still}`}`,
      );
    } else {
      const lost = "its rows are lost, no neighbor hears of it, and each would wait for ever";
      this.#say(
        isLast
          ? `Worker ${worker + 1} is killed: none is left, and all rows are lost.`
          : `Worker ${worker + 1} is killed: ${lost}. The page knows, and has begun again with still water.`,
      );
    }
    tank.kill(worker);
  }

  /** @param {number} worker */
  #restart(worker) {
    this.#say(`Worker ${worker + 1} starts again, and gets rows.`);
    if (this.tank?.restart(worker) !== true) void this.start();
  }

  /** @param {number} worker @param {number} heard ms @param {number} wentOn ms */
  #recovered(worker, heard, wentOn) {
    const ms = (/** @type {number} */ time) => duration(1e6 * time);
    if (!this.tank?.isShared) {
      const lost = "Its rows were in its own memory: the water is still again";
      this.#say(`Worker ${worker + 1} is gone. ${lost}, and all had made their next step after ${ms(wentOn)}.`);
      return;
    }
    const goneOn = this.#wasStill ? "went on once the tank ran" : `all had made their next step after ${ms(wentOn)}`;
    const others =
      heard > 0 ? `The others heard SHUTDOWN after ${ms(heard)}, shared its rows` : "The others shared its rows";
    this.#say(`Worker ${worker + 1} is gone. ${others}, and ${goneOn}.`);
  }

  /** Pauses, with all rows at one step, by pamir in one memory. @returns {Promise<number>} the step */
  async still() {
    this.isPaused = true;
    this.#rest();
    if (this.tank instanceof TankJob) await this.tank.level();
    return this.tank?.step ?? 0;
  }

  /** The heights as they are, for a look from the console: rows, one behind the other. */
  water() {
    const { size } = this.options;
    const heights = new Float32Array(size * size);
    for (const [y, row] of (this.tank?.now() ?? []).entries()) heights.set(row, y * size);
    return heights;
  }
}

/** What this host lacks, in words; empty if nothing. */
export function lacks() {
  const { mode, why } = info();
  const cores = navigator.hardwareConcurrency;
  const messages = "So the tasks send each other messages, also for their puts, and the page gets copies of the rows.";
  return [
    why === "" ? "" : `Here pamir is not what it could be: ${why}. ${mode === "messages" ? messages : ""}`,
    cores === 1 ? "This machine has one core: workers take turns on it, and more of them make nothing faster." : "",
  ]
    .filter((text) => text !== "")
    .join(" ");
}
