// @ts-check
// A task of the tank whose rows another page has: it hands on what neighbors put into its halos, and puts what the page sends.
import { attach, codecs, dispatchId, SHUTDOWN } from "pamir";
import { join } from "pamir/web";
import { Halos } from "../tank/halos.js";
import * as ids from "../tank/layout.js";
import { sharedRows, toOneStep } from "../tank/tank-rows.js";
import { CAME, Marks, messageOf, WENT } from "./marks.js";
import * as words from "./words.js";

/** @typedef {import("../tank/layout.js").Plan} Plan */
const JOIN_MS = 10_000;
/** The task of the server, by which the messages go. */
const HOST = 0;
/** ms between two questions whether the page is there, and questions without an answer after which it is given up. */
const PING_MS = 500;
const UNANSWERED = 10;
const LANE_MS = 40;
/** ms to hand over the last messages: a page that sleeps is told why it has no part any more when it is back. */
const LEAVE_MS = 2000;
const SLEEP_MS = 120_000;

const client = await attach();
const { size, stop } = /** @type {{ size: number, stop: number }} */ (client.args);
const context = client.createContext();
const tank = client.endpoint(0);
const halos = new Halos(client, context, size);
const marks = new Marks(1);
const json = /** @type {import("pamir").Codec<any>} */ (codecs.json());
const told = (/** @type {number} */ id) => dispatchId(id, json);
/** @param {number} id @param {unknown} value */
const tell = (id, value) => context.send({ to: tank, dispatch: told(id), payload: value });

class Bridge {
  /** @type {Plan | undefined} */
  plan;
  place = -1;
  /** @type {ReturnType<typeof ids.viewsOf> | undefined} */
  views;
  /** By side: the step whose row goes to the page next. */
  #next = [0, 0];
  /** A stop that is not yet answered. @type {number | undefined} */
  #stopping;
  isLost = false;
  isOver = false;
  isPaused = false;
  /** The endpoint of the page; undefined: none has come. @type {number | undefined} */
  page;
  token = "";
  #unanswered = 0;
  /** The page's clock, less this one, by the quickest answer. */
  #offset = 0;
  #quickest = Number.POSITIVE_INFINITY;

