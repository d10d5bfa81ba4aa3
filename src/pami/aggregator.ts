// Packs small items for other members of a geometry into messages, as conveyors do: a message costs more than its bytes.
//
// A message of items of one kind and length has nothing else. In others, each run of items of one kind is behind two words,
// its kind and its bytes, and begins at a multiple of 8. An item of a kind without a length is a run of its own.
import type { Extension } from "../collective/extension.js";
import type { Operation } from "../collective/operation.js";
import { checkKeys, type Keys, NO_OPTIONS } from "../core/check.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { type Callback, EAGAIN, ENOMEM, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import type { Arrival } from "../protocol/late-handler.js";
import { copyInto } from "../support/copy.js";
import { type ExtensionHost, errorOf, Look, makeTogether } from "./extension-host.js";
import { type Elements, ITEM_KEYS, type ItemArray, type ItemKind, type Kind, kindOf, kindsOf } from "./item-kind.js";
import { checkProgress, checkWait, PROGRESS_KEYS, type ProgressOptions, type WaitOptions } from "./waits.js";

/** What all aggregators have. */
export interface AggregatorOptions extends ProgressOptions {
  /** Bytes of a message, 64 … 12,288 (default 4,096), as many at all members. Each has a buffer of that size for each member. */
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
const BYTES_DEFAULT = 4096;
const BYTES_MAX = 12_288;
/** Bytes of a message besides its items. */
const HEADER_BYTES = 32;
/** Bytes in front of a run. */
const RUN_BYTES = 8;

/** Items for one member. */
interface Outgoing {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  /** The same bytes, by kind. */
  readonly elements: readonly Elements[];
  /** Bytes that are filled. */
  filled: number;
  /** Kind of the run at the end, and where it begins. */
  kind: number;
  run: number;
  /** Bytes of the item that was refused last: whenRoom() is about it. */
  wanted: number;
  /** Messages sent so far. */
  sent: number;
  /** Whether the context is to tell when there is room for a message. */
  isWaiting: boolean;
  /** Whether there is no memory for a lane that takes a message whole: it goes in packets, once none waits before it. */
  isSplit: boolean;
  readonly onRoom: Callback;
}

/** A finish() that is under way: first all is sent, then members tell each other how much, then all of that comes. */
interface Finishing extends Look {
  /** Messages that come from each member. */
  readonly expected: Float64Array;
  /** In which members tell each other; undefined: it has not begun. */
  exchange: Operation | undefined;
}

/**
 * Packs small items for other members into messages, from `geometry.createAggregator()`. A message goes out when it is full,
 * by flush(), by finish(), and after `delay`. It belongs to this member's thread.
 */
export class Aggregator<View extends ItemArray = ItemArray> {
  readonly #host: ExtensionHost;
  readonly #kinds: readonly Kind[];
  /** Whether messages have no runs. */
  readonly #isPlain: boolean;
  readonly #outgoing: readonly Outgoing[];
  readonly #gone: boolean[];
  /** Messages that have come from each member. */
  readonly #came: Float64Array;
  readonly #number: number;
  /** What has come, where kernels and handlers find it aligned. */
  readonly #incoming: Pick<Outgoing, "bytes" | "words" | "elements">;
  readonly #delay: number;
  /** When the first of the items that wait came; undefined: the timer does not run. */
  #since: number | undefined;
  /** What a finish() has begun that gave up waiting: the next one goes on with it. */
  #left: Finishing | undefined;
  #isClosed = false;

