// pamir/port: Comlink as it is, over pamir; and what a MessagePort does.
import { deserialize, serialize } from "node:v8";
import * as msgpack from "@msgpack/msgpack";
import * as Comlink from "comlink";
import { type Codec, type Context, type Job, launch } from "pamir";
import { type Port, type PortEvent, portTo } from "pamir/port";
import { describe, expect, it } from "vitest";
import { pattern, rejectionOf, sameBytes, thrownBy } from "./support.js";

const CODECS: Record<string, Codec<unknown>> = { msgpack, v8: { encode: serialize, decode: deserialize } };
const ID = 30;

interface Exposed {
  task: number;
  Counter: new () => { add(by: number): number };
  add(a: number, b: number): number;
  fail(): void;
  reversed(bytes: Uint8Array): Uint8Array;
  map(list: number[], callback: (number: number) => number): number[];
  never(): void;
  die(): void;
  counter(): { add(by: number): number };
}

interface Given {
  readonly job: Job;
  readonly context: Context;
  readonly port: Port;
  readonly remote: Comlink.Remote<Exposed>;
}

async function withRemote(codec: string, body: (given: Given) => Promise<void>, tasks = 2): Promise<void> {
  const module = new URL("tasks/exposer.js", import.meta.url);
  const job = await launch(module, { tasks, join: true, heapBytes: 2 ** 24, args: { id: ID, codec } });
  const context = job.client.createContext();
  const port = portTo(context, job.client.endpoint(1), { id: ID, codec: CODECS[codec] as Codec<unknown> });
  try {
    await body({ job, context, port, remote: Comlink.wrap<Exposed>(port as unknown as Comlink.Endpoint) });
  } finally {
    await job.terminate();
  }
}

it("an awaited call is one event: nothing of a side's own ends its wait", () =>
  withRemote("msgpack", async ({ context, remote }) => {
    await remote.add(1, 1);
    let events = 0;
    const progress = context.progress.bind(context);
    context.progress = async (options) => {
      const came = await progress(options);
      events += came;
      return came;
    };
    for (let i = 0; i < 200; i++) expect(await remote.add(i, 1)).toBe(i + 1);
    // With the end of each send, they were twice as many.
    expect(events).toBeLessThanOrEqual(201);
  }));

describe.each(["msgpack", "v8"])("Comlink over pamir, values by %s", (codec) => {
  it("calls, properties, classes, errors", () =>
    withRemote(codec, async ({ remote }) => {
      expect(await remote.add(2, 3)).toBe(5);
      expect(await remote.task).toBe(1);
      const counter = await new remote.Counter();
      expect([await counter.add(2), await counter.add(5)]).toEqual([2, 7]);
      const failed = (await remote.fail().then(
        () => undefined,
        (error: unknown) => error,
      )) as Error;
      expect([failed.message, failed.stack]).toEqual(["failed over there", expect.stringContaining("exposer.js")]);
    }));

  it("many at once, small ones and such as come in packets: each gets its own answer, in order", () =>
    withRemote(codec, async ({ remote }) => {
      const order: number[] = [];
      const calls = Array.from({ length: 300 }, async (_, number) => {
        const bytes = pattern(number % 50 === 0 ? 300_000 : 100 * (number % 7), number);
        const reversed = await remote.reversed(bytes);
        order.push(number);
        return sameBytes(Uint8Array.from(reversed), bytes.slice().reverse());
      });
      expect((await Promise.all(calls)).every(Boolean)).toBe(true);
      expect(order).toEqual(Array.from(order, (_, i) => i));
    }));

  it("a callback of this side, and a proxy of that one, each by a MessagePort of its own", () =>
    withRemote(codec, async ({ remote }) => {
      const seen: number[] = [];
      const callback = Comlink.proxy((number: number) => {
        seen.push(number);
        return number * 10;
      });
      expect(await remote.map([1, 2, 3], callback)).toEqual([10, 20, 30]);
      expect(seen).toEqual([1, 2, 3]);
      const counter = (await remote.counter()) as unknown as Comlink.Remote<{ add(by: number): number }>;
      expect([await counter.add(4), await counter.add(4)]).toEqual([4, 8]);
      counter[Comlink.releaseProxy]();
    }));

  it("a worker dies: what waits for it ends, by its own port and by a proxy's, and whatever comes later", () =>
    withRemote(codec, async ({ job, port, remote }) => {
      let closed = 0;
      port.addEventListener("close", () => closed++);
      const counter = (await remote.counter()) as unknown as Comlink.Remote<{ add(by: number): number }>;
      const waiting = [remote.never(), remote.die(), remote.never()].map((call) =>
        rejectionOf(call as Promise<unknown>),
      );
      for (const { code, text } of await Promise.all(waiting)) {
        expect([code, text]).toEqual(["PAMIR_SHUTDOWN", `endpoint ${job.client.endpoint(1)} has ended`]);
      }
      expect((await rejectionOf(remote.add(1, 2) as Promise<unknown>)).code).toBe("PAMIR_SHUTDOWN");
      expect(closed).toBe(1);
      void counter;
    }));
});

