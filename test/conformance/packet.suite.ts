// What every implementation of packetCheck() does with what came from a wire: each rule, one field at a time.
import { beforeEach, describe, expect, it } from "vitest";
import {
  ACCEPT_RESPONDER_OFFSET,
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_WORDS_MAX,
  ACKNOWLEDGE_WORDS_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_OPTIONS_OFFSET,
  PACKET_BYTES_MAX,
  PACKET_DATA,
  PACKET_JOB_OFFSET,
  PACKET_LENGTH_OFFSET,
  PACKET_NUMBER_OFFSET,
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
  SEGMENT_KIND_MAX,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_SIZE,
} from "../../assembly/layout.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { JOB, packetOf, RIGHT, segmentsOf } from "../support/packets.js";

const BODY = PACKET_SIZE;
type Change = (packet: DataView) => unknown;

/** What makes a right packet of a kind wrong. */
const WRONGS: readonly [what: string, kind: string, rule: number, change: Change][] = [
  ["a byte that is not the magic", "data", PACKET_WRONG_MAGIC, (packet) => packet.setUint8(0, 0x51)],
  ["a later version", "data", PACKET_WRONG_VERSION, (packet) => packet.setUint8(1, PACKET_VERSION + 1)],
  ["version 0", "data", PACKET_WRONG_VERSION, (packet) => packet.setUint8(1, 0)],
  ["kind 0", "data", PACKET_WRONG_KIND, (packet) => packet.setUint8(2, 0)],
  ["a kind that is not known", "data", PACKET_WRONG_KIND, (packet) => packet.setUint8(2, 7)],
  ["a flag that is not known", "data", PACKET_WRONG_FLAGS, (packet) => packet.setUint8(3, 8)],
  ["a flag of data", "accept", PACKET_WRONG_FLAGS, (packet) => packet.setUint8(3, 2)],
  [
    "a length that is less",
    "data",
    PACKET_WRONG_LENGTH,
    (p) => p.setUint16(PACKET_LENGTH_OFFSET, p.byteLength - 4, true),
  ],
  [
    "a length that is more",
    "data",
    PACKET_WRONG_LENGTH,
    (p) => p.setUint16(PACKET_LENGTH_OFFSET, p.byteLength + 4, true),
  ],
  [
    "a body in the header",
    "data",
    PACKET_WRONG_LENGTH,
    (packet) => packet.setUint16(PACKET_LENGTH_OFFSET + 2, 20, true),
  ],
  [
    "a body off the words",
    "data",
    PACKET_WRONG_LENGTH,
    (packet) => packet.setUint16(PACKET_LENGTH_OFFSET + 2, 26, true),
  ],
  [
    "a body behind the end",
    "data",
    PACKET_WRONG_LENGTH,
    (p) => p.setUint16(PACKET_LENGTH_OFFSET + 2, p.byteLength + 4, true),
  ],
  [
    "a tag for which there is no room",
    "disconnect",
    PACKET_WRONG_LENGTH,
    (packet) => packet.setUint8(3, PACKET_SEALED),
  ],
  ["another job", "data", PACKET_WRONG_JOB, (packet) => packet.setUint32(PACKET_JOB_OFFSET, JOB ^ 0x80000000, true)],
  ["no session", "data", PACKET_WRONG_SESSION, (packet) => packet.setUint32(PACKET_SESSION_OFFSET, 0, true)],
  ["a session before it is one", "connect", PACKET_WRONG_SESSION, (p) => p.setUint32(PACKET_SESSION_OFFSET, 1, true)],
  ["no number of those sent", "acknowledge", PACKET_WRONG_NUMBER, (p) => p.setUint32(PACKET_SENT_OFFSET, 0, true)],
  ["data without a number", "data", PACKET_WRONG_NUMBER, (packet) => packet.setUint32(PACKET_NUMBER_OFFSET, 0, true)],
  ["a number without data", "acknowledge", PACKET_WRONG_NUMBER, (p) => p.setUint32(PACKET_NUMBER_OFFSET, 1, true)],
  ["no initiator", "connect", PACKET_WRONG_BODY, (p) => p.setUint32(BODY + CONNECT_INITIATOR_OFFSET, 0, true)],
  [
    "an option that is not known",
    "connect",
    PACKET_WRONG_BODY,
    (p) => p.setUint32(BODY + CONNECT_OPTIONS_OFFSET, 2, true),
  ],
  ["no responder", "accept", PACKET_WRONG_BODY, (p) => p.setUint32(BODY + ACCEPT_RESPONDER_OFFSET, 0, true)],
  [
    "more mask than there is",
    "acknowledge",
    PACKET_WRONG_BODY,
    (p) => p.setUint32(BODY + ACKNOWLEDGE_WORDS_OFFSET, 3, true),
  ],
  [
    "2^30 words of mask",
    "acknowledge",
    PACKET_WRONG_BODY,
    (p) => p.setUint32(BODY + ACKNOWLEDGE_WORDS_OFFSET, 2 ** 30, true),
  ],
  ["segment kind 0", "data", PACKET_WRONG_SEGMENT, (p) => p.setUint16(BODY + SEGMENT_LENGTH_OFFSET + 2, 0, true)],
  [
    "a segment kind that is not known",
    "data",
    PACKET_WRONG_SEGMENT,
    (p) => p.setUint16(BODY + SEGMENT_LENGTH_OFFSET + 2, SEGMENT_KIND_MAX + 1, true),
  ],
  [
    "a segment that is too long",
    "data",
    PACKET_WRONG_SEGMENT,
    (p) => p.setUint16(BODY + SEGMENT_LENGTH_OFFSET, 21, true),
  ],
  [
    "a segment of 65,535 bytes",
    "data",
    PACKET_WRONG_SEGMENT,
    (p) => p.setUint16(BODY + SEGMENT_LENGTH_OFFSET, 65535, true),
  ],
  [
    "a segment cut off by the one before",
    "data",
    PACKET_WRONG_SEGMENT,
    (p) => p.setUint16(BODY + SEGMENT_LENGTH_OFFSET, 8, true),
  ],
];

