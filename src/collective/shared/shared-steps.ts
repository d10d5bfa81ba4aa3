// The steps of each type of operation on the bytes of members that share a memory: see shared-operation.ts.
import { MEMBER_INLINE_BYTES, MEMBER_INLINE_OFFSET, NONE } from "../../../assembly/layout.js";
import type { OperationBuffers, Reducer } from "../operation.js";
import { powerBelow, prefixSums, slices } from "../schedule/shape.js";
import { COPY_BYTES } from "../scratch.js";
import { COPY_DISTANCE, type SharedMembers, WINDOWS } from "./shared-members.js";
import { allRanks, SharedAlgorithm, type SharedOperation } from "./shared-operation.js";
import { type WindowSteps, windowBytes } from "./windows.js";

/** Bytes of a slice that are reduced at a time, so that they stay in the cache. */
const BLOCK_BYTES = 16 * 1024;
/** Most members for a reduction in which each member reads all other members, if the bytes fit into slots. */
export const FLAT_MEMBERS = 64;
/** From so many members on, with one member's bytes read by all, copies of any length are at most a quarter of all arrays. */
const COPIES = 4;

/** Bytes of a window of a gather. Each member copies the whole window. */
const GATHER_BYTES = windowBytes(2);

function others({ rank, size }: SharedMembers): number[] {
  return allRanks(size).filter((other) => other !== rank);
}

const NO_RANKS: readonly number[] = [];

/** Each member waits for each. */
export class BarrierSteps extends SharedAlgorithm {
  override readonly hasBytes = false;
  readonly isMutual = true;
  readonly isOfAll = true;
  override readonly isInline = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];

  constructor(shared: SharedMembers) {
    super();
    this.sources = others(shared);
    this.readers = this.sources;
  }

  publish(): number {
    return 0;
  }
}

/** The root's bytes are read by all. */
export class BroadcastSteps extends SharedAlgorithm {
  readonly isMutual = false;
  readonly isOfAll = false;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #isRoot: boolean;
  readonly #copied: number | undefined;

  constructor(shared: SharedMembers, root: number) {
    super();
    this.#copied = shared.size < COPIES ? undefined : Number.POSITIVE_INFINITY;
    this.#isRoot = shared.rank === root;
    this.sources = this.#isRoot ? NO_RANKS : [root];
    this.readers = this.#isRoot ? others(shared) : NO_RANKS;
  }

  publish(operation: SharedOperation, slot: number): number {
    return this.#isRoot ? operation.publishView(slot, operation.buffers.send, 1, this.#copied) : 0;
  }

  override arrived(operation: SharedOperation, _rank: number, pointer: number): void {
    operation.receive(pointer);
  }
}

/** Where the blocks of members lie in the buffer of a member that gets all blocks. */
export interface Blocks {
  readonly counts: readonly number[];
  readonly offsets: readonly number[];
}

/** The blocks of all members are read by the root, or by all. */
export class GatherSteps extends SharedAlgorithm {
  readonly isMutual: boolean;
  readonly isOfAll = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #blocks: Blocks;
  readonly #copied: number | undefined;
  /** Bytes of the longest block, if blocks may go by windows; else 0. */
  readonly #longest: number;

  /** @param root undefined: all members read */
  constructor(shared: SharedMembers, root: number | undefined, blocks: Blocks) {
    super();
    const { rank, size } = shared;
    const isCopied = root === undefined && size >= COPIES;
    this.#copied = isCopied ? Number.POSITIVE_INFINITY : undefined;
    const longest = Math.max(...blocks.counts);
    this.#longest = root === undefined && !isCopied && longest > COPY_BYTES ? longest : 0;
    this.sources = root === undefined || root === rank ? allRanks(size) : NO_RANKS;
    this.readers = root === undefined ? others(shared) : root === rank ? NO_RANKS : [root];
    this.isMutual = root === undefined;
    this.#blocks = blocks;
  }

