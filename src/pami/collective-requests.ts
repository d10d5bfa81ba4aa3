// Turns the parameters of collective operations into requests: checks them, and computes lengths and offsets in bytes.
import type { ActiveType } from "../collective/active.js";
import type { CollectiveKernel } from "../collective/kernel.js";
import type { Reducer } from "../collective/operation.js";
import type { Request } from "../collective/select.js";
import { prefixSums } from "../collective/shape.js";
import type { Blocks } from "../collective/shared-steps.js";
import { type CollectiveType, signatureOf, USER_OPERATION } from "../collective/signature.js";
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
import type { Memory } from "../kernel/kernel.js";
import type { Given, UserOperation } from "./collective-parameters.js";

/** A request, and what all members must agree on. */
export interface Prepared {
  readonly request: Request;
  readonly signature: number;
}

export const NOTHING = new Uint8Array(0);
export const BARRIER: Request = {
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
  made(type: CollectiveType | ActiveType, given: Given): ArrayBufferView | undefined {
    const { send, receive, root = 0, counts, displacements, type: elementType } = given;
    if (receive !== undefined || send === null || send === undefined || !ArrayBuffer.isView(send)) return undefined;
    const isRoot = this.#rank === root;
    const length = lengthOf(send);
    const isLike = type === "allreduce" || type === "scan" || type === "alltoall" || type === "amReduce";
    if (isLike || (type === "reduce" && isRoot)) return viewLike(send, length);
    if (type === "allgather" || type === "amGather" || (type === "gather" && isRoot)) {
      return viewLike(send, length * this.#size);
    }
    if (type === "allgatherv" || (type === "gatherv" && isRoot)) {
      const lengths = Array.from(counts ?? []);
      const places = displacements === undefined ? prefixSums(lengths) : Array.from(displacements);
      return viewLike(send, Math.max(0, ...lengths.map((count, rank) => count + (places[rank] ?? 0))));
    }
    if (type === "reduceScatter") {
      if (counts === undefined) return viewLike(send, length / this.#size);
      const entries = elementType === undefined ? 1 : ELEMENT_TYPES[elementType].bytes / bytesPerElement(send);
      return viewLike(send, (counts[this.#rank] as number) * entries);
    }
    return undefined;
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
    return isReduction(type) ? this.#reduction(type, given, root) : this.#movement(type, given, root);
  }

  /** Operations that only move bytes. */
  #movement(type: CollectiveType, given: Given, root: number): Prepared {
    const [rank, size] = [this.#rank, this.#size];
    const isRoot = rank === root;
    const base = { ...BARRIER, type, root };
    if (type === "broadcast") {
      const buffer = bytesOf(type, "buffer", given.buffer);
      const request = { ...base, send: buffer, receive: buffer, bytes: buffer.length };
      return { request, signature: signatureOf(type, -1, -1, root, buffer.length) };
    }
    const { send, receive } = given;
    const isScatter = type === "scatter" || type === "scatterv";
    const gives = !isScatter || isRoot;
    const gets = type !== "gather" && type !== "gatherv" ? true : isRoot;
    const isInPlace = isScatter ? receive === null : send === null;
    if (isInPlace && (isScatter || type === "gather" || type === "gatherv") && !isRoot) {
      throw new PamiError("PAMIR_INVAL", `${type}() in place at rank ${rank}: only the root, rank ${root}, may`);
    }
    const outer = (isScatter ? send : receive) ?? undefined;
    const given1 = isInPlace ? outer : isScatter ? receive : send;
    const elementBytes = elementBytesOf(outer ?? given1);
    const whole = (isScatter ? gives : gets) ? bytesOf(type, isScatter ? "send" : "receive", outer) : NOTHING;
    if (type === "alltoall" || type === "alltoallv") return this.#alltoall(type, given, base, whole, elementBytes);
    const isVector = type.endsWith("v");
    let blocks: Blocks | undefined;
    if (isVector && (whole !== NOTHING || type === "allgatherv")) {
      blocks = this.#blocks(type, "counts", given.counts, given.displacements, elementBytes, whole.length);
    }
    const piece = isInPlace ? NOTHING : bytesOf(type, isScatter ? "receive" : "send", given1);
    let bytes = isVector ? 0 : isInPlace ? whole.length / size : piece.length;
    if (!isVector && whole !== NOTHING && whole.length !== bytes * size) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${type}() of ${size} blocks of ${bytes} bytes: ${isScatter ? "send" : "receive"} has ${whole.length} bytes`,
      );
    }
    let own = piece;
    if (isInPlace) {
      const offset = blocks === undefined ? bytes * rank : (blocks.offsets[rank] as number);
      own = whole.subarray(offset, offset + (blocks === undefined ? bytes : (blocks.counts[rank] as number)));
    } else if (blocks !== undefined && own.length !== blocks.counts[rank]) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${type}(): the block of rank ${rank} has ${own.length} bytes, by counts ${blocks.counts[rank]}`,
      );
    } else checkApart(type, own, whole);
    if (isVector) bytes = own.length;
    const request: Request = isScatter
      ? { ...base, elementBytes, bytes, send: whole, receive: own, sent: blocks }
      : { ...base, elementBytes, bytes, send: own, receive: whole, received: blocks };
    const lengths = isVector ? (type === "allgatherv" ? (blocks as Blocks).counts : []) : [bytes];
    return { request, signature: signatureOf(type, -1, -1, root, ...lengths) };
  }

  #alltoall(
    type: "alltoall" | "alltoallv",
    given: Given,
    base: Request,
    receive: Uint8Array,
    elementBytes: number,
  ): Prepared {
    const size = this.#size;
    // In place, what is sent is copied first.
    const send = given.send === null ? receive.slice() : bytesOf(type, "send", given.send);
    if (given.send !== null) checkApart(type, send, receive);
    if (type === "alltoall") {
      if (send.length !== receive.length || send.length % size !== 0) {
        const text = `alltoall() of ${size} members: send has ${send.length} bytes, receive ${receive.length}`;
        throw new PamiError("PAMIR_INVAL", text);
      }
      const bytes = send.length / size;
      return {
        request: { ...base, elementBytes, bytes, send, receive },
        signature: signatureOf(type, -1, -1, 0, bytes),
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
    );
    const sent =
      given.send === null
        ? received
        : this.#blocks(type, "sendCounts", sendCounts, sendDisplacements, elementBytes, send.length);
    return {
      request: { ...base, elementBytes, send, receive, sent, received },
      signature: signatureOf(type, -1, -1, 0),
    };
  }

  /** Blocks in bytes, of counts and displacements in elements. */
  #blocks(
    type: CollectiveType | ActiveType,
    name: string,
    counts: ArrayLike<number> | undefined,
    displacements: ArrayLike<number> | undefined,
    elementBytes: number,
    limit: number,
  ): Blocks {
    const list = listOf(type, name, counts, this.#size);
    const bytes = list.map((count) => count * elementBytes);
    const offsets =
      displacements === undefined
        ? prefixSums(bytes)
        : listOf(type, "displacements", displacements, this.#size).map((place) => place * elementBytes);
    for (const [rank, offset] of offsets.entries()) {
      const end = offset + (bytes[rank] as number);
      if (end > limit) {
        throw new PamiError("PAMIR_BOUNDS", `${type}(): the block of rank ${rank} ends at byte ${end} of ${limit}`);
      }
    }
    return { counts: bytes, offsets };
  }

  #reduction(type: CollectiveType, given: Given, root: number): Prepared {
    const [rank, size] = [this.#rank, this.#size];
    const { send, receive, operation } = given;
    const gets = type !== "reduce" || rank === root;
    if (send === null && !gets) {
      throw new PamiError("PAMIR_INVAL", `reduce() in place at rank ${rank}: only the root, rank ${root}, may`);
    }
    const operands = bytesOf(type, send === null ? "receive" : "send", send ?? receive);
    const view = (send ?? receive) as ArrayBufferView;
    const element = this.#elementType(type, given.type, view, operation);
    const { bytes: elementBytes, number } = ELEMENT_TYPES[element];
    if (operands.length % elementBytes !== 0) {
      const text = `${type}() of ${operands.length} bytes: an element of type ${element} has ${elementBytes}`;
      throw new PamiError("PAMIR_INVAL", text);
    }
    const { reducer, operationNumber, isOrdered } = this.#reducer(type, element, operation, view);
    let result = gets ? bytesOf(type, "receive", receive) : NOTHING;
    let sent: Blocks | undefined;
    let needed = operands.length;
    if (type === "reduceScatter") {
      sent = this.#scattered(given.counts, elementBytes, operands.length);
      needed = sent.counts[rank] as number;
      if (send === null) result = result.subarray(0, needed);
    }
    if (gets && result.length !== needed) {
      throw new PamiError("PAMIR_INVAL", `${type}(): receive has ${result.length} bytes, the result ${needed}`);
    }
    if (send !== null && gets) checkApart(type, operands, result);
    const request: Request = {
      ...BARRIER,
      type,
      root,
      send: operands,
      receive: result,
      bytes: operands.length,
      elementBytes,
      reducer,
      sent,
      isExclusive: given.exclusive === true,
      isOrdered,
    };
    const lengths = [operands.length, Number(given.exclusive === true), ...(sent?.counts ?? [])];
    return {
      request,
      signature: signatureOf(type, operationNumber, number, type === "reduce" ? root : size, ...lengths),
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
    const { align } = ELEMENT_TYPES[found];
    if (view.byteOffset % align !== 0) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${type}(): the view begins at byte ${view.byteOffset}, no multiple of ${align}`,
      );
    }
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

  #reducer(
    type: CollectiveType,
    element: ElementType,
    operation: Operation | UserOperation | undefined,
    view: ArrayBufferView,
  ): { reducer: Reducer; operationNumber: number; isOrdered: boolean } {
    const { bytes: elementBytes, number } = ELEMENT_TYPES[element];
    if (typeof operation === "string") {
      const operationNumber = OPERATIONS[operation];
      const key = operationNumber * 32 + number;
      let reducer = this.#reducers.get(key);
      if (reducer === undefined) {
        const kernel = this.#kernel;
        reducer = {
          elementBytes,
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
    const { combine, commutative = false } = operation;
    const { buffer } = this.#memory;
    const at = (pointer: number, bytes: number, from: ArrayBufferLike): ArrayBufferView =>
      viewOn(view, from, pointer, bytes / bytesPerElement(view));
    const reducer: Reducer = {
      elementBytes,
      isUser: true,
      reduce(out, left, right, bytes, elsewhere) {
        const from = elsewhere?.buffer ?? buffer;
        combine(at(left, bytes, from), at(right, bytes, from), at(out, bytes, from));
      },
    };
    return { reducer, operationNumber: USER_OPERATION, isOrdered: commutative !== true };
  }
}

function isReduction(type: CollectiveType): boolean {
  return type === "reduce" || type === "allreduce" || type === "scan" || type === "reduceScatter";
}

function bytesPerElement(view: ArrayBufferView): number {
  return (view as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
}

function elementBytesOf(view: ArrayBufferView | null | undefined): number {
  return ArrayBuffer.isView(view) ? bytesPerElement(view) : 1;
}

function lengthOf(view: ArrayBufferView): number {
  return view.byteLength / bytesPerElement(view);
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

/** @throws PAMIR_INVAL unless it is a view */
export function bytesOf(type: CollectiveType | ActiveType, name: string, view: unknown): Uint8Array {
  if (view instanceof Uint8Array) return view;
  if (!ArrayBuffer.isView(view)) {
    throw new PamiError("PAMIR_INVAL", `${name} of ${type}() is ${show(view)}, not an ArrayBufferView`);
  }
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

function listOf(type: CollectiveType | ActiveType, name: string, list: unknown, size: number): number[] {
  const values = Array.isArray(list) || ArrayBuffer.isView(list) ? Array.from(list as ArrayLike<number>) : undefined;
  if (values === undefined || values.length !== size) {
    throw new PamiError("PAMIR_INVAL", `${name} of ${type}() are ${show(list)}, not a list of ${size} numbers`);
  }
  for (const value of values) checkInteger(`${name} of ${type}()`, value, 0, 2 ** 32);
  return values;
}

/** @throws PAMIR_INVAL if two views overlap */
function checkApart(type: CollectiveType, one: Uint8Array, other: Uint8Array): void {
  if (one.length === 0 || other.length === 0 || one.buffer !== other.buffer) return;
  const isApart = one.byteOffset + one.length <= other.byteOffset || other.byteOffset + other.length <= one.byteOffset;
  if (isApart) return;
  throw new PamiError("PAMIR_INVAL", `send and receive of ${type}() overlap: give send: null to work in place`);
}
