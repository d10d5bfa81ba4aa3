// Twin of assembly/packet.ts: same functions, same order; see the comments there.
import * as L from "../../../../assembly/layout.js";
import { alignUp } from "../../../../assembly/seq.js";
import type { Memory } from "../../kernel.js";

export function twinPacket({ words }: Memory) {
  function checkSegments(body: number, bytes: number): number {
    for (let at = 0; ; ) {
      if (bytes - at < L.SEGMENT_SIZE) return L.PACKET_WRONG_SEGMENT;
      const word = words[(body + at + L.SEGMENT_LENGTH_OFFSET) >>> 2];
      const kind = word >>> L.SEGMENT_KIND_SHIFT;
      if (kind < 1 || kind > L.SEGMENT_KIND_MAX) return L.PACKET_WRONG_SEGMENT;
      at += L.SEGMENT_SIZE + alignUp(word & 0xffff, 4);
      if (at > bytes) return L.PACKET_WRONG_SEGMENT;
      if (at === bytes) return L.PACKET_RIGHT;
    }
  }

  /** Least bytes of a body; larger than any body: the body is wrong. */
  function bodyBytes(kind: number, body: number, bytes: number): number {
    const none = L.PACKET_BYTES_MAX;
    if (kind === L.PACKET_CONNECT) {
      if (bytes < L.CONNECT_SIZE || words[(body + L.CONNECT_INITIATOR_OFFSET) >>> 2] === 0) return none;
      return (words[(body + L.CONNECT_OPTIONS_OFFSET) >>> 2] & ~L.CONNECT_HALF) === 0 ? L.CONNECT_SIZE : none;
    }
    if (kind === L.PACKET_ACCEPT)
      return bytes >= L.ACCEPT_SIZE && words[(body + L.ACCEPT_RESPONDER_OFFSET) >>> 2] !== 0 ? L.ACCEPT_SIZE : none;
    if (kind === L.PACKET_REFUSE) return L.REFUSE_SIZE;
    if (kind !== L.PACKET_ACKNOWLEDGE) return 0;
    if (bytes < L.ACKNOWLEDGE_MASK_OFFSET) return none;
    const count = words[(body + L.ACKNOWLEDGE_WORDS_OFFSET) >>> 2] >>> 0;
    return count > L.ACKNOWLEDGE_WORDS_MAX ? none : L.ACKNOWLEDGE_MASK_OFFSET + 4 * count;
  }

  function checkBody(kind: number, body: number, bytes: number): number {
    if (kind === L.PACKET_DATA) return checkSegments(body, bytes);
    return bytes >= bodyBytes(kind, body, bytes) ? L.PACKET_RIGHT : L.PACKET_WRONG_BODY;
  }

  function packetCheck(packet: number, bytes: number, job: number): number {
    if (bytes < L.PACKET_SIZE || bytes > L.PACKET_BYTES_MAX || bytes % 4 !== 0) return L.PACKET_WRONG_SIZE;
    const at = packet >>> 2;
    const first = words[at];
    if ((first & 0xff) !== L.PACKET_MAGIC) return L.PACKET_WRONG_MAGIC;
    if (((first >>> 8) & 0xff) !== L.PACKET_VERSION) return L.PACKET_WRONG_VERSION;
    const kind = (first >>> L.PACKET_KIND_SHIFT) & 0xff;
    if (kind < L.PACKET_CONNECT || kind > L.PACKET_ACKNOWLEDGE) return L.PACKET_WRONG_KIND;
    const flags = first >>> L.PACKET_FLAGS_SHIFT;
    const isData = kind === L.PACKET_DATA;
    if (flags > (isData ? L.PACKET_SEALED + L.PACKET_PROMPT + L.PACKET_HALF : L.PACKET_SEALED))
      return L.PACKET_WRONG_FLAGS;
    const lengths = words[at + (L.PACKET_LENGTH_OFFSET >>> 2)];
    const body = lengths >>> 16;
    const end = bytes - (flags % 2 === 0 ? 0 : L.TAG_BYTES);
    if ((lengths & 0xffff) !== bytes) return L.PACKET_WRONG_LENGTH;
    if (body < L.PACKET_SIZE || body > end || body % 4 !== 0) return L.PACKET_WRONG_LENGTH;
    if (words[at + (L.PACKET_JOB_OFFSET >>> 2)] !== (job | 0)) return L.PACKET_WRONG_JOB;
    const hasSession = words[at + (L.PACKET_SESSION_OFFSET >>> 2)] !== 0;
    if (hasSession !== (kind !== L.PACKET_CONNECT)) return L.PACKET_WRONG_SESSION;
    const hasNumber = words[at + (L.PACKET_NUMBER_OFFSET >>> 2)] !== 0;
    if (words[at + (L.PACKET_SENT_OFFSET >>> 2)] === 0 || hasNumber !== isData) return L.PACKET_WRONG_NUMBER;
    return end === bytes ? checkBody(kind, (packet + body) >>> 0, end - body) : L.PACKET_RIGHT;
  }

  return { packetCheck };
}
