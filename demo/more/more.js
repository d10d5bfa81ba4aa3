// @ts-check
// A page that joins the tank of another one by a ticket, which stands in its address: a worker has its rows, and this draws them.
import { Finger } from "../tank/finger.js";
import { Painter } from "../tank/painter.js";
import { rowsOf } from "../tank/water.js";

/** @typedef {import("./guest-rows.js").Part} Part */

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @param {string} text */
const say = (text) => {
  element("status").textContent = text;
};
const AGAIN = "Ask for another ticket at the page with the tank.";

/** Why a ticket is not taken, by the code of the error. @type {Record<string, string>} */
const REFUSALS = {
  PAMIR_TICKET: "This is no ticket, or not one of this host, which may have been started again.",
  PAMIR_TICKET_USED:
    "This ticket has admitted a page before, and each admits one, once: a page that is reloaded takes another.",
  PAMIR_TICKET_EXPIRED: "This ticket has expired.",
  PAMIR_TIMEDOUT: "The host of this ticket does not answer: it has gone, or is not to be reached from here.",
  PAMIR_CLOSED: "The host of this ticket has ended.",
  PAMIR_VERSION: "The host of this ticket has another version of pamir: reload the page with the tank.",
};
/** Why it is over. @type {Record<string, string>} */
const ENDS = {
  SHUTDOWN:
    "The tank or its server has ended, or this page slept for too long (SHUTDOWN). The water here stands still.",
  PAMIR_TIMEDOUT: `The page with the tank does not answer (PAMIR_TIMEDOUT). ${AGAIN}`,
  over: `This page has no part of the tank any more. ${AGAIN}`,
  silent: `This page did not answer for five seconds, and the tank went on without it. ${AGAIN}`,
  wrong: `The tank has given this place to another page, or to none (PAMIR_TICKET). ${AGAIN}`,
};

class GuestPage {
  /** @type {Part | undefined} */
  part;
  /** @type {Painter | undefined} */
  painter;
  /** @type {Finger | undefined} */
  finger;
  /** @type {Float32Array | undefined} */
  frame = new Float32Array(0);
  isHeld = matchMedia("(prefers-reduced-motion: reduce)").matches;
  isOver = false;
  #isLeaving = false;
  #hasFailed = false;
  #canvas = /** @type {HTMLCanvasElement} */ (element("water"));
  #hold = element("hold");
  #leave = /** @type {HTMLButtonElement} */ (element("leave"));

  constructor() {
    this.worker = new Worker(new URL("./guest-worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.#hear(data));
    this.worker.addEventListener("error", ({ message }) => {
      this.#hasFailed = true;
      this.#end(`The worker of this page has failed: ${message ?? "its script does not load"}`);
    });
    this.#hold.addEventListener("click", () => {
      this.isHeld = !this.isHeld;
      this.#showHold();
    });
    this.#leave.addEventListener("click", () => {
      this.#isLeaving = true;
      this.#leave.disabled = true;
      this.worker.postMessage({ leave: true });
    });
    this.#showHold();
  }

  /** @param {string} text of the address, behind the # */
  join(text) {
    const [, node = "", token = "", ticket = ""] = /^(\d+)\.(\w+)\.([\w-]+)$/.exec(text) ?? [];
    if (this.#hasFailed) return;
    if (text === "") {
      this.#end(`This page has no ticket. ${AGAIN}`);
      return;
    }
    say("The ticket goes to its host …");
    const { userAgentData, platform } = /** @type {Navigator & { userAgentData?: { platform: string } }} */ (navigator);
    const name = userAgentData?.platform || platform || "";
    // A text that is no link of a tank is no ticket: join() says so.
    this.worker.postMessage({ join: { node: Number(node), token, ticket: ticket || "?", name } });
  }

  /** @param {any} data */
  #hear(data) {
    if (data.part !== undefined) this.#begin(data.part);
    else if (data.frame !== undefined) this.#draw(data.frame, data.size);
    else if (data.figures !== undefined) this.#figures(data.figures);
    else if (data.isQuiet !== undefined) {
      say(data.isQuiet ? "Nothing is heard of the tank for three seconds: this page waits." : this.#state);
    } else if (data.end !== undefined)
      this.#end(this.#isLeaving ? "This page has left the tank." : (ENDS[data.end] ?? data.end));
    else if (data.refused !== undefined) {
      const { code, message } = data.refused;
      const why = REFUSALS[code] ?? message;
      this.#end(`${why} (${code ?? "no code"}) ${AGAIN}`);
    }
  }

  /** @param {string} text */
  #end(text) {
    this.isOver = true;
    this.#leave.disabled = true;
    say(text);
  }

  get #state() {
    const { part } = this;
    return part === undefined
      ? ""
      : `This page has rows ${part.first + 1} to ${part.first + part.count} of ${part.size}.`;
  }

  /** @param {Part} part */
  #begin(part) {
    const isFirst = this.part === undefined;
    this.part = part;
    const { size, count, first } = part;
    this.painter = new Painter(this.#canvas, size, count);
    this.#canvas.style.aspectRatio = `${size} / ${count}`;
    this.finger ??= new Finger(this.#canvas, element("finger"), size, (where) => {
      const { part: now } = this;
      if (now === undefined || this.isOver) return;
      this.worker.postMessage({ push: { ...where, y: now.first + Math.round((where.y * now.count) / now.size) } });
    });
    element("rows").textContent = String(count);
    element("rows-note").textContent = `${first + 1} to ${first + count} of ${size}`;
    this.#leave.disabled = this.#isLeaving;
    say(this.#state);
    if (isFirst) requestAnimationFrame(() => this.#ask());
  }

  /** The worker hands over a picture for each frame, and gets its buffer back. */
  #ask() {
    requestAnimationFrame(() => this.#ask());
    const { frame } = this;
    if (frame === undefined || this.isHeld) return;
    this.frame = undefined;
    this.worker.postMessage({ frame }, [frame.buffer]);
  }

  /** @param {Float32Array} frame @param {number} size */
  #draw(frame, size) {
    this.frame = frame;
    if (frame.length === this.part?.count * size) this.painter?.draw(rowsOf(frame, size));
  }

  /** @param {{ steps: number, computed: number, step: number, milliseconds: number }} figures */
  #figures({ steps, computed, step, milliseconds }) {
    element("steps").textContent = Math.round((1000 * steps) / milliseconds).toLocaleString("en");
    element("computing").textContent = `${((100 * computed) / milliseconds).toFixed(1)} %`;
    element("step").textContent = step.toLocaleString("en");
  }

  #showHold() {
    this.#hold.textContent = this.isHeld ? "Show the water move" : "Hold the picture";
  }
}

const isolation = crossOriginIsolated
  ? ""
  : " This page is not cross-origin isolated, as no page is that comes by plain HTTP from another machine: its threads could share no memory.";
element("threads").textContent =
  `One thread of this page computes its rows; it sends the rows at their borders by pamir/web.${isolation}`;
const page = new GuestPage();
// For a look from the console.
Object.assign(globalThis, { page });
page.join(location.hash.slice(1));
// Another link in the same tab changes the part behind the # alone.
addEventListener("hashchange", () => location.reload());
