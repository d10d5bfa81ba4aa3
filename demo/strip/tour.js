// @ts-check
// A walk through the rounds of an allreduce: a job runs one, and the strip shows its trace, round by round.
import { make } from "./panel.js";
import { roundsOf } from "./rounds.js";
import { runTree } from "./tree-job.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./canvas-view.js").Arrow} Arrow */

/** Tasks of the job: three rounds up, and three down. */
const TASKS = 8;

/**
 * @typedef {object} Stage what shows the rounds
 * @property {(trace: import("pamir").Trace) => import("./model.js").StripModel | undefined} show undefined: it was left meanwhile
 * @property {(arrows: Arrow[]) => void} highlight of none: all of the picture
 * @property {import("./trace-reader.js").TraceReader} reader
 */

export class Tour {
  /** @type {Round[]} */
  rounds = [];
  /** 0: before the first round. */
  at = 0;
  /** What each task has got. @type {number[]} */
  sums = [];
  /** What the messages of the trace add up to. */
  sum = 0;

  /** @param {HTMLElement} element @param {Stage} stage */
  constructor(element, stage) {
    this.stage = stage;
    const button = (/** @type {string} */ text, /** @type {number} */ by) => {
      const made = make("button", { type: "button" }, [text]);
      made.addEventListener("click", () => this.step(by));
      return made;
    };
    this.previous = button("Previous round", -1);
    this.next = button("Next round", 1);
    this.title = make("h3");
    this.list = make("ul");
    const live = make("div", { "aria-live": "polite" }, [this.title, this.list]);
    element.replaceChildren(make("div", { class: "strip-group" }, [this.previous, this.next]), live);
  }

  /** Runs the job, and begins. @returns {Promise<boolean>} false: the stage was left meanwhile */
  async run() {
    const { trace, sums } = await runTree(TASKS, this.stage.reader);
    const model = this.stage.show(trace);
    if (model === undefined) return false;
    const { rounds, sum } = roundsOf(trace, model);
    Object.assign(this, { rounds, sum, sums });
    this.go(0);
    return true;
  }

  /** @param {number} by rounds, forward or back */
  step(by) {
    this.go(Math.min(this.rounds.length, Math.max(0, this.at + by)));
  }

  /** @param {number} at */
  go(at) {
    this.at = at;
    const { rounds, sums } = this;
    const round = rounds[at - 1];
    const messages = rounds.reduce((sum, { arrows }) => sum + arrows.length, 0);
    const whole = [
      `${sums.length} tasks add up their numbers, 1 to ${sums.length}, each its own: ${messages} messages in ${rounds.length} rounds.`,
      "The numbers go up a tree to task 1, which has the sum then. The sum goes down the tree again.",
    ];
    const isLast = at === rounds.length && at > 0;
    const end = isLast ? [`Now each task has ${sums[0]}.`] : [];
    this.title.textContent = at === 0 ? "An allreduce as a tree" : `Round ${at} of ${rounds.length}`;
    this.list.replaceChildren(...[...(round?.texts ?? whole), ...end].map((text) => make("li", {}, [text])));
    // A button that has the focus would lose it by being disabled.
    this.previous.setAttribute("aria-disabled", String(at === 0));
    this.next.setAttribute("aria-disabled", String(isLast));
    this.stage.highlight(round?.arrows ?? []);
  }
}
