// WASI snapshot preview 1 for one program: `node:wasi` writes past a task's labels and is not in pages, and the shims for browsers
// have no files of a host, so that this is our own.
import { Descriptors } from "./descriptors.js";
import { fdCalls } from "./fd-calls.js";
import type { WasiCall, WasiHost, WasiState } from "./host.js";
import { ioCalls } from "./io-calls.js";
import { WasiFailure } from "./numbers.js";
import { pathCalls } from "./path-calls.js";
import { pollCalls } from "./poll-calls.js";
import { processCalls } from "./process-calls.js";
import { ProgramMemory } from "./program-memory.js";

/** The functions of `wasi_snapshot_preview1`. */
export type WasiImports = Record<string, (...args: never[]) => number>;

export interface WasiProgram {
  readonly imports: WasiImports;
  /** Closes what the program has open. proc_exit() does it too; a program that returns from `main()` or traps needs it. */
  close(): void;
}

export function wasiProgram(host: WasiHost): WasiProgram {
  const memory = new ProgramMemory(() => host.bytes());
  const descriptors = new Descriptors(host.folders);
  const state: WasiState = { host, memory, descriptors };
  const calls: Record<string, WasiCall> = {
    ...processCalls(state),
    ...fdCalls(state),
    ...ioCalls(state),
    ...pathCalls(state),
    ...pollCalls(state),
  };
  const imports = Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, withErrno(call)]));
  return { imports, close: () => descriptors.closeAll() };
}

/** The imports of a program whose end its caller does not see: files stay open if it traps. */
export function wasiImports(host: WasiHost): WasiImports {
  return wasiProgram(host).imports;
}

function withErrno(call: WasiCall): (...args: never[]) => number {
  return (...args) => {
    try {
      call(...args);
      return 0;
    } catch (error) {
      if (error instanceof WasiFailure) return error.errno;
      throw error;
    }
  };
}
