// Transfer types: their description, and packing as a call. typed.ts carries the calls of contexts and messages.
import { LOOP_COUNT_MAX } from "../../assembly/layout.js";
import { checkKeys, type Keys, NO_OPTIONS } from "../core/check.js";
import { checkInteger, markCopy, PamiError, show } from "../core/error.js";
import type {
  Carrier,
  CompleteOptions,
  PackOptions,
  TransferField,
  TransferType,
  TransferTypeInfo,
} from "../core/transfer-type.js";
import type { Task } from "../protocol/task.js";
import { Mover } from "./mover.js";
import {
  dataBytes,
  depthOf,
  endOf,
  haveOverlap,
  type Loop,
  layoutWords,
  loopCount,
  runCount,
  simplified,
} from "./type-loops.js";
import {
  BYTES_MAX,
  checkBytes,
  checkElements,
  checkTarget,
  countBytes,
  type TypeShape,
  viewBytes,
} from "./type-shape.js";
import { shapeOf, TypedCarrier } from "./typed.js";

const COMPLETE_KEYS: Keys<CompleteOptions> = { extent: true };
const PACK_KEYS: Keys<PackOptions> = { count: true, from: true, bytes: true };
const TRANSFORM_KEYS: Keys<{ count?: number }> = { count: true };
const FIELD_KEYS: Keys<TransferField> = { offset: true, bytes: true, type: true, count: true };

const movers = new WeakMap<Task, Mover>();

/** Makes an empty type for the task's client. */
export function makeType(task: Task): TransferType {
  let mover = movers.get(task);
  if (mover === undefined) {
    mover = new Mover(task);
    movers.set(task, mover);
  }
  return new LayoutType(mover);
}

class LayoutType implements TransferType {
  readonly carrier: Carrier;
  readonly #mover: Mover;
  readonly #loops: Loop[] = [];
  /** Those within them, too. */
  #loopCount = 0;
  #shape: TypeShape | undefined;
  #closed = false;

  constructor(mover: Mover) {
    this.#mover = mover;
    this.carrier = new TypedCarrier(mover, (name) => this.shape(name));
  }

  addSimple(bytes: number, offset = 0, count = 1, stride = bytes): this {
    this.#checkOpen("addSimple");
    checkInteger("bytes of addSimple()", bytes, 0, BYTES_MAX);
    this.#add("addSimple", offset, count, stride, bytes, undefined);
    return this;
  }

  addTyped(type: TransferType, offset = 0, count = 1, stride?: number): this {
    this.#checkOpen("addTyped");
    const { loops, bytes, extent } = shapeOf("type of addTyped()", type);
    this.#add("addTyped", offset, count, stride ?? extent, bytes, loops);
    return this;
  }

