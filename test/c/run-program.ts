// Runs a program of test/c/built by WASI, in a memory of its own, as a test sees it: what it wrote, and how it ended.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ProgramExit } from "../../src/c/exit.js";
import type { Preopen } from "../../src/c/wasi/files.js";
import type { WasiHost } from "../../src/c/wasi/host.js";
import { wasiProgram } from "../../src/c/wasi/wasi.js";
import { sleep } from "../../src/kernel/atomics.js";

export interface ProgramRun {
  /** Standard output, and standard error. */
  readonly out: string;
  readonly err: string;
  /** Each write: its stream and text. */
  readonly writes: readonly (readonly [stream: number, text: string])[];
  /** undefined: the program trapped, or threw. */
  readonly code: number | undefined;
  readonly error: unknown;
}

export interface ProgramOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly folders?: readonly Preopen[];
  readonly host?: Partial<WasiHost>;
}

/** A host for tests: its time is the machine's. */
export function testHost(
  memory: WebAssembly.Memory,
  { args, env, input, folders, host }: ProgramOptions = {},
): WasiHost {
  let left = new TextEncoder().encode(input ?? "");
  return {
    args: args ?? ["program"],
    env: env ?? {},
    folders: folders ?? [],
    bytes: () => new Uint8Array(memory.buffer),
    write: () => {},
    read(count) {
      const part = left.subarray(0, count);
      left = left.subarray(part.length);
      return part;
    },
    now: () => performance.now(),
    wallTime: () => performance.timeOrigin + performance.now(),
    sleep,
    ...host,
  };
}

const modules = new Map<string, WebAssembly.Module>();

function moduleOf(name: string): WebAssembly.Module {
  const path = join(import.meta.dirname, "built", `${name}.wasm`);
  const known = modules.get(name) ?? new WebAssembly.Module(readFileSync(path));
  modules.set(name, known);
  return known;
}

export function runProgram(name: string, options: ProgramOptions = {}): ProgramRun {
  const memory = new WebAssembly.Memory({ initial: 2, maximum: 256 });
  const writes: [number, string][] = [];
  const decoder = new TextDecoder();
  const host = testHost(memory, {
    ...options,
    args: [name, ...(options.args ?? [])],
    host: { write: (stream, bytes) => writes.push([stream, decoder.decode(bytes)]), ...options.host },
  });
  const { imports, close } = wasiProgram(host);
  const wasi = { ...imports } as Record<string, WebAssembly.ImportValue>;
  const instance = new WebAssembly.Instance(moduleOf(name), { wasi_snapshot_preview1: wasi, env: { memory } });
  let code: number | undefined;
  let error: unknown;
  try {
    (instance.exports._start as () => void)();
    code = 0;
  } catch (thrown) {
    if (thrown instanceof ProgramExit) code = thrown.code;
    else error = thrown;
  }
  close();
  const text = (wanted: number): string => writes.map(([stream, part]) => (stream === wanted ? part : "")).join("");
  return { out: text(1), err: text(2), writes, code, error };
}