  /** @param {import("pamir").Client} web @param {string} token */
  constructor(web, token) {
    this.web = web;
    this.token = token;
    this.link = web.createContext();
    this.#listen();
    // Also before a page has come: its ticket is void then.
    this.link.whenEnded(web.endpoint(HOST), () => this.lose("host"));
    void this.#pump();
    setInterval(() => this.#ping(), PING_MS);
    setInterval(() => this.#lane(), LANE_MS);
  }

  async #pump() {
    try {
      while (!this.isOver) await this.link.progress();
    } catch (error) {
      // The link is closed while this waits.
      if (!this.isOver) throw error;
    }
  }

  /** @param {number} id @param {unknown} value */
  say(id, value) {
    if (this.page !== undefined && !this.isLost) this.link.send({ to: this.page, dispatch: told(id), payload: value });
  }

  #listen() {
    const { link } = this;
    /** Of the page alone. @param {number} id @param {(value: any) => void} does */
    const hear = (id, does) =>
      link.dispatch(told(id), (value, task) => {
        if (task === this.page) does(value);
      });
    /** @param {number} id @param {(header: number[], message: import("pamir").Message) => void} does */
    const take = (id, does) =>
      link.dispatch(id, (message) => {
        if (message.task === this.page) does(words.headerOf(message), message);
      });
    link.dispatch(told(words.HELLO), (/** @type {{ token: string, name: string }} */ hello, task) =>
      this.#hello(hello, task),
    );
    take(words.BORDER, ([epoch, step], message) => this.#border(epoch, step, words.payloadOf(Float32Array, message)));
    take(words.ROWS, ([epoch, kind, row, step], message) =>
      this.#rows({ epoch, kind, row, step }, words.payloadOf(Float32Array, message)),
    );
    take(words.STRIPE, ([epoch, step, row], message) =>
      this.#stripe({ epoch, step, row }, words.payloadOf(Int16Array, message)),
    );
    take(words.LANE, (_, message) =>
      tell(ids.LANES, { marks: Array.from(words.payloadOf(Float64Array, message)), offset: this.#offset }),
    );
    hear(words.STOPPED, (/** @type {{ epoch: number, step: number }} */ { epoch, step }) => {
      if (epoch !== this.plan?.epoch || this.views === undefined) return;
      Atomics.store(this.views.steps, this.place, step);
      this.plan = undefined;
      this.#answer();
    });
    hear(words.PONG, (/** @type {{ at: number, clock: number }} */ { at, clock }) => {
      this.#unanswered = 0;
      const took = words.clock() - at;
      if (took >= this.#quickest) return;
      this.#quickest = took;
      this.#offset = clock - at - took / 2;
    });
    hear(words.PUSH, (/** @type {import("../tank/water.js").Lift} */ where) => {
      for (const task of this.plan?.members ?? []) {
        if (task !== client.task) context.send({ to: client.endpoint(task), dispatch: told(ids.PUSH), payload: where });
      }
    });
    hear(words.LEAVE, () => tell(ids.LEAVES, {}));
  }

  /** @param {{ token: string, name: string }} hello @param {number} task */
  #hello({ token, name }, task) {
    const { link } = this;
    if (token !== this.token || this.page !== undefined || this.isOver) {
      link.send({ to: task, dispatch: told(words.BYE), payload: { why: "wrong" } });
      return;
    }
    this.page = task;
    // Without its host, a page is not to be reached either.
    const isHostGone = () => link.resume([this.web.endpoint(HOST)]) === SHUTDOWN;
    link.whenEnded(this.web.endpoint(task), () => this.lose(isHostGone() ? "host" : "closed"));
    tell(ids.CAME, { halo: halos.region.handle, name: String(name).slice(0, 40) });
  }

  /** Rows of a step that the page has made: they are put into the memory of the neighbors. */
  #border(/** @type {number} */ epoch, /** @type {number} */ step, /** @type {Float32Array} */ rows) {
    if (epoch !== this.plan?.epoch) return;
    if (step === this.plan.step + 1) tell(ids.GOES_ON, { epoch });
    marks.add(CAME, messageOf(step, 2));
    const [first, last] = [rows.subarray(0, size), rows.subarray(size)];
    if (!halos.put(step, [first, first, last, last])) context.advance();
  }

  /** Rows that the page hands back: they are in the memory of the tank again. @param {words.Block} block @param {Float32Array} cells */
  #rows({ epoch, kind, row, step }, cells) {
    const { plan, views, place } = this;
    if (plan === undefined || views === undefined || epoch !== plan.epoch) return;
    const from = plan.firsts[place] + row;
    const plane =
      kind === words.SPEEDS ? views.speeds[step & 1] : views.heights[(step & 1) ^ Number(kind === words.BEFORE)];
    for (let at = 0; at < cells.length / size; at++) plane[from + at]?.set(cells.subarray(at * size, (at + 1) * size));
  }

  /** A part of the page's picture. Both planes have it: from there the tank goes on if the page is lost. */
  #stripe(
    /** @type {{ epoch: number, step: number, row: number }} */ { epoch, step, row },
    /** @type {Int16Array} */ parts,
  ) {
    const { plan, views, place } = this;
    if (plan === undefined || views === undefined || epoch !== plan.epoch) return;
    for (let at = 0; at < parts.length / size; at++) {
      const heights = views.heights[0][plan.firsts[place] + row + at];
      for (let x = 0; x < size; x++) heights[x] = parts[at * size + x] / words.PARTS;
      views.heights[1][plan.firsts[place] + row + at].set(heights);
    }
    Atomics.store(views.steps, place, step);
  }

  /** Hands the page the rows that neighbors have put into the halos. */
  forward() {
    const { plan, page, link } = this;
    if (plan === undefined || page === undefined) return;
    for (const side of [0, 1]) {
      if (!this.#hasNeighbor(side)) continue;
      for (; halos.come(side) > this.#next[side]; this.#next[side]++) {
        const step = this.#next[side];
        const payload = halos.rows[2 * side + (step & 1)];
        link.send({ to: page, dispatch: words.HALO, header: Int32Array.of(plan.epoch, step, side), payload });
        marks.add(WENT, messageOf(step, side));
      }
    }
  }

  /** Whether a row waits in the halos. */
  get hasRows() {
    const isNew = (/** @type {number} */ side) => this.#hasNeighbor(side) && halos.come(side) > this.#next[side];
    return this.plan !== undefined && (isNew(0) || isNew(1));
  }

  /** @param {number} side */
  #hasNeighbor(side) {
    return this.plan?.members[this.place + (side === 0 ? -1 : 1)] !== undefined;
  }

