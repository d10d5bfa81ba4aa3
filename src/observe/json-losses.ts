// Debug mode: what codecs.json() would change or leave out without an error.
import { nameOf } from "../core/clone/path.js";
import { PamiError } from "../core/error.js";

/** @throws PAMIR_CLONE for the first part of a value that would not arrive as it is */
export function checkJson(value: unknown): void {
  // undefined has an encoding of its own there.
  if (value !== undefined) look(value, "value", new Set());
}

/** @param above the objects that `value` is in: JSON refuses cycles itself */
function look(value: unknown, path: string, above: Set<object>): void {
  const what = lossOf(value);
  if (what !== undefined) throw lost(path, what);
  if (typeof value !== "object" || value === null || above.has(value) || hasText(value)) return;
  above.add(value);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) look(value[i], `${path}[${i}]`, above);
    const name = Object.keys(value).find((key) => String(Number(key) >>> 0) !== key);
    if (name !== undefined) throw lost(path + nameOf(value, name), "a named property of an array");
  } else for (const [key, part] of Object.entries(value)) look(part, path + nameOf(value, key), above);
  above.delete(value);
}

function lost(path: string, what: string): PamiError {
  return new PamiError("PAMIR_CLONE", `codecs.json() would lose ${path}: it is ${what}. codecs.clone() copies more`);
}

/** Whether an object says itself what it is in JSON. Bytes and dates do so, too, and do not come back from it. */
function hasText(value: object): boolean {
  return !(value instanceof Date || ArrayBuffer.isView(value)) && "toJSON" in value;
}

/** What a value is that JSON lacks; undefined: it has it. */
function lossOf(value: unknown): string | undefined {
  switch (typeof value) {
    case "number":
      if (Number.isFinite(value) && !Object.is(value, -0)) return undefined;
      return Object.is(value, -0) ? "-0" : String(value);
    case "object": {
      const kind = Object.prototype.toString.call(value).slice(8, -1);
      return /^(?:Object|Array|Null)$/.test(kind) || hasText(value as object) ? undefined : `a ${kind}`;
    }
    case "undefined":
      return "undefined";
    case "string":
    case "boolean":
      return undefined;
    default:
      return `a ${typeof value}`;
  }
}
