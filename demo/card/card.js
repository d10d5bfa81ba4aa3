// @ts-check
// The card of the machine: a race, histograms that grow, figures, the result as a table, as JSON and as a picture.
import { info } from "pamir";
import { catchFocus, rest } from "../focus.js";
import { timeText } from "../times.js";
import { pictureOf } from "./card-picture.js";
import { Histogram } from "./histogram.js";
import { Killed, racePamir, racePostMessage } from "./race.js";

const BARS = 60;
/** Of each part of the race; the tests ask for less. */
const MILLISECONDS = Math.max(0, Number(new URLSearchParams(location.search).get("milliseconds"))) || 1500;

/** Between two pictures. */
const DRAW_MS = 100;

const runners = [
  { id: "wasm", name: "pamir, WebAssembly", run: racePamir.bind(undefined, "wasm") },
  { id: "ts", name: "pamir, TypeScript twin", run: racePamir.bind(undefined, "ts") },
  { id: "post", name: "postMessage", run: racePostMessage },
];

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** @param {string} tag @param {string} [text] @param {string} [className] */
function make(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className !== "") made.className = className;
  return made;
}

/** @param {number} ratio */
function factor(ratio) {
  return ratio.toLocaleString("en", { maximumSignificantDigits: 2 });
}

/** @param {number[]} list @param {number} part */
function percentile(list, part) {
  return list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(part * list.length))] ?? 0;
}

/** @param {number} milliseconds */
function round(milliseconds) {
  return Math.round(1000 * milliseconds) / 1000;
}

const PARTS = [0.5, 0.9, 0.99, 0.999];

/** One contestant on the page. */
class Lane {
  histogram = new Histogram();
  /** @type {number[]} */
  rates = [];
  /** Why it was not measured. @type {string | undefined} */
  failed;

  /** @param {{ id: string, name: string }} runner */
  constructor({ id, name }) {
    this.id = id;
    this.name = name;
    const figure = make("div", "", `histogram ${id}`);
    const title = make("h3", name);
    this.output = make("span", "waits");
    title.append(" ", this.output);
    this.bars = make("div", "", "bars");
    this.bars.setAttribute("role", "img");
    for (let bar = 0; bar < BARS; bar++) this.bars.append(make("i"));
    const axis = make("div", "", "axis");
    axis.setAttribute("aria-hidden", "true");
    axis.append(...["10 ns", "1 µs", "100 µs", "10 ms"].map((text) => make("span", text)));
    figure.append(title, this.bars, axis);
    element("histograms").append(figure);
    this.row = make("tr");
    const head = make("th", name);
    head.setAttribute("scope", "row");
    this.cells = [...PARTS, 1].map(() => make("td", "–"));
    this.row.append(head, ...this.cells);
    element("figures").append(this.row);
    this.draw();
  }

  clear() {
    this.histogram = new Histogram();
    this.rates = [];
    this.failed = undefined;
    this.draw();
  }

  /** What was measured so far is not the whole of it. @param {string} why */
  fail(why) {
    this.clear();
    this.failed = why;
    this.draw();
  }

  get rate() {
    return percentile(this.rates, 0.5);
  }

  draw() {
    const { histogram } = this;
    const counts = histogram.bars(BARS);
    const most = Math.max(1, ...counts);
    for (const [bar, count] of counts.entries()) {
      // By the root: a tail that is rare is seen too.
      /** @type {HTMLElement} */ (this.bars.children[bar]).style.height = `${100 * Math.sqrt(count / most)}%`;
    }
    const known = histogram.total > 0;
    const times = PARTS.map((part) => (known ? timeText(histogram.percentile(part)) : "–"));
    this.output.textContent = known ? `${times[0]} (median)` : this.failed === undefined ? "waits" : "failed";
    this.bars.setAttribute(
      "aria-label",
      `${this.name}: ${known ? `median ${times[0]}, p99 ${times[2]}` : "not yet measured"}`,
    );
    const rate = this.rates.length > 0 ? `${(this.rate / 1e6).toPrecision(3)} M` : "–";
    for (const [i, text] of [...times, rate].entries()) /** @type {HTMLElement} */ (this.cells[i]).textContent = text;
  }

  result() {
    if (this.failed !== undefined) return { by: this.name, failed: this.failed };
    const [p50, p90, p99, p999] = PARTS.map((part) => Math.round(10 * this.histogram.percentile(part)) / 10);
    return {
      by: this.name,
      p50_ns: p50,
      p90_ns: p90,
      p99_ns: p99,
      p999_ns: p999,
      messages_per_s: Math.round(this.rate),
    };
  }
}

const lanes = runners.map((runner) => new Lane(runner));
const [runButton, killButton, copyButton, saveButton] = /** @type {HTMLButtonElement[]} */ (
  ["run", "kill", "copy", "save"].map(element)
);
const status = element("race-status");
let killer = new AbortController();

/** @param {Lane} lane @param {(typeof runners)[number]} runner @param {number[]} busy */
async function runOne(lane, runner, busy) {
  const report = {
    latencies: (/** @type {Float32Array} */ latencies) => {
      for (const one of latencies) lane.histogram.add(one);
    },
    rate: (/** @type {number} */ rate) => void lane.rates.push(rate),
    busy: (/** @type {number} */ milliseconds) => void busy.push(milliseconds),
  };
  for (let attempt = 1; attempt <= 3; attempt++) {
    killer = new AbortController();
    lane.clear();
    const drawing = setInterval(() => lane.draw(), DRAW_MS);
    try {
      await runner.run(MILLISECONDS, report, killer.signal);
      return;
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      status.textContent = `A worker of ${lane.name} was killed: it begins again.`;
    } finally {
      clearInterval(drawing);
      lane.draw();
    }
  }
  throw new Error("its workers were killed again and again");
}

