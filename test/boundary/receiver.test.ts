// The target's side of eager messages without a client: the unexpected queue at its limit, lanes that are paused, streams,
// and what the receiver counts as busy. Both tasks are this thread's; a test says when each advances.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTEXT_HANDLERLESS_OFFSET,
  CONTEXT_UNEXPECTED_OFFSET,
  DISPATCH_ID_CALL,
  DISPATCH_ID_MAX,
  DISPATCH_ID_REPLY,
  LANE_MASK_OFFSET,
  LANE_NEXT_OFFSET,
  LANE_RING_OFFSET,
  META_DISPATCH_MASK,
  RECORD_META_OFFSET,
} from "../../assembly/layout.js";
import type { Activity, ProgressSource } from "../../src/core/progress.js";
import { EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { ContextCore } from "../../src/protocol/context-core.js";
import { busyParts, CoresJob, fillHeap } from "../support/cores.js";

const ID = 5;
const OTHER = 6;
const LIMIT = 1000;
/** What a message without payload and header counts in the unexpected queue. */
const LEAST = 16;
/** A payload that goes in a buffer, or in packets. */
const LARGE = 90_000;

describe.each(["wasm", "ts"] as const)("%s", (kernel) => {
  let job: CoresJob;
  let origins: ContextCore[];
  let target: ContextCore;

  beforeEach(() => {
    job = CoresJob.shared([kernel], { contexts: 3 });
    origins = [job.open(0), job.open(0)];
    target = job.open(1, { unexpectedBytes: LIMIT });
  });

  afterEach(() => job.close());

  const origin = (number = 0): ContextCore => origins[number] as ContextCore;
  const send = (bytes: number, id = ID, from = 0): Result =>
    origin(from).sender.sendImmediate(target.endpoint, id, null, new Uint8Array(bytes).fill(bytes), true);
  const handle = (into: number[], id = ID): void =>
    target.receiver.dispatch(id, (message) => void into.push(message.payloadBytes), {});
  const turns = (count = 10): void => {
    for (let turn = 0; turn < count; turn++) job.advance();
  };
  /** The parts and their counter agree; so much is the receiver's. */
  const expectBusy = (busy: number): void => {
    expect([target.receiver.unexpected.busy, job.activityOf(target).busy]).toEqual([busy, busyParts(target)]);
  };
  const word = (offset: number): number => job.task(1).memory.words[(target.block + offset) >>> 2] as number;

  describe("the unexpected queue", () => {
    it.each([
      ["one byte below the limit", [LIMIT - 1], 0],
      ["at the limit", [LIMIT], 0],
      ["one byte above it", [LIMIT + 1], 1],
      ["at the limit by two", [400, LIMIT - 400], 0],
      ["above it by two", [400, LIMIT - 399], 1],
      ["at the limit by messages of nothing", Array(LIMIT >>> 4).fill(0), 0],
      ["above it by messages of nothing", Array((LIMIT >>> 4) + 1).fill(0), 1],
    ])("%s", (_, sizes, paused) => {
      for (const bytes of sizes) expect(send(bytes)).toBe(SUCCESS);
      turns();
      expect(target.receiver.paused.origins.size).toBe(paused);
      const kept = paused === 0 ? sizes : sizes.slice(0, -1);
      const counts = kept.reduce((sum, bytes) => sum + Math.max(bytes, LEAST), 0);
      expect(target.receiver.unexpected.bytes).toBe(counts);
      expect(word(CONTEXT_UNEXPECTED_OFFSET)).toBe(counts);
      expect(word(CONTEXT_HANDLERLESS_OFFSET)).toBe(ID + 1);
      expectBusy(0);
      expect(target.hasWork()).toBe(false);
      const into: number[] = [];
      handle(into);
      expectBusy(kept.length > 0 ? 1 : 0);
      expect(target.hasWork()).toBe(true);
      turns();
      expect(into).toEqual(sizes);
      expect([target.receiver.unexpected.bytes, target.receiver.paused.origins.size]).toEqual([0, 0]);
      expect(word(CONTEXT_HANDLERLESS_OFFSET)).toBe(0);
      expectBusy(0);
    });

    it("counts a header padded to 8 bytes", () => {
      origin().sender.sendImmediate(target.endpoint, ID, new Uint8Array(3), new Uint8Array(20), true);
      turns();
      expect(target.receiver.unexpected.bytes).toBe(28);
      expect(target.receiver.unexpected.open(ID)).toBe(undefined);
      expect(target.receiver.unexpected.take(ID)).toMatchObject({
        header: new Uint8Array(3),
        payload: new Uint8Array(20),
      });
      expect(target.receiver.unexpected.bytes).toBe(0);
    });

    it("holds back its origin alone: what it sends later waits, what others send comes", () => {
      const into: number[] = [];
      handle(into, OTHER);
      send(LIMIT + 1);
      send(1, OTHER);
      send(2, OTHER, 1);
      turns();
      expect(into).toEqual([2]);
      expect(target.receiver.paused.origins.size).toBe(1);
      send(3, OTHER, 1);
      send(LIMIT + 2, ID, 1);
      send(4, OTHER, 1);
      turns();
      expect(into).toEqual([2, 3]);
      expect(target.receiver.paused.origins.size).toBe(2);
      handle(into);
      turns();
      // Each origin's are in order.
      expect(into.filter((bytes) => [LIMIT + 1, 1].includes(bytes))).toEqual([LIMIT + 1, 1]);
      expect(into.filter((bytes) => [LIMIT + 2, 4].includes(bytes))).toEqual([LIMIT + 2, 4]);
      expect(into.length).toBe(6);
    });

    it("is no limit for a message with a handler, however full it is", () => {
      const into: number[] = [];
      handle(into, OTHER);
      send(LIMIT);
      for (let i = 0; i < 5; i++) send(i, OTHER);
      turns();
      expect(into).toEqual([0, 1, 2, 3, 4]);
      expect(target.receiver.paused.origins.size).toBe(0);
      expect(target.receiver.unexpected.bytes).toBe(LIMIT);
    });

    it("resumes those that it holds back with each message that is delivered or taken", () => {
      for (let i = 0; i < 10; i++) send(300);
      turns();
      expect(target.receiver.unexpected.bytes).toBe(900);
      target.receiver.unexpected.open(ID);
      for (let i = 0; i < 10; i++) {
        expect(target.receiver.unexpected.hasNext(ID)).toBe(true);
        expect(target.receiver.unexpected.take(ID)?.payload.length).toBe(300);
        turns(2);
        expect(target.receiver.unexpected.bytes).toBe(Math.min(900, 300 * (9 - i)));
      }
      expect(target.receiver.unexpected.hasNext(ID)).toBe(false);
      expect(target.receiver.unexpected.take(ID)).toBe(undefined);
      expect(target.receiver.paused.origins.size).toBe(0);
      target.receiver.unexpected.close(ID);
    });

    it("gives a stream the next of its messages, whatever else waits", () => {
      send(LIMIT, OTHER);
      turns();
      target.receiver.unexpected.open(ID);
      for (let i = 0; i < 3; i++) send(600, ID, 1);
      turns();
      expect(target.receiver.unexpected.bytes).toBe(LIMIT + 600);
      expect(target.receiver.paused.origins.size).toBe(1);
      for (let i = 0; i < 3; i++) {
        expect(target.receiver.unexpected.take(ID)?.payload.length).toBe(600);
        turns();
      }
      expect(target.receiver.unexpected.take(ID)).toBe(undefined);
      expect(target.receiver.unexpected.bytes).toBe(LIMIT);
    });

    it.each(["a buffer", "packets"])("keeps a large message that comes in %s, if it fits to the byte", (how) => {
      const wide = job.open(1, { unexpectedBytes: LARGE });
      const giveBack = how === "packets" ? prepare(wide) : () => {};
      const to = { to: wide.endpoint, dispatch: ID, onLocal: () => {} };
      expect(origin().sender.send({ ...to, payload: new Uint8Array(LARGE) })).toBe(SUCCESS);
      turns(40);
      expect(wide.receiver.unexpected.bytes).toBe(LARGE);
      expect(wide.receiver.paused.origins.size).toBe(0);
      expect(origin().sender.send({ ...to, payload: new Uint8Array(LARGE + 1) })).toBe(SUCCESS);
      turns(40);
      expect(wide.receiver.paused.origins.size).toBe(1);
      const into: number[] = [];
      wide.receiver.dispatch(ID, (message) => void into.push(message.payload.length), {});
      turns(80);
      expect(into).toEqual([LARGE, LARGE + 1]);
      expect([wide.receiver.unexpected.bytes, busyParts(wide), job.activityOf(wide).busy]).toEqual([0, 0, 0]);
      giveBack();
    });

    /** A first lane, and then no memory: what is large goes in packets. */
    function prepare(to: ContextCore): () => void {
      origin().sender.sendImmediate(to.endpoint, OTHER, null, null, true);
      to.receiver.dispatch(OTHER, () => {}, {});
      turns(2);
      return fillHeap(job.task(0));
    }

    it("counts as busy while the rest of a message with a handler is still to come", () => {
      const wide = job.open(1, { unexpectedBytes: 10 * LARGE });
      const giveBack = prepare(wide);
      const to = { to: wide.endpoint, dispatch: ID, onLocal: () => {} };
      expect(origin().sender.send({ ...to, payload: new Uint8Array(LARGE) })).toBe(SUCCESS);
      wide.advance(1);
      expect(wide.receiver.unexpected.bytes).toBe(LARGE);
      const into: number[] = [];
      wide.receiver.dispatch(ID, (message) => void into.push(message.payload.length), {});
      expect([wide.receiver.unexpected.busy, wide.receiver.unexpected.hasWork]).toEqual([1, false]);
      // Something to do, but nothing that could be done: the thread may sleep.
      wide.advance(1);
      expect([into.length, wide.receiver.unexpected.busy]).toEqual([0, 1]);
      turns(60);
      expect(into).toEqual([LARGE]);
      expect([wide.receiver.unexpected.busy, job.activityOf(wide).busy]).toEqual([0, 0]);
      giveBack();
    });

    it("puts a message in packets together in the memory of the one before, unless it fills less than half of it", () => {
      const giveBack = prepare(target);
      const seen: (readonly [buffer: unknown, right: boolean])[] = [];
      target.receiver.dispatch(
        ID,
        ({ bytes, header, payload }) => {
          const [first] = header;
          seen.push([bytes.buffer, payload.every((byte) => byte === first) && payload.length === 1000 * header.length]);
        },
        {},
      );
      // Header and payload together: 90, 45, 91 and 44 KB.
      for (const [number, kilo] of [90, 45, 91, 44].entries()) {
        const [header, payload] = [new Uint8Array(kilo).fill(number), new Uint8Array(1000 * kilo).fill(number)];
        const message = { to: target.endpoint, dispatch: ID, header, payload, onLocal: () => {} };
        expect(origin().sender.send(message)).toBe(SUCCESS);
        turns(60);
      }
      expect(seen.map(([, right]) => right)).toEqual([true, true, true, true]);
      const [first, second, third, fourth] = seen.map(([buffer]) => buffer);
      expect([second === first, third === first, fourth === third]).toEqual([true, false, false]);
      giveBack();
    });

    it("uses that memory for one message at a time, and again if a handler throws", () => {
      // A lane for the other one, too.
      expect(send(0, OTHER, 1)).toBe(SUCCESS);
      const giveBack = prepare(target);
      const seen: [number, number][] = [];
      target.receiver.dispatch(
        ID,
        ({ payload }) => {
          seen.push([payload[0] as number, new Set(payload).size]);
          if (payload[0] === 1) throw new Error("mine");
        },
        {},
      );
      let thrown = 0;
      // One alone, whose memory is kept. Then one of each, whose packets come by turns.
      for (const origins of [[0], [0, 1], [1, 0]]) {
        for (const from of origins) {
          const message = { to: target.endpoint, dispatch: ID, payload: new Uint8Array(LARGE).fill(from + 1) };
          expect(origin(from).sender.send({ ...message, onLocal: () => {} })).toBe(SUCCESS);
        }
        for (let turn = 0; turn < 100; turn++) {
          try {
            job.advance();
          } catch {
            thrown++;
          }
        }
      }
      expect(seen.sort(([a], [b]) => a - b)).toEqual([
        [1, 1],
        [1, 1],
        [1, 1],
        [2, 1],
        [2, 1],
      ]);
      expect(thrown).toBe(3);
      giveBack();
    });

    it.each([false, true])("drops a message whose origin dies in the middle; its handler is set: %s", (hasHandler) => {
      const wide = job.open(1, { unexpectedBytes: 10 * LARGE });
      const giveBack = prepare(wide);
      const to = { to: wide.endpoint, dispatch: ID, onLocal: () => {} };
      expect(origin().sender.send({ ...to, payload: new Uint8Array(LARGE) })).toBe(SUCCESS);
      wide.advance(1);
      const into: number[] = [];
      if (hasHandler) wide.receiver.dispatch(ID, (message) => void into.push(message.payload.length), {});
      expect(wide.receiver.unexpected.busy).toBe(hasHandler ? 1 : 0);
      job.die(0);
      turns(20);
      expect([wide.receiver.unexpected.bytes, wide.receiver.unexpected.busy, job.activityOf(wide).busy]).toEqual([
        0, 0, 0,
      ]);
      expect(wide.receiver.ended.isGone(origin().endpoint)).toBe(true);
      expect(into).toEqual([]);
      giveBack();
    });

    it("of an origin that has ended, delivers what it sent, and tells of its end behind that", () => {
      const seen: unknown[] = [];
      for (let i = 1; i <= 4; i++) expect(send(600)).toBe(SUCCESS);
      turns();
      expect(target.receiver.paused.origins.size).toBe(1);
      target.watch(origin().endpoint, (_, result) => void seen.push(result), undefined);
      job.die(0);
      turns();
      expect(seen).toEqual([]);
      expect(target.receiver.ended.isGone(origin().endpoint)).toBe(false);
      target.receiver.dispatch(ID, () => void seen.push("message"), {});
      turns();
      expect(seen).toEqual(["message", "message", "message", "message", SHUTDOWN]);
      expect([target.receiver.ended.hasOrphans, target.receiver.ended.isGone(origin().endpoint)]).toEqual([
        false,
        true,
      ]);
      expectBusy(0);
    });
  });

  describe("handlers", () => {
    it("have each id once, as a handler or as a stream", () => {
      handle([]);
      const taken = expect.objectContaining({ code: "PAMIR_DISPATCH_TAKEN" });
      expect(() => handle([])).toThrow(taken);
      expect(() => target.receiver.unexpected.open(ID)).toThrow(taken);
      target.receiver.unexpected.open(OTHER);
      expect(() => handle([], OTHER)).toThrow(taken);
      expect(() => target.receiver.unexpected.open(OTHER)).toThrow(taken);
      target.receiver.unexpected.close(OTHER);
      handle([], OTHER);
      expectBusy(0);
    });

    it("that throw lose no other message of the batch, and their errors come out of the round", () => {
      const into: number[] = [];
      target.receiver.dispatch(
        ID,
        ({ payloadBytes }) => {
          into.push(payloadBytes);
          if (payloadBytes % 2 === 1) throw new Error(`${payloadBytes}`);
        },
        {},
      );
      for (let bytes = 0; bytes < 5; bytes++) send(bytes);
      expect(() => target.advance(1)).toThrow(AggregateError);
      expect(into).toEqual([0, 1, 2, 3, 4]);
      expectBusy(0);
      send(1);
      expect(() => target.advance(1)).toThrow("1");
      // The same from the unexpected queue.
      for (let bytes = 0; bytes < 5; bytes++) send(bytes, OTHER);
      target.advance(1);
      target.receiver.dispatch(
        OTHER,
        ({ payloadBytes }) => {
          into.push(payloadBytes);
          throw new Error(`${payloadBytes}`);
        },
        {},
      );
      expect(() => target.advance(1)).toThrow(AggregateError);
      expect(into.slice(6)).toEqual([0, 1, 2, 3, 4]);
      expectBusy(0);
    });

    it("that close the context get nothing more of the batch in hand", () => {
      const into: number[] = [];
      target.receiver.dispatch(
        ID,
        ({ payloadBytes }) => {
          into.push(payloadBytes);
          if (payloadBytes === 2) target.close();
        },
        {},
      );
      for (let bytes = 0; bytes < 5; bytes++) send(bytes);
      target.advance(1);
      expect(into).toEqual([0, 1, 2]);
      expect(target.isClosed).toBe(true);
      turns();
      expect(origin().sender.sendImmediate(target.endpoint, ID, null, null, true)).toBe(SHUTDOWN);
      expect(busyParts(origin())).toBe(0);
    });

    it("that are set within a handler get what is kept for them in a later round", () => {
      const into: number[] = [];
      for (let bytes = 0; bytes < 3; bytes++) send(bytes, OTHER);
      turns();
      target.receiver.dispatch(ID, () => handle(into, OTHER), {});
      send(8);
      send(3, OTHER);
      target.advance(1);
      expectBusy(1);
      turns();
      expect(into).toEqual([0, 1, 2, 3]);
      expectBusy(0);
    });

    it("early ones of large messages are told where the packets go, and the rest of the lane goes on", () => {
      const early = job.open(1);
      const giveBack = prepareLane(early);
      const seen: unknown[] = [];
      const bytes = new Uint8Array(LARGE);
      early.receiver.dispatch(
        ID,
        (message) => {
          seen.push(message.immediate);
          message.receive(bytes, (_, result) => void seen.push(result));
        },
        { delivery: "early" },
      );
      const payload = new Uint8Array(LARGE).map((_, i) => i * 3);
      origin().sender.send({ to: early.endpoint, dispatch: ID, payload, onLocal: () => {} });
      origin().sender.sendImmediate(early.endpoint, OTHER, null, null, true);
      turns(60);
      expect(seen).toEqual([false, SUCCESS]);
      expect(Buffer.compare(bytes, payload)).toBe(0);
      expect([busyParts(early), job.activityOf(early).busy]).toEqual([0, 0]);
      giveBack();
    });

    function prepareLane(to: ContextCore): () => void {
      to.receiver.dispatch(OTHER, () => {}, {});
      origin().sender.sendImmediate(to.endpoint, OTHER, null, null, true);
      turns(2);
      return fillHeap(job.task(0));
    }
  });

  describe("a protocol's dispatch ids", () => {
    const OWN = 5000;
    const LAST = META_DISPATCH_MASK;
    const WORDS = Uint8Array.of(1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0);
    const sendOwn = (bytes: number, id = OWN, from = 0): Result => {
      const payload = new Uint8Array(bytes).map((_, i) => i * 3 + bytes);
      return origin(from).sender.sendOwn(target.endpoint, id, WORDS, payload, undefined);
    };

    it("are those above the user's, but not that of calls; each is registered once", () => {
      const { handlers } = target;
      for (const id of [-1, 0, DISPATCH_ID_MAX, LAST + 1, 4100.5, Number.NaN, DISPATCH_ID_CALL, DISPATCH_ID_REPLY])
        expect(() => handlers.handle(id, () => {})).toThrow(`dispatch id ${id} is registered`);
      for (const id of [OWN, LAST]) {
        handlers.handle(id, () => {});
        expect(() => handlers.handle(id, () => {})).toThrow(`dispatch id ${id} is registered`);
        expect(() => handle([], id)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
      }
      expect(() => handlers.handleCalls(() => {})).toThrow("calls are registered");
    });

    it.each(["memory for lanes and buffers", "none"])("get messages of every size whole, with %s", (memory) => {
      const into: unknown[] = [];
      target.handlers.handle(OWN, (message) => {
        const { payload, immediate, origin: from, dispatch } = message;
        const isRight = payload.every((byte, i) => byte === ((i * 3 + payload.length) & 255));
        into.push([payload.length, immediate && isRight, from, dispatch, message.headerWord(8)]);
      });
      handle([]);
      expect(send(0)).toBe(SUCCESS);
      turns();
      const giveBack = memory === "none" ? fillHeap(job.task(0)) : () => {};
      const sizes = [0, 1, 8, 3000, 20_000, LARGE, 256 * 1024, 8];
      for (const bytes of sizes) expect(sendOwn(bytes)).toBe(SUCCESS);
      turns(300);
      expect(into).toEqual(sizes.map((bytes) => [bytes, true, origin().endpoint, OWN, 3]));
      expect([target.handlers.malformed, target.receiver.unexpected.bytes]).toEqual([0, 0]);
      expectBusy(0);
      giveBack();
    });

    it("get them also while other origins are held back, and throw no other message away", () => {
      const into: number[] = [];
      target.handlers.handle(LAST, ({ payloadBytes }) => {
        into.push(payloadBytes);
        if (payloadBytes === 1) throw new Error("1");
      });
      send(LIMIT + 1);
      for (const bytes of [0, 1, 2]) expect(sendOwn(bytes, LAST, 1)).toBe(SUCCESS);
      expect(() => target.advance(1)).toThrow("1");
      expect([into, target.receiver.paused.origins.size]).toEqual([[0, 1, 2], 1]);
    });

    it("get nothing once the context closes", () => {
      const into: number[] = [];
      target.handlers.handle(OWN, ({ payloadBytes }) => {
        into.push(payloadBytes);
        target.close();
      });
      for (const bytes of [0, 1, 2]) expect(sendOwn(bytes)).toBe(SUCCESS);
      expect(sendOwn(1, OWN + 1)).toBe(SUCCESS);
      target.advance(1);
      expect([into, target.handlers.malformed]).toEqual([[0], 0]);
    });

    it.each(["memory for lanes and buffers", "none"])("that are not registered drop what comes, with %s", (memory) => {
      const into: number[] = [];
      handle(into);
      send(0);
      turns();
      const giveBack = memory === "none" ? fillHeap(job.task(0)) : () => {};
      for (const [i, id] of [OWN, LAST, OWN + 1].entries()) {
        for (const bytes of [0, 8, 20_000, LARGE]) expect(sendOwn(bytes, id)).toBe(SUCCESS);
        send(i + 1);
        turns(200);
      }
      expect([into, target.handlers.malformed]).toEqual([[0, 1, 2, 3], 12]);
      expect([target.receiver.unexpected.bytes, word(CONTEXT_HANDLERLESS_OFFSET)]).toEqual([0, 0]);
      expectBusy(0);
      expect(origin().drained).toBe(true);
      giveBack();
    });

    it.each([OWN, OWN + 1, DISPATCH_ID_CALL])("drop an offered payload: %d", (id) => {
      const into: number[] = [];
      target.handlers.handle(OWN, ({ payloadBytes }) => void into.push(payloadBytes));
      const told: Result[] = [];
      const offer = {
        to: target.endpoint,
        dispatch: ID,
        payload: new Uint8Array(LARGE),
        onLocal: (_: unknown, result: Result) => void told.push(result),
        rendezvous: true,
      };
      expect(origin().sender.send(offer)).toBe(SUCCESS);
      // No sender of pamir does that: it is written over in the lane.
      const { kernel, memory } = job.task(1);
      const { words } = memory;
      const lane = kernel.laneOf(target.block, origin().ordinal) >>> 2;
      const [ring, mask, next] = [LANE_RING_OFFSET, LANE_MASK_OFFSET, LANE_NEXT_OFFSET].map(
        (offset) => words[lane + (offset >>> 2)] as number,
      ) as [number, number, number];
      const meta = (ring + (next & mask) + RECORD_META_OFFSET) >>> 2;
      expect((words[meta] as number) & META_DISPATCH_MASK).toBe(ID);
      words[meta] = ((words[meta] as number) & ~META_DISPATCH_MASK) | id;
      turns(20);
      expect([into, target.handlers.malformed, told.length, origin().drained]).toEqual([[], 1, 1, true]);
      expectBusy(0);
    });
  });

  describe("a progress source that add() registers", () => {
    class Source implements ProgressSource {
      busy = 0;
      hasWork = false;
      isDrained = true;
      onAdvance = (): void => {};
      readonly seen: string[] = [];
      readonly #activity: Activity;

      constructor(activity: Activity) {
        this.#activity = activity;
      }

      work(count: number): void {
        this.busy += count;
        this.#activity.add(count);
      }

      advance(): number {
        this.seen.push("advance");
        this.onAdvance();
        this.work(-1);
        return 1;
      }

      ended(ordinal: number): void {
        this.seen.push(`ended ${ordinal}`);
      }

      engineEnded(hadBegun: boolean): void {
        this.seen.push(`engine ended ${hadBegun}`);
      }

      holds(): boolean {
        return false;
      }

      forget(): void {}

      close(): void {
        this.seen.push("close");
      }
    }

    it("is advanced while it has something to do, and only then; its events are the round's", () => {
      const source = target.add((activity) => new Source(activity));
      expect([target.advance(1), source.seen]).toEqual([0, []]);
      source.work(2);
      expect([target.advance(1), target.advance(1), target.advance(1)]).toEqual([1, 1, 0]);
      expect(source.seen).toEqual(["advance", "advance"]);
      // What others have to do is no reason to ask it.
      target.work.push(() => EAGAIN);
      expect(target.advance(1)).toBe(0);
      expect(source.seen.length).toBe(2);
      expect(job.activityOf(target).busy).toBe(1);
    });

    it("says whether the thread may sleep", () => {
      const source = target.add((activity) => new Source(activity));
      expect(target.hasWork()).toBe(false);
      source.hasWork = true;
      // It is busy with nothing: no advance would ask it.
      expect(target.hasWork()).toBe(false);
      source.work(1);
      expect(target.hasWork()).toBe(true);
      source.hasWork = false;
      expect(target.hasWork()).toBe(false);
    });

    it("that throws stops nothing else: its error comes out of each round, beside others'", () => {
      const bad = target.add((activity) => new Source(activity));
      const good = target.add((activity) => new Source(activity));
      bad.onAdvance = () => {
        throw new Error("bad");
      };
      bad.work(1);
      good.work(1);
      const into: number[] = [];
      handle(into);
      target.completions.push(() => void into.push(-1), undefined, SUCCESS);
      send(3);
      expect(() => target.advance(1)).toThrow("bad");
      expect([into, good.busy, target.isAdvancing]).toEqual([[-1, 3], 0, false]);
      target.completions.push(
        () => {
          throw new Error("callback");
        },
        undefined,
        SUCCESS,
      );
      const both = expect.objectContaining({ errors: [new Error("bad"), new Error("callback")] });
      expect(() => target.advance(1)).toThrow(both);
      bad.onAdvance = () => {};
      send(4);
      expect(target.advance(1)).toBe(2);
      expect(into).toEqual([-1, 3, 4]);
      expect(job.activityOf(target).busy).toBe(0);
    });

    it("has its callbacks run in the round in which it finds them due, and those that they make due in the next", () => {
      const source = target.add((activity) => new Source(activity));
      const seen: string[] = [];
      const again = () => {
        seen.push("first");
        target.completions.push(() => void seen.push("second"), undefined, SUCCESS);
      };
      source.onAdvance = () => target.completions.push(again, undefined, SUCCESS);
      source.work(1);
      expect([target.advance(1), seen]).toEqual([2, ["first"]]);
      expect([target.advance(1), seen]).toEqual([1, ["first", "second"]]);
    });

    it("says whether what was issued is out", () => {
      const source = target.add((activity) => new Source(activity));
      source.work(1);
      expect(target.drained).toBe(true);
      source.isDrained = false;
      expect(target.drained).toBe(false);
    });

    it("is told of endpoints that end, each one's context or all of a task's, and that its own context closes", () => {
      const source = target.add((activity) => new Source(activity));
      origin(1).close();
      turns();
      expect(new Set(source.seen)).toEqual(new Set([`ended ${origin(1).ordinal}`]));
      source.seen.length = 0;
      job.die(0);
      turns();
      expect(new Set(source.seen)).toEqual(new Set([0, 1, 2].map((ordinal) => `ended ${ordinal}`)));
      source.seen.length = 0;
      target.close();
      target.close();
      expect(source.seen).toEqual(["close"]);
    });

    it.each([true, false])("is told once that the engine thread has ended; it had begun: %s", async (hadBegun) => {
      await job.close();
      job = CoresJob.shared([kernel], { engine: true });
      if (hadBegun) job.serve();
      target = job.open(0);
      const source = target.add((activity) => new Source(activity));
      job.endEngine();
      turns();
      expect(source.seen).toEqual([`engine ended ${hadBegun}`]);
    });
  });
});
