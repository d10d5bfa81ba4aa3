// The flyweight that a handler gets: one object per context, pointed at one message after the other.
import { DISPATCH_ID_MAX, META_DISPATCH_MASK, META_HEADER_SHIFT, RECV_IMMEDIATE_MAX } from "../../assembly/layout.js";
import { copyInto } from "../support/copy.js";
import { checkCallback, NO_OPTIONS } from "./check.js";
import { type Endpoint, taskOf } from "./endpoint.js";
import { checkInteger, PamiError, show } from "./error.js";
import { checkReceive, type ReceiveOptions } from "./pacing.js";
import type { MemRegion } from "./region.js";
import type { Callback } from "./result.js";

/** Where a message's bytes lie. */
export interface Bytes {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

/** What a message needs of its context. */
export interface MessageHost {
  /** Makes a region of the payload of the message in hand. */
  keep(message: Message): MemRegion;
  /** Has a callback called in a later `advance()`, with SUCCESS. */
  complete(onComplete: Callback, cookie: unknown): void;
}

/** A constructor of views: a typed array's, or `DataView`. */
export type PayloadView<View extends ArrayBufferView> = new (
  // biome-ignore lint/suspicious/noExplicitAny: constructors of views differ in the buffers that they take.
  buffer: any,
  byteOffset: number,
  length: number,
) => View;

/** Where a large message goes, as its handler said. */
export interface Destination {
  readonly bytes: Uint8Array;
  readonly onComplete: Callback | undefined;
  readonly cookie: unknown;
  readonly options: ReceiveOptions;
}

/**
 * A message that has arrived, valid during its handler only: copy what you keep. The same object is used again for the
 * next message. Reading its numbers allocates nothing; `header` and `payload` make a view each time (32 ns).
 */
export class Message {
  /** Bytes of the header. */
  headerBytes = 0;
  /** Bytes of the payload; of the whole payload also while only its announcement is here (`immediate` false). */
  payloadBytes = 0;
  /** Where the header begins in `bytes`; a multiple of 8. */
  headerOffset = 0;
  /** Where the payload begins in `bytes`; a multiple of 8. Meaningless unless `immediate`. */
  payloadOffset = 0;
  /**
   * Whether all of the payload is here, as it is unless its sender has asked for `rendezvous`, or the dispatch id for
   * `delivery: "early"`. If not, the handler calls `receive()` or `discard()` before it returns.
   */
  immediate = true;
  /** The bytes in which the offsets count: the job's memory, or a copy of this message. Read only. */
  bytes: Uint8Array;

  readonly #endpoints: Uint32Array;
  readonly #host: MessageHost;
  #words: Int32Array;
  #meta = 0;
  #origin = 0;
  #destination: Destination | undefined;
  #answered = false;

  /** @internal */
  constructor(bytes: Bytes, endpoints: Uint32Array, host: MessageHost) {
    this.#host = host;
    this.bytes = bytes.bytes;
    this.#words = bytes.words;
    this.#endpoints = endpoints;
  }

  /** @internal Points the flyweight at a body; `payloadBytes` is of the whole payload. */
  set(meta: number, body: number, payloadBytes: number, origin: number, immediate: boolean): void {
    const headerBytes = meta >>> META_HEADER_SHIFT;
    this.#meta = meta;
    this.#origin = origin;
    this.headerBytes = headerBytes;
    this.headerOffset = body;
    this.payloadOffset = body + ((headerBytes + 7) & ~7);
    this.payloadBytes = payloadBytes;
    this.immediate = immediate;
  }

  /** @internal The payload lies elsewhere than the header. */
  setPlace(place: number): void {
    this.payloadOffset = place;
  }

  /** @internal The memory in which the next body lies. */
  setMemory(bytes: Bytes): void {
    this.bytes = bytes.bytes;
    this.#words = bytes.words;
  }

  /** The endpoint that sent it. */
  get origin(): Endpoint {
    return this.#endpoints[this.#origin] as Endpoint;
  }

  /** The task that sent it. */
  get task(): number {
    return taskOf(this.origin);
  }

  /** The dispatch id to which it was sent. */
  get dispatch(): number {
    return this.#meta & META_DISPATCH_MASK;
  }

