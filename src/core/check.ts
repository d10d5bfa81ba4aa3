// Checks of arguments. Each throws PAMIR_INVAL; the text has the value and the allowed values. A list of option keys is a
// record over its interface, so that the compiler finds an option that the list lacks.
import type { AbortSignalLike } from "../support/like.js";
import { noSuchKey } from "../support/node/nearest.js";
import { isPromised } from "../support/promise.js";
import { PamiError, show } from "./error.js";

/** The names of all options of an interface. */
export type Keys<Options> = Readonly<Record<keyof Required<Options>, true>>;

/** The default of options. Checks skip it. */
export const NO_OPTIONS = Object.freeze({});

/** Checks that a value is a function. */
export function checkFunction(name: string, value: unknown): void {
  if (typeof value !== "function") throw new PamiError("PAMIR_INVAL", `${name} is ${show(value)}, not a function`);
}

/** Whether a condition holds, by what its function returned. @throws PAMIR_INVAL for a promise, which would always hold */
export function isMet(name: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  if (isPromised(value)) throw new PamiError("PAMIR_INVAL", `${name} gave ${show(value)}: a condition is told at once`);
  return Boolean(value);
}

/** Checks that a value is a function or undefined. */
export function checkCallback(name: string, value: unknown): void {
  if (value !== undefined) checkFunction(name, value);
}

/** Checks that a value is a boolean or undefined. */
export function checkFlag(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "boolean") {
    throw new PamiError("PAMIR_INVAL", `${name} is ${show(value)}, not a boolean`);
  }
}

/** Checks that a value is an AbortSignal, of any realm, or undefined. @param call whose signal it is: "send()" */
export function checkSignal(call: string, value: unknown): asserts value is AbortSignalLike | undefined {
  if (value === undefined) return;
  const signal = value as Partial<AbortSignalLike> | null;
  if (typeof signal === "object" && typeof signal?.aborted === "boolean") {
    if (typeof signal.addEventListener === "function" && typeof signal.removeEventListener === "function") return;
  }
  throw new PamiError("PAMIR_INVAL", `signal of ${call} is ${show(value)}, not an AbortSignal`);
}

/** Checks that a value is an object of parameters or options. @param name its name: "options of progress()" */
export function checkObject(name: string, value: unknown): asserts value is object {
  const isBytes = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  if (typeof value !== "object" || value === null || Array.isArray(value) || isBytes) {
    throw new PamiError("PAMIR_INVAL", `${name} are ${show(value)}, not an object`);
  }
}

/** Checks that a value is an object without other keys. @param name its name: "options of progress()" */
export function checkKeys(name: string, value: unknown, keys: Readonly<Record<string, true>>): void {
  if (value === NO_OPTIONS) return;
  checkObject(name, value);
  for (const key in value) {
    if (!Object.hasOwn(keys, key)) {
      throw new PamiError("PAMIR_INVAL", `${name}: ${noSuchKey(key, show(key), Object.keys(keys))}`);
    }
  }
}

/** Checks that a value is a codec. @param name its name: "request of a dispatch id" */
export function checkCodec(name: string, value: unknown): void {
  const { encode, decode } = (value ?? {}) as { encode?: unknown; decode?: unknown };
  if (typeof encode !== "function" || typeof decode !== "function") {
    throw new PamiError("PAMIR_INVAL", `${name} is ${show(value)}, without encode() and decode()`);
  }
}
