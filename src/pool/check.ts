// Checks of what a program has given: each throws PAMIR_INVAL with the value, and what is allowed.
import { type AbortSignalLike, type Context, PamiError } from "../index.js";

/** A value in an error's text. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  return typeof value === "object" && value !== null ? "an object" : String(value);
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

export function checkFlag(name: string, value: boolean | undefined): void {
  if (value === undefined || typeof value === "boolean") return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(value)}, not a boolean`);
}

/** @param call as the program has written it, for the error's text */
export function checkContext(call: string, context: Context): void {
  const { dispatch, progress } = Object(context) as Partial<Context>;
  if (typeof dispatch === "function" && typeof progress === "function") return;
  throw new PamiError("PAMIR_INVAL", `${call} takes a context, not ${shown(context)}`);
}

export function checkSignal(name: string, signal: AbortSignalLike | undefined): void {
  if (signal === undefined) return;
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignalLike>;
  if (typeof aborted === "boolean" && typeof addEventListener === "function") return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(signal)}, not an AbortSignal`);
}
