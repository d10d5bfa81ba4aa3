// codecs.clone(): what structured clone copies, as bytes that are the same in every host. Libraries were tried (2026-11:
// msgpackr 1.11, cbor-x 1.6): both change -0, lone surrogates, holes, boxed values and the key __proto__ without a word.
import { Reader } from "./reader.js";
import { type Strings, stringsByBuffer, stringsByText } from "./strings.js";
import { Writer } from "./writer.js";

/** A scratch buffer with more of a value than this is given away with it, not copied. */
const COPIED_BYTES_MAX = 1 << 16;

/** Writes and reads values. */
export class Cloner {
  readonly #strings: Strings;
  /** Kept between values; away while one is written: a getter of a value may encode another one. */
  #writer: Writer | undefined;
  #reader: Reader | undefined;

  constructor(strings: Strings = stringsByBuffer() ?? stringsByText()) {
    this.#strings = strings;
  }

  /** @returns bytes that belong to the caller @throws PAMIR_CLONE; what a getter of the value throws */
  encode(value: unknown): Uint8Array {
    const writer = this.#writer ?? new Writer(this.#strings);
    this.#writer = undefined;
    writer.write(value);
    if (writer.at > COPIED_BYTES_MAX) return writer.bytes.subarray(0, writer.at);
    this.#writer = writer;
    return writer.bytes.slice(0, writer.at);
  }

  /** @param bytes of encode(), perhaps in shared memory: the value has none of them @throws PAMIR_CLONE */
  decode(bytes: Uint8Array): unknown {
    const reader = this.#reader ?? new Reader(this.#strings);
    this.#reader = undefined;
    const value = reader.read(bytes);
    this.#reader = reader;
    return value;
  }
}

let cloner: Cloner | undefined;

/** The one of this thread, made with the first value. */
function own(): Cloner {
  cloner ??= new Cloner();
  return cloner;
}

export const encodeClone = (value: unknown): Uint8Array => own().encode(value);
export const decodeClone = (bytes: Uint8Array): unknown => own().decode(bytes);
