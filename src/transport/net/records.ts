// The encoding of records in frames between nodes. Records from other nodes may be wrong. All records of a frame are checked
// here, before the first goes into a lane.
//
//   word 0   length of the body (bits 0 … 23), kind (bits 24 … 31): its number is that of KINDS_ON_LINK
//   word 1   dispatch id (bits 0 … 15), bytes of the header (bits 16 … 31)
//   body     as in a lane, padded to words; the body of a request to send begins with the words of REQUEST_FIELDS
import * as L from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import { copyInto } from "../../support/copy.js";
import type { FrameMemory } from "./frames.js";

/**
 * Bytes of records that may be on their way from a context to another. A batch may exceed this credit. With a quarter of it, a
 * stream of 1 MiB messages between two processes reached 0.9 of the rate, and 0.5 with inline agents.
 */
export const CREDIT_BYTES = 4_194_304;
/** Words before each record in a frame. */
const PREFIX_WORDS = 2;
export const PREFIX_BYTES = 4 * PREFIX_WORDS;
/**
 * Kinds of records that go from node to node, by number on a link. KIND_BUFFER does not go: it points to the origin's
 * memory.
 */
const KINDS_ON_LINK = [undefined, L.KIND_MESSAGE, L.KIND_FIRST, L.KIND_MORE, L.KIND_RTS, L.KIND_BROKEN, L.KIND_SWITCH];
const LENGTH_BITS = 24;
const LENGTH_MAX = 2 ** LENGTH_BITS - 1;
const DISPATCH_MASK = 0xffff;
const HEADER_SHIFT = 16;
/** Words of a request to send, in their order on a link. */
const REQUEST_FIELDS = [
  L.RTS_BYTES_OFFSET,
  L.RTS_INDEX_OFFSET,
  L.RTS_GENERATION_OFFSET,
  L.RTS_OFFSET_OFFSET,
  L.RTS_BLOCK_INDEX_OFFSET,
  L.RTS_BLOCK_GENERATION_OFFSET,
  L.RTS_PLACE_OFFSET,
  L.RTS_FIFO_OFFSET,
  L.RTS_FRAGMENT_OFFSET,
];

/** Bytes of the header of a message to each of pamir's own dispatch ids, from DISPATCH_ID_CALL on: at least so many are read. */
const HEADER_LEAST = [8, 8, 24, 24, 20, L.COLLECTIVE_HEADER_SIZE, 8];

/** Longest body that is copied word by word: up to this length, making a view takes longer than the copy (Node 20, Zen 5). */
const SHORT_BYTES = 256;

/** A record taken out of a frame. A request to send has its words in the order of a lane. */
export interface LaneRecord {
  readonly kind: number;
  readonly meta: number;
  readonly body: Uint8Array;
}

/**
 * Bytes of a message in packets that have not come: before its handler is called, and after. No packet contains both parts.
 */
export interface Rest {
  readonly prologue: number;
  readonly payload: number;
}

export const NO_REST: Rest = { prologue: 0, payload: 0 };

/**
 * Writes the prefix of a record, and behind it the body, which is copied.
 * @param frame the memory of a frame, which begins with it
 * @param memory in which the body is
 * @param pointer to the body, a multiple of 4
 * @returns the word of the frame behind the record
 */
export function putRecord(
  frame: FrameMemory,
  at: number,
  kind: number,
  meta: number,
  memory: FrameMemory,
  pointer: number,
  length: number,
): number {
  const into = frame.words;
  const number = KINDS_ON_LINK.indexOf(kind);
  // Its receiver would drop the whole frame.
  if (number < 0) throw new Error(`a record of kind ${kind} does not go to another node`);
  into[at] = (number << LENGTH_BITS) | length;
  into[at + 1] = (meta & L.META_DISPATCH_MASK) | ((meta >>> L.META_HEADER_SHIFT) << HEADER_SHIFT);
  putBody(frame, at + PREFIX_WORDS, memory, pointer, length);
  if (kind === L.KIND_RTS) putRequest(into, at + PREFIX_WORDS, memory.words, pointer >>> 2);
  return wordBehind(into, at);
}

