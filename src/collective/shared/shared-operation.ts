// Operations of members that share a memory. Each member publishes a pointer to its bytes, or the bytes themselves if they fit
// into its slot; other members read the bytes there. So there is no copy that could be avoided.
//
//   enter   the slot is free: publish
//   read    for each source, once it has arrived: take its bytes
//   windows (long arrays) segment by segment, if one of them lies outside of the job's memory: see windows.ts; then leave
//   reduce  (slices) write the slice of this member, say so, and take the slices of the others
//   leave   once the others have passed, if they read memory of this member
//
// A member that has no memory for its bytes publishes NONE. That member and its readers run a schedule between "read" and
// "leave". The schedule's messages carry the missing bytes: in a gather the bytes of some members, else of all.
//
// A member that fails stops and publishes the failure. Its memory belongs to the caller again once no other member may be
// reading it.
//
// A stranger is a member that has begun another operation under the same number. A stranger may take other members for its
// readers, and so not wake a member that waits for the stranger. No member sleeps for ever nevertheless:
//
//   - Before a member sleeps, it looks whether a stranger has arrived, and fails in that case: see lookBeforeSleep().
//   - A stranger that arrives later wakes the sleeping member: see ringStrangers(). Each of the two stores before it looks, so
//     at least one of them sees the other.
//   - In an operation in which each member reads from all, no member looks for sleepers as it arrives. There, a stranger's
//     operation can't succeed: the stranger looks at all members before it sleeps or ends.
//   - A member that fails wakes all.
import { MEMBER_INLINE_BYTES, MEMBER_INLINE_OFFSET, NONE } from "../../../assembly/layout.js";
import { textOf } from "../../core/error.js";
import { CANCELED, EAGAIN, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Arrival } from "../../protocol/late-handler.js";
import { CollectiveOperation, type OperationBuffers } from "../operation.js";
import { Execution, type ExecutionHost } from "../schedule/execution.js";
import type { Schedule } from "../schedule/schedule.js";
import { COPY_BYTES, type Piece } from "../scratch.js";
import { describeDifference } from "../signature.js";
import { type SharedMembers, WINDOWS as WINDOW_COUNT } from "./shared-members.js";
import { type WindowSteps, Windows } from "./windows.js";

const ENTER = 0;
const READ = 1;
const REDUCE = 2;
const LEAVE = 3;
const STOPPED = 4;
const MESSAGES = 5;
const WINDOWS = 6;

export interface SharedHost extends ExecutionHost {
  readonly shared: SharedMembers;
  /** Whether any members have ended, and whether a given member has: it never does its open steps. */
  readonly hasAnyEnded: boolean;
  hasEnded(rank: number): boolean;
  /** Begins the schedule of an operation. */
  start(execution: Execution, schedule: Schedule): void;
}

/**
 * The steps of a type of operation in each stage. The engine is one class for all types, so that V8 finds its fields without a
 * lookup, however many types a program uses.
 */
export abstract class SharedAlgorithm {
  /** Ranks whose bytes this member reads, in this order. */
  abstract readonly sources: readonly number[];
  /** Ranks that wait for this member's published words, and read its bytes. */
  abstract readonly readers: readonly number[];
  /**
   * Whether every reader of a member's bytes reads the bytes of all members: readers then sleep until the last member has
   * arrived.
   */
  abstract readonly isOfAll: boolean;
  /** Whether members reduce slices. */
  readonly hasSlices: boolean = false;
  /** Whether each member reads the slots of all other members. */
  abstract readonly isMutual: boolean;
  /** Whether members publish any bytes. */
  readonly hasBytes: boolean = true;
  /** Whether all bytes are always in the slots. */
  readonly isInline: boolean = false;

