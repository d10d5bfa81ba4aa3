// A program's memory, as WASI's calls see it: each access is checked, for a DataView's own error is no error number.
import { copyInto, copyOf } from "../../support/copy.js";
import { fail } from "./numbers.js";

/** Bytes of `__wasi_iovec_t`: a pointer and a length. */
const VECTOR_BYTES = 8;
/** As Linux's IOV_MAX. */
const VECTORS_MAX = 1024;

/** Pointers are those that WebAssembly passes: signed numbers of 32 bits. All methods throw EFAULT beyond the memory. */
export class ProgramMemory {
  readonly #get: () => Uint8Array;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(this.#bytes.buffer);

  constructor(get: () => Uint8Array) {
    this.#get = get;
  }

  /** The view for `count` bytes at `pointer`. A memory that has grown, and its old buffer detached, has a new one. */
  #at(pointer: number, count: number): DataView {
    const bytes = this.#get();
    if (bytes.buffer !== this.#bytes.buffer || bytes.byteLength !== this.#bytes.byteLength) {
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.#bytes = bytes;
    if ((pointer >>> 0) + (count >>> 0) > bytes.byteLength) fail("FAULT");
    return this.#view;
  }

  /** Checks that a result has its place, before a call does what it can't take back. */
  need(pointer: number, count: number): void {
    this.#at(pointer, count);
  }

  u8(pointer: number): number {
    return this.#at(pointer, 1).getUint8(pointer >>> 0);
  }

  u16(pointer: number): number {
    return this.#at(pointer, 2).getUint16(pointer >>> 0, true);
  }

  u32(pointer: number): number {
    return this.#at(pointer, 4).getUint32(pointer >>> 0, true);
  }

  u64(pointer: number): bigint {
    return this.#at(pointer, 8).getBigUint64(pointer >>> 0, true);
  }

  setU8(pointer: number, value: number): void {
    this.#at(pointer, 1).setUint8(pointer >>> 0, value);
  }

  setU16(pointer: number, value: number): void {
    this.#at(pointer, 2).setUint16(pointer >>> 0, value, true);
  }

  setU32(pointer: number, value: number): void {
    this.#at(pointer, 4).setUint32(pointer >>> 0, value, true);
  }

  setU64(pointer: number, value: bigint): void {
    this.#at(pointer, 8).setBigUint64(pointer >>> 0, value, true);
  }

  /** A part of the memory itself, until the memory grows. */
  part(pointer: number, count: number): Uint8Array {
    this.#at(pointer, count);
    return this.#bytes.subarray(pointer >>> 0, (pointer >>> 0) + (count >>> 0));
  }

  /** Writes bytes. */
  put(pointer: number, bytes: Uint8Array): void {
    copyInto(this.part(pointer, bytes.length), 0, bytes);
  }

  /** A text of UTF-8. @throws EILSEQ other bytes */
  text(pointer: number, count: number): string {
    // Browsers' decoders take no shared memory, so that a copy is decoded.
    const bytes = copyOf(this.part(pointer, count));
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return fail("ILSEQ");
    }
  }

  /** The parts that `count` vectors name. */
  vectors(pointer: number, count: number): Uint8Array[] {
    if (count >>> 0 > VECTORS_MAX) fail("INVAL");
    const found: Uint8Array[] = [];
    for (let i = 0; i < count; i++) {
      const at = (pointer >>> 0) + i * VECTOR_BYTES;
      found.push(this.part(this.u32(at), this.u32(at + 4)));
    }
    return found;
  }

  /** What `count` vectors name: a copy, or the memory itself where one vector has all bytes. */
  gathered(pointer: number, count: number): Uint8Array {
    const parts = this.vectors(pointer, count).filter(({ length }) => length > 0);
    if (parts.length === 1) return parts[0] as Uint8Array;
    const all = new Uint8Array(parts.reduce((bytes, { length }) => bytes + length, 0));
    let at = 0;
    for (const part of parts) {
      copyInto(all, at, part);
      at += part.length;
    }
    return all;
  }
}
