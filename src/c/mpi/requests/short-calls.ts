// The short ways of a program's calls: the wasm module of assembly/calls/, and what that reads. It may go its ways while nothing
// but messages of MPI is under way; so each call of TypeScript closes them, and opens them at its end.
import * as L from "../../../../assembly/layout.js";
import { ELEMENT_TYPES, OPERATIONS } from "../../../core/reduction.js";
import type { Context, MemRegion } from "../../../index.js";
import { reduceImport } from "../../../kernel/collective.js";
import { type ShortCallTable, shortCalls } from "../../../kernel/mpi-calls.js";
import { MPI_DISPATCH } from "../../../mpi/engine.js";
import type { ProgramPlace } from "../../place.js";
import { FIRST_OWN } from "../constants.js";
import type { CommObject, MpiState } from "../state.js";
import { type Datatype, isDense } from "../types.js";
import { finishCall } from "./requests.js";

/** Looks of a wait before TypeScript waits: some 10 µs, in which an answer of a task that runs comes. */
const LOOKS = 1024;
const HANDLE_INDICES = 2 ** 20;
/** Waits that were won in the kernels, and that a spin's statistics hear of at once. */
const WON_MAX = 32;
/** Milliseconds of a spin, as a context's default: all that matters here is that it spins. */
const SPIN_MS = 0.05;
/** Bytes of the block, of the request of all sends that are over at once, of the tables, and of partial results. */
const REQUEST_AT = L.MPI_CALLS_SIZE;
const COMMS_AT = REQUEST_AT + L.MPI_REQUEST_SIZE;
const TYPES_AT = COMMS_AT + (L.MPI_CALLS_HANDLES << L.MPI_GROUP_SHIFT);
const KNOWN_AT = TYPES_AT + 4 * L.MPI_CALLS_HANDLES;
const PARTIALS_AT = KNOWN_AT + (L.MPI_KNOWN_COUNT << L.MPI_KNOWN_SHIFT);
const WHOLE = PARTIALS_AT + L.MPI_CALLS_PARTIALS_BYTES;
/** Bytes of a region for the ordinals of several communicators. */
const PLACES_BYTES = 16_384;

export class ShortCalls {
  readonly #state: MpiState;
  readonly #block: number;
  readonly #host: Context["host"];
  /** Pointers to the MEETING block's place and the ordinals of ranks, and how many words that are, by the handles of communicators. */
  readonly #peers = new Map<number, { readonly at: number; readonly count: number }>();
  /** Places of such ordinals that are free again, by how many go there. */
  readonly #free = new Map<number, number[]>();
  /** Where the next new place lies, and the end of that region: a region for each would use up a task's regions. */
  #next = 0;
  #end = 0;
  /** How many operations were entered into the table of those that are known. */
  #learned = 0;

  /** @param place of the program @param arena the region in which it lies */
  constructor(state: MpiState, { stackGuard = 0, nullGuard = stackGuard }: ProgramPlace, arena: MemRegion) {
    this.#state = state;
    const { engine, context } = state;
    const { core, task } = context.host;
    this.#host = context.host;
    const { bytes } = engine.scratch(WHOLE);
    bytes.fill(0);
    const block = bytes.byteOffset;
    this.#block = block;
    const given: readonly (readonly [offset: number, value: number])[] = [
      [L.MPI_CALLS_ENGINE_OFFSET, engine.pointer],
      [L.MPI_CALLS_JOB_OFFSET, task.map.job],
      [L.MPI_CALLS_CONTEXT_OFFSET, core.block],
      [L.MPI_CALLS_LANES_OFFSET, this.#shareLanes()],
      [L.MPI_CALLS_LOCALS_OFFSET, task.map.locals * task.map.contexts],
      [L.MPI_CALLS_FIRST_OFFSET, task.addresses.first],
      [L.MPI_CALLS_CONTEXTS_OFFSET, task.map.contexts],
      [L.MPI_CALLS_COMMS_OFFSET, block + COMMS_AT],
      [L.MPI_CALLS_TYPES_OFFSET, block + TYPES_AT],
      [L.MPI_CALLS_GUARD_OFFSET, stackGuard],
      [L.MPI_CALLS_NULL_GUARD_OFFSET, nullGuard],
      [L.MPI_CALLS_REGION_INDEX_OFFSET, arena.handle % HANDLE_INDICES],
      [L.MPI_CALLS_GENERATION_OFFSET, Math.floor(arena.handle / HANDLE_INDICES)],
      [L.MPI_CALLS_ARENA_OFFSET, arena.bytes.byteOffset],
      [L.MPI_CALLS_ARENA_BYTES_OFFSET, arena.length],
      [L.MPI_CALLS_EAGER_MAX_OFFSET, engine.eagerMax],
      [L.MPI_CALLS_SENT_AT_ONCE_OFFSET, block + REQUEST_AT],
      [L.MPI_CALLS_KNOWN_OFFSET, block + KNOWN_AT],
      [L.MPI_CALLS_PARTIALS_OFFSET, block + PARTIALS_AT],
      [REQUEST_AT + L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_DONE],
      [REQUEST_AT + L.MPI_REQUEST_KIND_OFFSET, L.MPI_SEND],
    ];
    for (const [offset, value] of given) this.#set(offset, value);
    state.requests.sentAtOnce = block + REQUEST_AT;
    this.#follow(state);
    state.short = this;
  }

  /** The calls that have a short way. @param long all calls, by their names */
  over(long: Record<string, (...given: number[]) => number>): ShortCallTable {
    const state = this.#state;
    const { memory } = state.context.host.task;
    const finishing = (name: string) =>
      state.guarded(name, 2, (request, status) =>
        finishCall(state, state.requests.get(request as number), status as number),
      );
    const [send, receive] = [finishing("MPI_Send"), finishing("MPI_Recv")];
    return shortCalls(memory, this.#block, {
      ...long,
      reduce: reduceImport(memory.wasm as WebAssembly.Memory),
      endRound: (place: number, found: number) => {
        this.close();
        this.#endRound(place, found);
        this.open();
      },
      pull: (request: number) => {
        this.close();
        state.engine.pull(request);
        this.open();
      },
      rest: () => {
        this.close();
        state.engine.rest();
        this.open();
      },
      finish: (request: number, status: number, comm: number, isReceive: number) =>
        (isReceive === 1 ? receive : send)(request, status, comm),
    });
  }

