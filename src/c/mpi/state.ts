// What MPI knows of one program: the objects behind its handles, and its memory.
import { MPI_CALLS_GUARD as GUARD } from "../../../assembly/layout.js";
import { type Client, type Context, type Geometry, type MemRegion, PamiError } from "../../index.js";
import { type Communicator, Communicators } from "../../mpi/communicator.js";
import { MessageEngine } from "../../mpi/engine.js";
import { copyInto } from "../../support/copy.js";
import type { KeptPlace, ProgramPlace } from "../place.js";
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
import { causeOf, MpiFailure } from "./failure.js";
import { HandleTable } from "./handle-table.js";
import { ProgramErrors } from "./objects/errors.js";
import type { OpenRequest } from "./requests/open-request.js";
import { RequestTable } from "./requests/request-table.js";
import { type ScratchPlace, ScratchPool } from "./scratch.js";
import type { CommTopology } from "./topology/topology.js";
import { type Copy, type Datatype, Datatypes, isDense } from "./types.js";

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

/** Calls that a revoked communicator allows: those that ask no other rank, and those that go on behind ends of ranks. */
const LOCAL_OF_COMM =
  /^(MPIX_Comm_|MPI_Attr_|MPI_Comm_(call_|compare|delete_attr|free|get_|group|rank|set_|size|test_))/;
const LOCAL_OF_TOPOLOGY =
  /^MPI_(Cart_(coords|get|rank|shift)|Cartdim_|Dist_graph_neigh|Graph_(get|neigh)|Graphdims_|Topo_)/;

/** Ways of calls that are closed while TypeScript runs. */
export interface ShortWays {
  close(): void;
  /** Opens them, if nothing but messages of MPI is under way. */
  open(): void;
  /** A collective operation has succeeded by its long way. @param given the arguments, the last of which is the communicator */
  learn(name: string, given: readonly number[]): void;
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
  readonly requests: RequestTable;
  readonly ops = new HandleTable<UserOp>("operation", ERR.OP);
  readonly errors = new ProgramErrors();
  /** Sends that the program has let go, and that are not over. */
  readonly forgotten = new Set<OpenRequest>();
  /** Of MPI_Buffer_attach(). */
  attached: { readonly buffer: number; readonly bytes: number } | undefined;
  /** The program's memory. If it is its own, renew() makes both anew. */
  words: Int32Array;
  bytes: Uint8Array;
  /** Whether the program has a memory of its own: the engine finds none of its buffers. */
  readonly isApart: boolean;
  /** Copies from the program's memory to a scratch place, back, and within the program's memory. */
  readonly copyOut: Copy;
  readonly copyIn: Copy;
  readonly copyWithin: Copy;
  /** The program's table of functions, once it runs. */
  table: WebAssembly.Table | undefined;
  phase: "before" | "running" | "after" = "before";
  /** Whether any communicator was revoked: calls look for it then. */
  hasRevoked = false;
  /** Of MPI_Get_processor_name(). */
  hostName = "localhost";

  /** The region in which the program lies, or that of short scratch places. */
  readonly arena: MemRegion;
  readonly #place: ProgramPlace;
  /** Places in `words` of the stack's last word, and of the word to which NULL points; both the same if one is not there. */
  readonly #stackGuard: number;
  readonly #nullGuard: number;
  readonly #pool: ScratchPool | undefined;
  /** Bytes of the kept place that are taken. */
  #kept = 0;
  /** Those that are lent, at the other end; and what is lent of the job's memory, by its address. */
  #lent = 0;
  readonly #lentRegions = new Map<number, MemRegion>();

