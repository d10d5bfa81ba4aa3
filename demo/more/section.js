// @ts-check
// "More machines" on the page with the tank: tickets by which other pages join, and the pages that have joined.
import { catchFocus, rest } from "../focus.js";

/** Where pages meet: a process that hosts them serves the page with this. @typedef {{ address: string, isLocal: boolean, command: string }} Meeting */
/** @typedef {import("../tank/hero.js").Hero} Hero */

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** What happened to a page, in words. @type {Record<string, string>} */
const WHYS = {
  closed: "was closed (SHUTDOWN)",
  silent: "did not answer for five seconds",
  left: "has left",
  dismissed: "was sent away",
  killed: "has lost its bridge, a task of this page",
};
/** Pages that hand their rows back before they go. */
const KEPT = ["left", "dismissed"];

/** What the server has said of itself; undefined: a static host. @returns {Meeting | undefined} */
function meetingOf() {
  const text = document.documentElement.dataset.meeting;
  return text === undefined ? undefined : JSON.parse(text);
}

/** A ticket for a bridge, and one for its page, of one job. @returns {Promise<{ tickets: string[], lifetime: number }>} */
async function fetchTickets() {
  let response;
  try {
    response = await fetch("tickets", { method: "POST" });
  } catch {
    throw new Error("the server of this page does not answer: is it still running?");
  }
  if (!response.ok) throw new Error(`the server gives no ticket: ${response.status} ${await response.text()}`);
  return response.json();
}

/** The QR code of a link. @param {string} link */
async function codeOf(link) {
  const { renderSVG } = await import("uqr");
  return renderSVG(link, { ecc: "L", border: 2 });
}

const tokenOf = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

class Section {
  /** The page that is invited. @type {number | undefined} */
  #invited;
  #expires = 0;
  /** Those of the tank that was shown last. @type {Hero["pages"]} */
  #pages;
  #shown = "";
  /** @type {object | undefined} */
  #farewell;
  /** Whether pages had rows when this was shown last. */
  #hadRows = false;

  /** @param {Hero} hero @param {Meeting} meeting */
  constructor(hero, meeting) {
    this.hero = hero;
    this.meeting = meeting;
    element("more-here").hidden = false;
    if (meeting.isLocal) {
      element("more-local").hidden = false;
      element("more-command").textContent = `${meeting.command} -- --host 0.0.0.0`;
    }
    element("invite").addEventListener("click", () => void this.#invite());
    element("copy-link").addEventListener("click", () => void this.#copy());
    hero.onChange = () => this.#show();
    this.#show();
  }

  /** @param {string} text */
  #say(text) {
    element("more-status").textContent = text;
  }

  /** Why no page can join now; empty: one can. */
  get #lack() {
    const { hero } = this;
    if (hero.pages !== undefined) return "";
    if (hero.tank === undefined) return "The tank is not running yet.";
    if (hero.tank.by !== "pamir") return "By postMessage there is no way to other machines: switch it off.";
    return `This page is not cross-origin isolated, and a tank without shared memory takes no other pages. Open it on this machine, by localhost.`;
  }

