// codecs.clone(): what structured clone copies, as bytes that are the same in every host. Libraries were tried (2026-11:
// msgpackr 1.11, cbor-x 1.6): both change -0, lone surrogates, holes, boxed values and the key __proto__ without a word.
import type { Handles } from "./handles.js";
import { Reader } from "./reader.js";
import { type Strings, stringsByBuffer, stringsByText } from "./strings.js";
import { Writer } from "./writer.js";

/** A buffer of more bytes is not kept: it goes with the value. */
export const KEPT_BYTES_MAX: number = 1 << 20;
/** Most bytes of an encoding whose body travels apart: it is the header of a message. Else the body stands behind it. */
const HEAD_BYTES_MAX = 1024;

/** Takes the bytes of an ArrayBuffer that an encoding lacks. */
export interface Parts {
  /** The bytes, where they are in the value. */
  body: Uint8Array | undefined;
}

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
   * @param parts may get the bytes of one ArrayBuffer, which the encoding then lacks, as long as that is short
   * @returns bytes that are valid until the next encode(); if more than KEPT_BYTES_MAX, they belong to the caller
   * @throws PAMIR_CLONE; what a getter of the value throws
   */
  encode(value: unknown, parts?: Parts): Uint8Array {
    const writer = this.#writer ?? new Writer(this.#strings, this.#handles);
    this.#writer = undefined;
    writer.write(value, parts !== undefined);
    const { body } = writer;
    if (body !== undefined) {
      writer.body = undefined;
      // A getter of the value has resized or detached it.
      if (body.length !== writer.bodyBytes) writer.write(value);
      else if (writer.at > HEAD_BYTES_MAX) writer.add(body);
      else (parts as Parts).body = body;
    }
    const bytes = writer.bytes.subarray(0, writer.at);
    // A string has room for 3 bytes a unit.
    if (writer.at <= KEPT_BYTES_MAX && writer.bytes.length <= 4 * KEPT_BYTES_MAX) this.#writer = writer;
    return bytes;
  }

  /**
   * @param bytes of encode(), perhaps in shared memory: the value has none of them
   * @param body what encode() has left out, as the bytes @throws PAMIR_CLONE
   */
  decode(bytes: Uint8Array, body?: Uint8Array): unknown {
    const reader = this.#reader ?? new Reader(this.#strings, this.#handles);
    this.#reader = undefined;
    const value = reader.read(bytes, body);
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
