// @ts-check
// The workers beside the picture: each has a button, as high as its rows, that kills it; those that are gone can be started.

import { catchFocus } from "../focus.js";

export class WorkerList {
  #shown = "";
  /** The worker whose button had the focus, while it starts and has none. @type {string | undefined} */
  #awaited;

  /**
   * @param {HTMLElement} parts of those that have rows
   * @param {HTMLElement} gone of those that are gone
   * @param {{ kill: (worker: number) => void, restart: (worker: number) => void }} does
   */
  constructor(parts, gone, does) {
    this.parts = parts;
    this.gone = gone;
    this.does = does;
  }

  /**
   * @param {import("./tank-job.js").Slot[]} slots
   * @param {{ worker: number, page?: number, first: number, end: number }[]} parts
   * @param {number} size rows of the tank
   */
  show(slots, parts, size) {
    const living = parts.filter(({ worker, page }) => page !== undefined || slots[worker]?.state === "running");
    const gone = [...slots.entries()].filter(([, { state }]) => state === "gone").map(([worker]) => worker);
    const text = JSON.stringify([living, gone, size]);
    if (text === this.#shown) return;
    this.#shown = text;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.worker ?? this.#awaited;
    this.parts.replaceChildren(
      ...living.map(({ worker, page, first, end }) => {
        const item = document.createElement("li");
        item.style.flexGrow = String((end - first) / size);
        item.append(page === undefined ? this.#button(worker, "Kill", "kill") : `page ${page}`);
        return item;
      }),
    );
    this.gone.replaceChildren(
      ...gone.map((worker) => {
        const item = document.createElement("li");
        item.append(this.#button(worker, "Start", "restart"));
        return item;
      }),
    );
    // The button that was pressed is another one now: keys go on where they were.
    const button = /** @type {HTMLElement | null} */ (document.querySelector(`[data-worker="${focused}"]`));
    this.#awaited = button === null ? focused : undefined;
    if (focused !== undefined) catchFocus(button);
  }

  /** @param {number} worker @param {"Kill" | "Start"} name @param {"kill" | "restart"} what */
  #button(worker, name, what) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.worker = String(worker);
    button.textContent = what === "kill" ? `${worker + 1}` : `Start worker ${worker + 1} again`;
    if (what === "kill") {
      button.setAttribute("aria-label", `${name} worker ${worker + 1}`);
      button.title = `Kill worker ${worker + 1}`;
    }
    button.className = what;
    button.addEventListener("click", () => this.does[what](worker));
    return button;
  }
}