describe("a port", () => {
  async function pair(
    body: (a: Port, b: Port, context: Context) => Promise<void>,
    codec = CODECS.v8 as Codec<unknown>,
  ): Promise<void> {
    const job = await launch(null, { tasks: 1, join: true, heapBytes: 2 ** 24 });
    const [first, second] = [job.client.createContext(), job.client.createContext()];
    const options = { id: ID, codec };
    try {
      await body(portTo(first, second.endpoint, options), portTo(second, first.endpoint, options), first);
    } finally {
      job.client.close();
    }
  }
  const next = (port: Port) =>
    new Promise<PortEvent>((resolve) => {
      const listener = (event: PortEvent) => {
        port.removeEventListener("message", listener);
        resolve(event);
      };
      port.addEventListener("message", listener);
      port.start();
    });

  it("delivers in the order posted, whatever the sizes, also what came before start()", () =>
    pair(async (a, b) => {
      const sizes = [10, 400_000, 3, 70_000, 0, 1];
      for (const [number, size] of sizes.entries()) a.postMessage({ number, bytes: new Uint8Array(size) });
      a.start();
      await new Promise((resolve) => setTimeout(resolve, 20));
      const came: [number, number][] = [];
      await new Promise<void>((resolve) => {
        b.onmessage = ({ data }) => {
          const { number, bytes } = data as { number: number; bytes: Uint8Array };
          came.push([number, bytes.length]);
          if (came.length === sizes.length) resolve();
        };
      });
      expect(came).toEqual([...sizes.entries()]);
    }));

  it("more than there is room for: all of it comes", () =>
    pair(async (a, b) => {
      a.start();
      for (let i = 0; i < 3000; i++) a.postMessage([i, new Uint8Array(1000)]);
      let wanted = 0;
      await new Promise<void>((resolve) => {
        b.onmessage = ({ data }) => {
          expect((data as [number])[0]).toBe(wanted++);
          if (wanted === 3000) resolve();
        };
      });
    }));

  it("a codec whose bytes are valid until its next value: each that waits for room keeps its own", () => {
    const kept = new Uint8Array(2000);
    const inPlace: Codec<unknown> = {
      inPlace: true,
      encode: (value) => {
        const bytes = serialize(value);
        kept.set(bytes);
        return kept.subarray(0, bytes.length);
      },
      decode: (bytes) => deserialize(bytes.slice()),
    };
    return pair(async (a, b) => {
      a.start();
      for (let i = 0; i < 3000; i++) a.postMessage([i, new Uint8Array(1000).fill(i)]);
      let wanted = 0;
      await new Promise<void>((resolve, reject) => {
        b.onmessage = ({ data }) => {
          const [number, bytes] = data as [number, Uint8Array];
          if (number !== wanted || bytes[999] !== (wanted & 0xff)) reject(new Error(`${number}, not ${wanted}`));
          if (++wanted === 3000) resolve();
        };
      });
    }, inPlace);
  });

  it("carries over what is posted to a MessagePort that goes with a message, both ways, and that within", () =>
    pair(async (a, b) => {
      const { port1, port2 } = new MessageChannel();
      a.start();
      a.postMessage({ deep: [{ port: port2 }] }, [port2]);
      const { data, ports } = await next(b);
      const [far] = ports as [MessagePort];
      expect((data as { deep: [{ port: MessagePort }] }).deep[0].port).toBe(far);
      const heard = (port: MessagePort) =>
        new Promise<MessageEvent>((resolve) => {
          port.onmessage = resolve;
        });
      const there = heard(far);
      port1.postMessage("to the far side");
      expect((await there).data).toBe("to the far side");
      const here = heard(port1);
      const inner = new MessageChannel();
      far.postMessage({ inner: inner.port2 }, [inner.port2]);
      const event = await here;
      const answered = heard(inner.port1);
      (event.data as { inner: MessagePort }).inner.postMessage("through both");
      expect((await answered).data).toBe("through both");
      const ended = new Promise((resolve) => far.addEventListener("close", resolve));
      port1.close();
      await ended;
      inner.port1.close();
    }));

  it("its context closes: what waits for an answer gets one, and whatever comes later", () =>
    pair(async (a, b, context) => {
      b.start();
      const remote = Comlink.wrap<Exposed>(a as unknown as Comlink.Endpoint);
      const waiting = rejectionOf(remote.never() as Promise<unknown>);
      await new Promise((resolve) => setTimeout(resolve, 5));
      context.close();
      expect((await waiting).code).toBe("PAMIR_CLOSED");
      expect((await rejectionOf(remote.never() as Promise<unknown>)).code).toBe("PAMIR_CLOSED");
    }));

  it("refuses what it can't carry, a second one for the same endpoint and id, and an id that is taken", () =>
    pair(async (a, _, context) => {
      expect(thrownBy(() => a.postMessage(1, [new ReadableStream()])).text).toContain("transfer of ReadableStream");
      const options = { id: ID, codec: CODECS.v8 as Codec<unknown> };
      expect(thrownBy(() => portTo(context, 2 ** 24, options)).text).toContain("has a port with dispatch id 30");
      expect(thrownBy(() => portTo(context, 0, { id: 5, codec: {} as never })).text).toContain("without encode()");
      expect(thrownBy(() => portTo(context, 99, { ...options, id: 6 })).code).toBe("PAMIR_INVAL");
      context.dispatch(7, () => {});
      expect(thrownBy(() => portTo(context, 0, { ...options, id: 7 })).code).toBe("PAMIR_DISPATCH_TAKEN");
      a.close();
      a.postMessage("nothing happens");
      portTo(context, 2 ** 24, options).close();
    }));
});
