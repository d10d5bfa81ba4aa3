// The encoding of frames on a link. The encoding has its own version, and does not mirror the memory layout. It names each
// field, so that the layout of descriptors and requests may change while the encoding stays. `encoding.test.ts` pins the bytes.
//
// A frame is a head of 32-bit words, little-endian, and data behind it. Its type is the kind of its segment (docs/wire.md).
//
//   word 0        version (bits 0 … 7), words of the head behind this one (bits 16 … 31)
//   CREDIT        bytes
//   ASK           number, bytes moved before, operation, then of each further
//                 put or get on the same region: bytes, offset                   data: the bytes of the puts
//   ANSWER        number, one result of all, or one of each                      data: the bytes of the gets, the old value
//   END           0 the context has closed, 1 its task has ended, 2 its task goes on, cut off; number of streams that carry
//                 an END for it
//   CHAIN         what, rget FIFO of the receiver (4 words), then by what           data: bytes of the payload
//     BEGIN         rget FIFO of the sender (4 words), descriptors
//     SHIP          descriptors
//     others        words
//   RECORDS       nothing                                                        data: records, see records.ts
//
//   operation     verb, bytes or code of the rmw, remote region: index, generation, offset; of an rmw also: value, test
//                 (2 words each)
//   descriptor    verb, then the words of FIELDS
import * as L from "../../../assembly/layout.js";
import type { Frame } from "./frames.js";

/** Version of the encoding: a node drops frames of any other. */
export const FRAME_VERSION = 1;
/** Bytes of the head of a frame of records: its one word is the version. */
export const RECORDS_HEAD_BYTES = 4;

/** An encoded frame: the kind of its segments, and the bytes of its head and data. */
export interface Encoded {
  readonly kind: number;
  readonly head: Uint8Array;
  readonly data: Uint8Array;
}

/** Verbs on a link, by their number there. */
const VERBS = [
  0,
  L.DESCRIPTOR_PUT,
  L.DESCRIPTOR_GET,
  L.DESCRIPTOR_RMW,
  L.DESCRIPTOR_RGET,
  L.DESCRIPTOR_FETCH,
  L.DESCRIPTOR_REFILL,
  L.DESCRIPTOR_MOVE,
  L.DESCRIPTOR_NOTICE,
];
/** Words of an operation that every verb has, and further words of an rmw. */
const OPERATION_FIELDS = [
  L.DESCRIPTOR_BYTES_OFFSET,
  L.DESCRIPTOR_REMOTE_INDEX_OFFSET,
  L.DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  L.DESCRIPTOR_REMOTE_OFFSET_OFFSET,
];
const OPERAND_FIELDS = [
  L.DESCRIPTOR_VALUE_OFFSET,
  L.DESCRIPTOR_VALUE_OFFSET + 4,
  L.DESCRIPTOR_TEST_OFFSET,
  L.DESCRIPTOR_TEST_OFFSET + 4,
];
/** Words of a descriptor behind its verb. */
const FIELDS = [
  ...OPERATION_FIELDS,
  L.DESCRIPTOR_LOCAL_INDEX_OFFSET,
  L.DESCRIPTOR_LOCAL_GENERATION_OFFSET,
  L.DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  ...OPERAND_FIELDS,
];
const DESCRIPTOR_WORDS_ON_LINK = 1 + FIELDS.length;

/** Words that name an rget FIFO. */
const RGET_FIFO_WORDS = 4;
const VERSION_MASK = 0xff;
const COUNT_SHIFT = 16;
/** Words of the longest head: a chain frame that fills an rget FIFO. */
export const HEAD_WORDS_MAX = 1 + 2 * RGET_FIFO_WORDS + L.RGET_FIFO_SLOTS * DESCRIPTOR_WORDS_ON_LINK;

/** The kinds of ends, by number on a link. */
const ENDS = ["context", "task", "cutOff"] as const;
const NO_BYTES: Uint8Array = new Uint8Array(0);
/** The head of a frame without words. */
const PLAIN_HEAD = Uint8Array.of(FRAME_VERSION, 0, 0, 0);

/** The head and the data of a frame. The data is a view of the frame's own bytes, not a copy. */
export function encode(frame: Frame): Encoded {
  if ("records" in frame) return { kind: L.FRAME_RECORDS, head: PLAIN_HEAD, data: frame.records };
  if ("credit" in frame) return encoded(L.FRAME_CREDIT, [frame.credit]);
  if ("ask" in frame) {
    return encoded(
      L.FRAME_ASK,
      [frame.ask, frame.moved, ...operationWords(frame.descriptor), ...frame.more],
      frame.data,
    );
  }
  if ("answer" in frame) return encoded(L.FRAME_ANSWER, [frame.answer, ...frame.results], frame.data);
  if ("end" in frame) return encoded(L.FRAME_END, [ENDS.indexOf(frame.end), frame.streams]);
  const { chain, words, data } = frame;
  const plain = plainWords(chain, words.length);
  const descriptors = [];
  for (let at = plain; at < words.length; at += L.DESCRIPTOR_WORDS) descriptors.push(...descriptorWords(words, at));
  return encoded(L.FRAME_CHAIN, [chain, ...words.subarray(0, plain), ...descriptors], data);
}

