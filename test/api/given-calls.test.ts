// Calls with `transfer`: the region of the request goes with it, without a copy, and its memory comes back.
import { type Context, codecs, dispatchId, type Endpoint, type Job, type MemRegion, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import { DATA, LINKED_VARIANTS, OTHER, pattern, sameBytes, until, type Variant, withJob } from "./support.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIVE = { transfer: true };
const nothing = () => {};

interface Pair {
  readonly job: Job;
  readonly origin: Context;
  readonly target: Context;
  /** Makes a region, and fills it. */
  readonly region: (bytes: number, seed?: number) => MemRegion;
}

/** Two contexts of one thread, so that a test decides which makes a step, and when. */
function pair<T>(variant: Variant, body: (pair: Pair) => T | Promise<T>): Promise<T> {
  return withJob(variant, { tasks: 1, contexts: 2, heapBytes: 32 * MIB }, ({ job, client, context }) =>
    body({
      job,
      origin: context,
      target: client.createContext(),
      region(bytes, seed = 0) {
        const region = client.createRegion(bytes);
        region.bytes.set(pattern(bytes, seed));
        return region;
      },
    }),
  );
}

function step(contexts: readonly Context[], rounds = 40): void {
  for (let round = 0; round < rounds; round++) for (const context of contexts) context.advance();
}

/** Sends until the lane has no room for a record of any size. */
function fillLane(origin: Context, to: Endpoint): void {
  for (const bytes of [1000, 0]) {
    const payload = new Uint8Array(bytes);
    while (origin.send({ to, dispatch: OTHER, payload, queue: false }) === SUCCESS);
  }
}

/** Bytes of the heap that belong to anything but pools. */
const used = (job: Job): number => {
  const { bytes, free, pooled } = job.dump().heap;
  return bytes - free - pooled;
};

/** Code of the error with which a promise rejects. */
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "resolved",
    ({ code }) => code,
  );

