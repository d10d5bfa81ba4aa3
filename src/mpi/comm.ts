// Communicators as a program in TypeScript has them: messages, and what makes other communicators. Source: MPI 5.0, chapters 3
// and 7.
import * as L from "../../assembly/layout.js";
import { PamiError, type ProgressOptions } from "../index.js";
import { endProcess } from "../support/host.js";
import { bytesOf } from "./buffers.js";
import { CommCollectives } from "./collectives.js";
import type { Communicator } from "./communicator.js";
import { ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB } from "./constants.js";
import { ANY, NO_ROOM } from "./engine.js";
import { CommGroup } from "./group.js";
import type { Rank } from "./rank.js";
import { type CommRequest, NullRequest, ReceivingRequest, SendingRequest } from "./request.js";
import { CommStatus, FROM_NOBODY } from "./status.js";

/** What `comm.sendrecv` sends. */
export interface SendPart {
  /** What is sent. */
  readonly view: ArrayBufferView;
  /** A rank. */
  readonly to: number;
  /** Default: 0. */
  readonly tag?: number | undefined;
}

/** What `comm.sendrecv` receives. */
export interface ReceivePart {
  /** Where the message goes. */
  readonly view: ArrayBufferView;
  /** A rank (default: ANY_SOURCE). */
  readonly from?: number | undefined;
  /** Default: ANY_TAG. */
  readonly tag?: number | undefined;
}

/**
 * A communicator: ranks that exchange messages which no other communicator gets. A view that lies in a region of this task
 * (`client.createRegion()`) is sent from, and received to, where it is; another one is copied once more.
 */
export class Comm extends CommCollectives {
  /** @internal */
  constructor(rank: Rank, communicator: Communicator) {
    super(rank, communicator);
  }

  /** Its ranks, in their order. */
  get group(): CommGroup {
    return new CommGroup(this.communicator.endpoints, this.own.engine.context.endpoint);
  }

  /**
   * Sends a view to a rank. Resolves once the view may be changed: the message is out, or received.
   * @param tag from 0 to TAG_UB
   * @throws PAMIR_INVAL, PAMIR_CLOSED, PAMIR_NO_MEMORY; PAMIR_SHUTDOWN (the rank has ended)
   */
  async send(view: ArrayBufferView, to: number, tag = 0): Promise<void> {
    await this.#send("send", view, to, tag, false).wait();
  }

  /** As send(), but blocks the thread. @throws as send(), and as `context.advanceUntil()` */
  sendSync(view: ArrayBufferView, to: number, tag = 0): void {
    this.own.checkMayBlock();
    this.#send("sendSync", view, to, tag, false).waitSync();
  }

  /** As send(), but resolves only once the message is being received. */
  async ssend(view: ArrayBufferView, to: number, tag = 0): Promise<void> {
    await this.#send("ssend", view, to, tag, true).wait();
  }

  /** As ssend(), but blocks the thread. */
  ssendSync(view: ArrayBufferView, to: number, tag = 0): void {
    this.own.checkMayBlock();
    this.#send("ssendSync", view, to, tag, true).waitSync();
  }

  /** Begins a send, and returns its request. @throws as send() */
  isend(view: ArrayBufferView, to: number, tag = 0): CommRequest {
    return this.#send("isend", view, to, tag, false);
  }

  /** Begins a send as ssend(), and returns its request. */
  issend(view: ArrayBufferView, to: number, tag = 0): CommRequest {
    return this.#send("issend", view, to, tag, true);
  }

  /**
   * Receives a message into a view, which may be longer than the message. Messages of one rank with fitting tags are received in
   * the order in which they were sent. If it rejects by `options`, no message was received.
   * @throws as `request.wait()`; PAMIR_INVAL, PAMIR_CLOSED
   */
  async recv(view: ArrayBufferView, from = ANY_SOURCE, tag = ANY_TAG, options?: ProgressOptions): Promise<CommStatus> {
    const request = this.#receive("recv", view, from, tag);
    try {
      return await request.wait(options);
    } catch (error) {
      if (options === undefined || !(request instanceof ReceivingRequest) || request.giveUp()) throw error;
      return request.wait();
    }
  }

  /** As recv(), but blocks the thread. @throws as recv(), and as `context.advanceUntil()` */
  recvSync(view: ArrayBufferView, from = ANY_SOURCE, tag = ANY_TAG): CommStatus {
    this.own.checkMayBlock();
    return this.#receive("recvSync", view, from, tag).waitSync();
  }

  /** Begins a receive, and returns its request. @throws as recv() */
  irecv(view: ArrayBufferView, from = ANY_SOURCE, tag = ANY_TAG): CommRequest {
    return this.#receive("irecv", view, from, tag);
  }

