// Frames through the segments of sessions: what is sent is heard, and what was not sent is dropped.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CHAIN_MOVE,
  CHAIN_SHIP,
  CHAIN_STOP,
  DESCRIPTOR_GET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_PUT,
  DESCRIPTOR_RMW,
  FRAME_CHAIN,
  FRAME_MORE,
  FRAME_PROBE,
  FRAME_RECORDS,
  SEGMENT_KIND_MAX,
  SEGMENT_KIND_SHIFT,
  SEGMENT_LENGTH_OFFSET,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_SIZE,
  SEGMENT_TARGET_OFFSET,
} from "../../assembly/layout.js";
import { endpointOf, taskOf } from "../../src/core/endpoint.js";
import { memoryOf } from "../../src/kernel/kernel.js";
import { encode, FRAME_VERSION } from "../../src/transport/net/encoding.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { RUNS_MAX } from "../../src/transport/net/remote-rma.js";
import { SessionPipe } from "../../src/transport/net/session-pipe.js";
import { word } from "../support/arbitraries.js";
import { randomOf } from "../support/random.js";
import { assertProperty, replayNote } from "../support/seed.js";

const TASKS = 3;
const CONTEXTS = 2;
const HEAP_BYTES = 4096;
/** Where segments lie that come. */
const SEGMENTS_AT = 64;
/** Kinds of which there are frames, and of a probe. */
const KIND_LAST = FRAME_CHAIN;
/** Bytes of a segment's content: the words of the longest frame fit in one. */
const CONTENT_MIN = 60;

interface Segment {
  readonly from: number;
  readonly to: number;
  readonly kind: number;
  readonly content: Uint8Array;
}

interface Heard {
  readonly from: number;
  readonly to: number;
  readonly frame: Frame;
}

/** A frame with bytes of its own: those that come are valid for a while. */
function kept(frame: Frame): Frame {
  if ("records" in frame) return { records: frame.records.slice() };
  return "data" in frame ? { ...frame, data: frame.data?.slice() } : frame;
}

/** A task's frames, what it has heard, and the way in. */
class Party {
  readonly frames: SessionPipe;
  readonly heard: Heard[] = [];
  /** Microseconds. */
  now = 0;
  /** Bytes of content that the packet takes which is filled now. */
  room = (): number => -1;
  readonly #memory = memoryOf(new SharedArrayBuffer(65536 + SEGMENTS_AT));

  constructor(task: number, contentMax: number, submit: (segment: Segment) => boolean) {
    const nodeOf = (one: number): number => (one < TASKS ? one : -1);
    const segments = {
      contentMax,
      roomFor: (): number => this.room(),
      pump: (): void => {},
      claim: (node: number, from: number, to: number, kind: number, length: number) => {
        expect([taskOf(to), length <= contentMax]).toEqual([node, true]);
        const words = new Int32Array(Math.ceil(length / 4));
        const bytes = new Uint8Array(words.buffer);
        if (!submit({ from, to, kind, content: bytes.subarray(0, length) })) return undefined;
        const put = (first: Uint8Array, more: Uint8Array): void => {
          expect(first.length + more.length).toBe(length);
          bytes.set(first);
          bytes.set(more, first.length);
        };
        return { words, bytes, content: 0, put };
      },
      abandon: () => {},
    };
    this.frames = new SessionPipe(
      { node: task, first: task, nodeOf, firstOf: (node) => node },
      this.#memory,
      segments,
      HEAP_BYTES,
      { now: () => this.now, advance: () => {} },
    );
    this.frames.onFrame = (from, to, frame) => {
      this.heard.push({ from, to, frame: kept(frame) });
      return true;
    };
  }

  take({ from, to, kind, content }: Segment): void {
    const { words, bytes } = this.#memory;
    words[(SEGMENTS_AT + SEGMENT_ORIGIN_OFFSET) >>> 2] = from;
    words[(SEGMENTS_AT + SEGMENT_TARGET_OFFSET) >>> 2] = to;
    words[(SEGMENTS_AT + SEGMENT_LENGTH_OFFSET) >>> 2] = content.length | (kind << SEGMENT_KIND_SHIFT);
    bytes.set(content, SEGMENTS_AT + SEGMENT_SIZE);
    this.frames.take(SEGMENTS_AT);
    // They are somebody else's now.
    bytes.fill(0xee, SEGMENTS_AT, SEGMENTS_AT + SEGMENT_SIZE + content.length);
  }
}

