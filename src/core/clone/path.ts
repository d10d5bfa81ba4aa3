// Where in a value a part of it is, for an error's text. A search: writers keep no path, since most values have no error.

import type { Place } from "./handles.js";

/** Objects that are looked at: a large value is named without a path. */
const SEARCHED_MAX = 100_000;

/** "value.rows[3].run" @param places where the search begins */
export function pathTo(places: readonly Place[], part: unknown): string {
  const paths = new Map<unknown, string>();
  for (const [name, value] of places) if (!paths.has(value)) paths.set(value, name);
  // A Map's iteration takes in what is added meanwhile: the nearest objects come first.
  for (const [owner, path] of paths) {
    if (Object.is(owner, part)) return path;
    if (typeof owner !== "object" || owner === null || paths.size > SEARCHED_MAX) continue;
    for (const [name, member] of membersOf(owner)) {
      if (Object.is(member, part)) return path + name;
      if (typeof member === "object" && !paths.has(member)) paths.set(member, path + name);
    }
  }
  return partOf(places);
}

/** A part of which the path is not known. */
export function partOf(places: readonly Place[]): string {
  return `a part of ${places.at(-1)?.[0]}`;
}

/** The members of an object, with their names. A getter that throws has none. */
function* membersOf(owner: object): Generator<[name: string, member: unknown]> {
  if (owner instanceof Map) {
    for (const [key, member] of owner) {
      yield [" (a key of a Map)", key];
      yield [typeof key === "object" ? " (a value of a Map)" : `.get(${JSON.stringify(String(key))})`, member];
    }
  }
  if (owner instanceof Set) for (const member of owner) yield [" (a member of a Set)", member];
  if (ArrayBuffer.isView(owner)) return yield [".buffer", owner.buffer];
  const keys = owner instanceof Error ? ["cause", "errors", ...Object.keys(owner)] : Object.keys(owner);
  for (const key of keys) {
    try {
      yield [nameOf(owner, key), (owner as Record<string, unknown>)[key]];
    } catch {
      // The writer has met it, too, and its error is the one that is told.
    }
  }
}

/** A property's part of a path: .name, [3], ["a b"]. */
export function nameOf(owner: object, key: string): string {
  if (Array.isArray(owner) && /^\d+$/.test(key)) return `[${key}]`;
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}