  /** Sends a view and receives into another, at the same time. @returns the status of the receive @throws as send() and recv() */
  async sendrecv(send: SendPart, receive: ReceivePart): Promise<CommStatus> {
    const [receiving, sending] = this.#exchange("sendrecv", send, receive);
    await sending.wait();
    return receiving.wait();
  }

  /** As sendrecv(), but blocks the thread. */
  sendrecvSync(send: SendPart, receive: ReceivePart): CommStatus {
    this.own.checkMayBlock();
    const [receiving, sending] = this.#exchange("sendrecvSync", send, receive);
    sending.waitSync();
    return receiving.waitSync();
  }

  /**
   * Resolves once a message waits that `recv(view, from, tag)` would receive, and says which; it is not received.
   * @throws PAMIR_SHUTDOWN (the rank has ended); PAMIR_INVAL, PAMIR_CLOSED; as `context.progress()`
   */
  async probe(from = ANY_SOURCE, tag = ANY_TAG, options?: ProgressOptions): Promise<CommStatus> {
    this.#check("probe", from, tag, true);
    if (from === PROC_NULL) return FROM_NOBODY;
    let stored = this.#probed(from, tag);
    if (stored === 0) {
      await this.own.until(
        "probe",
        () => {
          stored = this.#probed(from, tag);
          return stored !== 0 || this.#hasEnded(from);
        },
        options,
      );
    }
    return this.#statusOf("probe", stored, from);
  }

  /** As probe(), but blocks the thread. */
  probeSync(from = ANY_SOURCE, tag = ANY_TAG): CommStatus {
    this.#check("probeSync", from, tag, true);
    this.own.checkMayBlock();
    if (from === PROC_NULL) return FROM_NOBODY;
    let stored = this.#probed(from, tag);
    if (stored === 0) {
      this.own.block(() => {
        stored = this.#probed(from, tag);
        return stored !== 0 || this.#hasEnded(from);
      });
    }
    return this.#statusOf("probeSync", stored, from);
  }

  /** Looks once for a message, as probe(), and makes progress. @returns undefined: there is none */
  iprobe(from = ANY_SOURCE, tag = ANY_TAG): CommStatus | undefined {
    this.#check("iprobe", from, tag, true);
    if (from === PROC_NULL) return FROM_NOBODY;
    this.own.engine.advance();
    const stored = this.#probed(from, tag);
    return stored === 0 ? undefined : this.#statusOf("iprobe", stored, from);
  }

  /** Makes a communicator of the same ranks. All ranks call it. @throws as `client.createGeometry()` */
  async dup(): Promise<Comm> {
    this.checkOpen("dup");
    return new Comm(this.own, await this.communicator.duplicateAsync());
  }

  /** As dup(), but blocks the thread. */
  dupSync(): Comm {
    this.checkOpen("dupSync");
    return new Comm(this.own, this.communicator.duplicate());
  }

  /**
   * Makes a communicator of the ranks with the same color. All ranks call it.
   * @param color from 0; undefined: this rank is in none of the new ones, and gets undefined
   * @param key orders the ranks of the new one; equal keys keep the order of ranks
   */
  async split(color: number | undefined, key = 0): Promise<Comm | undefined> {
    this.#checkSplit("split", color, key);
    return this.#made(await this.communicator.splitAsync(color, key));
  }

  /** As split(), but blocks the thread. */
  splitSync(color: number | undefined, key = 0): Comm | undefined {
    this.#checkSplit("splitSync", color, key);
    return this.#made(this.communicator.split(color, key));
  }

  /**
   * Makes a communicator of the ranks of a group. All ranks of this one call it; those that are in no group get undefined.
   * @param group the same at all its ranks; a part of `comm.group`
   */
  async create(group: CommGroup): Promise<Comm | undefined> {
    return this.#made(await this.communicator.createAsync(this.#membersOf("create", group)));
  }

  /** As create(), but blocks the thread. */
  createSync(group: CommGroup): Comm | undefined {
    return this.#made(this.communicator.create(this.#membersOf("createSync", group)));
  }

  /**
   * Ends this rank as one that has failed: by `onError: "abort"` and by `pamir run`, the others end, too. In Node, its worker or
   * process exits with the code; in a browser, this call throws, and its worker must not catch the error.
   * @param code from 1 to 255
   * @throws PAMIR_SHUTDOWN in a browser; PAMIR_INVAL
   */
  abort(code = 1): never {
    if (!(Number.isInteger(code) && code >= 1 && code <= 255))
      throw new PamiError("PAMIR_INVAL", `abort(): the code is ${String(code)}, not one of 1 to 255`);
    endProcess(code);
    throw new PamiError("PAMIR_SHUTDOWN", `abort(${code}) of rank ${this.rank}`);
  }

