// Transfer types through the public API: descriptions, what is refused, and that no memory is lost. What transfers do with
// them on every transport: test/conformance/api.suite.ts.
import {
  type Client,
  type Context,
  EAGAIN,
  ERROR,
  type Job,
  launch,
  type MemRegion,
  type SendParameters,
  SUCCESS,
  type TransferType,
} from "pamir";
import { describe, expect, it } from "vitest";
import { DATA, fillHeap, OTHER, pattern, sameBytes, thrownBy, until } from "./support.js";

interface Own {
  readonly job: Job;
  readonly client: Client;
  readonly context: Context;
  /** A new, empty type. */
  readonly make: () => Promise<TransferType>;
}

/** A task that talks to itself. */
async function alone(kernel: "wasm" | "ts", body: (own: Own) => Promise<void>): Promise<void> {
  const job = await launch(null, { tasks: 1, join: true, kernel, heapBytes: 16 * 1024 ** 2 });
  try {
    const { client } = job;
    await body({ job, client, context: client.createContext(), make: () => client.createType() });
  } finally {
    await job.terminate();
  }
}

/** Blocks of 24 bytes, one in each 64. */
const column = async ({ make }: Own, rows: number): Promise<TransferType> =>
  (await make()).addSimple(24, 8, rows, 64).complete();

/** What packing a column gives. */
const packedOf = (grid: Uint8Array, rows: number): Uint8Array =>
  Uint8Array.from({ length: 24 * rows }, (_, i) => grid[8 + 64 * Math.floor(i / 24) + (i % 24)] as number);

describe("a description", () => {
  it("is what its calls say: contiguous, strided, indexed, struct, nested, a part of a grid", () =>
    alone("wasm", async ({ make }) => {
      const contiguous = (await make()).addSimple(24).complete();
      const plain = { bytes: 24, extent: 24, span: 24, runs: 1, depth: 1, isContiguous: true, overlaps: false };
      expect(contiguous.query()).toEqual(plain);
      expect((await make()).addTyped(contiguous, 0, 10).addSimple(3, 240).complete().query()).toMatchObject({
        bytes: 243,
        isContiguous: true,
      });
      const strided = (await make()).addSimple(8, 16, 1024, 8192).complete({ extent: 8 });
      const span = 16 + 1023 * 8192 + 8;
      expect(strided.query()).toMatchObject({ bytes: 8192, extent: 8, span, runs: 1024, depth: 1, overlaps: false });
      // Blocks at equal distances are one loop, whichever call added them.
      const indexed = (await make()).addIndexed(4, [0, 12, 24, 36]).complete();
      expect(indexed.query()).toMatchObject({ bytes: 16, span: 40, runs: 4, depth: 1 });
      const struct = (await make()).addStruct([
        { offset: 0, bytes: 4, count: 2 },
        { offset: 12, type: indexed },
      ]);
      expect(struct.complete().query()).toMatchObject({ bytes: 24, span: 52, runs: 5 });
      const block = (await make()).addSubarray([10, 20, 30], [2, 3, 4], [1, 2, 3], 8).complete();
      expect(block.query()).toMatchObject({ bytes: 192, runs: 6, depth: 2, span: 8 * (2 * 600 + 4 * 30 + 7) });
      // Whole rows of whole planes are one run.
      const slab = (await make()).addSubarray([10, 20, 30], [2, 20, 30], [4, 0, 0], 8).complete();
      expect(slab.query()).toMatchObject({ bytes: 9600, runs: 1, depth: 1, isContiguous: false });
      const nested = (await make()).addTyped(strided, 0, 4).complete();
      expect(nested.query()).toMatchObject({ bytes: 32_768, runs: 4096, depth: 2, overlaps: false });
    }));

  it("tells whether runs overlap; then it is packed, and nothing is unpacked by it", () =>
    alone("wasm", async ({ client, context, make }) => {
      const overlapping = (await make()).addSimple(8, 0, 3, 6).complete();
      expect(overlapping.query().overlaps).toBe(true);
      expect((await make()).addSimple(8, 0, 2, 16).addSimple(4, 14).complete().query().overlaps).toBe(true);
      expect((await make()).addSimple(8, 0, 2, 16).addSimple(8, 8, 2, 16).complete().query().overlaps).toBe(false);
      // More runs than are looked at.
      const many = (await make()).addSimple(8, 0, 70_000, 16).addSimple(8, 8, 70_000, 16).complete();
      expect(many.query().overlaps).toBeUndefined();
      const elements = pattern(20);
      const packed = new Uint8Array(24);
      expect(overlapping.pack(elements, packed)).toBe(24);
      expect([...packed.subarray(6, 10)]).toEqual([elements[6], elements[7], elements[6], elements[7]]);
      // Its data is as long as its span, and yet it is not contiguous.
      const twice = (await make()).addSimple(24).addSimple(1, 8).addSimple(1, 25).complete();
      expect(twice.query()).toMatchObject({ bytes: 26, span: 26, isContiguous: false, overlaps: true });
      const bytes = new Uint8Array(26);
      twice.pack(pattern(26), bytes);
      expect(bytes[24]).toBe(pattern(26)[8]);
      const region = client.createRegion(64);
      const put = { to: context.endpoint, local: region, remote: region.handle, remoteType: overlapping };
      for (const [call, name] of [
        [() => overlapping.unpack(packed, elements), "unpack()"],
        [() => context.put(put), "remoteType"],
        [() => overlapping.transform(elements, new Uint8Array(64), overlapping), "transform()"],
      ] as const) {
        const { code, text } = thrownBy(call);
        expect(code).toBe("PAMIR_INVAL");
        expect(text).toContain(name);
        expect(text).toContain("overlap");
      }
    }));
});

