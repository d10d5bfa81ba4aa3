// @ts-check
// What a visitor sees of a program in C, and types: its source, its ranks and arguments, what clang and the ranks say.

import { commandOf, PROGRAMS } from "./programs.js";
import { bindTab } from "./tab-key.js";

/** @typedef {{ line: number, column: number, kind: string, message: string }} Diagnostic */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Partial<HTMLElementTagNameMap[Tag]>} [properties] @param {(Node | string)[]} children
 */
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const YOWASP = make("a", { href: "https://yowasp.org/", textContent: "YoWASP" });
/** Of what clang says, so much is shown: a source of a million characters may have warnings in each line. */
const DIAGNOSTICS_MAX = 100;
const TEXT_MAX = 20_000;

export class Form {
  runButton = make("button", { type: "button", textContent: "Run", className: "c-run" });
  output = make("div", { className: "c-output", tabIndex: 0 });
  outputNote = make("p", { className: "note" });
  /** What was typed, by the program's name. @type {Map<string, string>} */
  #edits = new Map();
  /** The sources as they come. @type {Map<string, string>} */
  #sources = new Map();
  #chosen = PROGRAMS[0];
  #select = make("select");
  #ranks = make("input", { type: "number", inputMode: "numeric", min: "1" });
  #args = make("input", { type: "text", spellcheck: false, autocomplete: "off" });
  #argsHint = make("p", { className: "note", id: "c-args-hint" });
  #editor = make("textarea", { spellcheck: false, rows: 22, id: "c-source", wrap: "off" });
  #command = make("code");
  #reset = make("button", { type: "button", textContent: "Take back the changes", disabled: true });
  #stop = make("button", { type: "button", textContent: "Stop", disabled: true });
  #status = make("p", { className: "status" });
  #progress = make("progress", { hidden: true });
  #diagnostics = make("ul", { className: "c-diagnostics" });
  #clangText = make("pre");
  #clang = make("details", { hidden: true }, make("summary", { textContent: "All that clang says" }), this.#clangText);
  #changed = () => {};

