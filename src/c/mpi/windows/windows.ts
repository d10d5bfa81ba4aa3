// All windows of a program: how they are made and freed together, and messages between their ranks.
import {
  EAGAIN,
  type Endpoint,
  type Geometry,
  type MemRegion,
  type Message,
  SUCCESS as OK,
  type RegionHandle,
  type Result,
} from "../../../index.js";
import { MPI_DISPATCH } from "../../../mpi/engine.js";
import { ERR, ERRORS_ARE_FATAL, FLAVOR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import { HandleTable } from "../handle-table.js";
import type { MpiState } from "../state.js";
import { ended, Transfers } from "./transfers.js";
import { type RankMemory, Window } from "./window.js";

/** Dispatch id of the messages between ranks of windows. */
const WINDOW_DISPATCH = MPI_DISPATCH - 1;
/** Words of a message's header: what it is, the number of the window, the rank that sends it, and five that depend on the first. */
const HEADER_WORDS = 8;
/** What messages are. */
export const MESSAGE = { POST: 1, COMPLETE: 2, ACCUMULATE: 3, ANSWER: 4 } as const;
/** Handles and addresses of a rank's part, as it tells them to the others: eight numbers. */
const TOLD = 8;
/** Pointers of a program are signed numbers. */
const ADDRESSES = 2 ** 31;

/** Memory that a rank gives to a window. */
export interface GivenMemory {
  readonly base: number;
  readonly size: number;
  readonly unit: number;
  readonly region: MemRegion | undefined;
}

/** What a message has beside its kind. */
interface Contents {
  /** Default: the endpoint of the rank. */
  readonly to?: Endpoint;
  /** Up to five. */
  readonly words?: readonly number[];
  readonly payload?: Uint8Array;
}

/** What is done with a message, once it is known to whose window it belongs. */
type Handler = (window: Window, origin: number, message: Message) => void;

export class WindowSet {
  readonly state: MpiState;
  readonly transfers: Transfers;
  readonly table = new HandleTable<Window>("window", ERR.WIN);
  readonly #byNumber = new Map<number, Window>();
  readonly #handlers = new Map<number, Handler>();
  /** The next number that no window of this task has had. */
  #next = 1;
  /** Called before a window is freed. */
  onFree: (handle: number) => void = () => {};

  constructor(state: MpiState) {
    this.state = state;
    this.transfers = new Transfers(state);
    state.context.dispatch(WINDOW_DISPATCH, (message) => this.#arrived(message));
    this.hear(MESSAGE.POST, (window, origin) => (window.posts[origin] as number)++);
    this.hear(MESSAGE.COMPLETE, (window, origin) => (window.completes[origin] as number)++);
  }

  /** Makes a window of all ranks of a communicator, which call this together. @returns its handle */
  create(commHandle: number, flavor: number, give: (geometry: Geometry | undefined) => GivenMemory): number {
    const { state } = this;
    const { comm } = state.comms.get(commHandle);
    const { endpoints, rank } = comm;
    const geometry = endpoints.length > 1 ? state.client.createGeometrySync(endpoints) : undefined;
    const given = give(geometry);
    // The word of the exclusive lock, and one for each rank that may have a shared one.
    const locks = state.client.createRegion(4 * (endpoints.length + 1));
    locks.bytes.fill(0);
    const told = new Float64Array(TOLD * endpoints.length);
    const region = given.region ?? locks;
    const own = [region.handle, region.bytes.byteOffset, given.base, given.size, given.unit, locks.handle, this.#next];
    told.set(own, TOLD * rank);
    if (geometry !== undefined) {
      const send = told.slice(TOLD * rank, TOLD * rank + TOLD);
      check(geometry, "a new window", geometry.allgatherSync({ send, receive: told }));
    }
    const numbers = endpoints.map((_, other) => told[TOLD * other + 6] as number);
    const number = Math.max(...numbers);
    this.#next = number + 1;
    const locals = new Set(state.client.localTasks);
    const parts = endpoints.map((to, other): RankMemory => {
      const [handle, regionBase, base, size, unit, lockHandle] = told.subarray(TOLD * other) as unknown as number[];
      return {
        owner: to,
        region: handle as RegionHandle,
        regionBase: regionBase as number,
        base: base as number,
        size: size as number,
        unit: unit as number,
        isLocal: locals.has(state.client.taskOf(to)),
        locks: lockHandle as RegionHandle,
      };
    });
    const made = { number, rank, endpoints, flavor, geometry, locks, own: ownOf(flavor, given, rank) };
    const window = new Window({ ...made, parts: flavor === FLAVOR.SHARED ? shared(parts) : parts }, ERRORS_ARE_FATAL);
    this.#byNumber.set(number, window);
    const handle = this.table.add(window);
    // No rank may use the window before all others know of it.
    this.barrier(window, "a new window");
    return handle;
  }

  /** Memory for a window, of this rank's own. @throws MpiFailure MPI_ERR_NO_MEM */
  allocate(bytes: number): MemRegion {
    let region: MemRegion | undefined;
    try {
      region = this.state.engine.scratch(bytes);
    } catch (error) {
      if ((error as { code?: string }).code !== "PAMIR_NO_MEMORY") throw error;
    }
    const end = region && region.bytes.byteOffset + region.length;
    if (region !== undefined && (end as number) <= ADDRESSES) return region;
    if (region !== undefined) this.state.engine.freeScratch(region);
    const why = end && `it would end at address ${end}, the limit is ${ADDRESSES}: use MPI_Win_create() and malloc()`;
    throw new MpiFailure(
      ERR.NO_MEM,
      `no memory for a window of ${bytes} bytes: ${why ?? "give the job more heapBytes (--heap-bytes)"}`,
    );
  }

  /** Frees a window. All its ranks call this together. */
  free(handle: number): void {
    const window = this.table.get(handle);
    window.epochs.checkNone("MPI_Win_free");
    this.transfers.flushAll(window);
    let failure: unknown;
    try {
      this.barrier(window, "MPI_Win_free");
    } catch (error) {
      failure = error;
    }
    this.onFree(handle);
    window.geometry?.close();
    window.locks.close();
    if (window.own !== undefined) this.state.engine.freeScratch(window.own);
    this.#byNumber.delete(window.number);
    this.table.remove(handle);
    if (failure !== undefined) throw failure;
  }

  /** Waits for all ranks of a window. @throws MpiFailure MPIX_ERR_PROC_FAILED */
  barrier({ geometry }: Window, call: string): void {
    if (geometry !== undefined) check(geometry, call, geometry.barrierSync());
  }

  /** Sets what is done with messages of a kind. */
  hear(kind: number, handler: Handler): void {
    this.#handlers.set(kind, handler);
  }

  /** Sends a message to a rank of a window. @throws MpiFailure MPIX_ERR_PROC_FAILED */
  tell(window: Window, rank: number, kind: number, more: Contents = {}): void {
    const { to = window.endpoints[rank] as Endpoint, payload } = more;
    const header = headerOf(window, kind, more.words);
    const result = this.state.context.sendSync({ to, dispatch: WINDOW_DISPATCH, header, payload });
    if (result !== OK) throw ended(rank);
  }

  /** Sends a message from a handler, which can't wait for room. */
  answer(window: Window, to: Endpoint, kind: number, words: readonly number[], payload: Uint8Array): void {
    const { context } = this.state;
    const header = headerOf(window, kind, words);
    const send = (): Result => context.send({ to, dispatch: WINDOW_DISPATCH, header, payload });
    // Without room, the context calls it again.
    if (send() === EAGAIN) context.post(send);
  }

  #arrived(message: Message): void {
    const window = this.#byNumber.get(message.headerWord(4));
    const origin = message.headerWord(8);
    // A rank that ended in between may have sent something to a window that is freed.
    if (window === undefined || window.endpoints[origin] !== message.origin) return;
    this.#handlers.get(message.headerWord(0))?.(window, origin, message);
  }
}

function headerOf(window: Window, kind: number, words: readonly number[] = []): Int32Array {
  const header = new Int32Array(HEADER_WORDS);
  header.set([kind, window.number, window.rank, ...words]);
  return header;
}

/** The memory that a window frees with itself. */
function ownOf(flavor: number, { region }: GivenMemory, rank: number): MemRegion | undefined {
  if (flavor === FLAVOR.ALLOCATE) return region;
  return flavor === FLAVOR.SHARED && rank === 0 ? region : undefined;
}

/** Parts of one region, which the first rank has made: one behind the other. */
function shared(parts: readonly RankMemory[]): RankMemory[] {
  const [{ owner, region, regionBase }] = parts as [RankMemory];
  let base = regionBase;
  return parts.map((part) => {
    const placed = { ...part, owner, region, regionBase, base };
    base += part.size;
    return placed;
  });
}

/** @throws MpiFailure unless a collective operation has succeeded */
function check({ lastError }: Geometry, call: string, result: Result): void {
  if (result === OK) return;
  const { code, message } = (lastError ?? {}) as { code?: string; message?: string };
  throw new MpiFailure(code === "PAMIR_SHUTDOWN" ? ERR.PROC_FAILED : ERR.OTHER, message ?? `${call} has failed`);
}
