// @ts-check
// A worker of a page that has joined the tank: a task of the host's job. The page draws.
import { codecs, dispatchId } from "pamir";
import { join } from "pamir/web";
import { GuestRows } from "./guest-rows.js";
import * as words from "./words.js";

/** Host and tank have so long to answer. */
const JOIN_MS = 10_000;
const TELL_MS = 250;
const STRIPE_MS = 4;
const LANE_MS = 40;
/** ms without a word of the tank after which the page says so. */
const QUIET_MS = 3000;
/** ms of steps without a turn of the event loop, where no neighbor is waited for. */
const STRETCH_MS = 4;
const json = /** @type {import("pamir").Codec<any>} */ (codecs.json());
const told = (/** @type {number} */ id) => dispatchId(id, json);

/** @param {object} message @param {Transferable[]} [transfer] */
const tell = (message, transfer = []) => postMessage(message, { transfer });

class Guest {
  #heard = performance.now();
  #isQuiet = false;
  #inFlight = 0;
  #told = performance.now();
  #turn = new MessageChannel();
  isOver = false;

  /** @param {import("pamir").Client} client @param {{ node: number, token: string, name: string }} given */
  constructor(client, { node, token, name }) {
    this.client = client;
    this.context = client.createContext();
    this.tank = client.endpoint(node);
    this.node = node;
    this.rows = new GuestRows((dispatch, header, payload) => {
      this.context.send({ to: this.tank, dispatch, header, payload });
    });
    this.#listen();
    this.#turn.port1.onmessage = () => this.#go();
    this.context.whenEnded(this.tank, () => this.end("SHUTDOWN"));
    this.say(words.HELLO, { token, name });
    void this.#pump();
    setTimeout(() => this.#hasBegun || this.end("PAMIR_TIMEDOUT"), JOIN_MS);
    setInterval(() => this.#stripe(), STRIPE_MS);
    setInterval(() => this.#lane(), LANE_MS);
    setInterval(() => this.#report(), TELL_MS);
  }

  #hasBegun = false;

  async #pump() {
    try {
      while (!this.isOver) await this.context.progress();
    } catch {
      this.end("SHUTDOWN");
    }
  }

  /** @param {number} id @param {unknown} value */
  say(id, value) {
    this.context.send({ to: this.tank, dispatch: told(id), payload: value });
  }

  #listen() {
    const { context, rows } = this;
    /** @param {number} id @param {(value: any) => void} does */
    const hear = (id, does) =>
      context.dispatch(told(id), (value, task) => {
        if (task !== this.node) return;
        this.#heard = performance.now();
        does(value);
      });
    hear(words.BEGIN, (/** @type {import("./guest-rows.js").Part} */ part) => {
      this.#hasBegun = true;
      rows.begin(part);
      tell({ part });
    });
    hear(words.PAUSE, (/** @type {{ isPaused: boolean }} */ { isPaused }) => {
      rows.isPaused = isPaused;
      this.#go();
    });
    hear(words.STOP, (/** @type {{ epoch: number }} */ { epoch }) => {
      rows.handBack(epoch);
      this.say(words.STOPPED, { epoch, step: rows.step });
    });
    hear(words.PUSH, (/** @type {import("../tank/water.js").Lift} */ where) => rows.push(where));
    hear(words.PING, (/** @type {{ at: number }} */ { at }) => this.say(words.PONG, { at, clock: words.clock() }));
    hear(words.BYE, (/** @type {{ why: string }} */ { why }) => this.end(why));
    context.dispatch(words.ROWS, (message) => {
      const [epoch, kind, row, step] = words.headerOf(message);
      rows.take({ epoch, kind, row, step }, words.payloadOf(Float32Array, message));
      this.#go();
    });
    context.dispatch(words.HALO, (message) => {
      const [epoch, step, side] = words.headerOf(message);
      rows.hear(epoch, step, side, words.payloadOf(Float32Array, message));
      this.#go();
    });
  }

  /** Steps, as long as the rows beside its own are there. */
  #go() {
    const { rows } = this;
    const end = performance.now() + STRETCH_MS;
    while (rows.isReady && !this.isOver) {
      rows.advance();
      if (performance.now() < end) continue;
      this.#turn.port2.postMessage(0);
      return;
    }
  }

  /** One part of the picture at a time is on its way: rows of the next step come first. */
  #stripe() {
    if (this.#inFlight > 0 || this.isOver) return;
    const stripe = this.rows.stripe();
    if (stripe === undefined) return;
    this.#inFlight++;
    const onRemote = () => {
      this.#inFlight--;
    };
    this.context.send({ to: this.tank, dispatch: words.STRIPE, ...stripe, onRemote });
  }

  #lane() {
    const payload = this.rows.marks.take();
    if (payload.length > 0 && !this.isOver) this.context.send({ to: this.tank, dispatch: words.LANE, payload });
  }

  #report() {
    if (this.isOver) return;
    const now = performance.now();
    const { steps, computed, step } = this.rows;
    tell({ figures: { steps, computed, step, milliseconds: now - this.#told } });
    this.#told = now;
    this.rows.steps = 0;
    this.rows.computed = 0;
    const isQuiet = now - this.#heard > QUIET_MS;
    if (isQuiet !== this.#isQuiet) tell({ isQuiet });
    this.#isQuiet = isQuiet;
  }

  /** A copy of the heights, for the page. @param {Float32Array} buffer */
  frame(buffer) {
    const { heights } = this.rows;
    const size = heights[0]?.length ?? 0;
    const cells = buffer.length === heights.length * size ? buffer : new Float32Array(heights.length * size);
    for (const [row, each] of heights.entries()) cells.set(each, row * size);
    tell({ frame: cells, size }, [cells.buffer]);
  }

  /** @param {import("../tank/water.js").Lift} where */
  push(where) {
    this.rows.push(where);
    this.say(words.PUSH, where);
  }

  /** @param {string} why */
  end(why) {
    if (this.isOver) return;
    this.isOver = true;
    tell({ end: why });
    void this.client.close({ drain: true, timeout: 1000 }).catch(() => {});
  }
}

/** As a page that a phone freezes, for a look from the console. @param {number} milliseconds */
function freeze(milliseconds) {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** @type {Guest | undefined} */
let guest;

addEventListener("message", async ({ data }) => {
  if (data.join !== undefined) {
    try {
      guest = new Guest(await join(data.join.ticket, { insecure: true, timeout: JOIN_MS }), data.join);
    } catch (error) {
      const { code, message } = /** @type {import("pamir").PamiError} */ (error);
      tell({ refused: { code, message } });
    }
  } else if (data.frame !== undefined) guest?.frame(data.frame);
  else if (data.push !== undefined) guest?.push(data.push);
  else if (data.leave !== undefined) guest?.say(words.LEAVE, {});
  else if (data.freeze !== undefined) freeze(data.freeze);
});
