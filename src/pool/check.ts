// Checks of what a program has given: each throws PAMIR_INVAL with the value, and what is allowed.
import { type AbortSignalLike, PamiError } from "../index.js";

/** A value in an error's text. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return (typeof value === "object" && value !== null) || typeof value === "function"
    ? `a ${typeof value}`
    : String(value);
}

export function checkCount(name: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(value)}, not an integer from ${least} to ${most}`);
}

export function checkTime(name: string, value: number | undefined): void {
  if (value === undefined || (typeof value === "number" && value >= 0)) return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(value)}, not a number of milliseconds from 0 on`);
}

export function checkKeys(what: string, options: object, keys: ReadonlySet<string>): void {
  if (typeof options !== "object" || options === null) {
    throw new PamiError("PAMIR_INVAL", `${what} are ${shown(options)}, not an object`);
  }
  for (const key in options) {
    if (!keys.has(key)) {
      throw new PamiError("PAMIR_INVAL", `${what}: there is no ${JSON.stringify(key)}, but ${[...keys].join(", ")}`);
    }
  }
}

export function checkSignal(name: string, signal: AbortSignalLike | undefined): void {
  if (signal === undefined) return;
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignalLike>;
  if (typeof aborted === "boolean" && typeof addEventListener === "function") return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(signal)}, not an AbortSignal`);
}
