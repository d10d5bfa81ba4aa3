// The MEMBER blocks of a geometry whose members share a memory (assembly/layout/collective.ts). Each member writes its own
// block and reads the blocks of the other members.
import * as L from "../../../assembly/layout.js";
import { seqDelta } from "../../../assembly/seq.js";
import { type Result, SUCCESS } from "../../core/result.js";
import type { CollectiveKernel } from "../../kernel/collective.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { copyInto } from "../../support/copy.js";

/**
 * Offset from a slot to memory for a copy of its bytes, behind the MEMBER block in its page: no other member reads this memory.
 */
export const COPY_DISTANCE = L.MEMBER_COPY_DISTANCE;
/** Behind the copies. */
const WORKSPACE_OFFSET = L.MEMBER_SLOTS_OFFSET + 2 * COPY_DISTANCE;
/** Least bytes for copyCold(): fewer, and memory.copy() is as fast. */
const COLD_BYTES = 8192;
/** Windows of a member in an operation on long arrays: the member fills one window while other members read the second. */
export const WINDOWS = 2;

/** Looks of meet() at each member: some 80 ns. */
const MEET_LOOKS = 16;

/** The steps that meet() runs for an operation whose bytes are in the slots. */
interface MetSteps<Operation> {
  publish(operation: Operation, slot: number): number;
  arrived(operation: Operation, rank: number, pointer: number): void;
  finish(operation: Operation): void;
}

export class SharedMembers {
  readonly rank: number;
  readonly size: number;
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly #cold: Pick<CollectiveKernel, "copyCold">;
  /** Pointer to each member's block; for a member that has ended, to a copy of its block. */
  readonly #blocks: number[];
  /**
   * Pointer to each member's task slot. Contexts of one task wait on the same bell, and a waiting thread looks at all of them
   * before it sleeps.
   */
  readonly #tasks: readonly number[];
  /** The last operation that each member has completed, as far as this member has seen; and the least of these numbers. */
  readonly #seen: Int32Array;
  #least = 0;
  /** The last operation that this member has completed. */
  #completed = 0;
  /** The last operation that this member has arrived for. An operation that waits for its slot may be overtaken by the next. */
  #latest = 0;
  /** Whether an operation of this member waits for its slot. */
  #isWanting = false;
  /** Pointer to the MEETING block. While it is lent, its words are newer than the fields of this object. */
  readonly #meeting: number;
  isLent = false;

  /**
   * @param cold the kernel that copies bytes which other members have written
   * @param tasks pointers to the task slots of all members
   */
  constructor(
    kernel: Kernel,
    cold: Pick<CollectiveKernel, "copyCold">,
    memory: Memory,
    rank: number,
    blocks: readonly number[],
    tasks: readonly number[],
  ) {
    this.kernel = kernel;
    this.#cold = cold;
    this.memory = memory;
    this.rank = rank;
    this.size = blocks.length;
    this.#blocks = [...blocks];
    this.#tasks = tasks;
    this.#meeting = (blocks[rank] as number) + L.MEETING_OFFSET;
    const { words } = memory;
    const at = this.#meeting >>> 2;
    const hasMeeting = this.size <= L.MEETING_MEMBERS_MAX;
    const seen = at + (L.MEETING_SEEN_OFFSET >>> 2);
    this.#seen = hasMeeting ? words.subarray(seen, seen + this.size).fill(0) : new Int32Array(this.size);
    if (hasMeeting) {
      const members = blocks.flatMap((block, other) => [block, tasks[other] as number]);
      words.set(members, at + (L.MEETING_MEMBERS_OFFSET >>> 2));
    }
  }

  /** Whether a member had its block when the geometry was made. */
  hasBlock(rank: number): boolean {
    return this.#blocks[rank] !== 0;
  }

