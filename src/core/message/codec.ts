// Codecs turn values into bytes and back, for calls and streams. A codec is any object with encode() and decode(), so
// existing libraries fit: `import * as msgpack from "@msgpack/msgpack"`, `cbor-x`, `msgpackr`.
import { DISPATCH_ID_MAX } from "../../../assembly/layout.js";
import { isPromised } from "../../support/promise.js";
import { decodeText, encodeText } from "../../support/text.js";
import { checkCodec } from "../check.js";
import { clonerOf, KEPT_BYTES_MAX, type Parts } from "../clone/clone.js";
import type { Handles } from "../clone/handles.js";
import { type Endpoint, nameOf } from "../endpoint.js";
import { checkInteger, PamiError, show } from "../error.js";
import { SUCCESS } from "../result.js";
import type { CallScope } from "./call-scope.js";
import type { Handler } from "./dispatch.js";

export type { Parts };

/**
 * Turns values into bytes and back, at once: encode() and decode() return no promises. A program
 * that has to wait does so before the send, or in the handler.
 */
export interface Codec<T> {
  /** Encodes a value. The bytes belong to pamir until they are sent. */
  encode(value: T): Uint8Array;
  /** Decodes bytes. They lie in ordinary memory and belong to the codec. */
  decode(bytes: Uint8Array): T;
  /** True for an `InPlaceCodec` alone. */
  readonly inPlace?: boolean | undefined;
}

/** A codec that saves copies. */
export interface InPlaceCodec<T> extends Codec<T> {
  /** Tells it from other codecs. */
  readonly inPlace: true;
  /**
   * Of calls and their replies, a large ArrayBuffer may travel apart from the rest of a value: encode() gets `parts`, and the
   * other side's decode() the `body`. Both sides of a dispatch id then have such a codec.
   */
  readonly hasParts?: true;
  /**
   * Encodes a value. Up to 1 MiB of bytes are valid until the next encode() only; more belong to pamir.
   * @param peer the endpoint that gets them
   * @param parts its `body` is undefined, and may be set
   */
  encode(value: T, peer?: Endpoint, parts?: Parts): Uint8Array;
  /**
   * Decodes bytes in place. They are perhaps shared memory, and valid until it returns.
   * @param peer the endpoint that has sent them
   * @param body of a value in two parts: valid as the bytes
   */
  decode(bytes: Uint8Array, peer?: Endpoint, body?: Uint8Array): T;
}

/** What codecs.json() has made: debug mode looks at their values. */
const jsonCodecs = new WeakSet<object>();

/** Looks at a value that codecs.json() is about to encode; undefined outside of debug mode. */
export type JsonCheck = ((value: unknown) => void) | undefined;

/** Codecs without a library. */
export const codecs = {
  /** Passes bytes through. */
  bytes: { encode: (value) => value, decode: (bytes) => bytes } as Codec<Uint8Array>,
  /** Encodes a string as UTF-8. */
  text: { encode: encodeText, decode: decodeText } as Codec<string>,
  /**
   * Makes a codec for JSON values and `undefined`. As JSON.stringify(), it changes or leaves out what JSON lacks: a Map
   * becomes {}, NaN null, and `undefined` goes from an object. Of a job with `debug: true`, calls, messages and replies throw
   * PAMIR_CLONE instead, with the place of that part. There, an object with a method `toJSON` passes; a Date does not, since
   * it would arrive as a string. What is posted to a port of `pamir/port` is not looked at.
   */
  json<T = unknown>(): Codec<T> {
    const codec: Codec<T> = {
      encode: (value) => (value === undefined ? new Uint8Array() : encodeText(JSON.stringify(value))),
      decode: (bytes) => (bytes.length === 0 ? undefined : JSON.parse(decodeText(bytes))) as T,
    };
    jsonCodecs.add(codec);
    return codec;
  },
  /**
   * Makes a codec for whatever structured clone copies, in every host: also Map, Set, Date, RegExp, bigint, typed arrays,
   * ArrayBuffer, errors, cycles, undefined, -0, NaN, holes of arrays, lone surrogates. Instances of classes arrive as plain
   * objects. What its encode() gives is valid until the next encode() of such a codec, if it has at most 1 MiB. Errors keep
   * more than structured clone keeps: `cause`, `errors`, own fields, and a name of their own. Named properties of arrays of
   * more than 1,024 elements are left out. Getters are called once; but all of a value's anew where a view of a part of an
   * ArrayBuffer turns out not to be its only one, and where a getter resizes an ArrayBuffer. Shared memory, functions, symbols and objects of the host (Blob, URL, Promise, …)
   * are refused with PAMIR_CLONE, which names their place in the value.
   * @param handles numbers for parts that stay where they are, such as functions
   */
  clone<T = unknown>(handles?: Handles): InPlaceCodec<T> {
    const cloner = clonerOf(handles);
    return {
      encode: (value, _, parts) => cloner.encode(value, parts),
      decode: (bytes, _, body) => cloner.decode(bytes, body) as T,
      inPlace: true,
    };
  },
};

/** A dispatch id with the codecs of its messages and of its handler's replies. */
export interface DispatchId<Request, Reply = void> {
  /** The dispatch id's number: 0 … 4095. */
  readonly id: number;
  /** Codec of messages and requests. */
  readonly request: Codec<Request>;
  /** Codec of replies. If undefined, the handler sends no value back. */
  readonly reply: Codec<Reply> | undefined;
}

