// Turns the parameters of collective operations into requests: checks them, and computes lengths and offsets in bytes.
import type { Reducer } from "../collective/operation.js";
import { type ActiveType, type CollectiveType, OPERATION_ROWS, type OperationType } from "../collective/operations.js";
import { prefixSums } from "../collective/schedule/shape.js";
import type { CollectiveRequest } from "../collective/select.js";
import type { Blocks } from "../collective/shared/shared-steps.js";
import { signatureOf, USER_OPERATION } from "../collective/signature.js";
import { checkFlag, checkKeys } from "../core/check.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import {
  ELEMENT_TYPES,
  type ElementType,
  elementTypeOf,
  hasOperation,
  isAssociative,
  OPERATIONS,
  type Operation,
} from "../core/reduction.js";
import type { CollectiveKernel } from "../kernel/collective.js";
import type { Memory } from "../kernel/kernel.js";
import { isPromised } from "../support/promise.js";
import { type Given, OPERATION_KEYS, type UserOperation } from "./collective-parameters.js";

/** A request, and what all members must agree on. */
export interface Prepared {
  readonly request: CollectiveRequest;
  readonly signature: number;
  /** Whether it is for one call: what is sent was copied. */
  readonly isOnce?: boolean;
}

export const NOTHING = new Uint8Array(0);
export const BARRIER: CollectiveRequest = {
  type: "barrier",
  send: NOTHING,
  receive: NOTHING,
  reducer: undefined,
  root: 0,
  bytes: 0,
  elementBytes: 1,
  sent: undefined,
  received: undefined,
  isExclusive: false,
  isOrdered: false,
};
export const BARRIER_SIGNATURE = signatureOf("barrier", -1, -1, 0);

/** The requests of one member of a geometry. */
export class Requests {
  readonly #rank: number;
  readonly #size: number;
  readonly #memory: Memory;
  readonly #kernel: CollectiveKernel;
  /** By operation and element type. */
  readonly #reducers = new Map<number, Reducer>();

  constructor(rank: number, size: number, memory: Memory, kernel: CollectiveKernel) {
    this.#rank = rank;
    this.#size = size;
    this.#memory = memory;
    this.#kernel = kernel;
  }