/** What is wrong, its code, and what the text has. */
const WRONG: [string, (own: Own, type: TransferType) => unknown, string, string[]][] = [
  ["a negative length", (_, type) => type.addSimple(-1), "PAMIR_INVAL", ["bytes of addSimple() is -1", "0 to"]],
  ["half a byte", (_, type) => type.addSimple(0.5), "PAMIR_INVAL", ["0.5"]],
  ["a negative offset", (_, type) => type.addSimple(1, -4), "PAMIR_INVAL", ["offset of addSimple() is -4"]],
  ["a negative count", (_, type) => type.addSimple(1, 0, -1), "PAMIR_INVAL", ["count of addSimple() is -1"]],
  ["a negative stride", (_, type) => type.addSimple(1, 0, 2, -8), "PAMIR_INVAL", ["stride of addSimple() is -8"]],
  ["a text as offset", (_, type) => type.addSimple(1, "0" as never), "PAMIR_INVAL", ['"0"']],
  [
    "more than 2^32 bytes from begin to end",
    (_, type) => type.addSimple(8, 0, 2 ** 20, 2 ** 13),
    "PAMIR_TOO_LARGE",
    ["8589926408", "4294967295"],
  ],
  [
    "more than 2^32 bytes of data",
    (_, type) => type.addSimple(2 ** 31, 0, 2, 0),
    "PAMIR_TOO_LARGE",
    ["4294967296", "4294967295"],
  ],
  ["no type", (_, type) => type.addTyped({} as never), "PAMIR_INVAL", ["type of addTyped() is Object"]],
  ["a type that is not complete", (_, type) => type.addTyped(type), "PAMIR_INVAL", ["addTyped()", "not complete"]],
  ["no list of offsets", (_, type) => type.addIndexed(8, 5 as never), "PAMIR_INVAL", ["offsets of addIndexed() is 5"]],
  ["a wrong offset in a list", (_, type) => type.addIndexed(8, [0, -8]), "PAMIR_INVAL", ["-8"]],
  ["no fields", (_, type) => type.addStruct({} as never), "PAMIR_INVAL", ["fields of addStruct() are Object"]],
  ["a field without length", (_, type) => type.addStruct([{ offset: 0 }]), "PAMIR_INVAL", ["either bytes or a type"]],
  [
    "an unknown key of a field",
    (_, type) => type.addStruct([{ offset: 0, byte: 1 } as never]),
    "PAMIR_INVAL",
    ['"byte"', "offset, bytes, type, count"],
  ],
  [
    "a part of a grid beyond it",
    (_, type) => type.addSubarray([10, 10], [2, 5], [1, 6], 8),
    "PAMIR_INVAL",
    ["subsizes[1] of addSubarray() is 5", "0 to 4"],
  ],
  [
    "a grid with lists of unequal length",
    (_, type) => type.addSubarray([10, 10], [2], [1, 6], 8),
    "PAMIR_INVAL",
    ["subsizes of addSubarray()", "2 numbers"],
  ],
  ["a type without data", (_, type) => type.addSimple(0).complete(), "PAMIR_INVAL", ["without data"]],
  [
    "an extent of 0",
    (_, type) => type.addSimple(8).complete({ extent: 0 }),
    "PAMIR_INVAL",
    ["extent of complete() is 0"],
  ],
  [
    "an unknown option",
    (_, type) => type.addSimple(8).complete({ size: 8 } as never),
    "PAMIR_INVAL",
    ['"size"', "extent"],
  ],
  ["complete() twice", (_, type) => type.addSimple(8).complete().complete(), "PAMIR_INVAL", ["is complete"]],
  [
    "an addition behind complete()",
    (_, type) => type.addSimple(8).complete().addSimple(8),
    "PAMIR_INVAL",
    ["is complete"],
  ],
  ["query() before complete()", (_, type) => type.addSimple(8).query(), "PAMIR_INVAL", ["query()", "not complete"]],
  [
    "pack() before complete()",
    (_, type) => type.pack(new Uint8Array(8), new Uint8Array(8)),
    "PAMIR_INVAL",
    ["not complete"],
  ],
  [
    "what is closed",
    (_, type) => {
      type.addSimple(8).complete().close();
      type.close();
      type.query();
    },
    "PAMIR_INVAL",
    ["query()", "closed"],
  ],
  [
    "elements that reach beyond their memory",
    (_, type) => type.addSimple(8, 0, 2, 16).complete().pack(new Uint8Array(47), new Uint8Array(32), { count: 2 }),
    "PAMIR_BOUNDS",
    ["48 bytes", "there are 47"],
  ],
  [
    "too little room for packed bytes",
    (_, type) => type.addSimple(8, 0, 2, 16).complete().pack(new Uint8Array(24), new Uint8Array(15)),
    "PAMIR_TOO_LARGE",
    ["16 bytes", "has 15"],
  ],
  [
    "a part behind the end",
    (_, type) => type.addSimple(8).complete().pack(new Uint8Array(8), new Uint8Array(8), { from: 4, bytes: 5 }),
    "PAMIR_INVAL",
    ["bytes of pack() is 5", "0 to 4"],
  ],
  [
    "no view",
    (_, type) =>
      type
        .addSimple(8)
        .complete()
        .unpack([1] as never, new Uint8Array(8)),
    "PAMIR_INVAL",
    ["packed of unpack()"],
  ],
  [
    "send() with a type that is not complete",
    ({ context }, type) => context.send({ to: context.endpoint, dispatch: DATA, payload: new Uint8Array(8), type }),
    "PAMIR_INVAL",
    ["type of send()", "not complete"],
  ],
  [
    "send() with no type",
    ({ context }) => context.send({ to: context.endpoint, dispatch: DATA, type: "f64" } as unknown as SendParameters),
    "PAMIR_INVAL",
    ['type of send() is "f64"', "createType()"],
  ],
  [
    "send() of more elements than there are",
    ({ context }, type) => {
      type.addSimple(8, 0, 2, 16).complete();
      context.send({ to: context.endpoint, dispatch: DATA, payload: new Uint8Array(55), type, count: 3 });
    },
    "PAMIR_BOUNDS",
    ["send()", "72 bytes", "there are 55"],
  ],
  [
    "send() of a typed payload that is given away",
    ({ client, context }, type) => {
      const { bytes } = client.createRegion(64);
      type.addSimple(8, 0, 2, 16).complete();
      context.send({ to: context.endpoint, dispatch: DATA, payload: bytes, type, transfer: true });
    },
    "PAMIR_INVAL",
    ["transfer"],
  ],
  [
    "an offered payload without onLocal",
    ({ context }, type) => {
      type.addSimple(8, 0, 2, 16).complete();
      context.send({ to: context.endpoint, dispatch: DATA, payload: new Uint8Array(24), type, rendezvous: true });
    },
    "PAMIR_INVAL",
    ["onLocal"],
  ],
  [
    "an endpoint that there is not",
    ({ context }, type) => {
      type.addSimple(8, 0, 10_000, 16).complete();
      context.send({ to: 5, dispatch: DATA, payload: new Uint8Array(160_000), type });
    },
    "PAMIR_INVAL",
    ["5"],
  ],
  [
    "a put with no type",
    ({ client, context }) => {
      const local = client.createRegion(64);
      context.put({ to: context.endpoint, local, remote: local.handle, localType: 8 as never });
    },
    "PAMIR_INVAL",
    ["8", "createType()"],
  ],
  [
    "a get with a notify",
    ({ client, context }, type) => {
      const local = client.createRegion(64);
      type.addSimple(8, 0, 2, 16).complete();
      const get = { to: context.endpoint, local, remote: local.handle, localType: type, notify: 1 };
      context.get(get);
    },
    "PAMIR_INVAL",
    ["notify"],
  ],
  [
    "a put of -1 bytes",
    ({ client, context }, type) => {
      const local = client.createRegion(64);
      type.addSimple(8, 0, 2, 16).complete();
      context.put({ to: context.endpoint, local, remote: local.handle, localType: type, bytes: -1 });
    },
    "PAMIR_INVAL",
    ["bytes of a put is -1"],
  ],
  [
    "a put from a closed region",
    ({ client, context }, type) => {
      const [local, remote] = [client.createRegion(64), client.createRegion(64)];
      type.addSimple(8, 0, 2, 16).complete();
      local.close();
      context.put({ to: context.endpoint, local, remote: remote.handle, localType: type });
    },
    "PAMIR_CLOSED",
    ["local region"],
  ],
  [
    "a put to a closed region",
    ({ client, context }, type) => {
      const [local, remote] = [client.createRegion(64), client.createRegion(64)];
      type.addSimple(8, 0, 2, 16).complete();
      const { handle } = remote;
      remote.close();
      context.put({ to: context.endpoint, local, remote: handle, localType: type });
    },
    "PAMIR_STALE",
    ["no open region"],
  ],
];

