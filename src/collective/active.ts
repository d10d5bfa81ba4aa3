// Active messages of a geometry: collective operations that one member begins alone. A handler at each other member gets the
// bytes; of a gather or reduction, it returns what the root asks for.
//
// The root's message goes down a binomial tree over the ranks counted from the root. Answers come back up the tree, each
// member's block behind its length. The root reduces the blocks itself, in the order of algorithms/order.ts.
//
//   down   0 type   4 dispatch id   8 bytes of the header   12 members in this subtree
//          then the header, padded to 8; then the payload, or one length for each member of the subtree, and the blocks
//   up     one length for each member of the subtree, and the blocks; or why a member has failed, and the tag has the result
//
// A message is passed on before its handler runs, or has been set. At its root, an active message is over once the messages to the
// root's children have left, or their answers are there.
import { COLLECTIVE_ACTIVE } from "../../assembly/layout.js";
import { PamiError, show, textOf } from "../core/error.js";
import { CANCELED, type Callback, ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import { asOne } from "../protocol/context-core.js";
import type { Arrival } from "../protocol/late-handler.js";
import { isPromised, promised } from "../support/promise.js";
import { type CollectiveOperation, PlainOperation } from "./operation.js";
import { ACTIVE_TYPES, type ActiveType, OPERATION_ROWS } from "./operations.js";

/** Tags of the two directions; a failure is UP_FAILED and its result. */
const DOWN = 0;
const UP = 1;
const UP_FAILED = 16;
/** The answer of a member that does not keep a message. */
export const UP_REFUSED = UP_FAILED + ENOMEM;
const PREFIX_WORDS = 4;
/** Characters of a reason that are passed on. */
const WHY_MAX = 400;
/**
 * Bytes of messages without a handler that a context keeps for its geometries: as many as it keeps of other messages by
 * default.
 */
export const UNEXPECTED_MAX = 1_048_576;
/** Bytes for which an empty message counts. */
const UNEXPECTED_LEAST = 16;

/** The arguments of a handler. The bytes are valid until the handler returns. */
export interface ActiveMessage {
  /** The root's call. */
  readonly type: ActiveType;
  /** Rank of the member that began the active message. */
  readonly root: number;
  /** The root's header. */
  readonly header: Uint8Array;
  /** The root's payload (amBroadcast), or this member's block of it (amScatter); else empty. */
  readonly payload: Uint8Array;
}

/** A handler of a geometry's active messages. */
export type ActiveHandler = (message: ActiveMessage) => ArrayBufferView | void;

/** The answers that a member awaits from its subtrees, for one active message. */
interface Pending {
  /** The blocks of this member's subtree, by the place of their members in the subtree. */
  readonly blocks: (Uint8Array | undefined)[];
  /** Places of the children that have not answered, and of this member. */
  readonly missing: Set<number>;
  /** SUCCESS, as long as nothing has failed. */
  result: Result;
  /** Which member has failed, and why. */
  why: string;
  readonly done: (blocks: readonly Uint8Array[], result: Result, why: string) => void;
}

/** An active message at its root. */
class ActiveOperation extends PlainOperation {
  /** Ranks of members whose answers are missing; or of children whose messages have not left. */
  override awaited: () => number[] = () => [];
}

/** The part of a geometry that active messages need. */
export interface ActiveHost {
  readonly rank: number;
  readonly size: number;
  hasEnded(rank: number): boolean;
  watch(rank: number): void;
  /** Counts the messages without a handler of all geometries of the context. */
  readonly unexpected: Unexpected;
  /** @param root rank of the root, in the word of the signature */
  sendActive(kind: number, rank: number, number: number, tag: number, root: number, payload: Uint8Array): void;
  /** Calls back once all messages to a member have left. False: they have left already. */
  whenSent(rank: number, onSent: Callback): boolean;
  /** An active message that this member has begun is over. */
  overActive(operation: CollectiveOperation, result: Result, why: string): void;
}

/** The bytes of messages without a handler. */
export class Unexpected {
  #bytes = 0;

  /** Counts a message. @throws PAMIR_NO_MEMORY: there are too many messages, so this one is dropped */
  keep(payload: Uint8Array, to: string): void {
    const bytes = sizeOf(payload);
    if (this.#bytes + bytes > UNEXPECTED_MAX) {
      throw new PamiError(
        "PAMIR_NO_MEMORY",
        `an active message of ${bytes} bytes to ${to} is dropped: ${this.#bytes} of ${UNEXPECTED_MAX} bytes are kept without a handler`,
      );
    }
    this.#bytes += bytes;
  }

  /** A message that was counted is delivered, or given up. */
  letGo(payload: Uint8Array): void {
    this.#bytes -= sizeOf(payload);
  }
}

function sizeOf({ length }: Uint8Array): number {
  return Math.max(length, UNEXPECTED_LEAST);
}

/** A message that has come down. */
interface Down {
  readonly number: number;
  readonly root: number;
  readonly type: ActiveType;
  readonly id: number;
  readonly header: Uint8Array;
  /** This member's bytes. */
  readonly own: Uint8Array;
  /** All messages that wait for the handler. */
  readonly payload: Uint8Array;
}

export class ActiveMessages {
  readonly #host: ActiveHost;
  readonly #handlers = new Map<number, ActiveHandler>();
  /** Messages to ids without a handler, by id. */
  readonly #unexpected = new Map<number, Down[]>();
  readonly #pending = new Map<string, Pending>();
  /** Number of the last active message that this member has begun. */
  #number = 0;
  /** Active messages that this member has begun, and that are not over. */
  readonly #own = new Set<ActiveOperation>();
  /** Errors that handlers have thrown since they were last taken. */
  readonly #errors: unknown[] = [];

  constructor(host: ActiveHost) {
    this.#host = host;
  }

  /** Sets the handler of a dispatch id. Messages that came before are delivered at once. */
  handle(id: number, handler: ActiveHandler): void {
    this.#handlers.set(id, handler);
    const waiting = this.#unexpected.get(id) ?? [];
    this.#unexpected.delete(id);
    for (const down of waiting) {
      this.#host.unexpected.letGo(down.payload);
      this.#run(handler, down);
    }
  }

  /** How many this member has under way. */
  get underWay(): number {
    return this.#own.size;
  }

  has(id: number): boolean {
    return this.#handlers.has(id);
  }

  /** Throws the errors that handlers have thrown. */
  rethrow(): void {
    if (this.#errors.length > 0) throw asOne(this.#errors.splice(0));
  }

  /**
   * Begins an active message, as its root.
   * @param blocks for amScatter, by rank; else one payload for all
   * @param take for amGather and amReduce: gets the blocks of all members, by rank; this member's own block is missing. Returns
   *   the fault of the blocks, or an empty text
   */
  begin(
    type: ActiveType,
    id: number,
    header: Uint8Array,
    blocks: Uint8Array | readonly Uint8Array[],
    take?: (blocks: readonly Uint8Array[]) => string,
  ): CollectiveOperation {
    const { rank, size } = this.#host;
    this.#number = (this.#number + 1) >>> 0;
    const number = this.#number;
    const operation = new ActiveOperation();
    this.#own.add(operation);
    if (take !== undefined) {
      // Places are counted from the root.
      const rankAt = (place: number): number => (place + rank) % size;
      const all = this.#await(number, rank, size, (found, result, why) => {
        const byRank = Array.from({ length: size }, (_, other) => found[(other - rank + size) % size] ?? NOTHING);
        this.#end(operation, result, () => take(byRank), why);
      });
      operation.awaited = () => [...all.keys()].filter((place) => all[place] === undefined).map(rankAt);
    }
    const inOrder =
      blocks instanceof Uint8Array
        ? blocks
        : Array.from({ length: size }, (_, place) => blocks[(place + rank) % size] as Uint8Array);
    this.#passOn(number, rank, type, id, header, inOrder);
    if (take !== undefined) this.#look(number, rank);
    else this.#awaitSent(operation);
    return operation;
  }

  /** The operation is over once its messages have left. */
  #awaitSent(operation: ActiveOperation): void {
    const { rank, size } = this.#host;
    const left = new Set<number>();
    operation.awaited = () => [...left];
    for (const { place } of this.#children(rank)) {
      const child = (place + rank) % size;
      const onSent = (_: unknown, result: Result): void => {
        left.delete(child);
        if (result !== SUCCESS || left.size === 0) this.#end(operation, result);
      };
      if (this.#host.whenSent(child, onSent)) left.add(child);
    }
    if (left.size === 0) this.#end(operation, SUCCESS);
  }

  /** @param take takes the blocks that have come, and returns or throws the reason of a failure */
  #end(operation: ActiveOperation, given: Result, take = (): string => "", reason = ""): void {
    if (!this.#own.delete(operation)) return;
    let result = given;
    let why = reason;
    try {
      if (result === SUCCESS) {
        why = take();
        if (why !== "") result = ERROR;
      }
    } catch (error) {
      result = error instanceof PamiError && error.code === "PAMIR_NO_MEMORY" ? ENOMEM : ERROR;
      why = textOf(error);
      operation.cause = error;
    }
    this.#host.overActive(operation, result, why);
  }

  /** A message of the geometry's has come. */
  came(number: number, tag: number, root: number, rank: number, arrival: Arrival): void {
    if (root >>> 0 >= this.#host.size) return;
    const payload = arrival.payload.slice();
    if (tag === DOWN) {
      if (this.#isDown(root, rank, payload)) this.#down(number, root, payload);
    } else this.#up(number, root, rank, tag === UP ? SUCCESS : ((tag - UP_FAILED) as Result), payload);
  }

  /** A member has ended: active messages that need its answer, or the answer of a member behind it, fail. */
  gone(): void {
    for (const [key, pending] of [...this.#pending]) {
      this.#pending.delete(key);
      pending.done([], SHUTDOWN, "");
    }
  }

  /** This member has closed the geometry. The other members hear of the close, so this member answers nothing. */
  close(): void {
    this.#pending.clear();
    for (const operation of [...this.#own]) this.#end(operation, CANCELED);
    for (const waiting of this.#unexpected.values()) {
      for (const { payload } of waiting) this.#host.unexpected.letGo(payload);
    }
    this.#unexpected.clear();
  }

  /** This member's place, counted from the root; and the number of members in its subtree. */
  #place(root: number): { own: number; count: number } {
    const { rank, size } = this.#host;
    const own = (rank - root + size) % size;
    return { own, count: Math.min(own === 0 ? size : own & -own, size - own) };
  }

  /** The places of this member's children, and how many members their subtrees have. */
  #children(root: number): { place: number; count: number }[] {
    const { own, count } = this.#place(root);
    const children: { place: number; count: number }[] = [];
    for (let distance = 1; distance < count; distance *= 2) {
      children.push({ place: own + distance, count: Math.min(distance, count - distance) });
    }
    return children.reverse();
  }

  #passOn(
    number: number,
    root: number,
    type: ActiveType,
    id: number,
    header: Uint8Array,
    blocks: Uint8Array | readonly Uint8Array[],
  ): void {
    const { size } = this.#host;
    const { own } = this.#place(root);
    for (const { place, count } of this.#children(root)) {
      const body = blocks instanceof Uint8Array ? blocks : joined(blocks.slice(place - own, place - own + count));
      const prefix = Uint32Array.of(ACTIVE_TYPES.indexOf(type), id, header.length, count);
      const headerSpace = (header.length + 7) & ~7;
      const payload = new Uint8Array(4 * PREFIX_WORDS + headerSpace + body.length);
      payload.set(new Uint8Array(prefix.buffer));
      payload.set(header, 4 * PREFIX_WORDS);
      payload.set(body, 4 * PREFIX_WORDS + headerSpace);
      this.#host.sendActive(COLLECTIVE_ACTIVE, (place + root) % size, number, DOWN, root, payload);
    }
  }

  /** Whether a message comes from this member's parent in the tree of its root, in the right form: a member may send anything. */
  #isDown(root: number, rank: number, payload: Uint8Array): boolean {
    const { own, count } = this.#place(root);
    if (own === 0 || rank !== this.#parent(root) || payload.length < 4 * PREFIX_WORDS) return false;
    const [type = 0, , headerBytes = 0, stated] = new Uint32Array(payload.buffer, 0, PREFIX_WORDS);
    const bodyAt = 4 * PREFIX_WORDS + 8 * Math.ceil(headerBytes / 8);
    const name = ACTIVE_TYPES[type];
    if (name === undefined || stated !== count) return false;
    if (hasBlocks(name)) return areBlocks(payload.subarray(bodyAt), count);
    return 4 * PREFIX_WORDS + headerBytes <= payload.length;
  }

  /** Rank of the member from which this member gets the messages of a root. */
  #parent(root: number): number {
    const { own } = this.#place(root);
    return (own - (own & -own) + root) % this.#host.size;
  }

  #down(number: number, root: number, payload: Uint8Array): void {
    const words = new Uint32Array(payload.buffer, 0, PREFIX_WORDS);
    const type = ACTIVE_TYPES[words[0] as number] as ActiveType;
    const [, id, headerBytes, count] = words as unknown as [number, number, number, number];
    const header = payload.subarray(4 * PREFIX_WORDS, 4 * PREFIX_WORDS + headerBytes);
    const body = payload.subarray(4 * PREFIX_WORDS + ((headerBytes + 7) & ~7));
    const blocks = hasBlocks(type) ? split(body, count) : body;
    this.#passOn(number, root, type, id, header, blocks);
    if (isAnswered(type)) {
      this.#await(number, root, count, (found, result, why) => this.#answer(number, root, found, result, why));
    }
    const own = blocks instanceof Uint8Array ? blocks : (blocks[0] as Uint8Array);
    const down = { number, root, type, id, header, own, payload };
    const handler = this.#handlers.get(id);
    if (handler === undefined) this.#keep(down);
    else this.#run(handler, down);
  }

  /** Keeps a message until its handler is set. */
  #keep(down: Down): void {
    const { id, number, root, payload } = down;
    try {
      this.#host.unexpected.keep(payload, `dispatch id ${id} of a geometry, from rank ${root}`);
    } catch (error) {
      this.#errors.push(error);
      this.#answered(number, root, NOTHING, ENOMEM, `rank ${this.#host.rank}: ${error}`);
      return;
    }
    const waiting = this.#unexpected.get(id);
    if (waiting === undefined) this.#unexpected.set(id, [down]);
    else waiting.push(down);
  }

  #run(handler: ActiveHandler, { number, root, type, header, own }: Down): void {
    let value: unknown;
    let result: Result = SUCCESS;
    let why = "";
    try {
      value = handler({ type, root, header, payload: own });
      if (isAnswered(type) && value !== undefined && !ArrayBuffer.isView(value)) {
        // A promise that is refused is no unhandled rejection.
        isPromised(value);
        throw new PamiError(
          "PAMIR_INVAL",
          `a handler of ${type}() has returned ${show(value)}, not an ArrayBufferView`,
        );
      }
      promised(value);
    } catch (error) {
      this.#errors.push(error);
      result = ERROR;
      why = `rank ${this.#host.rank}: ${textOf(error)}`;
    }
    const block = ArrayBuffer.isView(value)
      ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice()
      : NOTHING;
    this.#answered(number, root, block, result, why);
  }

  /** This member has its own block of an answer, or answers without a block. */
  #answered(number: number, root: number, block: Uint8Array, result: Result, why: string): void {
    const pending = this.#pending.get(keyOf(number, root));
    if (pending === undefined) return;
    failWith(pending, result, why);
    pending.blocks[0] = block;
    pending.missing.delete(this.#place(root).own);
    this.#look(number, root);
  }

  /** @returns the blocks, in the order in which they come */
  #await(number: number, root: number, count: number, done: Pending["done"]): Pending["blocks"] {
    const isRoot = root === this.#host.rank;
    const blocks: (Uint8Array | undefined)[] = new Array<Uint8Array | undefined>(count).fill(undefined);
    // The root adds its own block elsewhere.
    if (isRoot) blocks[0] = NOTHING;
    const missing = new Set(this.#children(root).map(({ place }) => place));
    if (!isRoot) missing.add(this.#place(root).own);
    this.#pending.set(keyOf(number, root), { blocks, missing, result: SUCCESS, why: "", done });
    for (const { place } of this.#children(root)) this.#host.watch((place + root) % this.#host.size);
    return blocks;
  }

  #up(number: number, root: number, rank: number, result: Result, payload: Uint8Array): void {
    const pending = this.#pending.get(keyOf(number, root));
    if (pending === undefined) return;
    const { size } = this.#host;
    const place = (rank - root + size) % size;
    const child = this.#children(root).find((one) => one.place === place);
    if (child === undefined || !pending.missing.delete(place)) return;
    const isRight = result !== SUCCESS || areBlocks(payload, child.count);
    const text = isRight
      ? new TextDecoder().decode(payload)
      : `rank ${rank} has sent ${payload.length} bytes that are no answer`;
    failWith(pending, isRight ? result : ERROR, text);
    if (result === SUCCESS && isRight) {
      const blocks = split(payload, child.count);
      const { own } = this.#place(root);
      for (const [at, block] of blocks.entries()) pending.blocks[place - own + at] = block;
    }
    this.#look(number, root);
  }

  #look(number: number, root: number): void {
    const key = keyOf(number, root);
    const pending = this.#pending.get(key);
    if (pending === undefined || pending.missing.size > 0) return;
    this.#pending.delete(key);
    pending.done(pending.blocks as Uint8Array[], pending.result, pending.why);
  }

  /** Passes the answers of this member's subtree on to its parent. */
  #answer(number: number, root: number, blocks: readonly Uint8Array[], result: Result, why: string): void {
    const parent = this.#parent(root);
    const payload = result === SUCCESS ? joined(blocks) : new TextEncoder().encode(why.slice(0, WHY_MAX));
    const tag = result === SUCCESS ? UP : UP_FAILED + result;
    this.#host.sendActive(COLLECTIVE_ACTIVE, parent, number, tag, root, payload);
  }
}

