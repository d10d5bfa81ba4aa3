// What is pending when a task leaves: dropped with it, or let out first.

import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { DATA, LINKED_VARIANTS, openGate, PATIENCE, QUIT, rejectionOf, thrownBy, until, withJob } from "./support.js";

const COUNT = 5000;

describe.each(LINKED_VARIANTS)("$name", (variant) => {
  it.each([false, true, "blocking"] as const)("5,000 messages, a lane for 500, drain: %s", (drain) =>
    withJob(
      variant,
      { scenario: "leave", args: { count: COUNT, drain }, laneBytes: 8192 },
      ({ job, context, flags }) => {
        let next = 0;
        let wrong = 0;
        context.dispatch(DATA, (message) => {
          if (message.getInt32(0) !== next++) wrong++;
        });
        // Not before all are sent, so that most of them have to wait.
        const start = performance.now();
        while (Atomics.load(flags, 1) === 0 && performance.now() - start < PATIENCE) Atomics.wait(flags, 1, 0, 10);
        if (drain !== false) until(context, () => next === COUNT);
        else {
          while (job.dump().tasks[1]?.state === "up") context.advance();
          while (context.advance() > 0);
          expect(next).toBeLessThan(COUNT);
          expect(next).toBeGreaterThan(0);
        }
        expect(wrong).toBe(0);
      },
    ),
  );

  it("a client whose contexts have much for each other leaves when all of it is out", () =>
    withJob(variant, { tasks: 1, laneBytes: 1024 }, async ({ client, context }) => {
      const other = client.createContext();
      const came = [0, 0];
      context.dispatch(DATA, () => came[0]++);
      other.dispatch(DATA, () => came[1]++);
      for (let i = 0; i < COUNT; i++) {
        context.sendImmediate(other.endpoint, DATA, Int32Array.of(i));
        if (i < 10) other.sendImmediate(context.endpoint, DATA, Int32Array.of(i));
      }
      await client.close({ drain: true, timeout: PATIENCE });
      // What is out, and was not dispatched, is dropped: no more than a lane holds.
      expect(came[1]).toBeGreaterThan(COUNT - 1024 / 16);
      expect(client.closed).toBe(true);
    }));

  // An agent takes what its target does not read.
  const itIfRead = it.skipIf(variant.isLinked);
  itIfRead("drain() ends beside another one, and beside a wait that blocks the thread", () =>
    withJob(variant, { scenario: "hold", laneBytes: 8192 }, async ({ client, context, flags }) => {
      const to = client.endpoint(1);
      for (let i = 0; i < COUNT; i++) context.sendImmediate(to, DATA, Int32Array.of(i));
      const draining = [context.drain({ timeout: PATIENCE }), context.drain({ timeout: PATIENCE })];
      await pause(5); // both are asleep now
      expect(context.drained).toBe(false);
      openGate(flags, 0);
      until(context, () => context.drained);
      await Promise.all(draining);
      context.sendImmediate(to, QUIT);
      await context.drain();
    }),
  );

  itIfRead("drain() ends by the signal and by an interrupt", () =>
    withJob(variant, { module: "sleeper.js", laneBytes: 8192 }, async ({ job, client, context }) => {
      const to = client.endpoint(1, 1); // a context that is never made
      for (let i = 0; i < COUNT; i++) context.sendImmediate(to, DATA, Int32Array.of(i));
      const canceled = rejectionOf(context.drain({ signal: AbortSignal.timeout(5) }));
      expect((await canceled).code).toBe("PAMIR_CANCELED");
      const interrupted = rejectionOf(context.drain());
      job.interrupt(0);
      expect((await interrupted).code).toBe("PAMIR_INTERRUPTED");
    }),
  );

  itIfRead(
    "drain() of one whose target never reads: PAMIR_TIMEDOUT, nothing is closed; of a closed one: PAMIR_CLOSED",
    () =>
      withJob(variant, { module: "sleeper.js", laneBytes: 8192 }, async ({ client, context }) => {
        await context.drain();
        expect(context.drained).toBe(true);
        const to = client.endpoint(1, 1); // a context that is never made
        for (let i = 0; i < COUNT; i++) context.sendImmediate(to, DATA, Int32Array.of(i));
        expect(context.drained).toBe(false);
        await expect(client.close({ drain: true, timeout: 30 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
        const signal = AbortSignal.timeout(5);
        await expect(client.close({ drain: true, signal })).rejects.toMatchObject({ code: "PAMIR_CANCELED" });
        expect(context.closed).toBe(false);
        const draining = context.drain();
        context.close();
        await expect(draining).rejects.toMatchObject({ code: "PAMIR_CLOSED" });
        await client.close({ drain: true });
        await client.close({ drain: true });
        expect(thrownBy(() => client.createContext()).code).toBe("PAMIR_CLOSED");
      }),
  );
});