  /** The view that the caller has left out, if this member gets anything. */
  made(type: OperationType, given: Given): ArrayBufferView | undefined {
    const { send, receive, root = 0, counts, displacements, operation, type: elementType } = given;
    if (receive !== undefined || !ArrayBuffer.isView(send)) return undefined;
    const { gives, gets, root: side, isUneven, isReduction } = OPERATION_ROWS[type];
    const length = bytesOf(type, "send", send).length / bytesPerElement(send);
    if (gets === "" || side === "gives" || (side === "gets" && this.#rank !== root)) return undefined;
    if (gives === gets) return isUneven ? undefined : viewLike(send, length);
    if (gets === "blocks") {
      if (!isUneven) return viewLike(send, length * this.#size);
      const { counts: lengths, offsets } = this.#blocks(type, "counts", counts, displacements, 1);
      return viewLike(send, Math.max(0, ...lengths.map((count, rank) => count + (offsets[rank] as number))));
    }
    if (!isReduction || counts === undefined) return viewLike(send, length / this.#size);
    const list = listOf(type, "counts", counts, this.#size);
    const named = elementType === undefined ? undefined : (ELEMENT_TYPES[elementType]?.bytes ?? 0);
    const elementBytes = structBytesOf(operation) ?? named ?? bytesPerElement(send);
    const entries = elementBytes / bytesPerElement(send);
    return viewLike(send, (list[this.#rank] as number) * entries);
  }

  /** The blocks of a view, by rank. @throws PAMIR_INVAL, PAMIR_BOUNDS */
  blocksOf(type: ActiveType, view: ArrayBufferView, counts: ArrayLike<number> | undefined): Uint8Array[] {
    const bytes = bytesOf(type, "send", view);
    const each = bytes.length / this.#size;
    const elementBytes = bytesPerElement(view);
    if (counts === undefined && each % elementBytes !== 0) {
      throw new PamiError("PAMIR_INVAL", `${type}() of ${bytes.length} bytes for ${this.#size} members: give counts`);
    }
    const list = counts ?? new Array<number>(this.#size).fill(each / elementBytes);
    const { counts: lengths, offsets } = this.#blocks(type, "counts", list, undefined, elementBytes, bytes.length);
    return lengths.map((length, rank) => bytes.subarray(offsets[rank], (offsets[rank] as number) + length));
  }

  /** @throws PAMIR_INVAL, PAMIR_BOUNDS */
  of(type: CollectiveType, given: Given): Prepared {
    if (type === "barrier") return { request: BARRIER, signature: BARRIER_SIGNATURE };
    const { root = 0 } = given;
    checkInteger(`root of ${type}()`, root, 0, this.#size - 1);
    return OPERATION_ROWS[type].isReduction ? this.#reduction(type, given, root) : this.#movement(type, given, root);
  }

  /** Operations that only move bytes. */
  #movement(type: CollectiveType, given: Given, root: number): Prepared {
    const [rank, size] = [this.#rank, this.#size];
    const { gives, gets, root: side, inPlace, isUneven } = OPERATION_ROWS[type];
    const isRoot = rank === root;
    const base = { ...BARRIER, type, root };
    if (gives === "vector") {
      const buffer = bytesOf(type, "buffer", given.buffer);
      const request = { ...base, send: buffer, receive: buffer, bytes: buffer.length };
      return { request, signature: signatureOf(type, -1, kindOf(given.buffer), root, buffer.length) };
    }
    const { send, receive } = given;
    const isScatter = inPlace === "receive";
    const isWhole = side === "" || isRoot;
    const [outer, inner] = isScatter ? [send, receive] : [receive, send];
    if (inner === null && !isWhole) {
      throw new PamiError("PAMIR_INVAL", `${type}() in place at rank ${rank}: only the root, rank ${root}, may`);
    }
    const whole = isWhole ? bytesOf(type, isScatter ? "send" : "receive", outer) : NOTHING;
    const piece = inner === null ? NOTHING : bytesOf(type, isScatter ? "receive" : "send", inner);
    const view = (isWhole ? outer : inner) as ArrayBufferView;
    if (isWhole && inner !== null) checkKinds(type, send, receive);
    const elementBytes = bytesPerElement(view);
    const kind = kindOf(view);
    if (gives === gets) return this.#alltoall(type, given, base, whole, elementBytes, kind);
    const isInPlace = inner === null || isSamePlace(piece, whole);
    let blocks: Blocks | undefined;
    if (isUneven && isWhole) {
      blocks = this.#blocks(type, "counts", given.counts, given.displacements, elementBytes, whole.length, !isScatter);
    }
    let bytes = isUneven ? 0 : isInPlace ? whole.length / size : piece.length;
    if (!isUneven && isWhole && (whole.length !== bytes * size || bytes % elementBytes !== 0)) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${type}() of ${size} blocks of ${bytes} bytes: ${isScatter ? "send" : "receive"} has ${whole.length} bytes`,
      );
    }
    let own = piece;
    if (isWhole) {
      const offset = blocks === undefined ? bytes * rank : (blocks.offsets[rank] as number);
      const block = whole.subarray(offset, offset + (blocks === undefined ? bytes : (blocks.counts[rank] as number)));
      if (isInPlace) own = block;
      else if (own.length !== block.length) {
        throw new PamiError(
          "PAMIR_INVAL",
          `${type}(): the block of rank ${rank} has ${own.length} bytes, by counts ${block.length}`,
        );
      } else if (!isSamePlace(own, block)) checkApart(type, own, whole);
    }
    if (isUneven) bytes = own.length;
    const request: CollectiveRequest = isScatter
      ? { ...base, elementBytes, bytes, send: whole, receive: own, sent: blocks }
      : { ...base, elementBytes, bytes, send: own, receive: whole, received: blocks };
    const lengths = isUneven ? (side === "" ? (blocks as Blocks).counts : []) : [bytes];
    return { request, signature: signatureOf(type, -1, kind, root, ...lengths) };
  }

  #alltoall(
    type: CollectiveType,
    given: Given,
    base: CollectiveRequest,
    receive: Uint8Array,
    elementBytes: number,
    kind: number,
  ): Prepared {
    const size = this.#size;
    let send = given.send === null ? receive : bytesOf(type, "send", given.send);
    const isOnce = given.send === null || isSamePlace(send, receive);
    // In place, what is sent is copied first.
    if (isOnce) send = receive.slice();
    else checkApart(type, send, receive);
    if (!OPERATION_ROWS[type].isUneven) {
      if (send.length !== receive.length || send.length % (size * elementBytes) !== 0) {
        const text = `alltoall() of ${size} members: send has ${send.length} bytes, receive ${receive.length}`;
        throw new PamiError("PAMIR_INVAL", text);
      }
      const bytes = send.length / size;
      return {
        request: { ...base, elementBytes, bytes, send, receive },
        signature: signatureOf(type, -1, kind, 0, bytes),
        isOnce,
      };
    }
    const { sendCounts, sendDisplacements, receiveCounts, receiveDisplacements } = given;
    const received = this.#blocks(
      type,
      "receiveCounts",
      receiveCounts,
      receiveDisplacements,
      elementBytes,
      receive.length,
      true,
    );
    const sent =
      given.send === null
        ? received
        : this.#blocks(type, "sendCounts", sendCounts, sendDisplacements, elementBytes, send.length);
    return {
      request: { ...base, elementBytes, send, receive, sent, received },
      signature: signatureOf(type, -1, kind, 0),
      isOnce,
    };
  }

  /** Blocks in bytes, of counts and displacements in elements. @param isWritten whether they must not overlap */
  #blocks(
    type: OperationType,
    name: string,
    counts: ArrayLike<number> | undefined,
    displacements: ArrayLike<number> | undefined,
    elementBytes: number,
    limit = Number.POSITIVE_INFINITY,
    isWritten = false,
  ): Blocks {
    const list = listOf(type, name, counts, this.#size);
    const bytes = list.map((count) => count * elementBytes);
    const offsets =
      displacements === undefined
        ? prefixSums(bytes)
        : placesOf(type, displacements, list).map((place) => place * elementBytes);
    const endOf = (rank: number): number => (offsets[rank] as number) + (bytes[rank] as number);
    for (const rank of offsets.keys()) {
      if (endOf(rank) > limit) {
        const text = `${type}(): the block of rank ${rank} ends at byte ${endOf(rank)} of ${limit}`;
        throw new PamiError("PAMIR_BOUNDS", text);
      }
    }
    if (isWritten && displacements !== undefined) {
      const inOrder = [...offsets.keys()].filter((rank) => bytes[rank] !== 0);
      inOrder.sort((one, other) => (offsets[one] as number) - (offsets[other] as number));
      const later = inOrder.findIndex((rank, place) => (offsets[rank] as number) < endOf(inOrder[place - 1] ?? -1));
      if (later > 0) {
        const text = `${type}(): the blocks of ranks ${inOrder[later - 1]} and ${inOrder[later]} overlap in receive`;
        throw new PamiError("PAMIR_INVAL", text);
      }
    }
    return { counts: bytes, offsets };
  }

  #reduction(type: CollectiveType, given: Given, root: number): Prepared {
    const [rank, size] = [this.#rank, this.#size];
    const { send, receive, operation, exclusive = false } = given;
    checkFlag(`exclusive of ${type}()`, exclusive);
    const { gets: side, root: rooted } = OPERATION_ROWS[type];
    const gets = rooted === "" || rank === root;
    if (send === null && !gets) {
      throw new PamiError("PAMIR_INVAL", `${type}() in place at rank ${rank}: only the root, rank ${root}, may`);
    }
    const operands = bytesOf(type, send === null ? "receive" : "send", send ?? receive);
    const view = (send ?? receive) as ArrayBufferView;
    const element = this.#elementType(type, given.type, view, operation);
    const { number } = ELEMENT_TYPES[element];
    const elementBytes = elementBytesOf(type, element, operation);
    if (operands.length % elementBytes !== 0) {
      const what =
        structBytesOf(operation) === undefined ? `an element of type ${element}` : "an element (elementBytes)";
      throw new PamiError("PAMIR_INVAL", `${type}() of ${operands.length} bytes: ${what} has ${elementBytes}`);
    }
    const { reducer, operationNumber, isOrdered } = this.#reducer(type, element, operation, view, elementBytes);
    let result = gets ? bytesOf(type, "receive", receive) : NOTHING;
    const isInPlace = send === null || isSamePlace(operands, result);
    if (gets) this.#checkElements(type, element, given.type, "receive", receive as ArrayBufferView);
    let sent: Blocks | undefined;
    let needed = operands.length;
    if (side === "block") {
      sent = this.#scattered(given.counts, elementBytes, operands.length);
      needed = sent.counts[rank] as number;
      if (isInPlace) result = result.subarray(0, needed);
    }
    if (gets && result.length !== needed) {
      throw new PamiError("PAMIR_INVAL", `${type}(): receive has ${result.length} bytes, the result ${needed}`);
    }
    if (!isInPlace) checkApart(type, operands, result);
    const request: CollectiveRequest = {
      ...BARRIER,
      type,
      root,
      send: operands,
      receive: result,
      bytes: operands.length,
      elementBytes,
      reducer,
      sent,
      isExclusive: exclusive,
      isOrdered,
    };
    const lengths = [operands.length, elementBytes, Number(exclusive), Number(isOrdered), ...(sent?.counts ?? [])];
    return {
      request,
      signature: signatureOf(type, operationNumber, number, rooted === "" ? size : root, ...lengths),
    };
  }

  #scattered(counts: ArrayLike<number> | undefined, elementBytes: number, bytes: number): Blocks {
    const size = this.#size;
    const each = bytes / elementBytes / size;
    if (counts === undefined && !Number.isInteger(each)) {
      const text = `reduceScatter() of ${bytes / elementBytes} elements for ${size} members: give counts`;
      throw new PamiError("PAMIR_INVAL", text);
    }
    const list =
      counts === undefined ? new Array<number>(size).fill(each) : listOf("reduceScatter", "counts", counts, size);
    const inBytes = list.map((count) => count * elementBytes);
    const sum = inBytes.reduce((all, one) => all + one, 0);
    if (sum !== bytes) {
      throw new PamiError("PAMIR_INVAL", `reduceScatter(): counts add up to ${sum} bytes, send has ${bytes}`);
    }
    return { counts: inBytes, offsets: prefixSums(inBytes) };
  }

  #elementType(
    type: CollectiveType,
    named: ElementType | undefined,
    view: ArrayBufferView,
    operation: unknown,
  ): ElementType {
    if (named !== undefined && !Object.hasOwn(ELEMENT_TYPES, named)) {
      const names = Object.keys(ELEMENT_TYPES).join(", ");
      throw new PamiError("PAMIR_INVAL", `type ${show(named)} of ${type}() is unknown; there are ${names}`);
    }
    const found = named ?? elementTypeOf(view);
    if (found === undefined) {
      throw new PamiError("PAMIR_INVAL", `${type}() of ${show(view)}: name the type of its elements`);
    }
    this.#checkElements(type, found, named, "send", view);
    if (typeof operation !== "string") return found;
    if (!Object.hasOwn(OPERATIONS, operation)) {
      const names = Object.keys(OPERATIONS).join(", ");
      throw new PamiError("PAMIR_INVAL", `operation ${show(operation)} of ${type}() is unknown; there are ${names}`);
    }
    if (!hasOperation(found, operation as Operation)) {
      throw new PamiError("PAMIR_INVAL", `operation ${operation} of ${type}(): elements of type ${found} have no such`);
    }
    return found;
  }

  /** Checks that a view holds elements of a type: an array of its class, or bytes if the caller has named the type. */
  #checkElements(
    type: CollectiveType,
    element: ElementType,
    named: ElementType | undefined,
    name: string,
    view: ArrayBufferView,
  ): void {
    const { align, array } = ELEMENT_TYPES[element];
    const isBytes = kindOf(view) === ELEMENT_TYPES.u8.number;
    if (!(view instanceof array) && !(isBytes && (named !== undefined || array === Uint8Array))) {
      const bytes = named === undefined || array === Uint8Array ? "" : " or bytes";
      const text = `${type}() of ${element}: ${name} is ${show(view)}, not ${array.name}${bytes}`;
      throw new PamiError("PAMIR_INVAL", text);
    }
    if (view.byteOffset % align !== 0) {
      const text = `${type}() of ${element}: ${name} begins at byte ${view.byteOffset}, no multiple of ${align}`;
      throw new PamiError("PAMIR_INVAL", text);
    }
  }

  #reducer(
    type: CollectiveType,
    element: ElementType,
    operation: Operation | UserOperation | undefined,
    view: ArrayBufferView,
    elementBytes: number,
  ): { reducer: Reducer; operationNumber: number; isOrdered: boolean } {
    const { number } = ELEMENT_TYPES[element];
    if (typeof operation === "string") {
      const operationNumber = OPERATIONS[operation];
      const key = operationNumber * 32 + number;
      let reducer = this.#reducers.get(key);
      if (reducer === undefined) {
        const kernel = this.#kernel;
        reducer = {
          elementBytes,
          align: 1,
          isUser: false,
          reduce: (out, left, right, bytes, elsewhere) =>
            (elsewhere ?? kernel).reduce(operationNumber, number, out, left, right, (bytes / elementBytes) >>> 0),
        };
        this.#reducers.set(key, reducer);
      }
      return {
        reducer,
        operationNumber,
        isOrdered: !isAssociative(element, operation) || operation === "copy" || operation === "noop",
      };
    }
    if (typeof operation?.combine !== "function") {
      throw new PamiError("PAMIR_INVAL", `operation of ${type}() is ${show(operation)}, not a name or { combine }`);
    }
    checkKeys(`operation of ${type}()`, operation, OPERATION_KEYS);
    const { combine, commutative = false } = operation;
    checkFlag(`commutative of operation of ${type}()`, commutative);
    const { buffer } = this.#memory;
    const at = (pointer: number, bytes: number, from: ArrayBufferLike): ArrayBufferView =>
      viewOn(view, from, pointer, bytes / bytesPerElement(view));
    const reducer: Reducer = {
      elementBytes,
      align: alignOf(elementBytes),
      isUser: true,
      reduce(out, left, right, bytes, elsewhere) {
        const from = elsewhere?.buffer ?? buffer;
        const returned: unknown = combine(at(left, bytes, from), at(right, bytes, from), at(out, bytes, from));
        if (returned !== undefined && isPromised(returned)) {
          throw new PamiError(
            "PAMIR_INVAL",
            `combine() of ${type}() gave ${show(returned)}: it writes \`out\` at once`,
          );
        }
      },
    };
    return { reducer, operationNumber: USER_OPERATION, isOrdered: !commutative };
  }
}

/** What the views of `combine` are aligned to, at most: an operand that lies elsewhere is copied. */
const ALIGN_MAX = 8;

function alignOf(elementBytes: number): number {
  let align = 1;
  while (align < ALIGN_MAX && elementBytes % (2 * align) === 0) align *= 2;
  return align;
}

/** The `elementBytes` of a function, unchecked. */
function structBytesOf(operation: Operation | UserOperation | undefined): number | undefined {
  return typeof operation === "object" ? operation?.elementBytes : undefined;
}

/** Bytes of an element of a reduction. @throws PAMIR_INVAL */
function elementBytesOf(
  type: CollectiveType,
  element: ElementType,
  operation: Operation | UserOperation | undefined,
): number {
  const { bytes } = ELEMENT_TYPES[element];
  const own = structBytesOf(operation);
  if (own === undefined) return bytes;
  checkInteger(`elementBytes of ${type}()`, own, 1, 2 ** 32);
  if (own % bytes !== 0) {
    throw new PamiError(
      "PAMIR_INVAL",
      `elementBytes of ${type}() is ${own}, no multiple of the ${bytes} bytes of ${element}`,
    );
  }
  return own;
}

function bytesPerElement(view: ArrayBufferView): number {
  return (view as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
}

/** The number of a view's element type, of a DataView that of bytes; -1 for an array that reductions do not know. */
function kindOf(view: ArrayBufferView | undefined): number {
  const type = view instanceof DataView ? "u8" : elementTypeOf(view);
  return type === undefined ? -1 : ELEMENT_TYPES[type].number;
}

// biome-ignore lint/suspicious/noExplicitAny: constructors of views differ in the buffers that they take.
type ViewClass = new (buffer: any, byteOffset?: number, length?: number) => ArrayBufferView;

function viewLike(view: ArrayBufferView, length: number): ArrayBufferView {
  return viewOn(view, new ArrayBuffer(Math.ceil(length) * bytesPerElement(view)), 0, length);
}

function viewOn(view: ArrayBufferView, buffer: ArrayBufferLike, byteOffset: number, length: number): ArrayBufferView {
  // A Buffer's own constructor makes ordinary buffers.
  const Class = (view instanceof Uint8Array ? Uint8Array : view.constructor) as ViewClass;
  return new Class(buffer, byteOffset, length);
}

/** @throws PAMIR_INVAL unless it is a view, whose bytes are there */
export function bytesOf(type: OperationType, name: string, view: unknown): Uint8Array {
  if (!ArrayBuffer.isView(view)) {
    const isRegion = ArrayBuffer.isView((view as { bytes?: unknown } | undefined | null)?.bytes);
    const hint = isRegion ? ": give its bytes, or an array over them" : "";
    throw new PamiError("PAMIR_INVAL", `${name} of ${type}() is ${show(view)}, not an ArrayBufferView${hint}`);
  }
  try {
    // It throws if the buffer is detached. The length of an array is 0 then, that of a DataView can't be read.
    if (view.byteLength === 0) new Uint8Array(view.buffer);
    return view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  } catch (cause) {
    throw new PamiError("PAMIR_INVAL", `${name} of ${type}() has a buffer that is detached or too short`, { cause });
  }
}

function listOf(type: OperationType, name: string, list: unknown, size: number, least = 0): number[] {
  const isList = Array.isArray(list) || (ArrayBuffer.isView(list) && !(list instanceof DataView));
  const values: unknown[] = isList ? Array.from(list as ArrayLike<unknown>) : [];
  if (values.length !== size || !isList) {
    const length = isList ? ` of ${values.length}` : "";
    throw new PamiError(
      "PAMIR_INVAL",
      `${name} of ${type}() are ${show(list)}${length}, not a list of ${size} numbers`,
    );
  }
  const most = least === 0 ? 2 ** 32 : Number.MAX_SAFE_INTEGER;
  for (const value of values) checkInteger(`${name} of ${type}()`, value, least, most);
  return values as number[];
}

/** Where blocks begin, in elements. That of an empty block is any whole number, which is ignored, as in MPI. */
function placesOf(type: OperationType, displacements: unknown, counts: readonly number[]): number[] {
  const places = listOf(type, "displacements", displacements, counts.length, Number.MIN_SAFE_INTEGER);
  for (const [rank, place] of places.entries()) {
    if (counts[rank] === 0) places[rank] = 0;
    else checkInteger(`displacements of ${type}()`, place, 0, 2 ** 32);
  }
  return places;
}

/** @throws PAMIR_INVAL if two views hold elements of different types */
export function checkKinds(type: OperationType, send: unknown, receive: unknown): void {
  const [one, other] = [send as ArrayBufferView, receive as ArrayBufferView];
  if (kindOf(one) === kindOf(other) && bytesPerElement(one) === bytesPerElement(other)) return;
  throw new PamiError(
    "PAMIR_INVAL",
    `send of ${type}() is ${show(send)}, receive ${show(receive)}: their types differ`,
  );
}

/** Whether two views have the same bytes. */
function isSamePlace(one: Uint8Array, other: Uint8Array): boolean {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length;
}

/** @throws PAMIR_INVAL if two views overlap */
function checkApart(type: CollectiveType, one: Uint8Array, other: Uint8Array): void {
  if (one.length === 0 || other.length === 0 || one.buffer !== other.buffer) return;
  const isApart = one.byteOffset + one.length <= other.byteOffset || other.byteOffset + other.length <= one.byteOffset;
  if (isApart) return;
  throw new PamiError("PAMIR_INVAL", `send and receive of ${type}() overlap: give send: null to work in place`);
}
