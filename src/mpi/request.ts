// Requests: sends and receives that are under way.
import * as L from "../../assembly/layout.js";
import { type MemRegion, PamiError, type ProgressOptions } from "../index.js";
import { type Request as Entry, MPI_PEER_ENDED, type RankGroup } from "./engine.js";
import { asPamiError, type CommSend, type Rank } from "./rank.js";
import { CANCELED, CommStatus, FROM_NOBODY, NO_MESSAGE } from "./status.js";

/**
 * A send or a receive that is under way, from `isend()`, `issend()` or `irecv()`. Its view must not be changed, or read, before
 * it is over. It makes progress while its task is in a call of MPI, or advances the context.
 */
export abstract class CommRequest {
  /** @internal */
  protected readonly rank: Rank;
  /** @internal */
  protected readonly call: string;
  #status: CommStatus | undefined;
  #error: unknown;

  /** @internal */
  constructor(rank: Rank, call: string) {
    this.rank = rank;
    this.call = call;
  }

  /** @internal Whether it is over, or the rank that it waits for has ended. */
  protected abstract hasResult(): boolean;
  /** @internal Takes the result, and gives back what the request has. @throws its error */
  protected abstract take(): CommStatus;
  /** @internal Takes it back. @returns whether it is over without a message */
  protected abstract takeBack(): boolean;

  /** @internal */
  get isOver(): boolean {
    return this.isSettled || this.hasResult();
  }

  /** @internal Whether its result was taken. */
  get isSettled(): boolean {
    return this.#status !== undefined;
  }

  /** @internal Waits for a condition about several requests. */
  whenOver(call: string, condition: () => boolean, options: ProgressOptions | undefined): Promise<void> {
    return this.rank.until(call, condition, options);
  }

  /** @internal As whenOver(), but blocks the thread. */
  blockUntil(condition: () => boolean): void {
    this.rank.block(condition);
  }

  /** @internal One round. */
  advance(): void {
    this.rank.engine.advance();
  }

  /** @internal The result of a request that is over. @throws its error */
  settle(): CommStatus {
    if (this.#status === undefined) {
      try {
        this.#status = this.take();
      } catch (error) {
        this.#status = NO_MESSAGE;
        this.#error = asPamiError(this.call, error);
      }
    }
    if (this.#error !== undefined) throw this.#error;
    return this.#status;
  }

  /**
   * Resolves once the request is over; a receive's view has its message then.
   * @throws PAMIR_TOO_LARGE (the message is longer than the view, which has its first bytes), PAMIR_SHUTDOWN (the other rank has
   *   ended); as `context.progress()`, and then the request goes on
   */
  async wait(options?: ProgressOptions): Promise<CommStatus> {
    if (!this.isOver) await this.rank.until(this.call, () => this.isOver, options);
    return this.settle();
  }

  /** As wait(), but blocks the thread. @throws as wait(), and as `context.advanceUntil()` */
  waitSync(): CommStatus {
    if (!this.isOver) this.rank.block(() => this.isOver);
    return this.settle();
  }

  /** Looks once whether the request is over, and makes progress. @returns undefined: it is not @throws as wait() */
  test(): CommStatus | undefined {
    if (!this.isOver) this.rank.engine.advance();
    return this.isOver ? this.settle() : undefined;
  }

  /** Takes back a receive that has no message yet: its wait gives a status with `isCanceled`. A send that has begun goes on. */
  cancel(): void {
    if (!this.isOver) this.takeBack();
  }
}

/** Resolves once all requests are over. @throws the first error in their order, once all are over; as `request.wait()` */
export async function waitall(requests: readonly CommRequest[], options?: ProgressOptions): Promise<CommStatus[]> {
  const first = requests.find((request) => !request.isOver);
  if (first !== undefined) await first.whenOver("waitall", () => areOver(requests), options);
  return settleAll(requests);
}

/** As waitall(), but blocks the thread. */
export function waitallSync(requests: readonly CommRequest[]): CommStatus[] {
  const first = requests.find((request) => !request.isOver);
  if (first !== undefined) first.blockUntil(() => areOver(requests));
  return settleAll(requests);
}

/**
 * Resolves once one of the requests is over, whose status was not taken by an earlier wait or test.
 * @returns its index and its status; undefined: all were taken
 * @throws as `request.wait()`
 */
export async function waitany(
  requests: readonly CommRequest[],
  options?: ProgressOptions,
): Promise<readonly [index: number, status: CommStatus] | undefined> {
  const open = requests.find((request) => !request.isSettled);
  if (open === undefined) return undefined;
  if (overOf(requests) < 0) await open.whenOver("waitany", () => overOf(requests) >= 0, options);
  return settleOne(requests, overOf(requests));
}

/** As waitany(), but blocks the thread. */
export function waitanySync(
  requests: readonly CommRequest[],
): readonly [index: number, status: CommStatus] | undefined {
  const open = requests.find((request) => !request.isSettled);
  if (open === undefined) return undefined;
  if (overOf(requests) < 0) open.blockUntil(() => overOf(requests) >= 0);
  return settleOne(requests, overOf(requests));
}

/** Looks once whether all requests are over. @returns undefined: they are not @throws as waitall() */
export function testall(requests: readonly CommRequest[]): CommStatus[] | undefined {
  const open = requests.find((request) => !request.isOver);
  if (open !== undefined) open.advance();
  return areOver(requests) ? settleAll(requests) : undefined;
}

function areOver(requests: readonly CommRequest[]): boolean {
  return requests.every(({ isOver }) => isOver);
}

/** Index of the first request that is over and whose result was not taken; -1: there is none. */
function overOf(requests: readonly CommRequest[]): number {
  return requests.findIndex((request) => !request.isSettled && request.isOver);
}

function settleOne(requests: readonly CommRequest[], index: number): readonly [number, CommStatus] {
  return [index, (requests[index] as CommRequest).settle()];
}

function settleAll(requests: readonly CommRequest[]): CommStatus[] {
  let failure: { readonly error: unknown } | undefined;
  const statuses = requests.map((request) => {
    try {
      return request.settle();
    } catch (error) {
      failure ??= { error };
      return NO_MESSAGE;
    }
  });
  if (failure !== undefined) throw failure.error;
  return statuses;
}

/** A request to or from PROC_NULL. */
export class NullRequest extends CommRequest {
  readonly #result: CommStatus;