const NOTHING = new Uint8Array(0);

/** Whether each member gets a block of its own. */
function hasBlocks(type: ActiveType): boolean {
  return OPERATION_ROWS[type].gives === "blocks";
}

/** Whether the root gets what handlers return. */
function isAnswered(type: ActiveType): boolean {
  return OPERATION_ROWS[type].gets !== "";
}

/** The root hears of the first failure alone. */
function failWith(pending: Pending, result: Result, why: string): void {
  if (result === SUCCESS || pending.result !== SUCCESS) return;
  pending.result = result;
  pending.why = why;
}

function keyOf(number: number, root: number): string {
  return `${root} ${number}`;
}

/** Blocks, preceded by their lengths. */
function joined(blocks: readonly Uint8Array[]): Uint8Array {
  const lengths = Uint32Array.from(blocks, ({ length }) => length);
  const bytes = blocks.reduce((sum, { length }) => sum + length, 0);
  const whole = new Uint8Array(lengths.byteLength + bytes);
  whole.set(new Uint8Array(lengths.buffer));
  let place = lengths.byteLength;
  for (const block of blocks) {
    whole.set(block, place);
    place += block.length;
  }
  return whole;
}

/** Whether bytes are so many blocks, preceded by their lengths. */
function areBlocks(whole: Uint8Array, count: number): boolean {
  if (whole.length < 4 * count) return false;
  const lengths = new Uint32Array(whole.slice(0, 4 * count).buffer);
  return lengths.reduce((sum, length) => sum + length, 4 * count) === whole.length;
}

function split(whole: Uint8Array, count: number): Uint8Array[] {
  const lengths = new Uint32Array(whole.slice(0, 4 * count).buffer);
  let place = 4 * count;
  return Array.from(lengths, (length) => {
    place += length;
    return whole.subarray(place - length, place);
  });
}