  /** Gives the communicator back, once all its messages and operations are over. Not for `world` and `self`. */
  free(): void {
    if (this.communicator.number < 2) throw new PamiError("PAMIR_INVAL", "free(): world and self stay");
    this.close();
  }

  #made(communicator: Communicator | undefined): Comm | undefined {
    return communicator && new Comm(this.own, communicator);
  }

  #checkSplit(call: string, color: number | undefined, key: number): void {
    this.checkOpen(call);
    if (color !== undefined && !(Number.isInteger(color) && color >= 0 && color < 2 ** 31))
      throw new PamiError("PAMIR_INVAL", `${call}(): the color is ${String(color)}, not one of 0 to 2147483647`);
    if (key !== (key | 0))
      throw new PamiError("PAMIR_INVAL", `${call}(): the key is ${String(key)}, not a 32-bit integer`);
  }

  #membersOf(call: string, group: CommGroup): readonly number[] | undefined {
    this.checkOpen(call);
    const foreign = group.endpoints.findIndex((endpoint) => !this.communicator.endpoints.includes(endpoint));
    if (foreign >= 0)
      throw new PamiError("PAMIR_INVAL", `${call}(): rank ${foreign} of the group is not in the communicator`);
    return group.rank === undefined ? undefined : group.endpoints;
  }

  #send(call: string, view: ArrayBufferView, to: number, tag: number, synchronous: boolean): CommRequest {
    const rank = this.own;
    this.#check(call, to, tag, false);
    const given = bytesOf(call, view);
    if (to === PROC_NULL) return new NullRequest(rank, call, false);
    const { engine } = rank;
    // The engine takes short messages from any memory.
    const needsPlace =
      (synchronous || !engine.isShort(this.communicator, to, given.length)) &&
      (given.buffer !== engine.bytes.buffer || engine.regionAt(given) === undefined);
    const place = needsPlace ? rank.places.take(given.length) : undefined;
    const payload = place?.bytes.subarray(0, given.length) ?? given;
    if (place !== undefined) payload.set(given);
    const send = { group: this.communicator, to, tag, payload, synchronous, entry: NO_ROOM, failure: undefined };
    rank.begin(send);
    return new SendingRequest(rank, call, send, place);
  }

  #receive(call: string, view: ArrayBufferView, from: number, tag: number): CommRequest {
    this.#check(call, from, tag, true);
    const bytes = bytesOf(call, view);
    if (from === PROC_NULL) return new NullRequest(this.own, call, true);
    const what = { group: this.communicator, from, tag: tag === ANY_TAG ? ANY : tag, view: bytes };
    return new ReceivingRequest(this.own, call, what);
  }

  /** Begins both, the receive first; none if an argument of the other is wrong. */
  #exchange(call: string, send: SendPart, receive: ReceivePart): readonly [CommRequest, CommRequest] {
    this.#check(call, send.to, send.tag ?? 0, false);
    bytesOf(call, send.view);
    const receiving = this.#receive(call, receive.view, receive.from ?? ANY_SOURCE, receive.tag ?? ANY_TAG);
    return [receiving, this.#send(call, send.view, send.to, send.tag ?? 0, false)];
  }

  /** @throws PAMIR_INVAL, PAMIR_CLOSED */
  #check(call: string, rank: number, tag: number, isReceive: boolean): void {
    this.checkOpen(call);
    const { size } = this.communicator;
    const isRank = Number.isInteger(rank) && rank >= 0 && rank < size;
    if (!isRank && rank !== PROC_NULL && !(isReceive && rank === ANY_SOURCE))
      throw new PamiError("PAMIR_INVAL", `${call}(): rank ${String(rank)} is none of 0 to ${size - 1}`);
    const isTag = Number.isInteger(tag) && tag >= 0 && tag <= TAG_UB;
    if (!isTag && !(isReceive && tag === ANY_TAG))
      throw new PamiError("PAMIR_INVAL", `${call}(): the tag is ${String(tag)}, not one of 0 to ${TAG_UB}`);
  }

  #probed(from: number, tag: number): number {
    return this.own.engine.probe(this.communicator, from, tag === ANY_TAG ? ANY : tag);
  }

  #hasEnded(from: number): boolean {
    return from >= 0 && this.own.engine.hasEnded(this.communicator, from);
  }

  /** What a stored message is. */
  #statusOf(call: string, stored: number, from: number): CommStatus {
    if (stored === 0) throw new PamiError("PAMIR_SHUTDOWN", `${call}(): rank ${from} has ended`);
    const { engine } = this.own;
    const field = (offset: number): number => engine.field(stored + L.MPI_STORED_HEADER_OFFSET, offset);
    return new CommStatus(
      field(L.MPI_HEADER_SOURCE_OFFSET),
      field(L.MPI_HEADER_TAG_OFFSET),
      field(L.MPI_HEADER_BYTES_OFFSET) >>> 0,
    );
  }
}
