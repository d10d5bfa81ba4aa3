// @ts-check
// Pages that have a part of the tank, as the page with the tank has them: each has a bridge, a task that stands for it here.
import { CAME, LANES, LEAVES, LOST, MEET, MET, PAGES_MAX, PAUSE, PLAN } from "../tank/layout.js";
import { PageLane } from "./page-lane.js";

/**
 * @typedef {object} Guest
 * @property {number} number of the page: this one is page 1
 * @property {number} task the bridge
 * @property {"starting" | "invited" | "running" | "gone"} state
 * @property {number} halo handle of the bridge's halos
 * @property {string} name what the page says it is
 * @property {string} ticket of the bridge
 * @property {string} token by which the bridge knows its page
 * @property {PageLane} lane
 * @property {(met: { node: number, code?: string, message?: string }) => void} met
 */
/**
 * What it needs of the tank.
 * @typedef {object} Tank
 * @property {(id: number, hear: (value: any, task: number) => void) => void} hear
 * @property {(task: number, id: number, value: unknown) => void} tell
 * @property {() => number} spawn
 * @property {() => void} change
 * @property {() => boolean} isPaused
 */

export class Pages {
  /** @type {Guest[]} */
  list = [];
  /** Bridges, also of pages that are gone. @type {Map<number, Guest>} */
  #bridges = new Map();
  /** Tasks of bridges that have ended. */
  #ended = new Set();
  /** The page that is gone last, and why. @type {{ number: number, why: string } | undefined} */
  farewell;

  /** @param {Tank} tank */
  constructor(tank) {
    this.tank = tank;
    /** @param {number} id @param {(guest: Guest, value: any) => void} does */
    const hear = (id, does) =>
      tank.hear(id, (value, task) => {
        const guest = this.#bridges.get(task);
        if (guest !== undefined) does(guest, value);
      });
    hear(MET, (guest, met) => {
      guest.state = met.node < 0 ? "gone" : "invited";
      guest.met(met);
      if (met.node < 0) this.#remove(guest, "");
    });
    hear(CAME, (guest, { halo, name }) => {
      if (guest.state !== "invited") return;
      Object.assign(guest, { halo, name, state: "running" });
      tank.tell(guest.task, PAUSE, { isPaused: tank.isPaused() });
      tank.change();
    });
    hear(LEAVES, (guest) => this.#remove(guest, "left"));
    hear(LOST, (guest, { why }) => this.#remove(guest, why));
    hear(LANES, (guest, { marks, offset }) => guest.lane.add(marks, offset));
  }

  /** Those that have rows. */
  get running() {
    return this.list.filter(({ state }) => state === "running");
  }

  /** Lanes for the strip. */
  get lanes() {
    return [...this.#bridges.values()].map(({ lane }) => lane).filter(({ isShown }) => isShown);
  }

  /** @param {number} task */
  guestOf(task) {
    return this.#bridges.get(task);
  }

  /** Whether a bridge still answers. @param {number} task */
  isAlive(task) {
    return this.#bridges.has(task) && !this.#ended.has(task);
  }

  /**
   * Starts a bridge, which waits for a page.
   * @param {string} ticket of the bridge
   * @param {string} token
   * @returns {Promise<{ number: number, node: number }>} the page's number, and the bridge's in the job of the server
   */
  invite(ticket, token) {
    if (this.list.length >= PAGES_MAX) throw new Error(`${PAGES_MAX} pages have parts: no more than that`);
    const numbers = new Set(this.list.map((guest) => guest.number));
    let number = 2;
    while (numbers.has(number)) number++;
    return new Promise((resolve, reject) => {
      const task = this.tank.spawn();
      const guest = /** @type {Guest} */ ({ number, task, ticket, token, state: "starting", halo: 0, name: "" });
      guest.lane = new PageLane(number, task);
      guest.met = ({ node, code, message }) =>
        node < 0 ? reject(new Error(`${code}: ${message}`)) : resolve({ number, node });
      this.list.push(guest);
      this.#bridges.set(task, guest);
    });
  }

  /** A bridge has begun. @param {Guest} guest */
  here({ task, ticket, token, state }) {
    if (state === "gone") this.tank.tell(task, PLAN, { members: [] });
    else this.tank.tell(task, MEET, { ticket, token });
  }

  /** Takes the rows of a page back, or an invitation. @param {number} number */
  dismiss(number) {
    const guest = this.list.find((each) => each.number === number);
    if (guest !== undefined) this.#remove(guest, "dismissed");
  }

  /** @param {Guest} guest @param {string} why */
  #remove(guest, why) {
    const at = this.list.indexOf(guest);
    if (at < 0) return;
    this.list.splice(at, 1);
    const hadRows = guest.state === "running";
    guest.state = "gone";
    guest.lane.end();
    // With the server, an invitation ends, too.
    if (hadRows || why === "host") this.farewell = { number: guest.number, why };
    if (!hadRows && !this.#ended.has(guest.task)) this.tank.tell(guest.task, PLAN, { members: [] });
    this.tank.change();
  }

  /** The tank has ended, and with it all bridges. */
  close() {
    for (const { met } of this.list) met({ node: -1, code: "SHUTDOWN", message: "the tank was started anew" });
  }

  /** A task has ended. @param {number} task @returns {boolean} whether it was a bridge */
  ended(task) {
    const guest = this.#bridges.get(task);
    if (guest === undefined) return false;
    this.#ended.add(task);
    guest.met({ node: -1, code: "SHUTDOWN", message: "its task has ended" });
    this.#remove(guest, "killed");
    return true;
  }
}
