// What the façade of PAMI knows of one program: its memory, its functions, the objects behind its handles, its last error.
import { MPI_CALLS_GUARD } from "../../../assembly/layout.js";
import {
  type Client,
  type Context,
  EAGAIN,
  ENOMEM,
  ERROR,
  type ErrorCode,
  errorText,
  type Geometry,
  type MemRegion,
  PamiError,
  type RegionHandle,
  type Result,
  SHUTDOWN,
} from "../../index.js";
import { stackError } from "../guards.js";
import { RECEIVE, RESULT } from "./layouts.js";
import { checkPointer } from "./pointers.js";
import { ProgramContext } from "./program-context.js";

/** A call of the program: numbers in, a result out. */
export type PamiCall = (...given: number[]) => number;

/** The bytes of a task's program, as the task sees them. */
export interface ProgramRoom {
  /** Has all of them, though its views may end before. */
  readonly region: MemRegion;
  readonly bytes: number;
  /** The memory is the program's own, and pamir is a guest there, which has the bytes from `start` to `end`. */
  readonly guest?: { readonly memory: WebAssembly.Memory; readonly start: number; readonly end: number } | undefined;
}

/** Where a task's program lies. */
export interface ProgramArena {
  readonly handle: RegionHandle;
  /** Address of its first byte in the memory of its node. */
  readonly base: number;
  readonly bytes: number;
}

/** An algorithm as the program has it. A type of operation without a name is left to pamir. */
export interface ListedAlgorithm {
  readonly geometry: number;
  readonly type: number;
  readonly name: string | undefined;
}

/** What the program gets for an error of pamir. Other errors end it. */
const RESULTS: Readonly<Partial<Record<ErrorCode, Result>>> = {
  PAMIR_INVAL: RESULT.INVAL,
  PAMIR_CLOSED: RESULT.INVAL,
  PAMIR_DISPATCH_TAKEN: RESULT.INVAL,
  PAMIR_HINT: RESULT.INVAL,
  PAMIR_TOO_LARGE: RESULT.INVAL,
  PAMIR_BOUNDS: RESULT.INVAL,
  PAMIR_STALE: RESULT.INVAL,
  PAMIR_FENCE: RESULT.INVAL,
  PAMIR_BUSY: EAGAIN,
  PAMIR_NO_MEMORY: ENOMEM,
  PAMIR_SHUTDOWN: SHUTDOWN,
  PAMIR_REENTRANT: ERROR,
  PAMIR_COLLECTIVE: ERROR,
};

export const CLIENT = 1;
/** The geometry of all tasks. */
export const WORLD = 1;

export class PamiState {
  readonly client: Client;
  readonly arena: MemRegion;
  /** Of all tasks. */
  readonly arenas: readonly ProgramArena[];
  /** Whether PAMI_Client_create() was called, and PAMI_Client_destroy(). */
  clientPhase: "before" | "open" | "after" = "before";
  readonly contexts: (ProgramContext | undefined)[] = [];
  readonly geometries = new Map<number, Geometry>();
  readonly algorithms: ListedAlgorithm[] = [];
  nextGeometry: number = WORLD + 1;
  /** The program's table of functions, once it runs. */
  table: WebAssembly.Table | undefined;
  /** Functions of the program that were called. */
  calls = 0;
  /** Text of the last result that was not SUCCESS. */
  lastText: string = errorText(0);

  readonly #length: number;
  readonly #guest: ProgramRoom["guest"];
  /** The memory of the node. A program's own has other views once it has grown. */
  #bytes: Uint8Array<SharedArrayBuffer>;
  #words: Int32Array;
  readonly #context0: Context;
  readonly #receives: MemRegion;
  readonly #functions: ((...given: number[]) => unknown)[] = [];
  readonly #kept = new Map<string, number>();
  /** A function of the program has thrown: none is called any more. */
  #isOver = false;

  constructor(client: Client, context0: Context, world: Geometry, room: ProgramRoom, arenas: readonly ProgramArena[]) {
    this.client = client;
    this.arena = room.region;
    this.#length = room.bytes;
    this.arenas = arenas;
    this.#guest = room.guest;
    this.#bytes = client.bytes;
    this.#words = new Int32Array(client.bytes.buffer, 0, client.bytes.length >>> 2);
    this.#context0 = context0;
    this.#receives = client.createRegion(client.query("CLIENT_NUM_CONTEXTS") * RECEIVE.BYTES);
    this.geometries.set(WORLD, world);
  }