  constructor(rank: Rank, call: string, isReceive: boolean) {
    super(rank, call);
    this.#result = isReceive ? FROM_NOBODY : NO_MESSAGE;
  }

  protected hasResult(): boolean {
    return true;
  }

  protected take(): CommStatus {
    return this.#result;
  }

  protected takeBack(): boolean {
    return false;
  }
}

export class SendingRequest extends CommRequest {
  readonly #send: CommSend;
  /** The copy that is sent. */
  readonly #place: MemRegion | undefined;

  constructor(rank: Rank, call: string, send: CommSend, place: MemRegion | undefined) {
    super(rank, call);
    this.#send = send;
    this.#place = place;
  }

  protected hasResult(): boolean {
    const { entry } = this.#send;
    return entry >= 0 && this.rank.engine.isOver(entry);
  }

  protected take(): CommStatus {
    const { engine, places } = this.rank;
    const { entry, failure, to } = this.#send;
    const error = entry > 0 ? engine.field(entry, L.MPI_REQUEST_ERROR_OFFSET) : 0;
    engine.free(entry);
    if (this.#place !== undefined) places.give(this.#place);
    if (failure !== undefined) throw failure;
    if (error !== 0) throw new PamiError("PAMIR_SHUTDOWN", `${this.call}(): rank ${to} has ended`);
    return NO_MESSAGE;
  }

  protected takeBack(): boolean {
    return false;
  }
}

export class ReceivingRequest extends CommRequest {
  readonly #group: RankGroup;
  /** A rank, or ANY_SOURCE. */
  readonly #from: number;
  readonly #view: Uint8Array;
  readonly #entry: Entry;
  /** Where the message goes at first; undefined: into the view. */
  readonly #place: MemRegion | undefined;

  constructor(
    rank: Rank,
    call: string,
    { group, from, tag, view }: { group: RankGroup; from: number; tag: number; view: Uint8Array },
  ) {
    super(rank, call);
    const { engine, places } = rank;
    this.#group = group;
    this.#from = from;
    this.#view = view;
    const isOwn = view.buffer === engine.bytes.buffer && engine.regionAt(view) !== undefined;
    this.#place = isOwn || view.length === 0 ? undefined : places.take(view.length);
    const buffer = this.#place?.bytes.byteOffset ?? (isOwn ? view.byteOffset : 0);
    this.#entry = engine.receive(group, from, tag, buffer, view.length);
  }

  protected hasResult(): boolean {
    const { engine } = this.rank;
    const entry = this.#entry;
    return engine.isOver(entry) || (this.#from >= 0 && engine.isLost(this.#group, this.#from, entry));
  }

  protected take(): CommStatus {
    const { engine, places } = this.rank;
    const entry = this.#entry;
    const state = engine.state(entry);
    const [source, tag, whole, error] = [
      L.MPI_REQUEST_SOURCE_OFFSET,
      L.MPI_REQUEST_TAG_OFFSET,
      L.MPI_REQUEST_BYTES_OFFSET,
      L.MPI_REQUEST_ERROR_OFFSET,
    ].map((offset) => engine.field(entry, offset)) as [number, number, number, number];
    const bytes = Math.min(whole >>> 0, this.#view.length);
    const isDone = state === L.MPI_REQUEST_DONE;
    const isLost = !isDone || error === MPI_PEER_ENDED;
    engine.free(entry);
    if (this.#place !== undefined) {
      if (!isLost) this.#view.set(this.#place.bytes.subarray(0, bytes));
      places.give(this.#place);
    }
    if (state === L.MPI_REQUEST_CANCELED) return CANCELED;
    if (isLost) {
      throw new PamiError("PAMIR_SHUTDOWN", `${this.call}(): rank ${isDone ? source : this.#from} has ended`);
    }
    if (error === 0) return new CommStatus(source, tag, bytes);
    const text = `the message from rank ${source} with tag ${tag} has ${whole >>> 0} bytes, the view ${this.#view.length}`;
    throw new PamiError("PAMIR_TOO_LARGE", `${this.call}() of rank ${this.#group.rank}: ${text}`);
  }

  protected takeBack(): boolean {
    return this.rank.engine.cancel(this.#entry);
  }

  /** Takes the receive back after its wait was given up. @returns whether no message was received */
  giveUp(): boolean {
    if (this.isSettled) return true;
    if (this.isOver) return false;
    return this.takeBack() && this.settle() === CANCELED;
  }
}
