// Packs small items for other members of a geometry into messages, as conveyors do: a message costs more than its bytes.
//
// A message of items of one kind and length has nothing else. In others, each run of items of one kind is behind two words,
// its kind and its bytes, and begins at a multiple of 8. An item of a kind without a length is a run of its own.
import type { Extension } from "../../collective/extension.js";
import type { CollectiveOperation } from "../../collective/operation.js";
import { checkKeys, type Keys, NO_OPTIONS } from "../../core/check.js";
import { type Endpoint, nameOf } from "../../core/endpoint.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import { type Callback, EAGAIN, ENOMEM, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Arrival } from "../../protocol/late-handler.js";
import { copyInto } from "../../support/copy.js";
import { checkProgress, checkWait, PROGRESS_KEYS, type ProgressOptions, type WaitOptions } from "../waits.js";
import { type ExtensionHost, errorOf, makeTogether, ResultLook } from "./extension-host.js";
import { ITEM_KEYS, type ItemArray, type ItemKind, type Kind, kindOf, kindsOf } from "./item-kind.js";

/** What all aggregators have. */
export interface AggregatorOptions extends ProgressOptions {
  /**
   * Bytes of a message, 64 … 12,288 (default 4,064), as many at all members. Each has a buffer of that size for each member, and
   * up to 64 messages in all wait for room.
   */
  readonly bytes?: number | undefined;
  /** Milliseconds after which an `advance()` sends items whose message is not full (default: only flush() and finish() do). */
  readonly delay?: number | undefined;
}

/** Parameters of `geometry.createAggregator` for items of one kind. */
export interface AggregatorParameters<View extends ItemArray = ItemArray> extends AggregatorOptions, ItemKind<View> {}

/** Parameters of `geometry.createAggregator` for items of several kinds. */
export interface KindsParameters<Views extends readonly ItemArray[] = readonly ItemArray[]> extends AggregatorOptions {
  /** 1 … 256 kinds, in the same order at all members. push() and update() take the number of one, from 0. */
  readonly kinds: readonly [...{ [Place in keyof Views]: ItemKind<Views[Place]> }];
}

const OPTION_KEYS: Keys<AggregatorOptions> = { ...PROGRESS_KEYS, bytes: true, delay: true };
const KEYS: Keys<AggregatorParameters> = { ...OPTION_KEYS, ...ITEM_KEYS };
const KINDS_KEYS: Keys<KindsParameters> = { ...OPTION_KEYS, kinds: true };
/** With its header, a message has SEND_IMMEDIATE_MAX bytes: each lane takes it as one record. */
const BYTES_DEFAULT = 4064;
const BYTES_MAX = 12_288;
/** Bytes of a message besides its items. */
const HEADER_BYTES = 32;
/** Bytes in front of a run. */
const RUN_BYTES = 8;

/** Ranks or indices, as `pushMany` and `updateMany` take them. */
export type IntegerArray = Int32Array | Uint32Array | Uint16Array | Uint8Array;

const INTEGER_ARRAYS = [Int32Array, Uint32Array, Uint16Array, Uint8Array];
/**
 * Messages without room that wait in the context's pending queue. A lane of 16 KiB takes three: without the queue, two tasks that
 * update each other stopped 183 times in 516 messages, with it 11 times.
 */
const QUEUED_MAX = 64;
/** In place of a kind: a message is empty, or its member has ended. */
const NONE = -1;
/** Elements up to which a loop is faster than `set`, which needs a view of them. */
const LOOP_MAX = 32;

/** The message to one member. */
interface Outgoing {
  readonly bytes: Uint8Array;
  /** Bytes of the items that were refused last: whenRoom() is about them. */
  wanted: number;
  /** Messages that went to the pending queue. Some may have left it since: see #areQueued(). */
  queued: number;
  /** Whether the context is to tell when there is room for a message. Before, none is queued: a wait is for many. */
  isWaiting: boolean;
  /** Whether there is no memory for a lane that takes a message whole: it goes in packets, once none waits before it. */
  isSplit: boolean;
  readonly onRoom: Callback;
}

// A row of words for each kind and member: an item needs no object, and one look at memory.
const ROW = 4;
/** Element at which the next item goes, if the last run of the message is of this kind. */
const ROW_PLACE = 0;
/** The last element at which an item has room; -1: an item needs a new run, or a new message. */
const ROW_LAST = 1;
/** Of updates: elements of the member's region; else 0. */
const ROW_LIMIT = 2;
/** First byte of the items of that run. */
const ROW_RUN = 3;

/** A kind, and what one item more needs of it. */
interface Carried extends Kind {
  /** The memory of the messages to all members, as elements and as words. Places are those of this memory. */
  readonly elements: ItemArray;
  readonly words: Uint32Array;
  /** The memory of the message that has come. */
  readonly incoming: ItemArray;
  readonly rows: Int32Array;
}

