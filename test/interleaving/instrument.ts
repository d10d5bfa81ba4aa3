// Makes the code that ships stop before every access to memory: the wasm module, read back as text, and the sources of
// the twin. Nothing else of either changes, but what is a slice for the engine, and what is short: as small as the heaps
// here.
import { readFileSync } from "node:fs";
import binaryen from "assemblyscript/binaryen";
import type { Plugin } from "esbuild";
import { SHORT_BYTES, SLICE_BYTES } from "../../assembly/layout.js";
import { AT, BUSY, FLAG, FLAGS_OFFSET, JOB_WORDS, KIND, LOG, SHORT, SLICE } from "./control.js";

type Node = string | Node[];

function parse(text: string): Node[] {
  const stack: Node[][] = [[]];
  for (const token of text.match(/\(|\)|"(?:[^"\\]|\\.)*"|[^\s()]+/g) ?? []) {
    if (token === "(") stack.push([]);
    else if (token === ")") {
      const node = stack.pop() as Node[];
      (stack.at(-1) as Node[]).push(node);
    } else (stack.at(-1) as Node[]).push(token);
  }
  return stack[0] as Node[];
}

function print(node: Node): string {
  return typeof node === "string" ? node : `(${node.map(print).join(" ")})`;
}

/** Kind of an instruction that touches memory by a pointer, or undefined. */
function kindOf(op: string): number | undefined {
  if (/\.atomic\.rmw/.test(op)) return KIND.atomicChange;
  if (/\.atomic\.load/.test(op)) return KIND.atomicLoad;
  if (/\.atomic\.store/.test(op)) return KIND.atomicStore;
  if (/^(i32|i64|f32|f64|v128)\.load/.test(op)) return KIND.load;
  if (/^(i32|i64|f32|f64|v128)\.store/.test(op)) return KIND.store;
  return undefined;
}

/** How many words an instruction touches. */
function wordsOf(op: string): number {
  if (/(load|store|rmw)(8|16|32)/.test(op)) return 1;
  return op.startsWith("v128") ? 4 : /^.64/.test(op) ? 2 : 1;
}

const CALLS: Record<string, string> = {
  "memory.atomic.wait32": "$explore_wait",
  "memory.atomic.notify": "$explore_notify",
  "memory.fill": "$explore_fill",
  "memory.copy": "$explore_copy",
};

function wrap(node: Node): Node {
  if (typeof node === "string") return node;
  const [op, ...rest] = node;
  if (typeof op !== "string") return node.map(wrap);
  const call = CALLS[op];
  const kind = kindOf(op);
  if (call === undefined && kind === undefined) return node.map(wrap);
  const flags = rest.filter((part) => typeof part === "string");
  const operands = rest.filter((part) => typeof part !== "string").map(wrap);
  const offset = Number(flags.find((flag) => flag.startsWith("offset="))?.slice(7) ?? 0);
  const [pointer, ...others] = operands as [Node, ...Node[]];
  if (call !== undefined) return ["call", call, ["i32.add", pointer, ["i32.const", String(offset)]], ...others];
  let hooked = pointer;
  for (let word = 0; word < wordsOf(op); word++) {
    hooked = ["call", "$explore_access", ["i32.const", String(kind)], hooked, ["i32.const", String(offset + 4 * word)]];
  }
  return [op, ...flags, hooked, ...others];
}

const at = (word: keyof typeof AT): string => `(i32.const ${4 * AT[word]})`;

const IMPORTS = [
  '(import "explore" "me" (global $explore_me i32))',
  '(import "explore" "watched" (global $explore_watched i32))',
  '(import "explore" "first" (func $explore_first (param i32 i32)))',
  '(import "explore" "stop" (func $explore_stop))',
  '(import "explore" "wait" (func $explore_wait (param i32 i32 i64) (result i32)))',
  '(import "explore" "notify" (func $explore_notify (param i32 i32) (result i32)))',
  '(import "explore" "fill" (func $explore_fill (param i32 i32 i32)))',
  '(import "explore" "copy" (func $explore_copy (param i32 i32 i32)))',
];

