// Names of the functions that a worker serves.
import { PamiError } from "../index.js";

/** Names of the pool itself: no function has one of them. The last three are those that the language asks of any object. */
export const RESERVED: readonly string[] = [
  "all",
  "by",
  "close",
  "events",
  "map",
  "stats",
  "sync",
  "terminate",
  "warmUp",
  "with",
  "constructor",
  "then",
  "toJSON",
];

/** Functions by name: an object of functions, or an instance of a class. A function alone has no name to call it by. */
// biome-ignore lint/suspicious/noExplicitAny: functions of any parameters.
export type Functions<F extends object> = F extends (...args: any[]) => unknown ? never : F;

/**
 * The names of an object's functions, in a fixed order: its own, then those of its class and of what that extends.
 * @throws PAMIR_INVAL for a name that the pool has itself, and for an object without functions
 */
export function namesOf(call: string, functions: object): string[] {
  if (typeof functions !== "object" || functions === null) {
    const what = functions === null ? "null" : typeof functions;
    throw new PamiError("PAMIR_INVAL", `${call} takes an object of functions, not ${what}`);
  }
  const names = new Set<string>();
  for (let owner: object | null = functions; owner !== null && owner !== Object.prototype; ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === "function" && !(name === "constructor" && owner !== functions)) names.add(name);
    }
    owner = Object.getPrototypeOf(owner) as object | null;
  }
  for (const name of names) {
    if (RESERVED.includes(name) || /^\d+$/.test(name)) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${call}: a function can't be named ${name}, which is a name of the pool's own`,
      );
    }
  }
  if (names.size === 0) throw new PamiError("PAMIR_INVAL", `${call} got an object without functions`);
  return [...names];
}