const some = (max: number) =>
  fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.uint8Array({ minLength: 1, maxLength: max }));
const none = fc.constant(undefined);
const words = (count: number) =>
  fc.array(word, { minLength: count, maxLength: count }).map((all) => Int32Array.from(all, (one) => one | 0));
/** A descriptor without its local part: verb, bytes or code, the remote region, operands. */
const operation = (kind: number, [bytes = 0, index = 0, generation = 0, offset = 0, ...operands]: Int32Array) =>
  Int32Array.of(kind, bytes, 0, 0, 0, index, generation, offset, ...[0, 0, 0, 0].map((_, i) => operands[i] ?? 0));
const frame: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({ records: fc.oneof(fc.constant(new Uint8Array(0)), some(HEAP_BYTES - 4)) }),
  fc.record({ credit: word }),
  fc.record({
    ask: word,
    descriptor: words(8).map((given) => operation(DESCRIPTOR_RMW, given)),
    moved: word,
    more: words(0),
    data: fc.oneof(none, some(HEAP_BYTES - 64)),
  }),
  fc.record({
    ask: word,
    descriptor: fc.oneof(
      words(4).map((given) => operation(DESCRIPTOR_PUT, given)),
      words(4).map((given) => operation(DESCRIPTOR_GET, given)),
    ),
    moved: word,
    more: fc.integer({ min: 0, max: RUNS_MAX - 1 }).chain((count) => words(2 * count)),
    data: fc.oneof(none, some(HEAP_BYTES - 64 - 8 * RUNS_MAX)),
  }),
  fc.record({
    answer: word,
    results: fc.integer({ min: 1, max: RUNS_MAX }).chain(words),
    data: fc.oneof(none, some(HEAP_BYTES - 8 - 4 * RUNS_MAX)),
  }),
  fc.record({ chain: fc.integer({ min: CHAIN_MOVE, max: 100 }), words: words(9), data: fc.oneof(none, some(400)) }),
  fc.array(words(12), { minLength: 1, maxLength: 3 }).map((all) => ({
    chain: CHAIN_SHIP,
    words: Int32Array.from([1, 2, 3, 4, ...all.flatMap((given) => [DESCRIPTOR_MOVE, ...given.subarray(1)])]),
    data: undefined,
  })),
  fc.record({ end: fc.constantFrom("context" as const, "task" as const), streams: word }),
);
const endpoint = fc
  .tuple(fc.integer({ min: 0, max: TASKS - 1 }), fc.integer({ min: 0, max: CONTEXTS - 1 }))
  .map(([task, context]) => endpointOf(task, context));
const posted = fc.record({ from: endpoint, to: endpoint, frame }).filter(({ from, to }) => taskOf(from) !== taskOf(to));

/** Frames of each pair, as plain values. */
function byPair(frames: readonly Heard[]): Record<string, unknown[]> {
  const pairs: Record<string, unknown[]> = {};
  for (const { from, to, frame: one } of frames) {
    const plain = Object.entries(one).map(([name, value]) => [
      name,
      ArrayBuffer.isView(value) ? [...(value as Uint8Array)] : value,
    ]);
    const pair = `${from} ${to}`;
    pairs[pair] ??= [];
    pairs[pair].push(Object.fromEntries(plain));
  }
  return pairs;
}

