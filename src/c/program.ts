// Runs a program of WebAssembly in a task: places it in a region of the job's memory, gives it WASI and MPI, and says how it
// ended.
import { type Client, info, type MemRegion, PamiError } from "../index.js";
import { sleep } from "../kernel/atomics.js";
import { systemClock } from "../support/clock.js";
import { mayBlock } from "../support/host.js";
import { isAbort, ProgramExit } from "./exit.js";
import { loadMpi, type MpiLoaded } from "./mpi/load.js";
import { needsOf, relocate } from "./relocate.js";
import { GUARD_BYTE, GUARD_BYTES, stackError } from "./stack.js";
import type { WasiHost } from "./wasi/host.js";
import { type WasiProgram, wasiProgram } from "./wasi/wasi.js";

/** What a program is run with. */
export interface ProgramOptions extends Omit<WasiHost, "bytes" | "read" | "now" | "wallTime" | "sleep"> {
  /** Waits for standard input (default: there is none). @returns at most `count` bytes; none at its end */
  readonly read?: ((count: number) => Uint8Array) | undefined;
  /** Bytes for the program's heap (default: what its node has free, divided by its tasks). */
  readonly heapBytes?: number | undefined;
  /** What MPI_Get_processor_name() gives (default "localhost"). */
  readonly hostName?: string | undefined;
}

/** How a program ended. */
export interface ProgramEnd {
  /** Its exit code; 1 or more if it failed. */
  readonly code: number;
  /** Why it failed, with what the program did last; undefined: it ended by itself. */
  readonly error: Error | undefined;
}

const PAGE = 65_536;
/** Pointers of a program are signed numbers in calls: beyond, they would be negative. */
const ADDRESSES = 2 ** 31;
/** The part of a node's heap that programs take; the rest is for lanes, buffers and stored messages. */
const HEAP_SHARE = 0.75;
/** The names of a module's imports: WASI, MPI, and where the program's memory ends. */
const MODULE = { wasi: "wasi_snapshot_preview1", mpi: "mpi", pamir: "pamir" } as const;

/**
 * Checks a binary before it is run. @returns the bytes of its stack and data
 * @throws PAMIR_PROGRAM the binary is no program, or can't be moved
 */
export function checkProgram(binary: Uint8Array): number {
  const { bytes, movable, importsMemory } = needsOf(binary);
  if (movable) return bytes;
  const what = importsMemory ? "--emit-relocs" : "--import-memory";
  throw new PamiError("PAMIR_PROGRAM", `the program can't be moved: it was linked without ${what}`);
}

/**
 * Runs a program to its end. Blocks the thread, which must not be a page's own.
 * @throws PAMIR_PROGRAM the binary is no program, can't be moved, or imports what is not there; PAMIR_NO_MEMORY;
 *   PAMIR_WOULD_BLOCK on a page's own thread; PAMIR_NOT_ISOLATED
 */
export async function runProgram(client: Client, binary: Uint8Array, options: ProgramOptions): Promise<ProgramEnd> {
  const memory = memoryOf(client);
  const bytes = checkProgram(binary);
  const arena = arenaOf(client, bytes, options.heapBytes);
  const base = arena.bytes.byteOffset;
  // What is behind it, the heap, is cleared as it is taken: to clear 48 MiB takes 195 ms.
  client.bytes.fill(0, base, base + bytes);
  client.bytes.fill(GUARD_BYTE, base, base + GUARD_BYTES);
  const module = new WebAssembly.Module(relocate(binary, base));
  const usesMpi = WebAssembly.Module.imports(module).some(({ module: name }) => name === MODULE.mpi);
  const mpi = usesMpi ? await loadMpi(client, arena, options.hostName) : undefined;
  const wasi = wasiProgram({ ...hostOf(options), bytes: () => client.bytes });
  const instance = new WebAssembly.Instance(module, importsOf(module, memory, arena, wasi, mpi));
  const end = start(instance, mpi);
  wasi.close();
  const isWhole = client.bytes.subarray(base, base + GUARD_BYTES).every((byte) => byte === GUARD_BYTE);
  return isWhole ? end : { code: Math.max(1, end.code), error: stackError(end.error) };
}

function hostOf({
  args,
  env,
  folders,
  write,
  read = () => new Uint8Array(0),
}: ProgramOptions): Omit<WasiHost, "bytes"> {
  const { now } = systemClock;
  return { args, env, folders, write, read, now, wallTime: () => systemClock.origin + now(), sleep };
}

