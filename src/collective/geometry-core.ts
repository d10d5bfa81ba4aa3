// A geometry at one of its members, below the API: it numbers the operations, starts them, hands messages to them, and ends
// them when one has failed.
import {
  COLLECTIVE_ACTIVE,
  COLLECTIVE_CALL,
  COLLECTIVE_CLOSED,
  COLLECTIVE_DATA,
  COLLECTIVE_EXTENSION,
  COLLECTIVE_FAILED,
  COLLECTIVE_HEADER_SIZE,
  COLLECTIVE_READY,
  COLLECTIVE_VOTE,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { CompletionQueue } from "../core/completion.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import { CANCELED, type Callback, ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import type { Arrival } from "../protocol/late-handler.js";
import { copyInto } from "../support/copy.js";
import { type ActiveHost, ActiveMessages, type Unexpected } from "./active.js";
import { Agreement, type SendVote } from "./agreement.js";
import { nodesKeepOrder } from "./algorithms/leaders.js";
import { Check, type CollectiveCall, callIn } from "./calls.js";
import type { Extension } from "./extension.js";
import {
  type CollectiveOperation,
  type OperationBuffers,
  PlainOperation,
  type Reducer,
  type RegionHolder,
} from "./operation.js";
import { type Channel, EAGER_BYTES } from "./schedule/channel.js";
import { describeLengths, Execution, type ExecutionHost } from "./schedule/execution.js";
import type { Schedule } from "./schedule/schedule.js";
import type { Piece, Scratch } from "./scratch.js";
import type { SharedMembers } from "./shared/shared-members.js";
import type { SharedHost, SharedOperation } from "./shared/shared-operation.js";
import { partialBytes, reduceOperands } from "./shared/shared-steps.js";
import { describeDifference, describeKind, isSameKind } from "./signature.js";
import { UnderWay } from "./under-way.js";

/** What an operation may fail with at another member. */
const FAILURES: ReadonlySet<Result> = new Set([ERROR, ENOMEM, SHUTDOWN, CANCELED]);
/** Numbers of failed operations that are remembered, so that each is passed on once. */
const FAILURES_MAX = 64;
/** Characters of a reason that are passed on. */
const WHY_MAX = 400;
/** Bytes for which an early message counts, besides its payload, and the most of one member: see EARLY_BYTES_MAX of collectives.ts. */
const EARLY_BYTES = 64;
const EARLY_BYTES_MAX = 67_108_864;
/** Early votes of each member that are kept: it has one, and may send the decision behind it. */
const VOTES_MAX = 2;
/** How far ahead of this member another one may be, in operations: see SYNCHRONIZING_INTERVAL. */
const AHEAD_MAX = 1024;

/** What the geometries of one context share. */
export interface GeometryHost {
  readonly channel: Channel;
  readonly scratch: Scratch;
  readonly completions: CompletionQueue;
  readonly unexpected: Unexpected;
  /** Counts operations that poll. */
  polling(geometry: GeometryCore, change: 1 | -1): void;
  /** Whether an endpoint has ended, and all its messages are delivered. */
  isGone(endpoint: Endpoint): boolean;
  /** Whether the end of an endpoint that is gone is certain by now. */
  hasCertainlyEnded(endpoint: Endpoint): boolean;
  /** Whether it is not, and a launcher will say so once it is. */
  isEndAwaited(endpoint: Endpoint): boolean;
  /** Has `memberGone()` called for a member that may be in another node. */
  watch(endpoint: Endpoint): void;
  /** The geometry needs its id no more. */
  dropped(geometry: GeometryCore): void;
  /** No operation of the geometry that begins from now on can succeed. */
  broken(geometry: GeometryCore): void;
  readonly regions: RegionHolder;
  /** A member has closed the geometry. */
  closedAt(geometry: GeometryCore, endpoint: Endpoint): void;
}

/** What the members have told each other when the geometry was made. */
export interface Membership {
  /** Id of the geometry at this member. */
  readonly id: number;
  readonly rank: number;
  readonly endpoints: readonly Endpoint[];
  /** Its id at each member. */
  readonly ids: readonly number[];
  /** The node of each member: the number of the node's first task. */
  readonly nodes: readonly number[];
  /** Whether all members are in debug mode. */
  readonly isChecked: boolean;
  /** If all members share a memory. */
  readonly shared: SharedMembers | undefined;
  /** At the first member: what the others were told. */
  readonly table: Uint8Array | undefined;
  /** Releases this member's block. No other member reads it any more. */
  readonly release: () => void;
}

/** A message whose operation has not begun here. */
interface Early {
  readonly kind: number;
  readonly rank: number;
  readonly tag: number;
  readonly signature: number;
  readonly arrival: Arrival;
}

export class GeometryCore implements ExecutionHost, SharedHost, ActiveHost {
  readonly id: number;
  readonly rank: number;
  readonly size: number;
  readonly endpoints: readonly Endpoint[];
  readonly nodes: readonly number[];
  /** Whether members compare what they have called, before an operation begins. */
  readonly isChecked: boolean;
  readonly scratch: Scratch;
  readonly unexpected: Unexpected;
  /** At the first member: what the others were told, for those that have lost it. */
  readonly table: Uint8Array | undefined;
  isClosed = false;
  readonly active: ActiveMessages;
  /** Members that have ended or closed the geometry. */
  readonly #gone = new Set<number>();
  /** Those of them that have ended, or closed the geometry, for certain. Nothing is heard of the others. */
  readonly #certain = new Set<number>();
  /** Members that share the memory and have ended. Their blocks are copies by now. */
  readonly #ended = new Set<number>();
  /** Copies of blocks of members that have ended. */
  readonly #copies: Piece[] = [];
  readonly #host: GeometryHost;
  readonly #ids: readonly number[];
  readonly #shared: SharedMembers | undefined;
  readonly #release: () => void;
  /** Number of the last operation before which all are complete. */
  #completed = 0;
  readonly #active = new UnderWay();
  /** How many of them poll. */
  polling = 0;
  /** Whether the context's list of those has it. */
  isListed = false;
  readonly #early = new Map<number, Early[]>();
  /** Bytes of these, by the rank that has sent them. */
  readonly #earlyBytes: number[] = [];
  /** In debug mode: what members have called, by number. */
  readonly #checks = new Map<number, Check>();
  /** Results of operations that have failed elsewhere, by number. */
  readonly #failures = new Map<number, Result>();
  readonly #agreements: Agreement[] = [];
  /**
   * Votes for an agreement that has not begun here. Each other member has at most one: it votes in the first round, and goes on
   * once it has the votes of all, so that of this member too.
   */
  readonly #earlyVotes: {
    readonly number: number;
    readonly rank: number;
    readonly round: number;
    readonly payload: Uint8Array;
  }[] = [];
  /** The first operation that has failed for a member that is gone: no later one can succeed. */
  #brokenFrom: number | undefined;
  /** Which member is gone, in words. */
  #lost = "";
  /** What is built upon this geometry, by number. */
  readonly #extensions = new Map<number, Extension>();

  constructor(host: GeometryHost, membership: Membership) {
    const { id, rank, endpoints, ids, nodes, isChecked, shared, table, release } = membership;
    this.id = id;
    this.rank = rank;
    this.size = endpoints.length;
    this.endpoints = endpoints;
    this.nodes = nodes;
    this.isChecked = isChecked;
    this.scratch = host.scratch;
    this.unexpected = host.unexpected;
    this.#host = host;
    this.#ids = ids;
    this.#shared = shared;
    this.#release = release;
    this.table = table;
    this.active = new ActiveMessages(this);
    const count = new Set(nodes).size;
    this.hasLevels = count > 1 && count < nodes.length;
    this.keepsOrder = this.hasLevels && nodesKeepOrder(nodes);
  }

  /** The blocks of the members, if they share a memory. */
  get shared(): SharedMembers {
    return this.#shared as SharedMembers;
  }

  get regions(): RegionHolder {
    return this.#host.regions;
  }

  get isShared(): boolean {
    return this.#shared !== undefined;
  }

  /** Whether the members are in several nodes, and some share one. */
  readonly hasLevels: boolean;
  /** Whether partial sums of nodes are those of algorithms/order.ts. */
  readonly keepsOrder: boolean;

  /** Operations under way. */
  get underWay(): number {
    return this.#active.count;
  }

  /** Number of the next operation. */
  get nextNumber(): number {
    return this.#active.next;
  }

  /** Whether a member has ended, or has closed the geometry. */
  get isBroken(): boolean {
    return this.#brokenFrom !== undefined;
  }

  /** Which member is gone, in words. */
  get lost(): string {
    return this.#lost;
  }

  get goneRanks(): ReadonlySet<number> {
    return this.#gone;
  }

  /** Begins an operation over messages. @param call in debug mode: what this member has called */
  beginSchedule(schedule: Schedule, buffers: OperationBuffers, signature: number, call?: CollectiveCall): Execution {
    const execution = new Execution(this, schedule, buffers);
    execution.call = call;
    if (!this.#begin(execution, signature)) return execution;
    if (this.isChecked) this.#hold(execution);
    else this.#start(execution);
    return execution;
  }

  /** In debug mode: this member's arguments were refused. The operation fails for all others, which name this member. */
  refuse(refusal: string): void {
    if (!this.isChecked || this.isClosed) return;
    const operation = new PlainOperation();
    operation.call = { what: "", root: 0, bytes: 0, counts: "", algorithm: "", gives: [], gets: [], refusal };
    if (this.#begin(operation, 0)) this.#hold(operation);
  }

  #start(execution: Execution): void {
    // First what has come already: a member that has ended since may have sent all that it had to.
    this.#deliverEarly(execution);
    if (!execution.isOver) this.start(execution);
  }

  start(execution: Execution, schedule?: Schedule): void {
    execution.begin(schedule);
    for (const rank of this.#gone) execution.ended(rank);
  }

  #deliverEarly(operation: CollectiveOperation): void {
    for (const early of this.#early.get(operation.number) ?? []) this.#deliver(operation, early);
    this.#forgetEarly(operation.number);
  }

  /**
   * Begins an operation of members that share a memory. Where none is under way and the others come soon, a short one is over without
   * a place in the list: barrier 135 → 95 ns, allreduce of 8 bytes 215 → 180 (Zen 5).
   */
  beginShared(operation: SharedOperation, signature: number): void {
    const active = this.#active;
    const number = active.next;
    if (
      operation.mayMeet &&
      active.count === 0 &&
      !this.isChecked &&
      this.#brokenFrom === undefined &&
      this.#early.size === 0 &&
      (this.#failures.size === 0 || !this.#failures.has(number))
    ) {
      operation.number = number;
      operation.signature = signature;
      if (operation.meet()) {
        active.skip();
        this.#completed = number;
        return;
      }
    }
    if (!this.#begin(operation, signature)) return;
    if (this.isChecked) this.#hold(operation);
    else this.#startShared(operation);
  }

  #startShared(operation: SharedOperation): void {
    if (this.#early.size > 0) this.#deliverEarly(operation);
    operation.advance();
  }

  /** Numbers an operation. False: it has failed already. */
  #begin(operation: CollectiveOperation, signature: number): boolean {
    const number = this.#active.next;
    operation.number = number;
    operation.signature = signature;
    this.#active.add(operation);
    const { buffers } = operation;
    if (buffers !== undefined) operation.hold(this.regions, buffers.send, buffers.receive);
    const failed = this.#isBrokenAt(number)
      ? SHUTDOWN
      : this.#failures.size > 0
        ? this.#failures.get(number)
        : undefined;
    if (operation.isPolling) this.#host.polling(this, 1);
    if (failed === undefined) return true;
    if (failed === SHUTDOWN) operation.why = this.#lost;
    this.#end(operation, failed, false);
    return false;
  }

  /** Tells all members what this one has called. The operation begins once all have told, if nothing differs. */
  #hold(operation: CollectiveOperation): void {
    const { number, call } = operation;
    const check = this.#checkOf(number);
    operation.check = check;
    check.calls[this.rank] = call;
    const bytes = new TextEncoder().encode(JSON.stringify(call));
    for (let rank = 0; rank < this.size && !operation.isOver; rank++) {
      if (rank === this.rank) continue;
      this.send(COLLECTIVE_CALL, rank, operation, 0, bytes);
      this.watch(rank);
    }
    for (const rank of this.#gone) this.#endedFor(operation, rank);
    this.#compare(operation);
  }

  /** The calls for an operation, which may not have begun here. */
  #checkOf(number: number): Check {
    const check = this.#checks.get(number) ?? new Check(this.size);
    this.#checks.set(number, check);
    return check;
  }

  #compare(operation: CollectiveOperation): void {
    const { check } = operation;
    if (check === undefined || check.awaited().length > 0) return;
    operation.check = undefined;
    operation.why ||= check.difference();
    // All members have the same calls, so each finds it, and none has to be told.
    if (operation.why !== "") this.#end(operation, ERROR, false);
    else if (operation instanceof Execution) this.#start(operation);
    else this.#startShared(operation as SharedOperation);
  }

  /** A member has ended, and all its messages are delivered. */
  #endedFor(operation: CollectiveOperation, rank: number): void {
    const { check } = operation;
    if (check === undefined) operation.ended(rank);
    else if (check.calls[rank] === undefined) this.failed(operation, SHUTDOWN, "");
  }

  #isBrokenAt(number: number): boolean {
    return this.#brokenFrom !== undefined && seqDelta(number, this.#brokenFrom) >= 0;
  }

  /** Whether a failure ends what no failure so far has ended: this operation, and all that begin later. */
  #breaksAt(number: number, result: Result): boolean {
    return result === SHUTDOWN && !this.#isBrokenAt(number);
  }

  /** Advances the operations that poll. If one waits for its slot, those behind it wait, too. */
  advance(): void {
    const active = this.#active;
    for (let number = active.first; number !== active.next; number = (number + 1) >>> 0) {
      const operation = active.at(number);
      if (operation?.isPolling !== true) continue;
      operation.advance();
      if (operation.isAtSlot) return;
    }
  }

  /** See Operation. */
  lookBeforeSleep(): boolean {
    const active = this.#active;
    for (let number = active.first; number !== active.next; number = (number + 1) >>> 0) {
      const operation = active.at(number);
      if (operation === undefined) continue;
      if (operation.lookBeforeSleep()) return true;
      if (operation.isAtSlot) return false;
    }
    return false;
  }

  /** A message of this geometry has come. Its origin is the member of that rank. */
  came(kind: number, rank: number, number: number, tag: number, signature: number, arrival: Arrival): void {
    if (kind === COLLECTIVE_EXTENSION) this.#extensions.get(number)?.came(rank, tag, signature, arrival);
    else if (kind === COLLECTIVE_CLOSED) {
      this.memberGone(rank);
      this.#host.closedAt(this, arrival.origin);
    } else if (kind === COLLECTIVE_FAILED) {
      this.#failedElsewhere(number, failureIn(tag), new TextDecoder().decode(arrival.payload.slice()));
    } else if (kind === COLLECTIVE_ACTIVE) {
      this.active.came(number, tag, signature, rank, arrival);
      this.active.rethrow();
    }
    if (kind === COLLECTIVE_VOTE) this.#voted(number, rank, tag, arrival.payload.slice());
    if (kind === COLLECTIVE_DATA || kind === COLLECTIVE_READY || kind === COLLECTIVE_CALL) {
      const early = { kind, rank, tag, signature, arrival };
      const operation = this.#active.at(number);
      const isAhead = seqDelta(number, this.#active.next) >= 0;
      if (isAhead || operation?.check !== undefined) {
        if (seqDelta(number, this.#active.next) >= AHEAD_MAX) return;
        if (kind !== COLLECTIVE_CALL) this.#keep(number, early);
        else this.#checkOf(number).calls[rank] = callIn(arrival, this.size);
        if (operation !== undefined) this.#compare(operation);
      } else if (operation !== undefined) this.#deliver(operation, early);
      else {
        // A member that waits for an answer learns that there is none.
        const nothing = `rank ${this.rank} is through with that operation, and awaited nothing from rank ${rank}`;
        const lengths = kind === COLLECTIVE_CALL ? "" : describeLengths(kind, rank, arrival, 0);
        const text = lengths === "" ? nothing : `${nothing}: ${lengths}`;
        this.#tell(
          COLLECTIVE_FAILED,
          rank,
          number,
          this.#failures.get(number) ?? ERROR,
          new TextEncoder().encode(text),
        );
      }
    }
  }

  /** Keeps a message until its operation begins. */
  #keep(number: number, early: Early): void {
    const { rank, arrival } = early;
    const bytes = (this.#earlyBytes[rank] ?? 0) + EARLY_BYTES + arrival.payloadBytes;
    // A long transfer waits until this member is ready.
    if (arrival.payloadBytes > EAGER_BYTES || bytes > EARLY_BYTES_MAX) return;
    this.#earlyBytes[rank] = bytes;
    const list = this.#early.get(number);
    const kept = { ...early, arrival: copyOf(early.arrival) };
    if (list === undefined) this.#early.set(number, [kept]);
    else list.push(kept);
  }

  /** What has come early for an operation is delivered, or needed no more. */
  #forgetEarly(number: number): void {
    for (const { rank, arrival } of this.#early.get(number) ?? [])
      this.#earlyBytes[rank] = (this.#earlyBytes[rank] as number) - EARLY_BYTES - arrival.payloadBytes;
    this.#early.delete(number);
  }

  #deliver(operation: CollectiveOperation, { kind, rank, tag, signature, arrival }: Early): void {
    if (operation.isStopped) return;
    if (signature === operation.signature) {
      operation.came(kind, rank, arrival, tag);
      return;
    }
    const own = `rank ${this.rank} has begun ${describeKind(operation.signature)} in shared memory`;
    const text = operation.isPolling
      ? `${own}, rank ${rank} ${describeKind(signature)} over messages`
      : describeDifference(this.rank, operation.signature, rank, signature);
    const lengths = isSameKind(operation.signature, signature) ? operation.lengths(kind, rank, arrival, tag) : "";
    this.failed(operation, ERROR, lengths === "" ? text : `${lengths}; ${text}`);
  }

  get hasAnyEnded(): boolean {
    return this.#gone.size > 0 || this.#ended.size > 0;
  }

  isGone(rank: number): boolean {
    return this.#gone.has(rank);
  }

  hasEnded(rank: number): boolean {
    return this.#gone.has(rank) || this.#ended.has(rank);
  }

  watch(rank: number): void {
    const endpoint = this.endpoints[rank] as Endpoint;
    if (this.#host.isGone(endpoint)) this.memberGone(rank);
    else this.#host.watch(endpoint);
  }

  send(kind: number, rank: number, operation: CollectiveOperation, tag: number, payload?: Uint8Array): Result {
    const { channel } = this.#host;
    const { number, signature } = operation;
    return channel
      .address(kind, this.#ids[rank] as number, this.id, this.rank)
      .send(this.endpoints[rank] as Endpoint, number, tag, signature, payload);
  }

  sendLong(rank: number, operation: CollectiveOperation, tag: number, payload: Uint8Array, onSent: () => void): void {
    const { channel } = this.#host;
    const { number, signature } = operation;
    channel
      .address(COLLECTIVE_DATA, this.#ids[rank] as number, this.id, this.rank)
      .sendLong(this.endpoints[rank] as Endpoint, number, tag, signature, payload, onSent);
  }

  /** Adds an extension, before the operation in which members tell each other of it. @returns its number: that of the operation */
  extend(extension: Extension): number {
    const number = this.nextNumber;
    this.#extensions.set(number, extension);
    for (let rank = 0; rank < this.size; rank++) if (rank !== this.rank) this.watch(rank);
    return number;
  }

  /** Removes an extension: messages to it are dropped. */
  unextend(number: number): void {
    this.#extensions.delete(number);
  }

  /** Sends a message to another member's extension. The payload may be reused once this returns, or at `onSent`. */
  sendToExtension(
    number: number,
    rank: number,
    tag: number,
    word: number,
    payload?: Uint8Array,
    onSent?: Callback,
  ): Result {
    const channel = this.#host.channel.address(COLLECTIVE_EXTENSION, this.#ids[rank] as number, this.id, this.rank);
    const endpoint = this.endpoints[rank] as Endpoint;
    if (onSent === undefined) return channel.send(endpoint, number, tag, word, payload);
    channel.sendLong(endpoint, number, tag, word, payload as Uint8Array, onSent);
    return SUCCESS;
  }

  /** Has a callback called once an operation is over. */
  whenOver(operation: CollectiveOperation, onDone: Callback, cookie: unknown): void {
    if (operation.isOver) {
      this.#host.completions.push(onDone, cookie, operation.result);
      return;
    }
    operation.onDone = onDone;
    operation.cookie = cookie;
  }

  /** The error of an operation that has failed. @param shutdown the error for a member that has ended @param cause what was thrown */
  errorOf(
    what: string,
    result: Result,
    why: string,
    shutdown: (text: string, to: Endpoint) => Error,
    cause?: unknown,
  ): Error {
    const because = why === "" ? "" : `: ${why}`;
    if (result === SHUTDOWN) {
      const [rank] = [...this.#gone, ...this.#ended];
      const text = `${what}: ${why || this.#lost || this.#describeEnd()}`;
      return rank === undefined
        ? new PamiError("PAMIR_SHUTDOWN", text)
        : shutdown(text, this.endpoints[rank] as Endpoint);
    }
    if (result === CANCELED) return new PamiError("PAMIR_CLOSED", `${what}: the geometry was closed`);
    if (result === ENOMEM) return new PamiError("PAMIR_NO_MEMORY", `${what} has no memory${because}`);
    const text = `${what} has failed${because === "" ? " at another member" : because}`;
    return new PamiError("PAMIR_COLLECTIVE", text, cause === undefined ? {} : { cause });
  }

  #describeEnd(): string {
    const [rank] = [...this.#gone, ...this.#ended];
    return `${rank === undefined ? "a member" : nameOf(this.endpoints[rank] as Endpoint)} has ended`;
  }

  sendActive(kind: number, rank: number, number: number, tag: number, root: number, payload: Uint8Array): void {
    this.#host.channel
      .address(kind, this.#ids[rank] as number, this.id, this.rank)
      .send(this.endpoints[rank] as Endpoint, number, tag, root, payload);
  }

  whenSent(rank: number, onSent: Callback): boolean {
    return this.#host.channel.whenSent(this.endpoints[rank] as Endpoint, onSent);
  }

  overActive(operation: CollectiveOperation, result: Result, why: string): void {
    operation.result = result;
    operation.why = why;
    operation.letGo();
    this.#heard(operation, result);
  }

  /** Reduces blocks that this member has, in the order of algorithms/order.ts. @throws PAMIR_NO_MEMORY; what the user's code throws */
  reduceBlocks(blocks: readonly Uint8Array[], bytes: number, reducer: Reducer): Uint8Array {
    if (blocks.length === 1) return blocks[0] as Uint8Array;
    const space = (bytes + 15) & ~15;
    const whole = (blocks.length + 1) * space + partialBytes(reducer, blocks.length, bytes);
    const piece = this.scratch.takeAnywhere(whole);
    const { elsewhere } = piece;
    const there: Reducer = {
      ...reducer,
      reduce: (to, left, right, length) => reducer.reduce(to, left, right, length, elsewhere),
    };
    try {
      for (const [rank, block] of blocks.entries()) copyInto(piece.bytes, rank * space, block);
      const operandOf = (rank: number): number => piece.pointer + rank * space;
      const out = blocks.length * space;
      reduceOperands(there, blocks.length, { operandOf }, piece.pointer + out, bytes, piece.pointer + out + space);
      return piece.bytes.slice(out, out + bytes);
    } finally {
      this.scratch.giveBack(piece);
    }
  }

  over(operation: CollectiveOperation, result: Result): void {
    this.#end(operation, result, false);
  }

  failed(operation: CollectiveOperation, result: Result, why: string): void {
    if (operation.isStopped) return;
    operation.why ||= why;
    this.#end(operation, result, true);
  }

  sent(operation: CollectiveOperation): void {
    this.#finish(operation, operation.failure);
  }

  /** Ends an operation. If it has failed, its caller hears of it once nothing is sent from its buffers any more. */
  #end(operation: CollectiveOperation, result: Result, tells: boolean): void {
    if (operation.isStopped) return;
    if (result === SUCCESS) {
      this.#finish(operation, result);
      return;
    }
    operation.failure = result;
    operation.abandon(result);
    this.#hasFailed(operation.number, result, tells, operation.why);
    if (!operation.isSending) this.#finish(operation, result);
    if (result === SHUTDOWN) this.#endBroken();
  }

  #finish(operation: CollectiveOperation, result: Result): void {
    operation.result = result;
    operation.check = undefined;
    if (this.#early.size > 0) this.#forgetEarly(operation.number);
    if (this.isChecked) this.#checks.delete(operation.number);
    this.#active.remove(operation.number);
    if (operation.isPolling) this.#host.polling(this, -1);
    operation.release();
    operation.letGo();
    const completed = (this.#active.first - 1) >>> 0;
    if (completed !== this.#completed) {
      // What has begun already may wait for the slots of the others, as they do for this one's: then all would wait.
      const isNext = this.#active.count === 0 && completed === (this.#completed + 1) >>> 0;
      const isHeard = operation.isMutual && isNext && result === SUCCESS;
      this.#completed = completed;
      this.#shared?.complete(completed, isHeard);
    }
    this.#heard(operation, result);
  }

  /** Tells the caller of an operation. */
  #heard(operation: CollectiveOperation, result: Result): void {
    operation.wake();
    const { onDone, cookie } = operation;
    operation.onDone = undefined;
    if (onDone !== undefined) this.#host.completions.push(onDone, cookie, result);
  }

  /** Ends what cannot succeed any more: other members may have ended it too, without a word. */
  #endBroken(): void {
    for (const operation of this.#active.all()) {
      if (!operation.isStopped && this.#isBrokenAt(operation.number)) this.#end(operation, SHUTDOWN, false);
    }
  }

  /** Remembers that an operation has failed, and tells those members that pass it on. */
  #hasFailed(number: number, result: Result, tells: boolean, why: string): void {
    const breaks = this.#breaksAt(number, result);
    if (result === SHUTDOWN) this.#lost ||= why || this.#describeEnd();
    if (breaks) {
      this.#brokenFrom = number;
      this.#host.broken(this);
    }
    if (this.#failures.has(number) && !breaks) return;
    this.#failures.set(number, result);
    if (this.#failures.size > FAILURES_MAX) this.#failures.delete(this.#failures.keys().next().value as number);
    if (!tells) return;
    const told = new Set<number>();
    // Each member passes it on to some 2 log2 n others, so that it gets around those that end meanwhile.
    for (let distance = 1; distance < this.size; distance *= 2) {
      told.add((this.rank + distance) % this.size).add((this.rank - distance + this.size) % this.size);
    }
    const text = new TextEncoder().encode((why || (result === SHUTDOWN ? this.#lost : "")).slice(0, WHY_MAX));
    for (const rank of told) if (!this.#gone.has(rank)) this.#tell(COLLECTIVE_FAILED, rank, number, result, text);
  }

  #tell(kind: number, rank: number, number: number, tag: number, payload?: Uint8Array): void {
    if (rank === this.rank) return;
    this.#host.channel
      .address(kind, this.#ids[rank] as number, this.id, this.rank)
      .send(this.endpoints[rank] as Endpoint, number, tag, 0, payload);
  }

  #failedElsewhere(number: number, result: Result, why: string): void {
    // Where one has found a difference, and another the end of a member, that one begins no further operation.
    if (this.#failures.has(number) && !this.#breaksAt(number, result)) return;
    this.#hasFailed(number, result, true, why);
    for (const operation of this.#active.all()) {
      if (operation.isStopped || operation.number !== number) continue;
      operation.why ||= why;
      this.#end(operation, result, false);
    }
    this.#endBroken();
  }

  /**
   * The task or context of a member has ended, and all its messages are delivered.
   * @param isCertain false: nothing is heard of it, and it may go on elsewhere
   */
  memberGone(rank: number, isCertain = true): void {
    this.#gone.add(rank);
    if (isCertain) this.#certain.add(rank);
    this.active.gone();
    for (const agreement of this.#agreements) if (!agreement.isOver) agreement.gone();
    for (const operation of this.#active.all()) {
      if (operation.isPolling || !operation.isStopped) this.#endedFor(operation, rank);
    }
    for (const extension of this.#extensions.values()) extension.gone(rank);
    this.#dropIfUnread();
  }

  /** A member has never had the geometry: no operation can succeed, and no block of a member is read any more. */
  memberLeft(rank: number, why: string): void {
    this.#break(why);
    this.memberGone(rank);
  }

  /** Ends what is under way, and all that begins later, for all members. */
  #break(why: string): void {
    const number = (this.#completed + 1) >>> 0;
    if (this.#isBrokenAt(number)) return;
    this.#hasFailed(number, SHUTDOWN, true, why);
    this.#endBroken();
  }

  /** Id of the geometry at a member. */
  idAt(rank: number): number | undefined {
    return this.#ids[rank];
  }

  /**
   * The context of a member that shares the memory has ended. Its memory may be used again once this context has acknowledged
   * it, so what can be read is read now, and its block is kept as a copy.
   */
  sharedMemberEnded(rank: number): void {
    if (this.#shared === undefined || this.#ended.has(rank)) return;
    if (!this.#isBrokenAt((this.#completed + 1) >>> 0)) {
      const copy = this.scratch.take(4096);
      if (copy !== undefined) {
        this.#copies.push(copy);
        this.#shared.keep(rank, copy.pointer);
      }
      this.advance();
      if (copy === undefined) this.#break(`no memory for what ${nameOf(this.endpoints[rank] as Endpoint)} has left`);
    }
    this.#ended.add(rank);
    // Of its messages, some may still come: memberGone() tells once they are delivered.
    for (const operation of this.#active.all()) {
      if (operation.isPolling && operation.check === undefined) operation.ended(rank);
    }
    this.#dropIfUnread();
  }

  /** Begins to agree with the members that are left on those that have ended. All of them call it, as often. */
  agree(isGood: boolean): Agreement {
    const number = this.#agreements.length;
    const send: SendVote = (rank, round, payload) => {
      this.#host.channel
        .address(COLLECTIVE_VOTE, this.#ids[rank] as number, this.id, this.rank)
        .send(this.endpoints[rank] as Endpoint, number, round, 0, payload);
    };
    this.#learnEnds();
    const agreement = new Agreement(this.rank, this.size, { gone: this.#gone, certain: this.#certain }, isGood, send);
    this.#agreements.push(agreement);
    for (let rank = 0; rank < this.size; rank++) if (rank !== this.rank && !this.#gone.has(rank)) this.watch(rank);
    agreement.begin();
    for (const vote of this.#earlyVotes.splice(0)) this.#voted(vote.number, vote.rank, vote.round, vote.payload);
    return agreement;
  }

  /** Of ends that were not certain, the node may have learned more. */
  #learnEnds(): void {
    for (const rank of this.#gone) {
      if (this.#host.hasCertainlyEnded(this.endpoints[rank] as Endpoint)) this.#certain.add(rank);
    }
  }

  /**
   * Whether it is settled if the members that are left may go on: `mayGoOn` of an agreement that is over says so. False: they may
   * not so far, but a launcher will tell of each member of which nothing is heard, once its process has ended.
   */
  isSettled(agreement: Agreement): boolean {
    this.#learnEnds();
    agreement.learn(this.#certain);
    return (
      agreement.mayGoOn || !agreement.silent.some((rank) => this.#host.isEndAwaited(this.endpoints[rank] as Endpoint))
    );
  }

  #voted(number: number, rank: number, round: number, payload: Uint8Array): void {
    const agreement = this.#agreements[number];
    const isKept = this.#earlyVotes.some(
      (vote) => vote.rank === rank && vote.number === number && vote.round === round,
    );
    if (agreement === undefined) {
      if (!isKept && this.#earlyVotes.length < VOTES_MAX * this.size)
        this.#earlyVotes.push({ number, rank, round, payload });
    } else agreement.came(rank, round, payload);
  }

  /** Ends the geometry at this member: what is under way is given up. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const operation of this.#active.all()) this.#end(operation, CANCELED, false);
    this.#early.clear();
    this.active.close();
    for (const extension of this.#extensions.values()) extension.gone(this.rank);
    this.#extensions.clear();
    // Those that wait for something of this member would send it nothing. One that has closed waits for this one, too.
    for (let rank = 0; rank < this.size; rank++) this.#tell(COLLECTIVE_CLOSED, rank, 0, 0);
    this.#dropIfUnread();
  }

  /** The context has closed: the others have a copy of the block before it may be used again. */
  release(): void {
    this.#release();
  }

  /** Gives the block back once no other member reads it, and the id once no message to it matters. */
  #dropIfUnread(): void {
    if (!this.isClosed) return;
    if (this.#shared !== undefined) {
      for (let rank = 0; rank < this.size; rank++) if (rank !== this.rank && !this.hasEnded(rank)) return;
    }
    for (const copy of this.#copies.splice(0)) this.scratch.giveBack(copy);
    this.#release();
    this.#host.dropped(this);
  }
}

/** Why an operation has failed elsewhere: what is no failure counts as one of the other member's. */
function failureIn(tag: number): Result {
  return FAILURES.has(tag as Result) ? (tag as Result) : ERROR;
}

/** A message that outlives its handler. */
export function copyOf(arrival: Arrival): Arrival {
  const words = Uint32Array.from({ length: COLLECTIVE_HEADER_SIZE / 4 }, (_, at) => arrival.headerWord(4 * at));
  return {
    origin: arrival.origin,
    payloadBytes: arrival.payloadBytes,
    payload: arrival.payload.slice(),
    headerWord: (offset) => words[offset >>> 2] as number,
  };
}
