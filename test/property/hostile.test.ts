// A task on a node of a network that says what it likes: what is wrong is counted and dropped, and no other is held up. Each
// node has two tasks.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CHAIN_MOVE,
  CHAIN_SHIP,
  CHAIN_STOP,
  KIND_BROKEN,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  KIND_RTS,
  RECV_IMMEDIATE_MAX,
  SLICE_BYTES,
} from "../../assembly/layout.js";
import { endpointOf } from "../../src/core/endpoint.js";
import { SUCCESS } from "../../src/core/result.js";
import type { Frame } from "../../src/transport/net/frames.js";
import { CREDIT_BYTES } from "../../src/transport/net/records.js";
import { LANE_BYTES_AGENT } from "../../src/transport/shm/lanes.js";
import { fillHeap } from "../api/support.js";
import { word } from "../support/arbitraries.js";
import {
  ACCOMPLICE,
  ask,
  BYSTANDER,
  CONTEXTS,
  chainWords,
  DATA,
  empty,
  fill,
  first,
  HONEST,
  HOSTILE,
  hostileJob,
  LIMITS,
  record,
  records,
  SIBLING,
  TARGET,
} from "../support/hostile-job.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

describe("a task that says what it likes", () => {
  it.each<[string, Frame]>([
    ["a record that is cut short", { records: Uint8Array.from(record(KIND_MESSAGE, 0, fill(16)).slice(0, 20)) }],
    ["a prefix that is cut short", { records: Uint8Array.of(1, 2, 3) }],
    ["a record that says it is longer", records(record(KIND_MESSAGE, 0, fill(16), 2 ** 23))],
    ["a record that asks for this memory", records(record(KIND_RTS, 0, fill(64)))],
    ["a header that is longer than its message", records(record(KIND_MESSAGE, 400, fill(16)))],
    ["a packet of no message", records(record(KIND_MORE, 0, fill(16)))],
    ["a first packet without a size", records(record(KIND_FIRST, 0, fill(4)))],
    ["a first packet that is longer than its message", records(first(10, 11))],
    ["packets that are longer than their message", records(first(20, 10), record(KIND_MORE, 0, fill(11)))],
    ["a message that is longer than any", records(first(2 ** 31, 0))],
    ["a record that is longer than what comes whole", records(record(KIND_MESSAGE, 0, fill(RECV_IMMEDIATE_MAX + 1)))],
    ["more than the header, with a large message's first packet", records(first(80_000, 10))],
    ["a packet of header and payload", records(first(80_000, 0, 100), record(KIND_MORE, 0, fill(105)))],
    // Into bytes that somebody waits for.
    ["packets beyond a large message", records(first(80_000, 0), record(KIND_MORE, 0, fill(80_001)))],
    ["a message within another's packets", records(first(20, 10), record(KIND_MESSAGE, 0, fill(8)))],
    ["a message that begins within another's packets", records(first(20, 10), first(20, 10))],
    ["a packet of nothing", records(first(20, 10), record(KIND_MORE, 0))],
    ["the end of a message that has not begun", records(record(KIND_BROKEN, 0))],
    ["the end of a message, with bytes", records(first(20, 10), record(KIND_BROKEN, 0, fill(4)))],
    ["more back than was sent", { credit: 1 }],
    ["a chain without an rget FIFO", { chain: CHAIN_SHIP, words: Int32Array.of(1, 2, 3), data: undefined }],
    ["a chain for what is no rget FIFO", { chain: CHAIN_SHIP, words: chainWords(100, 1), data: undefined }],
    ["a chain for an rget FIFO that is closed", { chain: CHAIN_SHIP, words: chainWords(256, 2), data: undefined }],
    ["bytes of a chain that has none", { chain: CHAIN_STOP, words: chainWords(256, 1), data: Uint8Array.of(1) }],
    ["a slice without a result", { chain: CHAIN_MOVE, words: chainWords(256, 1), data: undefined }],
    [
      "a chain of an unknown kind, in a region of the job",
      { chain: 99, words: chainWords(256, 1, 0), data: undefined },
    ],
    ["an offer without a payload", records(record(KIND_RTS, 0, fill(40).fill(0)))],
    ["an answer that nobody asked for", { answer: 1, results: [0], data: undefined }],
    ["a put of other bytes than it says", ask(1, 8, { data: Uint8Array.of(1) })],
    ["puts of other bytes than they say", ask(1, 8, { more: [4, 0], data: new Uint8Array(11) })],
    ["a get with bytes", ask(2, 8, { data: Uint8Array.of(1) })],
    ["a get from beyond its end", ask(2, 8, { moved: 9 })],
    // What one frame asks for is bounded, so that one of few bytes does not make the target send very many.
    ["gets of more than a slice", ask(2, 8, { more: [SLICE_BYTES - 7, 0] })],
    ["gets of more than a slice, of which the first has more", ask(2, 2 * SLICE_BYTES, { more: [0, 0] })],
    ["gets of bytes without a sign", ask(2, 8, { more: [-8, 0] })],
    ["gets of which a part has been done", ask(2, 8, { moved: 4, more: [4, 0] })],
  ])("%s is dropped and counted; what is right comes before and after", async (_, wrong) => {
    const { target, came, post, close } = hostileJob(SEED);
    await post(records(record(KIND_MESSAGE, 0, fill(16)), first(30, 10), record(KIND_MORE, 0, fill(20))));
    expect([target.frames.wrong, came]).toEqual([
      0,
      [
        [HOSTILE, 16],
        [HOSTILE, 30],
      ],
    ]);
    // What some of them name.
    target.client.createRegion(4096);
    await post(wrong);
    expect([target.frames.wrong, came.length]).toEqual([1, 2]);
    await post(records(record(KIND_MESSAGE, 0, fill(24))));
    expect([target.frames.wrong, came.at(-1)]).toEqual([1, [HOSTILE, 24]]);
    close();
  });

  it("more records at once than a call takes arguments, behind others that wait: all of them wait", async () => {
    const { target, other, context, came, postAll, settle, close } = hostileJob(SEED);
    context.dispatch(0, () => {});
    // Empty messages, to dispatch id 0: more than a lane takes, and then very many.
    await postAll([empty(1000), empty(300_000)]);
    expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
    await settle();
    expect([target.frames.wrong, came]).toEqual([0, [[HONEST, 1]]]);
    close();
  });

  it("records beyond the window, for one who does not read: they are dropped and counted; others go on", async () => {
    const { target, other, context, came, postAll, settle, close } = hostileJob(SEED);
    const frames = Array.from({ length: 200 }, () => records(record(KIND_MESSAGE, 0, fill(60_000))));
    await postAll(frames);
    // What waits, what is in the lane, and a frame more of each; a frame has 60 kB.
    expect(target.frames.wrong).toBeGreaterThan(200 - (CREDIT_BYTES + 3 * LANE_BYTES_AGENT) / 60_000 - 2);
    const taken = 200 - target.frames.wrong;
    expect(taken).toBeGreaterThan(CREDIT_BYTES / 60_000);
    expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
    for (let i = 0; i < 10; i++) await settle();
    expect(came.filter(([from]) => from === HONEST)).toEqual([[HONEST, 1]]);
    expect(came.length).toBe(taken + 1);
    close();
  });

  it("one record of 6 MiB for a lane of 64 bytes: it goes in as packets, however many", async () => {
    const limits = { ...LIMITS, laneBytes: 64, heapBytes: 2 ** 24, regions: 64 };
    const { target, came, post, settle, close } = hostileJob(SEED, limits);
    // No larger lane can be had.
    fillHeap(target.client);
    const bytes = 6 * 2 ** 20;
    const packet = new Uint8Array(8 + bytes);
    packet.set(record(KIND_MORE, 0, [], bytes));
    await post(records(first(bytes, 0)));
    await post({ records: packet });
    for (let tries = 0; came.length < 2 && tries < 100; tries++) {
      await post(records(record(KIND_MESSAGE, 0, fill(16))));
      await settle();
    }
    expect([target.frames.wrong, came.slice(0, 2)]).toEqual([
      0,
      [
        [HOSTILE, bytes],
        [HOSTILE, 16],
      ],
    ]);
    close();
  });

  it("very large messages that no handler takes, and of which nothing comes: no memory for them, and others go on", async () => {
    const { target, context, other, came, post, settle, close } = hostileJob(SEED);
    const before = process.memoryUsage().arrayBuffers;
    await post(records(first(2 ** 31 - 1, 0, 0, DATA + 1)));
    const next = context.messages(DATA + 2, { timeout: 50 }).next();
    const told = next.catch(({ code }: { code: string }) => code);
    await post(records(first(2 ** 31 - 1, 0, 0, DATA + 2)), TARGET, endpointOf(HOSTILE, 1));
    expect(await told).toBe("PAMIR_TIMEDOUT");
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 24);
    expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
    await settle();
    expect([target.frames.wrong, came]).toEqual([0, [[HONEST, 1]]]);
    close();
  });

  it.each<[string, number, number]>([
    ["a context that the target does not have", endpointOf(TARGET, CONTEXTS), HOSTILE],
    ["a context that the sender does not have", TARGET, endpointOf(HOSTILE, CONTEXTS)],
    ["a task of another node as the target", HONEST, HOSTILE],
    ["a task of its own node as the target", ACCOMPLICE, HOSTILE],
    ["a task of another node as the sender", TARGET, HONEST],
    ["a task of the target's node as the sender", TARGET, SIBLING],
    ["the target as the sender", TARGET, TARGET],
    ["a task that the job does not have as the sender", TARGET, LIMITS.tasks],
  ])("a frame names %s: it does not come, and what is right comes after it", async (_, to, from) => {
    const { target, came, beside, postRaw, post, close } = hostileJob(SEED);
    await postRaw(records(record(KIND_MESSAGE, 0, fill(16))), TARGET, HOSTILE);
    await postRaw(records(record(KIND_MESSAGE, 0, fill(20))), to, from);
    await post(records(record(KIND_MESSAGE, 0, fill(24))));
    await post(records(record(KIND_MESSAGE, 0, fill(28))), SIBLING, ACCOMPLICE);
    expect([came, beside]).toEqual([
      [
        [HOSTILE, 16],
        [HOSTILE, 24],
      ],
      [[ACCOMPLICE, 28]],
    ]);
    expect(target.agent.hasWork).toBe(false);
    close();
  });

  it.each([0, 1, 2, 3])(`anything at all: others go on (${replayNote()} + %i)`, async (more) => {
    const random = randomOf(SEED + more);
    const { target, context, sibling, other, came, beside, postRaw, settle, close } = hostileJob(SEED + more);
    const bytes = fc.uint8Array({ maxLength: 400 });
    const body = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 100 });
    const payload = fc.integer({ min: 0, max: 5000 });
    const one = fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 0, max: 120 }), body).map((given) => record(...given)),
      fc.tuple(payload, fc.integer({ min: 0, max: 100 })).map(([all, here]) => first(all, here)),
    );
    const words = fc.array(fc.oneof(fc.integer({ min: 0, max: 12 }), word), { minLength: 12, maxLength: 12 });
    const frame = fc.oneof<fc.Arbitrary<Frame>[]>(
      fc.array(one, { maxLength: 5 }).map((all) => records(...all)),
      fc.record({ records: bytes }),
      fc.record({ credit: word }),
      fc.record({
        answer: fc.integer({ min: 0, max: 5 }),
        results: fc.array(word, { minLength: 1, maxLength: 3 }),
        data: fc.option(bytes, { nil: undefined }),
      }),
      fc.record({
        ask: word,
        // Other verbs are of no frame: encoding.test.ts says that they are dropped.
        descriptor: words.map(([verb = 0, ...rest]) => Int32Array.of(1 + (verb % 3), ...rest)),
        moved: fc.oneof(fc.constant(0), word),
        more: fc
          .array(fc.oneof(fc.integer({ min: 0, max: 100 }), word), { maxLength: 140 })
          .map((all) => Int32Array.from(all)),
        data: fc.option(bytes, { nil: undefined }),
      }),
    );
    /** Each task of the target's node, and a context that none has; an own task, or another's. */
    const to = (): number => endpointOf(random(2), random(8) === 0 ? CONTEXTS : random(CONTEXTS));
    const from = (): number => {
      const task = random(4) > 0 ? HOSTILE : ([ACCOMPLICE, HONEST, BYSTANDER, SIBLING][random(4)] as number);
      return endpointOf(task, random(8) === 0 ? CONTEXTS : random(CONTEXTS));
    };
    for (const frames of fc.sample(frame, { seed: SEED + more, numRuns: 150 })) {
      await postRaw(frames, to(), from());
      if (random(10) === 0) expect(other.sendImmediate(context.endpoint, DATA, null, Uint8Array.of(1))).toBe(SUCCESS);
    }
    for (const one of [context, sibling]) {
      expect(other.sendImmediate(one.endpoint, DATA, null, new Uint8Array(99))).toBe(SUCCESS);
    }
    expect(sibling.sendImmediate(context.endpoint, DATA, null, new Uint8Array(98))).toBe(SUCCESS);
    await settle();
    expect(beside.filter(([one]) => one === HONEST)).toEqual([[HONEST, 99]]);
    expect(came.filter(([one]) => one === SIBLING)).toEqual([[SIBLING, 98]]);
    expect(came.filter(([from]) => from === HONEST).at(-1)).toEqual([HONEST, 99]);
    // With some seeds the first frame names no endpoint: the session drops it, and its sender holds up all its others.
    expect(target.frames.wrong + target.sessions.dropped.foreign).toBeGreaterThan(0);
    close();
  });
});
