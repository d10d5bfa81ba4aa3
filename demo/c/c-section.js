// @ts-check
// "An MPI program, unchanged": programs in C on all cores. It is loaded once it is about to be seen.
import { info } from "pamir";
import { Compiler, diagnosticsOf } from "./compiler.js";
import { endText, ranksText, secondsText } from "./end-text.js";
import { Form } from "./form.js";
import { LineList } from "./line-list.js";
import { PROGRAMS } from "./programs.js";

const CORES = navigator.hardwareConcurrency || 1;
/** More ranks than cores take turns; each is a worker, of a few MB. */
const RANKS_MAX = Math.max(32, CORES);
/** After so long the page says that a program still runs: it may loop for ever. */
const LONG_MS = 5000;
/** More is taken for a loop that writes for ever; the tests ask for less. */
const LINES_MAX = Math.max(0, Number(new URLSearchParams(location.search).get("lines"))) || 200_000;
const CHARACTERS_MAX = 100 * LINES_MAX;

const megabytes = (/** @type {number} */ bytes) => `${Math.round(bytes / 1e6)} MB`;

/** Replaced when this is built: the bytes of the compiler; 0: there is none. */
const clangBytes = /** @type {{ CLANG_BYTES?: number }} */ (globalThis).CLANG_BYTES ?? 0;

class Section {
  /** @type {AbortController | undefined} */
  #running;
  /** Binaries of sources that were changed: the last one. @type {{ source: string, program: Uint8Array<ArrayBuffer> } | undefined} */
  #built;

  /** @param {HTMLElement} place @param {{ rest: (isResting: boolean) => void }} tank */
  constructor(place, tank) {
    this.tank = tank;
    this.form = new Form(place, { ranks: Math.min(RANKS_MAX, Math.max(2, CORES)), max: RANKS_MAX, clangBytes });
    this.lines = new LineList(this.form.output, this.form.outputNote);
    this.compiler = new Compiler((bytes) => {
      this.form.showLoaded(bytes, clangBytes);
      if (bytes >= clangBytes)
        this.form.say("clang is there, and the browser makes it ready: this takes some seconds.");
    });
    this.form.on({ run: () => void this.#run(), stop: () => this.#running?.abort(), changed: () => this.#changed() });
  }

  #changed() {
    const { form } = this;
    const needs = form.isEdited && this.#built?.source !== form.source;
    const loads = needs && !this.compiler.isLoaded ? `, which loads ${megabytes(clangBytes)}` : "";
    form.runButton.textContent = needs ? `Compile by clang${loads}, and run` : "Run";
  }

  async #run() {
    const { form, lines } = this;
    const { tasks, why } = form.ranks();
    if (why !== "") return form.say(why);
    const running = new AbortController();
    this.#running = running;
    const name = form.fileName;
    form.setRunning(true);
    lines.clear();
    form.showDiagnostics([], "");
    this.tank.rest(true);
    let start = performance.now();
    try {
      const program = form.isEdited ? await this.#compile(running.signal) : form.program.binary;
      if (program === undefined) return;
      start = performance.now();
      await this.#runRanks(program, tasks, running);
    } catch (error) {
      const time = secondsText(performance.now() - start);
      if (running.signal.aborted) form.say(`${name} was stopped after ${time}.`);
      else form.say(`${name} can't be run: ${/** @type {Error} */ (error).message}.`.replace(/\.\.$/, "."));
    } finally {
      this.tank.rest(false);
      lines.show();
      form.showLoaded(0, 0);
      form.setRunning(false);
      this.#changed();
    }
  }

  /** @param {AbortSignal} signal @returns {Promise<Uint8Array<ArrayBuffer> | undefined>} undefined: there are errors */
  async #compile(signal) {
    const { form } = this;
    const { source, fileName } = form;
    if (this.#built?.source === source) return this.#built.program;
    const start = performance.now();
    const { isLoaded } = this.compiler;
    form.say(isLoaded ? `clang compiles ${fileName}.` : `clang is being loaded: ${megabytes(clangBytes)}.`);
    const { program, text } = await this.compiler.compile(fileName, source, signal);
    const diagnostics = diagnosticsOf(fileName, text);
    form.showDiagnostics(diagnostics, text);
    if (program !== undefined) {
      this.#built = { source, program };
      form.say(`${fileName} is compiled, in ${secondsText(performance.now() - start)}.`);
      return program;
    }
    const errors = diagnostics.filter(({ kind }) => kind !== "warning").length;
    const [first] = diagnostics.filter(({ kind }) => kind !== "warning");
    const where = first === undefined ? "see what clang says" : `line ${first.line}: ${first.message}`;
    form.say(`${fileName} does not compile: ${errors > 1 ? `${errors} errors, the first in ` : ""}${where}.`);
    return undefined;
  }

  /** @param {string | Uint8Array<ArrayBuffer>} program @param {number} tasks @param {AbortController} running */
  async #runRanks(program, tasks, running) {
    const { form, lines } = this;
    const name = form.fileName;
    const { runRanks } = await import("./run-ranks.js");
    running.signal.throwIfAborted();
    const start = performance.now();
    const since = () => performance.now() - start;
    form.say(`${ranksText(tasks)} of ${name} ${tasks === 1 ? "runs" : "run"}.`);
    const watch = setTimeout(() => {
      const written = lines.total === 0 ? "and has written no line" : `and has written ${lines.total} lines`;
      form.say(`${name} still runs after ${secondsText(LONG_MS)}, ${written}. If it loops for ever, Stop ends it.`);
    }, LONG_MS);
    let isFlood = false;
    let characters = 0;
    try {
      const end = await runRanks(program, {
        tasks,
        name,
        args: form.args,
        signal: running.signal,
        onLine: (line) => {
          if (isFlood) return;
          lines.add(line);
          characters += line.text.length;
          isFlood = lines.total >= LINES_MAX || characters >= CHARACTERS_MAX;
          if (isFlood) running.abort();
        },
      });
      if (!running.signal.aborted) form.say(endText(end, { name, milliseconds: since() }));
      else throw running.signal.reason;
    } catch (error) {
      if (!isFlood) throw error;
      const isMany = lines.total >= LINES_MAX;
      const much = `${(isMany ? lines.total : characters).toLocaleString("en")} ${isMany ? "lines" : "characters"}`;
      form.say(`${name} was ended after ${secondsText(since())}: it has written ${much}, and the page takes no more.`);
    } finally {
      clearTimeout(watch);
    }
  }
}

/** Why ranks can't run here; empty: they can. */
function whyNot() {
  const { mode, why } = info();
  if (mode !== "messages") return "";
  return `Ranks wait for messages by blocking their threads, and so need memory that the threads share. Here they can't run: ${why}.`;
}

/**
 * Fills the section.
 * @param {HTMLElement} place @param {{ rest: (isResting: boolean) => void }} tank that leaves the cores to the ranks
 */
export async function mountC(place, tank) {
  const why = whyNot();
  if (why !== "") {
    place.textContent = why;
    return;
  }
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("./c.css", import.meta.url).href;
  await new Promise((resolve) => {
    style.onload = style.onerror = resolve;
    document.head.append(style);
  });
  place.replaceChildren();
  const section = new Section(place, tank);
  await section.form.choose(/** @type {(typeof PROGRAMS)[number]} */ (PROGRAMS[0]));
}