export function packetSuite(name: string, options: RigOptions): void {
  describe(`packets from a wire: ${name}`, () => {
    let rig: Rig;
    /** Where a packet is copied to; what is behind it means nothing. */
    let place: number;
    beforeEach(() => {
      rig = makeRig({ ...options, heapBytes: 32 * 4096 });
      place = rig.map.heapBase;
    });

    function check(packet: DataView, bytes = packet.byteLength, job = JOB): number {
      rig.write(place, new Uint8Array(packet.buffer));
      return rig.consumer.packetCheck(place, bytes, job);
    }

    it.each(Object.keys(RIGHT))("takes a right one: %s", (kind) => {
      expect(check((RIGHT[kind] as () => DataView)())).toBe(PACKET_RIGHT);
    });

    it.each(WRONGS)("refuses %s (%s)", (_, kind, rule, change) => {
      const packet = (RIGHT[kind] as () => DataView)();
      change(packet);
      expect(check(packet)).toBe(rule);
    });

    it.each(Object.keys(RIGHT))("refuses what is cut off, anywhere: %s", (kind) => {
      const packet = (RIGHT[kind] as () => DataView)();
      for (let bytes = 0; bytes < packet.byteLength; bytes++) {
        const rule = bytes % 4 !== 0 || bytes < PACKET_SIZE ? PACKET_WRONG_SIZE : PACKET_WRONG_LENGTH;
        expect(check(packet, bytes), `${bytes} bytes`).toBe(rule);
      }
    });

    it.each(Object.keys(RIGHT))("refuses a body that is cut off, with lengths that agree: %s", (kind) => {
      const whole = (RIGHT[kind] as () => DataView)();
      for (let bytes = PACKET_SIZE; bytes < whole.byteLength; bytes += 4) {
        const packet = new DataView(whole.buffer.slice(0, bytes));
        packet.setUint16(PACKET_LENGTH_OFFSET, bytes, true);
        // Of two segments the first may stand alone.
        const first = BODY + SEGMENT_SIZE + 4;
        const rule = kind === "data" ? PACKET_WRONG_SEGMENT : PACKET_WRONG_BODY;
        expect(check(packet), `${bytes} bytes`).toBe(kind === "data" && bytes === first ? PACKET_RIGHT : rule);
      }
    });

    it("room to grow: what a later version puts behind the header, or behind a body, is skipped", () => {
      const body = segmentsOf({ content: [1] });
      expect(check(packetOf({ kind: PACKET_DATA, body, extension: 12 }))).toBe(PACKET_RIGHT);
      const accept = (RIGHT.accept as () => DataView)();
      const longer = new DataView(new ArrayBuffer(accept.byteLength + 8));
      new Uint8Array(longer.buffer).set(new Uint8Array(accept.buffer));
      longer.setUint16(PACKET_LENGTH_OFFSET, longer.byteLength, true);
      expect(check(longer)).toBe(PACKET_RIGHT);
    });

    it("a place for authentication: a tag behind the body is no part of it", () => {
      const body = segmentsOf({ content: [1, 2, 3, 4] }, { content: [5] });
      const sealed = packetOf({ kind: PACKET_DATA, body, sealed: true });
      expect(check(sealed)).toBe(PACKET_RIGHT);
      // Without the flag the tag would be a segment, and is none.
      sealed.setUint8(3, 0);
      expect(check(sealed)).toBe(PACKET_WRONG_SEGMENT);
    });

    it("D9 the body of a sealed packet is looked at once it is open: sealed it may be anything, and its header may not", () => {
      const body = segmentsOf({ content: [1, 2, 3, 4] }).map((byte) => byte ^ 0xa5);
      const sealed = packetOf({ kind: PACKET_DATA, body, sealed: true });
      expect(check(sealed)).toBe(PACKET_RIGHT);
      sealed.setUint32(PACKET_SENT_OFFSET, 0, true);
      expect(check(sealed)).toBe(PACKET_WRONG_NUMBER);
      expect(check(packetOf({ kind: PACKET_DATA, body }))).toBe(PACKET_WRONG_SEGMENT);
    });

    it("several small messages share a packet: from one segment to as many as there is room for", () => {
      for (const count of [1, 2, 87, Math.floor((PACKET_BYTES_MAX - PACKET_SIZE) / SEGMENT_SIZE)]) {
        const segments = Array.from({ length: count }, (_, order) => ({ order, content: [] }));
        expect(check(packetOf({ kind: PACKET_DATA, body: segmentsOf(...segments) }))).toBe(PACKET_RIGHT);
      }
    });

    it("refuses data without a segment", () => {
      expect(check(packetOf({ kind: PACKET_DATA, body: [] }))).toBe(PACKET_WRONG_SEGMENT);
    });

    it("takes the largest packet, and none that is larger", () => {
      const content = Array(PACKET_BYTES_MAX - PACKET_SIZE - SEGMENT_SIZE).fill(1);
      expect(check(packetOf({ kind: PACKET_DATA, body: segmentsOf({ content }) }))).toBe(PACKET_RIGHT);
      const larger = segmentsOf({ content: [...content, 1] });
      expect(check(packetOf({ kind: PACKET_DATA, body: larger }))).toBe(PACKET_WRONG_SIZE);
    });

    it("takes a mask of any length up to the largest", () => {
      for (const words of [0, 1, ACKNOWLEDGE_WORDS_MAX, ACKNOWLEDGE_WORDS_MAX + 1]) {
        const packet = (RIGHT.acknowledge as () => DataView)();
        const body = new DataView(new ArrayBuffer(ACKNOWLEDGE_MASK_OFFSET + 4 * words));
        body.setUint32(ACKNOWLEDGE_WORDS_OFFSET, words, true);
        const whole = packetOf({ kind: packet.getUint8(2), body: [...new Uint8Array(body.buffer)] });
        expect(check(whole)).toBe(words > ACKNOWLEDGE_WORDS_MAX ? PACKET_WRONG_BODY : PACKET_RIGHT);
      }
    });
  });
}
