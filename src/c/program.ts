// Runs a program of WebAssembly in a task: places it in a region of the job's memory, gives it WASI, and MPI or PAMI, and says how
// it ended.
import { type Client, info, PamiError } from "../index.js";
import { sleep } from "../kernel/atomics.js";
import { systemClock } from "../support/clock.js";
import { mayBlock } from "../support/host.js";
import { isAbort, ProgramExit } from "./exit.js";
import { causeOf } from "./mpi/failure.js";
import { loadMpi, type MpiLoaded } from "./mpi/load.js";
import { loadPami, type PamiLoaded } from "./pami/load.js";
import { type ProgramPlace, placeApart, placeInJob } from "./place.js";
import { type ProgramShape, shapeOf } from "./shape.js";
import type { WasiHost } from "./wasi/host.js";
import { type WasiProgram, wasiProgram } from "./wasi/wasi.js";

/** What a program is run with. */
export interface ProgramOptions extends Omit<WasiHost, "bytes" | "read" | "now" | "wallTime" | "sleep"> {
  /** Waits for standard input (default: there is none). @returns at most `count` bytes; none at its end */
  readonly read?: ((count: number) => Uint8Array) | undefined;
  /**
   * Whether the program gets a memory of its own, apart from the job's (default: if it can't be moved into that). It may grow to
   * 4 GiB; messages are copied by way of the job's memory, and there are no one-sided operations.
   */
  readonly isolate?: boolean | undefined;
  /**
   * Bytes for the program's heap (default: what its node has free, divided by its tasks). With a memory of its own: at first
   * (default 0), if it imports its memory.
   */
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

/** The names of a module's imports: WASI, MPI, PAMI, and where the program's memory ends. */
const MODULE = { wasi: "wasi_snapshot_preview1", mpi: "mpi", pami: "pami", pamir: "pamir" } as const;

/** Libraries that a program uses. */
interface Libraries {
  readonly mpi: MpiLoaded | undefined;
  readonly pami: PamiLoaded | undefined;
}

/**
 * Checks a binary before it is run. @param isolate as in `ProgramOptions` @returns the bytes of its stack and data
 * @throws PAMIR_PROGRAM the binary is no program, or can't be moved and is to be
 */
export function checkProgram(binary: Uint8Array, isolate?: boolean): number {
  return checkedShape(binary, isolate).bytes;
}

function checkedShape(binary: Uint8Array, isolate: boolean | undefined): ProgramShape {
  const shape = shapeOf(binary);
  if (!shape.starts) throw new PamiError("PAMIR_PROGRAM", "the program has no start function: it is no command");
  if (isolate === false && shape.whyFixed !== undefined)
    throw new PamiError("PAMIR_PROGRAM", `the program can't be moved: ${shape.whyFixed}`);
  return shape;
}

/**
 * Runs a program to its end. Blocks the thread, which must not be a page's own.
 * @throws PAMIR_PROGRAM the binary is no program, can't be moved and is to be, or imports what is not there; PAMIR_NO_MEMORY;
 *   PAMIR_WOULD_BLOCK on a page's own thread; PAMIR_NOT_ISOLATED
 */
export async function runProgram(client: Client, binary: Uint8Array, options: ProgramOptions): Promise<ProgramEnd> {
  const memory = memoryOf(client);
  const shape = checkedShape(binary, options.isolate);
  const isApart = options.isolate ?? shape.whyFixed !== undefined;
  const place = isApart
    ? placeApart(binary, shape, options.heapBytes)
    : placeInJob(client, memory, binary, shape, options.heapBytes);
  const { module } = place;
  const libraries = await librariesOf(client, place, options.hostName);
  const wasi = wasiProgram({ ...hostOf(options), bytes: () => place.bytes() });
  const instance = new WebAssembly.Instance(module, importsOf(place, wasi, libraries));
  place.begin(instance);
  const end = start(instance, libraries, client);
  wasi.close();
  const error = place.damage(end.error);
  // What a damaged program gives as its code may be anything.
  return error === undefined ? end : { code: 1, error };
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

/** @throws PAMIR_PROGRAM the program uses both libraries, which would read each other's messages */
async function librariesOf(client: Client, place: ProgramPlace, hostName: string | undefined): Promise<Libraries> {
  const imports = WebAssembly.Module.imports(place.module);
  const [usesMpi, usesPami] = [uses(imports, "mpi"), uses(imports, "pami")];
  if (!usesPami) return { mpi: usesMpi ? await loadMpi(client, place, hostName) : undefined, pami: undefined };
  if (usesMpi) throw new PamiError("PAMIR_PROGRAM", "the program uses mpi.h and pami.h: it can have one of them");
  return { mpi: undefined, pami: await loadPami(client, place) };
}

/** Compilers that do not know a header's name of the module import its functions from here: Zig's `@cImport`. */
const NAMELESS = "env";
const FUNCTIONS = { mpi: /^MPIX?_/, pami: /^PAMI_/ } as const;

function uses(imports: readonly WebAssembly.ModuleImportDescriptor[], library: keyof typeof FUNCTIONS): boolean {
  return imports.some(
    ({ module, name }) => module === MODULE[library] || (module === NAMELESS && FUNCTIONS[library].test(name)),
  );
}

function importsOf(place: ProgramPlace, wasi: WasiProgram, { mpi, pami }: Libraries): WebAssembly.Imports {
  const { module, imported } = place;
  const known: WebAssembly.Imports = {
    [NAMELESS]: { ...mpi?.calls, ...pami?.calls, ...(imported === undefined ? {} : { memory: imported }) },
    [MODULE.wasi]: wasi.imports,
    [MODULE.mpi]: mpi?.calls ?? {},
    [MODULE.pami]: pami?.calls ?? {},
    // What lies between a program's own end and this address is its heap: include/lib/arena.c.
    [MODULE.pamir]: { arenaEnd: () => place.arenaEnd(), arenaGrow: (bytes: number) => place.arenaGrow(bytes) },
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

function start(instance: WebAssembly.Instance, { mpi, pami }: Libraries, client: Client): ProgramEnd {
  const { _start, __indirect_function_table: table } = instance.exports;
  for (const library of [mpi, pami]) library?.setTable(table as WebAssembly.Table | undefined);
  try {
    (_start as () => void)();
  } catch (error) {
    if (error instanceof ProgramExit) return { code: error.code, error: undefined };
    const cause = causeOf(error);
    if (cause instanceof PamiError && cause.code === "PAMIR_NO_MEMORY")
      return { code: 1, error: noMemory(cause, mpi, client) };
    return failureOf(cause, mpi);
  }
  return { code: 0, error: undefined };
}

/** The error of a job that has no memory left, with what would help. */
function noMemory(cause: PamiError, mpi: MpiLoaded | undefined, client: Client): PamiError {
  const [messages, bytes] = mpi?.stored() ?? [0, 0];
  const stored = messages > 0 ? `; ${messages} messages of ${bytes} bytes have no receive yet` : "";
  const heapBytes = client.query("CLIENT_MEM_SIZE") * 2 ** 20;
  const text = `${cause.message}${stored}; ${client.localTasks.length} tasks share heapBytes of ${heapBytes}: give them more, up to 4 GiB (pamir run --heap-bytes), or a node fewer tasks`;
  return new PamiError("PAMIR_NO_MEMORY", text, { cause });
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
