// A program in whose memory the job lies: the functions of pami.h for it, and regions over its bytes.
import { JOB_GUEST_PAGES_OFFSET } from "../../assembly/layout.js";
import { checkObject } from "../core/check.js";
import { checkInteger, PamiError } from "../core/error.js";
import { TaskErrors } from "../core/task-errors.js";
import type { Client, Context, Geometry, MemRegion } from "../index.js";
import { makeWorld } from "../mpi/world.js";
import { loadedBy } from "./pami/load.js";

/** Bytes of the longest region: the last byte of 4 GiB is in none. */
const BYTES_MAX = 2 ** 32 - 1;

/** Options of `pamirImports`. */
export interface PamirImportsOptions {
  /** The task's context 0 (default: it is made), which becomes the first one that the program makes. */
  readonly context?: Context | undefined;
  /**
   * The tasks of the program, by their contexts 0: what `PAMI_Geometry_world()` gives (default: `client.world()`, the tasks with
   * which the job began). Where tasks were adopted, all make it by `client.createGeometry()`, of their `context`.
   */
  readonly world?: Geometry | undefined;
}

/** What a program imports, and what it has to export. */
export interface PamirImports {
  /** The modules to import from: `WebAssembly.instantiate(module, { ...imports, env })`. */
  readonly imports: {
    /** The functions of `pami.h` that pamir has. */
    readonly pami: Readonly<Record<string, (...given: number[]) => number | bigint>>;
  };
  /**
   * Takes the exports of the instance, before the program makes a call: handlers and callbacks are functions of its table,
   * `__indirect_function_table`, which the linker exports by `--export-table`.
   */
  bind(exports: object): void;
}

/**
 * The functions of `pami.h` for this task's thread of a program, in whose memory the job lies: `launch({ memory })`. All tasks
 * of the world call it, once each, before the program begins, and it resolves once all have. The program is then in charge of the
 * task's contexts: a task that waits in JavaScript, and advances, calls handlers of the program.
 * @throws PAMIR_INVAL the job has a memory of its own, or the task runs the kernels `ts`, or its context 0 is there and not
 *   given; as `client.world()`
 */
export async function pamirImports(client: Client, options: PamirImportsOptions = {}): Promise<PamirImports> {
  const block = blockOf(client, "pamirImports()");
  const { linearMemory: memory, kernel } = client;
  if (kernel !== "wasm" || memory === undefined)
    throw new PamiError("PAMIR_INVAL", `pamirImports() in a task with the kernels ${kernel}: they are to be wasm`);
  const { context, world } = await worldOf(client, options);
  const region = client.inside.regions.over(0, BYTES_MAX, true);
  const room = { region, bytes: BYTES_MAX, guest: { memory, ...block } };
  const { calls, setTable } = await loadedBy(client, context, world, room);
  return {
    imports: { pami: calls },
    bind: (exports) =>
      setTable((exports as Partial<WebAssembly.Exports>).__indirect_function_table as WebAssembly.Table | undefined),
  };
}

async function worldOf(client: Client, { context, world }: PamirImportsOptions) {
  if (world === undefined) return makeWorld(client, context);
  if (context?.endpoint !== world.endpoints[world.rank] || context?.index !== 0)
    throw new PamiError(
      "PAMIR_INVAL",
      "pamirImports() with a world: context is to be this task's context 0, its member",
    );
  return { context, world };
}

/** Bytes of a program: an array of its own, for instance. */
export interface ProgramBytes {
  /** Address of the first byte: a multiple of 8. */
  readonly at: number;
  /** Their number, from 1. */
  readonly bytes: number;
}

/**
 * Makes a region of bytes that the program has, as `client.createRegion()` does of bytes that pamir has: other tasks put and get
 * there, and nothing is copied besides. The bytes lie outside of the job's block, in the memory as long as it was at launch. Once
 * the region is closed, puts and gets of other tasks may go on until each context has passed an `advance()` that began later.
 * @throws PAMIR_INVAL for such bytes, or in a job with a memory of its own; PAMIR_NO_MEMORY: the task has no region left;
 *   PAMIR_CLOSED
 */
export function programRegion(client: Client, place: ProgramBytes): MemRegion {
  checkObject("bytes of programRegion()", place);
  const { at, bytes } = place;
  const { start, end } = blockOf(client, "programRegion()");
  if (client.closed) throw new PamiError("PAMIR_CLOSED", "programRegion() of a closed client");
  const { length } = client.bytes;
  checkInteger("at", at, 8, length);
  if (at % 8 !== 0) throw new PamiError("PAMIR_INVAL", `at is ${at}, not a multiple of 8`);
  checkInteger("bytes", bytes, 1, length - at);
  if (at < end && at + bytes > start)
    throw new PamiError(
      "PAMIR_INVAL",
      `${bytes} bytes at ${at} reach into the job, which has those from ${start} to ${end}`,
    );
  return client.inside.regions.over(at, bytes);
}

/** The bytes of the program's memory that the job has. @throws PAMIR_INVAL the memory is the job's own */
function blockOf({ inside }: Client, call: string): { readonly start: number; readonly end: number } {
  const { map, memory } = inside;
  // plain: written before any task.
  if (memory.words[(map.job + JOB_GUEST_PAGES_OFFSET) >>> 2] === 0) {
    const text = `${call} in a job with a memory of its own: launch({ memory }), or runProgram()`;
    throw new PamiError("PAMIR_INVAL", text);
  }
  return { start: map.job, end: map.end + TaskErrors.bytesFor(map.locals) };
}
