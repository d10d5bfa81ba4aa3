// Datatypes of MPI: which bytes of a buffer belong to an element.

import type { ElementType } from "../../index.js";
import { BASIC_TYPES, ERR, FIRST_OWN } from "./constants.js";
import { MpiFailure } from "./failure.js";

/** A datatype. */
export interface Datatype {
  readonly name: string;
  /** Bytes of data in an element. */
  readonly bytes: number;
  /** Bytes from an element to the next one. */
  readonly extent: number;
  /** Where an element's first byte lies, from its address on. */
  readonly lowerBound: number;
  /** The runs of an element, in the order of packing: offsets and lengths by turns. */
  readonly runs: readonly number[];
  /** The basic elements of an element, in the order of packing: their kinds (kindOf()) and how many come in a row, by turns. */
  readonly basics: readonly number[];
  /** As which elements it is reduced, if all are of one basic type. */
  readonly element: ElementType | undefined;
  isCommitted: boolean;
  /** Of MPI_Type_set_name(). */
  title: string;
  /** ObjectAttributes, by their keys. */
  readonly attributes: Map<number, number>;
}

/**
 * A kind of basic elements as one number: their bytes, those of the numbers that an element is made of (a complex one has two),
 * and those of such a number in the representation "external32".
 */
function kindOf(bytes: number, numberBytes = bytes, externalBytes = numberBytes): number {
  return bytes | (numberBytes << 8) | (externalBytes << 16);
}

/** The parts of kindOf(). */
export const kindBytes = (kind: number): number => kind & 0xff;
export const kindNumberBytes = (kind: number): number => (kind >>> 8) & 0xff;
export const kindExternalBytes = (kind: number): number => kind >>> 16;

/** Bytes of a number in "external32", where this machine has others. Source: MPI 5.0, table 14.2. */
const EXTERNAL_BYTES: Readonly<Record<string, number>> = { MPI_AINT: 8, MPI_WCHAR: 2 };

/** The basic elements of a predefined type. @param data bytes without padding @param index bytes of the place in a pair */
function basicsOf(name: string, element: ElementType | undefined, data: number, index: number): number[] {
  if (index === 0) {
    const numberBytes = element === "c64" || element === "c128" ? data / 2 : data;
    return [kindOf(data, numberBytes, EXTERNAL_BYTES[name] ?? numberBytes), 1];
  }
  return data === 2 * index ? [kindOf(index), 2] : [kindOf(data - index), 1, kindOf(index), 1];
}

/** What a new type begins with. */
export function fresh(): Pick<Datatype, "isCommitted" | "title" | "attributes"> {
  return { isCommitted: false, title: "", attributes: new Map() };
}

/** Whether elements lie one behind the other without gaps. */
export function isDense({ bytes, extent, lowerBound, runs }: Datatype): boolean {
  return bytes === extent && lowerBound === 0 && runs.length <= 2 && (runs[0] ?? 0) === 0;
}

/** A part of a derived type: `count` elements of a type, from a place on. */
export interface TypePart {
  readonly offset: number;
  readonly count: number;
  readonly type: Datatype;
}

/** A type of several parts, in the order of packing. */
export function derived(
  name: string,
  parts: readonly TypePart[],
  bounds?: { lowerBound: number; extent: number },
): Datatype {
  const runs: number[] = [];
  const basics: number[] = [];
  let bytes = 0;
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  const elements = new Set<ElementType | undefined>();
  for (const { offset, count, type } of parts) {
    for (let i = 0; i < count; i++) addRuns(runs, type.runs, offset + i * type.extent);
    addBasics(basics, type.basics, count);
    bytes += count * type.bytes;
    if (count === 0) continue;
    elements.add(type.element);
    low = Math.min(low, offset + type.lowerBound);
    high = Math.max(high, offset + type.lowerBound + (count - 1) * type.extent + type.extent);
  }
  const lowerBound = bounds?.lowerBound ?? (bytes === 0 ? 0 : low);
  const extent = bounds?.extent ?? (bytes === 0 ? 0 : high - low);
  const element = elements.size === 1 ? [...elements][0] : undefined;
  return { name, bytes, extent, lowerBound, runs, basics, element, ...fresh() };
}

/** Appends the basic elements of `count` elements. */
function addBasics(basics: number[], added: readonly number[], count: number): void {
  const repeats = added.length === 2 ? 1 : count;
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (let i = 0; i < added.length; i += 2) {
      const kind = added[i] as number;
      const some = (added[i + 1] as number) * (added.length === 2 ? count : 1);
      if (some > 0 && basics.at(-2) === kind) basics.push((basics.pop() as number) + some);
      else if (some > 0) basics.push(kind, some);
    }
  }
}

