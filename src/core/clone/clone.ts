// codecs.clone(): whatever structured clone copies, as bytes, the same in every host.
import type { Codec } from "../codec.js";
import { Reader } from "./reader.js";
import { Writer } from "./writer.js";

/** Kept between values. A getter of a value, or toJSON() of a caller's, may encode another one meanwhile. */
let idleWriter: Writer | undefined;
let idleReader: Reader | undefined;
/** A scratch buffer with more of a value than this is given away with it, not copied. */
const COPIED_BYTES_MAX = 1 << 16;

/** Encodes a value, and passes the bytes on: they are valid until `use` returns. @throws PAMIR_CLONE */
export function withClone<Result>(value: unknown, use: (bytes: Uint8Array) => Result): Result {
  const writer = idleWriter ?? new Writer();
  idleWriter = undefined;
  try {
    writer.write(value);
    return use(writer.bytes.subarray(0, writer.at));
  } finally {
    writer.trim();
    idleWriter = writer;
  }
}

/** @throws PAMIR_CLONE */
export function encodeClone(value: unknown): Uint8Array {
  const writer = idleWriter ?? new Writer();
  idleWriter = undefined;
  writer.write(value);
  if (writer.at > COPIED_BYTES_MAX) return writer.bytes.subarray(0, writer.at);
  idleWriter = writer;
  return writer.bytes.slice(0, writer.at);
}

/** @throws PAMIR_CLONE */
export function decodeClone(bytes: Uint8Array): unknown {
  const reader = idleReader ?? new Reader();
  idleReader = undefined;
  const value = reader.read(bytes);
  idleReader = reader;
  return value;
}

export const cloneCodec: Codec<unknown> = { encode: encodeClone, decode: decodeClone };
