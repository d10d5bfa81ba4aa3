// Packs small items for other members of a geometry into messages, as conveyors do: a message costs more than its bytes.
import type { Extension } from "../collective/extension.js";
import { checkFunction, checkKeys, type Keys, NO_OPTIONS } from "../core/check.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import type { PayloadView } from "../core/message.js";
import { EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import type { Arrival } from "../protocol/late-handler.js";
import { copyInto } from "../support/copy.js";
import { type ExtensionHost, errorOf, makeTogether } from "./extension-host.js";
import { SharedRegion } from "./shared-region.js";
import { checkProgress, checkWait, PROGRESS_KEYS, type ProgressOptions, type WaitOptions } from "./waits.js";

/** Arrays that an aggregator can have items in. */
export type ItemArray =
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array;

/** What an update does to an element: as the operations of reductions. */
export type UpdateOperation = "sum" | "min" | "max" | "and" | "or" | "xor" | "copy";

/** Parameters of `geometry.createAggregator`. All members give the same, but for `onItems`. */
export interface AggregatorParameters<View extends ItemArray = ItemArray> extends ProgressOptions {
  /** Class of the items' elements, or of the elements that updates change. */
  readonly type: PayloadView<View>;
  /** Elements of an item (default 1). Not for updates. */
  readonly length?: number | undefined;
  /**
   * Called in an `advance()` of the target with items, one behind the other, and the rank that they come from. The view is
   * valid during the call. Items of one member come in the order pushed.
   */
  readonly onItems?: ((items: View, rank: number) => void) | undefined;
  /** Instead of `onItems`: update() changes elements of this region. Its owner applies the updates, in an `advance()`. */
  readonly region?: SharedRegion | undefined;
  /** What an update does (default "sum"). */
  readonly operation?: UpdateOperation | undefined;
  /** Bytes of a message, 64 … 12,288 (default 4,096). Each member has a buffer of that size for each member. */
  readonly bytes?: number | undefined;
  /** Milliseconds after which an `advance()` sends items whose message is not full (default: only flush() and finish() do). */
  readonly delay?: number | undefined;
}

const KEYS: Keys<AggregatorParameters> = {
  ...PROGRESS_KEYS,
  type: true,
  length: true,
  onItems: true,
  region: true,
  operation: true,
  bytes: true,
  delay: true,
};
const OPERATIONS: readonly UpdateOperation[] = ["sum", "min", "max", "and", "or", "xor", "copy"];
const BYTES_DEFAULT = 4096;
const BYTES_MAX = 12_288;
/** Bytes of a message besides its items. */
const HEADER_BYTES = 32;

type Elements = { [at: number]: unknown; readonly length: number };
type Arithmetic = { [at: number]: number };

/** Items for one member. */
interface Outgoing {
  readonly elements: Elements;
  readonly bytes: Uint8Array;
  /** Elements that are filled. */
  filled: number;
  /** Messages sent so far. */
  sent: number;
  /** Whether the context is to tell when there is room for a message. */
  isWaiting: boolean;
  readonly onRoom: () => void;
}

/**
 * Packs small items for other members into messages, from `geometry.createAggregator()`. A message goes out when it is full,
 * by flush(), by finish(), and after `delay`. It belongs to this member's thread.
 */
export class Aggregator<View extends ItemArray = ItemArray> {
  readonly #host: ExtensionHost;
  readonly #outgoing: readonly Outgoing[];
  readonly #gone: boolean[];
  /** Messages that have come from each member. */
  readonly #came: Float64Array;
  readonly #number: number;
  /** Elements of an item. */
  readonly #length: number;
  /** What has come, where kernels and handlers find it aligned. */
  readonly #incoming: View;
  readonly #incomingBytes: Uint8Array;
  readonly #apply: (items: View, rank: number) => void;
  /** Of updates: elements of each member's region, and where the indices are. */
  readonly #limits: readonly number[] | undefined;
  readonly #indices: readonly Uint32Array[];
  readonly #indexWords: number;
  readonly #delay: number;
  /** When the first of the items that wait came; undefined: the timer does not run. */
  #since: number | undefined;
  #isClosed = false;

  /** @internal */
  constructor(host: ExtensionHost, given: AggregatorParameters<View>, itemBytes: number, elementBytes: number) {
    const { type, region, operation = "sum", onItems, bytes = BYTES_DEFAULT, delay = Number.POSITIVE_INFINITY } = given;
    const { core, group } = host;
    const capacity = Math.floor(bytes / itemBytes) * itemBytes;
    const make = (): View => new type(new ArrayBuffer(capacity), 0, capacity / elementBytes);
    this.#host = host;
    this.#length = itemBytes / elementBytes;
    this.#gone = new Array<boolean>(group.size).fill(false);
    this.#came = new Float64Array(group.size);
    this.#outgoing = group.endpoints.map(() => {
      const elements = make();
      const outgoing: Outgoing = {
        elements,
        bytes: new Uint8Array(elements.buffer),
        filled: 0,
        sent: 0,
        isWaiting: false,
        onRoom: () => {
          outgoing.isWaiting = false;
        },
      };
      return outgoing;
    });
    this.#incoming = make();
    this.#incomingBytes = new Uint8Array(this.#incoming.buffer);
    this.#indexWords = elementBytes / 4;
    this.#indices = region === undefined ? [] : this.#outgoing.map(({ bytes }) => new Uint32Array(bytes.buffer));
    this.#limits = region?.lengths.map((length) => Math.floor(length / elementBytes));
    this.#delay = delay;
    if (region === undefined) this.#apply = onItems as (items: View, rank: number) => void;
    else {
      const target = new type(
        region.bytes.buffer,
        region.bytes.byteOffset,
        Math.floor(region.bytes.length / elementBytes),
      );
      const indices = new Uint32Array(this.#incoming.buffer);
      const words = this.#indexWords;
      this.#apply = (items) => {
        if (!region.region.closed) update(operation, target as Elements, items as Elements, indices, words);
      };
    }
    const extension: Extension = {
      came: (rank, _tag, _word, arrival) => this.#take(rank, arrival),
      gone: (rank) => {
        this.#gone[rank] = true;
      },
    };
    this.#number = core.extend(extension);
  }

  /**
   * Adds an item for a member; it is copied. If its message is full, that message goes out first.
   * @param item `length` elements
   * @returns SUCCESS, EAGAIN (the message is full, and there is no room to send it: advance, and try again), SHUTDOWN (the
   *   member has ended)
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  push(rank: number, item: View): Result {
    const outgoing = this.#of("push", rank);
    if (this.#limits !== undefined) throw new PamiError("PAMIR_INVAL", "push() of an aggregator of updates");
    const length = this.#length;
    if (!ArrayBuffer.isView(item) || item.length !== length) {
      throw new PamiError("PAMIR_INVAL", `item of push() is ${show(item)}, not a view of ${length} elements`);
    }
    const result = this.#makeRoom(rank, outgoing);
    if (result !== SUCCESS) return result;
    const { elements, filled } = outgoing;
    for (let at = 0; at < length; at++) elements[filled + at] = item[at];
    this.#added(outgoing);
    return SUCCESS;
  }

  /**
   * Updates an element of a member's region, by the aggregator's operation. The member applies updates one at a time, in its
   * `advance()`, so no update of this aggregator is lost. They are not atomic with respect to other accesses.
   * @param index of the element in that region
   * @returns as push()
   * @throws PAMIR_INVAL, PAMIR_BOUNDS, PAMIR_CLOSED
   */
  update(rank: number, index: number, value: View[number]): Result {
    const outgoing = this.#of("update", rank);
    if (this.#limits === undefined) throw new PamiError("PAMIR_INVAL", "update() of an aggregator without a region");
    const limit = this.#limits[rank] as number;
    if (index !== index >>> 0 || index >= limit) {
      throw new PamiError("PAMIR_BOUNDS", `update() of element ${show(index)} at rank ${rank}, of ${limit}`);
    }
    const result = this.#makeRoom(rank, outgoing);
    if (result !== SUCCESS) return result;
    const { elements, filled } = outgoing;
    elements[filled] = value;
    (this.#indices[rank] as Uint32Array)[(filled + 1) * this.#indexWords] = index;
    this.#added(outgoing);
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

  /** Resolves once push() and update() to a member have room. @throws PAMIR_SHUTDOWN, PAMIR_INVAL; as `progress()` */
  async whenRoom(rank: number, options: ProgressOptions = NO_OPTIONS): Promise<void> {
    const outgoing = this.#of("whenRoom", rank);
    checkProgress("whenRoom()", options);
    let result: Result = EAGAIN;
    await this.#host.until(() => {
      result = this.#makeRoom(rank, outgoing);
      return result !== EAGAIN;
    }, options);
    if ((result as Result) !== SUCCESS) throw errorOf(this.#host, "whenRoom()", result);
  }

  /** As whenRoom(), but blocks the thread. @returns SUCCESS, SHUTDOWN, TIMEDOUT or INTERRUPTED */
  whenRoomSync(rank: number, options: WaitOptions = NO_OPTIONS): Result {
    const outgoing = this.#of("whenRoomSync", rank);
    checkWait("whenRoomSync()", options);
    let result: Result = EAGAIN;
    const waited = this.#host.advanceUntil(() => {
      result = this.#makeRoom(rank, outgoing);
      return result !== EAGAIN;
    }, options);
    return waited === SUCCESS ? result : waited;
  }

  /**
   * Resolves once all items that any member has pushed before are applied at their targets. All members call it. Items that
   * handlers push meanwhile are not waited for.
   * @throws PAMIR_SHUTDOWN (a member has ended), PAMIR_CLOSED; as `progress()`
   */
  async finish(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    const { group, until } = this.#host;
    this.#checkOpen("finish");
    checkProgress("finish()", options);
    await until(() => this.flush() !== EAGAIN, options);
    const send = Float64Array.from(this.#outgoing, ({ sent }) => sent);
    const expected = await group.alltoall({ send }, options);
    await until(() => this.#hasCome(expected) || this.#lacking(expected) >= 0, options);
    const rank = this.#lacking(expected);
    if (rank < 0) return;
    const who = nameOf(group.endpoints[rank] as Endpoint);
    throw new PamiError("PAMIR_SHUTDOWN", `finish(): ${who} ended before all its items came`);
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
    const outgoing = this.#outgoing[rank];
    if (outgoing === undefined) checkInteger(`rank of ${call}()`, rank, 0, this.#outgoing.length - 1);
    return outgoing as Outgoing;
  }

  #makeRoom(rank: number, outgoing: Outgoing): Result {
    if (this.#gone[rank]) return SHUTDOWN;
    return outgoing.filled < outgoing.elements.length ? SUCCESS : this.#send(rank, outgoing);
  }

  #added(outgoing: Outgoing): void {
    outgoing.filled += this.#length;
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
    const { bytes, filled, elements } = outgoing;
    if (filled === 0) return SUCCESS;
    const { core, context, group } = this.#host;
    if (this.#gone[rank]) {
      outgoing.filled = 0;
      return SHUTDOWN;
    }
    const to = group.endpoints[rank] as Endpoint;
    if (context.room(to) < bytes.length + HEADER_BYTES) {
      // Its callback is an event, so that waits look again.
      if (!outgoing.isWaiting) {
        outgoing.isWaiting = true;
        context.whenRoom(to, bytes.length + HEADER_BYTES, outgoing.onRoom);
      }
      return EAGAIN;
    }
    const isWhole = filled === elements.length;
    const payload = isWhole ? bytes : bytes.subarray(0, (bytes.length / elements.length) * filled);
    const result = core.sendToExtension(this.#number, rank, 0, 0, payload);
    if (result === EAGAIN) return EAGAIN;
    outgoing.filled = 0;
    outgoing.sent++;
    return result;
  }

  #take(rank: number, { payload, payloadBytes }: Arrival): void {
    const incoming = this.#incoming;
    if (payloadBytes > this.#incomingBytes.length) return;
    this.#came[rank] = (this.#came[rank] as number) + 1;
    copyInto(this.#incomingBytes, 0, payload);
    const length = payloadBytes / (this.#incomingBytes.length / incoming.length);
    this.#apply(length === incoming.length ? incoming : (incoming.subarray(0, length) as View), rank);
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

/** Applies updates: the value of each is followed by an element whose first word is the index. */
function update(
  operation: UpdateOperation,
  target: Elements,
  items: Elements,
  indices: Uint32Array,
  indexWords: number,
): void {
  const [to, from] = [target as Arithmetic, items as Arithmetic];
  for (let at = 0; at < items.length; at += 2) {
    const index = indices[(at + 1) * indexWords] as number;
    // An origin checks it too. A write beyond the end has no effect.
    const [old, value] = [to[index] as number, from[at] as number];
    if (operation === "sum") to[index] = old + value;
    else if (operation === "xor") to[index] = old ^ value;
    else if (operation === "and") to[index] = old & value;
    else if (operation === "or") to[index] = old | value;
    else if (operation === "copy") to[index] = value;
    else if (operation === "min") to[index] = value < old ? value : old;
    else to[index] = value > old ? value : old;
  }
}

/** @throws as `geometry.createAggregator` */
export async function createAggregator<View extends ItemArray>(
  host: ExtensionHost,
  given: AggregatorParameters<View>,
): Promise<Aggregator<View>> {
  checkKeys("parameters of createAggregator()", given, KEYS);
  const { type, length = 1, onItems, region, operation = "sum", bytes = BYTES_DEFAULT, delay, timeout, signal } = given;
  checkFunction("type of createAggregator()", type);
  const elementBytes = (type as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 0;
  checkInteger("bytes of createAggregator()", bytes, 64, BYTES_MAX);
  checkInteger("length of createAggregator()", length, 1, Math.floor(bytes / Math.max(1, elementBytes)));
  if (elementBytes === 0) throw new PamiError("PAMIR_INVAL", `type of createAggregator() is ${show(type)}`);
  if (delay !== undefined && !(delay >= 0)) {
    throw new PamiError("PAMIR_INVAL", `delay of createAggregator() is ${show(delay)}, not milliseconds from 0`);
  }
  if (region === undefined) checkFunction("onItems of createAggregator()", onItems);
  else checkUpdates(region, operation, elementBytes, type, length, onItems);
  const itemBytes = region === undefined ? length * elementBytes : 2 * elementBytes;
  let made: Aggregator<View> | undefined;
  const make = (): readonly number[] => {
    made = new Aggregator(host, given, itemBytes, elementBytes);
    return [];
  };
  const wait = { timeout, signal };
  const making = { call: "createAggregator()", bytes: 0, width: 0, make, undo: () => made?.close() };
  await makeTogether(host, making, wait);
  return made as unknown as Aggregator<View>;
}

function checkUpdates(
  region: unknown,
  operation: UpdateOperation,
  elementBytes: number,
  type: unknown,
  length: number,
  onItems: unknown,
): void {
  if (!(region instanceof SharedRegion)) {
    throw new PamiError("PAMIR_INVAL", `region of createAggregator() is ${show(region)}, not from shareRegion()`);
  }
  if (elementBytes < 4 || length !== 1 || onItems !== undefined) {
    const text = "updates are of one element of 4 or 8 bytes, without onItems";
    throw new PamiError("PAMIR_INVAL", `createAggregator(): ${text}; elements of ${show(type)} have ${elementBytes}`);
  }
  const isBitwise = operation === "and" || operation === "or" || operation === "xor";
  if (!OPERATIONS.includes(operation) || (isBitwise && (type === Float64Array || type === Float32Array))) {
    throw new PamiError("PAMIR_INVAL", `operation ${show(operation)} of createAggregator(): there are ${OPERATIONS}`);
  }
}
