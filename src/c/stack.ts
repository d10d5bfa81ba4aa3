// The low end of a program's stack: bytes that the program must not change.
import { PamiError } from "../index.js";

/** Bytes at the low end, and what each of them holds. */
export const GUARD_BYTES = 64;
export const GUARD_BYTE = 0x5a;
/** A word of them. */
export const STACK_GUARD = 0x5a5a5a5a;

/** @param cause what became of the program because of it */
export function stackError(cause?: Error): PamiError {
  const text = "the program's stack has run over its end: link it with a larger one, -Wl,-z,stack-size=BYTES";
  return new PamiError("PAMIR_PROGRAM", text, { cause });
}
