// The bytes of frames on a link: pinned, so that a change of the memory's layout that leaks into them is seen; and whatever
// bytes come, decoding them neither throws nor makes up what they do not say.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CHAIN_BEGIN,
  CHAIN_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_PUT,
  DESCRIPTOR_RGET,
  DESCRIPTOR_RMW,
  FRAME_ASK,
  KIND_MESSAGE,
  KIND_RTS,
  META_HEADER_SHIFT,
  RGET_FIFO_SLOTS,
  RTS_BYTES_OFFSET,
  RTS_FIFO_OFFSET,
  RTS_SIZE,
  SEGMENT_KIND_MAX,
} from "../../assembly/layout.js";
import { decode, encode, FRAME_VERSION, HEAD_WORDS_MAX } from "../../src/transport/net/encoding.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { copyBody } from "../../src/transport/net/records.js";
import { RUNS_MAX } from "../../src/transport/net/remote-rma.js";
import { word } from "../support/arbitraries.js";
import { bytesFrom } from "../support/bytes.js";
import { frameWith, recordsIn } from "../support/record.js";
import { assertProperty, replayNote } from "../support/seed.js";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const words = (...all: number[]): string => hex(new Uint8Array(Int32Array.from(all).buffer));
/** A descriptor of each of its words: kind, bytes, local (3), remote (3), value (2), test (2). */
const descriptor = (kind: number, ...rest: number[]) => Int32Array.of(kind, ...rest);

const put = { ask: 9, descriptor: descriptor(DESCRIPTOR_PUT, 16, 1, 3, 64, 5, 7, 128, 0, 0, 0, 0) };
const NONE = new Int32Array(0);

const PINNED: readonly [string, Frame, kind: number, head: string][] = [
  ["records", { records: Uint8Array.of(1, 2, 3, 4) }, 1, words(1)],
  ["a credit", { credit: 4096 }, 2, words(0x10001, 4096)],
  [
    "a put, without its local part",
    { ...put, moved: 8, more: NONE, data: undefined },
    3,
    words(0x70001, 9, 8, 1, 16, 5, 7, 128),
  ],
  [
    "three puts on one region",
    { ...put, moved: 0, more: Int32Array.of(4, 256, 0, 512), data: undefined },
    3,
    words(0xb0001, 9, 0, 1, 16, 5, 7, 128, 4, 256, 0, 512),
  ],
  [
    "an rmw, with its operands",
    {
      ask: 9,
      descriptor: descriptor(DESCRIPTOR_RMW, 26, 0, 0, 0, 5, 7, 8, -1, 1, 2, 3),
      moved: 0,
      more: NONE,
      data: undefined,
    },
    3,
    words(0xb0001, 9, 0, 3, 26, 5, 7, 8, -1, 1, 2, 3),
  ],
  ["an answer", { answer: 9, results: Int32Array.of(4), data: undefined }, 4, words(0x20001, 9, 4)],
  ["an answer of each", { answer: 9, results: Int32Array.of(1, 4), data: undefined }, 4, words(0x30001, 9, 1, 4)],
  ["the end of a context", { end: "context", streams: 1 }, 5, words(0x20001, 0, 1)],
  ["a task that is cut off", { end: "cutOff", streams: 2 }, 5, words(0x20001, 2, 2)],
  ["the end of a task", { end: "task", streams: 4 }, 5, words(0x20001, 1, 4)],
  [
    "the words of a move",
    { chain: CHAIN_MOVE, words: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 0, 9), data: undefined },
    7,
    words(0xa0001, 3, 1, 2, 3, 4, 5, 6, 7, 0, 9),
  ],
  [
    "the descriptors of a beginning",
    {
      chain: CHAIN_BEGIN,
      words: Int32Array.of(
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        ...descriptor(DESCRIPTOR_RGET, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20),
      ),
      data: undefined,
    },
    7,
    words(0x150001, 1, 1, 2, 3, 4, 5, 6, 7, 8, 4, 10, 14, 15, 16, 11, 12, 13, 17, 18, 19, 20),
  ],
];