/** Appends runs, and joins those that touch. */
function addRuns(runs: number[], added: readonly number[], shift: number): void {
  for (let i = 0; i < added.length; i += 2) {
    const offset = (added[i] as number) + shift;
    const length = added[i + 1] as number;
    const last = runs.length - 2;
    if (last >= 0 && (runs[last] as number) + (runs[last + 1] as number) === offset)
      runs[last + 1] = (runs[last + 1] as number) + length;
    else runs.push(offset, length);
  }
}

/** The datatypes of a program, by their handles. */
export class Datatypes {
  /** Called with each type that may be sent, or (undefined) no more, and its handle. */
  onChange: ((handle: number, type: Datatype | undefined) => void) | undefined;
  readonly #types = new Map<number, Datatype>();
  #next = FIRST_OWN;

  constructor() {
    for (const [handle, [name, bytes, element]] of Object.entries(BASIC_TYPES)) {
      // Pairs of a double and an int have four bytes of padding, which are no data.
      const runs = name === "MPI_DOUBLE_INT" ? [0, 12] : [0, bytes];
      const data = name === "MPI_DOUBLE_INT" ? 12 : bytes;
      const index = element?.endsWith("_i32") ? 4 : 0;
      this.#types.set(Number(handle), {
        name,
        bytes: data,
        extent: bytes,
        lowerBound: 0,
        runs,
        basics: basicsOf(name, element, data, index),
        element,
        ...fresh(),
        isCommitted: true,
        title: name,
      });
    }
  }

  /** @throws MpiFailure MPI_ERR_TYPE */
  get(handle: number): Datatype {
    const type = this.#types.get(handle);
    if (type === undefined) throw new MpiFailure(ERR.TYPE, `0x${(handle >>> 0).toString(16)} is no datatype`);
    return type;
  }

  /** A type for data that is sent. @throws MpiFailure MPI_ERR_TYPE, also if it is not committed */
  committed(handle: number): Datatype {
    const type = this.get(handle);
    if (!type.isCommitted)
      throw new MpiFailure(ERR.TYPE, `the datatype ${type.name} is not committed: MPI_Type_commit() is missing`);
    return type;
  }

  entries(): Iterable<readonly [handle: number, type: Datatype]> {
    return this.#types;
  }

  add(type: Datatype): number {
    this.#types.set(this.#next, type);
    return this.#next++;
  }

  /** From now on, data of the type may be sent. @throws MpiFailure MPI_ERR_TYPE */
  commit(handle: number): void {
    const type = this.get(handle);
    type.isCommitted = true;
    this.onChange?.(handle, type);
  }

  /** @throws MpiFailure MPI_ERR_TYPE */
  remove(handle: number): void {
    if (handle < FIRST_OWN)
      throw new MpiFailure(ERR.TYPE, `${this.get(handle).name} is predefined, and can't be freed`);
    this.get(handle);
    this.#types.delete(handle);
    this.onChange?.(handle, undefined);
  }
}

/** Copies bytes of the memory. */
export type Copy = (to: number, from: number, bytes: number) => void;

/** Copies the data of elements to a place, without gaps. @returns bytes */
export function pack(copy: Copy, type: Datatype, from: number, count: number, to: number): number {
  if (isDense(type)) {
    copy(to, from, count * type.bytes);
    return count * type.bytes;
  }
  let at = to;
  for (let element = 0; element < count; element++) {
    const base = from + element * type.extent;
    for (let run = 0; run < type.runs.length; run += 2) {
      const start = base + (type.runs[run] as number);
      const length = type.runs[run + 1] as number;
      copy(at, start, length);
      at += length;
    }
  }
  return at - to;
}

/** Copies packed data into elements, as far as it goes. */
export function unpack(copy: Copy, type: Datatype, from: number, bytes: number, to: number): void {
  if (isDense(type)) {
    copy(to, from, bytes);
    return;
  }
  let at = from;
  const end = from + bytes;
  for (let base = to; at < end; base += type.extent) {
    for (let run = 0; run < type.runs.length && at < end; run += 2) {
      const length = Math.min(type.runs[run + 1] as number, end - at);
      copy(base + (type.runs[run] as number), at, length);
      at += length;
    }
    if (type.bytes === 0) return;
  }
}
