// A geometry at one of its members, below the API: numbers and starts the operations, hands messages to them, and ends all
// operations when one has failed. What it decides by itself is in geometry/: which messages wait, what has failed, and the
// votes.
import {
  COLLECTIVE_ACTIVE,
  COLLECTIVE_CALL,
  COLLECTIVE_CLOSED,
  COLLECTIVE_DATA,
  COLLECTIVE_EXTENSION,
  COLLECTIVE_FAILED,
  COLLECTIVE_READY,
  COLLECTIVE_VOTE,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { CompletionQueue } from "../core/completion.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { CANCELED, type Callback, ERROR, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import type { Arrival } from "../protocol/late-handler.js";
import { type ActiveHost, ActiveMessages, type Unexpected } from "./active.js";
import type { Agreement } from "./agreement.js";
import { nodesKeepOrder } from "./algorithms/leaders.js";
import { Check, type CollectiveCall, callIn } from "./calls.js";
import type { Extension } from "./extension.js";
import { type Early, EarlyMessages } from "./geometry/early-messages.js";
import { Ends } from "./geometry/ends.js";
import { Extensions } from "./geometry/extensions.js";
import { describeEnd, Failures, failureError, failureIn } from "./geometry/failures.js";
import type { Membership } from "./geometry/membership.js";
import { Peers } from "./geometry/peers.js";
import { type NewsOfEnds, Votes } from "./geometry/votes.js";
import { type CollectiveOperation, type OperationBuffers, PlainOperation, type RegionHolder } from "./operation.js";
import type { Channel } from "./schedule/channel.js";
import { describeLengths, Execution, type ExecutionHost } from "./schedule/execution.js";
import type { Schedule } from "./schedule/schedule.js";
import type { Piece, Scratch } from "./scratch.js";
import type { SharedMembers } from "./shared/shared-members.js";
import type { SharedHost, SharedOperation } from "./shared/shared-operation.js";
import { describeDifference, describeKind, isSameKind } from "./signature.js";
import { UnderWay } from "./under-way.js";

/** Characters of a reason that are passed on. */
const WHY_MAX = 400;
/** How far ahead of this member another member may be, in operations: see SYNCHRONIZING_INTERVAL. */
const AHEAD_MAX = 1024;

/** The services that the geometries of one context share. */
export interface GeometryHost extends NewsOfEnds {
  readonly channel: Channel;
  readonly scratch: Scratch;
  readonly completions: CompletionQueue;
  readonly unexpected: Unexpected;
  /** Counts operations that poll. */
  polling(geometry: GeometryCore, change: 1 | -1): void;
  /** Whether an endpoint has ended, and all its messages are delivered. */
  isGone(endpoint: Endpoint): boolean;
  /** Has `memberGone()` called for a member that may be in another node. */
  watch(endpoint: Endpoint): void;
  /** The geometry no longer needs its id. */
  dropped(geometry: GeometryCore): void;
  /** No operation of the geometry that begins from now on can succeed. */
  broken(geometry: GeometryCore): void;
  readonly regions: RegionHolder;
  /** A member has closed the geometry. */
  closedAt(geometry: GeometryCore, endpoint: Endpoint): void;
}

export class GeometryCore implements ExecutionHost, SharedHost, ActiveHost {
  readonly id: number;
  readonly rank: number;
  readonly size: number;
  readonly endpoints: readonly Endpoint[];
  readonly nodes: readonly number[];
  /** Whether members compare their calls before an operation begins. */
  readonly isChecked: boolean;
  readonly scratch: Scratch;
  readonly unexpected: Unexpected;
  /** At the first member: the table that the other members got, for members that have lost it. */
  readonly table: Uint8Array | undefined;
  isClosed = false;
  readonly active: ActiveMessages;
  readonly extensions: Extensions;
  readonly #ends = new Ends();
  /** Copies of blocks of members that have ended. */
  readonly #copies: Piece[] = [];
  readonly #host: GeometryHost;
  readonly #ids: readonly number[];
  readonly #peers: Peers;
  readonly #shared: SharedMembers | undefined;
  readonly #release: () => void;
  /** Number of the last operation before which all are complete. */
  #completed = 0;
  readonly #active = new UnderWay();
  /** The number of operations that poll. */
  polling = 0;
  /** Whether the geometry is in the context's list of polling geometries. */
  isListed = false;
  readonly #early = new EarlyMessages();
  /** In debug mode: the calls of members, by number of the operation. */
  readonly #checks = new Map<number, Check>();
  readonly #failures = new Failures();
  /** The last operation in one memory. */
  #last: SharedOperation | undefined;
  readonly #votes: Votes;

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
    this.#peers = new Peers(host.channel, membership);
    this.#votes = new Votes(host, membership, this.#peers, this.#ends);
    this.extensions = new Extensions(this.#peers);
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

  /** Whether the members are in several nodes, and some members share a node. */
  readonly hasLevels: boolean;
  /** Whether the nodes' partial sums are partial sums of algorithms/order.ts. */
  readonly keepsOrder: boolean;

  /** Operations under way. */
  get underWay(): number {
    return this.#active.count;
  }

  /** Number of the next operation. */
  get nextNumber(): number {
    this.#takeBack();
    return this.#active.next;
  }

  /** Whether a member has ended, or has closed the geometry. */
  get hasMemberEnded(): boolean {
    return this.#failures.brokenFrom !== undefined;
  }

  /** Which member is gone, in words. */
  get lost(): string {
    return this.#failures.lost;
  }

  get goneRanks(): ReadonlySet<number> {
    return this.#ends.gone;
  }

  /** Begins an operation over messages. @param call in debug mode: this member's call */
  beginSchedule(schedule: Schedule, buffers: OperationBuffers, signature: number, call?: CollectiveCall): Execution {
    const execution = new Execution(this, schedule, buffers);
    execution.call = call;
    if (!this.#begin(execution, signature)) return execution;
    if (this.isChecked) this.#hold(execution);
    else this.#start(execution);
    return execution;
  }

  /** In debug mode: this member's arguments were refused. The operation fails for all other members, which name this member. */
  refuse(refusal: string): void {
    if (!this.isChecked || this.isClosed) return;
    const operation = new PlainOperation();
    operation.call = { what: "", root: 0, bytes: 0, counts: "", algorithm: "", gives: [], gets: [], refusal };
    if (this.#begin(operation, 0)) this.#hold(operation);
  }

  #start(execution: Execution): void {
    // First the messages that have come already: a member that has ended since may have sent all its messages.
    this.#deliverEarly(execution);
    if (!execution.isOver) this.start(execution);
  }

  start(execution: Execution, schedule?: Schedule): void {
    execution.begin(schedule);
    for (const rank of this.#ends.gone) execution.ended(rank);
  }

  #deliverEarly(operation: CollectiveOperation): void {
    for (const early of this.#early.of(operation.number)) this.#deliver(operation, early);
    this.#early.forget(operation.number);
  }

  /**
   * Begins an operation of members that share a memory. If no operation is under way and the other members come soon, a short
   * operation is over without a place in the list: barrier 135 → 95 ns, allreduce of 8 bytes 215 → 180 ns (Zen 5).
   */
  beginShared(operation: SharedOperation, signature: number): void {
    this.#takeBack();
    this.#last = operation;
    const active = this.#active;
    const number = active.next;
    if (
      operation.mayMeet &&
      !operation.shared.isAt(number) &&
      active.count === 0 &&
      !this.isChecked &&
      this.#failures.brokenFrom === undefined &&
      this.#early.byNumber.size === 0 &&
      (this.#failures.results.size === 0 || !this.#failures.results.has(number))
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

  /**
   * Lets kernels do the next operations, as far as all other members come in time. The first call of this geometry that is about
   * its numbers takes them back.
   * @returns pointer to the MEETING block; 0: they may not, for an operation is under way, or one has failed
   */
  lend(): number {
    const shared = this.#shared;
    const failures = this.#failures;
    if (shared === undefined || this.isChecked || this.isClosed || this.#ends.hasAny) return 0;
    if (this.#active.count > 0 || failures.brokenFrom !== undefined || failures.results.size > 0) return 0;
    if (this.#early.byNumber.size > 0) return 0;
    return shared.lend(this.#active.next, this.#last?.signature ?? 0, this.#last?.mayMeet === true);
  }

  #takeBack(): void {
    if (this.#shared?.isLent !== true) return;
    const next = this.#shared.takeBack();
    this.#active.skipTo(next);
    this.#completed = (next - 1) >>> 0;
  }

  #startShared(operation: SharedOperation): void {
    if (this.#early.byNumber.size > 0) this.#deliverEarly(operation);
    operation.advance();
  }

  /** Numbers an operation. False: the operation has failed already. */
  #begin(operation: CollectiveOperation, signature: number): boolean {
    this.#takeBack();
    const number = this.#active.next;
    operation.number = number;
    operation.signature = signature;
    this.#active.add(operation);
    const { buffers } = operation;
    if (buffers !== undefined) operation.hold(this.regions, buffers.send, buffers.receive);
    const failed = this.#failures.of(number);
    if (operation.isPolling) this.#host.polling(this, 1);
    if (failed === undefined) return true;
    if (failed === SHUTDOWN) operation.why = this.#failures.lost;
    this.#end(operation, failed, false);
    return false;
  }

  /** Sends this member's call to all members. The operation begins once all calls are there, if nothing differs. */
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
    for (const rank of this.#ends.gone) this.#endedFor(operation, rank);
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
    // All members have the same calls, so each member finds the difference by itself.
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

  /** Advances the operations that poll. If an operation waits for its slot, later operations wait, too. */
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

  /** A message of this geometry has come from the member of this rank. */
  came(kind: number, rank: number, number: number, tag: number, signature: number, arrival: Arrival): void {
    this.#takeBack();
    if (kind === COLLECTIVE_EXTENSION) this.extensions.came(number, rank, tag, signature, arrival);
    else if (kind === COLLECTIVE_CLOSED) {
      this.memberGone(rank);
      this.#host.closedAt(this, arrival.origin);
    } else if (kind === COLLECTIVE_FAILED) {
      this.#failedElsewhere(number, failureIn(tag), new TextDecoder().decode(arrival.payload.slice()));
    } else if (kind === COLLECTIVE_ACTIVE) {
      this.active.came(number, tag, signature, rank, arrival);
      this.active.rethrow();
    }
    if (kind === COLLECTIVE_VOTE) this.#votes.came(number, rank, tag, arrival.payload.slice());
    if (kind === COLLECTIVE_DATA || kind === COLLECTIVE_READY || kind === COLLECTIVE_CALL) {
      const early = { kind, rank, tag, signature, arrival };
      const operation = this.#active.at(number);
      const isAhead = seqDelta(number, this.#active.next) >= 0;
      if (isAhead || operation?.check !== undefined) {
        if (seqDelta(number, this.#active.next) >= AHEAD_MAX) return;
        if (kind !== COLLECTIVE_CALL) this.#early.keep(number, early);
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
          this.#failures.results.get(number) ?? ERROR,
          new TextEncoder().encode(text),
        );
      }
    }
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
    return this.#ends.hasAny;
  }

  isGone(rank: number): boolean {
    return this.#ends.gone.has(rank);
  }

  hasEnded(rank: number): boolean {
    return this.#ends.has(rank);
  }

  watch(rank: number): void {
    const endpoint = this.endpoints[rank] as Endpoint;
    if (this.#host.isGone(endpoint)) this.memberGone(rank);
    else this.#host.watch(endpoint);
  }

  send(kind: number, rank: number, operation: CollectiveOperation, tag: number, payload?: Uint8Array): Result {
    return this.#peers.send(kind, rank, operation.number, tag, operation.signature, payload);
  }

  sendLong(rank: number, operation: CollectiveOperation, tag: number, payload: Uint8Array, onSent: () => void): void {
    this.#peers.sendLong(COLLECTIVE_DATA, rank, operation.number, tag, operation.signature, payload, onSent);
  }

  /**
   * Adds an extension, before the operation in which members tell each other of the extension. @returns the extension's number,
   * which is the number of that operation
   */
  extend(extension: Extension): number {
    const number = this.nextNumber;
    this.extensions.add(number, extension);
    for (let rank = 0; rank < this.size; rank++) if (rank !== this.rank) this.watch(rank);
    return number;
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

  /**
   * The error of an operation that has failed. @param shutdown the error for a member that has ended @param cause the thrown
   * error
   */
  errorOf(
    what: string,
    result: Result,
    why: string,
    shutdown: (text: string, to: Endpoint) => Error,
    cause?: unknown,
  ): Error {
    const known = result === SHUTDOWN ? why || this.#failures.lost : why;
    return failureError(what, result, known, this.#firstEnded, shutdown, cause);
  }

  get #firstEnded(): Endpoint | undefined {
    return this.endpoints[this.#ends.first ?? -1];
  }

  sendActive(kind: number, rank: number, number: number, tag: number, root: number, payload: Uint8Array): void {
    this.#peers.send(kind, rank, number, tag, root, payload);
  }

  whenSent(rank: number, onSent: Callback): boolean {
    return this.#peers.whenSent(rank, onSent);
  }

  overActive(operation: CollectiveOperation, result: Result, why: string): void {
    operation.result = result;
    operation.why = why;
    operation.letGo();
    this.#heard(operation, result);
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

  /**
   * Ends an operation. If the operation has failed, its caller hears of the failure once nothing is sent from its buffers any
   * more.
   */
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
    if (this.#early.byNumber.size > 0) this.#early.forget(operation.number);
    if (this.isChecked) this.#checks.delete(operation.number);
    this.#active.remove(operation.number);
    if (operation.isPolling) this.#host.polling(this, -1);
    operation.release();
    operation.letGo();
    const completed = (this.#active.first - 1) >>> 0;
    if (completed !== this.#completed) {
      // Operations under way may wait for the slots of other members, which wait for this member's slots: then all members
      // would wait.
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

  /** Ends operations that cannot succeed any more: other members may also have ended them, without a message. */
  #endBroken(): void {
    for (const operation of this.#active.all()) {
      if (!operation.isStopped && this.#failures.isBrokenAt(operation.number)) this.#end(operation, SHUTDOWN, false);
    }
  }

  /** Remembers that an operation has failed, and tells the members that pass the failure on. */
  #hasFailed(number: number, result: Result, tells: boolean, why: string): void {
    const breaks = this.#failures.breaksAt(number, result);
    if (result === SHUTDOWN) this.#failures.lost ||= why || describeEnd(this.#firstEnded);
    if (breaks) {
      this.#failures.brokenFrom = number;
      this.#host.broken(this);
    }
    if (this.#failures.results.has(number) && !breaks) return;
    this.#failures.add(number, result);
    if (!tells) return;
    const told = new Set<number>();
    // Each member passes a failure on to some 2 log2 n members, so that the news gets around members that end meanwhile.
    for (let distance = 1; distance < this.size; distance *= 2) {
      told.add((this.rank + distance) % this.size).add((this.rank - distance + this.size) % this.size);
    }
    const text = new TextEncoder().encode((why || (result === SHUTDOWN ? this.#failures.lost : "")).slice(0, WHY_MAX));
    for (const rank of told) if (!this.#ends.gone.has(rank)) this.#tell(COLLECTIVE_FAILED, rank, number, result, text);
  }

  #tell(kind: number, rank: number, number: number, tag: number, payload?: Uint8Array): void {
    if (rank !== this.rank) this.#peers.send(kind, rank, number, tag, 0, payload);
  }

  #failedElsewhere(number: number, result: Result, why: string): void {
    // If one member has found a difference, and another the end of a member, the latter begins no further operation.
    if (this.#failures.results.has(number) && !this.#failures.breaksAt(number, result)) return;
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
   * @param isCertain false: the member is only silent, and may go on elsewhere
   */
  memberGone(rank: number, isCertain = true): void {
    this.#takeBack();
    this.#ends.gone.add(rank);
    if (isCertain) this.#ends.certain.add(rank);
    this.active.gone();
    this.#votes.gone();
    for (const operation of this.#active.all()) {
      if (operation.isPolling || !operation.isStopped) this.#endedFor(operation, rank);
    }
    this.extensions.gone(rank);
    this.#dropIfUnread();
  }

  /** A member has never had the geometry: no operation can succeed, and no block of a member is read any more. */
  memberLeft(rank: number, why: string): void {
    this.#break(why);
    this.memberGone(rank);
  }

  /** Ends operations under way, and all later operations, for all members. */
  #break(why: string): void {
    this.#takeBack();
    const number = (this.#completed + 1) >>> 0;
    if (this.#failures.isBrokenAt(number)) return;
    this.#hasFailed(number, SHUTDOWN, true, why);
    this.#endBroken();
  }

  /** Id of the geometry at a member. */
  idAt(rank: number): number | undefined {
    return this.#ids[rank];
  }

  /**
   * The context of a member that shares the memory has ended. The member's memory may be used again once this context has
   * acknowledged the end. So operations read the member's bytes now, and a copy of its block is kept.
   */
  sharedMemberEnded(rank: number): void {
    if (this.#shared === undefined || this.#ends.ended.has(rank)) return;
    this.#takeBack();
    if (!this.#failures.isBrokenAt((this.#completed + 1) >>> 0)) {
      const copy = this.scratch.take(4096);
      if (copy !== undefined) {
        this.#copies.push(copy);
        this.#shared.keep(rank, copy.pointer);
      }
      this.advance();
      if (copy === undefined) this.#break(`no memory for what ${nameOf(this.endpoints[rank] as Endpoint)} has left`);
    }
    this.#ends.ended.add(rank);
    // Some of its messages may still come: memberGone() is called once they are delivered.
    for (const operation of this.#active.all()) {
      if (operation.isPolling && operation.check === undefined) operation.ended(rank);
    }
    this.#dropIfUnread();
  }

  /** Begins an agreement on the members that have ended. All members that are left call agree(), equally often. */
  agree(isGood: boolean): Agreement {
    const agreement = this.#votes.agree(isGood);
    for (let rank = 0; rank < this.size; rank++) if (rank !== this.rank && !this.#ends.gone.has(rank)) this.watch(rank);
    this.#votes.begin(agreement);
    return agreement;
  }

  /**
   * Whether the answer of `mayGoOn` is final, in an agreement that is over. False: the members left may not go on so far, but a
   * launcher will report each silent member whose process ends.
   */
  isSettled(agreement: Agreement): boolean {
    return this.#votes.isSettled(agreement);
  }

  /** Ends the geometry at this member, and gives up operations under way. */
  close(): void {
    if (this.isClosed) return;
    this.#takeBack();
    this.isClosed = true;
    for (const operation of this.#active.all()) this.#end(operation, CANCELED, false);
    this.#early.byNumber.clear();
    this.active.close();
    this.extensions.close(this.rank);
    // Tell every member: some members wait only for this member and never send to it, so would not learn of the close
    // otherwise. A member that has closed also waits for this member.
    for (let rank = 0; rank < this.size; rank++) this.#tell(COLLECTIVE_CLOSED, rank, 0, 0);
    this.#dropIfUnread();
  }

  /** The context has closed: other members have a copy of the block before its memory may be used again. */
  release(): void {
    this.#release();
  }

  /** Gives the block back once no other member reads it, and the id once no message to the geometry matters. */
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