describe("the bytes of a frame", () => {
  it.each(PINNED)("are those of version 1, and say it again: %s", (_, frame, kind, head) => {
    const given = encode(frame);
    expect([FRAME_VERSION, given.kind, hex(given.head)]).toEqual([1, kind, head]);
    const content = new Uint8Array([...given.head, ...given.data]);
    const back = decode(kind, content) as Frame;
    const expected = "descriptor" in frame ? { ...frame, descriptor: back && remoteOf(frame.descriptor) } : frame;
    expect(back).toEqual(expected);
  });

  it("of another version are dropped", () => {
    for (const [, frame, kind] of PINNED) {
      const { head, data } = encode(frame);
      const content = new Uint8Array([...head, ...data]);
      content[0] = FRAME_VERSION + 1;
      expect(decode(kind, content)).toBeUndefined();
    }
  });

  it("of a verb that does not exist, or belongs to no operation, are dropped", () => {
    const { head } = encode({ ...put, moved: 8, more: NONE, data: undefined });
    for (const verb of [0, 4, 5, 8, 9, 255]) {
      head[12] = verb;
      expect(decode(FRAME_ASK, head), `verb ${verb}`).toBeUndefined();
    }
  });

  it("of operations that are cut short, or of further ones behind an rmw, are dropped", () => {
    const heads = [
      [0x60001, 9, 8, 1, 16, 5, 7],
      [0x80001, 9, 8, 1, 16, 5, 7, 128, 4],
      [0xd0001, 9, 0, 3, 26, 5, 7, 8, -1, 1, 2, 3, 4, 256],
    ];
    for (const head of heads) {
      expect(decode(FRAME_ASK, new Uint8Array(Int32Array.from(head).buffer))).toBeUndefined();
    }
  });

  it("of as many operations as an agent asks for at once have a head that is allowed", () => {
    const frame = { ...put, moved: 0, more: new Int32Array(2 * (RUNS_MAX - 1)).fill(5), data: undefined };
    const { kind, head } = encode(frame);
    expect(decode(kind, head)).toMatchObject({ ask: 9, more: frame.more });
  });

  it("of as many descriptors as an rget FIFO takes have a head that is allowed", () => {
    const all = Array.from({ length: RGET_FIFO_SLOTS }, () => [
      ...descriptor(DESCRIPTOR_NOTICE, ...new Array(11).fill(3)),
    ]);
    const frame = {
      chain: CHAIN_BEGIN,
      words: Int32Array.from([...new Array(8).fill(1), ...all.flat()]),
      data: undefined,
    };
    const { kind, head } = encode(frame);
    expect(head.length / 4 - 1).toBeLessThanOrEqual(HEAD_WORDS_MAX);
    expect(decode(kind, head)).toEqual(frame);
  });

  it(`are decoded without an exception, whatever they are, and what is decoded is encoded alike (${replayNote()})`, () =>
    assertProperty(
      fc.property(
        fc.integer({ min: 0, max: SEGMENT_KIND_MAX }),
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc
            .tuple(
              fc.integer({ min: 0, max: 30 }),
              fc.array(fc.oneof(fc.integer({ min: 0, max: 12 }), word), { maxLength: 40 }),
            )
            .map(([count, all]) => new Uint8Array(Int32Array.from([FRAME_VERSION | (count << 16), ...all]).buffer)),
        ),
        (kind, content) => {
          const frame = decode(kind, content);
          if (frame === undefined) return;
          const { kind: again, head, data } = encode(frame);
          expect(again).toBe(kind);
          expect(decode(again, new Uint8Array([...head, ...data]))).toEqual(frame);
        },
      ),
      2000,
    ));
});

/** What of a descriptor goes to the target. */
function remoteOf(given: Int32Array): Int32Array {
  const remote = given.slice();
  remote.fill(0, 2, 5);
  return remote;
}

describe("the bytes of a record in a frame", () => {
  it("are a number for its kind, its length, dispatch id and header bytes, and the body", () => {
    const frame = frameWith(KIND_MESSAGE, (2 << META_HEADER_SHIFT) | 77, Uint8Array.of(5, 6, 7));
    expect(hex(frame)).toBe("03000001" + "4d000200" + "05060700");
  });

  it("of a request to send are its words in an order of their own, and come back as they were", () => {
    const body = new Uint8Array(RTS_SIZE + 4);
    const view = new DataView(body.buffer);
    for (let offset = RTS_BYTES_OFFSET; offset < RTS_FIFO_OFFSET; offset += 4) view.setUint32(offset, offset + 1, true);
    view.setUint32(28, 0, true);
    view.setUint32(RTS_FIFO_OFFSET, 99, true);
    body.set([1, 2, 3, 4], RTS_SIZE);
    const frame = frameWith(KIND_RTS, (4 << META_HEADER_SHIFT) | 1, body);
    expect(hex(frame.subarray(8))).toBe(words(1, 5, 9, 13, 17, 21, 25, 99, 0, 0, 0x04030201));
    const [record] = recordsIn(frame) ?? [];
    expect([record?.kind, record?.meta, hex(record?.body as Uint8Array)]).toEqual([
      KIND_RTS,
      (4 << META_HEADER_SHIFT) | 1,
      hex(body),
    ]);
  });

  it.each([0, 1, 3, 4, 63, 64, 253, 256, 257, 1399, 1400, 1401])(
    "hold a body of %i bytes, with zeros to the next word",
    (length) => {
      const body = bytesFrom(length, (i) => 1 + (i % 255));
      const frame = frameWith(KIND_MESSAGE, 0, body);
      expect(frame.subarray(8 + length).every((byte) => byte === 0)).toBe(true);
      const words = new Int32Array(new SharedArrayBuffer(2048)).fill(-1);
      const bytes = new Uint8Array(words.buffer);
      copyBody(new Int32Array(frame.buffer), 0, { words, bytes }, 8);
      expect(hex(bytes.subarray(8, 8 + length))).toBe(hex(body));
      expect([words[1], words[2 + Math.ceil(length / 4)]], "what is around it").toEqual([-1, -1]);
    },
  );

  it("of a kind that asks for memory of the other side, or of none, are refused", () => {
    for (const number of [0, 7, 255]) {
      const frame = Uint8Array.of(0, 0, 0, number, 1, 0, 0, 0);
      expect(recordsIn(frame), `kind ${number}`).toBeUndefined();
    }
  });
});