  /** Pointer to memory of this member alone, for the steps of one call. */
  get workspace(): number {
    return (this.#blocks[this.rank] as number) + WORKSPACE_OFFSET;
  }

  /** Pointer to a member's slot of an operation. */
  slotOf(rank: number, number: number): number {
    return (
      (this.#blocks[rank] as number) + L.MEMBER_SLOTS_OFFSET + (number & (L.MEMBER_SLOTS - 1)) * L.MEMBER_SLOT_SIZE
    );
  }

  /** Whether this member may write its slot of an operation: no member reads its former content any more. */
  mayEnter(number: number): boolean {
    if (this.#hasRoom(number)) return true;
    this.#findLeast();
    if (this.#hasRoom(number)) return true;
    for (let rank = 0; rank < this.size; rank++) this.#look(rank);
    this.#findLeast();
    return this.#hasRoom(number);
  }

  /**
   * This member waits for a slot. The member looks once more before it sleeps; from then on, members that complete operations
   * wake it.
   */
  want(): void {
    if (this.#isWanting) return;
    this.#isWanting = true;
    // SYNC member-wanted (want): pairs with complete() of other members.
    this.kernel.storeWord((this.#blocks[this.rank] as number) + L.MEMBER_WANTED_OFFSET, 1);
  }

  #wantNoMore(): void {
    this.#isWanting = false;
    this.kernel.storeWord((this.#blocks[this.rank] as number) + L.MEMBER_WANTED_OFFSET, 0);
  }

  /** A member for which mayEnter() is false. */
  laggard(number: number): number {
    return this.#seen.findIndex((_, rank) => seqDelta(number, this.#look(rank)) > L.MEMBER_SLOTS);
  }

  /** The last operation that a member has completed: the stored number, or a later one from its slots. */
  #look(rank: number): number {
    // SYNC member-completed (look)
    const completed = this.kernel.loadWord((this.#blocks[rank] as number) + L.MEMBER_COMPLETED_OFFSET);
    if (seqDelta(completed, this.#seen[rank] as number) > 0) this.#seen[rank] = completed;
    return this.#seen[rank] as number;
  }

  #hasRoom(number: number): boolean {
    return seqDelta(number, this.#least) <= L.MEMBER_SLOTS;
  }

  #findLeast(): void {
    let least = this.#seen[0] as number;
    for (let rank = 1; rank < this.size; rank++) {
      const seen = this.#seen[rank] as number;
      if (seqDelta(seen, least) < 0) least = seen;
    }
    this.#least = least;
  }

  /** Writes this member's words for the other members. ring() wakes members that wait for these words. */
  arrive(number: number, result: Result, signature: number, data: number): void {
    const { words } = this.memory;
    const slot = this.slotOf(this.rank, number);
    words[(slot + L.MEMBER_RESULT_OFFSET) >>> 2] = result;
    words[(slot + L.MEMBER_SIGNATURE_OFFSET) >>> 2] = signature;
    words[(slot + L.MEMBER_DATA_OFFSET) >>> 2] = data;
    words[(slot + L.MEMBER_BEFORE_OFFSET) >>> 2] = this.#completed;
    words[(slot + L.MEMBER_FAILED_OFFSET) >>> 2] = SUCCESS;
    // SYNC member-arrived (publish): pairs with hasArrived() of other members.
    this.kernel.storeWord(slot + L.MEMBER_ARRIVED_OFFSET, number);
    if (this.#isWanting) this.#wantNoMore();
    if (seqDelta(number, this.#latest) < 0) return;
    this.#latest = number;
    this.#claim((number + 1) >>> 0);
  }

  /**
   * Lets kernels do the operations from `next` on, until takeBack(). None of this member's is under way.
   * @param isShort whether a kernel can do operations as the last one @returns pointer to the MEETING block; 0: there is none
   */
  lend(next: number, signature: number, isShort: boolean): number {
    if (this.#isWanting || this.size > L.MEETING_MEMBERS_MAX) return 0;
    const header = [1, next, next - 1, this.#least, this.rank, this.size, Number(isShort), signature];
    this.memory.words.set(header, this.#meeting >>> 2);
    this.isLent = true;
    return this.#meeting;
  }

  /**
   * Takes back what lend() has lent. This member may have arrived for the next operation already: isAt() says so.
   * @returns number of the next operation
   */
  takeBack(): number {
    const { words } = this.memory;
    const at = this.#meeting >>> 2;
    const next = (words[at + (L.MEETING_NEXT_OFFSET >>> 2)] as number) >>> 0;
    words[at + (L.MEETING_LENT_OFFSET >>> 2)] = 0;
    this.#latest = (words[at + (L.MEETING_LATEST_OFFSET >>> 2)] as number) >>> 0;
    this.#completed = (next - 1) >>> 0;
    this.#findLeast();
    this.isLent = false;
    return next;
  }

  /**
   * Stores into the slot of the next operation, if it is free, so that its cache line is in this core's cache before it is
   * needed: other members have read the slot eight operations ago. Barrier: 416 → 340 ns between distant cores (Zen 5).
   */
  #claim(number: number): void {
    if (this.#hasRoom(number)) this.memory.words[(this.slotOf(this.rank, number) + L.MEMBER_RESULT_OFFSET) >>> 2] = 0;
  }

  /** Whether this member has arrived for an operation, and for no later one. */
  isAt(number: number): boolean {
    return this.#latest === number;
  }

  /**
   * A short operation in which each member reads the slots of all other members, with no operation under way: the whole
   * operation, if the other members come within a few looks. V8 interprets the first thousand operations of a program, and
   * compiles a long function sooner than short ones: so mayEnter(), arrive(), ring(), note() and complete() are repeated here,
   * in one function.
   * @param steps undefined: the operation has no bytes
   * @returns whether the operation is complete. False: advance() goes on from its stage, which isAt() tells
   */
  meet<Operation>(
    operation: Operation,
    steps: MetSteps<Operation> | undefined,
    number: number,
    signature: number,
  ): boolean {
    const { rank, size, kernel } = this;
    const { words } = this.memory;
    const blocks = this.#blocks;
    // Operations up to the first whose slot is not free yet.
    let room = L.MEMBER_SLOTS - seqDelta(number, this.#least);
    if (room < 0) {
      if (!this.mayEnter(number)) return false;
      room = L.MEMBER_SLOTS - seqDelta(number, this.#least);
    }
    const place = L.MEMBER_SLOTS_OFFSET + (number & (L.MEMBER_SLOTS - 1)) * L.MEMBER_SLOT_SIZE;
    const slot = (blocks[rank] as number) + place;
    if (steps !== undefined) steps.publish(operation, slot + L.MEMBER_INLINE_OFFSET);
    words[(slot + L.MEMBER_RESULT_OFFSET) >>> 2] = SUCCESS;
    words[(slot + L.MEMBER_SIGNATURE_OFFSET) >>> 2] = signature;
    words[(slot + L.MEMBER_DATA_OFFSET) >>> 2] = 0;
    words[(slot + L.MEMBER_BEFORE_OFFSET) >>> 2] = this.#completed;
    words[(slot + L.MEMBER_FAILED_OFFSET) >>> 2] = SUCCESS;
    // SYNC member-arrived (publish): pairs with the look below, and hasArrived(), of other members.
    kernel.storeWord(slot + L.MEMBER_ARRIVED_OFFSET, number);
    if (this.#isWanting) this.#wantNoMore();
    this.#latest = number;
    if (room > 0) {
      // As #claim().
      const next = (number + 1) & (L.MEMBER_SLOTS - 1);
      words[
        ((blocks[rank] as number) + L.MEMBER_SLOTS_OFFSET + next * L.MEMBER_SLOT_SIZE + L.MEMBER_RESULT_OFFSET) >>> 2
      ] = 0;
    }
    // SYNC member-arrived (look)
    if (size <= 2 || this.#haveAll(L.MEMBER_ARRIVED_OFFSET, number)) this.#ringOthers();
    for (let other = 0; other < size; other++) {
      if (other === rank) continue;
      const its = (blocks[other] as number) + place;
      // SYNC member-arrived (look)
      for (let look = 1; kernel.loadWord(its + L.MEMBER_ARRIVED_OFFSET) >>> 0 !== number; look++) {
        if (look === MEET_LOOKS) return false;
      }
      if (words[(its + L.MEMBER_SIGNATURE_OFFSET) >>> 2] !== signature) return false;
      if (words[(its + L.MEMBER_RESULT_OFFSET) >>> 2] !== SUCCESS) return false;
      this.#seen[other] = words[(its + L.MEMBER_BEFORE_OFFSET) >>> 2] as number;
      if (steps !== undefined) steps.arrived(operation, other, its + L.MEMBER_INLINE_OFFSET);
    }
    if (steps !== undefined) steps.finish(operation);
    this.#completed = number;
    this.#seen[rank] = number;
    return true;
  }

  /** Notes the last operation that a member had completed when it arrived. */
  note(rank: number, slot: number): void {
    this.#seen[rank] = this.memory.words[(slot + L.MEMBER_BEFORE_OFFSET) >>> 2] as number;
  }

  /** @param slot that of a member, for the operation */
  hasArrived(slot: number, number: number): boolean {
    // SYNC member-arrived (look)
    return this.kernel.loadWord(slot + L.MEMBER_ARRIVED_OFFSET) >>> 0 === number;
  }

  /** Whether all members have arrived. At least the last member finds all arrived after its arrive(). */
  haveArrived(number: number): boolean {
    // SYNC member-arrived (look)
    return this.#haveAll(L.MEMBER_ARRIVED_OFFSET, number);
  }

  /** Whether a member has arrived for another operation than this member. */
  isStranger(rank: number, number: number): boolean {
    const slot = this.slotOf(rank, number);
    return this.hasArrived(slot, number) && this.signatureIn(slot) !== this.signatureIn(this.slotOf(this.rank, number));
  }

  /** A stranger; -1: there is none so far. Called after this member's own arrival. */
  stranger(number: number): number {
    for (let rank = 0; rank < this.size; rank++) if (this.isStranger(rank, number)) return rank;
    return -1;
  }

  /**
   * Wakes strangers that sleep, after this member's arrival. A stranger may wait for this member, which takes other members for
   * its readers and may not wait for the stranger. If no member differs, the cost is a load for each member.
   */
  ringStrangers(number: number): void {
    for (let rank = 0; rank < this.size; rank++) {
      if (rank === this.rank) continue;
      // SYNC park (look): behind `arrived`, as in ring(). Either this look finds the flag, or the stranger's last look before
      // its sleep finds `arrived`.
      const isParked = this.kernel.loadWord((this.#tasks[rank] as number) + L.TASK_PARKED_OFFSET) !== 0;
      if (isParked && this.isStranger(rank, number)) this.#ring(rank);
    }
  }

  /**
   * Whether all members, but perhaps for one, have stored the number of an operation in a word of their slots, or are
   * strangers, which may never store it. With two members, the other one is rung in any case: a look at its slot after the
   * store would make a barrier take 165 instead of 125 ns (Zen 5).
   */
  #haveAll(offset: number, number: number, but?: number): boolean {
    if (this.size <= 2) return true;
    for (let rank = 0; rank < this.size; rank++) {
      if (rank === but || this.kernel.loadWord(this.slotOf(rank, number) + offset) >>> 0 === number) continue;
      if (!this.isStranger(rank, number)) return false;
    }
    return true;
  }

  /**
   * This member has written its slice of the result, or has failed. A member that waits for another member's slice waits for
   * all slices, so the last writer wakes the other members.
   */
  reduced(number: number, result: Result, slice: number): void {
    const { words } = this.memory;
    const slot = this.slotOf(this.rank, number);
    words[(slot + L.MEMBER_SLICE_RESULT_OFFSET) >>> 2] = result;
    words[(slot + L.MEMBER_SLICE_OFFSET) >>> 2] = slice;
    // SYNC member-reduced (publish): pairs with hasReduced() of other members.
    this.kernel.storeWord(slot + L.MEMBER_REDUCED_OFFSET, number);
    // SYNC member-reduced (look)
    if (this.#haveAll(L.MEMBER_REDUCED_OFFSET, number)) this.#ringOthers();
  }

  /**
   * Before this member arrives for an operation on long arrays.
   * @param inline pointer into the member's slot
   * @param out pointer to the member's slices
   */
  openWindows(inline: number, isWindowed: boolean, out: number): void {
    const { words } = this.memory;
    const slot = inline - L.MEMBER_INLINE_OFFSET;
    words[(slot + L.MEMBER_WINDOWED_OFFSET) >>> 2] = isWindowed ? 1 : 0;
    words[(slot + L.MEMBER_OUT_OFFSET) >>> 2] = out;
    for (const offset of [L.MEMBER_FILLED_OFFSET, L.MEMBER_CUT_OFFSET, L.MEMBER_TAKEN_OFFSET])
      words[(slot + offset) >>> 2] = 0;
  }

  /** Whether a member that has arrived has windows: see openWindows(). */
  isWindowed(rank: number, number: number): boolean {
    return this.memory.words[(this.slotOf(rank, number) + L.MEMBER_WINDOWED_OFFSET) >>> 2] === 1;
  }

  /** Whether any member has windows. All have arrived. */
  hasWindows(number: number): boolean {
    for (let rank = 0; rank < this.size; rank++) if (this.isWindowed(rank, number)) return true;
    return false;
  }

  /** Pointer to a segment of a member's bytes. @param bytes of a segment */
  segmentAt(rank: number, number: number, segment: number, bytes: number): number {
    const place = this.isWindowed(rank, number) ? segment % WINDOWS : segment;
    return this.dataIn(this.slotOf(rank, number)) + place * bytes;
  }

  /** Where a member that has arrived writes its slices of segments. */
  outOf(rank: number, number: number): number {
    return (this.memory.words[(this.slotOf(rank, number) + L.MEMBER_OUT_OFFSET) >>> 2] as number) >>> 0;
  }

  /** This member has come so far, in segments. @param offset of the word that counts the segments */
  goOn(number: number, offset: number, segments: number): void {
    // SYNC member-segment (publish): pairs with segmentsOf() of other members.
    this.kernel.storeWord(this.slotOf(this.rank, number) + offset, segments);
    this.#ringOthers();
  }

  segmentsOf(rank: number, number: number, offset: number): number {
    // SYNC member-segment (look)
    return this.kernel.loadWord(this.slotOf(rank, number) + offset);
  }

  hasReduced(rank: number, number: number): boolean {
    // SYNC member-reduced (look)
    return this.kernel.loadWord(this.slotOf(rank, number) + L.MEMBER_REDUCED_OFFSET) >>> 0 === number;
  }

  /**
   * The operation has failed here, after this member's arrival. This member reads nothing any more, and no member begins to
   * read its published bytes. The member's memory may be reused once isReading() is false for each reader. Wakes the other
   * members.
   */
  fail(number: number, result: Result): void {
    // SYNC member-failed (fail): pairs with failureIn() and isReading() of other members.
    this.kernel.storeWord(this.slotOf(this.rank, number) + L.MEMBER_FAILED_OFFSET, result);
    this.#ringOthers();
  }

  /**
   * SUCCESS, or why the operation of a member that has arrived has failed there. Looked up before that member's memory is read.
   */
  failureIn(slot: number): Result {
    // SYNC member-failed (look): behind this member's own arrival, so that either this look finds the failure, or isReading()
    // finds the arrival.
    return this.kernel.loadWord(slot + L.MEMBER_FAILED_OFFSET) as Result;
  }

  /** Whether a member may be reading memory of this member, whose operation has failed. Called after fail(). */
  isReading(rank: number, number: number): boolean {
    const slot = this.slotOf(rank, number);
    if (!this.hasArrived(slot, number) || this.hasPassed(rank, number)) return false;
    return this.failureIn(slot) === SUCCESS && !this.isStranger(rank, number);
  }

  /**
   * This member reads no more bytes of its sources. The last reader of a source wakes it. If the source has failed, other
   * readers do not pass. This member finds that failure after its pass, too: then it fails and wakes all members.
   * @param sources the members whose bytes it has read: all members, one that other members also read, or (`isAlone`) some that
   *   it alone reads
   */
  pass(number: number, sources: readonly number[], isAlone: boolean): void {
    // SYNC member-passed (publish): pairs with hasPassed() of other members.
    this.kernel.storeWord(this.slotOf(this.rank, number) + L.MEMBER_PASSED_OFFSET, number);
    const but = sources.length === 1 ? sources[0] : undefined;
    // SYNC member-passed (look)
    const isLast = isAlone || this.#haveAll(L.MEMBER_PASSED_OFFSET, number, but);
    if (isLast) for (const source of sources) this.#ring(source);
  }

  hasPassed(rank: number, number: number): boolean {
    // SYNC member-passed (look)
    return this.kernel.loadWord(this.slotOf(rank, number) + L.MEMBER_PASSED_OFFSET) >>> 0 === number;
  }

  /**
   * All operations up to a number are complete here. Wakes members that wait for slots.
   * @param isHeard whether other members learn the number from `before` in this member's next slot, since they read all its
   *   slots. Then nothing is stored, and a member that is eight operations ahead waits for that slot
   */
  complete(number: number, isHeard: boolean): void {
    this.#completed = number;
    this.#seen[this.rank] = number;
    if (isHeard) return;
    // SYNC member-completed (publish): pairs with mayEnter() of other members.
    this.kernel.storeWord((this.#blocks[this.rank] as number) + L.MEMBER_COMPLETED_OFFSET, number);
    for (let rank = 0; rank < this.size; rank++) {
      // SYNC member-wanted (look): behind `completed`, so that either this look finds the wish, or mayEnter() finds
      // `completed`.
      if (this.kernel.loadWord((this.#blocks[rank] as number) + L.MEMBER_WANTED_OFFSET) !== 0) this.#ring(rank);
    }
  }

  // The words below are plain: their writer has stored `arrived` or `reduced` after them, and this member has seen that store.

  resultIn(slot: number): Result {
    return this.memory.words[(slot + L.MEMBER_RESULT_OFFSET) >>> 2] as Result;
  }

  sliceResultOf(rank: number, number: number): Result {
    return this.memory.words[(this.slotOf(rank, number) + L.MEMBER_SLICE_RESULT_OFFSET) >>> 2] as Result;
  }

  signatureIn(slot: number): number {
    return this.memory.words[(slot + L.MEMBER_SIGNATURE_OFFSET) >>> 2] as number;
  }

  /** Pointer to the bytes that a member has for other members. */
  dataIn(slot: number): number {
    const data = (this.memory.words[(slot + L.MEMBER_DATA_OFFSET) >>> 2] as number) >>> 0;
    return data === 0 ? slot + L.MEMBER_INLINE_OFFSET : data;
  }

  /** Whether a member's bytes are in its slot, which stays unchanged until all members have completed the operation. */
  isInline(slot: number): boolean {
    return this.memory.words[(slot + L.MEMBER_DATA_OFFSET) >>> 2] === 0;
  }

  /** Writes the number of bytes that this member gathers, before it arrives. @param inline pointer into its slot */
  noteLength(inline: number, bytes: number): void {
    this.memory.words[(inline - L.MEMBER_INLINE_OFFSET + L.MEMBER_SLICE_OFFSET) >>> 2] = bytes;
  }

  /** Pointer to a member's slice; in a gather, its bytes. */
  sliceOf(rank: number, number: number): number {
    return (this.memory.words[(this.slotOf(rank, number) + L.MEMBER_SLICE_OFFSET) >>> 2] as number) >>> 0;
  }

  /** A member has ended: from now on its block is read from a copy. @param copy pointer to MEMBER_SIZE bytes of this task */
  keep(rank: number, copy: number): void {
    this.kernel.copyBytes(copy, this.#blocks[rank] as number, L.MEMBER_SIZE);
    this.#blocks[rank] = copy;
  }

  /**
   * Pointer to a view's bytes, if they lie in the job's memory, at a multiple of `align`; else 0. Of another program's memory
   * that has grown, only what was there at launch counts: the other members' views reach no further.
   */
  pointerOf({ buffer, byteOffset, length }: Uint8Array, align = 1): number {
    const { buffer: own, bytes } = this.memory;
    if (buffer !== own || length === 0 || byteOffset % align !== 0 || byteOffset + length > bytes.length) return 0;
    return byteOffset;
  }

  /** Copies bytes of the job's memory to a view. */
  read(target: Uint8Array, offset: number, pointer: number, bytes: number): void {
    if (bytes === 0) return;
    if (bytes <= 64) {
      const { bytes: all } = this.memory;
      for (let i = 0; i < bytes; i++) target[offset + i] = all[pointer + i] as number;
      return;
    }
    const own = this.pointerOf(target);
    if (own !== 0) {
      const distance = Math.abs(own + offset - pointer);
      if (distance === 0) return;
      if (bytes < COLD_BYTES || distance < bytes) this.kernel.copyBytes(own + offset, pointer, bytes);
      else this.#cold.copyCold(own + offset, pointer, bytes);
    } else copyInto(target, offset, this.memory.bytes.subarray(pointer, pointer + bytes));
  }

  /**
   * Like write() and read(), word by word: a few bytes of a view, as words. Pointers are multiples of 4.
   * @param copy a second destination of the words
   */
  writeWords(pointer: number, source: Int32Array, copy = pointer): void {
    const { words } = this.memory;
    const place = pointer >>> 2;
    const other = copy >>> 2;
    for (let i = 0; i < source.length; i++) {
      const word = source[i] as number;
      words[place + i] = word;
      if (other !== place) words[other + i] = word;
    }
  }

  readWords(target: Int32Array, pointer: number): void {
    const { words } = this.memory;
    const place = pointer >>> 2;
    for (let i = 0; i < target.length; i++) target[i] = words[place + i] as number;
  }

  /** Copies a view to bytes of the job's memory. */
  write(pointer: number, source: Uint8Array): void {
    const bytes = source.length;
    if (bytes <= 64) {
      const { bytes: all } = this.memory;
      for (let i = 0; i < bytes; i++) all[pointer + i] = source[i] as number;
      return;
    }
    const own = this.pointerOf(source);
    if (own !== 0) this.kernel.copyBytes(pointer, own, bytes);
    else copyInto(this.memory.bytes, pointer, source);
  }

  /** Wakes members, if they sleep. */
  ring(ranks: readonly number[]): void {
    for (const rank of ranks) this.#ring(rank);
  }

  #ringOthers(): void {
    const { rank: own, size, kernel } = this;
    for (let rank = 0; rank < size; rank++) if (rank !== own) kernel.ring(this.#tasks[rank] as number);
  }

  #ring(rank: number): void {
    if (rank !== this.rank) this.kernel.ring(this.#tasks[rank] as number);
  }
}