  /** @internal @param isPlain whether all items have one kind and length */
  constructor(host: ExtensionHost, kinds: readonly Kind[], isPlain: boolean, bytes: number, delay: number) {
    const { core, group } = host;
    const [{ itemBytes }] = kinds as [Kind];
    const capacity = isPlain ? Math.floor(bytes / itemBytes) * itemBytes : bytes & -8;
    const make = (): Pick<Outgoing, "bytes" | "words" | "elements"> => {
      const buffer = new ArrayBuffer((capacity + 7) & -8);
      const elements = kinds.map(
        ({ type, elementBytes }) => new type(buffer, 0, Math.floor(capacity / elementBytes)) as Elements,
      );
      return { bytes: new Uint8Array(buffer, 0, capacity), words: new Uint32Array(buffer), elements };
    };
    this.#host = host;
    this.#kinds = kinds;
    this.#isPlain = isPlain;
    this.#gone = new Array<boolean>(group.size).fill(false);
    this.#came = new Float64Array(group.size);
    this.#outgoing = group.endpoints.map(() => {
      const outgoing: Outgoing = {
        ...make(),
        filled: 0,
        kind: -1,
        run: 0,
        wanted: Math.max(1, itemBytes),
        sent: 0,
        isWaiting: false,
        isSplit: false,
        onRoom: (_, result) => {
          outgoing.isWaiting = false;
          outgoing.isSplit = result === ENOMEM;
        },
      };
      return outgoing;
    });
    this.#incoming = make();
    this.#delay = delay;
    const extension: Extension = {
      came: (rank, _tag, _word, arrival) => this.#take(rank, arrival),
      gone: (rank) => {
        this.#gone[rank] = true;
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
    const outgoing = this.#of("push", rank);
    const { type, itemBytes, elementBytes, limits } = this.#kindOf("push", kind);
    if (limits !== undefined) throw new PamiError("PAMIR_INVAL", "push() to a kind of updates");
    const most = itemBytes / elementBytes || Math.floor((outgoing.bytes.length - RUN_BYTES) / elementBytes);
    const length = item instanceof type ? item.length : -1;
    if (length < 0 || length > most || (itemBytes > 0 && length < most)) {
      const wanted = `${type.name} of ${itemBytes > 0 ? "" : "at most "}${most} elements`;
      throw new PamiError("PAMIR_INVAL", `item of push() is ${show(item)}, not ${wanted}`);
    }
    const result = this.#makeRoom(rank, outgoing, kind, length * elementBytes);
    if (result !== SUCCESS) return result;
    const elements = outgoing.elements[kind] as Elements;
    const place = outgoing.filled / elementBytes;
    for (let at = 0; at < length; at++) elements[place + at] = item[at];
    this.#added(outgoing, length * elementBytes);
    return SUCCESS;
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
    const outgoing = this.#of("update", rank);
    const { itemBytes, elementBytes, limits, element } = this.#kindOf("update", kind);
    if (limits === undefined) throw new PamiError("PAMIR_INVAL", "update() of a kind without a region");
    const limit = limits[rank] as number;
    if (!(Number.isInteger(index) && index >= 0 && index < limit)) {
      throw new PamiError("PAMIR_BOUNDS", `update() of element ${show(index)} at rank ${rank}, of ${limit}`);
    }
    if (typeof value !== element) {
      throw new PamiError("PAMIR_INVAL", `value of update() is ${show(value)}, not a ${element}`);
    }
    const result = this.#makeRoom(rank, outgoing, kind, itemBytes);
    if (result !== SUCCESS) return result;
    const { filled, words } = outgoing;
    (outgoing.elements[kind] as Elements)[filled / elementBytes] = value;
    words[(filled + elementBytes) / 4] = index;
    this.#added(outgoing, itemBytes);
    return SUCCESS;
  }

  /**
   * Sends all items that wait.
   * @returns SUCCESS, or EAGAIN (no room for some: advance, and try again). Items for members that have ended are dropped
   * @throws PAMIR_CLOSED
   */
  flush(): Result {
    this.#checkOpen("flush");
    let result: Result = SUCCESS;
    for (let rank = 0; rank < this.#outgoing.length; rank++) {
      if (this.#send(rank, this.#outgoing[rank] as Outgoing) === EAGAIN) result = EAGAIN;
    }
    return result;
  }

  /**
   * Resolves once push() and update() to a member have room: for an item as the last one that was refused.
   * @throws PAMIR_SHUTDOWN, PAMIR_INVAL; as `progress()`
   */
  async whenRoom(rank: number, options: ProgressOptions = NO_OPTIONS): Promise<void> {
    const outgoing = this.#of("whenRoom", rank);
    checkProgress("whenRoom()", options);
    const room = new Look(() => this.#hasRoom(rank, outgoing));
    await this.#host.until("whenRoom", room.isOver, options, () => [rank]);
    if (room.result !== SUCCESS) throw errorOf(this.#host, "whenRoom", room.result);
  }

  /**
   * As whenRoom(), but blocks the thread. The geometry's `lastError` says why it has not succeeded.
   * @returns SUCCESS, SHUTDOWN, TIMEDOUT or INTERRUPTED
   */
  whenRoomSync(rank: number, options: WaitOptions = NO_OPTIONS): Result {
    const outgoing = this.#of("whenRoomSync", rank);
    checkWait("whenRoomSync()", options);
    const room = new Look(() => this.#hasRoom(rank, outgoing));
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
    const finishing: Finishing = Object.assign(new Look(() => this.#finish(finishing)), {
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
      const send = Float64Array.from(this.#outgoing, ({ sent }) => sent);
      finishing.exchange = this.#host.exchange({ send, receive: expected });
    }
    const { exchange } = finishing;
    if (exchange.result !== SUCCESS) return exchange.result;
    if (this.#lacking(expected) >= 0) return SHUTDOWN;
    return this.#hasCome(expected) ? SUCCESS : EAGAIN;
  }

  /** Ranks of the members for which a finish() waits. */
  #awaited({ exchange, expected }: Finishing): number[] {
    if (exchange?.isOver === false) return this.#host.awaitedOf(exchange);
    const waits = (rank: number): boolean =>
      exchange === undefined ? this.#outgoing[rank]?.filled !== 0 : this.#lacks(rank, expected);
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
    this.#host.core.unextend(this.#number);
  }

  #checkOpen(call: string): void {
    if (this.#isClosed || this.#host.group.closed) {
      throw new PamiError("PAMIR_CLOSED", `${call}() of an aggregator that is closed`);
    }
  }

  #of(call: string, rank: number): Outgoing {
    this.#checkOpen(call);
    const outgoing = typeof rank === "number" ? this.#outgoing[rank] : undefined;
    if (outgoing === undefined) checkInteger(`rank of ${call}()`, rank, 0, this.#outgoing.length - 1);
    return outgoing as Outgoing;
  }

  #kindOf(call: string, kind: number): Kind {
    const found = typeof kind === "number" ? this.#kinds[kind] : undefined;
    if (found === undefined) checkInteger(`kind of ${call}()`, kind, 0, this.#kinds.length - 1);
    return found as Kind;
  }

  /** Where an item would go. @param kind -1: one that begins a run */
  #placeFor({ filled, kind: last }: Outgoing, kind: number): number {
    return this.#isPlain || (kind === last && this.#kinds[kind]?.itemBytes !== 0)
      ? filled
      : ((filled + 7) & -8) + RUN_BYTES;
  }

  #hasRoom(rank: number, outgoing: Outgoing): Result {
    if (this.#gone[rank]) return SHUTDOWN;
    const fits = this.#placeFor(outgoing, -1) + outgoing.wanted <= outgoing.bytes.length;
    return fits ? SUCCESS : this.#send(rank, outgoing);
  }

  /** Has `filled` be the place for an item. */
  #makeRoom(rank: number, outgoing: Outgoing, kind: number, bytes: number): Result {
    if (this.#gone[rank]) return SHUTDOWN;
    if (this.#placeFor(outgoing, kind) + bytes > outgoing.bytes.length) {
      outgoing.wanted = bytes;
      const result = this.#send(rank, outgoing);
      if (result !== SUCCESS) return result;
    }
    const place = this.#placeFor(outgoing, kind);
    if (place === outgoing.filled) return SUCCESS;
    outgoing.filled = place;
    outgoing.kind = kind;
    outgoing.run = place - RUN_BYTES;
    outgoing.words[outgoing.run / 4] = kind;
    outgoing.words[outgoing.run / 4 + 1] = 0;
    return SUCCESS;
  }

  #added(outgoing: Outgoing, bytes: number): void {
    outgoing.filled += bytes;
    if (!this.#isPlain) (outgoing.words[outgoing.run / 4 + 1] as number) += bytes;
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
  #send(rank: number, outgoing: Outgoing): Result {
    const { bytes, filled } = outgoing;
    if (filled === 0) return SUCCESS;
    const { core, context, group } = this.#host;
    if (this.#gone[rank]) {
      outgoing.filled = 0;
      outgoing.kind = -1;
      return SHUTDOWN;
    }
    const to = group.endpoints[rank] as Endpoint;
    const needed = filled + HEADER_BYTES;
    if (context.room(to) < (outgoing.isSplit ? 1 : needed)) {
      // Its callback is an event, so that waits look again.
      if (!outgoing.isWaiting) {
        outgoing.isWaiting = true;
        context.whenRoom(to, outgoing.isSplit ? 1 : needed, outgoing.onRoom);
      }
      return EAGAIN;
    }
    outgoing.isSplit = false;
    const payload = filled === bytes.length ? bytes : bytes.subarray(0, filled);
    const result = core.sendToExtension(this.#number, rank, 0, 0, payload);
    if (result === EAGAIN) return EAGAIN;
    outgoing.filled = 0;
    outgoing.kind = -1;
    outgoing.sent++;
    return result;
  }

  #take(rank: number, { payload, payloadBytes }: Arrival): void {
    const { bytes, words } = this.#incoming;
    if (payloadBytes > bytes.length) return;
    this.#came[rank] = (this.#came[rank] as number) + 1;
    copyInto(bytes, 0, payload);
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
    const { elementBytes, apply } = this.#kinds[kind] as Kind;
    const all = this.#incoming.elements[kind] as unknown as ItemArray;
    const length = Math.floor(bytes / elementBytes);
    const at = from / elementBytes;
    apply(length === all.length ? all : all.subarray(at, at + length), rank);
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