/**
 * The node's memory.
 * @throws PAMIR_PROGRAM the task has no wasm kernels; PAMIR_WOULD_BLOCK a page's own thread; PAMIR_NOT_ISOLATED threads share none
 */
function memoryOf(client: Client): WebAssembly.Memory {
  if (!mayBlock()) {
    const text = "a program blocks its thread, which a page's own must not: launchProgram() runs it in workers";
    throw new PamiError("PAMIR_WOULD_BLOCK", text);
  }
  const memory = client.linearMemory;
  if (memory === undefined) {
    throw new PamiError("PAMIR_PROGRAM", `programs of WebAssembly run with the kernel wasm, not ${client.kernel}`);
  }
  checkShared();
  return memory;
}

/** @throws PAMIR_NOT_ISOLATED threads of this page share no memory: a program that waits would get no messages */
export function checkShared(): void {
  const { mode, why } = info();
  if (mode === "messages") throw new PamiError("PAMIR_NOT_ISOLATED", `a program would get no messages: ${why}`);
}

/** The region of a program: its stack and data, then its heap. */
function arenaOf(client: Client, bytes: number, heapBytes: number | undefined): MemRegion {
  const share = (client.query("CLIENT_MEM_SIZE") * 2 ** 20 * HEAP_SHARE) / client.localTasks.length;
  const whole = heapBytes === undefined ? Math.floor(share / PAGE) * PAGE : bytes + heapBytes;
  if (whole < bytes + PAGE) {
    const text = `the program needs ${bytes} bytes and a heap, and its task's part of the memory has ${whole}: give the job more heapBytes`;
    throw new PamiError("PAMIR_NO_MEMORY", text);
  }
  const arena = client.createRegion(whole);
  const end = arena.bytes.byteOffset + whole;
  if (end <= ADDRESSES) return arena;
  arena.close();
  throw new PamiError(
    "PAMIR_NO_MEMORY",
    `the program would end at address ${end}, the limit is ${ADDRESSES}: give the job fewer heapBytes`,
  );
}

function importsOf(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  arena: MemRegion,
  wasi: WasiProgram,
  mpi: MpiLoaded | undefined,
): WebAssembly.Imports {
  const end = arena.bytes.byteOffset + arena.length;
  const known: WebAssembly.Imports = {
    env: { memory },
    [MODULE.wasi]: wasi.imports,
    [MODULE.mpi]: mpi?.calls ?? {},
    // wasi-libc takes what lies between its own end and this address as the heap. Addresses are signed here.
    [MODULE.pamir]: { arenaEnd: () => end | 0 },
  };
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const space = known[from] ?? {};
    known[from] = space;
    if (space[name] !== undefined) continue;
    if (kind !== "function")
      throw new PamiError("PAMIR_PROGRAM", `the program imports the ${kind} ${from}.${name}, which is not there`);
    // What is never called does no harm.
    space[name] = () => {
      throw new PamiError("PAMIR_PROGRAM", `the program called ${name}(), which pamir does not have`);
    };
  }
  return known;
}

function start(instance: WebAssembly.Instance, mpi: MpiLoaded | undefined): ProgramEnd {
  const { _start, __indirect_function_table: table } = instance.exports;
  if (typeof _start !== "function")
    throw new PamiError("PAMIR_PROGRAM", "the program has no start function: it is no command");
  mpi?.setTable(table as WebAssembly.Table);
  try {
    _start();
  } catch (error) {
    if (error instanceof ProgramExit) return { code: error.code, error: undefined };
    return failureOf(error, mpi);
  }
  return { code: 0, error: undefined };
}

/** Why a program failed, in words that say what to do. */
function failureOf(error: unknown, mpi: MpiLoaded | undefined): ProgramEnd {
  const code = mpi?.codeOf(error);
  if (code !== undefined) return { code: code & 255 || 1, error: error as Error };
  const { message } = error as Error;
  if (isAbort(error))
    return { code: 134, error: new PamiError("PAMIR_PROGRAM", "the program called abort()", { cause: error }) };
  if (error instanceof WebAssembly.RuntimeError) {
    return { code: 1, error: new PamiError("PAMIR_PROGRAM", `the program has trapped: ${message}`, { cause: error }) };
  }
  if (error instanceof RangeError && /call stack/.test(message)) {
    const text = "the program has called too deeply: the host's stack is full";
    return { code: 1, error: new PamiError("PAMIR_PROGRAM", text, { cause: error }) };
  }
  return { code: 1, error: error as Error };
}