/** The frame of a segment's kind and content, with a view of the content. Undefined: malformed, or of another version. */
export function decode(kind: number, content: Uint8Array): Frame | undefined {
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  if (content.length < 4) return undefined;
  const first = view.getUint32(0, true);
  const count = first >>> COUNT_SHIFT;
  const size = 4 + 4 * count;
  if ((first & VERSION_MASK) !== FRAME_VERSION || content.length < size || count > HEAD_WORDS_MAX) return undefined;
  if (kind === L.FRAME_RECORDS) return count === 0 ? { records: content.subarray(size) } : undefined;
  const head = new Int32Array(count);
  for (let word = 0; word < count; word++) head[word] = view.getInt32(4 + 4 * word, true);
  const data = content.length > size ? content.subarray(size) : undefined;
  const [one = 0, two = 0] = head;
  if (kind === L.FRAME_ANSWER) return count > 1 ? { answer: one >>> 0, results: head.subarray(1), data } : undefined;
  if (kind === L.FRAME_ASK) return operationsOf(one >>> 0, two >>> 0, head.subarray(2), data);
  if (kind === L.FRAME_CHAIN) {
    const words = count === 0 ? undefined : chainWords(one, head.subarray(1));
    return words && { chain: one, words, data };
  }
  if (data !== undefined) return undefined;
  if (kind === L.FRAME_CREDIT) return count === 1 ? { credit: one >>> 0 } : undefined;
  const end = kind === L.FRAME_END && count === 2 ? ENDS[one] : undefined;
  return end && { end, streams: two >>> 0 };
}

function encoded(kind: number, words: readonly number[], data: Uint8Array = NO_BYTES): Encoded {
  const head = new Uint8Array(4 + 4 * words.length);
  const view = new DataView(head.buffer);
  view.setUint32(0, FRAME_VERSION | (words.length << COUNT_SHIFT), true);
  for (const [place, word] of words.entries()) view.setInt32(4 + 4 * place, word, true);
  return { kind, head, data };
}

/** Whether a descriptor of a kind goes to another node. */
export function isVerb(kind: number): boolean {
  return VERBS.indexOf(kind) > 0;
}

function verbOf(words: Int32Array, at: number): number {
  const kind = words[at + (L.DESCRIPTOR_KIND_OFFSET >>> 2)] as number;
  const verb = VERBS.indexOf(kind);
  // The receiver would drop the whole frame.
  if (verb < 1) throw new Error(`a descriptor of kind ${kind} does not go to another node`);
  return verb;
}

function operationWords(descriptor: Int32Array): number[] {
  const verb = verbOf(descriptor, 0);
  const fields = VERBS[verb] === L.DESCRIPTOR_RMW ? [...OPERATION_FIELDS, ...OPERAND_FIELDS] : OPERATION_FIELDS;
  return [verb, ...fields.map((offset) => descriptor[offset >>> 2] as number)];
}

/** A frame that asks for operations: its descriptor has no local part. Undefined: the words are no operations. */
function operationsOf(ask: number, moved: number, words: Int32Array, data: Uint8Array | undefined): Frame | undefined {
  const kind = VERBS[words[0] ?? 0];
  const isRmw = kind === L.DESCRIPTOR_RMW;
  const fields = isRmw ? [...OPERATION_FIELDS, ...OPERAND_FIELDS] : OPERATION_FIELDS;
  if (!isRmw && kind !== L.DESCRIPTOR_PUT && kind !== L.DESCRIPTOR_GET) return undefined;
  const more = words.subarray(1 + fields.length);
  const isWhole = words.length > fields.length && more.length % 2 === 0 && (!isRmw || more.length === 0);
  return isWhole ? { ask, descriptor: descriptorOf(kind, words, 0, fields), moved, more, data } : undefined;
}

function descriptorWords(words: Int32Array, at: number): number[] {
  return [verbOf(words, at), ...FIELDS.map((offset) => words[at + (offset >>> 2)] as number)];
}

function descriptorOf(kind: number, words: Int32Array, at: number, fields: readonly number[]): Int32Array {
  const descriptor = new Int32Array(L.DESCRIPTOR_WORDS);
  descriptor[L.DESCRIPTOR_KIND_OFFSET >>> 2] = kind;
  for (const [i, offset] of fields.entries()) descriptor[offset >>> 2] = words[at + 1 + i] as number;
  return descriptor;
}

/** Words of a chain frame before its descriptors. `count` is the number of all its words. */
function plainWords(chain: number, count: number): number {
  if (chain === L.CHAIN_BEGIN) return Math.min(count, 2 * RGET_FIFO_WORDS);
  return chain === L.CHAIN_SHIP ? Math.min(count, RGET_FIFO_WORDS) : count;
}

/** The words of a chain frame; undefined: its descriptors are cut short, or have an unknown verb. */
function chainWords(chain: number, given: Int32Array): Int32Array | undefined {
  const plain = plainWords(chain, given.length);
  const count = (given.length - plain) / DESCRIPTOR_WORDS_ON_LINK;
  if (!Number.isInteger(count)) return undefined;
  const words = new Int32Array(plain + count * L.DESCRIPTOR_WORDS);
  words.set(given.subarray(0, plain));
  for (let i = 0; i < count; i++) {
    const at = plain + i * DESCRIPTOR_WORDS_ON_LINK;
    const kind = VERBS[given[at] as number];
    if (kind === undefined || kind === 0) return undefined;
    words.set(descriptorOf(kind, given, at, FIELDS), plain + i * L.DESCRIPTOR_WORDS);
  }
  return words;
}
