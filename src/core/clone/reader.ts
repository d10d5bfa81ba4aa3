// Reads values in the encoding of tags.ts. The bytes may come from a peer that lies: each count is compared with the bytes that
// are left before anything is made of it.

import { PamiError } from "../error.js";
import type { Handles } from "./handles.js";
import { copyInSpare } from "./spare.js";
import type { Strings } from "./strings.js";
import * as T from "./tags.js";

/** Short strings that were read lately, by a hash: a key is mostly one of them, and a new string takes 50 ns. */
const RECENT = 1024;
const RECENT_LENGTH_MAX = 24;
const recent: (string | undefined)[] = new Array(RECENT).fill(undefined);

export class Reader {
  readonly #strings: Strings;
  readonly #handles: Handles | undefined;
  #bytes: Uint8Array = EMPTY;
  #body: Uint8Array | undefined;
  /** Bytes of a body behind the value. */
  #behind = 0;
  #words: DataView = NO_WORDS;
  #at = 0;
  #objects: unknown[] = [];
  #shapes: string[][] = [];

  constructor(strings: Strings, handles?: Handles) {
    this.#strings = strings;
    this.#handles = handles;
  }

  /**
   * Reads the value that bytes encode. They may be shared memory, and are not needed afterwards.
   * @param body what the writer has left out @throws PAMIR_CLONE
   */
  read(bytes: Uint8Array, body?: Uint8Array): unknown {
    this.#bytes = bytes;
    this.#body = body;
    this.#behind = 0;
    this.#words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = 0;
    try {
      const value = this.#value();
      if (this.#behind > 0) this.#at = T.rawStart(this.#at, this.#behind) + this.#behind;
      if (this.#at !== bytes.length) throw this.#malformed(`${bytes.length - this.#at} bytes behind the value`);
      if (this.#body !== undefined) throw this.#malformed("a body that no ArrayBuffer has");
      return value;
    } catch (error) {
      if (error instanceof PamiError) throw error;
      // A count of the peer's that the host refuses, an offset beyond the bytes, a nesting too deep.
      throw new PamiError("PAMIR_CLONE", `bytes that are no clone of a value: at byte ${this.#at}: ${String(error)}`);
    } finally {
      this.#bytes = EMPTY;
      this.#body = undefined;
      this.#words = NO_WORDS;
      this.#objects = [];
      this.#shapes = [];
    }
  }

  #malformed(what: string): PamiError {
    return new PamiError("PAMIR_CLONE", `bytes that are no clone of a value: ${what}, at byte ${this.#at}`);
  }

  #byte(): number {
    if (this.#at >= this.#bytes.length) throw this.#malformed("they end too early");
    return this.#bytes[this.#at++] as number;
  }

  #varint(): number {
    let byte = this.#byte();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let scale = 128; byte >= 0x80; scale *= 128) {
      if (scale > 2 ** 49) throw this.#malformed("a count beyond 2^53");
      byte = this.#byte();
      value += (byte & 0x7f) * scale;
    }
    return value;
  }

  /** A count of things that take at least so many bytes each. */
  #count(bytesEach = 1): number {
    const count = this.#varint();
    if (count * bytesEach > this.#bytes.length - this.#at)
      throw this.#malformed(`a count of ${count} beyond the bytes`);
    return count;
  }

