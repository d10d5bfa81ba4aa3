// Bytes that a program must not change: at the low end of its stack, and where NULL points to.
import { GUARD_BYTE, JOB_GUEST_PAGES_OFFSET, JOB_MAGIC, MAP_BASE, NULL_GUARD_BYTES } from "../../assembly/layout.js";
import { PamiError } from "../index.js";

/** Bytes at the low end of a stack. */
const STACK_GUARD_BYTES = 64;

/** Makes the low end of a stack one that hasWholeStack() knows. */
export function guardStack(bytes: Uint8Array, low: number): void {
  bytes.fill(GUARD_BYTE, low, low + STACK_GUARD_BYTES);
}

export function isWholeStack(bytes: Uint8Array, low: number): boolean {
  return isWhole(bytes.subarray(low, low + STACK_GUARD_BYTES));
}

/**
 * Whether the bytes from address 0 on are a guard: `formatMemory()` has written them, below a map at MAP_BASE. In a memory of
 * another program, which has its own data there, no map lies there, or that of a guest.
 */
export function hasNullGuard({ buffer }: Uint8Array): boolean {
  const header = new Uint32Array(buffer, MAP_BASE);
  return header[0] === JOB_MAGIC && header[JOB_GUEST_PAGES_OFFSET >>> 2] === 0;
}

/** Whether no program has written through NULL. Makes the guard anew: of several programs in a memory, one ends for a write. */
export function mendNullGuard(bytes: Uint8Array): boolean {
  const guard = bytes.subarray(0, NULL_GUARD_BYTES);
  if (isWhole(guard)) return true;
  guard.fill(GUARD_BYTE);
  return false;
}

function isWhole(guard: Uint8Array): boolean {
  return guard.every((byte) => byte === GUARD_BYTE);
}

/** @param cause what became of the program because of it */
export function stackError(cause?: Error): PamiError {
  const text = "the program's stack has run over its end: link it with a larger one, -Wl,-z,stack-size=BYTES";
  return new PamiError("PAMIR_PROGRAM", text, { cause });
}

/** A program whose stack begins at address 0: both causes change the same bytes. @param cause as for stackError() */
export function lowError(cause?: Error): PamiError {
  const { message } = stackError();
  return new PamiError("PAMIR_PROGRAM", `${message}; or the program has written through NULL`, { cause });
}

/** @param cause as for stackError() */
export function nullError(cause?: Error): PamiError {
  const text = `the program, or another rank of its node, has written through NULL: to an address below ${NULL_GUARD_BYTES}`;
  return new PamiError("PAMIR_PROGRAM", text, { cause });
}
