// Writes packets in the format that assembly/layout.ts draws. Received packets: received-packet.ts.
import * as L from "../../../assembly/layout.js";
import { alignUp } from "../../../assembly/seq.js";
import { copyInto } from "../../support/copy.js";

/** An outgoing packet, in a buffer of its own. Data packets are kept until they are acknowledged. */
export class Packet {
  /** The whole buffer. */
  readonly words: Int32Array<ArrayBuffer>;
  readonly bytes: Uint8Array<ArrayBuffer>;
  #length = L.PACKET_SIZE;
  #written: Uint8Array<ArrayBuffer>;

  /** @param capacity the most bytes that it can have, a multiple of 4 */
  constructor(capacity: number) {
    const buffer = new ArrayBuffer(capacity);
    this.words = new Int32Array(buffer);
    this.bytes = new Uint8Array(buffer);
    this.#written = this.bytes;
  }

  /** Bytes of the contents of its segments. */
  contentBytes = 0;
  /** Where the content of its last segment begins. */
  content = 0;

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  /** The transmission number that address() wrote. */
  get sent(): number {
    return (this.words[L.PACKET_SENT_OFFSET >>> 2] as number) >>> 0;
  }

  /** Bytes of content that one more segment may have; negative if none fits. */
  get room(): number {
    return this.bytes.length - this.#length - L.SEGMENT_SIZE;
  }

  /** The whole packet; valid until it is changed. */
  get written(): Uint8Array<ArrayBuffer> {
    if (this.#written.length !== this.#length) this.#written = this.bytes.subarray(0, this.#length);
    return this.#written;
  }

  /** Resets it to an empty packet of a kind. */
  begin(kind: number, job: number): this {
    this.#length = L.PACKET_SIZE;
    this.contentBytes = 0;
    this.words[0] = L.PACKET_MAGIC | (L.PACKET_VERSION << 8) | (kind << L.PACKET_KIND_SHIFT);
    this.words[L.PACKET_JOB_OFFSET >>> 2] = job;
    return this;
  }

  /** Appends a word to the body. */
  word(value: number): this {
    this.words[this.#length >>> 2] = value;
    this.#length += 4;
    return this;
  }

  /** Overwrites a word. */
  setWord(offset: number, value: number): this {
    this.words[offset >>> 2] = value;
    return this;
  }

  /** Appends a segment of so many bytes, at most `room`. Its content, which begins at `content`, is to be written at once. */
  segment(origin: number, target: number, order: number, kind: number, bytes: number): void {
    const { words } = this;
    const at = this.#length;
    words[(at + L.SEGMENT_ORIGIN_OFFSET) >>> 2] = origin;
    words[(at + L.SEGMENT_TARGET_OFFSET) >>> 2] = target;
    words[(at + L.SEGMENT_ORDER_OFFSET) >>> 2] = order;
    words[(at + L.SEGMENT_LENGTH_OFFSET) >>> 2] = bytes | (kind << L.SEGMENT_KIND_SHIFT);
    this.content = at + L.SEGMENT_SIZE;
    this.#length = this.content + alignUp(bytes, 4);
    if (bytes % 4 !== 0) words[(this.#length >>> 2) - 1] = 0; // the padding
    this.contentBytes += bytes;
  }

  /** Writes the content of the last segment, which is in two parts. */
  put(first: Uint8Array, more: Uint8Array): void {
    copyInto(this.bytes, this.content, first);
    if (more.length > 0) copyInto(this.bytes, this.content + first.length, more);
  }

  /** Sets the flags byte. */
  flags(flags: number): this {
    this.bytes[L.PACKET_FLAGS_SHIFT >>> 3] = flags;
    return this;
  }

  /**
   * Fills in the header fields that change with each transmission.
   * @param session the session id or reference that the receiver assigned
   * @param sent the transmission number
   * @param number the packet number of data; else 0
   */
  address(session: number, sent: number, number: number): this {
    const words = this.words;
    words[L.PACKET_LENGTH_OFFSET >>> 2] = this.#length | (L.PACKET_SIZE << 16);
    words[L.PACKET_SESSION_OFFSET >>> 2] = session;
    words[L.PACKET_SENT_OFFSET >>> 2] = sent;
    words[L.PACKET_NUMBER_OFFSET >>> 2] = number;
    return this;
  }
}
