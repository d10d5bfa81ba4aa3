// Writes values in the encoding of tags.ts.
import { PamiError } from "../error.js";
import type { Handles, Place } from "./handles.js";
import { partOf, pathTo } from "./path.js";
import type { Strings } from "./strings.js";
import * as T from "./tags.js";

const FIRST_BYTES = 4096;
/** Longer arrays are not searched for named properties: Object.keys() takes 10 ns an element, and 50 beyond the caches. */
const NAMES_LENGTH_MAX = 1024;
/** Shapes of as many keys that an object is compared with. */
const SHAPES_TRIED = 8;
/** Objects of a value that are searched one by one. A Map for them doubles the time of a value of twenty objects. */
const SEARCHED = 48;

const { hasOwn, keys: keysOf, getPrototypeOf } = Object;
const { isArray } = Array;
const brand = Object.prototype.toString;

interface Shape {
  readonly keys: readonly string[];
  readonly number: number;
}

/** One of the ArrayBuffers of a value turns out to be shared by views after it was written as part of one. */
class SharedBuffer {
  readonly buffer: object;
  constructor(buffer: object) {
    this.buffer = buffer;
  }
}

/** A part of a value that structured clone does not copy. */
class Refused {
  readonly part: unknown;
  readonly what: string;
  constructor(part: unknown, what: string) {
    this.part = part;
    this.what = what;
  }
}

/** Writes one value after the other into a buffer of its own. */
export class Writer {
  bytes = new Uint8Array(FIRST_BYTES);
  at = 0;
  /** The bytes of an ArrayBuffer of the value that were left out, if write() was allowed to. */
  body: Uint8Array | undefined;
  /** How many the encoding says that they are: a getter behind them may detach or resize their ArrayBuffer. */
  bodyBytes = 0;
  #mayHaveBody = false;
  readonly #strings: Strings;
  readonly #handles: Handles | undefined;
  #words = new DataView(this.bytes.buffer);
  /** The value's objects, by their numbers. */
  readonly #objects: (object | undefined)[] = [];
  /** The numbers of the value's objects beyond SEARCHED, and of all before them. */
  readonly #numbers = new Map<object, number>();
  /** Shapes of the value, by their number of keys. */
  readonly #shapes = new Map<number, Shape[]>();
  #shapeCount = 0;
  /** ArrayBuffers of which only a part was written, with a view. */
  readonly #parts = new Set<object>();
  /** ArrayBuffers that are written whole, since several views share them. */
  readonly #whole = new Set<object>();

  constructor(strings: Strings, handles?: Handles) {
    this.#strings = strings;
    this.#handles = handles;
  }

  /**
   * Writes a value from the buffer's begin. `bytes` and `at` then have its encoding, until the next write().
   * @param mayHaveBody whether it may leave out the bytes of a large ArrayBuffer: see `body`
   * @throws PAMIR_CLONE
   */
  write(value: unknown, mayHaveBody = false): void {
    this.#mayHaveBody = mayHaveBody;
    try {
      this.#restart();
      for (;;) {
        try {
          this.#value(value);
          return;
        } catch (error) {
          if (!(error instanceof SharedBuffer))
            throw explained(error, () => this.#handles?.placesOf?.(value) ?? [["value", value]]);
          this.#whole.add(error.buffer);
          this.#restart();
        }
      }
    } finally {
      this.#forget();
      this.#whole.clear();
    }
  }

  #restart(): void {
    this.#forget();
    this.at = 0;
    this.body = undefined;
    this.#shapeCount = 0;
  }