/** A typed dispatch id, for both sides to share. @throws PAMIR_INVAL */
export function dispatchId<Request>(id: number, request: Codec<Request>): DispatchId<Request>;
export function dispatchId<Request, Reply>(
  id: number,
  request: Codec<Request>,
  reply: Codec<Reply>,
): DispatchId<Request, Reply>;
export function dispatchId(id: number, request: Codec<unknown>, reply?: Codec<unknown>): DispatchId<unknown, unknown> {
  checkInteger("dispatch id", id, 0, DISPATCH_ID_MAX);
  checkCodec("codec", request);
  if (reply !== undefined) checkCodec("codec", reply);
  return { id, request, reply };
}

/** Returns the number of a dispatch id. @param id the caller's argument @throws PAMIR_INVAL */
export function numberOf(id: unknown): number {
  const {
    id: number,
    request,
    reply,
  } = (typeof id === "object" && id !== null ? id : {}) as Partial<DispatchId<unknown, unknown>>;
  if (number === undefined) {
    checkInteger("dispatch id", id, 0, DISPATCH_ID_MAX);
    return id;
  }
  checkInteger("dispatch id", number, 0, DISPATCH_ID_MAX);
  checkCodec(`request of dispatch id ${number}`, request);
  if (reply !== undefined) checkCodec(`reply of dispatch id ${number}`, reply);
  return number;
}

/**
 * Encodes a value for `peer`, at once. @throws errors of the codec; PAMIR_INVAL if it returns no bytes; what `check` throws
 */
export function encoded<T>(codec: Codec<T>, value: T, peer: Endpoint, check: JsonCheck, parts?: Parts): Uint8Array {
  if (check !== undefined && jsonCodecs.has(codec)) check(value);
  // Others may take a second argument of their own: msgpackr and cbor-x do.
  const bytes: unknown = isInPlace(codec)
    ? codec.encode(value, peer, codec.hasParts ? parts : undefined)
    : codec.encode(value);
  if (bytes instanceof Uint8Array) return bytes;
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const why = isPromised(bytes) ? ": a codec gives its bytes at once" : "";
  throw new PamiError("PAMIR_INVAL", `encode() of a codec gave ${show(bytes)}, not a Uint8Array${why}`);
}

/** As encoded(), but the bytes stay as they are. */
export function encodedForGood<T>(codec: Codec<T>, value: T, peer: Endpoint, check: JsonCheck): Uint8Array {
  const bytes = encoded(codec, value, peer, check);
  return isTransient(codec, bytes) ? bytes.slice() : bytes;
}

function isInPlace<T>(codec: Codec<T>): codec is InPlaceCodec<T> {
  return codec.inPlace === true;
}

/** Whether the next encode() of a codec overwrites bytes that it gave. */
export function isTransient(codec: Codec<unknown>, bytes: Uint8Array): boolean {
  return isInPlace(codec) && bytes.length <= KEPT_BYTES_MAX;
}

/** The error for a value in two parts from an endpoint whose dispatch id has no codec for that. */
export function unasked(peer: Endpoint): PamiError {
  return new PamiError("PAMIR_INVAL", `${nameOf(peer)} sent a value in two parts, and no codec here takes these`);
}

/**
 * Decodes bytes of `peer`. @param body of a value in two parts
 * @throws errors of the codec; PAMIR_INVAL if it returns a promise, or takes no body
 */
export function decoded<T>(codec: Codec<T>, bytes: Uint8Array, peer: Endpoint, body?: Uint8Array): T {
  if (body !== undefined && !(isInPlace(codec) && codec.hasParts)) throw unasked(peer);
  const value = isInPlace(codec) ? codec.decode(bytes, peer, body) : codec.decode(bytes);
  if (!isPromised(value)) return value;
  throw new PamiError("PAMIR_INVAL", `decode() of a codec gave ${show(value)}: a codec gives its value at once`);
}

/**
 * The handler of a typed dispatch id. It gets the decoded value. It returns the reply to a call, or a promise of the reply:
 * any object with a `then`, as the queries of many databases are. `{ signal }` is aborted once the caller gives the call up.
 */
export type TypedHandler<Request, Reply> = (
  request: Request,
  origin: Endpoint,
  call: CallScope,
) => Reply | PromiseLike<Reply>;

/** Makes a handler of messages from a handler of values. Calls encode what it returns. */
export function untyped<Request, Reply>(
  id: DispatchId<Request, Reply>,
  handler: TypedHandler<Request, Reply>,
): Handler {
  const { request } = id;
  const handle = (bytes: Uint8Array, origin: Endpoint, scope: CallScope, body?: Uint8Array): unknown =>
    handler(decoded(request, bytes, origin, body), origin, scope);
  return (message) => {
    const { origin, scope } = message;
    message.typed = id;
    if (message.immediate) {
      if (message.hasParts) return handle(message.header, origin, scope, message.payload);
      return handle(request.inPlace ? message.payload : message.copy(), origin, scope);
    }
    const head = message.hasParts ? message.header.slice() : undefined;
    const bytes = new Uint8Array(message.payloadBytes);
    return new Promise((resolve) => {
      message.receive(bytes, (_, result) => {
        // A rejection goes to the caller. If the message is not a call, it is an unhandled rejection.
        if (result === SUCCESS)
          resolve(
            Promise.resolve().then(() => (head ? handle(head, origin, scope, bytes) : handle(bytes, origin, scope))),
          );
      });
    });
  };
}