describe.each(LINKED_VARIANTS)("calls that give their request away: $name", (variant) => {
  it("its bytes are read where they were written, and are free again behind the handler", () =>
    pair(variant, async ({ job, origin, target, region }) => {
      const places: number[] = [];
      target.dispatch(DATA, (message) => {
        places.push(message.payloadOffset);
        return Uint8Array.of(Number(sameBytes(message.payload, pattern(777_777, places.length))));
      });
      // The first one makes the lanes, and the page of the pool's slots.
      let before = Number.NaN;
      for (let i = 1; i < 5; i++) {
        const given = region(MIB, i);
        const { byteOffset } = given.bytes;
        // What was read is a part of the region: all of it is given.
        given.bytes.set(pattern(777_777, i));
        const reply = origin.call(target.endpoint, DATA, given.bytes.subarray(0, 777_777), GIVE);
        expect(given.closed).toBe(true);
        step([origin, target]);
        expect([...(await reply)]).toEqual([1]);
        expect(places.at(-1)).toBe(byteOffset);
        if (i === 1) before = used(job);
        expect(used(job)).toBe(before);
      }
      // No page is touched for the first time twice: each region lies where the one before it lay.
      expect(new Set(places.slice(1)).size).toBe(1);
    }));

  it("callSync(), small requests, and a handler that keeps them", () =>
    withJob(variant, { scenario: "reader", module: "large.js", heapBytes: 16 * MIB }, ({ client, context }) => {
      const to = client.endpoint(1);
      for (const bytes of [1, 100, 20_000, MIB]) {
        for (const header of [undefined, Uint8Array.of(1)]) {
          if (header !== undefined && bytes === MIB) continue;
          const region = client.createRegion(bytes);
          region.bytes.fill(3);
          const reply = context.callSync(to, DATA, region.bytes, { header, ...GIVE });
          expect([region.closed, new Uint32Array(reply.slice().buffer)[0]]).toEqual([true, 3 * bytes]);
        }
      }
    }));

  it("what finds no room waits in order, uncopied, and comes", () =>
    pair(variant, async ({ job, origin, target, region }) => {
      const to = target.endpoint;
      fillLane(origin, to);
      const sums: boolean[] = [];
      target.dispatch(OTHER, nothing);
      target.dispatch(DATA, (message) => void sums.push(sameBytes(message.payload, pattern(MIB, sums.length))));
      const before = used(job);
      const given = Array.from({ length: 5 }, (_, i) => region(MIB, i));
      const calls = given.map(({ bytes }) => origin.call(to, DATA, bytes, GIVE));
      expect(given.every(({ closed }) => closed)).toBe(true);
      // Headers alone are copied.
      const { pending } = job.dump().tasks[0]?.contexts[0] ?? expect.fail("no context");
      expect(pending.messages).toBeGreaterThanOrEqual(5);
      expect(pending.bytes).toBeLessThan(KIB);
      step([target, origin], 80);
      await Promise.all(calls);
      expect(sums).toEqual([true, true, true, true, true]);
      expect(used(job)).toBeLessThanOrEqual(before + 64 * KIB);
    }));

  it("a call that is refused leaves the region its caller's", () =>
    pair(variant, async ({ origin, target, region }) => {
      const to = target.endpoint;
      const id = dispatchId(12, codecs.json<string>(), codecs.bytes);
      const [own, read, closed] = [region(100), region(100), region(100)];
      void read.handle;
      closed.close();
      const refused: [unknown, unknown, unknown][] = [
        [DATA, new Uint8Array(10), GIVE],
        [DATA, undefined, GIVE],
        [DATA, read.bytes, GIVE],
        [DATA, closed.bytes, GIVE],
        [DATA, own.bytes, { transfer: 1 }],
        [id, "100 bytes", GIVE],
      ];
      for (const [dispatch, request, options] of refused)
        expect(await codeOf(origin.call(to, dispatch as number, request as Uint8Array, options as object))).toBe(
          "PAMIR_INVAL",
        );
      const signal = AbortSignal.abort();
      expect(await codeOf(origin.call(to, DATA, own.bytes, { signal, ...GIVE }))).toBe("PAMIR_CANCELED");
      target.close();
      step([origin]);
      expect(await codeOf(origin.call(to, DATA, own.bytes, GIVE))).toBe("PAMIR_SHUTDOWN");
      expect([own.closed, sameBytes(own.bytes, pattern(100, 0))]).toEqual([false, true]);
    }));

  it("a call that is given up, or whose context closes, gives its memory back", () =>
    pair(variant, async ({ job, origin, target, region }) => {
      const to = target.endpoint;
      const before = used(job);
      fillLane(origin, to);
      const abort = new AbortController();
      const calls = [
        codeOf(origin.call(to, DATA, region(MIB).bytes, { signal: abort.signal, ...GIVE })),
        codeOf(origin.call(to, DATA, region(MIB).bytes, GIVE)),
      ];
      abort.abort();
      origin.close();
      expect(await Promise.all(calls)).toEqual(["PAMIR_CANCELED", "PAMIR_CLOSED"]);
      target.dispatch(OTHER, nothing);
      target.dispatch(DATA, nothing);
      step([target]);
      expect(used(job)).toBeLessThanOrEqual(before + 64 * KIB);
    }));

  it("a receiver that dies with requests: their calls reject, and all memory comes back", () =>
    withJob(
      variant,
      { tasks: 2, scenario: "dying reader", module: "large.js", heapBytes: 32 * MIB, onExit: nothing },
      async ({ job, client, context }) => {
        const to = client.endpoint(1);
        await context.call(to, DATA, client.createRegion(MIB).bytes, GIVE);
        const calls = Array.from({ length: 6 }, () =>
          codeOf(context.call(to, DATA, client.createRegion(MIB).bytes, GIVE)),
        );
        expect(await Promise.all(calls)).toEqual(Array.from({ length: 6 }, () => "PAMIR_SHUTDOWN"));
        until(context, () => {
          context.advance();
          return used(job) <= 64 * KIB;
        });
      },
    ));
});