  #forget(): void {
    this.#objects.length = 0;
    if (this.#numbers.size > 0) this.#numbers.clear();
    if (this.#shapes.size > 0) this.#shapes.clear();
    if (this.#parts.size > 0) this.#parts.clear();
  }

  #room(bytes: Uint8Array<ArrayBuffer>): void {
    this.bytes = bytes;
    this.#words = new DataView(bytes.buffer);
  }

  #reserve(count: number): void {
    if (this.at + count <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.at + count));
    grown.set(this.bytes.subarray(0, this.at));
    this.#room(grown);
  }

  #varint(value: number): void {
    while (value > 0x7f) {
      this.bytes[this.at++] = (value % 128) | 0x80;
      value = Math.floor(value / 128);
    }
    this.bytes[this.at++] = value;
  }

  /** A tag and a varint of up to 53 bits. */
  #tagged(tag: number, count: number): void {
    this.#reserve(9);
    this.bytes[this.at++] = tag;
    this.#varint(count);
  }

  #tag(tag: number): void {
    this.#reserve(1);
    this.bytes[this.at++] = tag;
  }

  #value(value: unknown): void {
    switch (typeof value) {
      case "string":
        this.#string(value);
        break;
      case "number":
        this.#number(value);
        break;
      case "object":
        if (value === null) this.#tag(T.NULL);
        else this.#object(value);
        break;
      case "boolean":
        this.#tag(value ? T.TRUE : T.FALSE);
        break;
      case "undefined":
        this.#tag(T.UNDEFINED);
        break;
      case "bigint":
        this.#bigint(value);
        break;
      default:
        if (this.#isHandle(value)) {
          this.#give(undefined);
          return;
        }
        throw new Refused(value, typeof value === "function" ? `a function ${value.name}`.trimEnd() : "a symbol");
    }
  }

  /** Writes the number of what stays where it is. @returns whether the value has one */
  #isHandle(value: unknown): boolean {
    const number = this.#handles?.numberOf(value);
    if (number === undefined) return false;
    this.#tagged(T.HANDLE, number);
    return true;
  }

  #number(value: number): void {
    this.#reserve(9);
    if (value === (value | 0) && (value !== 0 || 1 / value > 0)) {
      if (value >= 0 && value <= T.SMALL_INTEGER_MAX) this.bytes[this.at++] = T.SMALL_INTEGER | value;
      else if (value === (value << 16) >> 16) {
        this.bytes[this.at] = T.INT16;
        this.#words.setInt16(this.at + 1, value, true);
        this.at += 3;
      } else {
        this.bytes[this.at] = T.INT32;
        this.#words.setInt32(this.at + 1, value, true);
        this.at += 5;
      }
      return;
    }
    this.bytes[this.at++] = T.FLOAT64;
    this.#float(value);
  }

  #float(value: number): void {
    this.#reserve(8);
    this.#words.setFloat64(this.at, value, true);
    this.at += 8;
  }

  #bigint(value: bigint): void {
    const digits = (value < 0n ? -value : value).toString(16);
    const count = (digits.length + 1) >> 1;
    this.#reserve(count + 11);
    this.bytes[this.at++] = T.BIGINT;
    this.bytes[this.at++] = value < 0n ? 1 : 0;
    this.#varint(count);
    for (let end = digits.length; end > 0; end -= 2) {
      this.bytes[this.at++] = Number.parseInt(digits.slice(Math.max(0, end - 2), end), 16);
    }
  }

  #string(value: string): void {
    const { length } = value;
    if (length > T.SHORT_STRING_MAX) {
      // At most three bytes a unit, by UTF-8.
      this.#reserve(length * 3 + 9);
      this.at = this.#strings.write(value, this.bytes, this.at);
      return;
    }
    this.#reserve(length * 2 + 3);
    const { bytes } = this;
    let at = this.at + 1;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0xff) {
        this.#units(value);
        return;
      }
      bytes[at++] = unit;
    }
    bytes[this.at] = T.SHORT_STRING | length;
    this.at = at;
  }

  /** A short string with characters above U+00FF. */
  #units(value: string): void {
    this.bytes[this.at++] = T.UTF16;
    this.bytes[this.at++] = value.length;
    if (T.unitsStart(this.at) !== this.at) this.bytes[this.at++] = 0;
    for (let i = 0; i < value.length; i++) {
      this.#words.setUint16(this.at, value.charCodeAt(i), true);
      this.at += 2;
    }
  }

  #object(value: object): void {
    const number = this.#numberOf(value);
    if (number >= 0) {
      this.#tagged(T.REF, number);
      return;
    }
    this.#give(value);
    const prototype = getPrototypeOf(value) as unknown;
    if (prototype === Object.prototype || prototype === null) {
      // As #plain(), without its frame: a value may be nested as deep as the stack.
      const keys = keysOf(value);
      this.#shape(keys);
      for (let i = 0; i < keys.length; i++) this.#value((value as Record<string, unknown>)[keys[i] as string]);
      return;
    }
    if (isArray(value)) {
      this.#array(value as unknown[]);
      return;
    }
    if (ArrayBuffer.isView(value)) {
      this.#view(value);
      return;
    }
    this.#branded(value);
  }

  /** The number of an object that was met before, or -1. */
  #numberOf(object: object): number {
    if (this.#objects.length <= SEARCHED) return this.#objects.indexOf(object);
    return this.#numbers.get(object) ?? -1;
  }

  /** Gives the next number. @param object undefined for an ArrayBuffer of which only a part is written */
  #give(object: object | undefined): void {
    const number = this.#objects.push(object) - 1;
    if (number < SEARCHED) return;
    if (number === SEARCHED) {
      for (let i = 0; i < SEARCHED; i++)
        if (this.#objects[i] !== undefined) this.#numbers.set(this.#objects[i] as object, i);
    }
    if (object !== undefined) this.#numbers.set(object, number);
  }

  #plain(value: Record<string, unknown>): void {
    const keys = keysOf(value);
    this.#shape(keys);
    for (let i = 0; i < keys.length; i++) this.#value(value[keys[i] as string]);
  }

  #shape(keys: readonly string[]): void {
    const { length } = keys;
    const shapes = this.#shapes.get(length) ?? [];
    for (let i = shapes.length - 1; i >= 0 && i >= shapes.length - SHAPES_TRIED; i--) {
      const shape = shapes[i] as Shape;
      let same = 0;
      while (same < length && shape.keys[same] === keys[same]) same++;
      if (same === length) {
        this.#tagged(T.SHAPED, shape.number);
        return;
      }
    }
    if (shapes.push({ keys, number: this.#shapeCount++ }) === 1) this.#shapes.set(length, shapes);
    this.#tagged(T.OBJECT, length);
    for (let i = 0; i < length; i++) this.#string(keys[i] as string);
  }

  #pairs(value: object, keys: readonly string[]): void {
    this.#reserve(9);
    this.#varint(keys.length);
    for (const key of keys) {
      this.#string(key);
      this.#value((value as Record<string, unknown>)[key]);
    }
  }

  #array(value: readonly unknown[]): void {
    const { length } = value;
    // A key of every element, then the names. A long array with few keys has holes.
    const keys = length <= NAMES_LENGTH_MAX || isSparse(value) ? keysOf(value) : undefined;
    if (keys === undefined) {
      this.#elements(value);
      return;
    }
    let indexed = keys.length;
    while (indexed > 0 && !isIndex(keys[indexed - 1] as string)) indexed--;
    if (indexed < keys.length) this.#tag(T.NAMED);
    if (length > 16 && indexed < length / 4) {
      this.#tagged(T.SPARSE, length);
      this.#reserve(9);
      this.#varint(indexed);
      for (const key of keys.slice(0, indexed)) {
        this.#reserve(9);
        this.#varint(Number(key));
        this.#value(value[Number(key)]);
      }
    } else this.#elements(value);
    if (indexed < keys.length) this.#pairs(value, keys.slice(indexed));
  }

  #elements(value: readonly unknown[]): void {
    const { length } = value;
    this.#tagged(T.ARRAY, length);
    for (let i = 0; i < length; i++) {
      const element = value[i];
      if (typeof element === "number") this.#number(element);
      else if (element === undefined && !hasOwn(value, i)) this.#tag(T.HOLE);
      else this.#value(element);
    }
  }

  #view(value: ArrayBufferView): void {
    const { buffer } = value;
    checkBuffer(value, buffer);
    const { byteOffset, byteLength } = value;
    const name = brand.call(value).slice(8, -1);
    const kind = T.VIEWS.indexOf(name as (typeof T.VIEWS)[number]);
    if (kind < 0) throw new Refused(value, `a ${name}`);
    const number = this.#numberOf(buffer);
    if (this.#parts.has(buffer)) throw new SharedBuffer(buffer);
    const isResizable = (buffer as { resizable?: boolean }).resizable === true;
    if (number >= 0 || isResizable || this.#whole.has(buffer)) {
      this.#tagged(T.VIEW_OF, kind);
      this.#reserve(18);
      this.#varint(byteOffset);
      const elements = (value as { length?: number }).length ?? byteLength;
      this.#varint(isResizable && isTracking(value, buffer as ArrayBuffer) ? 0 : elements + 1);
      this.#object(buffer);
      return;
    }
    // The ArrayBuffer gets the number behind the view's: another view of it may come.
    const isWhole = byteLength === buffer.byteLength;
    this.#give(isWhole ? buffer : undefined);
    if (!isWhole) this.#parts.add(buffer);
    this.#tagged(T.VIEW, kind);
    this.#raw(new Uint8Array(buffer, byteOffset, byteLength));
  }

  /** A count, and the bytes. */
  #raw(bytes: Uint8Array): void {
    const { length } = bytes;
    if (this.#mayHaveBody && this.body === undefined && length >= T.BODY_BYTES_MIN) {
      this.body = bytes;
      this.bodyBytes = length;
      this.#reserve(9);
      this.#varint(2 * length + 1);
      return;
    }
    this.#reserve(length + 17);
    this.#varint(2 * length);
    this.add(bytes);
  }

  /** Writes bytes behind what is written: an ArrayBuffer's, or those of the body behind the value. */
  add(bytes: Uint8Array): void {
    const { length } = bytes;
    this.#reserve(length + 8);
    const start = T.rawStart(this.at, length);
    this.bytes.fill(0, this.at, start);
    this.bytes.set(bytes, start);
    this.at = start + length;
  }

  #buffer(value: ArrayBuffer): void {
    checkBuffer(value, value);
    if (this.#parts.has(value)) throw new SharedBuffer(value);
    const { resizable, maxByteLength } = value as { resizable?: boolean; maxByteLength?: number };
    if (resizable === true) {
      this.#tagged(T.RESIZABLE, maxByteLength as number);
    } else this.#tag(T.BUFFER);
    this.#raw(new Uint8Array(value));
  }

  /** An object that is neither plain nor an array nor a view. */
  #branded(value: object): void {
    if (this.#handles !== undefined && this.#isHandle(value)) return;
    const name = brand.call(value).slice(8, -1);
    const write = BRANDS[name];
    if (write?.isBranded(value)) {
      write.write(this, value);
      return;
    }
    const why = whyRefused(value, name);
    if (why !== undefined) throw new Refused(value, why);
    this.#plain(value as Record<string, unknown>);
  }

  /** @internal What BRANDS writes. */
  readonly parts = {
    map: (value: Map<unknown, unknown>): void => {
      // A getter of a value may change the map: what is copied is what the map had.
      const pairs = [...value];
      this.#tagged(T.MAP, pairs.length);
      for (const [key, member] of pairs) {
        this.#value(key);
        this.#value(member);
      }
    },
    set: (value: Set<unknown>): void => {
      const members = [...value];
      this.#tagged(T.SET, members.length);
      for (const member of members) this.#value(member);
    },
    date: (value: Date): void => {
      this.#tag(T.DATE);
      this.#float(Date.prototype.getTime.call(value));
    },
    regexp: (value: RegExp): void => {
      this.#tag(T.REGEXP);
      this.#string(value.source);
      this.#string(value.flags);
    },
    error: (value: Error): void => this.#error(value),
    exception: (value: DOMException): void => {
      this.#tag(T.EXCEPTION);
      this.#string(String(value.name));
      this.#string(String(value.message));
    },
    buffer: (value: ArrayBuffer): void => this.#buffer(value),
    boxed: (value: object): void => {
      this.#tag(T.BOXED);
      this.#value((value as { valueOf(): unknown }).valueOf());
    },
  };

  #error(value: Error): void {
    const fields: Record<string, unknown> = {};
    const { name } = value as { name: unknown };
    const known = T.ERRORS.indexOf(name as (typeof T.ERRORS)[number]);
    if (known < 0 && typeof name === "string") fields.name = name;
    if (hasOwn(value, "message")) fields.message = String(value.message);
    const { stack } = value as { stack?: unknown };
    if (typeof stack === "string") fields.stack = stack;
    for (const key of ["cause", "errors"]) {
      if (hasOwn(value, key)) fields[key] = (value as unknown as Record<string, unknown>)[key];
    }
    for (const key of keysOf(value)) {
      if (!hasOwn(fields, key)) fields[key] = (value as unknown as Record<string, unknown>)[key];
    }
    this.#tagged(T.ERROR, Math.max(0, known));
    this.#pairs(fields, keysOf(fields));
  }
}