  /**
   * Pointer to this member's bytes for its readers; 0: in its slot; NONE: there is no memory. @param slot the destination of
   * inline bytes
   */
  abstract publish(operation: SharedOperation, slot: number): number;
  /** Takes the published bytes of a source. */
  arrived(_operation: SharedOperation, _rank: number, _pointer: number): void {}
  /** All sources have arrived. */
  finish(_operation: SharedOperation): void {}
  /** Reduces the slice of this member. @returns a pointer to the slice */
  slice(_operation: SharedOperation): number {
    return 0;
  }
  /** Whether this member takes the slice of another member. */
  needs(_rank: number): boolean {
    return false;
  }
  takeSlice(_operation: SharedOperation, _rank: number, _pointer: number): void {}
  /** All sources have arrived: the work to do segment by segment; undefined: no work is. */
  windows(_operation: SharedOperation): WindowSteps | undefined {
    return undefined;
  }
}

/** An operation in which members read the published bytes of other members. */
export class SharedOperation extends CollectiveOperation {
  readonly isPolling = true;
  readonly isMutual: boolean;
  readonly host: SharedHost;
  readonly shared: SharedMembers;
  buffers: OperationBuffers;
  readonly #steps: SharedAlgorithm;
  /** The steps of meet(), if there are any. */
  readonly #met: SharedAlgorithm | undefined;
  readonly #isInline: boolean;
  /** Whether each member needs the slots of all other members, and nothing else: see meet(). */
  readonly mayMeet: boolean;
  /** The buffers as words, if they are short and aligned. Created once, since V8 makes a view in 50 ns. */
  #sendWords: Int32Array | undefined;
  #receiveWords: Int32Array | undefined;
  readonly #sources: readonly number[];
  readonly #readers: readonly number[];
  #stage = ENTER;
  #cursor = 0;
  /** Whether other members read memory of this member, outside of its slot. */
  #isRead = false;
  readonly #pieces: Piece[] = [];
  /** A member that has begun something else, as the last look before a sleep has found; -1: there is none. */
  #stranger = -1;
  /** Whether a member has published NONE. */
  #isLacking = false;
  /** Runs the fallback schedule once a member has published NONE. Messages for the schedule may arrive earlier. */
  #messages: Execution | undefined;
  readonly #missing: MissingSchedule | undefined;
  #windows: Windows | undefined;

  /** @param missing makes the schedule; not needed if all bytes are always in the slots */
  constructor(host: SharedHost, buffers: OperationBuffers, steps: SharedAlgorithm, missing?: MissingSchedule) {
    super();
    this.#missing = missing;
    this.host = host;
    this.shared = host.shared;
    this.buffers = buffers;
    this.#steps = steps;
    this.#met = steps.hasBytes ? steps : undefined;
    this.isMutual = steps.isMutual;
    this.#isInline = steps.isInline;
    this.mayMeet = steps.isInline && steps.isMutual;
    this.#sendWords = shortWords(buffers.send);
    this.#receiveWords = shortWords(buffers.receive);
    this.#sources = steps.sources;
    this.#readers = steps.readers;
  }

  /** Replaces the buffers by others of the same lengths, in an operation that is over and publishes its bytes in its slot. */
  use(buffers: OperationBuffers): void {
    this.buffers = buffers;
    this.#sendWords = shortWords(buffers.send);
    this.#receiveWords = shortWords(buffers.receive);
  }

  /** Begins anew, with another number: for operations that are used again and again. */
  reset(): void {
    const hasMet = this.result === SUCCESS && this.#stage === ENTER;
    this.result = EAGAIN;
    if (hasMet) return;
    this.failure = EAGAIN;
    this.why = "";
    this.cause = undefined;
    this.#stage = ENTER;
    this.#cursor = 0;
    this.#isRead = false;
    this.#stranger = -1;
    this.#isLacking = false;
  }

  override get isAtSlot(): boolean {
    return this.#stage === ENTER && !this.isOver && this.check === undefined;
  }