  #value(): unknown {
    const tag = this.#byte();
    if (tag >= T.SMALL_INTEGER) return tag & T.SMALL_INTEGER_MAX;
    if (tag >= T.SHORT_STRING) return this.#short(tag & T.SHORT_STRING_MAX);
    switch (tag) {
      case T.SHAPED: {
        const keys = this.#shapes[this.#varint()];
        if (keys === undefined) throw this.#malformed("a shape that has not come");
        return this.#object(keys);
      }
      case T.OBJECT:
        return this.#object(this.#newShape());
      case T.ARRAY:
        return this.#array();
      case T.FLOAT64:
        return this.#float();
      case T.INT16:
        this.#at += 2;
        return this.#words.getInt16(this.#at - 2, true);
      case T.INT32:
        this.#at += 4;
        return this.#words.getInt32(this.#at - 4, true);
      case T.UNDEFINED:
        return undefined;
      case T.NULL:
        return null;
      case T.TRUE:
        return true;
      case T.FALSE:
        return false;
      case T.LATIN1:
      case T.UTF16:
      case T.UTF8:
        return this.#text(tag);
      case T.REF:
        return this.#reference();
      default:
        return this.#rare(tag);
    }
  }

  #rare(tag: number): unknown {
    switch (tag) {
      case T.BIGINT:
        return this.#bigint();
      case T.SPARSE:
        return this.#sparse();
      case T.NAMED:
        return this.#named();
      case T.MAP:
        return this.#map();
      case T.SET:
        return this.#set();
      case T.DATE:
        return this.#made(new Date(this.#float()));
      case T.REGEXP:
        return this.#madeOf(() => new RegExp(this.#string(), this.#string()));
      case T.ERROR:
        return this.#error();
      case T.EXCEPTION:
        return this.#exception();
      case T.BUFFER:
        return this.#made(this.#raw().buffer);
      case T.RESIZABLE:
        return this.#resizable();
      case T.VIEW:
        return this.#view();
      case T.VIEW_OF:
        return this.#viewOf();
      case T.BOXED:
        return this.#madeOf(() => Object(this.#value()) as unknown);
      case T.HANDLE:
        return this.#handle();
      default:
        throw this.#malformed(`tag ${tag}`);
    }
  }

  /** Gives an object its number. */
  #made<T>(object: T): T {
    this.#objects.push(object);
    return object;
  }

  /** Gives an object its number, before what it is made of is read. */
  #madeOf<T>(make: () => T): T {
    const number = this.#objects.push(undefined) - 1;
    const object = make();
    this.#objects[number] = object;
    return object;
  }

  #handle(): unknown {
    const number = this.#varint();
    const handles = this.#handles;
    if (handles === undefined) throw this.#malformed(`handle ${number}, where none is expected`);
    return this.#madeOf(() => handles.partOf(number));
  }

  #reference(): unknown {
    const number = this.#varint();
    const object = this.#objects[number];
    if (object === undefined) throw this.#malformed(`object ${number}, which has not come`);
    return object;
  }

  #float(): number {
    this.#at += 8;
    return this.#words.getFloat64(this.#at - 8, true);
  }

  /** A string of up to 63 characters of one byte. */
  #short(length: number): string {
    const start = this.#at;
    const end = start + length;
    if (end > this.#bytes.length) throw this.#malformed(`a string of ${length} bytes beyond the bytes`);
    this.#at = end;
    if (length > RECENT_LENGTH_MAX) return this.#strings.readLatin1(this.#bytes, start, end);
    if (length === 0) return "";
    const bytes = this.#bytes;
    let hash = length;
    for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + (bytes[i] as number)) | 0;
    const place = (hash ^ (hash >>> 11)) & (RECENT - 1);
    const known = recent[place];
    if (known !== undefined && known.length === length) {
      let same = 0;
      while (same < length && known.charCodeAt(same) === bytes[start + same]) same++;
      if (same === length) return known;
    }
    const text = this.#strings.readLatin1(bytes, start, end);
    recent[place] = text;
    return text;
  }

  #text(tag: number): string {
    const bytes = this.#varint() * (tag === T.UTF16 ? 2 : 1);
    const start = tag === T.UTF16 ? T.unitsStart(this.#at) : this.#at;
    const end = start + bytes;
    if (end > this.#bytes.length) throw this.#malformed(`a string of ${bytes} bytes beyond the bytes`);
    this.#at = end;
    if (tag === T.LATIN1) return this.#strings.readLatin1(this.#bytes, start, end);
    if (tag === T.UTF16) return this.#strings.readUtf16(this.#bytes, start, end);
    return this.#strings.readUtf8(this.#bytes, start, end);
  }

  #string(): string {
    const tag = this.#byte();
    if (tag >= T.SHORT_STRING && tag < T.SMALL_INTEGER) return this.#short(tag & T.SHORT_STRING_MAX);
    if (tag >= T.LATIN1 && tag <= T.UTF8) return this.#text(tag);
    throw this.#malformed(`tag ${tag} where a string is expected`);
  }

  #newShape(): string[] {
    const count = this.#count();
    const keys: string[] = [];
    for (let i = 0; i < count; i++) keys.push(this.#string());
    this.#shapes.push(keys);
    return keys;
  }

  #object(keys: readonly string[]): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    this.#objects.push(object);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as string;
      if (key === "__proto__") define(object, key, this.#value());
      else object[key] = this.#value();
    }
    return object;
  }

  #array(): unknown[] {
    const length = this.#count();
    const array: unknown[] = [];
    this.#objects.push(array);
    for (let i = 0; i < length; i++) {
      if (this.#bytes[this.#at] === T.HOLE) {
        this.#at++;
        array.length = i + 1;
      } else array.push(this.#value());
    }
    return array;
  }

  #sparse(): unknown[] {
    const length = this.#varint();
    const count = this.#count(2);
    const array: unknown[] = this.#made([]);
    if (length > 0xffffffff) throw this.#malformed(`an array of ${length} elements`);
    array.length = length;
    for (let i = 0; i < count; i++) {
      const index = this.#varint();
      if (index >= length) throw this.#malformed(`element ${index} of an array of ${length}`);
      array[index] = this.#value();
    }
    return array;
  }

  #named(): unknown {
    const array = this.#value();
    if (!Array.isArray(array)) throw this.#malformed("names of what is no array");
    this.#fields(array);
    return array;
  }

  #fields(object: object): void {
    const count = this.#count(2);
    for (let i = 0; i < count; i++) define(object, this.#string(), this.#value());
  }

  #map(): Map<unknown, unknown> {
    const count = this.#count(2);
    const map = this.#made(new Map());
    for (let i = 0; i < count; i++) {
      const key = this.#value();
      map.set(key, this.#value());
    }
    return map;
  }

  #set(): Set<unknown> {
    const count = this.#count();
    const set = this.#made(new Set());
    for (let i = 0; i < count; i++) set.add(this.#value());
    return set;
  }

  #error(): Error {
    const name = T.ERRORS[this.#varint()];
    if (name === undefined) throw this.#malformed("an unknown kind of error");
    const error = this.#made(name === "AggregateError" ? new AggregateError([]) : new globalThis[name]());
    // Both come with the fields, where the original has them.
    Reflect.deleteProperty(error, "stack");
    Reflect.deleteProperty(error, "errors");
    const count = this.#count(2);
    for (let i = 0; i < count; i++) {
      const key = this.#string();
      define(error, key, this.#value(), !HIDDEN.has(key));
    }
    return error;
  }

  #exception(): unknown {
    return this.#madeOf(() => {
      const name = this.#string();
      const message = this.#string();
      const { DOMException } = globalThis;
      if (DOMException === undefined) return Object.assign(new Error(message), { name });
      return new DOMException(message, name);
    });
  }

  /** A copy of bytes. */
  #raw(): Uint8Array<ArrayBuffer> {
    const twice = this.#varint();
    const count = Math.floor(twice / 2);
    if (twice % 2 === 1) return this.#takeBody(count);
    const start = T.rawStart(this.#at, count);
    if (start + count > this.#bytes.length) throw this.#malformed(`${count} bytes beyond the bytes`);
    this.#at = start + count;
    return copyInSpare(this.#bytes.subarray(start, this.#at));
  }

  /** The bytes of the body: they came apart, or stand behind the value. */
  #takeBody(count: number): Uint8Array<ArrayBuffer> {
    const { length } = this.#bytes;
    const body = this.#body;
    const left = body?.length ?? length - this.#at;
    if (this.#behind > 0 || (body === undefined ? left < count : left !== count))
      throw this.#malformed(`a body of ${count} bytes, where ${left} came`);
    this.#body = undefined;
    if (body !== undefined) return copyInSpare(body);
    this.#behind = count;
    return copyInSpare(this.#bytes.subarray(length - count));
  }

  #resizable(): ArrayBuffer {
    const maxByteLength = this.#varint();
    return this.#madeOf(() => {
      const bytes = this.#raw();
      if (maxByteLength < bytes.length)
        throw this.#malformed(`a buffer of ${bytes.length}, at most ${maxByteLength} bytes`);
      const Resizable = ArrayBuffer as new (length: number, options: { maxByteLength: number }) => ArrayBuffer;
      const buffer = new Resizable(bytes.length, { maxByteLength });
      new Uint8Array(buffer).set(bytes);
      return buffer;
    });
  }

  #viewType(): ViewType {
    const name = T.VIEWS[this.#varint()];
    const type = name === undefined ? undefined : (globalThis as unknown as Record<string, ViewType | undefined>)[name];
    if (type === undefined) throw this.#malformed(`a view that this host does not have: ${name ?? "unknown"}`);
    return type;
  }

  #view(): ArrayBufferView {
    const type = this.#viewType();
    const number = this.#objects.push(undefined, undefined) - 2;
    const bytes = this.#raw();
    const view = type === Uint8Array ? bytes : new type(bytes.buffer);
    this.#objects[number] = view;
    this.#objects[number + 1] = bytes.buffer;
    return view;
  }

  #viewOf(): ArrayBufferView {
    const type = this.#viewType();
    return this.#madeOf(() => {
      const byteOffset = this.#varint();
      const length = this.#varint();
      const buffer = this.#value();
      if (!(buffer instanceof ArrayBuffer)) throw this.#malformed("a view of what is no ArrayBuffer");
      return length === 0 ? new type(buffer, byteOffset) : new type(buffer, byteOffset, length - 1);
    });
  }

  #bigint(): bigint {
    const isNegative = this.#byte() === 1;
    const count = this.#count();
    let digits = "";
    for (let i = this.#at + count - 1; i >= this.#at; i--)
      digits += (this.#bytes[i] as number).toString(16).padStart(2, "0");
    this.#at += count;
    const value = BigInt(`0x${digits || "0"}`);
    return isNegative ? -value : value;
  }
}

type ViewType = new (buffer: ArrayBuffer, byteOffset?: number, length?: number) => ArrayBufferView;

const EMPTY = new Uint8Array();
const NO_WORDS = new DataView(EMPTY.buffer);
/** Fields of an error that are not enumerable. */
const HIDDEN = new Set(["name", "message", "stack", "cause", "errors"]);

/** Sets a property of the object's own, whatever its prototype has. */
function define(object: object, key: string, value: unknown, enumerable = true): void {
  Object.defineProperty(object, key, { value, writable: true, configurable: true, enumerable });
}
