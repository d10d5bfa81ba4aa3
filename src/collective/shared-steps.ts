// What each type of operation does with the bytes of members that share a memory: see shared-operation.ts.
import { MEMBER_INLINE_BYTES } from "../../assembly/layout.js";
import { foldOf, memberOf } from "./algorithms/order.js";
import type { Buffers, Reducer } from "./operation.js";
import { prefixSums, slices } from "./shape.js";
import type { SharedMembers } from "./shared-members.js";
import { allRanks, type SharedOperation, Steps } from "./shared-operation.js";

/** Bytes of a slice that are reduced at a time, so that they stay in the cache. */
const BLOCK_BYTES = 16 * 1024;
/** Most members that each read all others, where a reduction's bytes fit into slots. */
export const FLAT_MEMBERS = 64;

function others({ rank, size }: SharedMembers): number[] {
  return allRanks(size).filter((other) => other !== rank);
}

const NO_RANKS: readonly number[] = [];

/** Each member waits for each. */
export class BarrierSteps extends Steps {
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
export class BroadcastSteps extends Steps {
  readonly isMutual = false;
  readonly isOfAll = false;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #isRoot: boolean;

  constructor(shared: SharedMembers, root: number) {
    super();
    this.#isRoot = shared.rank === root;
    this.sources = this.#isRoot ? NO_RANKS : [root];
    this.readers = this.#isRoot ? others(shared) : NO_RANKS;
  }

  publish(operation: SharedOperation, slot: number): number {
    return this.#isRoot ? operation.publishView(slot, operation.buffers.send) : 0;
  }

  override arrived(operation: SharedOperation, _rank: number, pointer: number): void {
    operation.receive(pointer);
  }
}

/** Where the blocks of members lie in the buffer of those that get all of them. */
export interface Blocks {
  readonly counts: readonly number[];
  readonly offsets: readonly number[];
}

/** The blocks of all members are read by the root, or by all. */
export class GatherSteps extends Steps {
  readonly isMutual: boolean;
  readonly isOfAll = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #blocks: Blocks;

  /** @param root undefined: all members read */
  constructor(shared: SharedMembers, root: number | undefined, blocks: Blocks) {
    super();
    const { rank, size } = shared;
    this.sources = root === undefined || root === rank ? allRanks(size) : NO_RANKS;
    this.readers = root === undefined ? others(shared) : root === rank ? NO_RANKS : [root];
    this.isMutual = root === undefined;
    this.#blocks = blocks;
  }

  publish(operation: SharedOperation, slot: number): number {
    const { shared, buffers } = operation;
    shared.noteLength(slot, buffers.send.length);
    return operation.publishView(slot, buffers.send);
  }

  override arrived({ shared, buffers, number }: SharedOperation, rank: number, pointer: number): void {
    const { counts, offsets } = this.#blocks;
    const bytes = shared.sliceOf(rank, number);
    if (bytes !== counts[rank]) {
      throw new Error(`rank ${rank} has ${bytes} bytes for rank ${shared.rank}, which awaits ${counts[rank]}`);
    }
    shared.read(buffers.receive, offsets[rank] as number, pointer, counts[rank] as number);
  }
}

/** As ScatterSteps, where all blocks have the same length: a reader finds its own without a table. */
export class UniformScatterSteps extends Steps {
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

/** Each member reads its block of some: of the root (scatter), or of each member (all-to-all). */
export class ScatterSteps extends Steps {
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

/**
 * Reduces the operands of two members or more, in the order of order.ts.
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
    tree(0, fold.power, 0, out + from);
  }
}

/** Each member reads the operands of all from their slots, and reduces them itself: for a few members and a few bytes. */
export class FlatReduceSteps extends Steps {
  readonly isMutual: boolean;
  readonly isOfAll = true;
  override readonly isInline = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  readonly #getsResult: boolean;
  /** Pointers to the operands of two members, by rank. */
  readonly #operands = [0, 0];
  #operation: SharedOperation | undefined;
  /** Where there are more, a member may end while the next one is awaited: then its block is elsewhere. */
  readonly #at = (rank: number): number => {
    const { shared, number } = this.#operation as SharedOperation;
    return shared.dataIn(shared.slotOf(rank, number));
  };

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
    if (operation.shared.size <= 2) this.#operands[operation.shared.rank] = slot;
    return operation.publishInline(slot);
  }