  /** The word at a pointer, signed. */
  word(pointer: number): number {
    const at = pointer >>> 2;
    if (at >= this.#words.length) this.#renew();
    return this.#words[at] as number;
  }

  setWord(pointer: number, value: number): void {
    const at = pointer >>> 2;
    if (at >= this.#words.length) this.#renew();
    this.#words[at] = value;
  }

  setDouble(pointer: number, value: number): void {
    this.#isThere(pointer >>> 0, 8);
    new DataView(this.#bytes.buffer).setFloat64(pointer >>> 0, value, true);
  }

  /** The 64 bits at a pointer to a signed or unsigned number. */
  wide(pointer: number, isSigned: boolean): bigint {
    this.#isThere(pointer >>> 0, 8);
    const view = new DataView(this.#bytes.buffer);
    return isSigned ? view.getBigInt64(pointer >>> 0, true) : view.getBigUint64(pointer >>> 0, true);
  }

  /** `count` words at a pointer. */
  array(pointer: number, count: number): number[] {
    this.#isThere(pointer >>> 0, 4 * (count >>> 0));
    return Array.from(this.#words.subarray(pointer >>> 2, (pointer >>> 2) + count));
  }

  /** Sets bytes to 0; both are multiples of 4. */
  clear(pointer: number, bytes: number): void {
    this.#isThere(pointer >>> 0, bytes);
    this.#words.fill(0, pointer >>> 2, (pointer + bytes) >>> 2);
  }

  /**
   * Bytes that are read, anywhere in the node's memory: what a handler got may be sent on.
   * @param name of the pointer, for the error @throws PAMIR_BOUNDS, PAMIR_INVAL
   */
  source(pointer: number, bytes: number, name: string): Uint8Array {
    const at = pointer >>> 0;
    const count = bytes >>> 0;
    if (count > 0) checkPointer(pointer, name);
    if (!this.#isThere(at, count))
      throw new PamiError(
        "PAMIR_BOUNDS",
        `${count} bytes at ${at} end beyond the memory of ${this.#bytes.length} bytes`,
      );
    return this.#view(at, count);
  }

  /** Bytes that are written: they are the program's own. @throws PAMIR_BOUNDS, PAMIR_INVAL */
  target(pointer: number, bytes: number, name: string): Uint8Array {
    if (bytes === 0) return this.client.bytes.subarray(0, 0);
    this.offset(pointer, bytes, name);
    return this.#view(pointer >>> 0, bytes >>> 0);
  }

  /** Where bytes lie in the program's region. @throws PAMIR_BOUNDS, PAMIR_INVAL */
  offset(pointer: number, bytes: number, name: string): number {
    if (bytes === 0) return 0;
    checkPointer(pointer, name);
    const at = (pointer >>> 0) - this.arena.bytes.byteOffset;
    const count = bytes >>> 0;
    if (at < 0 || at + count > this.#length || !this.isOfProgram(pointer >>> 0, count))
      throw new PamiError("PAMIR_BOUNDS", `${count} bytes at ${pointer >>> 0} are not the program's own`);
    return at;
  }

  /** Whether bytes are there, and none of pamir's, in a program's own memory. In the job's, a program's region says that. */
  isOfProgram(at: number, count: number): boolean {
    const guest = this.#guest;
    return guest === undefined || ((at >= guest.end || at + count <= guest.start) && this.#isThere(at, count));
  }

  /** Whether pamir's own views have these bytes: those of the memory as it was at launch. */
  isAsLaunched(at: number, count: number): boolean {
    return at + count <= this.client.bytes.length;
  }

  /** In the views that pamir knows, if these bytes are in them: then no byte is copied on the way. */
  #view(at: number, count: number): Uint8Array {
    const bytes = this.isAsLaunched(at, count) ? this.client.bytes : this.#bytes;
    return bytes.subarray(at, at + count);
  }

  /** Whether the memory has these bytes. It may have grown since this was asked last. */
  #isThere(at: number, count: number): boolean {
    if (at + count <= this.#bytes.length) return true;
    this.#renew();
    return at + count <= this.#bytes.length;
  }

  #renew(): void {
    const buffer = this.#guest?.memory.buffer as unknown as SharedArrayBuffer | undefined;
    if (buffer === undefined || buffer.byteLength === this.#bytes.length) return;
    this.#bytes = new Uint8Array(buffer);
    this.#words = new Int32Array(buffer);
  }

  /** Address of bytes that stay, made at the first call with their name. */
  keep(name: string, make: () => Uint8Array): number {
    let at = this.#kept.get(name);
    if (at === undefined) {
      const contents = make();
      const region = this.client.createRegion(Math.max(1, contents.length));
      region.bytes.set(contents);
      at = region.bytes.byteOffset;
      this.#kept.set(name, at);
    }
    return at;
  }

  /** Address of a text with its end mark. */
  keepText(text: string): number {
    return this.keep(text, () => new TextEncoder().encode(`${text}\0`));
  }

  /** Makes the next context; the first one exists. @throws PAMIR_INVAL there are as many as there may be */
  addContext(): ProgramContext {
    const { length } = this.contexts;
    const context = length === 0 ? this.#context0 : this.client.createContext();
    const put = { to: 0, local: this.arena, remote: 0 };
    const receiveAt = this.#receives.bytes.byteOffset + length * RECEIVE.BYTES;
    const own = new ProgramContext(context, length + 1, receiveAt, put, this.event);
    this.contexts.push(own);
    return own;
  }

  /** @throws PAMIR_INVAL */
  context(handle: number): ProgramContext {
    const found = this.contexts[handle - 1];
    if (found !== undefined) return found;
    throw new PamiError("PAMIR_INVAL", `${handle} is no context, or one that was destroyed`);
  }

  /** @throws PAMIR_INVAL */
  geometry(handle: number): Geometry {
    const found = this.geometries.get(handle);
    if (found !== undefined) return found;
    throw new PamiError("PAMIR_INVAL", `${handle} is no geometry, or one that was destroyed`);
  }

  /** @throws PAMIR_INVAL */
  checkClient(handle: number): void {
    if (handle === CLIENT && this.clientPhase === "open") return;
    throw new PamiError("PAMIR_INVAL", `${handle} is no client, or one that was destroyed`);
  }

  /** Calls a function of the program. Behind one that has thrown, none is called: that error ends the program. */
  invoke(fn: number, ...given: number[]): unknown {
    if (this.#isOver) return 0;
    this.calls++;
    try {
      return this.functionAt(fn)(...given);
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  }

  /** Calls a pami_event_function. */
  readonly event = (fn: number, context: number, cookie: number, result: number): void => {
    if (this.#isOver) return;
    this.calls++;
    try {
      this.functionAt(fn)(context, cookie, result);
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  };

  /** A function of the program. @throws PAMIR_INVAL */
  functionAt(index: number): (...given: number[]) => unknown {
    const known = this.#functions[index];
    if (known !== undefined) return known;
    if (this.table === undefined)
      throw new PamiError("PAMIR_PROGRAM", "functions of the program can't be called: link it with --export-table");
    const found = index > 0 && index < this.table.length ? this.table.get(index) : null;
    if (found === null) throw new PamiError("PAMIR_INVAL", `${index} is no function of the program`);
    this.#functions[index] = found;
    return found;
  }

  /** Makes a call of a function: what pamir throws for a wrong argument becomes its result. */
  guarded(name: string, run: PamiCall): PamiCall {
    // Two arguments, as most calls have, without an array for them.
    if (run.length === 1 || run.length === 2) {
      return (one, other) => {
        try {
          this.#checkStack();
          return run(one as number, other as number);
        } catch (error) {
          return this.#failed(name, error);
        }
      };
    }
    return (...given) => {
      try {
        this.#checkStack();
        return run(...given);
      } catch (error) {
        return this.#failed(name, error);
      }
    };
  }

  #checkStack(): void {
    if (this.#guest !== undefined) return;
    if (this.#words[this.arena.bytes.byteOffset >>> 2] !== MPI_CALLS_GUARD) throw stackError();
  }

  #failed(name: string, error: unknown): Result {
    const result = error instanceof PamiError ? RESULTS[error.code] : undefined;
    if (result === undefined) throw error;
    this.lastText = `${name}: ${(error as Error).message}`;
    return result;
  }
}