/** Writes a body, and zeros to the next word: the frame's buffer may have held bytes for another node. */
function putBody(frame: FrameMemory, at: number, { words, bytes }: FrameMemory, pointer: number, length: number): void {
  const into = frame.words;
  if (length <= SHORT_BYTES) {
    const first = pointer >>> 2;
    for (let word = 0; word << 2 < length; word++) into[at + word] = words[first + word] as number;
  } else copyInto(frame.bytes, 4 * at, bytes.subarray(pointer, pointer + length));
  const over = length % 4;
  const last = at + (length >>> 2);
  if (over > 0) into[last] = (into[last] as number) & ((1 << (8 * over)) - 1);
}

/** Writes the words of a request to send in their order on a link. */
function putRequest(frame: Int32Array, at: number, words: Int32Array, request: number): void {
  // In memory too, the other words of a request stay unwritten.
  frame.fill(0, at, at + (L.RTS_SIZE >>> 2));
  for (const [i, offset] of REQUEST_FIELDS.entries()) frame[at + i] = words[request + (offset >>> 2)] as number;
}

/** The body of a request to send, as it is in a lane. */
function requestIn(body: Uint8Array): Uint8Array {
  const own = body.slice();
  const words = new DataView(body.buffer, body.byteOffset, body.length);
  const view = new DataView(own.buffer);
  for (const [i, offset] of REQUEST_FIELDS.entries()) view.setUint32(offset, words.getUint32(4 * i, true), true);
  return own;
}

/** Whether a record is a switch: it names the next lane, or ends the lane. */
export function isSwitch(commit: number): boolean {
  return ((commit >>> L.RECORD_KIND_SHIFT) & L.RECORD_KIND_MASK) === L.KIND_SWITCH;
}

/** Bytes of a record in a frame: its prefix, its body, padding. */
export function recordBytes(length: number): number {
  return PREFIX_BYTES + alignUp(length, 4);
}

/** The kind of the record at a word of a frame. Undefined: no such kind goes to another node. */
export function kindAt(words: Int32Array, at: number): number | undefined {
  return KINDS_ON_LINK[(words[at] as number) >>> LENGTH_BITS];
}

/** Bytes of the record's body. */
export function lengthAt(words: Int32Array, at: number): number {
  return (words[at] as number) & LENGTH_MAX;
}

/** The record's dispatch id and header bytes, as in a lane. */
export function metaAt(words: Int32Array, at: number): number {
  const second = words[at + 1] as number;
  return ((second >>> HEADER_SHIFT) << L.META_HEADER_SHIFT) | (second & DISPATCH_MASK & L.META_DISPATCH_MASK);
}

/** The word of the next record. */
export function wordBehind(words: Int32Array, at: number): number {
  return at + (recordBytes(lengthAt(words, at)) >>> 2);
}

/** Takes a record that restAfter() has found to be right out of a frame. Its body is a view of the frame, if it can be. */
export function recordAt(words: Int32Array, at: number): LaneRecord {
  const body = new Uint8Array(words.buffer, words.byteOffset + 4 * at + PREFIX_BYTES, lengthAt(words, at));
  const kind = kindAt(words, at) as number;
  return { kind, meta: metaAt(words, at), body: kind === L.KIND_RTS ? requestIn(body) : body };
}

/** Copies a body from a frame to memory. @param pointer a multiple of 4, with room for whole words */
export function copyBody(words: Int32Array, at: number, memory: FrameMemory, pointer: number): void {
  const length = lengthAt(words, at);
  if (length > SHORT_BYTES) {
    copyInto(memory.bytes, pointer, recordAt(words, at).body);
    return;
  }
  const first = at + PREFIX_WORDS;
  const place = pointer >>> 2;
  for (let word = 0; word << 2 < length; word++) memory.words[place + word] = words[first + word] as number;
}

/**
 * Checks the records of a frame.
 * @param before the rest of a message of the same pair that these records continue
 * @returns the rest of a message that follows them; undefined: the words are no valid records
 */
