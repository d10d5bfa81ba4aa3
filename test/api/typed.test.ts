// Payloads as typed arrays in place, typed dispatch ids one way, and codecs that give no bytes.
import {
  type Codec,
  codecs,
  dispatchId,
  type InPlaceCodec,
  type MemRegion,
  type Message,
  PamiError,
  SUCCESS,
} from "pamir";
import { portTo } from "pamir/port";
import { describe, expect, it } from "vitest";
import { DATA, OTHER, PATIENCE, rejectionOf, thrownBy, until, VARIANTS, withJob } from "./support.js";

const TYPES = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
] as const;

for (const variant of VARIANTS.filter(({ name }) => !["wasm with ts", "ts with wasm"].includes(name))) {
  describe(`message.view(): ${variant.name}`, () => {
    it.each([0, 8, 16, 4088, 69_632, 1_000_000])("every type, %i bytes, behind headers of 0 to 9 bytes", (bytes) =>
      withJob(variant, { tasks: 1, context: { unexpectedBytes: 2 ** 25 } }, ({ context }) => {
        const payload = Uint8Array.from({ length: bytes }, (_, i) => (i * 31) & 255);
        const wrong: string[] = [];
        let seen = 0;
        const send = (header: Uint8Array) =>
          expect(context.send({ to: 0, dispatch: DATA, header, payload, onLocal: () => {} })).toBe(SUCCESS);
        // The first one waits for its handler in the unexpected queue.
        send(new Uint8Array(3));
        context.advance();
        context.dispatch(DATA, (message) => {
          seen++;
          for (const type of TYPES) {
            const view: ArrayBufferView = message.view(type as never);
            const same = Buffer.from(view.buffer, view.byteOffset, view.byteLength).equals(payload);
            if (!(view instanceof type) || !same || view.byteOffset % 8 !== 0) wrong.push(type.name);
          }
          const [first, again] = [message.view(Uint8Array), message.payload];
          if (first.buffer !== again.buffer || first.byteOffset !== again.byteOffset) wrong.push("a copy");
        });
        for (let length = 0; length < 10; length++) send(new Uint8Array(length));
        until(context, () => seen === 11);
        expect(wrong).toEqual([]);
      }),
    );

    it("of the payload of a call, and of a length that is no multiple", () =>
      withJob(variant, { tasks: 1 }, async ({ context }) => {
        context.dispatch(DATA, (message) => {
          const { code, text } = thrownBy(() => message.view(Float64Array));
          return new TextEncoder().encode(`${code}: ${text}; ${message.view(Int32Array)}`);
        });
        const options = { header: new Uint8Array(5), timeout: PATIENCE };
        const reply = await context.call(0, DATA, Int32Array.of(1, -2, 3), options);
        expect(new TextDecoder().decode(reply)).toBe(
          "PAMIR_INVAL: view() of 12 bytes as Float64Array, of 8 bytes each; 1,-2,3",
        );
      }));
  });
}

const variant = VARIANTS[0] as (typeof VARIANTS)[number];

describe("message.text()", () => {
  it("of a call's request, of its handler, and of a payload that is not here", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      context.dispatch(DATA, (message) => new TextEncoder().encode(`${message.text()} and ${message.text().length}`));
      const payload = new TextEncoder().encode("Rakaposhi é");
      const reply = await context.call(0, DATA, payload, { header: new Uint8Array(5), timeout: PATIENCE });
      expect(new TextDecoder().decode(reply)).toBe("Rakaposhi é and 11");
      let refused: unknown;
      context.dispatch(
        OTHER,
        (message) => {
          refused = thrownBy(() => message.text());
          message.discard();
        },
        { delivery: "early" },
      );
      context.send({ to: 0, dispatch: OTHER, payload: new Uint8Array(300_000) });
      until(context, () => refused !== undefined);
      expect(refused).toEqual({
        code: "PAMIR_INVAL",
        text: "text() of a message whose payload is not here: receive()",
      });
    }));

  it("after the handler, it is of the message that came last, as payload and view() are", () =>
    withJob(variant, { tasks: 1 }, ({ context }) => {
      let late: Message | undefined;
      context.dispatch(DATA, (message) => {
        late = message;
      });
      context.sendImmediate(0, DATA, null, new TextEncoder().encode("Batura"));
      until(context, () => late !== undefined);
      expect([late?.text(), Buffer.from(late?.view(Uint8Array) as Uint8Array).toString()]).toEqual([
        "Batura",
        "Batura",
      ]);
    }));
});

