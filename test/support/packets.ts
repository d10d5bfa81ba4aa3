// Packets as bytes, written field by field with a DataView: independent of the code that ships.
import {
  ACCEPT_EPOCH_OFFSET,
  ACCEPT_LIMIT_OFFSET,
  ACCEPT_RESPONDER_OFFSET,
  ACCEPT_SIZE,
  ACKNOWLEDGE_ALL_OFFSET,
  ACKNOWLEDGE_ECHO_OFFSET,
  ACKNOWLEDGE_LIMIT_OFFSET,
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_WORDS_OFFSET,
  CONNECT_EPOCH_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_SIZE,
  CONNECT_TARGET_OFFSET,
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_JOB_OFFSET,
  PACKET_LENGTH_OFFSET,
  PACKET_MAGIC,
  PACKET_NUMBER_OFFSET,
  PACKET_REFUSE,
  PACKET_SEALED,
  PACKET_SENT_OFFSET,
  PACKET_SESSION_OFFSET,
  PACKET_SIZE,
  PACKET_VERSION,
  REFUSE_REASON_OFFSET,
  REFUSE_SIZE,
  REFUSE_WAIT_OFFSET,
  REFUSED_BUSY,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORDER_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
  TAG_BYTES,
} from "../../assembly/layout.js";

export const JOB = 0xc0ffee11;

export interface SegmentFields {
  readonly origin?: number;
  readonly target?: number;
  readonly order?: number;
  readonly kind?: number;
  readonly content: readonly number[];
}

export interface PacketFields {
  readonly kind: number;
  readonly body: readonly number[];
  readonly session?: number;
  readonly sent?: number;
  readonly number?: number;
  readonly sealed?: boolean;
  /** Bytes between header and body, that a later version may have. */
  readonly extension?: number;
}

/** A packet of these fields; nothing is looked at. */
export function packetOf({
  kind,
  body,
  session,
  sent = 1,
  number,
  sealed = false,
  extension = 0,
}: PacketFields): DataView<ArrayBuffer> {
  const length = PACKET_SIZE + extension + body.length + (sealed ? TAG_BYTES : 0);
  const packet = new DataView(new ArrayBuffer(length));
  packet.setUint8(0, PACKET_MAGIC);
  packet.setUint8(1, PACKET_VERSION);
  packet.setUint8(2, kind);
  packet.setUint8(3, sealed ? PACKET_SEALED : 0);
  packet.setUint16(PACKET_LENGTH_OFFSET, length, true);
  packet.setUint16(PACKET_LENGTH_OFFSET + 2, PACKET_SIZE + extension, true);
  packet.setUint32(PACKET_JOB_OFFSET, JOB, true);
  packet.setUint32(PACKET_SESSION_OFFSET, session ?? (kind === PACKET_CONNECT ? 0 : 7), true);
  packet.setUint32(PACKET_SENT_OFFSET, sent, true);
  packet.setUint32(PACKET_NUMBER_OFFSET, number ?? (kind === PACKET_DATA ? 1 : 0), true);
  new Uint8Array(packet.buffer).set(body, PACKET_SIZE + extension);
  return packet;
}

/** A body of so many bytes with words in it. */
function bodyOf(bytes: number, words: Record<number, number>): number[] {
  const body = new DataView(new ArrayBuffer(bytes));
  for (const [offset, value] of Object.entries(words)) body.setUint32(Number(offset), value, true);
  return [...new Uint8Array(body.buffer)];
}

/** The segments of a body. */
export function segmentsOf(...segments: readonly SegmentFields[]): number[] {
  return segments.flatMap(({ origin = 3, target = 5, order = 0, kind = 1, content }) => [
    ...bodyOf(SEGMENT_SIZE, {
      [SEGMENT_ORIGIN_OFFSET]: origin,
      [SEGMENT_TARGET_OFFSET]: target,
      [SEGMENT_ORDER_OFFSET]: order,
      [SEGMENT_LENGTH_OFFSET]: content.length + kind * 65536,
    }),
    ...content,
    ...Array(-content.length & 3).fill(0),
  ]);
}

/** A right packet of each kind. */
export const RIGHT: Readonly<Record<string, () => DataView>> = {
  connect: () =>
    packetOf({
      kind: PACKET_CONNECT,
      body: bodyOf(CONNECT_SIZE, {
        [CONNECT_INITIATOR_OFFSET]: 9,
        [CONNECT_NODE_OFFSET]: 2,
        [CONNECT_EPOCH_OFFSET]: 1,
        [CONNECT_TARGET_OFFSET]: 4,
        [CONNECT_NONCE_OFFSET]: 0xdeadbeef,
      }),
    }),
  accept: () =>
    packetOf({
      kind: PACKET_ACCEPT,
      body: bodyOf(ACCEPT_SIZE, { [ACCEPT_RESPONDER_OFFSET]: 7, [ACCEPT_EPOCH_OFFSET]: 1, [ACCEPT_LIMIT_OFFSET]: 33 }),
    }),
  refuse: () =>
    packetOf({
      kind: PACKET_REFUSE,
      body: bodyOf(REFUSE_SIZE, { [REFUSE_REASON_OFFSET]: REFUSED_BUSY, [REFUSE_WAIT_OFFSET]: 100 }),
    }),
  data: () => packetOf({ kind: PACKET_DATA, body: segmentsOf({ content: [1, 2, 3] }, { order: 1, content: [] }) }),
  disconnect: () => packetOf({ kind: PACKET_DISCONNECT, body: [] }),
  acknowledge: () =>
    packetOf({
      kind: PACKET_ACKNOWLEDGE,
      body: bodyOf(ACKNOWLEDGE_MASK_OFFSET + 8, {
        [ACKNOWLEDGE_ALL_OFFSET]: 4,
        [ACKNOWLEDGE_ECHO_OFFSET]: 6,
        [ACKNOWLEDGE_LIMIT_OFFSET]: 70,
        [ACKNOWLEDGE_WORDS_OFFSET]: 2,
        [ACKNOWLEDGE_MASK_OFFSET]: 5,
      }),
    }),
};
