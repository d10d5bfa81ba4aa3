// What MPI knows of one program: the objects behind its handles, and its memory.
import type { Client, Context, Geometry, MemRegion } from "../../index.js";
import { type Communicator, Communicators } from "../../mpi/communicator.js";
import { MessageEngine } from "../../mpi/engine.js";
import { STACK_GUARD, stackError } from "../stack.js";
import {
  COMM_NULL,
  COMM_SELF,
  COMM_WORLD,
  ERR,
  ERRORS_ARE_FATAL,
  ERRORS_RETURN,
  GROUP_EMPTY,
  OPERATIONS,
} from "./constants.js";
import { MpiFailure } from "./failure.js";
import { HandleTable } from "./handle-table.js";
import { ProgramErrors } from "./objects/errors.js";
import type { OpenRequest } from "./open-request.js";
import type { CommTopology } from "./topology/topology.js";
import { Datatypes } from "./types.js";

/** A communicator as the program has it. */
export interface CommObject {
  readonly comm: Communicator;
  readonly handle: number;
  errorHandler: number;
  name: string;
  /** ObjectAttributes, by their keys. */
  readonly attributes: Map<number, number>;
  topology?: CommTopology;
  /** Hints of MPI_Comm_set_info(). */
  info?: Map<string, string>;
}

/** An operation of the program's own. */
export interface UserOp {
  /** Index in the program's table of functions. */
  readonly call: number;
  readonly commutative: boolean;
}

/** How a program ends by MPI's will. */
export class MpiAbort extends Error {
  readonly code: number;

  constructor(code: number, text: string) {
    super(text);
    this.code = code;
  }
}

/** A call of the program: numbers in, an error code out. */
export type Call = (...given: number[]) => number;

export class MpiState {
  readonly client: Client;
  readonly context: Context;
  readonly engine: MessageEngine;
  readonly communicators: Communicators;
  readonly types = new Datatypes();
  readonly comms = new HandleTable<CommObject>("communicator", ERR.COMM);
  readonly groups = new HandleTable<readonly number[]>("group", ERR.GROUP);
  readonly requests = new HandleTable<OpenRequest>("request", ERR.REQUEST);
  readonly ops = new HandleTable<UserOp>("operation", ERR.OP);
  readonly errors = new ProgramErrors();
  /** Sends that the program has let go, and that are not over. */
  readonly forgotten = new Set<OpenRequest>();
  /** Of MPI_Buffer_attach(). */
  attached: { readonly buffer: number; readonly bytes: number } | undefined;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
  /** The program's table of functions, once it runs. */
  table: WebAssembly.Table | undefined;
  phase: "before" | "running" | "after" = "before";
  /** Of MPI_Get_processor_name(). */
  hostName = "localhost";

  /** The region in which the program lies. */
  readonly arena: MemRegion;
  /** Place in `words` of the stack's last word. */
  readonly #guard: number;

  constructor(client: Client, context: Context, world: Geometry, arena: MemRegion) {
    this.client = client;
    this.context = context;
    this.engine = new MessageEngine(client, context, arena);
    this.arena = arena;
    this.#guard = arena.bytes.byteOffset >>> 2;
    this.communicators = new Communicators(client, context, world);
    this.bytes = client.bytes;
    this.words = new Int32Array(client.bytes.buffer);
    this.#predefine(COMM_WORLD, this.communicators.world, "MPI_COMM_WORLD");
    this.#predefine(COMM_SELF, this.communicators.self, "MPI_COMM_SELF");
    this.groups.set(GROUP_EMPTY, []);
  }

  #predefine(handle: number, comm: Communicator, name: string): void {
    this.comms.set(handle, { comm, handle, errorHandler: ERRORS_ARE_FATAL, name, attributes: new Map() });
  }

  /** Makes a handle for a new communicator; MPI_COMM_NULL for none. */
  addComm(comm: Communicator | undefined, parent: CommObject): number {
    if (comm === undefined) return COMM_NULL;
    const { errorHandler } = parent;
    const handle = this.comms.add(undefined as never);
    this.comms.set(handle, { comm, handle, errorHandler, name: "", attributes: new Map() });
    return handle;
  }

  /** The word at a pointer, signed. */
  word(pointer: number): number {
    return this.words[pointer >>> 2] as number;
  }

  setWord(pointer: number, value: number): void {
    this.words[pointer >>> 2] = value;
  }

  /** `count` words at a pointer. */
  array(pointer: number, count: number): number[] {
    return Array.from(this.words.subarray(pointer >>> 2, (pointer >>> 2) + count));
  }

  /** Writes a text with its end mark. @returns bytes without the mark */
  setText(pointer: number, text: string): number {
    const bytes = new TextEncoder().encode(text);
    this.bytes.set(bytes, pointer);
    this.bytes[pointer + bytes.length] = 0;
    return bytes.length;
  }

  /** A text of the program. */
  text(pointer: number): string {
    let end = pointer;
    while (this.bytes[end] !== 0) end++;
    return new TextDecoder().decode(this.bytes.slice(pointer, end));
  }

  /** The name of an operation, or what the program has given. @throws MpiFailure MPI_ERR_OP */
  operation(handle: number): (typeof OPERATIONS)[number] | UserOp {
    return OPERATIONS[handle] ?? this.ops.get(handle);
  }

  /** A function of the program. */
  functionAt(index: number): (...given: number[]) => number {
    return this.table?.get(index);
  }

  /**
   * Makes a call of a function that fails as its communicator's error handler says.
   * @param at which argument is the communicator; -1: none, and MPI_COMM_WORLD's handler counts
   */
  guarded(name: string, at: number, run: Call): Call {
    return (...given) => {
      try {
        if (this.phase !== "running") this.#refuse(name);
        if (this.words[this.#guard] !== STACK_GUARD) throw stackError();
        return run(...given);
      } catch (error) {
        if (!(error instanceof MpiFailure)) throw error;
        return this.failed(name, at < 0 ? COMM_WORLD : (given[at] as number), error);
      }
    };
  }

  /** What a call returns that has failed. @throws MpiAbort unless errors are to be returned */
  failed(name: string, comm: number, { errorClass, message }: MpiFailure): number {
    let handler = ERRORS_ARE_FATAL;
    try {
      handler = this.comms.get(comm).errorHandler;
    } catch {
      // Errors about a communicator that does not exist are those of MPI_COMM_WORLD.
      handler = this.comms.get(COMM_WORLD).errorHandler;
    }
    if (handler === ERRORS_RETURN) return errorClass;
    const call = this.errors.handlerAt(handler);
    if (call !== undefined) {
      // A function of the program with more arguments gets a pointer to them, which is NULL here.
      const region = this.engine.scratch(8);
      const at = region.bytes.byteOffset;
      this.setWord(at, comm);
      this.setWord(at + 4, errorClass);
      this.functionAt(call)(at, at + 4, 0);
      this.engine.freeScratch(region);
      return errorClass;
    }
    throw new MpiAbort(errorClass, `${name}: ${message} (${this.errors.textOf(errorClass)})`);
  }

  #refuse(name: string): never {
    const when = this.phase === "before" ? "before MPI_Init()" : "after MPI_Finalize()";
    throw new MpiAbort(ERR.OTHER, `${name}() was called ${when}`);
  }
}