describe("region.view()", () => {
  it("is of the region's bytes, in place, as every type", () =>
    withJob(variant, { tasks: 1 }, ({ client }) => {
      for (const length of [8, 24, 4096]) {
        const region = client.createRegion(length);
        region.bytes.forEach((_, i) => {
          region.bytes[i] = (i * 31) & 255;
        });
        for (const type of TYPES) {
          const view: ArrayBufferView = region.view(type as never);
          expect(view).toBeInstanceOf(type);
          expect([view.buffer, view.byteOffset, view.byteLength]).toEqual([
            region.bytes.buffer,
            region.bytes.byteOffset,
            length,
          ]);
        }
        region.close();
      }
    }));

  it("of a payload that keep() made a region of", () =>
    withJob(variant, { tasks: 1 }, ({ context }) => {
      let kept: MemRegion | undefined;
      context.dispatch(DATA, (message) => {
        kept = message.keep();
      });
      context.sendImmediate(0, DATA, new Uint8Array(3), Float64Array.of(0.5, -1));
      until(context, () => kept !== undefined);
      expect([...(kept?.view(Float64Array) ?? [])]).toEqual([0.5, -1]);
    }));

  it.each<[what: string, length: number, type: unknown, code: string, text: string]>([
    [
      "a length that is no multiple",
      12,
      Float64Array,
      "PAMIR_INVAL",
      "view() of 12 bytes as Float64Array, of 8 bytes each",
    ],
    ["an object", 8, {}, "PAMIR_INVAL", "type of view() is Object, not a typed array's constructor or DataView"],
    [
      "no type",
      8,
      undefined,
      "PAMIR_INVAL",
      "type of view() is undefined, not a typed array's constructor or DataView",
    ],
    [
      "a function",
      8,
      String,
      "PAMIR_INVAL",
      "type of view() is function String, not a typed array's constructor or DataView",
    ],
  ])("of %s is refused, as message.view() does", (_, length, type, code, text) =>
    withJob(variant, { tasks: 1 }, ({ client, context }) => {
      const region = client.createRegion(length);
      expect(thrownBy(() => region.view(type as never))).toEqual({ code, text });
      let message: unknown;
      context.dispatch(DATA, (came) => {
        message = thrownBy(() => came.view(type as never));
      });
      context.sendImmediate(0, DATA, null, new Uint8Array(length));
      until(context, () => message !== undefined);
      expect(message).toEqual({ code, text });
    }),
  );

  it("of a region that is closed is refused", () =>
    withJob(variant, { tasks: 1 }, ({ client }) => {
      const region = client.createRegion(16);
      region.close();
      expect(thrownBy(() => region.view(Uint8Array))).toEqual({
        code: "PAMIR_CLOSED",
        text: "view() of a region that is closed",
      });
    }));
});

describe("typed messages one way", () => {
  it("send() encodes what the handler gets, of any size; what it returns goes nowhere", () =>
    withJob(variant, { tasks: 1, contexts: 2 }, ({ client, context }) => {
      const point = dispatchId(DATA, codecs.json<{ x: number; text: string }>(), codecs.text);
      const target = client.createContext();
      const came: unknown[] = [];
      target.dispatch(point, (value, origin) => {
        came.push(value, origin);
        return "nobody hears";
      });
      const told: number[] = [];
      const values = [0, 10, 4000, 300_000].map((length) => ({ x: length, text: "é".repeat(length) }));
      const onRemote = (_: unknown, result: number) => told.push(result);
      for (const payload of values) {
        expect(context.send({ to: target.endpoint, dispatch: point, payload, onRemote })).toBe(SUCCESS);
      }
      while (told.length < 4 || came.length < 8) client.advance([context, target], 64);
      expect(told).toEqual([SUCCESS, SUCCESS, SUCCESS, SUCCESS]);
      expect(came).toEqual(values.flatMap((value) => [value, 0]));
      // Typed in TypeScript too.
      // @ts-expect-error a number is no point
      expect(context.send({ to: 0, dispatch: point, payload: 5 })).toBe(SUCCESS);
    }));
});