  /** @param {HTMLElement} place @param {{ ranks: number, max: number, clangBytes: number }} options */
  constructor(place, { ranks, max, clangBytes }) {
    this.max = max;
    this.#ranks.max = String(max);
    this.#ranks.value = String(ranks);
    this.#select.append(...PROGRAMS.map(({ name, title }) => make("option", { value: name, textContent: title })));
    this.#editor.readOnly = clangBytes === 0;
    this.#editor.setAttribute("autocapitalize", "off");
    this.#editor.setAttribute("aria-describedby", "c-source-hint");
    this.#args.setAttribute("aria-describedby", "c-args-hint");
    this.#status.setAttribute("role", "status");
    this.output.setAttribute("role", "region");
    this.output.setAttribute("aria-label", "What the ranks write");
    this.#diagnostics.setAttribute("aria-label", "What clang says");
    this.#progress.setAttribute("aria-label", "Bytes of clang that are loaded");
    bindTab(this.#editor);
    const hint =
      clangBytes > 0
        ? "Change it: it is compiled in this page then. Tab makes an indent; to leave by Tab, press Escape first. By a clang of your own: "
        : "This page has no compiler. Compile and run what you have changed by: ";
    place.append(
      make(
        "div",
        { className: "controls" },
        make("label", {}, "Program ", this.#select),
        make("label", {}, "Ranks ", this.#ranks),
        make("label", {}, "Arguments ", this.#args),
      ),
      this.#argsHint,
      make("label", { htmlFor: "c-source" }, "Source"),
      this.#editor,
      make("p", { className: "note", id: "c-source-hint" }, hint, this.#command),
      ...(clangBytes > 0 ? [make("p", { className: "note" }, "The page's clang: ", YOWASP, ", LLVM 22.")] : []),
      make("div", { className: "controls" }, this.runButton, this.#stop, ...(clangBytes > 0 ? [this.#reset] : [])),
      this.#status,
      this.#progress,
      this.#diagnostics,
      this.#clang,
      this.output,
      this.outputNote,
    );
    this.say("Nothing has run yet.");
  }

  /** @param {{ run: () => void, stop: () => void, changed: () => void }} events */
  on({ run, stop, changed }) {
    this.runButton.addEventListener("click", run);
    this.#stop.addEventListener("click", stop);
    this.#changed = changed;
    this.#editor.addEventListener("input", () => this.#edited());
    this.#select.addEventListener("change", () => {
      const chosen = PROGRAMS.find(({ name }) => name === this.#select.value);
      if (chosen !== undefined) void this.choose(chosen);
    });
    this.#reset.addEventListener("click", () => {
      this.#editor.value = this.#sources.get(this.#chosen?.name ?? "") ?? "";
      this.#edited();
      this.#editor.focus();
    });
  }

  /** Shows a program, with what was typed of it before. @param {import("./programs.js").Program} program */
  async choose(program) {
    const { name, args, hint } = program;
    this.#chosen = program;
    this.#args.value = args;
    this.#args.disabled = hint === "";
    this.#argsHint.textContent = hint === "" ? "This program takes no arguments." : `Its argument: ${hint}.`;
    this.#command.textContent = commandOf(program);
    if (!this.#sources.has(name)) {
      try {
        const response = await fetch(new URL(`./c/${name}.c`, import.meta.url));
        if (!response.ok) throw new Error(`status ${response.status}`);
        this.#sources.set(name, await response.text());
      } catch (error) {
        this.say(`${name}.c can't be loaded: ${/** @type {Error} */ (error).message}.`);
        return;
      }
    }
    if (this.#chosen !== program) return;
    this.#editor.value = this.#edits.get(name) ?? this.#sources.get(name) ?? "";
    this.#edited();
  }

  #edited() {
    if (this.isEdited) this.#edits.set(this.program.name, this.source);
    else this.#edits.delete(this.program.name);
    this.#reset.disabled = !this.isEdited;
    this.#changed();
  }

  get program() {
    const { name } = /** @type {import("./programs.js").Program} */ (this.#chosen);
    return { name, binary: new URL(`./c/${name}.wasm`, import.meta.url).href };
  }

  get fileName() {
    return `${this.program.name}.c`;
  }

  get source() {
    return this.#editor.value;
  }

  get isEdited() {
    const source = this.#sources.get(this.program.name);
    // While it is on its way, the editor still has that of another program.
    return source !== undefined && this.source !== source;
  }

  get args() {
    return this.#args.value.split(/\s+/).filter((arg) => arg !== "");
  }

  /** @returns {{ tasks: number, why: string }} why there can't be so many; empty: there can */
  ranks() {
    const typed = this.#ranks.value;
    const tasks = Number(typed);
    const isRight = typed !== "" && Number.isInteger(tasks) && tasks >= 1 && tasks <= this.max;
    this.#ranks.setAttribute("aria-invalid", String(!isRight));
    if (isRight) return { tasks, why: "" };
    const asked = typed === "" ? "That is no number of ranks" : `${typed} ranks were asked for`;
    return { tasks: 0, why: `${asked}: this page starts 1 to ${this.max}.` };
  }

  /** @param {boolean} isRunning */
  setRunning(isRunning) {
    const hadFocus = document.activeElement === (isRunning ? this.runButton : this.#stop);
    this.runButton.disabled = isRunning;
    this.#stop.disabled = !isRunning;
    this.#select.disabled = isRunning;
    // The keyboard's place stays by the button that is of use now.
    if (hadFocus) (isRunning ? this.#stop : this.runButton).focus();
  }

  /** @param {string} text */
  say(text) {
    this.#status.textContent = text;
  }

  /** @param {number} bytes @param {number} all of which as many are there; 0: nothing is loaded */
  showLoaded(bytes, all) {
    this.#progress.hidden = all === 0;
    this.#progress.max = Math.max(1, all);
    this.#progress.value = bytes;
  }

  /** @param {readonly Diagnostic[]} diagnostics @param {string} text all that clang says */
  showDiagnostics(diagnostics, text) {
    this.#diagnostics.replaceChildren(
      ...diagnostics.slice(0, DIAGNOSTICS_MAX).map(({ line, kind, message }) => {
        const button = make("button", { type: "button", textContent: `Line ${line}: ${kind}: ${message}` });
        button.addEventListener("click", () => this.#showLine(line));
        return make("li", {}, button);
      }),
    );
    this.#diagnostics.hidden = diagnostics.length === 0;
    this.#clangText.textContent =
      text.length > TEXT_MAX
        ? `${text.slice(0, TEXT_MAX)} … (${text.length.toLocaleString("en")} characters; ${diagnostics.length.toLocaleString("en")} errors and warnings)`
        : text;
    this.#clang.hidden = text === "";
  }

  /** Selects a line of the source. @param {number} line from 1 */
  #showLine(line) {
    const lines = this.source.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
    this.#editor.focus();
    this.#editor.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
    this.#editor.scrollTop = ((line - 5) / lines.length) * this.#editor.scrollHeight;
  }
}
