// Payloads that stay where they are until their target says where they go. The names begin with the element of the
// mechanism that they prove.
import {
  CANCELED,
  type Callback,
  type Client,
  type Context,
  type ContextOptions,
  type Job,
  type Result,
  SHUTDOWN,
  SUCCESS,
} from "pamir";
import { describe, expect, it } from "vitest";
import {
  awaitFlag,
  DATA,
  fillHeap,
  OTHER,
  openGate,
  PATIENCE,
  pattern,
  progress,
  QUIT,
  RESULT,
  sameBytes,
  until,
  VARIANTS,
  type Variant,
  withJob,
} from "./support.js";

const module = "offers.js";
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const KIB = 1024;
const MIB = 1024 * KIB;

interface Pair {
  readonly job: Job;
  readonly client: Client;
  readonly origin: Context;
  readonly target: Context;
}

/** Two contexts of one thread, so that a test decides who makes a step, and when. */
function pair<T>(variant: Variant, options: ContextOptions, body: (pair: Pair) => T | Promise<T>): Promise<T> {
  return withJob(variant, { tasks: 1, contexts: 3, heapBytes: 16 * MIB }, ({ job, client, context }) =>
    body({ job, client, origin: context, target: client.createContext(options) }),
  );
}

/** A header that asks a task in `take` for something. */
function asked(order: { number: number; [what: string]: unknown }): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(order));
}

/** What tasks in `take` tell of what they received. */
function results(context: Context): unknown[] {
  const came: unknown[] = [];
  context.dispatch(RESULT, ({ payload }) => void came.push(JSON.parse(new TextDecoder().decode(payload.slice()))));
  return came;
}

/** What callbacks were told. */
function listener(): { readonly told: [unknown, Result][]; readonly hear: Callback } {
  const told: [unknown, Result][] = [];
  return { told, hear: (cookie, result) => void told.push([cookie, result]) };
}

/** Advances these in turn, one step each, until the condition holds. Returns how many steps that took. */
function step(contexts: readonly Context[], condition: () => boolean, most = 20_000): number {
  for (let steps = 0; steps < most; steps++) {
    if (condition()) return steps;
    for (const context of contexts) if (!context.closed) context.advance();
  }
  throw new Error(`after ${most} steps not yet: ${condition}`);
}

describe.each(VARIANTS)("$name", (variant) => {
  describe("ends that are close to each other", () => {
    it("P7 P10 all is there, then its origin closes: the target gets SUCCESS, and nothing of the next one is taken for done", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const third = client.createContext();
        const [from, into] = [client.createRegion(MIB), client.createRegion(MIB)];
        from.bytes.set(pattern(MIB));
        into.bytes.fill(0);
        const received = listener();
        target.dispatch(DATA, (message) => {
          message.receive(into.bytes.subarray(0, message.payloadBytes), received.hear, "first");
        });
        const payload = from.bytes.subarray(0, 100_000);
        origin.sendImmediate(target.endpoint, OTHER);
        origin.send({ to: target.endpoint, dispatch: DATA, payload, onLocal: () => {} });
        // The request is taken, the one link is shipped.
        for (let i = 0; i < 2; i++) target.advance();
        // Called between the target's look at what is over and its look at who has ended.
        target.dispatch(OTHER, () => {
          origin.advance();
          origin.close();
        });
        target.advance();
        step([target], () => received.told.length === 1);
        expect(received.told).toEqual([["first", SUCCESS]]);
        expect(sameBytes(into.bytes.subarray(0, 100_000), payload)).toBe(true);

        const seen: boolean[] = [];
        into.bytes.fill(0);
        third.dispatch(DATA, () => {});
        target.dispatch(20, (message) =>
          message.receive(into.bytes, () => seen.push(sameBytes(into.bytes, from.bytes))),
        );
        third.send({ to: target.endpoint, dispatch: 20, payload: from.bytes, onLocal: () => {} });
        step([target, third], () => seen.length === 1);
        expect(seen).toEqual([true]);
      }));

    it("P10 its target closes, with the last link shipped: SHUTDOWN, once", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const [from, into] = [client.createRegion(100_000), client.createRegion(100_000)];
        const local = listener();
        target.dispatch(DATA, (message) => message.receive(into.bytes));
        origin.send({ to: target.endpoint, dispatch: DATA, payload: from.bytes, onLocal: local.hear, cookie: 5 });
        for (let i = 0; i < 2; i++) target.advance();
        target.close();
        for (let i = 0; i < 20; i++) origin.advance();
        expect(local.told).toEqual([[5, SHUTDOWN]]);
      }));

    it("P10 an offer that nobody took while its origin lived is nobody's memory any more", () =>
      withJob(variant, { module, scenario: "offer", args: { bytes: 8 } }, async ({ job, client, context, flags }) => {
        awaitFlag(flags, 10, 1);
        until(context, () => (job.dump().tasks[0]?.contexts[0]?.unexpectedBytes ?? 0) > 0);
        await job.terminate(1);
        await context.whenEnded(client.endpoint(1), { timeout: PATIENCE });
        // What was the dead one's is ours now, with what it had written there.
        const regions = fillHeap(client);
        const before = regions.map(({ bytes }) => bytes.slice());
        let isAsked = false;
        context.dispatch(DATA, (message) => {
          isAsked = true;
          message.discard();
        });
        until(context, () => isAsked);
        for (const [i, { bytes }] of regions.entries()) expect(sameBytes(bytes, before[i] as Uint8Array)).toBe(true);
      }));
  });

  describe("cancel", () => {
    it("P10 the origin's signal wakes a target that waits for more of what is staged", () =>
      withJob(variant, { module, scenario: "take" }, async ({ client, context, flags }) => {
        const controller = new AbortController();
        const { told, hear } = listener();
        const came = results(context);
        const parameters = { to: client.endpoint(1), dispatch: DATA, header: asked({ number: 0 }) };
        const payload = pattern(MIB);
        context.send({ ...parameters, payload, rendezvous: true, onLocal: hear, signal: controller.signal });
        awaitFlag(flags, 10, 1);
        // It takes what is staged, and falls asleep.
        await pause(100);
        controller.abort();
        until(context, () => told.length === 1 && came.length === 1);
        expect([told, came]).toEqual([
          [[undefined, CANCELED]],
          [{ number: 0, result: CANCELED, isRight: true, immediate: false }],
        ]);
        context.sendImmediate(client.endpoint(1), QUIT);
      }));

    it("P10 the receiver's signal wakes itself, where it waits for an origin that stands still", () =>
      withJob(variant, { module, scenario: "offer", args: { bytes: MIB } }, async ({ context, flags }) => {
        const controller = new AbortController();
        const { told, hear } = listener();
        let report: unknown;
        context.dispatch(RESULT, ({ payload }) => {
          report = JSON.parse(new TextDecoder().decode(payload.slice()));
        });
        context.dispatch(DATA, (message) => {
          message.receive(new Uint8Array(MIB), hear, 7, { signal: controller.signal });
        });
        setTimeout(() => controller.abort(), 100);
        while (told.length === 0) await progress(context);
        expect(told).toEqual([[7, CANCELED]]);
        openGate(flags, 0);
        until(context, () => report !== undefined);
        expect(report).toEqual([[0, CANCELED]]);
      }));
  });
});
