// sendWhenRoom(): a message waits until it is accepted, in the order of the calls, and ends in the way that its caller asked for.
import { type Context, codecs, dispatchId, EAGAIN, type Job } from "pamir";
import { describe, expect, it } from "vitest";
import {
  countedSignal,
  DATA,
  LINKED_VARIANTS,
  OTHER,
  PATIENCE,
  rejectionOf,
  type Variant,
  withJob,
} from "./support.js";

const COUNT = 200;
const BYTES = 20_000;
const timeout = PATIENCE;

/** Sends until there is no room. @returns how many messages were accepted */
function fill(context: Context, to: number): number {
  const payload = new Uint8Array(BYTES);
  for (let count = 0; ; count++) if (context.send({ to, dispatch: OTHER, payload }) === EAGAIN) return count;
}

function suite(variant: Variant): void {
  it("many at once, to a task that reads in its own time: all come, in the order of the calls", () =>
    withJob(
      variant,
      { module: "producer.js", scenario: "echo", context: { pendingBytes: 0 }, args: { count: COUNT } },
      async ({ context, client }) => {
        let next = 0;
        const order: number[] = [];
        context.dispatch(DATA, (message) => {
          order.push(message.getInt32(0));
        });
        const to = client.endpoint(1);
        const buffer = new Int32Array(BYTES / 4);
        // One object and one buffer, as a loop without promises has them.
        const parameters = { to, dispatch: DATA, payload: buffer };
        for (; next < COUNT / 2; next++) {
          buffer[0] = next;
          await context.sendWhenRoom(parameters, { timeout });
        }
        const sends: Promise<void>[] = [];
        for (; next < COUNT; next++) sends.push(context.sendWhenRoom({ ...parameters, payload: Int32Array.of(next) }));
        await Promise.all(sends);
        await context.drain({ timeout });
        while (order.length < COUNT) await context.progress({ timeout });
        expect(order).toEqual(Array.from({ length: COUNT }, (_, i) => i));
      },
    ));

  it("ends with SHUTDOWN if the target ends, with the cause", () =>
    withJob(
      variant,
      { module: "producer.js", scenario: "deaf", context: { pendingBytes: 0 }, onExit: () => {} },
      async ({ context, client }) => {
        const to = client.endpoint(1);
        const payload = new Uint8Array(BYTES);
        const sends = Array.from({ length: 500 }, () => context.sendWhenRoom({ to, dispatch: DATA, payload }));
        const results = await Promise.allSettled(sends);
        const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
        expect(reasons.length).toBeGreaterThan(0);
        for (const { code, cause } of reasons) expect([code, cause?.exitCode]).toEqual(["PAMIR_SHUTDOWN", 3]);
        // Those that were accepted before come first.
        expect(results.findIndex(({ status }) => status === "rejected")).toBe(500 - reasons.length);
        expect(await rejectionOf(context.sendWhenRoom({ to, dispatch: DATA }))).toMatchObject({
          code: "PAMIR_SHUTDOWN",
        });
      },
    ));
}

for (const variant of LINKED_VARIANTS) describe(`sendWhenRoom(): ${variant.name}`, () => suite(variant));

describe("how it ends", () => {
  const alone = (body: (contexts: { origin: Context; target: Context }, job: Job) => Promise<void>) =>
    withJob({ name: "wasm", kernels: ["wasm"] }, { tasks: 1 }, ({ client, context: target, job }) =>
      body({ origin: client.createContext({ pendingBytes: 0 }), target }, job),
    );

  it("the timeout, the signal: nothing of it is sent, later ones keep their order, and no listener stays", () =>
    alone(async ({ origin, target }) => {
      const to = target.endpoint;
      const filled = fill(origin, to);
      const controller = new AbortController();
      const { signal, listeners } = countedSignal(controller);
      const send = (value: number, options = {}) =>
        origin.sendWhenRoom({ to, dispatch: DATA, payload: new Uint8Array(BYTES).fill(value) }, options);
      const first = send(1, { timeout: 5 });
      const second = send(2, { signal });
      const third = send(3, { timeout, signal: new AbortController().signal });
      expect(await rejectionOf(first)).toMatchObject({ code: "PAMIR_TIMEDOUT" });
      expect(listeners()).toBe(1);
      controller.abort("enough");
      expect(await rejectionOf(second)).toMatchObject({ code: "PAMIR_CANCELED", cause: "enough" });
      expect(await rejectionOf(send(4, { signal }))).toMatchObject({ code: "PAMIR_CANCELED" });
      expect(listeners()).toBe(0);
      const fourth = send(5);
      const seen: number[] = [];
      let others = 0;
      target.dispatch(OTHER, () => void others++);
      target.dispatch(DATA, (message) => void seen.push(message.getUint8(0)));
      while (seen.length < 2) await target.progress({ timeout });
      await Promise.all([third, fourth]);
      expect([others, seen]).toEqual([filled, [3, 5]]);
    }));

  it("a target that closes; parameters that are refused", () =>
    alone(async ({ origin, target }) => {
      const to = target.endpoint;
      expect((await rejectionOf(origin.sendWhenRoom({ to: 77, dispatch: DATA }))).code).toBe("PAMIR_INVAL");
      expect((await rejectionOf(origin.sendWhenRoom(undefined as never))).code).toBe("PAMIR_INVAL");
      expect((await rejectionOf(origin.sendWhenRoom({ to, dispatch: DATA }, { timeout: -1 }))).code).toBe(
        "PAMIR_INVAL",
      );
      fill(origin, to);
      const payload = new Uint8Array(BYTES);
      const bad = origin.sendWhenRoom({ to, dispatch: -1, payload });
      const wait = origin.sendWhenRoom({ to, dispatch: DATA, payload });
      expect((await rejectionOf(bad)).code).toBe("PAMIR_INVAL");
      target.close();
      expect((await rejectionOf(wait)).code).toBe("PAMIR_SHUTDOWN");
    }));

  it("close() and an interrupt", () =>
    alone(async ({ origin, target }, job) => {
      const to = target.endpoint;
      fill(origin, to);
      const send = () => origin.sendWhenRoom({ to, dispatch: DATA, payload: new Uint8Array(BYTES) });
      const sends = [send(), send()];
      job.interrupt(0);
      for (const wait of sends) expect((await rejectionOf(wait)).code).toBe("PAMIR_INTERRUPTED");
      const last = send();
      origin.close();
      expect((await rejectionOf(last)).code).toBe("PAMIR_CLOSED");
      expect((await rejectionOf(send())).code).toBe("PAMIR_CLOSED");
    }));

  it("a DispatchId's codec encodes once, at the call", () =>
    alone(async ({ origin, target }) => {
      let encodings = 0;
      const json = codecs.json<{ value: number }>();
      const request = {
        ...json,
        encode(value: { value: number }) {
          encodings++;
          return json.encode(value);
        },
      };
      const id = dispatchId(DATA, request);
      const to = target.endpoint;
      fill(origin, to);
      const value = { value: 1 };
      const sent = origin.sendWhenRoom({ to, dispatch: id, payload: value }, { timeout });
      value.value = 2;
      let seen: unknown;
      target.dispatch(OTHER, () => {});
      target.dispatch(id, (given) => {
        seen = given;
      });
      while (seen === undefined) await target.progress({ timeout });
      await sent;
      expect([seen, encodings]).toEqual([{ value: 1 }, 1]);
    }));
});