  lookBeforeSleep(): boolean {
    const { shared, number } = this;
    if (this.#stage === ENTER) return this.check === undefined && shared.mayEnter(number);
    if (this.#stage === REDUCE) return shared.hasReduced(this.#cursor, number);
    if (this.#stage === STOPPED) return !this.isSending;
    if (this.#stage === WINDOWS) return this.#windows?.mayStep === true || this.#failedAt() >= 0;
    if (
      this.#stage === READ &&
      shared.hasArrived(shared.slotOf(this.#sources[this.#cursor] as number, number), number)
    ) {
      return true;
    }
    if (this.#stage === LEAVE && shared.hasPassed(this.#readers[this.#cursor] as number, number)) return true;
    this.#stranger = shared.stranger(number);
    return this.#stranger >= 0;
  }

  /** Whether the operation has failed, and other members may still be reading memory of this member. */
  override get isSending(): boolean {
    if (this.#messages?.isSending) return true;
    // Asks for each reader, even after finding one that reads: see #pass().
    return this.#stage === STOPPED && this.#isRead && this.#readers.filter(this.#isReading).length > 0;
  }

  readonly #isReading = (rank: number): boolean =>
    this.shared.isReading(rank, this.number) && !this.host.hasEnded(rank);

  advance(): void {
    if (this.isOver || this.check !== undefined) return;
    try {
      if (this.#stage === STOPPED && !this.isSending) this.host.sent(this);
      if (this.#stage === ENTER) this.#enter();
      if (this.#stage === READ) this.#read();
      if (this.#stage === WINDOWS) this.#goByWindows();
      if (this.#stage === REDUCE) this.#reduce();
      if (this.#stage === LEAVE) this.#leave();
      if (this.#stage === MESSAGES) this.#stranger = this.shared.stranger(this.number);
      if (this.#stranger >= 0) this.#differs(this.#stranger);
    } catch (error) {
      this.host.failed(this, ERROR, textOf(error));
    }
  }

  /**
   * All steps of advance() in one go, if the other members come within a few looks, and nothing differs or fails. The operation
   * needs a number and a signature, but no place among the operations under way.
   * @returns whether the operation is over. False: advance() goes on from its stage, and names a fault
   */
  meet(): boolean {
    const { shared, number } = this;
    try {
      if (shared.meet(this, this.#met, number, this.signature)) {
        this.result = SUCCESS;
        return true;
      }
    } catch {
      // advance() comes to the same error.
    }
    if (shared.isAt(number)) this.#stage = READ;
    return false;
  }

  came(kind: number, rank: number, arrival: Arrival, tag: number): void {
    this.#execution.came(kind, rank, arrival, tag);
  }

  ended(rank: number): void {
    if (this.#stage !== MESSAGES) this.advance();
    else if (this.host.isGone(rank)) this.#execution.ended(rank);
  }

  awaited(): number[] {
    const { shared, number } = this;
    if (this.#stage === STOPPED) return this.#readers.filter(this.#isReading);
    if (this.#stage === MESSAGES) return this.#execution.awaited();
    if (this.#stage === WINDOWS) return (this.#windows as Windows).awaited();
    const sources = this.#sources.filter((rank) => !shared.hasArrived(shared.slotOf(rank, number), number));
    if (this.#stage === ENTER) return [...new Set([shared.laggard(number), ...sources])].filter((rank) => rank >= 0);
    if (this.#stage === READ) return sources;
    const has = (rank: number): boolean =>
      this.#stage === REDUCE ? shared.hasReduced(rank, number) : shared.hasPassed(rank, number);
    const isNeeded = (rank: number): boolean => this.#steps.needs(rank);
    const ranks = this.#stage === REDUCE ? allRanks(shared.size).filter(isNeeded) : [...this.#readers];
    return ranks.filter((rank) => !has(rank));
  }

  override abandon(result: Result): void {
    // Before this operation has entered, its slot still belongs to an earlier operation.
    if (this.#stage === ENTER) return;
    this.#stage = STOPPED;
    // CANCELED says that this member has closed the geometry: other members see it as ended.
    this.shared.fail(this.number, result === CANCELED ? SHUTDOWN : result);
  }

  release(): void {
    if (this.#pieces.length > 0) this.#giveBack();
    this.#messages?.release();
    this.#messages = undefined;
    this.#windows = undefined;
  }

  #giveBack(): void {
    for (let piece = this.#pieces.pop(); piece !== undefined; piece = this.#pieces.pop()) {
      this.host.scratch.giveBack(piece);
    }
  }

  /** Takes memory until the operation is over. @returns a pointer; NONE: there is no memory left */
  take(bytes: number): number {
    const piece = this.host.scratch.take(bytes);
    if (piece === undefined) return NONE;
    this.#pieces.push(piece);
    return piece.pointer;
  }

  /** Writes "send" into the slot. @param copy a second destination */
  publishInline(slot: number, copy?: number): number {
    if (this.#sendWords !== undefined) {
      this.shared.writeWords(slot, this.#sendWords, copy);
      return 0;
    }
    if (copy !== undefined) this.shared.write(copy, this.buffers.send);
    this.shared.write(slot, this.buffers.send);
    return 0;
  }

  /** Reads all of "receive". */
  receive(pointer: number): void {
    const { receive } = this.buffers;
    if (this.#receiveWords === undefined || (pointer & 3) !== 0) this.shared.read(receive, 0, pointer, receive.length);
    else this.shared.readWords(this.#receiveWords, pointer);
  }

  /** Publishes a view: inline if it fits, else in place, or in a copy. @param copied bytes of the longest copy */
  publishView(slot: number, view: Uint8Array, align?: number, copied?: number): number {
    if (view.length <= MEMBER_INLINE_BYTES) {
      this.shared.write(slot, view);
      return 0;
    }
    return this.pointerTo(view, align, copied);
  }

  /**
   * Publishes a long view in place, or two windows for it.
   * @param window bytes of a window; a member whose array lies in the job's memory may need windows, too
   * @param out bytes for slices and partial results, 0 for none
   */
  publishLong(slot: number, view: Uint8Array, align: number, window: number, out: number): number {
    const { shared } = this;
    const place = shared.pointerOf(view, align);
    const isWindowed = place === 0 && view.length > 0;
    const slices = out === 0 ? 0 : this.take(out);
    const data = isWindowed ? this.take(WINDOW_COUNT * window) : place;
    if (slices === NONE || data === NONE) return NONE;
    shared.openWindows(slot, isWindowed, slices);
    return data;
  }

  /**
   * Pointer to a view's bytes in the job's memory, or to a copy of them there; NONE: there is no memory, or the copy would be
   * too long. Then messages carry the bytes, in fragments and segments.
   */
  pointerTo(view: Uint8Array, align?: number, copied = COPY_BYTES): number {
    const pointer = this.shared.pointerOf(view, align);
    if (pointer !== 0 || view.length === 0) return pointer;
    if (view.length > copied) return NONE;
    const copy = this.take(view.length);
    if (copy !== NONE) this.shared.write(copy, view);
    return copy;
  }

  #enter(): void {
    const { shared, number, host } = this;
    if (shared.isAt(number)) {
      // A kernel has arrived for it: see SharedMembers.lend().
      this.#stage = READ;
      return;
    }
    if (!shared.mayEnter(number)) {
      shared.want();
      this.#lookAtEnds();
      return;
    }
    let result: Result = SUCCESS;
    let data = 0;
    try {
      data = this.#steps.publish(this, shared.slotOf(shared.rank, number) + MEMBER_INLINE_OFFSET);
    } catch (error) {
      result = ERROR;
      this.why = textOf(error);
    }
    this.#isRead = result === SUCCESS && this.#readers.length > 0 && (data !== 0 || this.#steps.hasSlices);
    if (data === NONE) this.#lack();
    this.#arrive(result, data);
    if (result !== SUCCESS) host.failed(this, result, this.why);
  }

  #arrive(result: Result, data: number): void {
    const { shared, number } = this;
    shared.arrive(number, result, this.signature, data);
    if (!this.#steps.isOfAll || shared.haveArrived(number)) shared.ring(this.#readers);
    if (!this.isMutual && this.#readers.length < shared.size - 1) shared.ringStrangers(number);
    this.#stage = READ;
  }

  #read(): void {
    const { shared, number, host } = this;
    const sources = this.#sources;
    for (; this.#cursor < sources.length; this.#cursor++) {
      const rank = sources[this.#cursor] as number;
      const slot = shared.slotOf(rank, number);
      if (!shared.hasArrived(slot, number)) {
        this.#lookAtEnds();
        return;
      }
      shared.note(rank, slot);
      if (shared.signatureIn(slot) !== this.signature) {
        this.#differs(rank);
        return;
      }
      const result = shared.resultIn(slot);
      if (result !== SUCCESS) {
        host.failed(this, result, `rank ${rank} has failed`);
        return;
      }
      if (!this.#isInline) {
        if (shared.dataIn(slot) === NONE) {
          this.#isLacking = true;
          continue;
        }
        if (!this.#mayRead(rank, slot)) return;
      }
      this.#steps.arrived(this, rank, shared.dataIn(slot));
    }
    if (this.#isLacking) {
      this.#goByMessages();
      return;
    }
    if (this.#steps.hasSlices && host.hasAnyEnded) {
      for (const rank of sources) if (!this.#mayRead(rank, shared.slotOf(rank, number))) return;
    }
    const windows = this.#steps.windows(this);
    if (windows !== undefined) {
      this.#windows = new Windows(shared, number, windows);
      this.#stage = WINDOWS;
      return;
    }
    this.#steps.finish(this);
    this.#cursor = 0;
    if (this.#isInline) this.#stage = LEAVE;
    else if (!this.#steps.hasSlices) this.#pass();
    else this.#writeSlice();
  }

  /** This member has no memory for all its bytes, so it gives back the part that it got. */
  #lack(): void {
    this.#isLacking = true;
    this.#isRead = false;
    this.#giveBack();
  }

  /** This member has read all bytes that are in memory: the rest comes by messages. */
  #goByMessages(): void {
    const { host, shared, number } = this;
    this.#cursor = 0;
    this.#pass();
    if (this.#stage !== LEAVE) return;
    this.#stage = MESSAGES;
    const missing = this.#missing as MissingSchedule;
    const schedule = missing((rank) => shared.dataIn(shared.slotOf(rank, number)) === NONE);
    host.start(this.#execution, schedule);
  }

  #goByWindows(): void {
    const { host } = this;
    const windows = this.#windows as Windows;
    while (!windows.isOver) {
      // The memory of a member that has failed or ended may be something else by now.
      const rank = this.#failedAt();
      if (rank >= 0) {
        const failure = host.hasEnded(rank) ? SHUTDOWN : this.shared.failureIn(this.shared.slotOf(rank, this.number));
        host.failed(this, failure, failure === SHUTDOWN ? "" : `rank ${rank} has failed`);
        return;
      }
      try {
        if (!windows.step()) return;
      } catch (error) {
        this.cause = error;
        host.failed(this, ERROR, textOf(error));
        return;
      }
    }
    this.#cursor = 0;
    this.#pass();
  }

  /** A member that has failed or ended before all is over; -1: there is none. */
  #failedAt(): number {
    const { shared, host, number } = this;
    for (let rank = 0; rank < shared.size; rank++) {
      if (rank === shared.rank) continue;
      if (shared.failureIn(shared.slotOf(rank, number)) !== SUCCESS) return rank;
      if (host.hasAnyEnded && host.hasEnded(rank)) return rank;
    }
    return -1;
  }

  get #execution(): Execution {
    this.#messages ??= new Execution(this.host, NO_SCHEDULE, this.buffers, this, () => {
      this.#stage = LEAVE;
      this.advance();
    });
    return this.#messages;
  }

  #writeSlice(): void {
    let slice = 0;
    let result: Result = SUCCESS;
    try {
      slice = this.#steps.slice(this);
    } catch (error) {
      result = ERROR;
      this.why = textOf(error);
      this.cause = error;
    }
    this.shared.reduced(this.number, result, slice);
    this.#stage = REDUCE;
    this.#skip();
  }

  /** Moves the cursor to the next member whose slice is awaited. */
  #skip(): void {
    while (this.#cursor < this.shared.size && !this.#steps.needs(this.#cursor)) this.#cursor++;
  }

  #reduce(): void {
    const { shared, number, host } = this;
    for (; this.#cursor < shared.size; this.#cursor++, this.#skip()) {
      const rank = this.#cursor;
      if (!shared.hasReduced(rank, number)) {
        this.#lookAtEnds();
        return;
      }
      const result = shared.sliceResultOf(rank, number);
      if (result !== SUCCESS) {
        host.failed(this, result, rank === shared.rank ? this.why : `the reduction has failed at rank ${rank}`);
        return;
      }
      if (host.hasAnyEnded && host.hasEnded(rank) && shared.sliceOf(rank, number) !== 0) {
        host.failed(this, SHUTDOWN, "");
        return;
      }
      this.#steps.takeSlice(this, rank, shared.sliceOf(rank, number));
    }
    this.#cursor = 0;
    this.#pass();
  }

  /**
   * Whether a member's published bytes are still there. If the member has ended, or the operation has failed there, its memory
   * may have been reused. If the operation has not failed there, the memory stays unchanged until this member has passed.
   */
  #mayRead(rank: number, slot: number, hasRead = false): boolean {
    const { host, shared } = this;
    if (shared.isInline(slot) && !this.#steps.hasSlices) return true;
    const isUnreadable = !hasRead && host.hasAnyEnded && host.hasEnded(rank) && !shared.isInline(slot);
    const failure = isUnreadable ? SHUTDOWN : shared.failureIn(slot);
    if (failure === SUCCESS) return true;
    host.failed(this, failure, failure === SHUTDOWN ? "" : `rank ${rank} has failed`);
    return false;
  }

  /**
   * This member has read everything. The owners of the memory wait for this member, unless their context has closed. So this
   * member looks for failures after its pass(). A failing member stores its failure, then looks whether this member has passed,
   * and only then writes its memory. So either this member finds the failure, or the failing member finds that this member has
   * read everything.
   */
  #pass(): void {
    const { shared, number } = this;
    let isWaitedFor = this.#steps.hasSlices;
    for (let place = 0; place < this.#sources.length && !isWaitedFor; place++) {
      isWaitedFor = !shared.isInline(shared.slotOf(this.#sources[place] as number, number));
    }
    if (isWaitedFor) {
      shared.pass(number, this.#sources, this.#steps.isOfAll && !this.isMutual);
      for (const rank of this.#sources) if (!this.#mayRead(rank, shared.slotOf(rank, number), true)) return;
    }
    this.#stage = LEAVE;
  }

  #leave(): void {
    const { shared, number } = this;
    if (this.isOver) return;
    if (this.#isRead) {
      for (; this.#cursor < this.#readers.length; this.#cursor++) {
        const rank = this.#readers[this.#cursor] as number;
        if (shared.hasPassed(rank, number)) continue;
        if (shared.isStranger(rank, number)) this.#differs(rank);
        this.#lookAtEnds();
        return;
      }
    }
    this.host.over(this, SUCCESS);
  }

  /** Fails: a member has begun something else. */
  #differs(rank: number): void {
    const { shared, number, signature } = this;
    const theirs = shared.signatureIn(shared.slotOf(rank, number));
    this.host.failed(this, ERROR, describeDifference(shared.rank, signature, rank, theirs));
  }

  /** Fails if one of the awaited members has ended: that member never does its open steps. */
  #lookAtEnds(): void {
    if (!this.host.hasAnyEnded || !this.awaited().some((rank) => this.host.hasEnded(rank))) return;
    this.host.failed(this, SHUTDOWN, "");
  }
}

/** Makes the schedule that carries the missing bytes. @param isLacking whether a member that this member reads has no memory */
export type MissingSchedule = (isLacking: (rank: number) => boolean) => Schedule;

const NO_SCHEDULE: Schedule = { scratchBytes: 0, rounds: [] };

export function allRanks(size: number): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

function shortWords({ buffer, byteOffset, length }: Uint8Array): Int32Array | undefined {
  const isShort = length <= MEMBER_INLINE_BYTES && length % 4 === 0 && byteOffset % 4 === 0;
  return isShort ? new Int32Array(buffer, byteOffset, length / 4) : undefined;
}
