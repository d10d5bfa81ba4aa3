// Checks packets that came over a link; until then their bytes mean nothing. The caller first copies a packet into memory of
// its own, so that no other thread changes it after the check.
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
} from "../layout";
import { alignUp } from "../seq";

/** Checks that the segments of a body fill it exactly. */
function checkSegments(body: usize, bytes: u32): u32 {
  let at: u32 = 0;
  do {
    if (bytes - at < SEGMENT_SIZE) return PACKET_WRONG_SEGMENT;
    const word = load<u32>(body + at, SEGMENT_LENGTH_OFFSET);
    const kind = word >>> SEGMENT_KIND_SHIFT;
    if (kind == 0 || kind > SEGMENT_KIND_MAX) return PACKET_WRONG_SEGMENT;
    at += SEGMENT_SIZE;
    const length = alignUp(word & 0xffff, 4);
    if (length > bytes - at) return PACKET_WRONG_SEGMENT;
    at += length;
  } while (at != bytes);
  return PACKET_RIGHT;
}

/** Checks a body against its kind. */
function checkBody(kind: u32, body: usize, bytes: u32): u32 {
  if (kind == PACKET_DATA) return checkSegments(body, bytes);
  let size: u32 = 0;
  let isRight = true;
  if (kind == PACKET_CONNECT) {
    size = CONNECT_SIZE;
    if (bytes < size) return PACKET_WRONG_BODY;
    isRight =
      load<u32>(body, CONNECT_INITIATOR_OFFSET) != 0 && (load<u32>(body, CONNECT_OPTIONS_OFFSET) & ~CONNECT_HALF) == 0;
  } else if (kind == PACKET_ACCEPT) {
    size = ACCEPT_SIZE;
    if (bytes < size) return PACKET_WRONG_BODY;
    isRight = load<u32>(body, ACCEPT_RESPONDER_OFFSET) != 0;
  } else if (kind == PACKET_REFUSE) size = REFUSE_SIZE;
  else if (kind == PACKET_ACKNOWLEDGE) {
    if (bytes < ACKNOWLEDGE_MASK_OFFSET) return PACKET_WRONG_BODY;
    const words = load<u32>(body, ACKNOWLEDGE_WORDS_OFFSET);
    isRight = words <= ACKNOWLEDGE_WORDS_MAX;
    size = ACKNOWLEDGE_MASK_OFFSET + (words << 2);
  }
  // A later version adds fields at the end.
  return isRight && bytes >= size ? PACKET_RIGHT : PACKET_WRONG_BODY;
}

/**
 * Checks that a packet belongs to this job and is whole: no length in it leads out of it. Of a sealed packet it checks the
 * header only; the caller opens the packet and checks it again, without its tag.
 * @param packet pointer to the copy, 4-aligned
 * @param bytes of the packet as it came
 * @returns PACKET_RIGHT, or the first rule that it breaks
 */
export function packetCheck(packet: usize, bytes: u32, job: u32): u32 {
  if (bytes < PACKET_SIZE || bytes > PACKET_BYTES_MAX || (bytes & 3) != 0) return PACKET_WRONG_SIZE;
  const first = load<u32>(packet);
  if ((first & 0xff) != PACKET_MAGIC) return PACKET_WRONG_MAGIC;
  if (((first >>> 8) & 0xff) != PACKET_VERSION) return PACKET_WRONG_VERSION;
  const kind = (first >>> PACKET_KIND_SHIFT) & 0xff;
  if (kind < PACKET_CONNECT || kind > PACKET_ACKNOWLEDGE) return PACKET_WRONG_KIND;
  const flags = first >>> PACKET_FLAGS_SHIFT;
  const known = kind == PACKET_DATA ? PACKET_SEALED | PACKET_PROMPT | PACKET_HALF : PACKET_SEALED;
  if ((flags & ~known) != 0) return PACKET_WRONG_FLAGS;
  const lengths = load<u32>(packet, PACKET_LENGTH_OFFSET);
  const body = lengths >>> 16;
  const end = (flags & PACKET_SEALED) != 0 ? bytes - TAG_BYTES : bytes;
  if ((lengths & 0xffff) != bytes || end < PACKET_SIZE || body < PACKET_SIZE || body > end || (body & 3) != 0) {
    return PACKET_WRONG_LENGTH;
  }
  if (load<u32>(packet, PACKET_JOB_OFFSET) != job) return PACKET_WRONG_JOB;
  if ((load<u32>(packet, PACKET_SESSION_OFFSET) == 0) != (kind == PACKET_CONNECT)) return PACKET_WRONG_SESSION;
  if (load<u32>(packet, PACKET_SENT_OFFSET) == 0) return PACKET_WRONG_NUMBER;
  if ((load<u32>(packet, PACKET_NUMBER_OFFSET) != 0) != (kind == PACKET_DATA)) return PACKET_WRONG_NUMBER;
  return (flags & PACKET_SEALED) != 0 ? PACKET_RIGHT : checkBody(kind, packet + body, end - body);
}