  publish(operation: SharedOperation, slot: number): number {
    const { shared, buffers } = operation;
    shared.noteLength(slot, buffers.send.length);
    if (this.#longest === 0) return operation.publishView(slot, buffers.send, 1, this.#copied);
    return operation.publishLong(slot, buffers.send, 1, GATHER_BYTES, 0);
  }

  override arrived({ shared, buffers, number }: SharedOperation, rank: number, pointer: number): void {
    const { counts, offsets } = this.#blocks;
    const bytes = shared.sliceOf(rank, number);
    if (bytes !== counts[rank]) {
      throw new Error(`rank ${rank} has ${bytes} bytes for rank ${shared.rank}, which awaits ${counts[rank]}`);
    }
    if (this.#longest === 0) shared.read(buffers.receive, offsets[rank] as number, pointer, counts[rank] as number);
  }

  override windows({ shared, buffers, number }: SharedOperation): WindowSteps | undefined {
    if (this.#longest === 0 || !shared.hasWindows(number)) return undefined;
    const { counts, offsets } = this.#blocks;
    const { send, receive } = buffers;
    const lengthOf = (rank: number, segment: number): number =>
      Math.max(0, Math.min((counts[rank] as number) - segment * GATHER_BYTES, GATHER_BYTES));
    const fill = (segment: number): void => {
      if (!shared.isWindowed(shared.rank, number)) return;
      const from = segment * GATHER_BYTES;
      const place = shared.segmentAt(shared.rank, number, segment, GATHER_BYTES);
      shared.write(place, send.subarray(from, from + lengthOf(shared.rank, segment)));
    };
    const take = (segment: number): void => {
      for (const rank of this.sources) {
        const place = shared.segmentAt(rank, number, segment, GATHER_BYTES);
        shared.read(receive, (offsets[rank] as number) + segment * GATHER_BYTES, place, lengthOf(rank, segment));
      }
    };
    return { segments: Math.ceil(this.#longest / GATHER_BYTES), isReduced: false, fill, reduce: () => {}, take };
  }

  override finish({ shared, buffers, number }: SharedOperation): void {
    if (this.#longest === 0) return;
    const { counts, offsets } = this.#blocks;
    for (const rank of this.sources) {
      const pointer = shared.dataIn(shared.slotOf(rank, number));
      shared.read(buffers.receive, offsets[rank] as number, pointer, counts[rank] as number);
    }
  }
}

/** Like ScatterSteps, for blocks of the same length: a reader finds its own block without a table. */
export class UniformScatterSteps extends SharedAlgorithm {
  readonly isMutual: boolean;
  readonly isOfAll: boolean;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #bytes: number;
  readonly #isAlltoall: boolean;

  /** @param root undefined: each member has blocks for all */
  constructor(shared: SharedMembers, root: number | undefined, bytes: number) {
    super();
    this.sources = root === undefined ? allRanks(shared.size) : [root];
    this.readers = root === undefined || root === shared.rank ? others(shared) : NO_RANKS;
    this.isMutual = root === undefined;
    this.isOfAll = this.isMutual;
    this.#bytes = bytes;
    this.#isAlltoall = root === undefined;
  }

  publish(operation: SharedOperation, slot: number): number {
    const { send } = operation.buffers;
    return send.length > 0 ? operation.publishView(slot, send) : 0;
  }

  override arrived({ shared, buffers }: SharedOperation, rank: number, pointer: number): void {
    const bytes = this.#bytes;
    shared.read(buffers.receive, this.#isAlltoall ? rank * bytes : 0, pointer + shared.rank * bytes, bytes);
  }
}

/** Each member reads its block from the root (scatter), or from each member (all-to-all). */
export class ScatterSteps extends SharedAlgorithm {
  readonly isMutual: boolean;
  readonly isOfAll: boolean;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #sent: Blocks | undefined;
  readonly #received: Blocks;

  /**
   * @param root undefined: each member has blocks for all
   * @param sent the blocks in "send" by their reader; undefined: this member has none
   * @param received the blocks in "receive" by their source
   */
  constructor(shared: SharedMembers, root: number | undefined, sent: Blocks | undefined, received: Blocks) {
    super();
    this.sources = root === undefined ? allRanks(shared.size) : [root];
    this.readers = root === undefined || root === shared.rank ? others(shared) : NO_RANKS;
    this.isMutual = root === undefined;
    this.isOfAll = this.isMutual;
    this.#sent = sent;
    this.#received = received;
  }

  /** Publishes a table of two words for each reader: a pointer to its block, and the bytes of the block. */
  publish(operation: SharedOperation): number {
    if (this.#sent === undefined) return 0;
    const { counts, offsets } = this.#sent;
    const { words } = operation.shared.memory;
    const base = operation.pointerTo(operation.buffers.send);
    const table = operation.take(8 * counts.length);
    if (base === NONE || table === NONE) return NONE;
    for (const [rank, bytes] of counts.entries()) {
      words[(table + 8 * rank) >>> 2] = base + (offsets[rank] as number);
      words[(table + 8 * rank + 4) >>> 2] = bytes;
    }
    return table;
  }

  override arrived({ shared, buffers }: SharedOperation, rank: number, table: number): void {
    const { words } = shared.memory;
    const entry = (table + 8 * shared.rank) >>> 2;
    const bytes = (words[entry + 1] as number) >>> 0;
    const awaited = this.#received.counts[rank] as number;
    if (bytes !== awaited) {
      throw new Error(`rank ${rank} has ${bytes} bytes for rank ${shared.rank}, which awaits ${awaited}`);
    }
    shared.read(buffers.receive, this.#received.offsets[rank] as number, (words[entry] as number) >>> 0, bytes);
  }
}

/** Where the operands of a reduction lie. */
export interface Operands {
  /** Pointer to a member's operand. */
  operandOf(rank: number): number;
}

/** Bytes of a block for reduceOperands(), which takes block after block: whole elements. */
function blockOf({ elementBytes }: Reducer, bytes: number): number {
  return Math.min(bytes, Math.max(1, Math.floor(BLOCK_BYTES / elementBytes)) * elementBytes);
}

function spaceOf(block: number): number {
  return (block + 15) & ~15;
}

/** Bytes that reduceOperands() needs for partial results. */
export function partialBytes(reducer: Reducer, size: number, bytes: number): number {
  return size <= 2 ? 0 : (Math.ceil(Math.log2(size)) + 2) * spaceOf(blockOf(reducer, bytes));
}

/**
 * Reduces the operands of two members or more, in the order of order.ts, without garbage.
 * @param out may be one of the operands: a block is written once all its operands have been read
 * @param partials pointer to partialBytes()
 */
export function reduceOperands(
  reducer: Reducer,
  size: number,
  operands: Operands,
  out: number,
  bytes: number,
  partials: number,
): void {
  if (size === 2) {
    reducer.reduce(out, operands.operandOf(0), operands.operandOf(1), bytes);
    return;
  }
  const power = powerBelow(size);
  const block = blockOf(reducer, bytes);
  const space = spaceOf(block);
  for (let from = 0; from < bytes; from += block) {
    const length = Math.min(block, bytes - from);
    const [pairs, half] = [size - power, power / 2];
    const below = partials + 2 * space;
    const left = reduceTree(reducer, operands, pairs, 0, half, partials, below, from, length, space);
    const right = reduceTree(reducer, operands, pairs, half, half, partials + space, below, from, length, space);
    reducer.reduce(out + from, left, right, length);
  }
}

/**
 * Reduces a block of the operands from `first` on, after the fold.
 * @param pairs members that are folded
 * @param partials pointer to the partial result of this level
 * @param from where the block begins in each operand
 * @returns a pointer to an operand, or to the result in `to`
 */
function reduceTree(
  reducer: Reducer,
  operands: Operands,
  pairs: number,
  first: number,
  count: number,
  to: number,
  partials: number,
  from: number,
  length: number,
  space: number,
): number {
  if (count === 1) {
    const member = first < pairs ? 2 * first : first + pairs;
    const operand = operands.operandOf(member) + from;
    if (first >= pairs) return operand;
    reducer.reduce(to, operand, operands.operandOf(member + 1) + from, length);
    return to;
  }
  const half = count / 2;
  const below = partials + space;
  const left = reduceTree(reducer, operands, pairs, first, half, to, below, from, length, space);
  const right = reduceTree(reducer, operands, pairs, first + half, half, partials, below, from, length, space);
  reducer.reduce(to, left, right, length);
  return to;
}

/**
 * Each member reads the operands of all members from their slots, and reduces the operands itself: for a few members and a few
 * bytes.
 */
export class FlatReduceSteps extends SharedAlgorithm implements Operands {
  readonly isMutual: boolean;
  readonly isOfAll = true;
  override readonly isInline = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #getsResult: boolean;
  #operation: SharedOperation | undefined;

  /**
   * The pointer is looked up at the end: a member may end while the next member is awaited, and then its block is elsewhere.
   */
  operandOf(rank: number): number {
    const { shared, number } = this.#operation as SharedOperation;
    return shared.dataIn(shared.slotOf(rank, number));
  }

  static fits({ size }: SharedMembers, bytes: number, reducer: Reducer): boolean {
    return size <= FLAT_MEMBERS && bytes <= MEMBER_INLINE_BYTES && !reducer.isUser;
  }

  /** @param root undefined: all members get the result */
  constructor(shared: SharedMembers, root: number | undefined) {
    super();
    this.isMutual = root === undefined;
    this.#getsResult = root === undefined || root === shared.rank;
    this.sources = this.#getsResult ? others(shared) : NO_RANKS;
    this.readers = root === undefined ? this.sources : this.#getsResult ? NO_RANKS : [root];
  }

  publish(operation: SharedOperation, slot: number): number {
    return operation.publishInline(slot, operation.shared.size === 2 ? slot + COPY_DISTANCE : undefined);
  }

  /**
   * With two members, the other member's operand is reduced right after the look that has found it, with a copy of this
   * member's own operand. A slot that is read again must come from the other core again, even the own slot: 430 → 280 ns
   * between distant cores (Zen 5).
   */
  override arrived({ shared, buffers, number }: SharedOperation, rank: number, pointer: number): void {
    if (shared.size !== 2) return;
    const own = shared.slotOf(shared.rank, number) + MEMBER_INLINE_OFFSET + COPY_DISTANCE;
    const isLeft = rank === 0;
    const reducer = buffers.reducer as Reducer;
    reducer.reduce(shared.workspace, isLeft ? pointer : own, isLeft ? own : pointer, buffers.send.length);
  }

  override finish(operation: SharedOperation): void {
    const { shared, buffers } = operation;
    if (!this.#getsResult) return;
    this.#operation = operation;
    const out = shared.workspace;
    if (shared.size > 2) {
      const { send, reducer } = buffers;
      reduceOperands(reducer as Reducer, shared.size, this, out, send.length, out + MEMBER_INLINE_BYTES);
    }
    operation.receive(shared.size === 1 ? this.operandOf(0) : out);
  }
}

/** Each member reduces its slice of a vector; the root, all members, or no other member reads the slices. */
export class SliceReduceSteps extends SharedAlgorithm implements Operands {
  readonly isMutual = true;
  readonly isOfAll = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  override readonly hasSlices = true;
  readonly #rank: number;
  readonly #isUser: boolean;
  readonly #align: number;
  readonly #slices: readonly { readonly offset: number; readonly bytes: number }[];
  readonly #root: number | undefined;
  readonly #isScattered: boolean;
  /** Whether the result goes into memory that other members read. */
  readonly #isInPlace: boolean;
  /** Pointer to this member's slice. */
  #own = 0;
  /** Pointers to the destination of this member's slice, and to memory for partial results. */
  #out = 0;
  #partials = 0;
  #operation: SharedOperation | undefined;
  /** Bytes of a segment of the vector, or of each of its blocks; 0: the vector is short. */
  readonly #segment: number;
  readonly #segments: number;
  /** Bytes between a member's slices of two segments, at least the bytes of a slice. */
  readonly #stride: number;

  /**
   * @param root undefined: all members get the result
   * @param counts the slices of a reduce-scatter, in which each member gets only its slice
   */
  constructor(shared: SharedMembers, buffers: OperationBuffers, root: number | undefined, counts?: readonly number[]) {
    super();
    this.sources = allRanks(shared.size);
    this.readers = others(shared);
    this.#rank = shared.rank;
    const { elementBytes, align, isUser } = buffers.reducer as Reducer;
    this.#isUser = isUser;
    const places = counts && prefixSums(counts);
    this.#slices =
      counts?.map((bytes, rank) => ({ offset: places?.[rank] as number, bytes })) ??
      slices(buffers.send.length, elementBytes, shared.size);
    this.#root = root;
    this.#isScattered = counts !== undefined;
    this.#align = align;
    const place = shared.pointerOf(buffers.receive, align);
    this.#isInPlace = place !== 0 && place === shared.pointerOf(buffers.send, align);
    const parts = counts === undefined ? 1 : shared.size;
    const elements = Math.floor(windowBytes(shared.size) / parts / elementBytes);
    const isLong = buffers.send.length > COPY_BYTES && elements > 0 && shared.size > 1;
    this.#segment = isLong ? elements * elementBytes : 0;
    const longest = counts === undefined ? buffers.send.length : Math.max(...counts);
    this.#segments = isLong ? Math.ceil(longest / this.#segment) : 0;
    this.#stride =
      counts === undefined ? spaceOf(Math.ceil(elements / shared.size) * elementBytes) : spaceOf(this.#segment);
  }

  /** Takes all memory of the operation at once: an operation that has some memory never waits for more. */
  publish(operation: SharedOperation, slot: number): number {
    const { shared, buffers } = operation;
    const { offset, bytes } = this.#slices[shared.rank] as { offset: number; bytes: number };
    this.#operation = operation;
    if (this.#segment > 0) {
      const parts = this.#isScattered ? shared.size : 1;
      const spare = partialBytes(buffers.reducer as Reducer, shared.size, this.#stride);
      const own = operation.publishLong(
        slot,
        buffers.send,
        this.#align,
        parts * this.#segment,
        WINDOWS * this.#stride + spare,
      );
      // In place, the slice of a reduce-scatter needs a copy: windows have room for it.
      if (own === NONE || shared.isWindowed(shared.rank, operation.number)) return own;
    }
    const operand = operation.publishView(slot, buffers.send, this.#align);
    if (operand === NONE || bytes === 0 || shared.size === 1) return operand;
    const place = this.#placeOf(shared, buffers, offset);
    // In place, the slice of a reduce-scatter needs a copy, as long as the member's result.
    if (place === 0 && this.#isInPlace && bytes > COPY_BYTES) return NONE;
    const spare = partialBytes(buffers.reducer as Reducer, shared.size, bytes);
    this.#out = place === 0 ? operation.take(bytes) : place;
    this.#partials = spare === 0 ? 0 : operation.take(spare);
    return this.#out === NONE || this.#partials === NONE ? NONE : operand;
  }

  /**
   * Pointer to the result's final place, if that place is in the job's memory, this member gets the result, and no other member
   * reads an operand there. In place, the slice lies over the same slice of this member's operand, which this member alone
   * reads.
   */
  #placeOf(shared: SharedMembers, { receive }: OperationBuffers, offset: number): number {
    const place = shared.pointerOf(receive, this.#align);
    if (place === 0) return 0;
    if (this.#isScattered) return this.#isInPlace ? 0 : place;
    return this.#getsAll ? place + offset : 0;
  }

  override windows(operation: SharedOperation): WindowSteps | undefined {
    const { shared, number } = operation;
    if (this.#segment === 0 || !shared.hasWindows(number)) return undefined;
    const reduce = (segment: number): void => this.#reduceSegment(operation, segment);
    const take = (segment: number): void => this.#takeSegment(operation, segment);
    return {
      segments: this.#segments,
      isReduced: true,
      fill: (segment) => this.#fill(operation, segment),
      reduce,
      take,
    };
  }

  /** Bytes of a member's slice of a segment; their offsets in the vector, and in a window. */
  #sliceOf(
    { send, reducer }: OperationBuffers,
    size: number,
    rank: number,
    segment: number,
  ): { offset: number; at: number; bytes: number } {
    const from = segment * this.#segment;
    if (this.#isScattered) {
      const { offset, bytes } = this.#slices[rank] as { offset: number; bytes: number };
      const length = Math.max(0, Math.min(bytes - from, this.#segment));
      return { offset: offset + from, at: rank * this.#segment, bytes: length };
    }
    const { elementBytes } = reducer as Reducer;
    const elements = Math.min(send.length - from, this.#segment) / elementBytes;
    const cut = (part: number): number => Math.floor((elements * part) / size) * elementBytes;
    return { offset: from + cut(rank), at: cut(rank), bytes: cut(rank + 1) - cut(rank) };
  }

  #fill({ shared, buffers, number }: SharedOperation, segment: number): void {
    if (!shared.isWindowed(shared.rank, number)) return;
    const { send } = buffers;
    const parts = this.#isScattered ? shared.size : 1;
    const window = shared.segmentAt(shared.rank, number, segment, parts * this.#segment);
    if (!this.#isScattered) {
      const from = segment * this.#segment;
      shared.write(window, send.subarray(from, from + this.#segment));
      return;
    }
    for (let rank = 0; rank < shared.size; rank++) {
      const { offset, at, bytes } = this.#sliceOf(buffers, shared.size, rank, segment);
      shared.write(window + at, send.subarray(offset, offset + bytes));
    }
  }

  #reduceSegment({ shared, buffers, number }: SharedOperation, segment: number): void {
    const { offset, at, bytes } = this.#sliceOf(buffers, shared.size, shared.rank, segment);
    if (bytes === 0) return;
    const parts = this.#isScattered ? shared.size : 1;
    const operandOf = (rank: number): number =>
      shared.isWindowed(rank, number)
        ? shared.segmentAt(rank, number, segment, parts * this.#segment) + at
        : shared.dataIn(shared.slotOf(rank, number)) + offset;
    const base = shared.outOf(shared.rank, number);
    const out = base + (segment % WINDOWS) * this.#stride;
    reduceOperands(buffers.reducer as Reducer, shared.size, { operandOf }, out, bytes, base + WINDOWS * this.#stride);
  }

  #takeSegment({ shared, buffers, number }: SharedOperation, segment: number): void {
    if (!this.#isScattered && !this.#getsAll) return;
    for (let rank = 0; rank < shared.size; rank++) {
      if (this.#isScattered && rank !== shared.rank) continue;
      const { offset, bytes } = this.#sliceOf(buffers, shared.size, rank, segment);
      const out = shared.outOf(rank, number) + (segment % WINDOWS) * this.#stride;
      shared.read(buffers.receive, this.#isScattered ? segment * this.#segment : offset, out, bytes);
    }
  }

  operandOf(rank: number): number {
    const { shared, number } = this.#operation as SharedOperation;
    const { offset } = this.#slices[shared.rank] as { offset: number };
    return shared.dataIn(shared.slotOf(rank, number)) + offset;
  }

  override slice({ shared, buffers }: SharedOperation): number {
    const { bytes } = this.#slices[shared.rank] as { bytes: number };
    if (bytes === 0) return 0;
    if (shared.size === 1) return this.operandOf(0);
    reduceOperands(buffers.reducer as Reducer, shared.size, this, this.#out, bytes, this.#partials);
    return this.#out;
  }

  get #getsAll(): boolean {
    return !this.#isScattered && (this.#root === undefined || this.#root === this.#rank);
  }

  override needs(rank: number): boolean {
    // With a user's operation, every member looks at every member's result, so that all members know of a failure. In place,
    // this member's slice goes where other members find its operand, so all of them come first.
    return this.#getsAll || rank === this.#rank || this.#isUser || this.#isInPlace;
  }

  override takeSlice({ shared, buffers }: SharedOperation, rank: number, pointer: number): void {
    const slice = this.#slices[rank] as { offset: number; bytes: number };
    if (this.#isScattered) {
      if (rank === this.#rank) this.#own = pointer;
      const last = this.#isUser || this.#isInPlace ? shared.size - 1 : this.#rank;
      const { bytes } = this.#slices[this.#rank] as { bytes: number };
      if (rank === last) shared.read(buffers.receive, 0, this.#own, bytes);
    } else if (this.#getsAll) shared.read(buffers.receive, slice.offset, pointer, slice.bytes);
  }
}
