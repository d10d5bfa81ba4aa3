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
import type { Memory } from "../../kernel/kernel.js";
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

/** Longest body that is copied word by word: up to that, making a view of it takes longer than the copy (Node 20, Zen 5). */
const SHORT_BYTES = 256;

/** A record on its way into a lane. Its body is in a frame, so that a short one needs no view of its own. */
export class LaneRecord {
  readonly kind: number;
  readonly meta: number;
  /** Bytes that it takes of the credit. */
  readonly counts: number;
  readonly length: number;
  readonly #frame: DataView;
  readonly #at: number;

  /** @param at the body's first byte in the frame */
  constructor(kind: number, meta: number, frame: DataView, at: number, length: number, counts: number) {
    this.kind = kind;
    this.meta = meta;
    this.counts = counts;
    this.length = length;
    this.#frame = frame;
    this.#at = at;
  }

  get body(): Uint8Array {
    const { buffer, byteOffset } = this.#frame;
    return new Uint8Array(buffer, byteOffset + this.#at, this.length);
  }

  /** Copies its body to memory. @param pointer a multiple of 4, with room for whole words */
  copyTo({ words, bytes }: Pick<Memory, "words" | "bytes">, pointer: number): void {
    const at = this.#at;
    const padded = alignUp(this.length, 4);
    if (padded > SHORT_BYTES || at + padded > this.#frame.byteLength) {
      copyInto(bytes, pointer, this.body);
      return;
    }
    for (let done = 0; done < padded; done += 4) words[(pointer + done) >>> 2] = this.#frame.getInt32(at + done, true);
  }
}

/** A record whose body is not in a frame. */
export function recordOf(kind: number, meta: number, body: Uint8Array, counts: number): LaneRecord {
  return new LaneRecord(kind, meta, new DataView(body.buffer, body.byteOffset, body.length), 0, body.length, counts);
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
 * @param memory in which the body is
 * @param pointer to the body, a multiple of 4
 * @returns bytes that the record takes in a frame
 */
export function putRecord(
  frame: DataView,
  at: number,
  kind: number,
  meta: number,
  memory: Pick<Memory, "words" | "bytes">,
  pointer: number,
  length: number,
): number {
  const number = KINDS_ON_LINK.indexOf(kind);
  // Its receiver would drop the whole frame.
  if (number < 0) throw new Error(`a record of kind ${kind} does not go to another node`);
  frame.setUint32(at, (number << LENGTH_BITS) | length, true);
  frame.setUint32(at + 4, (meta & META_DISPATCH_MASK) | ((meta >>> META_HEADER_SHIFT) << HEADER_SHIFT), true);
  putBody(frame, at + PREFIX_BYTES, memory, pointer, length);
  if (kind === KIND_RTS) putRequest(frame, at + PREFIX_BYTES, memory.words, pointer >>> 2);
  return recordBytes(length);
}

/** Writes a body, and zeros to the next word: the frame's buffer may have held bytes for another node. */
function putBody(
  frame: DataView,
  at: number,
  { words, bytes }: Pick<Memory, "words" | "bytes">,
  pointer: number,
  length: number,
): void {
  if (length <= SHORT_BYTES) {
    for (let done = 0; done < length; done += 4)
      frame.setInt32(at + done, words[(pointer + done) >>> 2] as number, true);
  } else copyInto(new Uint8Array(frame.buffer, frame.byteOffset), at, bytes.subarray(pointer, pointer + length));
  for (let end = at + length; (end - at) & 3; end++) frame.setUint8(end, 0);
}

/** Writes the words of a request to send in their order on a link. */
function putRequest(frame: DataView, at: number, words: Int32Array, request: number): void {
  // In memory too, the other words of a request stay unwritten.
  for (let offset = 0; offset < RTS_SIZE; offset += 4) frame.setInt32(at + offset, 0);
  for (const [i, offset] of REQUEST_FIELDS.entries()) {
    frame.setInt32(at + 4 * i, words[request + (offset >>> 2)] as number, true);
  }
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
    const meta = ((second >>> HEADER_SHIFT) << META_HEADER_SHIFT) | (second & DISPATCH_MASK & META_DISPATCH_MASK);
    let record = new LaneRecord(kind, meta, words, at + PREFIX_BYTES, length, counts);
    if (kind === KIND_RTS) record = recordOf(kind, meta, requestIn(record.body), counts);
    const behind = restBehind(record, rest);
    if (behind === undefined) return undefined;
    rest = behind;
    records.push(record);
    at += counts;
  }
  return { records, rest };
}

/**
 * The rest of a record's message, after that record.
 * @param rest the rest of the message before the record
 * @returns undefined: the record is malformed, or may not come here
 */
function restBehind(record: LaneRecord, rest: Rest): Rest | undefined {
  const { kind, meta, length } = record;
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
  if (kind === KIND_RTS) return isOffer(record.body, headerBytes) ? rest : undefined;
  if (length < FIRST_PREFIX_SIZE) return undefined;
  const { body } = record;
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
  return recordOf(KIND_FIRST, meta, bytes, counts);
}
