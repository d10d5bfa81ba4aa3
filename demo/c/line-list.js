// @ts-check
// The lines that ranks write, as they come. The page keeps the last ones: a program may write more than a page can show.

const SHOWN = 500;
/** Between two pictures: a browser spends more on a line that is drawn than on one that comes. */
const DRAW_MS = 100;
/** Characters of a line that are shown. */
const LENGTH = 1000;

const count = (/** @type {number} */ number) => number.toLocaleString("en");

export class LineList {
  total = 0;
  /** @type {import("../../dist/c.js").ProgramLine[]} */
  #pending = [];
  #timer = 0;

  /** @param {HTMLElement} list @param {HTMLElement} note what is left out */
  constructor(list, note) {
    this.list = list;
    this.note = note;
  }

  clear() {
    this.total = 0;
    this.#pending = [];
    this.list.replaceChildren();
    this.note.textContent = "";
  }

  /** @param {import("../../dist/c.js").ProgramLine} line */
  add(line) {
    this.total++;
    this.#pending.push(line);
    if (this.#pending.length >= 2 * SHOWN) this.#pending = this.#pending.slice(-SHOWN);
    this.#timer ||= window.setTimeout(() => this.show(), DRAW_MS);
  }

  /** Draws what has come. */
  show() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const { list } = this;
    const lines = this.#pending.slice(-SHOWN);
    this.#pending = [];
    const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
    const surplus = list.childElementCount + lines.length - SHOWN;
    for (let left = surplus; left > 0 && list.firstChild !== null; left--) list.firstChild.remove();
    list.append(...lines.map(elementOf));
    if (isAtEnd) list.scrollTop = list.scrollHeight;
    this.note.textContent = this.total > SHOWN ? `The last ${count(SHOWN)} of ${count(this.total)} lines.` : "";
  }
}

/** @param {import("../../dist/c.js").ProgramLine} line */
function elementOf({ rank, stream, text }) {
  const line = document.createElement("div");
  const label = document.createElement("b");
  label.textContent = `[${rank}] `;
  const shown = text.length > LENGTH ? `${text.slice(0, LENGTH)} … (${count(text.length)} characters)` : text;
  line.append(label, shown);
  if (stream === 2) line.className = "c-error";
  return line;
}
