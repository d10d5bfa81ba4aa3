// Packets as they are written: the format is drawn in assembly/layout.ts. What came from a link is checked by the kernel
// (packetCheck) before any of it is read.
import {
  PACKET_FLAGS_SHIFT,
  PACKET_JOB_OFFSET,
  PACKET_KIND_SHIFT,
  PACKET_LENGTH_OFFSET,
  PACKET_MAGIC,
  PACKET_NUMBER_OFFSET,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  PACKET_VERSION,
  SEGMENT_KIND_SHIFT,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORDER_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
} from "../../assembly/layout.js";
import { alignUp } from "../../assembly/seq.js";

/** One packet on its way out, in a buffer of its own: it is kept until it is acknowledged. */
export class Packet {
  readonly #words: Int32Array<ArrayBuffer>;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #length = PACKET_SIZE;

  /** @param capacity bytes at the most, a multiple of 4 */
  constructor(capacity: number) {
    const buffer = new ArrayBuffer(capacity);
    this.#words = new Int32Array(buffer);
    this.#bytes = new Uint8Array(buffer);
  }

  /** Bytes of the contents of its segments. */
  contentBytes = 0;

  /** Bytes of it so far. */
  get length(): number {
    return this.#length;
  }

  /** `sent`, as address() wrote it. */
  get sent(): number {
    return (this.#words[PACKET_SENT_OFFSET >>> 2] as number) >>> 0;
  }

  /** Bytes that another segment may have. */
  get room(): number {
    return this.#bytes.length - this.#length - SEGMENT_SIZE;
  }

  /** All of it; valid until it is changed. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Begins anew. */
  begin(kind: number, job: number): this {
    this.#length = PACKET_SIZE;
    this.contentBytes = 0;
    this.#words[0] = PACKET_MAGIC | (PACKET_VERSION << 8) | (kind << PACKET_KIND_SHIFT);
    this.#words[PACKET_JOB_OFFSET >>> 2] = job;
    return this;
  }

  /** Writes a word of the body, behind those before. */
  word(value: number): this {
    this.#words[this.#length >>> 2] = value;
    this.#length += 4;
    return this;
  }

  /** Writes a word that is there already. */
  setWord(offset: number, value: number): this {
    this.#words[offset >>> 2] = value;
    return this;
  }

  /** Adds a segment; there must be room. */
  segment(origin: number, target: number, order: number, kind: number, content: Uint8Array): void {
    const words = this.#words;
    const at = this.#length;
    words[(at + SEGMENT_ORIGIN_OFFSET) >>> 2] = origin;
    words[(at + SEGMENT_TARGET_OFFSET) >>> 2] = target;
    words[(at + SEGMENT_ORDER_OFFSET) >>> 2] = order;
    words[(at + SEGMENT_LENGTH_OFFSET) >>> 2] = content.length | (kind << SEGMENT_KIND_SHIFT);
    const end = at + SEGMENT_SIZE + alignUp(content.length, 4);
    if (content.length % 4 !== 0) words[(end >>> 2) - 1] = 0; // the padding
    this.#bytes.set(content, at + SEGMENT_SIZE);
    this.#length = end;
    this.contentBytes += content.length;
  }

  /** Sets all flags. */
  flags(flags: number): this {
    this.#bytes[PACKET_FLAGS_SHIFT >>> 3] = flags;
    return this;
  }

  /** Fills in what a packet of a session has; as often as it is sent. */
  address(session: number, sent: number, number: number): this {
    const words = this.#words;
    words[PACKET_LENGTH_OFFSET >>> 2] = this.#length | (PACKET_SIZE << 16);
    words[PACKET_SESSION_OFFSET >>> 2] = session;
    words[PACKET_SENT_OFFSET >>> 2] = sent;
    words[PACKET_NUMBER_OFFSET >>> 2] = number;
    return this;
  }
}