/** A finish() that is under way: first all is sent, then members tell each other how much, then all of that comes. */
interface Finishing extends ResultLook {
  /** Messages that come from each member. */
  readonly expected: Float64Array;
  /** In which members tell each other; undefined: it has not begun. */
  exchange: CollectiveOperation | undefined;
}

/**
 * Packs small items for other members into messages, from `geometry.createAggregator()`. A message goes out when it is full,
 * by flush(), by finish(), and after `delay`. It belongs to this member's thread.
 */
export class Aggregator<View extends ItemArray = ItemArray> {
  readonly #host: ExtensionHost;
  readonly #kinds: readonly Carried[];
  /** Whether messages have no runs. */
  readonly #isPlain: boolean;
  /** Bytes of a message, and from the begin of one to that of the next. */
  readonly #capacity: number;
  readonly #stride: number;
  /** By rank: the kind of the last run of its message. */
  readonly #open: Int32Array;
  readonly #outgoing: readonly Outgoing[];
  /** Messages that wait in the pending queue, to all members. */
  #queued = 0;
  readonly #gone: boolean[];
  /** Messages that went to each member, and that have come from it. */
  readonly #sent: Float64Array;
  readonly #came: Float64Array;
  readonly #number: number;
  /** What has come, where kernels and handlers find it aligned. */
  readonly #incoming: Uint8Array;
  readonly #incomingWords: Uint32Array;
  readonly #delay: number;
  /** When the first of the items that wait came; undefined: the timer does not run. */
  #since: number | undefined;
  /** What a finish() has begun that gave up waiting: the next one goes on with it. */
  #left: Finishing | undefined;
  #isClosed = false;

