// Wrong input on the command line: one clear line, exit code 2. What commands write to standard error.
import { printable } from "../support/printable.js";

export class UsageError extends Error {}

/** The value, if it is one of those known. */
export function oneOf<Name extends string>(option: string, value: string, known: readonly Name[]): Name {
  if ((known as readonly string[]).includes(value)) return value as Name;
  throw new UsageError(`${option} is ${JSON.stringify(value)}: there are ${known.join(", ")}`);
}

/** A whole number within limits. */
export function wholeNumber(option: string, value: string, least: number, most: number): number {
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new UsageError(`${option} is ${JSON.stringify(value)}: a whole number from ${least} to ${most}`);
}

/** Writes a line, or several, to standard error. What other processes, hosts and files say is in it. */
export function say(text: string): void {
  process.stderr.write(`${printable(text, true)}\n`);
}
