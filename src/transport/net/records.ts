// The encoding of records in frames between nodes. Records from other nodes may be wrong. They are checked here, before any
// of them goes into a lane.
//
//   word 0   length of the body (bits 0 … 23), kind (bits 24 … 31): its number is that of KINDS_ON_LINK
//   word 1   dispatch id (bits 0 … 15), bytes of the header (bits 16 … 31)
//   body     as in a lane, padded to words; the body of a request to send begins with the words of REQUEST_FIELDS
import {
  FIRST_PREFIX_SIZE,
  KIND_BROKEN,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  KIND_RTS,
  KIND_SWITCH,
  LINK_COUNT_MAX,
  MESSAGE_BYTES_MAX,
  META_DISPATCH_MASK,
  META_HEADER_SHIFT,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECV_IMMEDIATE_MAX,
  RTS_BLOCK_GENERATION_OFFSET,
  RTS_BLOCK_INDEX_OFFSET,
  RTS_BYTES_OFFSET,
  RTS_FIFO_OFFSET,
  RTS_FRAGMENT_OFFSET,
  RTS_GENERATION_OFFSET,
  RTS_INDEX_OFFSET,
  RTS_OFFSET_OFFSET,
  RTS_PLACE_OFFSET,
  RTS_SIZE,
} from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import { copyInto } from "../../support/copy.js";

/** Bytes of records that may be on their way from a context to another. A batch may exceed it. */
export const CREDIT_BYTES = 1048576;
/** Words before each record in a frame. */
const PREFIX_WORDS = 2;
export const PREFIX_BYTES = 4 * PREFIX_WORDS;
/**
 * Kinds of records that go from node to node, by number on a link. KIND_BUFFER does not go: it points to the origin's
 * memory.
 */
const KINDS_ON_LINK = [undefined, KIND_MESSAGE, KIND_FIRST, KIND_MORE, KIND_RTS, KIND_BROKEN, KIND_SWITCH];
const LENGTH_BITS = 24;
const LENGTH_MAX = 2 ** LENGTH_BITS - 1;
const DISPATCH_MASK = 0xffff;
const HEADER_SHIFT = 16;
/** Words of a request to send, in their order on a link. */
const REQUEST_FIELDS = [
  RTS_BYTES_OFFSET,
  RTS_INDEX_OFFSET,
  RTS_GENERATION_OFFSET,
  RTS_OFFSET_OFFSET,
  RTS_BLOCK_INDEX_OFFSET,
  RTS_BLOCK_GENERATION_OFFSET,
  RTS_PLACE_OFFSET,
  RTS_FIFO_OFFSET,
  RTS_FRAGMENT_OFFSET,
];

/** A record on its way into a lane. */
export interface LaneRecord {
  readonly kind: number;
  readonly meta: number;
  readonly body: Uint8Array;
  /** Bytes that it takes of the credit. */
  readonly counts: number;
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
 * Writes the prefix of a record, and behind it the body, which is copied. @returns bytes that the record takes in a frame
 */
export function putRecord(frame: Uint8Array, at: number, kind: number, meta: number, body: Uint8Array): number {
  const { length } = body;
  const number = KINDS_ON_LINK.indexOf(kind);
  // Its receiver would drop the whole frame.
  if (number < 0) throw new Error(`a record of kind ${kind} does not go to another node`);
  putWord(frame, at, (number << LENGTH_BITS) | length);
  putWord(frame, at + 4, (meta & META_DISPATCH_MASK) | ((meta >>> META_HEADER_SHIFT) << HEADER_SHIFT));
  copyInto(frame, at + PREFIX_BYTES, body);
  const end = at + recordBytes(length);
  // The frame's buffer may have held bytes for another node.
  for (let padding = at + PREFIX_BYTES + length; padding < end; padding++) frame[padding] = 0;
  if (kind === KIND_RTS) putRequest(frame.subarray(at + PREFIX_BYTES, end), body);
  return end - at;
}

/** Writes a word without a DataView, which takes as long as the rest of a small record. */
function putWord(frame: Uint8Array, at: number, word: number): void {
  frame[at] = word;
  frame[at + 1] = word >>> 8;
  frame[at + 2] = word >>> 16;
  frame[at + 3] = word >>> 24;
}

/** Writes the words of a request to send in their order on a link. */
function putRequest(frame: Uint8Array, body: Uint8Array): void {
  const own = new DataView(body.buffer, body.byteOffset, body.length);
  for (const [i, offset] of REQUEST_FIELDS.entries()) putWord(frame, 4 * i, own.getUint32(offset, true));
  // In memory too, the other words of a request stay unwritten.
  frame.fill(0, 4 * REQUEST_FIELDS.length, RTS_SIZE);
}

/** The body of a request to send, as it is in a lane. */
function requestIn(body: Uint8Array): Uint8Array {
  const own = body.slice();
  if (body.length < RTS_SIZE) return own;
  const words = new DataView(body.buffer, body.byteOffset, body.length);
  const view = new DataView(own.buffer);
  for (const [i, offset] of REQUEST_FIELDS.entries()) view.setUint32(offset, words.getUint32(4 * i, true), true);
  return own;
}

/** Whether a record is a switch: it names the next lane, or ends the lane. */
export function isSwitch(commit: number): boolean {
  return ((commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK) === KIND_SWITCH;
}

/** Bytes of a record in a frame: its prefix, its body, padding. */
export function recordBytes(length: number): number {
  return PREFIX_BYTES + alignUp(length, 4);
}

/**
 * The records of a frame, and the rest of a message that follows them.
 * @param before the rest of a message of the same pair that these records continue
 * @returns undefined: the bytes are no valid records
 */
export function recordsIn(bytes: Uint8Array, before: Rest): { records: LaneRecord[]; rest: Rest } | undefined {
  let rest = before;
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const records: LaneRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < PREFIX_BYTES) return undefined;
    const first = words.getUint32(at, true);
    const second = words.getUint32(at + 4, true);
    const kind = KINDS_ON_LINK[first >>> LENGTH_BITS];
    const length = first & LENGTH_MAX;
    const counts = recordBytes(length);
    if (bytes.length - at < counts || kind === undefined) return undefined;
    const given = bytes.subarray(at + PREFIX_BYTES, at + PREFIX_BYTES + length);
    const body = kind === KIND_RTS ? requestIn(given) : given;
    const meta = ((second >>> HEADER_SHIFT) << META_HEADER_SHIFT) | (second & DISPATCH_MASK & META_DISPATCH_MASK);
    const behind = restBehind(kind, meta, body, rest);
    if (behind === undefined) return undefined;
    rest = behind;
    records.push({ kind, meta, body, counts });
    at += counts;
  }
  return { records, rest };
}