/** Whether some hand-offs took much longer than most: another program had the core. @param {Lane} lane */
const isBusy = ({ histogram }) => histogram.percentile(0.99) > 20 * histogram.percentile(0.5);

/** What the race has shown, and what it has not. @param {string[]} failures of the other measurements */
function doneText(failures) {
  const [first, , last] = /** @type {[Lane, Lane, Lane]} */ (lanes);
  const missing = lanes.flatMap(({ name, failed }) => (failed === undefined ? [] : [`${name} (${failed})`]));
  const not = [...missing, ...failures];
  const left = not.length === 0 ? "" : ` Not measured: ${not.join("; ")}.`;
  if (first.failed !== undefined || last.failed !== undefined) return `Done, but for a part.${left}`;
  const times = last.histogram.percentile(0.5) / first.histogram.percentile(0.5);
  return `Done: a message by postMessage takes ${factor(times)} times as long as by pamir, which carries ${factor(first.rate / last.rate)} times as many.${left}`;
}

/** Measures what else there is, and shows it as rows of a table. */
async function runEveryday() {
  const table = element("everyday");
  table.replaceChildren();
  // The pool and Comlink are loaded for this alone.
  const { measureEveryday } = await import("../everyday/everyday.js");
  const { rows, failed } = await measureEveryday(MILLISECONDS / 3);
  const text = (/** @type {number | null} */ figure) => figure?.toLocaleString("en") ?? "–";
  for (const { what, unit, pamir, usual, by } of rows) {
    const head = make("th", what);
    head.setAttribute("scope", "row");
    const better = unit === "µs" ? "µs, less is better" : "MB/s, more is better";
    const cells = [better, text(pamir), `${text(usual)} by ${by}`];
    const row = make("tr");
    row.append(head, ...cells.map((text) => make("td", text)));
    table.append(row);
  }
  return { rows, failed };
}

async function race() {
  const begin = rest(runButton);
  let killHadFocus = false;
  killButton.disabled = false;
  copyButton.disabled = true;
  saveButton.disabled = true;
  sayCores();
  element("card").hidden = false;
  /** @type {number[]} */
  const busy = [];
  try {
    for (const lane of lanes) lane.clear();
    for (const [i, runner] of runners.entries()) {
      status.textContent = `Running: ${runner.name}.`;
      const lane = /** @type {Lane} */ (lanes[i]);
      await runOne(lane, runner, busy).catch((error) => lane.fail(error.message));
    }
    // What follows goes on without a worker to kill.
    killHadFocus = document.activeElement === killButton;
    killButton.disabled = true;
    if (lanes.every(({ failed }) => failed !== undefined)) throw new Error(lanes[0]?.failed);
    status.textContent = "Running: calls, blocks and barriers, each beside the usual way.";
    const { rows: everyday, failed } = await runEveryday();
    const { version, mode, hardwareThreads } = info();
    const [first] = /** @type {[Lane]} */ (lanes);
    status.textContent = doneText(failed);
    const result = {
      pamir: version,
      mode,
      userAgent: navigator.userAgent,
      hardwareThreads,
      results: lanes.map((lane) => lane.result()),
      everyday,
      page_ms_a_frame: { p50: round(percentile(busy, 0.5)), p99: round(percentile(busy, 0.99)), frames: busy.length },
    };
    element("json").textContent = JSON.stringify(result, null, 2);
    copyButton.disabled = false;
    saveButton.disabled = false;
    if (first.failed === undefined && isBusy(first)) {
      element("busy").hidden = false;
      element("busy").textContent =
        `The cores seem to be busy: p99 is ${factor(first.histogram.percentile(0.99) / first.histogram.percentile(0.5))} times the median. Close what else runs, and race again.`;
    }
  } catch (error) {
    status.textContent = `The race ended early: ${/** @type {Error} */ (error).message}`;
  } finally {
    killButton.disabled = true;
    runButton.textContent = "Race again";
    begin();
    if (killHadFocus) catchFocus(runButton);
  }
}

/**
 * Sets up the buttons of the card.
 * @param {{ rest: (isResting: boolean) => void }} tank that leaves the cores to the race
 */
export function setUpCard(tank) {
  runButton.addEventListener("click", async () => {
    tank.rest(true);
    await race();
    tank.rest(false);
  });
  killButton.addEventListener("click", () => killer.abort());
  copyButton.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(element("json").textContent ?? "");
      status.textContent = "Copied.";
    } catch {
      getSelection()?.selectAllChildren(element("json"));
      status.textContent = "The figures are selected: copy them by the keys of this machine.";
    }
  });
  saveButton.addEventListener("click", () => void save());
  sayCores();
}

/** What is known of the cores before a race. */
function sayCores() {
  const cores = navigator.hardwareConcurrency;
  element("busy").hidden = cores >= 3;
  if (cores >= 3) return;
  const few = cores === 1 ? "is one core" : `are ${cores} cores`;
  element("busy").textContent =
    `Here ${few} for two workers and this page: the figures are those of threads that take turns.`;
}

/** Saves the card as a picture. */
async function save() {
  const result = JSON.parse(element("json").textContent ?? "{}");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await pictureOf(result));
  link.download = "pamir-card.png";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  status.textContent = "Saved as pamir-card.png.";
}