  async #invite() {
    const { hero } = this;
    const button = /** @type {HTMLButtonElement} */ (element("invite"));
    const { pages } = hero;
    if (pages === undefined) {
      this.#say(this.#lack);
      return;
    }
    const enable = rest(button);
    this.#withdraw();
    this.#say("A ticket is made …");
    try {
      const { tickets, lifetime } = await fetchTickets();
      const token = tokenOf();
      const { number, node } = await pages.invite(tickets[0], token);
      const link = new URL(`more.html#${node}.${token}.${tickets[1]}`, new URL(this.meeting.address, location.href));
      element("code-of-link").innerHTML = await codeOf(link.href);
      /** @type {HTMLInputElement} */ (element("link")).value = link.href;
      /** @type {HTMLAnchorElement} */ (element("open-link")).href = link.href;
      element("invitation").hidden = false;
      this.#invited = number;
      const minutes = Math.round(lifetime / 60_000);
      this.#say(`The ticket for page ${number} is ready. It admits one page, once, within ${minutes} minutes.`);
      this.#expires = window.setTimeout(() => {
        this.#withdraw();
        this.#say("The ticket has expired. Another one takes a moment.");
      }, lifetime);
    } catch (error) {
      this.#say(`No page can join: ${/** @type {Error} */ (error).message}`);
    }
    enable();
  }

  /** Hides the invitation. */
  #close() {
    clearTimeout(this.#expires);
    const hadFocus = element("invitation").contains(document.activeElement);
    element("invitation").hidden = true;
    if (hadFocus) element("invite").focus({ preventScroll: true });
  }

  /** The invitation is over. */
  #withdraw() {
    this.#close();
    const number = this.#invited;
    this.#invited = undefined;
    const guest = this.hero.pages?.list.find((each) => each.number === number);
    if (number !== undefined && guest?.state === "invited") this.hero.pages?.dismiss(number);
  }

  async #copy() {
    const field = /** @type {HTMLInputElement} */ (element("link"));
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      this.#say("The link is copied.");
    } catch {
      this.#say("The link is selected: copy it by the keys of this machine.");
    }
  }

  /** The workers, pages or rows have changed. */
  #show() {
    const { hero } = this;
    const { pages } = hero;
    const parts = hero.tank?.parts ?? [];
    const rows = (pages?.running ?? []).map(({ number, name }) => {
      const part = parts.find((each) => "page" in each && each.page === number);
      return { number, name, first: part?.first ?? 0, end: part?.end ?? 0 };
    });
    if (this.#invited !== undefined && rows.some(({ number }) => number === this.#invited)) this.#joined(this.#invited);
    if (this.#invited !== undefined && pages?.list.every(({ number }) => number !== this.#invited) !== false) {
      this.#withdraw();
      this.#say("The tank runs anew, and the ticket is void: another one takes a moment.");
    }
    if (this.#pages !== pages) {
      if (this.#hadRows)
        this.#say("The tank was started anew, without its other pages: they can come again, by tickets.");
      this.#pages = pages;
    }
    this.#hadRows = rows.length > 0;
    const farewell = pages?.farewell;
    if (farewell !== this.#farewell && farewell?.why === "host") {
      this.#say(
        "The server of this page has ended: tickets are void, and rows of pages that had joined go on from their last picture here.",
      );
    } else if (farewell !== this.#farewell && farewell !== undefined) {
      const isKept = KEPT.includes(farewell.why);
      const rowsSay = isKept
        ? "Its rows are shared among the others."
        : "Its rows go on from their last picture here, shared among the others.";
      this.#say(
        `Page ${farewell.number} ${WHYS[farewell.why] ?? farewell.why}. ${rowsSay} It can come again, by another ticket.`,
      );
    }
    this.#farewell = farewell;
    const text = JSON.stringify(rows);
    if (text === this.#shown) return;
    this.#shown = text;
    const hadFocus = element("more-pages").contains(document.activeElement);
    element("more-pages").replaceChildren(...rows.map((row) => this.#item(row)));
    if (hadFocus) catchFocus(element("more-pages").querySelector("button") ?? element("invite"));
  }

  /** @param {number} number */
  #joined(number) {
    this.#invited = undefined;
    this.#close();
    this.#say(`Page ${number} has joined, and gets rows.`);
  }

  /** @param {{ number: number, name: string, first: number, end: number }} row */
  #item({ number, name, first, end }) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Send page ${number} away`;
    button.addEventListener("click", () => this.hero.pages?.dismiss(number));
    const rows = end > first ? `rows ${first + 1} to ${end}` : "no rows yet";
    item.append(`Page ${number}: ${rows}${name === "" ? "" : `, ${name}`} `, button);
    return item;
  }
}

/** @param {Hero} hero */
export function setUpMore(hero) {
  const meeting = meetingOf();
  if (meeting !== undefined) new Section(hero, meeting);
  else element("more-static").hidden = false;
}