export function restAfter(words: Int32Array, before: Rest): Rest | undefined {
  let rest: Rest | undefined = before;
  for (let at = 0; at < words.length && rest !== undefined; ) {
    const end = at + PREFIX_WORDS > words.length ? Number.POSITIVE_INFINITY : wordBehind(words, at);
    if (end > words.length) return undefined;
    rest = restBehind(words, at, rest);
    at = end;
  }
  return rest;
}

/**
 * The rest of a record's message, after that record.
 * @param rest the rest of the message before the record
 * @returns undefined: the record is malformed, or may not come here
 */
function restBehind(words: Int32Array, at: number, rest: Rest): Rest | undefined {
  const kind = kindAt(words, at);
  const length = lengthAt(words, at);
  if (kind === L.KIND_SWITCH) return rest;
  if (kind === L.KIND_MORE) {
    const { prologue, payload } = rest;
    if (length === 0 || length > (prologue || payload)) return undefined;
    return prologue > 0 ? { prologue: prologue - length, payload } : { prologue, payload: payload - length };
  }
  if (kind === L.KIND_BROKEN) return length === 0 && !isOver(rest) ? NO_REST : undefined;
  if (kind === undefined || !isOver(rest)) return undefined;
  const meta = metaAt(words, at);
  const headerBytes = meta >>> L.META_HEADER_SHIFT;
  if (headerBytes < leastHeader(meta & L.META_DISPATCH_MASK)) return undefined;
  if (kind === L.KIND_MESSAGE) return headerBytes <= length && length <= L.RECV_IMMEDIATE_MAX ? rest : undefined;
  const body = at + PREFIX_WORDS;
  if (kind === L.KIND_RTS) return length === L.RTS_SIZE + headerBytes && isOffer(words, body) ? rest : undefined;
  if (length < L.FIRST_PREFIX_SIZE) return undefined;
  const payloadBytes = (words[body] as number) >>> 0;
  if (payloadBytes > L.MESSAGE_BYTES_MAX) return undefined;
  const space = alignUp(headerBytes, 8);
  const total = payloadBytes === 0 ? headerBytes : space + payloadBytes;
  const first = total <= L.RECV_IMMEDIATE_MAX ? total : space;
  const here = length - L.FIRST_PREFIX_SIZE;
  return here <= first ? { prologue: first - here, payload: total - first } : undefined;
}

/** Bytes of the header of a message to a dispatch id, at the least. */
function leastHeader(id: number): number {
  return id < L.DISPATCH_ID_CALL ? 0 : (HEADER_LEAST[id - L.DISPATCH_ID_CALL] ?? 0);
}

export function isOver({ prologue, payload }: Rest): boolean {
  return prologue + payload === 0;
}

/** Whether the words of a request to send, in their order on a link, are one. */
function isOffer(words: Int32Array, at: number): boolean {
  const word = (offset: number): number => (words[at + REQUEST_FIELDS.indexOf(offset)] as number) >>> 0;
  const bytes = word(L.RTS_BYTES_OFFSET);
  // A staged payload must not need more links than a chain may have.
  const fragment = word(L.RTS_FRAGMENT_OFFSET) || bytes;
  return bytes > 0 && bytes <= L.MESSAGE_BYTES_MAX && Math.ceil(bytes / fragment) <= L.LINK_COUNT_MAX;
}

/** A record as the first of its packets. */
export function begun(record: LaneRecord): LaneRecord {
  const { kind, meta, body } = record;
  if (kind !== L.KIND_MESSAGE) return record;
  const payloadBytes = Math.max(0, body.length - alignUp(meta >>> L.META_HEADER_SHIFT, 8));
  const bytes = new Uint8Array(L.FIRST_PREFIX_SIZE + body.length);
  new DataView(bytes.buffer).setUint32(0, payloadBytes, true);
  bytes.set(body, L.FIRST_PREFIX_SIZE);
  return { kind: L.KIND_FIRST, meta, body: bytes };
}
