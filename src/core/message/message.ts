// The flyweight of a handler: one object per context, which points at one message after the other.
import {
  DISPATCH_ID_MAX,
  META_DISPATCH_MASK,
  META_HEADER_SHIFT,
  RECV_IMMEDIATE_MAX,
} from "../../../assembly/layout.js";
import { copyInto, copyIntoIfThere, copyOf } from "../../support/copy.js";
import type { HostAbortSignal } from "../../support/like.js";
import { decodeRange } from "../../support/text.js";
import { checkCallback, NO_OPTIONS } from "../check.js";
import { type Endpoint, taskOf } from "../endpoint.js";
import { checkInteger, PamiError, show } from "../error.js";
import type { MemRegion, RegionState } from "../region.js";
import type { Callback } from "../result.js";
import { carrierOf } from "../transfer-type.js";
import { type CallScope, NO_CALL, type ScopeMaker } from "./call-scope.js";
import { checkReceive, type ReceiveOptions } from "./pacing.js";
import { type PayloadView, viewElementBytes, viewOf } from "./view.js";

/** In a call's header, beside the dispatch id: the rest of the header has the codec's bytes, and the payload the body. */
export const CALL_HAS_PARTS: number = 1 << 16;

/** The memory that holds a message. */
export interface Bytes {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

/** The parts of a context that a message uses. */
export interface MessageHost {
  /** Makes a region of the current message's payload. */
  keep(message: Message): MemRegion;
  /** Queues a callback for a later `advance()`, with SUCCESS. */
  complete(onComplete: Callback, cookie: unknown): void;
  /** The region of this task that holds a view; undefined: none does. */
  regionOf(view: Uint8Array): RegionState | undefined;
}

/** The destination that a handler chose for a large message. */
export interface Destination {
  readonly bytes: Uint8Array;
  readonly onComplete: Callback | undefined;
  readonly cookie: unknown;
  readonly options: ReceiveOptions;
  /** Of the bytes. */
  readonly region?: RegionState | undefined;
}

/**
 * Copies bytes into a destination.
 * @returns false: it is there no more, since its region was closed, or its buffer detached or shrunk. Nothing was copied
 */
export function copyToDestination({ bytes, region }: Destination, offset: number, source: Uint8Array): boolean {
  return region?.closed !== true && copyIntoIfThere(bytes, offset, source);
}

/**
 * A message that has arrived. It is valid only during its handler, because the next message uses the same object: copy or
 * `keep()` bytes that are needed longer. Reading its numbers allocates nothing; `header` and `payload` make a view each
 * time.
 */
export class Message {
  /** Length of the header in bytes. */
  headerBytes = 0;
  /** Length of the whole payload in bytes, even if the payload is not here yet (`immediate` false). */
  payloadBytes = 0;
  /** Offset of the header in `bytes`, a multiple of 8. */
  headerOffset = 0;
  /** Offset of the payload in `bytes`, a multiple of 8. It has no meaning unless `immediate`. */
  payloadOffset = 0;
  /**
   * Whether the whole payload is here. It may be false only if the sender asked for `rendezvous`, or the handler's hints for
   * `delivery: "early"` or `recvImmediate: "disable"`. Then the handler calls `receive()` or `discard()` before it returns.
   */
  immediate = true;
  /** @internal Of a call: whether its header has the codec's bytes, and its payload the body. See Parts. */
  hasParts = false;
  /** @internal Of a call, once a handler of values has it: the typed dispatch id whose codec encodes what that returns. */
  typed: unknown;
  /** The bytes to which the offsets belong: the job's memory, or a copy of this message. Read only. */
  bytes: Uint8Array;

  #endpoints: Uint32Array;
  readonly #host: MessageHost;
  #words: Int32Array;
  #meta = 0;
  #origin = 0;
  #destination: Destination | undefined;
  #answered = false;
  /** Of a call, while its handler runs: its number, what makes its scope, and the scope, once it is asked for. */
  #call = 0;
  #maker: ScopeMaker | undefined;
  #scope: CallScope | undefined;

  /** @internal */
  constructor(bytes: Bytes, endpoints: Uint32Array, host: MessageHost) {
    this.#host = host;
    this.bytes = bytes.bytes;
    this.#words = bytes.words;
    this.#endpoints = endpoints;
  }

  /** @internal Points the flyweight at a body. `payloadBytes` is the length of the whole payload. */
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

  /** @internal Sets the place of a payload that does not lie behind its header. */
  setPlace(place: number): void {
    this.payloadOffset = place;
  }

