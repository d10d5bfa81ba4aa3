// codecs.clone(): what structured clone copies, as bytes that are the same in every host. Libraries were tried (2026-11:
// msgpackr 1.11, cbor-x 1.6): both change -0, lone surrogates, holes, boxed values and the key __proto__ without a word.
import type { Handles } from "./handles.js";
import { Reader } from "./reader.js";
import { type Strings, stringsByBuffer, stringsByText } from "./strings.js";
import { Writer } from "./writer.js";

/** A buffer of more bytes is not kept: it goes with the value. */
export const KEPT_BYTES_MAX: number = 1 << 20;

/** Writes and reads values. */
export class Cloner {
  readonly #strings: Strings;
  readonly #handles: Handles | undefined;
  /** Kept between values; away while one is written: a getter of a value may encode another one. */
  #writer: Writer | undefined;
  #reader: Reader | undefined;

  constructor(strings: Strings = stringsByBuffer() ?? stringsByText(), handles?: Handles) {
    this.#strings = strings;
    this.#handles = handles;
  }

  /**
   * @returns bytes that are valid until the next encode(); if more than KEPT_BYTES_MAX, they belong to the caller
   * @throws PAMIR_CLONE; what a getter of the value throws
   */
  encode(value: unknown): Uint8Array {
    const writer = this.#writer ?? new Writer(this.#strings, this.#handles);
    this.#writer = undefined;
    writer.write(value);
    const bytes = writer.bytes.subarray(0, writer.at);
    // A string has room for 3 bytes a unit.
    if (writer.at <= KEPT_BYTES_MAX && writer.bytes.length <= 4 * KEPT_BYTES_MAX) this.#writer = writer;
    return bytes;
  }

  /** @param bytes of encode(), perhaps in shared memory: the value has none of them @throws PAMIR_CLONE */
  decode(bytes: Uint8Array): unknown {
    const reader = this.#reader ?? new Reader(this.#strings, this.#handles);
    this.#reader = undefined;
    const value = reader.read(bytes);
    this.#reader = reader;
    return value;
  }
}

let own: Cloner | undefined;

/** The cloner of this thread, made when it is first asked for; with handles, another one. */
export function clonerOf(handles?: Handles): Cloner {
  if (handles !== undefined) return new Cloner(undefined, handles);
  own ??= new Cloner();
  return own;
}
