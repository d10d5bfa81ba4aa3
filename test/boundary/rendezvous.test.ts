// Offered payloads without a client: how many a target gets at a time, what is used again (rget FIFOs, rings, links), and
// every way to end, on either side. Behind each, the parts and their counter have nothing to do. Both tasks are this
// thread's.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RGET_FIFO_COUNT, SLICE_BYTES, STAGED_COUNT } from "../../assembly/layout.js";
import type { Message } from "../../src/core/message/message.js";
import type { MemRegion } from "../../src/core/region.js";
import { CANCELED, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { ContextCore } from "../../src/protocol/context-core.js";
import { bytesFrom } from "../support/bytes.js";
import { busyParts, CoresJob } from "../support/cores.js";
import { NetworkedJob } from "../support/networked.js";
import { type PrivateJob, portsJob } from "../support/ports-job.js";
import { SEED } from "../support/seed.js";

const ID = 5;
const KIB = 1024;
/** Payloads offered to one target that it has not taken yet, at most. */
const OFFERS_MAX = 8;
/** Payloads of one context that are staged at a time, at most. */
const STAGINGS_MAX = 8;
const BYTES = 40 * KIB;
const HEAP = 16 * KIB * KIB;

describe.each([
  ["wasm", false],
  ["ts", false],
  ["wasm", true],
  ["ts", true],
] as const)("%s, an engine thread: %s", (kernel, hasThread) => {
  let job: CoresJob;
  let origin: ContextCore;
  let target: ContextCore;
  let source: MemRegion;
  let destination: MemRegion;
  /** Results by what they are of. */
  let told: { local: Result[]; remote: Result[]; received: Result[] };

  beforeEach(() => {
    job = CoresJob.shared([kernel], { engine: hasThread, heapBytes: HEAP, regions: 64 });
    if (hasThread) job.serve();
    origin = job.open(0, { pendingBytes: 4 * KIB * KIB });
    target = job.open(1, { fragment: 8 * KIB });
    source = job.task(0).regions.create(KIB * KIB);
    destination = job.task(1).regions.create(KIB * KIB);
    source.bytes.set(bytesFrom(KIB * KIB, (i) => i * 3 + (i >>> 8)));
    destination.bytes.fill(0);
    told = { local: [], remote: [], received: [] };
  });

  afterEach(() => job.close());

  const offer = (payload: Uint8Array, signal?: AbortSignal): Result =>
    origin.sender.send({
      to: target.endpoint,
      dispatch: ID,
      payload,
      rendezvous: true,
      signal,
      onLocal: (_, result) => void told.local.push(result),
      onRemote: (_, result) => void told.remote.push(result),
    });
  const handle = (take: (message: Message) => void): void => target.receiver.dispatch(ID, take, {});
  const receive = (message: Message, into: Uint8Array = destination.bytes, signal?: AbortSignal): void =>
    message.receive(into, (_, result) => void told.received.push(result), undefined, signal && { signal });

  /** Each context advances, and so does the engine thread, where there is one. */
  function turns(count: number, serves = hasThread): void {
    for (let turn = 0; turn < count; turn++) {
      if (serves) job.serve();
      job.advance();
      expectAgreement();
    }
  }

  function expectAgreement(): void {
    for (const core of [origin, target]) {
      if (core.isClosed) continue;
      expect(core.rendezvous.busy).toBeGreaterThanOrEqual(0);
      expect(job.activityOf(core).busy).toBe(busyParts(core));
    }
  }

  const expectIdle = (core: ContextCore): void => {
    expect([core.rendezvous.busy, core.rendezvous.sender.count, job.activityOf(core).busy]).toEqual([0, 0, 0]);
    expect(core.drained).toBe(true);
  };

  const inside = (bytes = BYTES): Uint8Array => source.bytes.subarray(100, 100 + bytes);
  const outside = (bytes = BYTES): Uint8Array => inside(bytes).slice();

  const PLACES = [
    ["in regions on both sides", inside, true],
    ["out of a region into memory of the target's own", inside, false],
    ["out of memory of the origin's own into a region", outside, true],
    ["out of memory of the origin's own into such of the target's", outside, false],
  ] as const;

  describe.each(PLACES)("%s", (_, payloadOf, isRegion) => {
    const place = (bytes = BYTES): Uint8Array => (isRegion ? destination.bytes : new Uint8Array(bytes));

    it.each([1, BYTES, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES + 5])("%i bytes arrive whole", (bytes) => {
      const into = place(bytes);
      const seen: unknown[] = [];
      handle((message) => {
        seen.push(message.immediate, message.payloadBytes);
        receive(message, into);
      });
      expect(offer(payloadOf(bytes))).toBe(SUCCESS);
      expect([origin.rendezvous.sender.count, origin.rendezvous.busy]).toEqual([1, 1]);
      for (let rounds = 0; told.local.length === 0 && rounds < 400; rounds++) turns(1);
      turns(3);
      expect(seen).toEqual([false, bytes]);
      expect(told).toEqual({ local: [SUCCESS], remote: [SUCCESS], received: [SUCCESS] });
      expect(Buffer.compare(into.subarray(0, bytes), inside(bytes))).toBe(0);
      for (const core of [origin, target]) expectIdle(core);
    });

    it.each(["discards", "throws", "says nothing"])("the target's handler %s it", (how) => {
      handle((message) => {
        if (how === "throws") throw new Error("on purpose");
        if (how === "discards") message.discard();
      });
      offer(payloadOf());
      if (how === "discards") turns(10);
      else expect(() => turns(10)).toThrow();
      turns(10);
      const result = how === "discards" ? SUCCESS : ERROR;
      expect(told).toEqual({ local: [result], remote: [result], received: [] });
      for (const core of [origin, target]) expectIdle(core);
    });

    it("the origin gives it up before the target has answered", () => {
      const controller = new AbortController();
      offer(payloadOf(), controller.signal);
      controller.abort();
      handle((message) => receive(message, place()));
      turns(40);
      expect(told.local).toEqual([CANCELED]);
      expect(told.received).toEqual([CANCELED]);
      for (const core of [origin, target]) expectIdle(core);
    });

    it("the target gives it up as it takes it", () => {
      const controller = new AbortController();
      controller.abort();
      handle((message) => receive(message, place(), controller.signal));
      offer(payloadOf());
      turns(40);
      expect(told).toEqual({ local: [CANCELED], remote: [CANCELED], received: [CANCELED] });
      for (const core of [origin, target]) expectIdle(core);
    });

    it.each(["dies", "closes its context"])("the origin %s when the target has begun", (how) => {
      handle((message) => receive(message, place(3 * SLICE_BYTES)));
      offer(payloadOf(3 * SLICE_BYTES));
      target.advance(1);
      expect(target.rendezvous.busy).toBe(1);
      if (how === "dies") job.die(0);
      else origin.close();
      turns(20);
      // All may have been there by then.
      expect(told.received.length).toBe(1);
      expect([SHUTDOWN, SUCCESS]).toContain(told.received[0]);
      expectIdle(target);
    });

    it.each(["dies", "closes its context"])("the target %s before it has answered", (how) => {
      offer(payloadOf());
      turns(2);
      if (how === "dies") job.die(1);
      else target.close();
      turns(20);
      expect(told).toEqual({ local: [SHUTDOWN], remote: [SHUTDOWN], received: [] });
      expectIdle(origin);
    });

    it("the origin ends while its offer has no handler yet", () => {
      offer(payloadOf());
      target.advance(1);
      expect(target.rendezvous.busy).toBe(0);
      job.die(0);
      turns(10);
      handle((message) => receive(message, place()));
      turns(10);
      expect(told.received).toEqual([SHUTDOWN]);
      expectIdle(target);
    });
  });

  it("offers so many to one target at a time; more are pending, and go on as it takes them", () => {
    const into: number[] = [];
    for (let i = 1; i <= 3 * OFFERS_MAX; i++) expect(offer(inside(i))).toBe(SUCCESS);
    expect([origin.rendezvous.sender.count, origin.sender.busy]).toEqual([OFFERS_MAX, 1]);
    expect(origin.rendezvous.sender.mayBegin(target.ordinal)).toBe(false);
    turns(10);
    expect([origin.rendezvous.sender.count, origin.sender.busy]).toEqual([OFFERS_MAX, 1]);
    // Messages behind them wait too: they are in order.
    origin.sender.sendImmediate(target.endpoint, ID, null, null, true);
    handle((message) => {
      into.push(message.payloadBytes);
      if (message.payloadBytes > 0) receive(message);
    });
    turns(60);
    expect(into).toEqual([...Array.from({ length: 3 * OFFERS_MAX }, (_, i) => i + 1), 0]);
    expect(told.local.length).toBe(3 * OFFERS_MAX);
    expect(origin.rendezvous.sender.mayBegin(target.ordinal)).toBe(true);
    for (const core of [origin, target]) expectIdle(core);
  });

  it("the limit is each target's own: another one is offered as many", () => {
    const other = job.open(1);
    for (let i = 0; i < OFFERS_MAX; i++) offer(inside(10));
    expect(origin.rendezvous.sender.mayBegin(target.ordinal)).toBe(false);
    expect(origin.rendezvous.sender.mayBegin(other.ordinal)).toBe(true);
  });

  it("stages so many payloads of a context at a time; the next one comes in packets, and is told as any other", () => {
    const other = job.open(1);
    const seen: boolean[] = [];
    for (const core of [target, other]) {
      core.receiver.dispatch(
        ID,
        (message) => {
          seen.push(message.immediate);
          if (!message.immediate) receive(message, new Uint8Array(BYTES));
        },
        {},
      );
    }
    for (let i = 0; i < STAGINGS_MAX; i++) offer(outside());
    expect(origin.rendezvous.sender.count).toBe(STAGINGS_MAX);
    const results: Result[] = [];
    const payload = outside();
    const onLocal = (_: unknown, result: Result): void => void results.push(result);
    origin.sender.send({ to: other.endpoint, dispatch: ID, payload, rendezvous: true, onLocal });
    // One in a region needs no place to be staged.
    origin.sender.send({ to: other.endpoint, dispatch: ID, payload: inside(), rendezvous: true, onLocal });
    expect(origin.rendezvous.sender.count).toBe(STAGINGS_MAX + 1);
    turns(60);
    expect(seen.filter((immediate) => immediate).length).toBe(1);
    expect(results).toEqual([SUCCESS, SUCCESS]);
    for (const core of [origin, target, other]) expectIdle(core);
  });

  it.each(PLACES.slice(0, 3))(
    "uses its memory again, %s: a hundred transfers take no more than the first ones",
    (...place) => {
      const [, payloadOf, isRegion] = place;
      const into = isRegion ? destination.bytes : new Uint8Array(BYTES);
      handle((message) => receive(message, into));
      let free = 0;
      for (let round = 0; round < 12; round++) {
        for (let i = 0; i < OFFERS_MAX; i++) offer(payloadOf());
        turns(30);
        if (round === 1) free = job.free(0);
      }
      expect(told.local.length).toBe(12 * OFFERS_MAX);
      expect(told.received.every((result) => result === SUCCESS)).toBe(true);
      expect(job.free(0)).toBe(free);
      for (const core of [origin, target]) expectIdle(core);
    },
  );

  it("opens more rget FIFOs than one block has, in both tables, and all come to their end", () => {
    const others = [target, job.open(1)];
    const asked: Message[] = [];
    for (const core of others) {
      core.receiver.dispatch(
        ID,
        (message) => {
          asked.push(message);
          receive(message);
        },
        {},
      );
    }
    for (const core of others) {
      for (let i = 0; i < OFFERS_MAX; i++) {
        const onLocal = (_: unknown, result: Result): void => void told.local.push(result);
        const to = { to: core.endpoint, dispatch: ID, rendezvous: true, onLocal };
        expect(origin.sender.send({ ...to, payload: inside(BYTES + i) })).toBe(SUCCESS);
      }
    }
    expect(2 * OFFERS_MAX).toBeGreaterThan(RGET_FIFO_COUNT);
    expect(origin.rendezvous.busy).toBe(2 * OFFERS_MAX);
    turns(60);
    expect(told.local).toEqual(Array(2 * OFFERS_MAX).fill(SUCCESS));
    expect(told.received.length).toBe(2 * OFFERS_MAX);
    for (const core of [origin, ...others]) expectIdle(core);
  });

  it("a payload larger than its ring goes through it in turns, as the target takes the fragments", () => {
    const bytes = (STAGED_COUNT + 3) * 64 * KIB + 77;
    handle((message) => receive(message));
    offer(outside(bytes));
    turns(100);
    expect(told).toEqual({ local: [SUCCESS], remote: [SUCCESS], received: [SUCCESS] });
    expect(Buffer.compare(destination.bytes.subarray(0, bytes), inside(bytes))).toBe(0);
    for (const core of [origin, target]) expectIdle(core);
  });

  it("copies no more than a slice of each payload in a round, where the target's own thread does it", () => {
    const into = new Uint8Array(3 * SLICE_BYTES);
    handle((message) => receive(message, into));
    offer(inside(3 * SLICE_BYTES));
    const last = (): number => into.findLastIndex((byte) => byte !== 0) + 1;
    let before = 0;
    for (let rounds = 0; told.received.length === 0 && rounds < 20; rounds++) {
      target.advance(1);
      expect(last() - before).toBeLessThanOrEqual(SLICE_BYTES);
      before = last();
    }
    expect(told.received).toEqual([SUCCESS]);
    turns(10);
    for (const core of [origin, target]) expectIdle(core);
  });

  it("gives all its memory back when its context closes, whatever is under way", () => {
    const free = job.free(0);
    const controller = new AbortController();
    const own = job.open(1);
    own.receiver.dispatch(
      ID,
      (message) => message.receive(message.payloadBytes % 2 === 0 ? destination.bytes : new Uint8Array(2 * BYTES)),
      {},
    );
    const second = job.open(0);
    for (let i = 0; i < 6; i++) {
      const payload = i < 3 ? inside(BYTES + i) : outside(BYTES + i);
      const onLocal = (): void => {};
      const { signal } = controller;
      second.sender.send({ to: own.endpoint, dispatch: ID, payload, rendezvous: true, onLocal, signal });
    }
    own.advance(1);
    second.close();
    own.close();
    controller.abort();
    turns(20);
    for (const task of [0, 1]) job.task(task).reclaim();
    expect(job.free(0)).toBe(free);
  });

  if (!hasThread) return;

  it.each(PLACES)("the engine thread ends in the middle of a transfer %s: each side is told once", (...place) => {
    const [, payloadOf, isRegion] = place;
    const into = isRegion ? destination.bytes : new Uint8Array(3 * SLICE_BYTES);
    handle((message) => receive(message, into));
    offer(payloadOf(3 * SLICE_BYTES));
    target.advance(1);
    job.serve();
    job.endEngine();
    turns(40, false);
    for (const results of Object.values(told)) expect(results.length).toBe(1);
    expect([SUCCESS, ERROR]).toContain(told.received[0]);
    for (const core of [origin, target]) expectIdle(core);
    // From now on each context is its own engine.
    offer(payloadOf(BYTES));
    turns(40, false);
    expect(told.received[1]).toBe(SUCCESS);
    expect(Buffer.compare(into.subarray(0, BYTES), inside(BYTES))).toBe(0);
    for (const core of [origin, target]) expectIdle(core);
  });
});

describe("between nodes", () => {
  const LIMITS = { tasks: 2, contexts: 1, laneBytes: 16 * KIB, heapBytes: HEAP, regions: 64, fifos: 2, slots: 8 };
  const NODES: readonly (readonly [string, () => PrivateJob])[] = [
    ["ports", () => portsJob(LIMITS, ["wasm", "ts"])],
    ["a network", () => new NetworkedJob({ seed: SEED, limits: LIMITS, kernels: ["wasm", "ts"] })],
  ];

  it.each(NODES)("by %s: offers that wait do not hold up the payloads that the targets ask for", async (_, make) => {
    const job = make();
    const contexts = job.tasks.map(({ client }) => client.createContext());
    const count = 3 * OFFERS_MAX;
    const wrong: string[] = [];
    const came = [0, 0];
    let received = 0;
    for (const [task, context] of contexts.entries()) {
      context.dispatch(ID, (message) => {
        const number = message.headerWord(0);
        if (number !== came[task]++) wrong.push(`${number} came to task ${task} as number ${came[task]}`);
        if (message.immediate) {
          received++;
          return;
        }
        // No region: the target asks for the bytes by messages.
        const into = new Uint8Array(message.payloadBytes);
        message.receive(into, (__, result) => {
          received++;
          if (result !== SUCCESS || into.some((byte) => byte !== number)) wrong.push(`${number}: ${result}`);
        });
      });
    }
    for (let number = 0; number < count; number++) {
      for (const [from, to] of [
        [0, 1],
        [1, 0],
      ] as const) {
        const [context, header] = [contexts[from], Int32Array.of(number)];
        // Messages of several packets among them: one that has begun goes on before others.
        const payload = new Uint8Array(number % 3 === 0 ? 100 * KIB : BYTES).fill(number);
        const isOffered = number % 3 !== 2;
        const more = { rendezvous: isOffered, onLocal: () => {} };
        const target = contexts[to]?.endpoint as never;
        expect(context?.send({ to: target, dispatch: ID, header, payload, ...more })).toBe(SUCCESS);
      }
    }
    for (let turns = 0; turns < 5000 && received < 2 * count; turns++) {
      for (const context of contexts) context.advance();
      await job.turn();
    }
    expect([received, wrong]).toEqual([2 * count, []]);
    for (const { client } of job.tasks) client.close();
  });
});