  /** @internal @param isPlain whether all items have one kind and length */
  constructor(host: ExtensionHost, kinds: readonly Kind[], isPlain: boolean, bytes: number, delay: number) {
    const { core, group } = host;
    const { size } = group;
    const [{ itemBytes }] = kinds as [Kind];
    const capacity = isPlain ? Math.floor(bytes / itemBytes) * itemBytes : bytes & -8;
    const stride = (capacity + 7) & -8;
    const all = new Uint8Array(size * stride);
    const words = new Uint32Array(all.buffer);
    this.#incoming = new Uint8Array(stride);
    this.#incomingWords = new Uint32Array(this.#incoming.buffer);
    this.#host = host;
    this.#kinds = kinds.map((kind) => ({
      ...kind,
      elements: new kind.type(all.buffer, 0, Math.floor(all.length / kind.elementBytes)),
      incoming: new kind.type(this.#incoming.buffer, 0, Math.floor(capacity / kind.elementBytes)),
      words,
      rows: rowsOf(kind, size),
    }));
    this.#isPlain = isPlain;
    this.#capacity = capacity;
    this.#stride = stride;
    this.#open = new Int32Array(size).fill(NONE);
    this.#gone = new Array<boolean>(size).fill(false);
    this.#sent = new Float64Array(size);
    this.#came = new Float64Array(size);
    this.#outgoing = group.endpoints.map((_, rank) => {
      const outgoing: Outgoing = {
        bytes: all.subarray(rank * stride, rank * stride + capacity),
        wanted: Math.max(1, itemBytes),
        queued: 0,
        isWaiting: false,
        isSplit: false,
        onRoom: (_, result) => {
          outgoing.isWaiting = false;
          outgoing.isSplit = result === ENOMEM;
          if (result === SHUTDOWN) this.#unqueue(outgoing);
        },
      };
      return outgoing;
    });
    this.#delay = delay;
    const extension: Extension = {
      came: (rank, _tag, _word, arrival) => this.#take(rank, arrival),
      gone: (rank) => {
        this.#gone[rank] = true;
        if (rank !== group.rank) this.#close(rank);
        // The geometry is closed.
        else for (let other = 0; other < size; other++) this.#close(other);
      },
    };
    this.#number = core.extend(extension);
  }

  /**
   * Adds an item for a member; it is copied. If its message has no room for it, that message goes out first.
   * @param item as many elements as the kind has in an item; if that is "any", as many as go into a message
   * @param kind number of the kind, if there are several (default 0)
   * @returns SUCCESS, EAGAIN (the message is full, and there is no room to send it: advance, and try again), SHUTDOWN (the
   *   member has ended)
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  push(rank: number, item: View, kind = 0): Result {
    const known = this.#kinds[kind];
    // An item that has room. The rest, also for wrong arguments, is in a function of its own, so that V8 inlines this one.
    if (known !== undefined && typeof rank === "number" && typeof kind === "number" && item instanceof known.type) {
      const { rows, elements } = known;
      const { length } = item;
      const row = ROW * rank;
      const place = rows[row + ROW_PLACE] as number;
      if (rank >>> 0 === rank && place <= (rows[row + ROW_LAST] as number) && length === known.length) {
        if (length === 1) elements[place] = item[0] as number;
        else for (let at = 0; at < length; at++) elements[place + at] = item[at] as number;
        rows[row + ROW_PLACE] = place + length;
        return SUCCESS;
      }
    }
    return this.#push(rank, item, kind);
  }

  #push(rank: number, item: View, kind: number): Result {
    this.#checkRank("push", rank);
    const { type, length, elementBytes } = this.#itemsOf("push", kind);
    const most = length || Math.floor((this.#capacity - RUN_BYTES) / elementBytes);
    const given = item instanceof type ? item.length : -1;
    if (given < 0 || given > most || (length > 0 && given < most)) {
      const wanted = `${type.name} of ${length > 0 ? "" : "at most "}${most} elements`;
      throw new PamiError("PAMIR_INVAL", `item of push() is ${show(item)}, not ${wanted}`);
    }
    const result = this.#makeRoom(rank, kind, given * elementBytes);
    if (result === SUCCESS) this.#copy(rank, this.#kinds[kind] as Carried, item, 0, given);
    return result;
  }

  /**
   * Adds many items, as push() one after the other, until one has no room.
   * @param to rank of the member, or an array of ranks, one for each item
   * @param items one behind the other; they are copied. Not of a kind whose `length` is "any"
   * @param kind number of the kind, if there are several (default 0)
   * @param from number of the item to begin with (default 0)
   * @returns how many items were added. If none was, though there are some, a negated result for the first one: -EAGAIN (advance,
   *   and try again), -SHUTDOWN (its member has ended: it is not added, go on behind it)
   * @throws PAMIR_INVAL, PAMIR_CLOSED. If a rank of the array is wrong, the items before it are added
   */
  pushMany(to: number | IntegerArray, items: View, kind = 0, from = 0): number {
    this.#checkTo("pushMany", to);
    const known = this.#itemsOf("pushMany", kind);
    const { type, length, itemBytes } = known;
    if (length === 0) throw new PamiError("PAMIR_INVAL", `pushMany() of kind ${kind}, whose items have any length`);
    if (!(items instanceof type)) throw wrongView("items of pushMany()", items, type.name);
    const count = typeof to === "number" ? Math.floor(items.length / length) : to.length;
    if (items.length !== count * length) {
      const wanted = typeof to === "number" ? `a multiple of ${length}` : `${length} for each of ${count} ranks`;
      throw new PamiError("PAMIR_INVAL", `items of pushMany() has ${items.length} elements, not ${wanted}`);
    }
    checkInteger("from of pushMany()", from, 0, count);
    for (let at = from; ; ) {
      at = typeof to === "number" ? this.#copyItems(to, known, items, at, count) : scatter(known, to, items, at);
      if (at === count) return count - from;
      const rank = typeof to === "number" ? to : (to[at] as number);
      this.#checkRank("pushMany", rank, at);
      const result = this.#makeRoom(rank, kind, itemBytes);
      if (result !== SUCCESS) return at > from ? at - from : -result;
    }
  }

  /** Adds items to a message, as far as there is room. @returns the number of the next one */
  #copyItems(rank: number, known: Carried, items: ItemArray, from: number, count: number): number {
    const { rows, length } = known;
    const room = (rows[ROW * rank + ROW_LAST] as number) - (rows[ROW * rank + ROW_PLACE] as number);
    if (room < 0) return from;
    const some = Math.min(Math.floor(room / length) + 1, count - from);
    this.#copy(rank, known, items, from * length, some * length);
    return from + some;
  }

  /**
   * Adds items for a member that the caller writes in place, into `elements(kind)`. They are added when this returns: the caller
   * writes all their elements before it advances, or calls anything else of this aggregator but reserve() for other members.
   * @param kind number of the kind, if there are several (default 0)
   * @param count of items, one behind the other, in one message (default 1). If the kind's `length` is "any": of elements of
   *   one item
   * @returns the place of their first element, or a negated result, as push() has it: -EAGAIN, -SHUTDOWN
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  reserve(rank: number, kind = 0, count = 1): number {
    const known = this.#kinds[kind];
    // As in push().
    if (known !== undefined && typeof rank === "number" && typeof kind === "number" && count === 1) {
      const { rows, length } = known;
      const row = ROW * rank;
      const place = rows[row + ROW_PLACE] as number;
      if (rank >>> 0 === rank && place <= (rows[row + ROW_LAST] as number) && length > 0) {
        rows[row + ROW_PLACE] = place + length;
        return place;
      }
    }
    return this.#reserve(rank, kind, count);
  }

  #reserve(rank: number, kind: number, count: number): number {
    this.#checkRank("reserve", rank);
    const { length, elementBytes, rows } = this.#itemsOf("reserve", kind);
    const most = this.#capacity - (this.#isPlain ? 0 : RUN_BYTES);
    const each = (length || 1) * elementBytes;
    checkInteger("count of reserve()", count, length === 0 ? 0 : 1, Math.floor(most / each));
    const result = this.#makeRoom(rank, kind, count * each);
    if (result !== SUCCESS) return -result;
    const place = rows[ROW * rank + ROW_PLACE] as number;
    rows[ROW * rank + ROW_PLACE] = place + (length || 1) * count;
    return place;
  }

  /**
   * Returns the array in which the caller writes items that reserve() adds: the same one at each call, for all members.
   * @param kind number of the kind, if there are several (default 0)
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  elements(kind = 0): View {
    this.#checkOpen("elements");
    return this.#itemsOf("elements", kind).elements as View;
  }

  /**
   * Updates an element of a member's region, by the aggregator's operation. The member applies updates one at a time, in its
   * `advance()`, so no update of this aggregator is lost. They are not atomic with respect to other accesses.
   * @param index of the element in that region
   * @param kind number of the kind, if there are several (default 0)
   * @returns as push()
   * @throws PAMIR_INVAL, PAMIR_BOUNDS, PAMIR_CLOSED
   */
  update(rank: number, index: number, value: View[number], kind = 0): Result {
    const known = this.#kinds[kind];
    // As in push().
    if (known !== undefined && typeof rank === "number" && typeof kind === "number" && typeof index === "number") {
      const { rows } = known;
      const row = ROW * rank;
      const place = rows[row + ROW_PLACE] as number;
      if (
        rank >>> 0 === rank &&
        place <= (rows[row + ROW_LAST] as number) &&
        index >>> 0 === index &&
        index < (rows[row + ROW_LIMIT] as number) &&
        typeof value === known.element
      ) {
        known.elements[place] = value as number;
        known.words[(place + 1) << known.shift] = index;
        rows[row + ROW_PLACE] = place + 2;
        return SUCCESS;
      }
    }
    return this.#update(rank, index, value, kind);
  }

  #update(rank: number, index: number, value: View[number], kind: number): Result {
    this.#checkRank("update", rank);
    const { element, itemBytes, rows } = this.#updatesOf("update", kind);
    checkIndex("update", index, rank, rows[ROW * rank + ROW_LIMIT] as number);
    if (typeof value !== element) {
      throw new PamiError("PAMIR_INVAL", `value of update() is ${show(value)}, not a ${element}`);
    }
    const result = this.#makeRoom(rank, kind, itemBytes);
    return result === SUCCESS ? this.update(rank, index, value, kind) : result;
  }

  /**
   * Makes many updates, as update() one after the other, until one has no room.
   * @param to rank of the member, or an array of ranks, one for each update
   * @param indices of the elements, one for each update
   * @param values one for each update
   * @param kind number of the kind, if there are several (default 0)
   * @param from number of the update to begin with (default 0)
   * @returns as pushMany()
   * @throws PAMIR_INVAL, PAMIR_BOUNDS, PAMIR_CLOSED. If a rank or an index of an array is wrong, the updates before it are made
   */
  updateMany(to: number | IntegerArray, indices: IntegerArray, values: View, kind = 0, from = 0): number {
    this.#checkTo("updateMany", to);
    const known = this.#updatesOf("updateMany", kind);
    const { type, rows, itemBytes } = known;
    checkIntegers("indices of updateMany()", indices);
    if (!(values instanceof type)) throw wrongView("values of updateMany()", values, type.name);
    const count = indices.length;
    checkLength("values", values.length, count);
    if (typeof to !== "number") checkLength("ranks", to.length, count);
    checkInteger("from of updateMany()", from, 0, count);
    for (let at = from; ; ) {
      at = scatterUpdates(known, to, indices, values, at);
      if (at === count) return count - from;
      const rank = typeof to === "number" ? to : (to[at] as number);
      this.#checkRank("updateMany", rank, at);
      checkIndex("updateMany", indices[at] as number, rank, rows[ROW * rank + ROW_LIMIT] as number, at);
      const result = this.#makeRoom(rank, kind, itemBytes);
      if (result !== SUCCESS) return at > from ? at - from : -result;
    }
  }

  /**
   * Sends all items that wait.
   * @returns SUCCESS, or EAGAIN (no room for some: advance, and try again). Items for members that have ended are dropped
   * @throws PAMIR_CLOSED
   */
  flush(): Result {
    this.#checkOpen("flush");
    let result: Result = SUCCESS;
    for (let rank = 0; rank < this.#outgoing.length; rank++) if (this.#send(rank) === EAGAIN) result = EAGAIN;
    return result;
  }

  /**
   * Resolves once items for a member have room: for as many bytes as push() or another call has last refused for it.
   * @throws PAMIR_SHUTDOWN, PAMIR_INVAL; as `progress()`
   */
  async whenRoom(rank: number, options: ProgressOptions = NO_OPTIONS): Promise<void> {
    this.#checkRank("whenRoom", rank);
    checkProgress("whenRoom()", options);
    const room = new ResultLook(() => this.#hasRoom(rank));
    await this.#host.until("whenRoom", room.isOver, options, () => [rank]);
    if (room.result !== SUCCESS) throw errorOf(this.#host, "whenRoom", room.result);
  }

  /**
   * As whenRoom(), but blocks the thread. The geometry's `lastError` says why it has not succeeded.
   * @returns SUCCESS, SHUTDOWN, TIMEDOUT or INTERRUPTED
   */
  whenRoomSync(rank: number, options: WaitOptions = NO_OPTIONS): Result {
    this.#checkRank("whenRoomSync", rank);
    checkWait("whenRoomSync()", options);
    const room = new ResultLook(() => this.#hasRoom(rank));
    const waited = this.#host.untilSync("whenRoomSync", room.isOver, options, () => [rank]);
    if (waited !== SUCCESS) return waited;
    if (room.result !== SUCCESS) this.#host.noteError(errorOf(this.#host, "whenRoomSync", room.result));
    return room.result;
  }

  /**
   * Resolves once all items that any member has pushed before are applied at their targets. All members call it, or
   * finishSync(). Items that handlers push meanwhile are not waited for. If it gives up waiting, the next call goes on.
   * @throws PAMIR_SHUTDOWN (a member has ended), PAMIR_CLOSED; as `progress()`
   */
  async finish(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    this.#checkOpen("finish");
    checkProgress("finish()", options);
    const finishing = this.#beginFinish();
    try {
      await this.#host.until("finish", finishing.isOver, options, () => this.#awaited(finishing));
    } finally {
      if (finishing.result === EAGAIN) this.#left = finishing;
    }
    if (finishing.result !== SUCCESS) throw this.#errorOf("finish", finishing);
  }

  /**
   * As finish(), but blocks the thread. The geometry's `lastError` says why it has not succeeded.
   * @returns SUCCESS; SHUTDOWN (a member has ended); TIMEDOUT or INTERRUPTED: the next call goes on
   * @throws PAMIR_CLOSED, PAMIR_INVAL; as `advanceUntil()`
   */
  finishSync(options: WaitOptions = NO_OPTIONS): Result {
    this.#checkOpen("finishSync");
    checkWait("finishSync()", options);
    const finishing = this.#beginFinish();
    try {
      const waited = this.#host.untilSync("finishSync", finishing.isOver, options, () => this.#awaited(finishing));
      if (finishing.result === EAGAIN) return waited;
    } finally {
      if (finishing.result === EAGAIN) this.#left = finishing;
    }
    if (finishing.result !== SUCCESS) this.#host.noteError(this.#errorOf("finishSync", finishing));
    return finishing.result;
  }

  #beginFinish(): Finishing {
    const left = this.#left;
    this.#left = undefined;
    if (left !== undefined) return left;
    const finishing: Finishing = Object.assign(new ResultLook(() => this.#finish(finishing)), {
      expected: new Float64Array(this.#outgoing.length),
      exchange: undefined,
    });
    return finishing;
  }

  /** @returns EAGAIN: it is not over */
  #finish(finishing: Finishing): Result {
    const { expected } = finishing;
    this.#checkOpen("finish");
    if (finishing.exchange === undefined) {
      if (this.flush() === EAGAIN) return EAGAIN;
      finishing.exchange = this.#host.exchange({ send: this.#sent.slice(), receive: expected });
    }
    const { exchange } = finishing;
    if (exchange.result !== SUCCESS) return exchange.result;
    if (this.#lacking(expected) >= 0) return SHUTDOWN;
    // What is queued goes only while this member advances.
    return this.#hasCome(expected) && !this.#areQueued() ? SUCCESS : EAGAIN;
  }

  /** Ranks of the members for which a finish() waits. */
  #awaited({ exchange, expected }: Finishing): number[] {
    if (exchange?.isOver === false) return this.#host.awaitedOf(exchange);
    const waits = (rank: number): boolean =>
      exchange === undefined
        ? this.#open[rank] !== NONE
        : this.#lacks(rank, expected) || this.#outgoing[rank]?.queued !== 0;
    return [...expected.keys()].filter(waits);
  }

  #errorOf(call: string, { expected, result }: Finishing): Error {
    const rank = this.#lacking(expected);
    if (rank < 0) return errorOf(this.#host, call, result);
    const who = nameOf(this.#host.group.endpoints[rank] as Endpoint);
    return new PamiError("PAMIR_SHUTDOWN", `${call}(): ${who} ended before all its items came`);
  }

  /** Ends the aggregator at this member: items that wait are dropped, and so are those that come. */
  close(): void {
    this.#isClosed = true;
    for (let rank = 0; rank < this.#outgoing.length; rank++) this.#close(rank);
    this.#host.core.extensions.remove(this.#number);
  }

  #checkOpen(call: string): void {
    if (this.#isClosed || this.#host.group.closed) {
      throw new PamiError("PAMIR_CLOSED", `${call}() of an aggregator that is closed`);
    }
  }

  /** @param at place of the rank in a list */
  #checkRank(call: string, rank: number, at?: number): void {
    this.#checkOpen(call);
    if (typeof rank === "number" && this.#outgoing[rank] !== undefined) return;
    checkInteger(`rank${at === undefined ? "" : ` ${at}`} of ${call}()`, rank, 0, this.#outgoing.length - 1);
  }

  #checkTo(call: string, to: number | IntegerArray): void {
    if (typeof to !== "object") this.#checkRank(call, to);
    else {
      this.#checkOpen(call);
      checkIntegers(`ranks of ${call}()`, to);
    }
  }

  #kindOf(call: string, kind: number): Carried {
    const found = typeof kind === "number" ? this.#kinds[kind] : undefined;
    if (found === undefined) checkInteger(`kind of ${call}()`, kind, 0, this.#kinds.length - 1);
    return found as Carried;
  }

  #itemsOf(call: string, kind: number): Carried {
    const found = this.#kindOf(call, kind);
    if (found.length < 0) throw new PamiError("PAMIR_INVAL", `${call}() to a kind of updates`);
    return found;
  }

  #updatesOf(call: string, kind: number): Carried {
    const found = this.#kindOf(call, kind);
    if (found.length >= 0) throw new PamiError("PAMIR_INVAL", `${call}() of a kind without a region`);
    return found;
  }

  /** Adds elements to a message that has room for them. */
  #copy(rank: number, { elements, rows }: Carried, items: ItemArray, from: number, count: number): void {
    const place = rows[ROW * rank + ROW_PLACE] as number;
    if (count > LOOP_MAX) (elements as Float64Array).set(items.subarray(from, from + count) as Float64Array, place);
    else for (let at = 0; at < count; at++) elements[place + at] = items[from + at] as number;
    rows[ROW * rank + ROW_PLACE] = place + count;
  }

  /** Bytes of a message that are filled. */
  #filled(rank: number): number {
    const kind = this.#open[rank] as number;
    if (kind === NONE) return 0;
    const { rows, elementBytes } = this.#kinds[kind] as Carried;
    return (rows[ROW * rank + ROW_PLACE] as number) * elementBytes - rank * this.#stride;
  }

  /** Where an item would go in a message. @param kind NONE: one that begins a run */
  #placeFor(rank: number, kind: number): number {
    const filled = this.#filled(rank);
    return this.#isPlain || (kind === this.#open[rank] && this.#kinds[kind]?.itemBytes !== 0)
      ? filled
      : ((filled + 7) & -8) + RUN_BYTES;
  }

  #hasRoom(rank: number): Result {
    if (this.#gone[rank]) return SHUTDOWN;
    const { wanted } = this.#outgoing[rank] as Outgoing;
    return this.#placeFor(rank, NONE) + wanted <= this.#capacity ? SUCCESS : this.#send(rank);
  }

  /** Has a message be open for items of so many bytes. */
  #makeRoom(rank: number, kind: number, bytes: number): Result {
    if (this.#gone[rank]) return SHUTDOWN;
    if (this.#placeFor(rank, kind) + bytes > this.#capacity) {
      (this.#outgoing[rank] as Outgoing).wanted = bytes;
      const result = this.#send(rank);
      if (result !== SUCCESS) return result;
    }
    const { itemBytes, elementBytes, rows, words } = this.#kinds[kind] as Carried;
    if (this.#open[rank] === kind && itemBytes > 0) return SUCCESS;
    const from = rank * this.#stride;
    const place = from + this.#placeFor(rank, kind);
    this.#startTimer();
    this.#endRun(rank);
    this.#close(rank);
    if (!this.#isPlain) words[(place - RUN_BYTES) / 4] = kind;
    this.#open[rank] = kind;
    const row = ROW * rank;
    rows[row + ROW_RUN] = place;
    rows[row + ROW_PLACE] = place / elementBytes;
    if (itemBytes > 0) rows[row + ROW_LAST] = Math.floor((from + this.#capacity - itemBytes) / elementBytes);
    return SUCCESS;
  }

  /** Ends the last run of a message: the message is sent or dropped, or another run begins. */
  #close(rank: number): void {
    const kind = this.#open[rank] as number;
    if (kind === NONE) return;
    (this.#kinds[kind] as Carried).rows[ROW * rank + ROW_LAST] = -1;
    this.#open[rank] = NONE;
  }

  /** Writes the bytes of the last run in front of it. */
  #endRun(rank: number): void {
    const kind = this.#open[rank] as number;
    if (this.#isPlain || kind === NONE) return;
    const { rows, words } = this.#kinds[kind] as Carried;
    const run = rows[ROW * rank + ROW_RUN] as number;
    words[run / 4 - 1] = rank * this.#stride + this.#filled(rank) - run;
  }

  #startTimer(): void {
    if (this.#delay === Number.POSITIVE_INFINITY || this.#since !== undefined) return;
    this.#since = this.#host.task.clock.now();
    this.#host.context.post(() => this.#flushLate());
  }

  /** Work of the context, while items wait. */
  #flushLate(): Result {
    if (this.#isClosed || this.#host.group.closed) return SUCCESS;
    if (this.#host.task.clock.now() - (this.#since as number) < this.#delay || this.flush() === EAGAIN) return EAGAIN;
    this.#since = undefined;
    return SUCCESS;
  }

  /** Sends what is there for a member, if there is room for it. */
  #send(rank: number): Result {
    const filled = this.#filled(rank);
    if (filled === 0) return SUCCESS;
    const { core, context, group } = this.#host;
    const outgoing = this.#outgoing[rank] as Outgoing;
    const { bytes } = outgoing;
    const to = group.endpoints[rank] as Endpoint;
    const needed = filled + HEADER_BYTES;
    const least = outgoing.isSplit ? 1 : needed;
    if (context.room(to) >= least) {
      outgoing.isSplit = false;
      this.#unqueue(outgoing);
    } else {
      if (this.#queued >= QUEUED_MAX && !outgoing.isWaiting) this.#areQueued();
      if (outgoing.isWaiting || this.#queued >= QUEUED_MAX) {
        this.#awaitRoom(rank, least);
        return EAGAIN;
      }
      this.#queued++;
      outgoing.queued++;
    }
    this.#endRun(rank);
    const payload = filled === bytes.length ? bytes : bytes.subarray(0, filled);
    const result = core.extensions.send(this.#number, rank, 0, 0, payload);
    if (result === EAGAIN) return EAGAIN;
    this.#close(rank);
    this.#sent[rank] = (this.#sent[rank] as number) + 1;
    return result;
  }

  /** Has the context tell when there is room. Its callback is an event, so that waits look again. */
  #awaitRoom(rank: number, bytes: number): void {
    const outgoing = this.#outgoing[rank] as Outgoing;
    if (outgoing.isWaiting) return;
    outgoing.isWaiting = true;
    this.#host.context.whenRoom(this.#host.group.endpoints[rank] as Endpoint, bytes, outgoing.onRoom);
  }

  #unqueue(outgoing: Outgoing): void {
    this.#queued -= outgoing.queued;
    outgoing.queued = 0;
  }

  /** Whether messages wait in the pending queue: a look at each member. */
  #areQueued(): boolean {
    if (this.#queued === 0) return false;
    for (const [rank, outgoing] of this.#outgoing.entries()) {
      if (outgoing.queued === 0) continue;
      // There is none while a message waits. A message may also have found room that came since the last look.
      const hasRoom = this.#host.context.room(this.#host.group.endpoints[rank] as Endpoint) > 0;
      if (hasRoom || this.#gone[rank]) this.#unqueue(outgoing);
      else this.#awaitRoom(rank, 1);
    }
    return this.#queued > 0;
  }

  #take(rank: number, { payload, payloadBytes }: Arrival): void {
    if (payloadBytes > this.#capacity) return;
    const words = this.#incomingWords;
    this.#came[rank] = (this.#came[rank] as number) + 1;
    copyInto(this.#incoming, 0, payload);
    if (this.#isPlain) {
      this.#apply(0, 0, payloadBytes, rank);
      return;
    }
    let thrown: { error: unknown } | undefined;
    for (let at = 0; at + RUN_BYTES <= payloadBytes; ) {
      const [kind, length] = [words[at / 4] as number, words[at / 4 + 1] as number];
      const from = at + RUN_BYTES;
      // The members have given different kinds, or bytes that pamir has not made.
      if (kind >= this.#kinds.length || length > payloadBytes - from) break;
      try {
        this.#apply(kind, from, length, rank);
      } catch (error) {
        // What is behind it comes all the same.
        thrown ??= { error };
      }
      at = (from + length + 7) & -8;
    }
    if (thrown !== undefined) throw thrown.error;
  }

  #apply(kind: number, from: number, bytes: number, rank: number): void {
    const { elementBytes, apply, incoming } = this.#kinds[kind] as Carried;
    apply(incoming, this.#incomingWords, from / elementBytes, Math.floor(bytes / elementBytes), rank);
  }

  #hasCome(expected: Float64Array): boolean {
    for (let rank = 0; rank < expected.length; rank++) if (this.#lacks(rank, expected)) return false;
    return true;
  }

  /** A member that has ended, and of which messages are missing; -1: none. */
  #lacking(expected: Float64Array): number {
    return this.#gone.findIndex((isGone, rank) => isGone && this.#lacks(rank, expected));
  }

  /** A member that has gone on may have sent more already. */
  #lacks(rank: number, expected: Float64Array): boolean {
    return (this.#came[rank] as number) < (expected[rank] as number);
  }
}

/** The rows of a kind: no message has a run of it. */
function rowsOf({ limits }: Kind, size: number): Int32Array {
  const rows = new Int32Array(ROW * size);
  for (let rank = 0; rank < size; rank++) {
    rows[ROW * rank + ROW_LAST] = -1;
    rows[ROW * rank + ROW_LIMIT] = limits[rank] ?? 0;
  }
  return rows;
}

/** Adds an item for each of the ranks, until one has no room, or is wrong. @returns its number */
function scatter({ elements, rows, length }: Carried, ranks: IntegerArray, items: ItemArray, from: number): number {
  let at = from;
  for (let next = from * length; at < ranks.length; at++) {
    const row = ROW * (ranks[at] as number);
    let place = rows[row + ROW_PLACE] as number;
    if (!(place <= (rows[row + ROW_LAST] as number))) break;
    for (const end = next + length; next < end; next++) elements[place++] = items[next] as number;
    rows[row + ROW_PLACE] = place;
  }
  return at;
}

/** Adds updates, as scatter() does. */
function scatterUpdates(
  { elements, words, rows, shift }: Carried,
  to: number | IntegerArray,
  indices: IntegerArray,
  values: ItemArray,
  from: number,
): number {
  let at = from;
  for (; at < indices.length; at++) {
    const row = ROW * (typeof to === "number" ? to : (to[at] as number));
    const index = (indices[at] as number) >>> 0;
    const place = rows[row + ROW_PLACE] as number;
    if (!(place <= (rows[row + ROW_LAST] as number) && index < (rows[row + ROW_LIMIT] as number))) break;
    elements[place] = values[at] as number;
    words[(place + 1) << shift] = index;
    rows[row + ROW_PLACE] = place + 2;
  }
  return at;
}

/** @throws PAMIR_INVAL */
function checkLength(name: string, length: number, count: number): void {
  if (length === count) return;
  throw new PamiError("PAMIR_INVAL", `${name} of updateMany() has ${length} elements for ${count} indices`);
}

function wrongView(name: string, given: unknown, wanted: string): PamiError {
  return new PamiError("PAMIR_INVAL", `${name} is ${show(given)}, not ${wanted}`);
}

/** @param at place of the index in a list @throws PAMIR_BOUNDS */
function checkIndex(call: string, index: number, rank: number, limit: number, at?: number): void {
  if (Number.isInteger(index) && index >= 0 && index < limit) return;
  const where = at === undefined ? "" : `: index ${at}`;
  throw new PamiError("PAMIR_BOUNDS", `${call}() of element ${show(index)} at rank ${rank}, of ${limit}${where}`);
}

/** @throws PAMIR_INVAL */
function checkIntegers(name: string, given: unknown): void {
  if (INTEGER_ARRAYS.some((type) => given instanceof type)) return;
  throw wrongView(name, given, "Int32Array, Uint32Array, Uint16Array or Uint8Array");
}

/** @throws as `geometry.createAggregator` */
export function createAggregator(
  host: ExtensionHost,
  given: AggregatorParameters | KindsParameters,
): Promise<Aggregator> {
  const hasKinds = Object.hasOwn(Object(given), "kinds");
  checkKeys("parameters of createAggregator()", given, hasKinds ? KINDS_KEYS : KEYS);
  const { bytes = BYTES_DEFAULT, delay = Number.POSITIVE_INFINITY, timeout, signal } = given;
  checkInteger("bytes of createAggregator()", bytes, 64, BYTES_MAX);
  if (typeof delay !== "number" || !(delay >= 0)) {
    throw new PamiError("PAMIR_INVAL", `delay of createAggregator() is ${show(delay)}, not milliseconds from 0`);
  }
  const kinds = hasKinds
    ? kindsOf((given as KindsParameters).kinds, (bytes & -8) - RUN_BYTES)
    : [kindOf(given as AggregatorParameters, bytes)];
  const isPlain = !hasKinds && kinds[0]?.itemBytes !== 0;
  let made: Aggregator | undefined;
  const make = (): readonly number[] => {
    made = new Aggregator(host, kinds, isPlain, bytes, delay);
    return [0, 0];
  };
  const same = { bytes, [hasKinds ? "kinds" : "items"]: kinds.map((kind) => kind.same) };
  const making = { call: "createAggregator", same, make, undo: () => made?.close() };
  return makeTogether(host, making, { timeout, signal }).then(() => made as unknown as Aggregator);
}
