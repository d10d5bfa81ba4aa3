// Makes the shipped wasm stop before every access to memory: each address goes through an import first. The module is
// the one that ships, read back as text; nothing else of it changes.
import binaryen from "assemblyscript/binaryen";

/** What an access does; the numbers are those that the hook gets. */
export const ACCESS = { load: 0, store: 1, atomicLoad: 2, atomicStore: 3, atomicChange: 4 } as const;

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
  if (/\.atomic\.rmw/.test(op)) return ACCESS.atomicChange;
  if (/\.atomic\.load/.test(op)) return ACCESS.atomicLoad;
  if (/\.atomic\.store/.test(op)) return ACCESS.atomicStore;
  if (/^(i32|i64|f32|f64|v128)\.load/.test(op)) return ACCESS.load;
  if (/^(i32|i64|f32|f64|v128)\.store/.test(op)) return ACCESS.store;
  return undefined;
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
  const offset = flags.find((flag) => flag.startsWith("offset="))?.slice(7) ?? "0";
  const [pointer, ...others] = operands as [Node, ...Node[]];
  if (call !== undefined) return ["call", call, ["i32.add", pointer, ["i32.const", offset]], ...others];
  const hooked = ["call", "$explore_access", ["i32.const", String(kind)], pointer, ["i32.const", offset]];
  return [op, ...flags, hooked, ...others];
}

const IMPORTS = [
  '(import "explore" "access" (func $explore_access (param i32 i32 i32) (result i32)))',
  '(import "explore" "wait" (func $explore_wait (param i32 i32 i64) (result i32)))',
  '(import "explore" "notify" (func $explore_notify (param i32 i32) (result i32)))',
  '(import "explore" "fill" (func $explore_fill (param i32 i32 i32)))',
  '(import "explore" "copy" (func $explore_copy (param i32 i32 i32)))',
];

/** The module with a call before each access to memory; it imports what IMPORTS says beside its memory. */
export function instrument(wasm: Uint8Array): Uint8Array {
  const original = binaryen.readBinary(wasm);
  original.setFeatures(binaryen.Features.All);
  const [module] = parse(original.emitText()) as [Node[]];
  original.dispose();
  const fields = module.slice(1);
  const isType = (field: Node): boolean => Array.isArray(field) && field[0] === "type";
  const text = [
    "(module",
    ...fields.filter(isType).map(print),
    ...IMPORTS,
    ...fields.filter((field) => !isType(field)).map((field) => print(wrap(field))),
    ")",
  ].join("\n");
  const result = binaryen.parseText(text);
  result.setFeatures(binaryen.Features.All);
  if (!result.validate()) throw new Error("the instrumented module is not valid");
  const bytes = result.emitBinary();
  result.dispose();
  return bytes;
}