  addIndexed(bytes: number, offsets: ArrayLike<number>): this {
    this.#checkOpen("addIndexed");
    checkInteger("bytes of addIndexed()", bytes, 0, BYTES_MAX);
    if (typeof offsets !== "object" || offsets === null || typeof offsets.length !== "number") {
      throw new PamiError("PAMIR_INVAL", `offsets of addIndexed() is ${show(offsets)}, not a list`);
    }
    const [before, loopsBefore] = [this.#loops.length, this.#loopCount];
    try {
      for (let i = 0; i < offsets.length; i++) {
        this.#add("addIndexed", offsets[i] as number, 1, bytes, bytes, undefined);
      }
    } catch (error) {
      // All of them, or none.
      this.#loops.length = before;
      this.#loopCount = loopsBefore;
      throw error;
    }
    return this;
  }

  addStruct(fields: readonly TransferField[]): this {
    this.#checkOpen("addStruct");
    if (!Array.isArray(fields)) {
      throw new PamiError("PAMIR_INVAL", `fields of addStruct() are ${show(fields)}, not an array`);
    }
    const [before, loopsBefore] = [this.#loops.length, this.#loopCount];
    try {
      for (const field of fields) {
        checkKeys("a field of addStruct()", field, FIELD_KEYS);
        const { offset, bytes, type, count } = field;
        if ((bytes === undefined) === (type === undefined)) {
          throw new PamiError("PAMIR_INVAL", "a field of addStruct() has either bytes or a type");
        }
        if (type !== undefined) this.addTyped(type, offset, count);
        else this.addSimple(bytes as number, offset, count);
      }
    } catch (error) {
      this.#loops.length = before;
      this.#loopCount = loopsBefore;
      throw error;
    }
    return this;
  }

  addSubarray(
    sizes: readonly number[],
    subsizes: readonly number[],
    starts: readonly number[],
    elementBytes: number,
  ): this {
    this.#checkOpen("addSubarray");
    const lists = { sizes, subsizes, starts };
    for (const [name, list] of Object.entries(lists)) {
      if (!Array.isArray(list) || list.length === 0 || list.length !== sizes.length) {
        const of = Array.isArray(sizes) ? sizes.length : "some";
        throw new PamiError("PAMIR_INVAL", `${name} of addSubarray() are ${show(list)}, not ${of} numbers`);
      }
    }
    checkInteger("elementBytes of addSubarray()", elementBytes, 0, BYTES_MAX);
    let loop: Loop = { offset: 0, count: 1, stride: elementBytes, bytes: elementBytes, inner: undefined };
    let row = elementBytes;
    let data = elementBytes;
    for (let d = sizes.length - 1; d >= 0; d--) {
      const [size, subsize, start] = [sizes[d], subsizes[d], starts[d]] as [number, number, number];
      checkInteger(`sizes[${d}] of addSubarray()`, size, 0, BYTES_MAX);
      checkInteger(`starts[${d}] of addSubarray()`, start, 0, size);
      checkInteger(`subsizes[${d}] of addSubarray()`, subsize, 0, size - start);
      checkBytes("addSubarray", row * size);
      const inner = d === sizes.length - 1 ? undefined : simplified([loop]);
      loop = { offset: start * row, count: subsize, stride: row, bytes: data, inner };
      row *= size;
      data *= subsize;
    }
    if (data === 0) return this;
    this.#add("addSubarray", 0, 1, row, data, simplified([loop]));
    return this;
  }

  complete(options: CompleteOptions = NO_OPTIONS): this {
    this.#checkOpen("complete");
    checkKeys("options of complete()", options, COMPLETE_KEYS);
    const loops = simplified(this.#loops);
    if (loops.length === 0) throw new PamiError("PAMIR_INVAL", "complete() of a type without data");
    const bytes = dataBytes(loops);
    checkBytes("complete", bytes);
    const span = endOf(loops);
    const { extent = span } = options;
    checkInteger("extent of complete()", extent, 1, BYTES_MAX);
    const [only] = loops;
    // With span and data of one length, the single run begins at 0.
    const isRun = loops.length === 1 && only?.inner === undefined && only?.count === 1;
    const isContiguous = isRun && span === bytes && extent === bytes;
    const words = layoutWords(loops, extent);
    this.#shape = { loops, words, bytes, extent, span, isContiguous, overlaps: haveOverlap(loops), isClosed: false };
    this.#loops.length = 0;
    return this;
  }

  query(): TransferTypeInfo {
    const { loops, bytes, extent, span, isContiguous, overlaps } = this.shape("query()");
    return { bytes, extent, span, runs: runCount(loops), depth: depthOf(loops), isContiguous, overlaps };
  }

  pack(elements: ArrayBufferView, packed: ArrayBufferView, options: PackOptions = NO_OPTIONS): number {
    return this.#move("pack", elements, packed, options);
  }

  unpack(packed: ArrayBufferView, elements: ArrayBufferView, options: PackOptions = NO_OPTIONS): number {
    checkTarget("type of unpack()", this.shape("unpack()"));
    return this.#move("unpack", elements, packed, options);
  }

  #move(call: "pack" | "unpack", elements: unknown, packed: unknown, options: PackOptions): number {
    const shape = this.shape(`${call}()`);
    checkKeys(`options of ${call}()`, options, PACK_KEYS);
    const memory = viewBytes(`elements of ${call}()`, elements);
    const stream = viewBytes(`packed of ${call}()`, packed);
    const { count = 1, from = 0 } = options;
    const all = countBytes(call, shape, count);
    checkInteger(`from of ${call}()`, from, 0, all);
    const { bytes = all - from } = options;
    checkInteger(`bytes of ${call}()`, bytes, 0, all - from);
    checkElements(call, shape, all, memory.length);
    if (bytes > stream.length) {
      throw new PamiError("PAMIR_TOO_LARGE", `${call}() of ${bytes} bytes: packed has ${stream.length}`);
    }
    this.#mover.move(shape, stream, memory, from, bytes, call === "pack");
    return bytes;
  }

  transform(
    source: ArrayBufferView,
    target: ArrayBufferView,
    to: TransferType,
    options: { count?: number } = NO_OPTIONS,
  ): number {
    const shape = this.shape("transform()");
    const other = shapeOf("to of transform()", to);
    checkTarget("to of transform()", other);
    checkKeys("options of transform()", options, TRANSFORM_KEYS);
    const [from, into] = [viewBytes("source of transform()", source), viewBytes("target of transform()", target)];
    const bytes = countBytes("transform", shape, options.count ?? 1);
    checkElements("transform", shape, bytes, from.length);
    checkElements("transform", other, bytes, into.length);
    this.#mover.convert(shape, from, other, into, bytes);
    return bytes;
  }

  close(): void {
    this.#closed = true;
    if (this.#shape !== undefined) {
      this.#shape.isClosed = true;
      this.#shape.region?.close();
      this.#shape.region = undefined;
    }
    this.#shape = undefined;
    this.#loops.length = 0;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** @param name what the type is called in an error @throws PAMIR_INVAL unless it is complete */
  shape(name: string): TypeShape {
    if (this.#shape !== undefined) return this.#shape;
    throw new PamiError("PAMIR_INVAL", `${name}: the type is ${this.#closed ? "closed" : "not complete"}`);
  }

  #add(
    call: string,
    offset: number,
    count: number,
    stride: number,
    bytes: number,
    inner: readonly Loop[] | undefined,
  ): void {
    checkInteger(`offset of ${call}()`, offset, 0, BYTES_MAX);
    checkInteger(`count of ${call}()`, count, 0, BYTES_MAX);
    checkInteger(`stride of ${call}()`, stride, 0, BYTES_MAX);
    if (bytes === 0 || count === 0) return;
    const loop = { offset, count, stride, bytes, inner };
    checkBytes(call, endOf([loop]));
    checkBytes(call, count * bytes);
    const loopsWith = this.#loopCount + loopCount([loop]);
    if (loopsWith > LOOP_COUNT_MAX) {
      throw new PamiError("PAMIR_TOO_LARGE", `${call}(): more than ${LOOP_COUNT_MAX} loops in one type`);
    }
    this.#loopCount = loopsWith;
    this.#loops.push(loop);
  }

  #checkOpen(call: string): void {
    if (this.#closed || this.#shape !== undefined) {
      throw new PamiError("PAMIR_INVAL", `${call}() of a type that is ${this.#closed ? "closed" : "complete"}`);
    }
  }
}

markCopy(LayoutType);