describe("a codec that gives no bytes", () => {
  const bad = (given: unknown): Codec<unknown> => ({ encode: () => given as Uint8Array, decode: (bytes) => bytes });
  const expected = (shown: string) => ({
    code: "PAMIR_INVAL",
    text: `encode() of a codec gave ${shown}, not a Uint8Array`,
  });

  it.each([
    ["text", '"text"'],
    [undefined, "undefined"],
    [[1, 2], "Array"],
    [new ArrayBuffer(8), "ArrayBuffer"],
    [7, "7"],
  ])("%o: the caller of call() and send() hears it, and nothing is sent", (given, shown) =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const id = dispatchId(DATA, bad(given), codecs.bytes);
      let came = 0;
      context.dispatch(id, () => {
        came++;
        return new Uint8Array();
      });
      expect(await rejectionOf(context.call(0, id, 1))).toMatchObject(expected(shown));
      expect(thrownBy(() => context.send({ to: 0, dispatch: id, payload: 1 }))).toMatchObject(expected(shown));
      const port = portTo(context, 0, { id: OTHER, codec: bad(given) });
      expect(thrownBy(() => port.postMessage(1))).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(/gave/),
      });
      while (context.advance() > 0);
      expect([came, context.drained]).toEqual([0, true]);
    }),
  );

  it("of a reply: its caller hears it", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const id = dispatchId(DATA, codecs.bytes, bad("text"));
      context.dispatch(id, () => 1);
      const error = (await context
        .call(0, id, new Uint8Array(), { timeout: PATIENCE })
        .catch((why) => why)) as PamiError;
      expect(error).toMatchObject({ name: "PamiError", code: "PAMIR_INVAL", message: expected('"text"').text });
      expect(error).not.toBeInstanceOf(PamiError);
    }));

  it("another view than a Uint8Array is taken as its bytes", () =>
    withJob(variant, { tasks: 1 }, ({ context }) => {
      const id = dispatchId(DATA, bad(Int16Array.of(258, 3)));
      const came: unknown[] = [];
      context.dispatch(id, (bytes) => void came.push(bytes));
      context.send({ to: 0, dispatch: id, payload: 1 });
      until(context, () => came.length === 1);
      expect(came).toEqual([Uint8Array.of(2, 1, 3, 0)]);
    }));
});

/** A codec of lengths: as many bytes, all alike, in one array that each value overwrites. */
function lengths(peers: unknown[], places: string[]): InPlaceCodec<number> {
  const scratch = new Uint8Array(400_000);
  return {
    inPlace: true,
    encode(length, peer) {
      peers.push(peer);
      return scratch.subarray(0, length).fill(length % 251);
    },
    decode(bytes, peer) {
      peers.push(peer);
      places.push(bytes.buffer.constructor.name);
      const isWhole = bytes.every((byte) => byte === bytes.length % 251);
      return isWhole ? bytes.length : -bytes.length;
    },
  };
}

describe("a codec that reads and writes in place", () => {
  it("gets shared memory, and the endpoint of the other side", () =>
    withJob(variant, { tasks: 1 }, async ({ client, context }) => {
      const [peers, places]: [unknown[], string[]] = [[], []];
      const codec = lengths(peers, places);
      const id = dispatchId(1, codec, codec);
      context.dispatch(id, (length) => length);
      expect(await context.call(context.endpoint, id, 1000, { timeout: PATIENCE })).toBe(1000);
      expect(context.callSync(context.endpoint, id, 70_000, { timeout: PATIENCE })).toBe(70_000);
      expect(peers).toEqual(new Array(8).fill(context.endpoint));
      expect(places).toEqual(new Array(4).fill(client.createRegion(8).bytes.buffer.constructor.name));
    }));

  it("overwrites nothing that waits: requests, replies now and later, messages, replies of a loop", () =>
    withJob(variant, { tasks: 1, context: { unexpectedBytes: 2 ** 25 } }, async ({ context }) => {
      const codec = lengths([], []);
      const to = context.endpoint;
      const [now, late] = [dispatchId(1, codec, codec), dispatchId(2, codec, codec)];
      const [sent, read] = [dispatchId(3, codec), dispatchId(4, codec, codec)];
      const came: number[] = [];
      context.dispatch(now, (length) => length + 1);
      context.dispatch(late, async (length) => {
        await null;
        return length + 2;
      });
      context.dispatch(sent, (length) => void came.push(length));
      const all = Array.from({ length: 60 }, (_, i) => i + ([50, 5000, 66_000, 300_000][i % 4] as number));
      const reading = (async () => {
        for await (const { payload, reply } of context.messages(read, { timeout: PATIENCE })) {
          reply?.(payload % 2 === 0 ? payload + 3 : Promise.resolve(payload + 3));
          if (payload === all.at(-1)) break;
        }
      })();
      const options = { timeout: PATIENCE };
      const calls = [now, late, read].map((id) => Promise.all(all.map((each) => context.call(to, id, each, options))));
      for (const length of all) await context.sendWhenRoom({ to, dispatch: sent, payload: length }, options);
      expect(await Promise.all(calls)).toEqual([1, 2, 3].map((more) => all.map((length) => length + more)));
      await reading;
      until(context, () => came.length === all.length);
      expect(came).toEqual(all);
    }));
});