  /** The header, in place. */
  get header(): Uint8Array {
    return this.bytes.subarray(this.headerOffset, this.headerOffset + this.headerBytes);
  }

  /** The payload, in place; empty unless `immediate`. */
  get payload(): Uint8Array {
    return this.bytes.subarray(this.payloadOffset, this.payloadOffset + (this.immediate ? this.payloadBytes : 0));
  }

  /**
   * The payload in place, as a typed array or a DataView: `message.view(Float64Array)`. It always begins at a multiple of 8
   * bytes in its buffer, so it is aligned for every type. Valid as long as the message is, and read only.
   * @throws PAMIR_INVAL if the payload is no whole number of elements, or is not here (`immediate` false)
   */
  view<View extends ArrayBufferView>(type: PayloadView<View>): View {
    const size = (type as { BYTES_PER_ELEMENT?: number } | null)?.BYTES_PER_ELEMENT ?? (isDataView(type) ? 1 : 0);
    if (typeof type !== "function" || !(size > 0)) {
      throw new PamiError(
        "PAMIR_INVAL",
        `type of view() is ${show(type)}, not a typed array's constructor or DataView`,
      );
    }
    const { payloadBytes, bytes } = this;
    if (!this.immediate) throw new PamiError("PAMIR_INVAL", "view() of a message whose payload is not here: receive()");
    if (payloadBytes % size !== 0) {
      throw new PamiError("PAMIR_INVAL", `view() of ${payloadBytes} bytes as ${type.name}, of ${size} bytes each`);
    }
    return new type(bytes.buffer, bytes.byteOffset + this.payloadOffset, payloadBytes / size);
  }

  /** The i32 at a byte offset (multiple of 4) of the payload, without a view. */
  getInt32(offset: number): number {
    if (!isPlace(offset) || offset + 4 > this.payloadBytes || (offset & 3) !== 0) this.#outside(offset, 4);
    return this.#words[(this.payloadOffset + offset) >>> 2] as number;
  }

  /** The byte at an offset of the payload, without a view. */
  getUint8(offset: number): number {
    if (!isPlace(offset) || offset >= this.payloadBytes) this.#outside(offset, 1);
    return this.bytes[this.payloadOffset + offset] as number;
  }

