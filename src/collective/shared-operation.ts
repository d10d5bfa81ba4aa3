// Operations of members that share a memory. Each member publishes a pointer to its bytes, or the bytes themselves if they fit
// into its slot; the others read them from there. So no byte is copied that does not have to be.
//
//   enter   the slot is free: publish
//   read    for each source, once it has arrived: take its bytes
//   reduce  (slices) write the slice of this member, say so, and take the slices of the others
//   leave   once the others have passed, if they read memory of this member
import { MEMBER_INLINE_BYTES, MEMBER_INLINE_OFFSET } from "../../assembly/layout.js";
import { EAGAIN, ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import { foldOf, memberOf } from "./algorithms/order.js";
import { type Buffers, Operation, type Reducer } from "./operation.js";
import type { Piece, Scratch } from "./scratch.js";
import { prefixSums, slices } from "./shape.js";
import type { SharedMembers } from "./shared-members.js";

const ENTER = 0;
const READ = 1;
const REDUCE = 2;
const LEAVE = 3;

/** Bytes of a slice that are reduced at a time, so that they stay in the cache. */
const BLOCK_BYTES = 16 * 1024;
/** Most members that each read all others, where a reduction's bytes fit into slots. */
const FLAT_MEMBERS = 8;

export interface SharedHost {
  readonly shared: SharedMembers;
  readonly scratch: Scratch;
  /** Whether members have ended, and whether this one has: what it has not done by now, it never does. */
  readonly hasAnyEnded: boolean;
  hasEnded(rank: number): boolean;
  over(operation: Operation, result: Result): void;
  failed(operation: Operation, result: Result, why: string): void;
  /** What an operation's signature says, in words. */
  describe(signature: number): string;
}

/** An operation in which members read what others have published. */
export abstract class SharedOperation extends Operation {
  readonly isPolling = true;
  protected readonly host: SharedHost;
  protected readonly shared: SharedMembers;
  protected readonly buffers: Buffers;
  /** Ranks whose bytes this member reads, in this order; and of those that read its own. */
  readonly #sources: readonly number[];
  readonly #readers: readonly number[];
  #stage = ENTER;
  #cursor = 0;
  /** Whether this member's bytes lie outside of its slot. */
  #isOutside = false;
  readonly #pieces: Piece[] = [];

  constructor(host: SharedHost, buffers: Buffers, sources: readonly number[], readers: readonly number[]) {
    super();
    this.host = host;
    this.shared = host.shared;
    this.buffers = buffers;
    this.#sources = sources;
    this.#readers = readers;
  }

  /** Begins anew, with another number: for operations that are used again and again. */
  reset(): void {
    this.result = EAGAIN;
    this.why = "";
    this.#stage = ENTER;
    this.#cursor = 0;
    this.#isOutside = false;
  }

  get hasWork(): boolean {
    const { shared, number } = this;
    if (this.#stage === ENTER) return shared.mayEnter(number);
    if (this.#stage === READ) {
      return shared.hasArrived(shared.slotOf(this.#sources[this.#cursor] as number, number), number);
    }
    if (this.#stage === REDUCE) return shared.hasReduced(this.#cursor, number);
    return shared.hasPassed(this.#readers[this.#cursor] as number, number);
  }

  advance(): void {
    try {
      if (this.#stage === ENTER) this.#enter();
      if (this.#stage === READ) this.#read();
      if (this.#stage === REDUCE) this.#reduce();
      if (this.#stage === LEAVE) this.#leave();
    } catch (error) {
      this.host.failed(this, resultOf(error), String(error));
    }
  }

  ended(): void {
    this.advance();
  }

  awaited(): number[] {
    const { shared, number } = this;
    if (this.#stage === ENTER) return [shared.laggard(number)];
    const sources = this.#sources.filter((rank) => !shared.hasArrived(shared.slotOf(rank, number), number));
    if (this.#stage === READ) return sources;
    const has = (rank: number): boolean =>
      this.#stage === REDUCE ? shared.hasReduced(rank, number) : shared.hasPassed(rank, number);
    const ranks = this.#stage === REDUCE ? allRanks(shared.size) : [...this.#readers];
    return ranks.filter((rank) => !has(rank));
  }

  release(): void {
    for (let piece = this.#pieces.pop(); piece !== undefined; piece = this.#pieces.pop()) {
      this.host.scratch.giveBack(piece);
    }
  }

  /** Takes memory until the operation is over. @throws NoMemory */
  protected take(bytes: number): number {
    const piece = this.host.scratch.take(bytes);
    if (piece === undefined) throw new NoMemory(bytes);
    this.#pieces.push(piece);
    return piece.pointer;
  }

  /** Where the bytes of this member lie that others read; 0: in its slot. @param slot where inline bytes go */
  protected abstract publish(slot: number): number;
  /** Takes what a source has published. */
  protected arrived(_rank: number, _pointer: number): void {}
  /** All sources have arrived. */
  protected finish(): void {}
  /** Whether members reduce slices. */
  protected get hasSlices(): boolean {
    return false;
  }
  /** Reduces the slice of this member. @returns a pointer to it */
  protected slice(): number {
    return 0;
  }
  /** Whether this member takes the slice of another one. */
  protected needs(_rank: number): boolean {
    return false;
  }
  protected takeSlice(_rank: number, _pointer: number): void {}

  /** Publishes a view: inline if it fits, else where it lies, or in a copy. */
  protected publishView(slot: number, view: Uint8Array): number {
    if (view.length <= MEMBER_INLINE_BYTES) {
      this.shared.write(slot, view);
      return 0;
    }
    return this.pointerTo(view);
  }

  /** Pointer to a view's bytes in the job's memory, or to a copy of them there. */
  protected pointerTo(view: Uint8Array): number {
    const pointer = this.shared.pointerOf(view);
    if (pointer !== 0 || view.length === 0) return pointer;
    const copy = this.take(view.length);
    this.shared.write(copy, view);
    return copy;
  }

  #enter(): void {
    const { shared, number, host } = this;
    if (!shared.mayEnter(number)) {
      if (host.hasAnyEnded) this.#awaits(shared.laggard(number));
      return;
    }
    let result: Result = SUCCESS;
    let data = 0;
    try {
      data = this.publish(shared.slotOf(shared.rank, number) + MEMBER_INLINE_OFFSET);
    } catch (error) {
      result = resultOf(error);
      this.why = String(error);
    }
    this.#isOutside = data !== 0 && this.#readers.length > 0;
    shared.arrive(number, result, this.signature, data);
    this.#stage = READ;
    if (result !== SUCCESS) host.failed(this, result, this.why);
  }

  #read(): void {
    const { shared, number, host } = this;
    const sources = this.#sources;
    for (; this.#cursor < sources.length; this.#cursor++) {
      const rank = sources[this.#cursor] as number;
      const slot = shared.slotOf(rank, number);
      if (!shared.hasArrived(slot, number)) {
        if (host.hasAnyEnded) this.#awaits(rank);
        return;
      }
      shared.note(rank, slot);
      const theirs = shared.signatureIn(slot);
      if (theirs !== this.signature) {
        const own = `rank ${shared.rank} has begun ${host.describe(this.signature)}`;
        host.failed(this, ERROR, `${own}, rank ${rank} ${host.describe(theirs)}`);
        return;
      }
      const result = shared.resultIn(slot);
      if (result !== SUCCESS) {
        host.failed(this, result, `rank ${rank} has failed`);
        return;
      }
      if (host.hasAnyEnded && !this.#mayRead(rank, slot)) return;
      this.arrived(rank, shared.dataIn(slot));
    }
    if (this.hasSlices && host.hasAnyEnded) {
      for (const rank of sources) if (!this.#mayRead(rank, shared.slotOf(rank, number))) return;
    }
    this.finish();
    this.#cursor = 0;
    if (!this.hasSlices) this.#pass();
    else this.#writeSlice();
  }

  #writeSlice(): void {
    let slice = 0;
    let result: Result = SUCCESS;
    try {
      slice = this.slice();
    } catch (error) {
      result = resultOf(error);
      this.why = String(error);
    }
    this.shared.reduced(this.number, result, slice);
    this.#stage = REDUCE;
    this.#skip();
  }

  /** Moves the cursor to the next member whose slice is awaited. */
  #skip(): void {
    while (this.#cursor < this.shared.size && !this.needs(this.#cursor)) this.#cursor++;
  }

  #reduce(): void {
    const { shared, number, host } = this;
    for (; this.#cursor < shared.size; this.#cursor++, this.#skip()) {
      const rank = this.#cursor;
      if (!shared.hasReduced(rank, number)) {
        if (host.hasAnyEnded) this.#awaits(rank);
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
      this.takeSlice(rank, shared.sliceOf(rank, number));
    }
    this.#cursor = 0;
    this.#pass();
  }

  /** Whether what a member has published is there: the memory of one that has ended may be another's by now. */
  #mayRead(rank: number, slot: number): boolean {
    const { host } = this;
    if (!host.hasEnded(rank) || this.shared.isInline(slot)) return true;
    host.failed(this, SHUTDOWN, "");
    return false;
  }

  /** This member has read everything. Those wait for it whose memory it has read. */
  #pass(): void {
    const { shared, number } = this;
    let isWaitedFor = this.hasSlices;
    for (let place = 0; place < this.#sources.length && !isWaitedFor; place++) {
      isWaitedFor = !shared.isInline(shared.slotOf(this.#sources[place] as number, number));
    }
    if (isWaitedFor) shared.pass(number);
    this.#stage = LEAVE;
  }

  #leave(): void {
    const { shared, number } = this;
    if (this.#isOutside || this.hasSlices) {
      for (; this.#cursor < this.#readers.length; this.#cursor++) {
        const rank = this.#readers[this.#cursor] as number;
        if (shared.hasPassed(rank, number)) continue;
        if (this.host.hasAnyEnded) this.#awaits(rank);
        return;
      }
    }
    this.host.over(this, SUCCESS);
  }

  /** The operation needs something of a member, which has not done it yet. */
  #awaits(rank: number): void {
    if (rank >= 0 && this.host.hasEnded(rank)) this.host.failed(this, SHUTDOWN, "");
  }
}

class NoMemory extends Error {
  constructor(bytes: number) {
    super(`no ${bytes} bytes of scratch memory`);
  }
}

function resultOf(error: unknown): Result {
  return error instanceof NoMemory ? ENOMEM : ERROR;
}

function allRanks(size: number): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

function others({ rank, size }: SharedMembers): number[] {
  return allRanks(size).filter((other) => other !== rank);
}

const NO_RANKS: readonly number[] = [];

/** Each member waits for each. */
export class SharedBarrier extends SharedOperation {
  constructor(host: SharedHost, buffers: Buffers) {
    super(host, buffers, others(host.shared), NO_RANKS);
  }

  protected publish(): number {
    return 0;
  }
}

/** The root's bytes are read by all. */
export class SharedBroadcast extends SharedOperation {
  readonly #isRoot: boolean;

  constructor(host: SharedHost, buffers: Buffers, root: number) {
    const isRoot = host.shared.rank === root;
    super(host, buffers, isRoot ? NO_RANKS : [root], isRoot ? others(host.shared) : NO_RANKS);
    this.#isRoot = isRoot;
  }

  protected publish(slot: number): number {
    return this.#isRoot ? this.publishView(slot, this.buffers.send) : 0;
  }

  protected override arrived(_rank: number, pointer: number): void {
    this.shared.read(this.buffers.receive, 0, pointer, this.buffers.receive.length);
  }
}

/** Where the blocks of members lie in the buffer of those that get all of them. */
export interface Blocks {
  readonly counts: readonly number[];
  readonly offsets: readonly number[];
}

/** The blocks of all members are read by the root, or by all. */
export class SharedGather extends SharedOperation {
  readonly #blocks: Blocks;

  /** @param root undefined: all members read */
  constructor(host: SharedHost, buffers: Buffers, root: number | undefined, blocks: Blocks) {
    const { rank } = host.shared;
    const reads = root === undefined || root === rank;
    const readers = root === undefined ? others(host.shared) : root === rank ? NO_RANKS : [root];
    super(host, buffers, reads ? allRanks(host.shared.size) : NO_RANKS, readers);
    this.#blocks = blocks;
  }

  protected publish(slot: number): number {
    return this.publishView(slot, this.buffers.send);
  }

  protected override arrived(rank: number, pointer: number): void {
    const { counts, offsets } = this.#blocks;
    this.shared.read(this.buffers.receive, offsets[rank] as number, pointer, counts[rank] as number);
  }
}

/** Each member reads its block of some: of the root (scatter), or of each member (all-to-all). */
export class SharedScatter extends SharedOperation {
  readonly #sent: Blocks | undefined;
  readonly #received: Blocks;

  /**
   * @param root undefined: each member has blocks for all
   * @param sent the blocks in "send" by their reader; undefined: this member has none
   * @param received the blocks in "receive" by their source
   */
  constructor(
    host: SharedHost,
    buffers: Buffers,
    root: number | undefined,
    sent: Blocks | undefined,
    received: Blocks,
  ) {
    const { shared } = host;
    const sources = root === undefined ? allRanks(shared.size) : [root];
    super(host, buffers, sources, root === undefined || root === shared.rank ? others(shared) : NO_RANKS);
    this.#sent = sent;
    this.#received = received;
  }

  /** Publishes a table of two words for each reader: a pointer to its block, and the bytes of the block. */
  protected publish(): number {
    if (this.#sent === undefined) return 0;
    const { counts, offsets } = this.#sent;
    const { words } = this.shared.memory;
    const base = this.pointerTo(this.buffers.send);
    const table = this.take(8 * counts.length);
    for (const [rank, bytes] of counts.entries()) {
      words[(table + 8 * rank) >>> 2] = base + (offsets[rank] as number);
      words[(table + 8 * rank + 4) >>> 2] = bytes;
    }
    return table;
  }

  protected override arrived(rank: number, table: number): void {
    const { words } = this.shared.memory;
    const entry = (table + 8 * this.shared.rank) >>> 2;
    const bytes = (words[entry + 1] as number) >>> 0;
    const awaited = this.#received.counts[rank] as number;
    if (bytes !== awaited) {
      throw new Error(`rank ${rank} has ${bytes} bytes for rank ${this.shared.rank}, which awaits ${awaited}`);
    }
    this.shared.read(
      this.buffers.receive,
      this.#received.offsets[rank] as number,
      (words[entry] as number) >>> 0,
      bytes,
    );
  }
}

/**
 * Reduces the operands of all members in the order of order.ts.
 * @param at pointer to a member's operand
 * @param spare takes memory for partial results
 */
export function reduceOperands(
  reducer: Reducer,
  size: number,
  at: (rank: number) => number,
  out: number,
  bytes: number,
  spare: (bytes: number) => number,
): void {
  if (size === 2) {
    reducer.reduce(out, at(0), at(1), bytes);
    return;
  }
  const fold = foldOf(size);
  const levels = Math.ceil(Math.log2(size)) + 1;
  const block = Math.min(bytes, Math.max(1, Math.floor(BLOCK_BYTES / reducer.elementBytes)) * reducer.elementBytes);
  const space = (block + 15) & ~15;
  const partials = spare(levels * space);
  for (let from = 0; from < bytes; from += block) {
    const length = Math.min(block, bytes - from);
    /** The result of the operands from `first` on: a pointer to an operand, or to the partial result of a level. */
    const tree = (first: number, count: number, level: number, to: number): number => {
      if (count === 1) {
        const member = memberOf(fold, first);
        if (first >= fold.pairs) return at(member) + from;
        reducer.reduce(to, at(member) + from, at(member + 1) + from, length);
        return to;
      }
      const half = count / 2;
      const left = tree(first, half, level + 1, to);
      const right = tree(first + half, half, level + 1, partials + level * space);
      reducer.reduce(to, left, right, length);
      return to;
    };
    if (size === 1) reducer.reduce(out + from, at(0) + from, at(0) + from, length);
    else tree(0, fold.power, 0, out + from);
  }
}

/** Each member reads the operands of all from their slots, and reduces them itself: for a few members and a few bytes. */
export class SharedFlatReduce extends SharedOperation {
  readonly #getsResult: boolean;
  readonly #at = (rank: number): number => this.shared.dataIn(this.shared.slotOf(rank, this.number));
  readonly #spare = (): number => this.shared.workspace + MEMBER_INLINE_BYTES;

  static fits({ size }: SharedMembers, bytes: number, reducer: Reducer): boolean {
    return size <= FLAT_MEMBERS && bytes <= MEMBER_INLINE_BYTES && !reducer.isUser;
  }

  /** @param root undefined: all members get the result */
  constructor(host: SharedHost, buffers: Buffers, root: number | undefined) {
    const reads = root === undefined || root === host.shared.rank;
    super(host, buffers, reads ? others(host.shared) : NO_RANKS, NO_RANKS);
    this.#getsResult = reads;
  }

  protected publish(slot: number): number {
    this.shared.write(slot, this.buffers.send);
    return 0;
  }

  protected override finish(): void {
    if (!this.#getsResult) return;
    const { shared, buffers } = this;
    const bytes = buffers.send.length;
    if (bytes === 0) return;
    const out = shared.workspace;
    const reducer = buffers.reducer as Reducer;
    if (shared.size === 2) reducer.reduce(out, this.#at(0), this.#at(1), bytes);
    else reduceOperands(reducer, shared.size, this.#at, out, bytes, this.#spare);
    shared.read(buffers.receive, 0, out, bytes);
  }
}

/** The slices of a vector, one for each member, are each reduced by its member; and read by the root, by all, or by none. */
export class SharedSliceReduce extends SharedOperation {
  readonly #slices: readonly { readonly offset: number; readonly bytes: number }[];
  readonly #root: number | undefined;
  readonly #isScattered: boolean;

  /**
   * @param root undefined: all members get the result
   * @param counts the slices of a reduce-scatter, each of which its member alone gets
   */
  constructor(host: SharedHost, buffers: Buffers, root: number | undefined, counts?: readonly number[]) {
    const { shared } = host;
    super(host, buffers, allRanks(shared.size), others(shared));
    const { elementBytes } = buffers.reducer as Reducer;
    const places = counts && prefixSums(counts);
    this.#slices =
      counts?.map((bytes, rank) => ({ offset: places?.[rank] as number, bytes })) ??
      slices(buffers.send.length, elementBytes, shared.size);
    this.#root = root;
    this.#isScattered = counts !== undefined;
  }

  protected override get hasSlices(): boolean {
    return true;
  }

  protected publish(slot: number): number {
    return this.publishView(slot, this.buffers.send);
  }

  protected override slice(): number {
    const { shared, number, buffers } = this;
    const own = this.#slices[shared.rank] as { offset: number; bytes: number };
    if (own.bytes === 0) return 0;
    // The result goes straight to its place if that is in the job's memory, and this member gets it.
    // Not where partial results would overwrite this member's own operand.
    const place = this.#getsAll ? shared.pointerOf(buffers.receive) : 0;
    const isOverOperand = shared.size > 2 && place === shared.pointerOf(buffers.send);
    const out = place === 0 || isOverOperand ? this.take(own.bytes) : place + own.offset;
    const at = (rank: number): number => shared.dataIn(shared.slotOf(rank, number)) + own.offset;
    reduceOperands(buffers.reducer as Reducer, shared.size, at, out, own.bytes, (bytes) => this.take(bytes));
    return out;
  }

  get #getsAll(): boolean {
    return !this.#isScattered && (this.#root === undefined || this.#root === this.shared.rank);
  }

  protected override needs(rank: number): boolean {
    // All members look at the result of each, so that a failure is known to all.
    return this.#getsAll || rank === this.shared.rank || (this.buffers.reducer as Reducer).isUser;
  }

  protected override takeSlice(rank: number, pointer: number): void {
    const slice = this.#slices[rank] as { offset: number; bytes: number };
    if (this.#isScattered) {
      if (rank === this.shared.rank) this.shared.read(this.buffers.receive, 0, pointer, slice.bytes);
    } else if (this.#getsAll) this.shared.read(this.buffers.receive, slice.offset, pointer, slice.bytes);
  }
}