/** As class Hook: in wasm it costs 2 ns, as a call to JavaScript it cost 70. */
const HOOK = [
  `(func $explore_access (param $kind i32) (param $pointer i32) (param $offset i32) (result i32)
    (local $word i32) (local $flags i32)
    (local.set $word (i32.shr_u (i32.add (local.get $pointer) (local.get $offset)) (i32.const 2)))
    (if (i32.ge_u (local.get $word) (i32.const ${JOB_WORDS}))
      (then (call $explore_first (local.get $kind) (local.get $word))))
    (local.set $flags (i32.load16_u offset=${FLAGS_OFFSET} (i32.shl (local.get $word) (i32.const 1))))
    (if (i32.eqz (i32.and (local.get $flags) (i32.shl (i32.const 1) (i32.add (global.get $explore_me)
        (i32.shl (i32.and (local.get $kind) (i32.const 1)) (i32.const ${Math.log2(FLAG.writtenShift)}))))))
      (then (call $explore_first (local.get $kind) (local.get $word))))
    (if (i32.and (local.get $flags) (global.get $explore_watched))
      (then (call $explore_step (local.get $kind) (local.get $word))))
    (local.get $pointer))`,
  `(func $explore_step (param $kind i32) (param $word i32)
    (local $step i32)
    (local.set $step (i32.load ${at("steps")}))
    (i32.store offset=${4 * AT.log} (i32.shl (local.get $step) (i32.const 2))
      (i32.or (i32.or (local.get $word) (i32.shl (local.get $kind) (i32.const ${LOG.kindShift})))
        (i32.or (i32.shl (global.get $explore_me) (i32.const ${LOG.threadShift})) (i32.load ${at("enabled")}))))
    (i32.store ${at("steps")} (i32.add (local.get $step) (i32.const 1)))
    (if (i32.eq (local.get $step) (i32.load ${at("stop")})) (then (call $explore_stop))))`,
];

/** A text in which a number is another one; `before` and `after`: what stands around it there, `times` at the most. */
function withNumber(text: string, before: string, number: number, after: string, other: number, times: number): string {
  const parts = text.split(`${before}${number}${after}`);
  if (parts.length === 1 || parts.length > times + 1) throw new Error(`${number} is there ${parts.length - 1} times`);
  return parts.join(`${before}${other}${after}`);
}

/** LOCK_TRIES of the heap. */
const HEAP_TRIES = 1000;

/**
 * The text of the module, in which a slice is of SLICE bytes, SHORT are short, and the heap's lock is tried BUSY times: those
 * numbers mean nothing else there.
 */
function withSmallNumbers(module: string): string {
  const [before, after] = ["(i32.const ", ")"];
  const sliced = withNumber(module, before, SLICE_BYTES, after, SLICE, Number.POSITIVE_INFINITY);
  const short = withNumber(sliced, before, SHORT_BYTES, after, SHORT, 2);
  return withNumber(short, before, HEAP_TRIES, after, BUSY, 1);
}

/** As withSmallNumbers(), for the source that defines both sizes. */
function withSmallSizes(tuning: string): string {
  const sliced = withNumber(tuning, "SLICE_BYTES: u32 = ", SLICE_BYTES, ";", SLICE, 1);
  return withNumber(sliced, "SHORT_BYTES: u32 = ", SHORT_BYTES, ";", SHORT, 1);
}

/** A source; in those of regions and of the heap, its lock is tried BUSY times. */
function withFewTries(path: string, text: string): string {
  if (!/(memory[\\/]regions|twin[\\/]heap)\.ts$/.test(path)) return text;
  const [before, after, ...others] = text.split(/(?<=(?:BUSY|LOCK)_TRIES = )[\d_]+(?=;)/);
  if (after === undefined || others.length > 0) throw new Error(`the number of tries is not once in ${path}`);
  return `${before}${BUSY}${after}`;
}