  /** @internal Sets the memory that holds the next body, and the table in which its origin stands. */
  setMemory(bytes: Bytes, endpoints: Uint32Array): void {
    this.bytes = bytes.bytes;
    this.#words = bytes.words;
    this.#endpoints = endpoints;
  }

  /** The endpoint that sent it. */
  get origin(): Endpoint {
    return this.#endpoints[this.#origin] as Endpoint;
  }

  /** The task that sent it. */
  get task(): number {
    return taskOf(this.origin);
  }

  /** The dispatch id of the message. */
  get dispatch(): number {
    return this.#meta & META_DISPATCH_MASK;
  }

  /** A view of the header in place. */
  get header(): Uint8Array {
    return this.bytes.subarray(this.headerOffset, this.headerOffset + this.headerBytes);
  }

  /** A view of the payload in place. It is empty unless `immediate`. */
  get payload(): Uint8Array {
    return this.bytes.subarray(this.payloadOffset, this.payloadOffset + (this.immediate ? this.payloadBytes : 0));
  }

  /**
   * Returns a view of the payload in place, as a typed array or a DataView: `message.view(Float64Array)`. The payload begins
   * at a multiple of 8 bytes in its buffer, so it is aligned for every type. The view is read only, and valid as long as the
   * message.
   * @throws PAMIR_INVAL if the payload is not a whole number of elements, or is not here (`immediate` false)
   */
  view<View extends ArrayBufferView>(type: PayloadView<View>): View {
    viewElementBytes(type);
    const { payloadBytes, bytes } = this;
    this.#checkHere("view()");
    return viewOf(type, bytes.buffer, bytes.byteOffset + this.payloadOffset, payloadBytes);
  }

  /**
   * Decodes the payload as UTF-8. The string is a copy, and may be kept. Bytes that are no UTF-8 become U+FFFD, and a byte order
   * mark stays U+FEFF, on every host. `TextDecoder` would refuse `payload` in browsers, since it is shared memory.
   * @throws PAMIR_INVAL if the payload is not here (`immediate` false); PAMIR_TOO_LARGE if it is longer than the host's
   *   strings may be (V8: 2^29 - 24 units of UTF-16)
   */
  text(): string {
    this.#checkHere("text()");
    const { payloadBytes, payloadOffset, bytes } = this;
    try {
      return decodeRange(bytes, payloadOffset, payloadOffset + payloadBytes);
    } catch (cause) {
      const text = `text() of ${payloadBytes} bytes, which are more than a string of this host may have`;
      throw new PamiError("PAMIR_TOO_LARGE", text, { cause });
    }
  }

  /** Returns the i32 at a byte offset (a multiple of 4) of the payload, without making a view. */
  getInt32(offset: number): number {
    if (!isPlace(offset) || offset + 4 > this.payloadBytes || (offset & 3) !== 0) this.#outside(offset, 4);
    return this.#words[(this.payloadOffset + offset) >>> 2] as number;
  }

  /** Returns the byte at an offset of the payload, without making a view. */
  getUint8(offset: number): number {
    if (!isPlace(offset) || offset >= this.payloadBytes) this.#outside(offset, 1);
    return this.bytes[this.payloadOffset + offset] as number;
  }

  /**
   * Copies the payload into `target`, from `offset` on. Long payloads it copies faster than `target.set(message.payload)`.
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
   * Turns the payload into a region of this task, so that it outlives the handler. The caller may read and write the region,
   * and closes it. A payload that came in a buffer (most payloads of 16 KiB or more) is not copied; others are.
   * @throws PAMIR_NO_MEMORY if this task keeps its limit (its share of half of the heap), or the heap is full; PAMIR_INVAL
   *   if the handler has returned, or if the payload has 0 bytes or is not here (`immediate` false)
   */
  keep(): MemRegion {
    return this.#host.keep(this);
  }

  /**
   * Chooses the destination of a payload that is not here yet (`immediate` false). A payload that is here is copied at once.
   * @param destination ordinary or shared memory of at least `payloadBytes`. It is in use until `onComplete`. The engine
   *   moves a payload from a region into a region of this task; this task copies other payloads in its `advance()`
   * @param onComplete called in a later `advance()` with `cookie` and a result: SUCCESS; SHUTDOWN if the origin ended before
   *   the end of the transfer; CANCELED if a `signal` of either side gave it up; ERROR if a region was closed, the origin's
   *   payload or this destination was detached or shrunk, or the engine thread ended
   * @param options for a payload that was offered: the pace at which the engine moves it, and a signal that gives it up; for
   *   any payload: the type of the elements in `destination`
   * @throws PAMIR_INVAL, PAMIR_TOO_LARGE; with a type PAMIR_BOUNDS if the elements reach beyond `destination`
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
    if (options.type !== undefined) {
      checkCallback("onComplete of receive()", onComplete);
      checkReceive(options);
      carrierOf("type of receive()", options.type).receive(this, destination, onComplete, cookie, options);
      return;
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
      region: this.#host.regionOf(bytes),
    };
  }

  /** @internal Queues a callback of receive(), with SUCCESS. */
  complete(onComplete: Callback, cookie: unknown): void {
    this.#host.complete(onComplete, cookie);
  }