  /** @param {Plan} given */
  begin(given) {
    this.place = given.members.indexOf(client.task);
    if (this.isLost) return;
    const { step, epoch, pace } = given;
    const views = ids.viewsOf(client.bytes.buffer, given.offset, size);
    this.views = views;
    this.plan = given;
    this.#next = [step, step];
    halos.begin(given, this.place);
    const [first, end] = [given.firsts[this.place], given.firsts[this.place + 1]];
    const count = end - first;
    const now = step & 1;
    const rows = sharedRows(views, { first, count, pace, halo: (plane, side) => halos.rows[2 * side + plane] });
    for (let row = first; row < end; row++) views.heights[1 - now][row].set(views.heights[now][row]);
    halos.put(step, rows.heights[now]);
    const hasNeighbors = [this.#hasNeighbor(0), this.#hasNeighbor(1)];
    this.say(words.BEGIN, { epoch, first, count, size, pace, step, stop, isPaused: this.isPaused, hasNeighbors });
    const send = (/** @type {Int32Array} */ header, /** @type {Float32Array} */ payload) =>
      void this.link.send({ to: /** @type {number} */ (this.page), dispatch: words.ROWS, header, payload });
    words.sendRows(send, rows.heights[now].slice(1, -1), { epoch, kind: words.HEIGHTS, step });
    words.sendRows(send, rows.speeds[now], { epoch, kind: words.SPEEDS, step });
  }

  /** The steps of a plan end: the page hands its rows back. @param {number} epoch */
  stop(epoch) {
    this.#stopping = epoch;
    if (this.plan === undefined) this.#answer();
    else this.say(words.STOP, { epoch: this.plan.epoch });
  }

  #answer() {
    if (this.#stopping === undefined) return;
    tell(ids.STOPPED, { epoch: this.#stopping, isLost: this.isLost });
    this.#stopping = undefined;
  }

  /** The page is gone, and its rows with it. @param {"closed" | "silent" | "host"} why */
  lose(why) {
    if (this.isLost || this.isOver) return;
    if (why === "silent") this.say(words.BYE, { why });
    this.isLost = true;
    this.plan = undefined;
    this.#answer();
    tell(ids.LOST, { why });
  }

  #ping() {
    if (this.page === undefined || this.isLost || this.isOver) return;
    if (this.#unanswered++ >= UNANSWERED) this.lose("silent");
    else this.say(words.PING, { at: words.clock() });
  }

  #lane() {
    const taken = marks.take();
    if (taken.length > 0) tell(ids.LANES, { marks: Array.from(taken), offset: 0 });
  }

  /** The tank goes on without the page. */
  async leave() {
    this.say(words.BYE, { why: "over" });
    this.plan = undefined;
    this.isOver = true;
    await this.web.close({ drain: true, timeout: this.isLost ? SLEEP_MS : LEAVE_MS }).catch(() => {});
  }
}

/** @type {Bridge | undefined} */
let bridge;
let isOver = false;

context.dispatch(told(ids.MEET), async (/** @type {{ ticket: string, token: string }} */ { ticket, token }) => {
  try {
    const web = await join(ticket, { insecure: true, timeout: JOIN_MS });
    bridge = new Bridge(web, token);
    tell(ids.MET, { node: web.task });
  } catch (error) {
    const { code, message } = /** @type {import("pamir").PamiError} */ (error);
    tell(ids.MET, { node: -1, code, message });
  }
});
context.dispatch(told(ids.PLAN), (/** @type {Plan} */ given) => {
  if (given.members.includes(client.task)) bridge?.begin(given);
  else isOver = true;
});
context.dispatch(told(ids.STOP), (/** @type {{ epoch: number }} */ { epoch }) => bridge?.stop(epoch));
context.dispatch(told(ids.CATCH_UP), (/** @type {import("../tank/layout.js").CatchUp} */ given) => {
  const step = toOneStep(ids.viewsOf(client.bytes.buffer, given.offset, size), given);
  tell(ids.CAUGHT_UP, { epoch: given.epoch, step });
});
context.dispatch(told(ids.PUSH), (/** @type {import("../tank/water.js").Lift} */ where) => {
  if (bridge?.plan !== undefined) bridge.say(words.PUSH, where);
});
context.dispatch(told(ids.PAUSE), (/** @type {{ isPaused: boolean }} */ { isPaused }) => {
  if (bridge === undefined) return;
  bridge.isPaused = isPaused;
  bridge.say(words.PAUSE, { isPaused });
});

tell(ids.HERE, { halo: halos.region.handle });
while (!isOver) {
  await context.waitWord(halos.region, 0, () => isOver || bridge?.hasRows === true);
  bridge?.forward();
}
await bridge?.leave();
await client.close({ drain: true, timeout: LEAVE_MS }).catch(() => {});
self.close();