/** @param owner the view or the buffer itself */
function checkBuffer(owner: object, buffer: ArrayBufferLike): void {
  if (brand.call(buffer) === "[object SharedArrayBuffer]") {
    throw new Refused(owner, "shared memory: send a copy of its bytes, or a region's handle");
  }
  if (buffer.byteLength === 0 && isDetached(buffer)) throw new Refused(owner, "detached memory");
}

function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    return new Uint8Array(buffer).length > 0;
  } catch {
    return true;
  }
}

/** The error for what a write of a value threw. @param placesOf gives the places of the value */
function explained(error: unknown, placesOf: () => readonly Place[]): unknown {
  if (error instanceof Refused) {
    const where = pathTo(placesOf(), error.part);
    return new PamiError("PAMIR_CLONE", `${where} can't be copied to another task: it is ${error.what}`);
  }
  if (error instanceof RangeError && /call stack/i.test(error.message)) {
    const places = placesOf();
    const where = places.length === 1 ? places[0]?.[0] : partOf(places);
    return new PamiError("PAMIR_CLONE", `${where} can't be copied to another task: it is nested deeper than the stack`);
  }
  return error;
}

/** Whether an array, too long to list its keys for nothing, has mostly holes: asked of 64 of its places. */
function isSparse(value: readonly unknown[]): boolean {
  let holes = 0;
  for (let i = 0; i < 64; i++) {
    if (!hasOwn(value, Math.floor((i * (value.length - 1)) / 63))) holes++;
  }
  return holes > 32;
}