  /** Calls go the long way until open(): TypeScript runs. */
  close(): void {
    this.#set(L.MPI_CALLS_OPEN_OFFSET, 0);
  }

  /** Calls go the short way, if nothing but messages of MPI is under way. */
  open(): void {
    const { phase, engine, hasRevoked } = this.#state;
    const { words } = engine;
    const at = this.#block >>> 2;
    const isOpen = phase === "running" && !hasRevoked && this.#isPlain;
    words[at + (L.MPI_CALLS_OPEN_OFFSET >>> 2)] = +isOpen;
    if (!isOpen) return;
    const won = words[at + (L.MPI_CALLS_WON_OFFSET >>> 2)] as number;
    words[at + (L.MPI_CALLS_WON_OFFSET >>> 2)] = 0;
    words[at + (L.MPI_CALLS_LOOKS_OFFSET >>> 2)] = this.#paysToLook(won) ? LOOKS : 1;
  }

  /** Whether all that comes is for the kernels alone: nothing else is under way, and no one watches. */
  get #isPlain(): boolean {
    const { core, task } = this.#host;
    const { paused, ended } = core.receiver;
    const { engine } = this.#state;
    // Behind the end of a rank, each call looks whether it can still succeed.
    const isIdle =
      !engine.owesAnswers && !engine.hasLostRanks && core.activity.busy === 0 && !core.isAdvancing && !core.isClosed;
    const isObserved = task.observers.witness.tracer !== undefined || task.observers.isStrict;
    return isIdle && !isObserved && !ended.hasOrphans && paused.direct[MPI_DISPATCH] !== undefined;
  }

  /**
   * Ends a round that the kernels have begun: handles its batch from the event `place` on.
   * @param found what `advance()` of the kernels has returned
   */
  #endRound(place: number, found: number): void {
    const { core } = this.#host;
    const errors: unknown[] = [];
    core.isAdvancing = true;
    core.receiver.endBatch(place, found, errors);
    core.isAdvancing = false;
    if (errors.length > 0) throw errors[0];
    // A further round sees a notice that has moved, and tasks that have ended.
    this.#state.engine.advance();
  }

  /** Has the context keep the lanes of its direct path in the memory. @returns pointer to them, by ordinal */
  #shareLanes(): number {
    const { map } = this.#host.task;
    const { bytes } = this.#state.engine.scratch(4 * map.tasks * map.contexts);
    const lanes = new Uint32Array(bytes.buffer, bytes.byteOffset, map.tasks * map.contexts);
    const { sender } = this.#host.core;
    // The direct path opens again for a target with the next message to that.
    sender.direct = lanes;
    sender.waiting.direct = lanes;
    return bytes.byteOffset;
  }

  /** Whether a wait that looks for a while pays now. @param won waits that have paid since the last call */
  #paysToLook(won: number): boolean {
    const { spins, task } = this.#host;
    for (let left = Math.min(won, WON_MAX); left > 0; left--) task.parker.won(spins);
    return task.parker.mayLook(spins, SPIN_MS, false);
  }

  #set(offset: number, value: number): void {
    this.#state.engine.words[(this.#block + offset) >>> 2] = value;
  }

  /** Keeps both tables as the program's objects are. */
  #follow({ comms, types }: MpiState): void {
    const known = comms.onChange;
    comms.onChange = (handle, object) => {
      known?.(handle, object);
      this.#setComm(handle, object);
    };
    types.onChange = (handle, type) => this.#setType(handle, type);
    for (const [handle, object] of comms.entries()) this.#setComm(handle, object);
    for (const [handle, type] of types.entries()) if (type.isCommitted) this.#setType(handle, type);
  }

  /**
   * The next collective operations of a communicator may go the short way. Its kernels know an operation by its arguments: what
   * the long way has checked, and the signature, are the same each time.
   */
  learn(name: string, given: readonly number[]): void {
    const { comms, engine } = this.#state;
    const { words } = engine;
    const handle = given[given.length - 1] as number;
    const peers = this.#peers.get(handle);
    if (peers === undefined) return;
    const { comm } = comms.get(handle);
    const meeting = comm.geometry.lend();
    words[peers.at >>> 2] = meeting;
    if (meeting === 0 || words[(meeting + L.MEETING_IS_SHORT_OFFSET) >>> 2] === 0) return;
    const signature = words[(meeting + L.MEETING_SIGNATURE_OFFSET) >>> 2] as number;
    if (name === "Barrier") this.#know(comm.size, 0, 0, 0, signature, 0, 0, 0);
    else if (name === "Allreduce") {
      const [, , count, type, op] = given as [number, number, number, number, number];
      const { element } = this.#state.types.get(type);
      const operation = this.#state.operation(op);
      // Handles of the program's own objects may be those of others later.
      if (type >= FIRST_OWN || element === undefined || typeof operation !== "string") return;
      const { number, bytes } = ELEMENT_TYPES[element];
      this.#know(comm.size, type, op, count, signature, OPERATIONS[operation], number, count * bytes);
    }
  }

  /** Enters the words of an MPI_KNOWN entry, unless it is there. */
  #know(...entry: readonly number[]): void {
    const { words } = this.#state.engine;
    const first = (this.#block + KNOWN_AT) >>> 2;
    const size = 1 << (L.MPI_KNOWN_SHIFT - 2);
    for (let at = first; at < first + L.MPI_KNOWN_COUNT * size; at += size)
      if (entry.every((word, place) => words[at + place] === word)) return;
    words.set(entry, first + (this.#learned++ % L.MPI_KNOWN_COUNT) * size);
  }

  #setComm(handle: number, object: CommObject | undefined): void {
    const { engine, context } = this.#state;
    const { words } = engine;
    const place = placeOf(handle);
    if (place < 0) return;
    const entry = COMMS_AT + (place << L.MPI_GROUP_SHIFT);
    this.#set(entry + L.MPI_GROUP_SIZE_OFFSET, 0);
    this.#givePlace(handle);
    if (object === undefined) return;
    const { comm } = object;
    const { map, addresses } = context.host.task;
    const locals = map.locals * map.contexts;
    const at = this.#takePlace(handle, 1 + comm.size);
    words[at >>> 2] = 0;
    comm.endpoints.forEach((endpoint, rank) => {
      const ordinal = addresses.ordinalOf(endpoint);
      words[(at >>> 2) + 1 + rank] = ordinal >= 0 && ordinal < locals ? ordinal : L.NONE;
    });
    this.#set(entry + L.MPI_GROUP_NUMBER_OFFSET, comm.number);
    this.#set(entry + L.MPI_GROUP_RANK_OFFSET, comm.rank);
    this.#set(entry + L.MPI_GROUP_PEERS_OFFSET, at + 4);
    this.#set(entry + L.MPI_GROUP_SIZE_OFFSET, comm.size);
  }

  /** @returns pointer to `count` words for a communicator */
  #takePlace(handle: number, count: number): number {
    let at = this.#free.get(count)?.pop();
    if (at === undefined) {
      if (this.#end - this.#next < 4 * count) {
        const { bytes } = this.#state.engine.scratch(Math.max(PLACES_BYTES, 4 * count));
        this.#next = bytes.byteOffset;
        this.#end = this.#next + bytes.length;
      }
      at = this.#next;
      this.#next += 4 * count;
    }
    this.#peers.set(handle, { at, count });
    return at;
  }

  #givePlace(handle: number): void {
    const place = this.#peers.get(handle);
    if (place === undefined) return;
    this.#peers.delete(handle);
    const free = this.#free.get(place.count);
    if (free === undefined) this.#free.set(place.count, [place.at]);
    else free.push(place.at);
  }

  #setType(handle: number, type: Datatype | undefined): void {
    const place = placeOf(handle);
    if (place < 0) return;
    this.#set(TYPES_AT + 4 * place, type !== undefined && isDense(type) ? type.bytes : 0);
  }
}

/** Place of a handle in the tables; -1: it has none. */
function placeOf(handle: number): number {
  if (handle < L.MPI_CALLS_PREDEFINED) return handle;
  const place = handle - L.MPI_CALLS_FIRST_OWN + L.MPI_CALLS_PREDEFINED;
  return handle >= L.MPI_CALLS_FIRST_OWN && place < L.MPI_CALLS_HANDLES ? place : -1;
}