describe(`frames (${replayNote()})`, () => {
  it("are heard as they were posted, in order by pair, whatever the sessions refuse now and then", () =>
    assertProperty(
      fc.property(
        fc.array(posted, { maxLength: 40 }),
        fc.oneof(fc.integer({ min: CONTENT_MIN, max: 300 }), fc.constantFrom(1400, 9000)),
        word,
        (frames, contentMax, seed) => {
          const random = randomOf(seed);
          const lines = new Map<string, Segment[]>();
          const submit = (segment: Segment): boolean => {
            if (random(3) === 0) return false;
            const pair = `${segment.from} ${segment.to}`;
            const line = lines.get(pair) ?? [];
            line.push(segment);
            lines.set(pair, line);
            return true;
          };
          const all = Array.from({ length: TASKS }, (_, task) => new Party(task, contentMax, submit));
          for (const one of all) one.room = () => random(2 * contentMax) - contentMax;
          /** Pairs go on as they like; each in order. */
          const deliver = (): boolean => {
            const waiting = [...lines.values()].filter(({ length }) => length > 0);
            const segment = waiting[random(waiting.length || 1)]?.shift();
            if (segment !== undefined) all[taskOf(segment.to)]?.take(segment);
            return segment !== undefined;
          };
          for (const { from, to, frame: one } of frames) {
            const { frames: own } = all[taskOf(from)] as Party;
            if ("records" in one && random(2) === 0) {
              const { records } = one;
              own.sendRecords(from, to, records.length, (into, at) => into.bytes.set(records, 4 * at));
            } else own.send(from, to, one);
            if (random(2) === 0) all[random(TASKS)]?.frames.flush();
            for (let count = random(4); count > 0; count--) deliver();
          }
          const isWaiting = () => all.some(({ frames: { inUse } }) => inUse.frames > 0);
          while (isWaiting() || deliver()) for (const { frames: one } of all) one.flush();
          expect(byPair(all.flatMap(({ heard }) => heard))).toEqual(byPair(frames));
          for (const { frames: one } of all) {
            expect([one.wrong, one.inUse]).toEqual([0, { frames: 0, partials: 0, partialBytes: 0 }]);
          }
        },
      ),
      200,
    ));

  it("that are none are counted; none is heard of a pair that is none, and what goes on is bounded", () => {
    const hostile = fc.record({
      from: fc.oneof(endpoint, word),
      to: fc.oneof(
        fc.integer({ min: 0, max: CONTEXTS - 1 }).map((context) => endpointOf(0, context)),
        endpoint,
        word,
      ),
      kind: fc.integer({ min: 0, max: SEGMENT_KIND_MAX }).filter((kind) => kind !== FRAME_PROBE),
      content: fc.uint8Array({ maxLength: 70 }),
    });
    assertProperty(
      fc.property(fc.array(hostile, { maxLength: 300 }), (segments) => {
        const party = new Party(0, CONTENT_MIN, () => true);
        const isPair = ({ from, to }: Segment) => taskOf(to) === 0 && taskOf(from) > 0 && taskOf(from) < TASKS;
        const isLast = ({ kind }: Segment) => (kind & FRAME_MORE) === 0;
        let over = 0;
        for (const segment of segments) {
          party.take(segment);
          if (!isPair(segment) || isLast(segment)) over++;
          // Each is heard, or is wrong.
          expect(party.heard.length + party.frames.wrong).toBe(over);
        }
        const kindsOf = segments.filter((one) => isPair(one) && isLast(one)).map(({ kind }) => kind);
        const unknown = kindsOf.filter((kind) => kind === 0 || kind > KIND_LAST).length;
        const strange = segments.filter((one) => !isPair(one)).length;
        expect(party.frames.wrong).toBeGreaterThanOrEqual(unknown + strange);
        for (const one of party.heard) expect(isPair({ ...one, kind: 0, content: new Uint8Array() })).toBe(true);
        const { partials, partialBytes } = party.frames.inUse;
        expect(partials).toBeLessThanOrEqual(segments.length);
        expect(partialBytes).toBeLessThanOrEqual(partials * HEAP_BYTES);
      }),
      500,
    );
  });

  it.each([0, 1, 7, 60])("one without an end, in pieces of %i bytes, takes no more than a frame may have", (bytes) => {
    const party = new Party(0, CONTENT_MIN, () => true);
    const piece = { from: 1, to: 0, kind: 1 | FRAME_MORE, content: new Uint8Array(bytes) };
    for (let i = 0; i < 5000; i++) {
      party.take(piece);
      const { partials, partialBytes } = party.frames.inUse;
      expect([partials, partialBytes <= Math.min(HEAP_BYTES, 2 * bytes * (i + 1))]).toEqual([1, true]);
    }
    // One of no bytes has no head either.
    party.take({ ...piece, kind: 1 });
    expect([party.frames.wrong, party.heard.length]).toEqual([1, 0]);
    expect(party.frames.inUse).toEqual({ frames: 0, partials: 0, partialBytes: 0 });
    // The next one is one again.
    party.take({ ...piece, kind: 1, content: Uint8Array.of(FRAME_VERSION, 0, 0, 0, 1, 2, 3) });
    expect(party.heard.at(-1)?.frame).toEqual({ records: Uint8Array.of(1, 2, 3) });
  });

  it.each<[string, Frame]>([
    ["records", { records: new Uint8Array(0) }],
    ["a credit", { credit: 7 }],
    [
      "a put",
      {
        ask: 1,
        descriptor: operation(DESCRIPTOR_PUT, Int32Array.of(0, 1, 1, 0)),
        moved: 0,
        more: new Int32Array(0),
        data: undefined,
      },
    ],
    ["an answer", { answer: 1, results: Int32Array.of(0), data: undefined }],
    ["an end", { end: "task", streams: 1 }],
    ["a stop of a chain", { chain: CHAIN_STOP, words: Int32Array.of(1, 2, 3, 4), data: undefined }],
  ])("one that was cut short in the middle of its head is wrong: %s", (_, whole) => {
    const party = new Party(0, CONTENT_MIN, () => true);
    const { kind, head } = encode(whole);
    for (let bytes = 0; bytes < head.length; bytes++) {
      party.take({ from: 1, to: endpointOf(0, 1), kind, content: head.slice(0, bytes) });
      expect([party.frames.wrong, party.heard.length]).toEqual([bytes + 1, 0]);
    }
    party.take({ from: 1, to: endpointOf(0, 1), kind, content: head });
    expect(party.heard.length).toBe(1);
  });

  it("of a task that was dropped are none: nothing is kept of it, and it is not told of an end", () => {
    const party = new Party(0, CONTENT_MIN, () => false);
    const piece = { from: 1, to: 0, kind: 1 | FRAME_MORE, content: new Uint8Array(10) };
    party.take(piece);
    party.frames.send(0, 1, { credit: 5 });
    party.frames.drop(1);
    party.take(piece);
    party.take({ ...piece, kind: 1 });
    expect([party.heard, party.frames.wrong, [...party.frames.talkedTo]]).toEqual([[], 0, []]);
    expect(party.frames.inUse).toEqual({ frames: 0, partials: 0, partialBytes: 0 });
  });

  it("D10 who is silent is asked whether he lives: after a second, then after twice as long each time, until he has ended", () => {
    const asked: number[] = [];
    const party = new Party(0, CONTENT_MIN, ({ to, kind }) => {
      if (kind === FRAME_PROBE) asked.push(Math.round(party.now / 1e6), taskOf(to));
      return true;
    });
    const pass = (seconds: number): number[] => {
      asked.length = 0;
      for (let i = 0; i < 10 * seconds; i++) {
        party.now += 100_000;
        if (party.now >= party.frames.due) party.frames.flush();
      }
      return [...asked];
    };
    expect(party.frames.due).toBe(Number.POSITIVE_INFINITY);
    party.frames.send(0, 1, { credit: 1 });
    party.frames.flush();
    expect(pass(16)).toEqual([1, 1, 3, 1, 7, 1, 15, 1]);
    // It has said something; then it is asked after a second again, since this task has something to say.
    party.take({ from: 1, to: 0, kind: FRAME_RECORDS, content: encode({ records: new Uint8Array(0) }).head });
    expect(pass(15)).toEqual([]);
    party.frames.send(0, 1, { credit: 1 });
    party.frames.send(0, 2, { credit: 1 });
    expect(pass(1)).toEqual([32, 1, 32, 2]);
    // A probe itself is heard by nobody, and is not wrong.
    party.take({ from: 1, to: 0, kind: FRAME_PROBE, content: new Uint8Array(0) });
    expect([party.frames.wrong, party.heard.length]).toEqual([0, 1]);
    party.frames.drop(1);
    expect(pass(4)).toEqual([34, 2]);
    party.frames.leave();
    expect(pass(100)).toEqual([]);
    expect(party.frames.due).toBe(Number.POSITIVE_INFINITY);
  });
});
