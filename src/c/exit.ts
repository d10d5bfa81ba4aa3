// How a program ends other than by returning from main(): these errors leave its start function.
import { SIGNAL_ABORT } from "./wasi/numbers.js";

/** A program has called `exit()`, or returned from `main()` with a code other than 0. */
export class ProgramExit extends Error {
  /** 0 … 2^32 - 1. */
  readonly code: number;

  constructor(code: number) {
    super(`the program ended with exit code ${code}`);
    this.name = "ProgramExit";
    this.code = code;
  }
}

/** A program has raised a signal that ends it. */
export class ProgramSignal extends Error {
  /** WASI's number of the signal: 6 is SIGABRT. */
  readonly signal: number;

  constructor(signal: number) {
    super(signal === SIGNAL_ABORT ? "the program called abort()" : `the program raised signal ${signal}`);
    this.name = "ProgramSignal";
    this.signal = signal;
  }
}

/**
 * Whether an error that left a program is the trap of its `abort()`: wasi-libc's is an `unreachable`, without a call of WASI. The
 * program must have its names ("name" section), which hosts show in the error's stack.
 */
export function isAbort(error: unknown): boolean {
  if (error instanceof ProgramSignal) return error.signal === SIGNAL_ABORT;
  if (!(error instanceof WebAssembly.RuntimeError)) return false;
  // V8: "    at program.abort (wasm://…" below the message. SpiderMonkey: "abort@http://…", or "program.abort@…", at once.
  const frame = (error.stack ?? "").split("\n").find((line) => /wasm[:-]/.test(line));
  return frame !== undefined && /^\s*(?:at )?(?:[^\s(@]*\.)?abort[\s@]/.test(frame);
}