  override arrived({ shared }: SharedOperation, rank: number, pointer: number): void {
    if (shared.size === 2) this.#operands[rank] = pointer;
  }

  override finish(operation: SharedOperation): void {
    const { shared, buffers } = operation;
    const bytes = buffers.send.length;
    if (!this.#getsResult || bytes === 0) return;
    const [first, second] = this.#operands as [number, number];
    const reducer = buffers.reducer as Reducer;
    const out = shared.size === 1 ? first : shared.workspace;
    if (shared.size === 2) reducer.reduce(out, first, second, bytes);
    else if (shared.size > 2) {
      this.#operation = operation;
      reduceOperands(reducer, shared.size, this.#at, out, bytes, () => out + MEMBER_INLINE_BYTES);
    }
    operation.receive(out);
  }
}

/** The slices of a vector, one for each member, are each reduced by its member; and read by the root, by all, or by none. */
export class SliceReduceSteps extends Steps {
  readonly isMutual = true;
  readonly isOfAll = true;
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  override readonly hasSlices = true;
  readonly #rank: number;
  readonly #isUser: boolean;
  readonly #slices: readonly { readonly offset: number; readonly bytes: number }[];
  readonly #root: number | undefined;
  readonly #isScattered: boolean;
  /** Whether the result goes into memory that the others read. */
  readonly #isInPlace: boolean;
  /** Pointer to this member's slice. */
  #own = 0;

  /**
   * @param root undefined: all members get the result
   * @param counts the slices of a reduce-scatter, each of which its member alone gets
   */
  constructor(shared: SharedMembers, buffers: Buffers, root: number | undefined, counts?: readonly number[]) {
    super();
    this.sources = allRanks(shared.size);
    this.readers = others(shared);
    this.#rank = shared.rank;
    const { elementBytes, isUser } = buffers.reducer as Reducer;
    this.#isUser = isUser;
    const places = counts && prefixSums(counts);
    this.#slices =
      counts?.map((bytes, rank) => ({ offset: places?.[rank] as number, bytes })) ??
      slices(buffers.send.length, elementBytes, shared.size);
    this.#root = root;
    this.#isScattered = counts !== undefined;
    const place = shared.pointerOf(buffers.receive);
    this.#isInPlace = place !== 0 && place === shared.pointerOf(buffers.send);
  }

  publish(operation: SharedOperation, slot: number): number {
    return operation.publishView(slot, operation.buffers.send);
  }

  override slice(operation: SharedOperation): number {
    const { shared, number, buffers } = operation;
    const own = this.#slices[shared.rank] as { offset: number; bytes: number };
    if (own.bytes === 0) return 0;
    // The result goes straight to its place if that is in the job's memory, and this member gets it. Not where partial results
    // would overwrite this member's own operand.
    const place = this.#getsAll ? shared.pointerOf(buffers.receive) : 0;
    const isOverOperand = shared.size > 2 && place === shared.pointerOf(buffers.send);
    const at = (rank: number): number => shared.dataIn(shared.slotOf(rank, number)) + own.offset;
    if (shared.size === 1) return at(0);
    const out = place === 0 || isOverOperand ? operation.take(own.bytes) : place + own.offset;
    reduceOperands(buffers.reducer as Reducer, shared.size, at, out, own.bytes, (bytes) => operation.take(bytes));
    return out;
  }

  get #getsAll(): boolean {
    return !this.#isScattered && (this.#root === undefined || this.#root === this.#rank);
  }

  override needs(rank: number): boolean {
    // All members look at the result of a user's operation at each, so that a failure is known to all. In place, this member's
    // slice goes where the others find its operand, so all of them come first.
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