function isIndex(key: string): boolean {
  const index = Number(key) >>> 0;
  return String(index) === key && index !== 0xffffffff;
}

/**
 * Whether a view follows the length of its resizable ArrayBuffer: asked by the length that it would have. A view of a fixed
 * length that reaches to the end can't be told apart.
 */
function isTracking(view: ArrayBufferView, buffer: ArrayBuffer): boolean {
  const size = (view as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
  return view.byteLength === Math.floor((buffer.byteLength - view.byteOffset) / size) * size;
}

/** Whether a value has the internal slots of a kind: its prototype's method takes it. */
function takes(method: (this: never) => unknown): (value: object) => boolean {
  return (value) => {
    try {
      method.call(value as never);
      return true;
    } catch {
      return false;
    }
  };
}

const getter = (prototype: object, name: string): (() => unknown) =>
  Object.getOwnPropertyDescriptor(prototype, name)?.get as () => unknown;

type Parts = Writer["parts"];
type Brand = { isBranded(value: object): boolean; write(writer: Writer, value: object): void };

function branded<K extends keyof Parts>(part: K, isBranded: (value: object) => boolean): Brand {
  return { isBranded, write: (writer, value) => (writer.parts[part] as (value: unknown) => void)(value) };
}

/** Objects with internal slots, by the name that Object.prototype.toString() gives: the same in each realm. */
const BRANDS: { readonly [name: string]: Brand | undefined } = {
  __proto__: null as never,
  Map: branded("map", takes(getter(Map.prototype, "size") as never)),
  Set: branded("set", takes(getter(Set.prototype, "size") as never)),
  Date: branded("date", takes(Date.prototype.getTime as never)),
  RegExp: branded("regexp", takes(getter(RegExp.prototype, "source") as never)),
  Error: branded("error", () => true),
  DOMException: branded("exception", () => true),
  ArrayBuffer: branded("buffer", takes(getter(ArrayBuffer.prototype, "byteLength") as never)),
  SharedArrayBuffer: branded("buffer", () => true),
  Number: branded("boxed", takes(Number.prototype.valueOf as never)),
  String: branded("boxed", takes(String.prototype.valueOf as never)),
  Boolean: branded("boxed", takes(Boolean.prototype.valueOf as never)),
  BigInt: branded("boxed", takes(BigInt.prototype.valueOf as never)),
};

/** Objects of the language that structured clone refuses, and one of Node's that only Node can copy. */
const REFUSED =
  /^(?:Promise|WeakMap|WeakSet|WeakRef|FinalizationRegistry|Symbol|Module|KeyObject|(?:Async)?Generator|.* Iterator)$/;

/** Why an object is no object of the program's own; undefined: it is one. */
function whyRefused(value: object, name: string): string | undefined {
  if (REFUSED.test(name)) return `a ${name}`;
  const { constructor: type } = value as { constructor?: unknown };
  if (typeof type !== "function" || type === Object) return undefined;
  return (globalThis as Record<string, unknown>)[type.name] === type ? `a ${type.name}` : undefined;
}