  /** Declines a payload that is not here yet (`immediate` false). */
  discard(): void {
    if (!this.immediate) this.#answered = true;
  }

  /** @internal Copies the payload. A short one is copied byte by byte: a view costs as much as 40 bytes. */
  copy(): Uint8Array {
    const { payloadBytes, payloadOffset, bytes } = this;
    if (payloadBytes > 32) return copyOf(this.payload);
    const copied = new Uint8Array(payloadBytes);
    for (let i = 0; i < payloadBytes; i++) copied[i] = bytes[payloadOffset + i] as number;
    return copied;
  }

  /** @internal Returns the u32 at a byte offset of the header. */
  headerWord(offset: number): number {
    return (this.#words[(this.headerOffset + offset) >>> 2] as number) >>> 0;
  }

  /**
   * Of a call: aborted once the caller has given it up or has ended. See `CallScope`. Read it before the handler returns; the
   * signal itself is good for longer.
   */
  get signal(): HostAbortSignal {
    return this.scope.signal;
  }

  /** @internal The scope of the call that it is. */
  get scope(): CallScope {
    if (this.#maker === undefined) return NO_CALL;
    this.#scope ??= this.#maker(this.origin, this.#call);
    return this.#scope;
  }

  /** @internal The handler of the call has returned. Returns its scope, if that was asked for. */
  leaveCall(): CallScope | undefined {
    const scope = this.#scope;
    this.#maker = undefined;
    this.#scope = undefined;
    return scope;
  }

  /**
   * @internal Returns the number of a call. From then on the message shows the caller's header and dispatch id.
   * @param maker makes its scope if a handler asks for it
   */
  takeCall(maker: ScopeMaker): number {
    const at = this.headerOffset >>> 2;
    const number = (this.#words[at] as number) >>> 0;
    const word = this.#words[at + 1] as number;
    this.#call = number;
    this.#maker = maker;
    this.typed = undefined;
    this.hasParts = (word & CALL_HAS_PARTS) !== 0;
    this.headerBytes -= 8;
    this.headerOffset += 8;
    this.#meta = (this.headerBytes << META_HEADER_SHIFT) | (word & DISPATCH_ID_MAX);
    return number;
  }

  /** @internal Checks that the handler chose a destination, if one is needed. @throws PAMIR_NO_DESTINATION */
  checkAnswered(): void {
    if (this.immediate || this.#answered) return;
    throw new PamiError(
      "PAMIR_NO_DESTINATION",
      `the handler of dispatch id ${this.dispatch} neither received nor discarded ` +
        `${this.payloadBytes} bytes from endpoint ${this.origin}`,
    );
  }

  /** @internal Returns the destination that the handler chose; undefined after discard(). */
  takeDestination(): Destination | undefined {
    const destination = this.#destination;
    this.#answered = false;
    this.#destination = undefined;
    return destination;
  }

  #checkHere(call: string): void {
    if (this.immediate) return;
    throw new PamiError("PAMIR_INVAL", `${call} of a message whose payload is not here: receive()`);
  }

  #outside(offset: number, width: number): never {
    throw new PamiError(
      "PAMIR_INVAL",
      `offset ${show(offset)} for ${width} bytes is not an aligned place in a payload of ${this.payloadBytes} bytes`,
    );
  }
}

/** Whether a value is a u32. */
function isPlace(offset: number): boolean {
  return typeof offset === "number" && offset === offset >>> 0;
}

/** Returns the bytes of a header in front of a payload: padded to 8. */
export function headerSpace(headerBytes: number): number {
  return (headerBytes + 7) & ~7;
}

/** Returns the bytes of a body: header, padded to 8, plus payload. */
export function bodyBytes(headerBytes: number, payloadBytes: number): number {
  return payloadBytes === 0 ? headerBytes : headerSpace(headerBytes) + payloadBytes;
}

/** Returns the bytes of a body that an early handler needs: all, or beyond RECV_IMMEDIATE_MAX only the header. */
export function prologueBytes(headerBytes: number, payloadBytes: number): number {
  const total = bodyBytes(headerBytes, payloadBytes);
  return total <= RECV_IMMEDIATE_MAX ? total : headerSpace(headerBytes);
}