  /**
   * Copies the payload into `target`, from `offset` on; faster than `target.set(message.payload)` from 1.4 KB.
   * @throws PAMIR_TOO_LARGE if it does not fit; PAMIR_INVAL
   */
  copyTo(target: Uint8Array, offset = 0): void {
    if (!(target instanceof Uint8Array)) {
      throw new PamiError("PAMIR_INVAL", `target of copyTo() is ${show(target)}, not a Uint8Array`);
    }
    checkInteger("offset of copyTo()", offset, 0, Number.MAX_SAFE_INTEGER);
    const { payload } = this;
    if (!(offset >= 0 && offset + payload.length <= target.length)) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `the payload has ${payload.length} bytes, the target ${target.length} from ${offset} on`,
      );
    }
    copyInto(target, offset, payload);
  }

  /**
   * Keeps the payload beyond the handler, as a region of this task, which is yours to read and write, and to close. A
   * payload that came in a buffer of its own (most of 16 KiB or more) is not copied; any other is, into a new region.
   * @throws PAMIR_NO_MEMORY: this task keeps as much as it may (its share of half of the heap), or the heap has no room;
   *   PAMIR_INVAL: the handler has returned, the payload has 0 bytes, or is not here (`immediate` false)
   */
  keep(): MemRegion {
    return this.#host.keep(this);
  }

  /**
   * Says where the payload of a message goes that is not here yet. What is here is copied there at once.
   * @param destination ordinary or shared memory; yours again when `onComplete` is called, in a later `advance()`. What
   *   goes from a region into a region of this task is moved by the engine
   * @param onComplete called with `cookie` and SUCCESS; SHUTDOWN if the origin ended in the middle, CANCELED if it gave it
   *   up, ERROR if a region was closed meanwhile, the origin's payload was detached or shrunk, or the engine thread ended
   * @param options where it stays with its origin until then: how fast the engine moves it, and a signal that gives it up
   * @throws PAMIR_INVAL, PAMIR_TOO_LARGE
   */
  receive(
    destination: ArrayBufferView,
    onComplete?: Callback,
    cookie?: unknown,
    options: ReceiveOptions = NO_OPTIONS,
  ): void {
    if (this.#answered) throw new PamiError("PAMIR_INVAL", "receive() twice, or after discard()");
    if (!ArrayBuffer.isView(destination)) {
      throw new PamiError("PAMIR_INVAL", `destination is ${show(destination)}, not an ArrayBufferView`);
    }
    if (destination.byteLength < this.payloadBytes) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `the payload has ${this.payloadBytes} bytes, the destination ${destination.byteLength}`,
      );
    }
    checkCallback("onComplete of receive()", onComplete);
    if (options !== NO_OPTIONS) checkReceive(options);
    const bytes = new Uint8Array(destination.buffer as ArrayBuffer, destination.byteOffset, this.payloadBytes);
    if (this.immediate) {
      copyInto(bytes, 0, this.payload);
      if (onComplete !== undefined) this.#host.complete(onComplete, cookie);
      return;
    }
    this.#answered = true;
    this.#destination = {
      bytes,
      onComplete,
      cookie,
      options,
    };
  }

  /** Says that the payload of a message that is not here yet is not wanted. */
  discard(): void {
    if (!this.immediate) this.#answered = true;
  }

  /** @internal The payload in memory of its own. Few bytes are copied one by one: a view costs as much as 40 of them. */
  copy(): Uint8Array {
    const { payloadBytes, payloadOffset, bytes } = this;
    const copied = new Uint8Array(payloadBytes);
    if (payloadBytes > 32) this.copyTo(copied);
    else for (let i = 0; i < payloadBytes; i++) copied[i] = bytes[payloadOffset + i] as number;
    return copied;
  }

  /** @internal The u32 at a byte offset of the header. */
  headerWord(offset: number): number {
    return (this.#words[(this.headerOffset + offset) >>> 2] as number) >>> 0;
  }

  /** @internal Of a call: its number. From now on the message is what the caller meant: its own header and dispatch id. */
  takeCall(): number {
    const number = this.headerWord(0);
    const meta = ((this.headerBytes - 8) << META_HEADER_SHIFT) | (this.headerWord(4) & DISPATCH_ID_MAX);
    const { payloadOffset } = this;
    this.set(meta, this.headerOffset + 8, this.payloadBytes, this.#origin, this.immediate);
    this.payloadOffset = payloadOffset;
    return number;
  }

  /** @internal Throws if a message that is not here yet goes nowhere. @throws PAMIR_NO_DESTINATION */
  checkAnswered(): void {
    if (this.immediate || this.#answered) return;
    throw new PamiError(
      "PAMIR_NO_DESTINATION",
      `the handler of dispatch id ${this.dispatch} neither received nor discarded ` +
        `${this.payloadBytes} bytes from endpoint ${this.origin}`,
    );
  }

  /** @internal Where the handler said that it goes: nowhere (undefined) for discard(). */
  takeDestination(): Destination | undefined {
    const destination = this.#destination;
    this.#answered = false;
    this.#destination = undefined;
    return destination;
  }

  #outside(offset: number, width: number): never {
    throw new PamiError(
      "PAMIR_INVAL",
      `offset ${show(offset)} for ${width} bytes is not an aligned place in a payload of ${this.payloadBytes} bytes`,
    );
  }
}

function isDataView(type: unknown): boolean {
  return type === DataView;
}

/** Whether an offset is an integer from 0. */
function isPlace(offset: number): boolean {
  return typeof offset === "number" && offset === offset >>> 0;
}

/** Bytes that a header takes before a payload. */
export function headerSpace(headerBytes: number): number {
  return (headerBytes + 7) & ~7;
}

/** Bytes of a body: header, padded to 8, and payload. */
export function bodyBytes(headerBytes: number, payloadBytes: number): number {
  return payloadBytes === 0 ? headerBytes : headerSpace(headerBytes) + payloadBytes;
}

/** Bytes of a body that an early handler is called with: all, or the header of one that is larger than that. */
export function prologueBytes(headerBytes: number, payloadBytes: number): number {
  const total = bodyBytes(headerBytes, payloadBytes);
  return total <= RECV_IMMEDIATE_MAX ? total : headerSpace(headerBytes);
}