describe("what is wrong with a type is told with its values", () => {
  it.each(WRONG)("%s", (_, call, code, text) =>
    alone("wasm", async (own) => {
      const type = await own.make();
      const free = own.job.dump().heap.free;
      const thrown = thrownBy(() => call(own, type));
      expect(thrown.code).toBe(code);
      for (const part of text) expect(thrown.text).toContain(part);
      // Nothing was sent, and nothing kept but the task's own place for types, and the regions of the test.
      for (let round = 0; round < 3; round++) expect(own.context.advance()).toBe(0);
      expect(free - own.job.dump().heap.free).toBeLessThanOrEqual(65_536);
    }),
  );

  it("more loops than a type may have; it stays as it was", () =>
    alone("wasm", async ({ make }) => {
      const type = (await make()).addSimple(8);
      const offsets = Uint32Array.from({ length: 2 ** 20 }, (_, i) => 16 + 8 * i);
      const { code, text } = thrownBy(() => type.addIndexed(1, offsets));
      expect(code).toBe("PAMIR_TOO_LARGE");
      expect(text).toContain("1048576 loops");
      expect(type.addIndexed(1, offsets.subarray(1)).complete().query().runs).toBe(2 ** 20);
    }));

  it("a message's receive(): not complete, too short, no type", () =>
    alone("ts", async (own) => {
      const { context, make } = own;
      const type = await column(own, 4);
      const wrong: [() => Promise<unknown>, string, string][] = [
        [make, "PAMIR_INVAL", "not complete"],
        [async () => 7, "PAMIR_INVAL", "type of receive() is 7"],
        [async () => type, "PAMIR_BOUNDS", "224 bytes, and there are 223"],
      ];
      for (const [i, [typeOf, code, text]] of wrong.entries()) {
        const given = (await typeOf()) as TransferType;
        context.dispatch(200 + i, (message) =>
          message.receive(new Uint8Array(223), undefined, undefined, { type: given }),
        );
        context.send({ to: context.endpoint, dispatch: 200 + i, payload: new Uint8Array(96) });
        const thrown = thrownBy(() => context.advance());
        expect([thrown.code, thrown.text]).toEqual([code, expect.stringContaining(text)]);
      }
    }));
});