  constructor(client: Client, context: Context, world: Geometry, place: ProgramPlace) {
    this.client = client;
    this.context = context;
    this.arena = place.arena ?? client.createRegion(POOL_BYTES);
    this.engine = new MessageEngine(client, context, this.arena);
    const { engine } = this;
    this.#place = place;
    const { stackGuard = -1, nullGuard = stackGuard } = place;
    this.#stackGuard = stackGuard >> 2;
    this.#nullGuard = nullGuard >> 2;
    this.isApart = place.arena === undefined;
    this.#pool = this.isApart ? new ScratchPool(this.arena) : undefined;
    const within: Copy = (to, from, bytes) => engine.copy(to, from, bytes);
    this.copyOut = this.isApart ? (to, from, bytes) => copyInto(client.bytes, to, this.#part(from, bytes)) : within;
    this.copyIn = this.isApart
      ? (to, from, bytes) => copyInto(this.#part(to, bytes), 0, client.bytes.subarray(from, from + bytes))
      : within;
    this.copyWithin = this.isApart
      ? (to, from, bytes) => copyInto(this.#part(to, bytes), 0, this.#part(from, bytes))
      : within;
    this.communicators = new Communicators(client, context, world);
    this.requests = new RequestTable(this.engine, this.communicators.world);
    this.comms.onChange = (_, object) => {
      if (object !== undefined) this.requests.know(object.comm);
    };
    // A program's own memory is there once the program is.
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
    const handle = this.comms.next;
    return this.comms.add({ comm, handle, errorHandler, name: "", attributes: new Map() });
  }

  /** The program has run: a memory of its own may have grown since. */
  renew(): void {
    const bytes = this.#place.bytes();
    if (bytes === this.bytes) return;
    this.bytes = bytes;
    this.words = new Int32Array(bytes.buffer);
  }

  /** @throws MpiFailure MPI_ERR_BUFFER */
  #part(from: number, bytes: number): Uint8Array {
    const start = from >>> 0;
    if (start + bytes > this.bytes.length) {
      const text = `the buffer of ${bytes} bytes at ${start} ends beyond the program's memory of ${this.bytes.length} bytes`;
      throw new MpiFailure(ERR.BUFFER, text);
    }
    return this.bytes.subarray(start, start + bytes);
  }

  /** A place of the job's memory for packed data, until freePlace(). @throws PAMIR_NO_MEMORY */
  place(bytes: number): ScratchPlace {
    return this.#pool?.take(bytes) ?? this.engine.scratch(bytes);
  }

  freePlace(place: ScratchPlace): void {
    if (!this.#pool?.give(place)) this.engine.freeScratch(place as MemRegion);
  }

  /** Whether the engine can take a buffer of a type where it is. */
  isDirect(type: Datatype): boolean {
    return !this.isApart && isDense(type);
  }

  /**
   * The place of so many bytes in the program's memory, a multiple of 16, that stays MPI's.
   * @param what for the text of the error: "an attribute" @throws MpiFailure MPI_ERR_UNSUPPORTED_OPERATION
   */
  keep(bytes: number, what: string): number {
    if (!this.isApart) return this.engine.scratch(bytes).bytes.byteOffset;
    const { at } = this.#room(bytes, what);
    this.#kept += roundUp(bytes);
    return at + this.#kept - roundUp(bytes);
  }

  #room(bytes: number, what: string): KeptPlace {
    const left = this.keptBytes;
    if (roundUp(bytes) <= left) return this.#place.kept as KeptPlace;
    const text = `${what} takes ${bytes} bytes, and MPI has ${left} in a memory of the program's own: run it without isolate`;
    throw new MpiFailure(ERR.UNSUPPORTED_OPERATION, text);
  }

  /**
   * The place of so many bytes in the program's memory, a multiple of 16, for the arguments of a function of the program, until
   * giveBack(). @throws MpiFailure MPI_ERR_UNSUPPORTED_OPERATION
   */
  lend(bytes: number): number {
    if (!this.isApart) {
      const region = this.engine.scratch(bytes);
      this.#lentRegions.set(region.bytes.byteOffset, region);
      return region.bytes.byteOffset;
    }
    const { at } = this.#room(bytes, "a call of the program's function");
    // From the other end than keep(); what is lent last comes back first.
    this.#lent += roundUp(bytes);
    return at + (this.#place.kept as KeptPlace).bytes - this.#lent;
  }

  giveBack(at: number, bytes: number): void {
    const region = this.#lentRegions.get(at);
    if (region === undefined) this.#lent -= roundUp(bytes);
    else {
      this.#lentRegions.delete(at);
      this.engine.freeScratch(region);
    }
  }

  /** Bytes that keep() and lend() have left, in a program with a memory of its own. */
  get keptBytes(): number {
    return (this.#place.kept?.bytes ?? 0) - this.#kept - this.#lent;
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
    this.bytes.set(bytes, pointer >>> 0);
    this.bytes[(pointer >>> 0) + bytes.length] = 0;
    return bytes.length;
  }

  /** A text of the program. */
  text(pointer: number): string {
    let end = pointer >>> 0;
    while (this.bytes[end] !== 0) end++;
    return new TextDecoder().decode(this.bytes.slice(pointer >>> 0, end));
  }

  /** The name of an operation, or what the program has given. @throws MpiFailure MPI_ERR_OP */
  operation(handle: number): (typeof OPERATIONS)[number] | UserOp {
    return OPERATIONS[handle] ?? this.ops.get(handle);
  }

  /** The ways of calls that need no JavaScript; undefined: there are none. */
  short: ShortWays | undefined;

  /** A function of the program. */
  functionAt(index: number): (...given: number[]) => number {
    if (this.table === undefined)
      throw new MpiFailure(ERR.OP, "the program's functions can't be called: it was linked without --export-table");
    const call = this.table.get(index);
    if (!this.isApart) return call;
    return (...given) => {
      const result = call(...given);
      this.renew();
      return result;
    };
  }

  /**
   * Makes a call of a function that fails as its communicator's error handler says.
   * @param at which argument is the communicator; -1: none, and MPI_COMM_WORLD's handler counts
   */
  guarded(name: string, at: number, run: Call): Call {
    const isLocal = LOCAL_OF_COMM.test(name) || LOCAL_OF_TOPOLOGY.test(name);
    return (...given) => {
      this.short?.close();
      try {
        if (this.phase !== "running") this.#refuse(name);
        if (!this.#hasWholeGuards()) this.#tellDamage();
        if (this.hasRevoked && at >= 0 && !isLocal && this.comms.get(given[at] as number).comm.isRevoked)
          throw new MpiFailure(ERR.REVOKED, "the communicator is revoked");
        return run(...given);
      } catch (error) {
        const cause = causeOf(error);
        if (cause instanceof MpiFailure) return this.failed(name, at < 0 ? COMM_WORLD : (given[at] as number), cause);
        // PAMIR_PROGRAM is about what the program did before, as far as the call can tell.
        if (!(cause instanceof PamiError) || cause.code === "PAMIR_PROGRAM") throw cause;
        throw new PamiError(cause.code, `${name}: ${cause.message}`, { cause });
      } finally {
        this.short?.open();
      }
    };
  }

  #hasWholeGuards(): boolean {
    const { words } = this;
    const at = this.#nullGuard;
    if (at < 0) return true;
    // The second word, too: it is the link of the most frequent list.
    return words[this.#stackGuard] === GUARD && words[at] === GUARD && words[at + 1] === GUARD;
  }

  /** @throws PAMIR_PROGRAM, unless another rank has told of it and mended the guard */
  #tellDamage(): void {
    const damage = this.#place.damage();
    if (damage !== undefined) throw damage;
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
    return this.handled(name, comm, handler, errorClass, message);
  }

  /** What an error handler makes of a failure. @param object handle of the object that has the handler @throws MpiAbort */
  handled(name: string, object: number, handler: number, errorClass: number, message: string): number {
    if (handler === ERRORS_RETURN) return errorClass;
    const call = this.errors.handlerAt(handler);
    if (call !== undefined) {
      // A function of the program with more arguments gets a pointer to them, which is NULL here.
      const at = this.lend(8);
      this.setWord(at, object);
      this.setWord(at + 4, errorClass);
      this.functionAt(call)(at, at + 4, 0);
      this.giveBack(at, 8);
      return errorClass;
    }
    throw new MpiAbort(errorClass, `${name}: ${message} (${this.errors.textOf(errorClass)})`);
  }

  #refuse(name: string): never {
    const when = this.phase === "before" ? "before MPI_Init()" : "after MPI_Finalize()";
    throw new MpiAbort(ERR.OTHER, `${name}() was called ${when}`);
  }
}

/** Bytes of the region of short scratch places. */
const POOL_BYTES = 1 << 22;

/** To a multiple of 16. */
function roundUp(bytes: number): number {
  return (bytes + 15) & ~15;
}