/** The module with a call before each access to memory; it imports what IMPORTS says beside its memory. */
export function instrument(wasm: Uint8Array): Uint8Array {
  const original = binaryen.readBinary(wasm);
  original.setFeatures(binaryen.Features.All);
  const [module] = parse(withSmallNumbers(original.emitText())) as [Node[]];
  original.dispose();
  const fields = module.slice(1);
  const isType = (field: Node): boolean => Array.isArray(field) && field[0] === "type";
  const text = [
    "(module",
    ...fields.filter(isType).map(print),
    ...IMPORTS,
    ...fields.filter((field) => !isType(field)).map((field) => print(wrap(field))),
    ...HOOK,
    ")",
  ].join("\n");
  const result = binaryen.parseText(text);
  result.setFeatures(binaryen.Features.All);
  if (!result.validate()) throw new Error("the instrumented module is not valid");
  const bytes = result.emitBinary();
  result.dispose();
  return bytes;
}

/** Index behind what is at `from`, up to where a bracket closes that was not opened in it, or a `;` stands. */
function endOf(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    const character = text[i] as string;
    if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    if (depth < 0 || (depth === 0 && character === ";")) return i;
  }
  throw new Error("a bracket is not closed");
}

/** `words[i]` → `words[explored.access(kind, i)]`, `words[i] = x` → `explored.set(words, i, x)`. */
function hookWords(text: string): string {
  let result = "";
  let from = 0;
  for (const { index, 1: array = "" } of text.matchAll(/\b(words|hintWords)\[/g)) {
    if (index < from) continue; // within the brackets of the last one
    const name = index + array.length;
    const end = endOf(text, name + 1) + 1;
    const place = hookWords(text.slice(name + 1, end - 1));
    const after = text.slice(end, end + 4);
    if (/^ = /.test(after)) {
      const start = /[\w.#]*$/.exec(text.slice(from, index))?.index ?? 0;
      const last = endOf(text, end + 3);
      const chain = text.slice(from + start, name);
      const value = hookWords(text.slice(end + 3, last));
      result += `${text.slice(from, from + start)}explored.set(${chain}, ${place}, ${value})`;
      from = last;
      continue;
    }
    const changes = /^( [-+*|&^]=|\+\+|--)/.test(after);
    const hooked = `explored.access(${array === "hintWords" ? KIND.hint : KIND.load}, ${place})`;
    result += `${text.slice(from, name)}[${changes ? `explored.access(${KIND.store}, ${hooked})` : hooked}]`;
    from = end;
  }
  return result + text.slice(from);
}

/** A source with hooks before its accesses to `words`, and with `explored` in the place of what waits or changes. */
export function instrumentSource(text: string): string {
  const hooked = hookWords(text)
    .replaceAll(/this\.table\[([^\]]*)\]/g, "this.table[explored.look(this.table, $1)]")
    .replaceAll("Atomics.", "explored.")
    .replaceAll("words.fill(", "explored.fill(")
    .replaceAll("bytes.copyWithin(", "explored.copyWithin(");
  return `import { explored } from "explored";\n${hooked}`;
}

/** For esbuild: files whose accesses to `words` are hooked, over what `explored` (a path) exports by that name. */
export function instrumentSources(
  filter: RegExp,
  explored: string,
  change = (_: string, text: string) => text,
): Plugin {
  return {
    name: "explored",
    setup(build) {
      build.onResolve({ filter: /^explored$/ }, () => ({ path: explored }));
      build.onLoad({ filter }, ({ path }) => ({
        contents: instrumentSource(withFewTries(path, change(path, readFileSync(path, "utf8")))),
        loader: "ts",
      }));
      build.onLoad({ filter: /assembly[\\/]layout[\\/]tuning\.ts$/ }, ({ path }) => ({
        contents: withSmallSizes(readFileSync(path, "utf8")),
        loader: "ts",
      }));
    },
  };
}