describe.each(["wasm", "ts"] as const)("typed transfers, %s", (kernel) => {
  it("take no memory that they do not give back, nor those that are refused", () =>
    alone(kernel, async (own) => {
      const { job, client, context } = own;
      const [small, large] = [await column(own, 20), await column(own, 2000)];
      // Its LAYOUT is too long for the place that all types share.
      const longest = (await own.make())
        .addIndexed(
          3,
          Uint32Array.from({ length: 3000 }, (_, i) => 8 * i + ((i * 5) % 3)),
        )
        .complete();
      const grid = pattern(128_000);
      const regions = [client.createRegion(128_000), client.createRegion(128_000)] as [MemRegion, MemRegion];
      regions[0].bytes.set(grid);
      let came = 0;
      const into = new Uint8Array(128_000);
      const of = [small, large, longest];
      context.dispatch(
        DATA,
        (message) => {
          const type = of[message.header[0] as number] as TransferType;
          message.receive(into, () => came++, undefined, { type });
        },
        { delivery: "early" },
      );
      const round = (): void => {
        came = 0;
        for (const [i, type] of of.entries()) {
          for (const rest of [{}, { onLocal: () => {} }, { onLocal: () => {}, rendezvous: true }]) {
            const message = { to: context.endpoint, dispatch: DATA, header: Uint8Array.of(i), payload: grid };
            expect(context.send({ ...message, type, ...rest })).toBe(SUCCESS);
          }
        }
        const place = { to: context.endpoint, local: regions[0], remote: regions[1].handle };
        for (const type of of) {
          expect(context.put({ ...place, localType: type, remoteType: type })).toBe(SUCCESS);
          expect(context.get({ ...place, localType: type })).toBe(SUCCESS);
        }
        thrownBy(() => context.send({ to: context.endpoint, dispatch: -1, payload: grid, type: large }));
        until(context, () => came === 9);
        for (let i = 0; i < 10; i++) context.advance();
      };
      round();
      round();
      const { free } = job.dump().heap;
      for (let i = 0; i < 20; i++) round();
      expect(job.dump().heap.free).toBe(free);
      longest.close();
      for (let i = 0; i < 10; i++) context.advance();
      client.createRegion(1).close();
      for (let i = 0; i < 10; i++) context.advance();
      if (kernel === "wasm") expect(job.dump().heap.free).toBeGreaterThan(free);
    }));

  it("that find no room: EAGAIN, and the memory for what was packed is given back", () =>
    alone(kernel, async (own) => {
      const { job, client } = own;
      const context = client.createContext({ pendingBytes: 0 });
      const type = await column(own, 2000);
      const message = { to: context.endpoint, dispatch: DATA, payload: pattern(128_000), type, queue: false };
      let came = 0;
      context.dispatch(DATA, () => came++);
      let sent = 0;
      while (context.send(message) === SUCCESS) sent++;
      expect(context.send(message)).toBe(EAGAIN);
      expect(context.send({ ...message, rendezvous: true, onLocal: () => {} })).toBe(EAGAIN);
      const { free } = job.dump().heap;
      for (let i = 0; i < 20; i++) expect(context.send(message)).toBe(EAGAIN);
      expect(job.dump().heap.free).toBe(free);
      until(context, () => came === sent);
      expect(context.send(message)).toBe(SUCCESS);
      until(context, () => came === sent + 1);
    }));

  it("go on without memory for regions: what is packed lies in ordinary memory then", () =>
    alone(kernel, async (own) => {
      const { client, context } = own;
      const type = await column(own, 700);
      const grid = pattern(44_800);
      const wanted = packedOf(grid, 700);
      fillHeap(client);
      let came: Uint8Array | undefined;
      context.dispatch(DATA, (message) => {
        came = message.payload.slice();
      });
      const into = new Uint8Array(44_800).fill(0xee);
      let result: number | undefined;
      context.dispatch(
        OTHER,
        (message) =>
          message.receive(
            into,
            (_, code) => {
              result = code;
            },
            undefined,
            { type },
          ),
        { delivery: "early" },
      );
      const message = { to: context.endpoint, payload: grid, type };
      expect(context.send({ ...message, dispatch: DATA })).toBe(SUCCESS);
      until(context, () => came !== undefined);
      expect(sameBytes(came as unknown as Uint8Array, wanted)).toBe(true);
      expect(context.send({ ...message, dispatch: OTHER, rendezvous: true, onLocal: () => {} })).toBe(SUCCESS);
      until(context, () => result !== undefined);
      expect(result).toBe(SUCCESS);
      expect(sameBytes(packedOf(into, 700), wanted)).toBe(true);
      expect([into[7], into[32]]).toEqual([0xee, 0xee]);
    }));

  it.each(["detached", "closed with its region"])(
    "a destination that is %s before the payload is there: ERROR",
    (fate) =>
      alone(kernel, async (own) => {
        const { context } = own;
        const type = await column(own, 700);
        const region = fate === "detached" ? undefined : own.client.createRegion(44_800);
        const into = region?.bytes ?? new Uint8Array(44_800);
        let result: number | undefined;
        context.dispatch(
          DATA,
          (message) => {
            const told = (_: unknown, code: number) => {
              result = code;
            };
            message.receive(into, told, undefined, { type });
            if (region === undefined) structuredClone(into.buffer, { transfer: [into.buffer as ArrayBuffer] });
            else region.close();
          },
          { delivery: "early" },
        );
        const payload = pattern(44_800);
        const message = { to: context.endpoint, dispatch: DATA, payload, type, rendezvous: true, onLocal: () => {} };
        expect(context.send(message)).toBe(SUCCESS);
        until(context, () => result !== undefined);
        expect(result).toBe(ERROR);
      }),
  );

  it("a type may be closed once a transfer has begun", () =>
    alone(kernel, async (own) => {
      const { context } = own;
      const type = await column(own, 700);
      const [grid, into] = [pattern(44_800), new Uint8Array(44_800)];
      let isThere = false;
      context.dispatch(
        DATA,
        (message) => {
          const told = () => {
            isThere = true;
          };
          message.receive(into, told, undefined, { type });
          type.close();
        },
        { delivery: "early" },
      );
      const message = { to: context.endpoint, dispatch: DATA, payload: grid, type, onLocal: () => {} };
      expect(context.send({ ...message, rendezvous: true })).toBe(SUCCESS);
      until(context, () => isThere);
      expect(sameBytes(packedOf(into, 700), packedOf(grid, 700))).toBe(true);
    }));

  it("several elements, at an extent less than their span: columns of a grid beside each other", () =>
    alone(kernel, async ({ context, make }) => {
      const type = (await make()).addSimple(8, 0, 50, 80).complete({ extent: 8 });
      const grid = new Float64Array(500).map((_, i) => i);
      let came: number[] = [];
      context.dispatch(DATA, (message) => {
        came = [...message.view(Float64Array)];
      });
      context.send({ to: context.endpoint, dispatch: DATA, payload: grid.subarray(2), type, count: 3 });
      until(context, () => came.length > 0);
      // The transposed columns 2, 3 and 4.
      expect(came).toEqual([2, 3, 4].flatMap((x) => Array.from({ length: 50 }, (_, y) => 10 * y + x)));
    }));

  it("contiguous elements go as they lie: given, kept, and of any length", () =>
    alone(kernel, async ({ context, make }) => {
      const type = (await make()).addSimple(8).complete();
      const payload = pattern(100_000);
      let came: Uint8Array | undefined;
      context.dispatch(DATA, (message) => {
        came = new Uint8Array(message.payloadBytes);
        message.receive(came, undefined, undefined, { type });
      });
      expect(context.send({ to: context.endpoint, dispatch: DATA, payload, type, count: 12_000 })).toBe(SUCCESS);
      until(context, () => came !== undefined);
      expect(sameBytes(came as unknown as Uint8Array, payload.subarray(0, 96_000))).toBe(true);
    }));
});
