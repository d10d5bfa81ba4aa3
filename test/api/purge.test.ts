// purge() and resume(): what a context holds for an endpoint is let go of, and taken up again.
import { EAGAIN, ENOMEM, type Endpoint, SHUTDOWN, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import { DATA, PATIENCE, QUIT, RESULT, thrownBy, until, VARIANTS, withJob } from "./support.js";

describe.each(VARIANTS)("$name", (variant) => {
  /** The other task takes `count` messages and tells the number in each header; once its gate is open. */
  const collecting = (count: number, gate = 0) => ({ scenario: "collect", args: { count, gate } });

  it("purge() gives the lane's memory back once the target has read it; what is sent later opens one by itself", () =>
    withJob(variant, collecting(20), ({ job, client, context, flags }) => {
      const to = client.endpoint(1);
      let told: number[] | undefined;
      context.dispatch(RESULT, (message) => {
        told = JSON.parse(new TextDecoder().decode(message.payload));
      });
      Atomics.store(flags, 0, 1);
      Atomics.notify(flags, 0);
      const free = () => job.dump().heap.free;
      const before = free();
      const send = (number: number) => context.sendImmediate(to, DATA, Uint8Array.of(number, 0, 0, 0));
      for (let number = 0; number < 10; number++) expect(send(number)).toBe(SUCCESS);
      expect(free()).toBeLessThan(before);
      expect(context.purge([to])).toBe(SUCCESS);
      expect(context.purge([to])).toBe(SUCCESS); // nothing is held by now
      const start = performance.now();
      while (free() !== before && performance.now() - start < PATIENCE) context.advance(1000);
      expect(free()).toBe(before);
      for (let number = 10; number < 20; number++) expect(send(number)).toBe(SUCCESS);
      until(context, () => told !== undefined);
      expect(told).toEqual(Array.from({ length: 20 }, (_, number) => number));
    }));

  it("resume() opens the lane: EAGAIN until the target has read what went before", () =>
    withJob(variant, collecting(1), ({ job, client, context, flags }) => {
      const to = client.endpoint(1);
      expect(context.resume([to])).toBe(SUCCESS);
      const held = job.dump().heap.free;
      expect(context.resume([to])).toBe(SUCCESS);
      expect(job.dump().heap.free).toBe(held);
      expect(context.purge([to])).toBe(SUCCESS);
      expect(context.resume([to])).toBe(EAGAIN);
      Atomics.store(flags, 0, 1);
      Atomics.notify(flags, 0);
      const start = performance.now();
      let result = context.resume([to]);
      while (result === EAGAIN && performance.now() - start < PATIENCE) {
        context.advance(1000);
        result = context.resume([to]);
      }
      expect(result).toBe(SUCCESS);
      expect(context.sendImmediate(to, DATA, new Uint8Array(4))).toBe(SUCCESS);
    }));

  it("a lane that is full has no room to say so: EAGAIN, and it stays", () =>
    withJob(variant, { ...collecting(1), laneBytes: 8192 }, ({ client, context }) => {
      const to = client.endpoint(1);
      while (context.sendImmediate(to, DATA, new Uint8Array(4), null, false) === SUCCESS);
      expect(context.purge([to])).toBe(EAGAIN);
    }));

  it("something that is under way, the own endpoint, and what is no endpoint: refused, nothing is let go of", () =>
    withJob(variant, { ...collecting(1), tasks: 3, laneBytes: 8192 }, ({ job, client, context }) => {
      const [busy, other] = [client.endpoint(1), client.endpoint(2)];
      context.sendImmediate(other, DATA, new Uint8Array(4));
      while (context.sendImmediate(busy, DATA, new Uint8Array(4), null, false) === SUCCESS);
      expect(context.sendImmediate(busy, DATA, new Uint8Array(4))).toBe(SUCCESS); // pending
      const before = job.dump().heap.free;
      expect(thrownBy(() => context.purge([other, busy]))).toEqual({
        code: "PAMIR_INVAL",
        text: `purge() of endpoint ${busy}: something is under way to it`,
      });
      expect(context.reserve(other, DATA, 8)).toBeGreaterThan(0);
      expect(thrownBy(() => context.purge([other])).text).toMatch(/something is under way/);
      context.abort(other);
      for (const call of ["purge", "resume"] as const) {
        expect(thrownBy(() => context[call]([other, context.endpoint])).text).toBe(
          `${call}() of endpoint ${context.endpoint}, which is this context's own`,
        );
        expect(thrownBy(() => context[call]([99])).text).toMatch(/endpoint 99 is context 0 of task 99/);
        expect(thrownBy(() => context[call](other as unknown as Endpoint[])).text).toMatch(
          /endpoints of \w+\(\) are 2, not an array/,
        );
      }
      expect(job.dump().heap.free).toBe(before);
      context.close();
      expect(thrownBy(() => context.purge([other])).code).toBe("PAMIR_CLOSED");
    }));

  it("of a task that has ended: purge() has nothing to do, resume() is SHUTDOWN", () =>
    withJob(variant, { scenario: "echo" }, ({ client, context }) => {
      const to = client.endpoint(1);
      context.sendImmediate(to, QUIT);
      until(context, () => context.sendImmediate(to, QUIT) === SHUTDOWN);
      expect(context.purge([to])).toBe(SUCCESS);
      expect(context.resume([to])).toBe(SHUTDOWN);
    }));

  it("without memory for a lane resume() is ENOMEM", () =>
    withJob(variant, { tasks: 1, contexts: 127, heapBytes: 2 ** 19 }, ({ job, client, context }) => {
      const results = Array.from({ length: 126 }, (_, i) => context.resume([client.endpoint(0, i + 1)]));
      const opened = results.indexOf(ENOMEM);
      expect(results).toEqual(results.map((_, i) => (i < opened ? SUCCESS : ENOMEM)));
      expect(job.dump().heap.free).toBe(0);
    }));
});