/**
 * The rest of a record's message, after that record.
 * @param rest the rest of the message before the record
 * @returns undefined: the record is malformed, or may not come here
 */
function restBehind(kind: number, meta: number, body: Uint8Array, rest: Rest): Rest | undefined {
  const { length } = body;
  if (kind === KIND_SWITCH) return rest;
  if (kind === KIND_MORE) {
    const { prologue, payload } = rest;
    if (length === 0 || length > (prologue || payload)) return undefined;
    return prologue > 0 ? { prologue: prologue - length, payload } : { prologue, payload: payload - length };
  }
  if (kind === KIND_BROKEN) return length === 0 && !isOver(rest) ? NO_REST : undefined;
  const headerBytes = meta >>> META_HEADER_SHIFT;
  if (!isOver(rest)) return undefined;
  if (kind === KIND_MESSAGE) return headerBytes <= length && length <= RECV_IMMEDIATE_MAX ? rest : undefined;
  if (kind === KIND_RTS) return isOffer(body, headerBytes) ? rest : undefined;
  if (length < FIRST_PREFIX_SIZE) return undefined;
  const payloadBytes = new DataView(body.buffer, body.byteOffset).getUint32(0, true);
  if (payloadBytes > MESSAGE_BYTES_MAX) return undefined;
  const space = alignUp(headerBytes, 8);
  const total = payloadBytes === 0 ? headerBytes : space + payloadBytes;
  const first = total <= RECV_IMMEDIATE_MAX ? total : space;
  const here = length - FIRST_PREFIX_SIZE;
  return here <= first ? { prologue: first - here, payload: total - first } : undefined;
}

export function isOver({ prologue, payload }: Rest): boolean {
  return prologue + payload === 0;
}

/** Whether a body is a request to send, and the header behind it. */
function isOffer(body: Uint8Array, headerBytes: number): boolean {
  if (body.length !== RTS_SIZE + headerBytes) return false;
  const words = new DataView(body.buffer, body.byteOffset);
  const bytes = words.getUint32(RTS_BYTES_OFFSET, true);
  // A staged payload must not need more links than a chain may have.
  const fragment = words.getUint32(RTS_FRAGMENT_OFFSET, true) || bytes;
  return bytes > 0 && bytes <= MESSAGE_BYTES_MAX && Math.ceil(bytes / fragment) <= LINK_COUNT_MAX;
}

/** A record as the first of the packets that it is cut into. */
export function begun(record: LaneRecord): LaneRecord {
  const { kind, meta, body, counts } = record;
  if (kind !== KIND_MESSAGE) return record;
  const payloadBytes = Math.max(0, body.length - alignUp(meta >>> META_HEADER_SHIFT, 8));
  const bytes = new Uint8Array(FIRST_PREFIX_SIZE + body.length);
  new DataView(bytes.buffer).setUint32(0, payloadBytes, true);
  bytes.set(body, FIRST_PREFIX_SIZE);
  return { kind: KIND_FIRST, meta, body: bytes, counts };
}
