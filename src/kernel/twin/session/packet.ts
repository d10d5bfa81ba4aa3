// Twin of assembly/packet.ts: same functions, same order; see the comments there.
import {
  ACCEPT_RESPONDER_OFFSET,
  ACCEPT_SIZE,
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_WORDS_MAX,
  ACKNOWLEDGE_WORDS_OFFSET,
  CONNECT_HALF,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_OPTIONS_OFFSET,
  CONNECT_SIZE,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_BYTES_MAX,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_FLAGS_SHIFT,
  PACKET_HALF,
  PACKET_JOB_OFFSET,
  PACKET_KIND_SHIFT,
  PACKET_LENGTH_OFFSET,
  PACKET_MAGIC,
  PACKET_NUMBER_OFFSET,
  PACKET_PROMPT,
  PACKET_REFUSE,
  PACKET_RIGHT,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  PACKET_VERSION,
  PACKET_WRONG_BODY,
  PACKET_WRONG_FLAGS,
  PACKET_WRONG_JOB,
  PACKET_WRONG_KIND,
  PACKET_WRONG_LENGTH,
  PACKET_WRONG_MAGIC,
  PACKET_WRONG_NUMBER,
  PACKET_WRONG_SEGMENT,
  PACKET_WRONG_SESSION,
  PACKET_WRONG_SIZE,
  PACKET_WRONG_VERSION,
  REFUSE_SIZE,
  SEGMENT_KIND_MAX,
  SEGMENT_KIND_SHIFT,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_SIZE,
  TAG_BYTES,
} from "../../../../assembly/layout.js";
import { alignUp } from "../../../../assembly/seq.js";
import type { Memory } from "../../kernel.js";

export function twinPacket({ words }: Memory) {
  function checkSegments(body: number, bytes: number): number {
    for (let at = 0; ; ) {
      if (bytes - at < SEGMENT_SIZE) return PACKET_WRONG_SEGMENT;
      const word = words[(body + at + SEGMENT_LENGTH_OFFSET) >>> 2];
      const kind = word >>> SEGMENT_KIND_SHIFT;
      if (kind < 1 || kind > SEGMENT_KIND_MAX) return PACKET_WRONG_SEGMENT;
      at += SEGMENT_SIZE + alignUp(word & 0xffff, 4);
      if (at > bytes) return PACKET_WRONG_SEGMENT;
      if (at === bytes) return PACKET_RIGHT;
    }
  }

  /** Least bytes of a body; larger than any body: the body is wrong. */
  function bodyBytes(kind: number, body: number, bytes: number): number {
    const none = PACKET_BYTES_MAX;
    if (kind === PACKET_CONNECT) {
      if (bytes < CONNECT_SIZE || words[(body + CONNECT_INITIATOR_OFFSET) >>> 2] === 0) return none;
      return (words[(body + CONNECT_OPTIONS_OFFSET) >>> 2] & ~CONNECT_HALF) === 0 ? CONNECT_SIZE : none;
    }
    if (kind === PACKET_ACCEPT)
      return bytes >= ACCEPT_SIZE && words[(body + ACCEPT_RESPONDER_OFFSET) >>> 2] !== 0 ? ACCEPT_SIZE : none;
    if (kind === PACKET_REFUSE) return REFUSE_SIZE;
    if (kind !== PACKET_ACKNOWLEDGE) return 0;
    if (bytes < ACKNOWLEDGE_MASK_OFFSET) return none;
    const count = words[(body + ACKNOWLEDGE_WORDS_OFFSET) >>> 2] >>> 0;
    return count > ACKNOWLEDGE_WORDS_MAX ? none : ACKNOWLEDGE_MASK_OFFSET + 4 * count;
  }

  function checkBody(kind: number, body: number, bytes: number): number {
    if (kind === PACKET_DATA) return checkSegments(body, bytes);
    return bytes >= bodyBytes(kind, body, bytes) ? PACKET_RIGHT : PACKET_WRONG_BODY;
  }

  function packetCheck(packet: number, bytes: number, job: number): number {
    if (bytes < PACKET_SIZE || bytes > PACKET_BYTES_MAX || bytes % 4 !== 0) return PACKET_WRONG_SIZE;
    const at = packet >>> 2;
    const first = words[at];
    if ((first & 0xff) !== PACKET_MAGIC) return PACKET_WRONG_MAGIC;
    if (((first >>> 8) & 0xff) !== PACKET_VERSION) return PACKET_WRONG_VERSION;
    const kind = (first >>> PACKET_KIND_SHIFT) & 0xff;
    if (kind < PACKET_CONNECT || kind > PACKET_ACKNOWLEDGE) return PACKET_WRONG_KIND;
    const flags = first >>> PACKET_FLAGS_SHIFT;
    const isData = kind === PACKET_DATA;
    if (flags > (isData ? PACKET_SEALED + PACKET_PROMPT + PACKET_HALF : PACKET_SEALED)) return PACKET_WRONG_FLAGS;
    const lengths = words[at + (PACKET_LENGTH_OFFSET >>> 2)];
    const body = lengths >>> 16;
    const end = bytes - (flags % 2 === 0 ? 0 : TAG_BYTES);
    if ((lengths & 0xffff) !== bytes) return PACKET_WRONG_LENGTH;
    if (body < PACKET_SIZE || body > end || body % 4 !== 0) return PACKET_WRONG_LENGTH;
    if (words[at + (PACKET_JOB_OFFSET >>> 2)] !== (job | 0)) return PACKET_WRONG_JOB;
    const hasSession = words[at + (PACKET_SESSION_OFFSET >>> 2)] !== 0;
    if (hasSession !== (kind !== PACKET_CONNECT)) return PACKET_WRONG_SESSION;
    const hasNumber = words[at + (PACKET_NUMBER_OFFSET >>> 2)] !== 0;
    if (words[at + (PACKET_SENT_OFFSET >>> 2)] === 0 || hasNumber !== isData) return PACKET_WRONG_NUMBER;
    return end === bytes ? checkBody(kind, (packet + body) >>> 0, end - body) : PACKET_RIGHT;
  }

  return { packetCheck };
}
