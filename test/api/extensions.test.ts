// What is built upon geometries, between threads and processes; bad input, and the death of a member.
import {
  type Aggregator,
  type Client,
  type Context,
  type Counter,
  EAGAIN,
  type Geometry,
  type Grid,
  launch,
  SHUTDOWN,
  type SharedRegion,
  SUCCESS,
  TIMEDOUT,
} from "pamir";
import { describe, expect, it, vi } from "vitest";
import { count, exchangeUntilDeath, rotate, scatterUpdates } from "../conformance/tasks/members.js";
import { run } from "./run-program.js";
import { fillHeap, PATIENCE, rejectionOf, thrownBy, VARIANTS, withJob } from "./support.js";

const OPTIONS = { timeout: PATIENCE };
const WAITS = "still waits for rank 1 (context 1 of task 0)";

describe.each(VARIANTS)("$name", (variant) => {
  it("tasks exchange halos, share counters, and update each other's words", () =>
    withJob(variant, { tasks: 3, module: "extensions.js", scenario: "all" }, async ({ client, job }) => {
      const world = await client.world(OPTIONS);
      expect(await rotate(world)).toBe(0);
      expect(await count(world, false)).toBe(0);
      expect(await count(world, true)).toBe(0);
      const { changed, wrong } = await scatterUpdates(world);
      expect(changed).toBeGreaterThan(0);
      expect(wrong).toBe(0);
      await world.barrier(OPTIONS);
      client.close();
      expect((await job.exited).map(({ code }) => code)).toEqual([0, 0]);
    }));

  it("a member dies: exchanges fail for all that still exchange, and so do counters and aggregators", () =>
    withJob(
      variant,
      { tasks: 4, module: "extensions.js", scenario: "dies", onError: "ignore" },
      async ({ client, job }) => {
        const { step, errors } = await exchangeUntilDeath(await client.world(OPTIONS));
        expect(step).toBeGreaterThanOrEqual(5);
        expect(errors).toEqual(errors.map(() => "PAMIR_SHUTDOWN"));
        client.close();
        expect((await job.exited).map(({ code }) => code)).toEqual([0, 0, 1]);
      },
    ));
});

interface Members {
  readonly client: Client;
  readonly contexts: readonly Context[];
  readonly geometries: readonly [Geometry, Geometry];
}

/** A job of one task, of which two contexts are the members of a geometry. */
async function withMembers(body: (given: Members) => Promise<void>): Promise<void> {
  const job = await launch(null, { tasks: 1, join: true, contexts: 2, heapBytes: 2 * 1024 ** 2 });
  try {
    const { client } = job;
    const contexts = [client.createContext(), client.createContext()];
    const endpoints = contexts.map(({ endpoint }) => endpoint);
    const make = (context: Context): Promise<Geometry> => client.createGeometry(endpoints, { ...OPTIONS, context });
    const [one, two] = await Promise.all([make(contexts[0] as Context), make(contexts[1] as Context)]);
    await body({ client, contexts, geometries: [one, two] });
  } finally {
    await job.terminate();
  }
}

/** Bytes that regions can have, those that are closed and wait for a grace period among them. */
function roomOf({ client, contexts }: Members): number {
  const advance = (): void => {
    for (const context of [...contexts, ...contexts, ...contexts]) context.advance();
  };
  advance();
  const regions = fillHeap(client);
  for (const region of regions) region.close();
  advance();
  return regions.reduce((sum, { length }) => sum + length, 0);
}

it("a member without memory: shareRegion() fails for all, and leaves no region", () =>
  withMembers(async (given) => {
    const { client, geometries } = given;
    const [one, two] = geometries;
    // What the operations themselves keep is there by now.
    const first = await Promise.all([one.shareRegion(4096, OPTIONS), two.shareRegion(4096, OPTIONS)]);
    await Promise.all(first.map((region) => region.close(OPTIONS)));
    const before = roomOf(given);
    for (const [bytes, own, others, text] of [
      [
        2 ** 21,
        "PAMIR_NO_MEMORY",
        "PAMIR_NO_MEMORY",
        "rank 1 (context 1 of task 0) has failed: no 2097152 bytes in one piece: ",
      ],
      [
        0,
        "PAMIR_INVAL",
        "PAMIR_COLLECTIVE",
        "rank 1 (context 1 of task 0) has failed: bytes of a region is 0, not an integer from 1 to 2097152",
      ],
    ] as const) {
      const [other, failed] = await Promise.all([
        rejectionOf(one.shareRegion(4096, OPTIONS)),
        rejectionOf(two.shareRegion(bytes, OPTIONS)),
      ]);
      expect([other.code, failed.code]).toEqual([others, own]);
      expect(other.text).toContain(text);
      expect(roomOf(given)).toBe(before);
    }
    const held = fillHeap(client);
    const errors = await Promise.all([
      rejectionOf(one.createCounter(OPTIONS)),
      rejectionOf(two.createCounter(OPTIONS)),
      rejectionOf(one.createGrid({ size: [100, 100], ...OPTIONS })),
      rejectionOf(two.createGrid({ size: [100, 100], ...OPTIONS })),
    ]);
    expect(errors.map(({ code }) => code)).toEqual(errors.map(() => "PAMIR_NO_MEMORY"));
    for (const region of held) region.close();
    const regions = await Promise.all([one.shareRegion(4096, OPTIONS), two.shareRegion(4096, OPTIONS)]);
    await Promise.all(regions.map((region) => region.close(OPTIONS)));
  }));

it("grids, counters and aggregators that are closed give their memory back, and geometries do not grow", () =>
  withMembers(async (given) => {
    const { geometries } = given;
    const rounds = async (count: number): Promise<number> => {
      for (let round = 0; round < count; round++) await Promise.all(geometries.map(useAll));
      return roomOf(given);
    };
    const before = await rounds(3);
    expect(await rounds(60)).toBe(before);
  }));

async function useAll(geometry: Geometry): Promise<void> {
  const grid = await geometry.createGrid({ size: [10, 10], ...OPTIONS });
  await grid.exchange(0, OPTIONS);
  const counter = await geometry.createCounter({ limit: 3, striped: true, ...OPTIONS });
  while ((await counter.next(OPTIONS)) !== undefined);
  const aggregator = await geometry.createAggregator({ type: Int8Array, onItems() {}, ...OPTIONS });
  aggregator.push(0, Int8Array.of(1));
  await aggregator.finish(OPTIONS);
  aggregator.close();
  await counter.close(OPTIONS);
  await grid.close(OPTIONS);
}

it("an aggregator says EAGAIN while its target does not read, and loses nothing", () =>
  withMembers(async ({ contexts: [first, second], geometries }) => {
    const came: number[] = [];
    const onItems = (items: Float64Array): void => void came.push(...items);
    const [one, two] = await Promise.all(
      geometries.map((geometry) => geometry.createAggregator({ type: Float64Array, onItems, ...OPTIONS })),
    );
    if (one === undefined || two === undefined || first === undefined || second === undefined) throw new Error("none");
    let pushed = 0;
    while (one.push(1, Float64Array.of(pushed)) === SUCCESS) pushed++;
    expect(pushed).toBeGreaterThan(1000);
    expect(came).toEqual([]);
    expect(one.flush()).toBe(EAGAIN);
    expect((await rejectionOf(one.whenRoom(1, { timeout: 20 }))).code).toBe("PAMIR_TIMEDOUT");
    let isRoom = false;
    const room = one.whenRoom(1, OPTIONS).finally(() => {
      isRoom = true;
    });
    // Messages wait on both sides of the lane.
    while (!isRoom) {
      second.advance();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await room;
    expect(one.push(1, Float64Array.of(pushed++))).toBe(SUCCESS);
    await Promise.all([one.finish(OPTIONS), two.finish(OPTIONS)]);
    expect(came).toEqual(Array.from({ length: pushed }, (_, at) => at));
    one.close();
    expect(thrownBy(() => one.push(1, Float64Array.of(1))).code).toBe("PAMIR_CLOSED");
  }));

it("many items are added as far as there is room, and the rest from there on", () =>
  withMembers(async ({ contexts: [, second], geometries }) => {
    const regions = await Promise.all(geometries.map((geometry) => geometry.shareRegion(8, OPTIONS)));
    const came: number[] = [];
    const kinds = [
      { type: Float64Array, onItems: (items: Float64Array): void => void came.push(...items) },
      { type: Int32Array, region: regions[1], operation: "sum" },
    ] as const;
    const [one, two] = await Promise.all(
      geometries.map((geometry) => {
        const own = [kinds[0], { ...kinds[1], region: regions[geometry.rank] }] as const;
        return geometry.createAggregator({ kinds: own, ...OPTIONS });
      }),
    );
    if (one === undefined || two === undefined || second === undefined) throw new Error("none");
    const items = Float64Array.from({ length: 60_000 }, (_, at) => at);
    const ranks = new Uint8Array(items.length).fill(1);
    const taken = one.pushMany(1, items);
    expect(taken).toBeGreaterThan(1000);
    expect(taken).toBeLessThan(items.length);
    expect(one.pushMany(1, items, 0, taken)).toBe(-EAGAIN);
    expect(one.pushMany(ranks, items, 0, taken)).toBe(-EAGAIN);
    expect(one.updateMany(ranks, ranks, new Int32Array(ranks.length), 1)).toBe(-EAGAIN);
    expect(one.reserve(1)).toBe(-EAGAIN);
    expect(one.push(1, Float64Array.of(1))).toBe(EAGAIN);
    // Nothing to add, and another member.
    expect(one.pushMany(1, new Float64Array(0))).toBe(0);
    expect(one.pushMany(ranks, items, 0, items.length)).toBe(0);
    expect(one.pushMany(Uint8Array.of(0, 1, 0), Float64Array.of(-1, -2, -3))).toBe(1);
    const places = Int32Array.of(0, 0, 0);
    expect(one.updateMany(Uint8Array.of(0, 0, 1), places, Int32Array.of(5, 6, 7), 1)).toBe(2);
    const goOn = async (): Promise<void> => {
      for (let at = taken; at < items.length; ) {
        const some = one.pushMany(ranks, items, 0, at);
        if (some === -EAGAIN) await one.whenRoom(1, OPTIONS);
        else at += some;
      }
    };
    await Promise.all([goOn().then(() => one.finish(OPTIONS)), two.finish(OPTIONS)]);
    expect(came.filter((item) => item >= 0)).toEqual([...items]);
    expect(came.filter((item) => item < 0)).toEqual([-1]);
    expect(regions.map((region) => region.view(Int32Array)[0])).toEqual([11, 0]);
  }));

it("a finish is over once what its member has sent has left it", () =>
  withMembers(async ({ geometries }) => {
    let came = 0;
    const onItems = ({ length }: Float64Array): void => {
      came += length;
    };
    const [one, two] = await Promise.all(
      geometries.map((geometry) => geometry.createAggregator({ type: Float64Array, onItems, ...OPTIONS })),
    );
    // More than a lane takes, and less than is refused.
    const items = new Float64Array(8000);
    expect(one?.pushMany(1, items)).toBe(items.length);
    await Promise.all([one?.finish(OPTIONS), two?.finish(OPTIONS)]);
    expect(came).toBe(items.length);
  }));

it("a lane that has room again before a message is queued does not keep a finish", () =>
  withMembers(async ({ contexts: [first], geometries }) => {
    let came = 0;
    const onItems = ({ length }: Float64Array): void => {
      came += length;
    };
    const [one, two] = await Promise.all(
      geometries.map((geometry) => geometry.createAggregator({ type: Float64Array, onItems, ...OPTIONS })),
    );
    expect(one?.pushMany(1, new Float64Array(300))).toBe(300);
    // As if the other member had read meanwhile.
    const room = vi.spyOn(first as Context, "room").mockReturnValueOnce(0);
    expect(one?.flush()).toBe(SUCCESS);
    expect(room).toHaveBeenCalledOnce();
    await Promise.all([one?.finish(OPTIONS), two?.finish(OPTIONS)]);
    expect(came).toBe(300);
  }));

it("a member that has ended stops many items before its own, and those behind can go on", () =>
  withMembers(async ({ contexts: [first], geometries }) => {
    const regions = await Promise.all(geometries.map((geometry) => geometry.shareRegion(8, OPTIONS)));
    const came: number[] = [];
    const [one] = await Promise.all(
      geometries.map((geometry) => {
        const items = { type: Int32Array, length: 2, onItems: (items: Int32Array): void => void came.push(...items) };
        const kinds = [items, { type: Int32Array, region: regions[geometry.rank] }] as const;
        return geometry.createAggregator({ kinds, ...OPTIONS });
      }),
    );
    if (one === undefined || first === undefined) throw new Error("none");
    expect(one.push(1, Int32Array.of(9, 9))).toBe(SUCCESS);
    geometries[1].close();
    expect(first.advanceUntil(() => one.push(1, Int32Array.of(9, 9)) === SHUTDOWN, OPTIONS)).toBe(SUCCESS);
    const ranks = Uint8Array.of(0, 1, 0);
    const items = Int32Array.of(1, 2, 3, 4, 5, 6);
    expect([0, 1, 2].map((from) => one.pushMany(ranks, items, 0, from))).toEqual([1, -SHUTDOWN, 1]);
    expect(one.pushMany(1, items)).toBe(-SHUTDOWN);
    expect(one.reserve(1)).toBe(-SHUTDOWN);
    const [indices, values] = [Uint8Array.of(0, 1, 1), Int32Array.of(1, 2, 3)];
    expect([0, 1, 2].map((from) => one.updateMany(ranks, indices, values, 1, from))).toEqual([1, -SHUTDOWN, 1]);
    expect(one.updateMany(1, indices, values, 1)).toBe(-SHUTDOWN);
    expect(one.flush()).toBe(SUCCESS);
    expect(first.advanceUntil(() => came.length === 4, OPTIONS)).toBe(SUCCESS);
    expect(came).toEqual([1, 2, 5, 6]);
    expect([...(regions[0]?.view(Int32Array) ?? [])]).toEqual([1, 3]);
  }));

it("a finish that gives up waiting is gone on with by the next one", () =>
  withMembers(async ({ geometries }) => {
    const came: number[] = [];
    const onItems = (items: Int16Array): void => void came.push(...items);
    const [one, two] = await Promise.all(
      geometries.map((geometry) => geometry.createAggregator({ type: Int16Array, onItems, ...OPTIONS })),
    );
    if (one === undefined || two === undefined) throw new Error("none");
    expect(one.push(1, Int16Array.of(5))).toBe(SUCCESS);
    expect(one.finishSync({ timeout: 5 })).toBe(TIMEDOUT);
    expect((await rejectionOf(one.finish({ timeout: 5 }))).code).toBe("PAMIR_TIMEDOUT");
    expect(one.finishSync({ timeout: 0 })).toBe(TIMEDOUT);
    const other = two.finish(OPTIONS);
    await Promise.all([one.finish(OPTIONS), other]);
    expect(came).toEqual([5]);
    // Both are as far: each call is one finish.
    await Promise.all([one.finish(OPTIONS), two.finish(OPTIONS), one.finish(OPTIONS), two.finish(OPTIONS)]);
    geometries[1].close();
    expect(one.finishSync(OPTIONS)).toBe(SHUTDOWN);
    expect((await rejectionOf(one.finish(OPTIONS))).code).toBe("PAMIR_SHUTDOWN");
    one.close();
    expect(thrownBy(() => one.finishSync(OPTIONS)).code).toBe("PAMIR_CLOSED");
  }));

it("a wait of an aggregator that gives up names the members that it awaits", () =>
  withMembers(async ({ geometries: [first, second], contexts: [, other] }) => {
    const make = (geometry: Geometry): Promise<Aggregator<Uint8Array>> =>
      geometry.createAggregator({ type: Uint8Array, bytes: 4096, onItems() {}, ...OPTIONS });
    const [one, two] = await Promise.all([make(first), make(second)]);
    const late = async (call: string, wait: Promise<unknown>): Promise<void> => {
      expect(await rejectionOf(wait)).toMatchObject({ code: "PAMIR_TIMEDOUT", text: `${call}() of rank 0 ${WAITS}` });
    };
    const lateSync = (call: string, result: number): void => {
      expect(result).toBe(TIMEDOUT);
      expect(first.lastError).toMatchObject({ code: "PAMIR_TIMEDOUT", message: `${call}() of rank 0 ${WAITS}` });
    };
    // The other member has not called it.
    await late("finish", one.finish({ timeout: 5 }));
    lateSync("finishSync", one.finishSync({ timeout: 5 }));
    await Promise.all([one.finish(OPTIONS), two.finish(OPTIONS)]);
    while (one.push(1, Uint8Array.of(1)) === SUCCESS);
    await late("whenRoom", one.whenRoom(1, { timeout: 5 }));
    lateSync("whenRoomSync", one.whenRoomSync(1, { timeout: 5 }));
    // No room to send the last items.
    await late("finish", one.finish({ timeout: 5 }));
    lateSync("finishSync", one.finishSync({ timeout: 5 }));
    other?.close();
    expect(one.whenRoomSync(1, OPTIONS)).toBe(SHUTDOWN);
    expect(first.lastError).toMatchObject({
      code: "PAMIR_SHUTDOWN",
      message: expect.stringContaining("whenRoomSync()"),
    });
    expect(one.finishSync(OPTIONS)).toBe(SHUTDOWN);
    expect(first.lastError).toMatchObject({ code: "PAMIR_SHUTDOWN", message: expect.stringContaining("finishSync()") });
  }));

it("a wait for shared regions, counters, grids or aggregators names the members that have not called it", () =>
  withMembers(async ({ geometries: [first, second] }) => {
    const late = { timeout: 5 };
    const makes: ((geometry: Geometry, options: object) => Promise<{ close(options?: object): unknown }>)[] = [
      (geometry, options) => geometry.shareRegion(8, options),
      (geometry, options) => geometry.createCounter(options),
      (geometry, options) => geometry.createGrid({ size: [4], ...options }),
      (geometry, options) => geometry.createAggregator({ type: Uint8Array, onItems() {}, ...options }),
    ];
    for (const [place, make] of makes.entries()) {
      const [one, two] = await Promise.all([make(first, OPTIONS), make(second, OPTIONS)]);
      if (place < 3) {
        expect(await rejectionOf(one.close(late) as Promise<void>)).toMatchObject({
          text: expect.stringContaining(WAITS),
        });
      }
      await two.close(OPTIONS);
    }
    for (const make of makes) {
      expect(await rejectionOf(make(first, late))).toMatchObject({ text: expect.stringContaining(WAITS) });
    }
  }));

const TOGETHER: readonly (readonly [call: string, (geometry: Geometry, options?: object) => Promise<unknown>])[] = [
  ["shareRegion", (geometry, options) => geometry.shareRegion(8, options)],
  ["createCounter", (geometry, options) => geometry.createCounter(options)],
  ["createGrid", (geometry, options) => geometry.createGrid({ size: [4], ...options })],
  [
    "createAggregator",
    (geometry, options) => geometry.createAggregator({ type: Uint8Array, onItems() {}, ...options }),
  ],
  ["split", (geometry, options) => geometry.split(0, 0, options)],
  ["splitByNode", (geometry, options) => geometry.splitByNode(options)],
  ["shrink", (geometry, options) => geometry.shrink(options)],
];

it.each(TOGETHER)("%s(): what ends its wait names it, as does what is refused", (call, begin) =>
  withMembers(async ({ contexts, geometries: [first, second] }) => {
    const wrong = await rejectionOf(begin(first, { timeout: -1 }));
    expect(wrong.code).toBe("PAMIR_INVAL");
    expect(wrong.text).not.toContain("allgather");
    const late = await rejectionOf(begin(first, { timeout: 5 }));
    expect(late).toMatchObject({ code: "PAMIR_TIMEDOUT", text: expect.stringMatching(`^${call}\\(\\) `) });
    // It agrees on those that are left.
    if (call === "shrink") return;
    // The other one waits for a member that ends.
    const refused = rejectionOf(begin(second, OPTIONS));
    contexts[0]?.close();
    const ended = await refused;
    expect(ended).toMatchObject({ code: "PAMIR_SHUTDOWN", text: expect.stringMatching(`^${call}\\(\\)`) });
  }),
);

it("a handler throws while a member waits in vain, or closes the context: its error comes once", () =>
  withMembers(async ({ contexts: [context], geometries: [first] }) => {
    const own = context as Context;
    const fail = (text: string): never => {
      throw new RangeError(text);
    };
    own.post(() => fail("one"));
    own.post(() => fail("two"));
    const late = await rejectionOf(first.createCounter({ timeout: 20 }));
    expect(late).toMatchObject({ code: "PAMIR_TIMEDOUT", text: expect.stringContaining("createCounter()") });
    let thrown: unknown;
    try {
      own.advance();
    } catch (error) {
      thrown = error;
    }
    expect((thrown as AggregateError).errors).toEqual([new RangeError("one"), new RangeError("two")]);
    for (let round = 0; round < 5; round++) own.advance();
    const waiting = first.shareRegion(8, OPTIONS).catch((error: unknown) => error);
    own.post(() => fail("three"));
    setTimeout(() => {
      own.post(() => {
        own.close();
        fail("four");
      });
    }, 20);
    const error = await waiting;
    expect((error as AggregateError).errors).toEqual([new RangeError("three"), new RangeError("four")]);
  }));

it.each([
  ["behind", "at once"],
  ["before", "once the counter is there"],
])("a handler throws while a counter is made %s a barrier: the barrier has the error, %s", (place) =>
  withMembers(async ({ contexts: [context], geometries: [first, second] }) => {
    const own = context as Context;
    const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
    const calls = [
      (geometry: Geometry) => geometry.createCounter(OPTIONS),
      (geometry: Geometry) => geometry.barrier(OPTIONS),
    ];
    if (place === "behind") calls.reverse();
    // Loads the code of counters.
    await Promise.all([first, second].map((geometry) => geometry.createCounter(OPTIONS)));
    const waits: Promise<unknown>[] = [];
    for (const call of calls) {
      waits.push(call(first).catch((error: unknown) => error));
      // It has begun.
      await turns();
    }
    own.post(() => {
      throw new RangeError("thrown");
    });
    await turns();
    const others: Promise<unknown>[] = [];
    for (const call of calls) {
      others.push(call(second));
      await turns();
    }
    const came = await Promise.all(waits);
    await Promise.all(others);
    expect(came.filter((one) => one instanceof Error)).toEqual([new RangeError("thrown")]);
    const [counter, barrier] = place === "behind" ? [came[1], came[0]] : came;
    expect(barrier).toBeInstanceOf(RangeError);
    expect(await (counter as Counter).next(OPTIONS)).toBe(0);
    for (let round = 0; round < 5; round++) own.advance();
  }),
);

it("close() with wrong options is refused, and closes nothing", () =>
  withMembers(async ({ geometries: [one, two] }) => {
    const make = (geometry: Geometry) => [
      geometry.shareRegion(8, OPTIONS),
      geometry.createCounter(OPTIONS),
      geometry.createGrid({ size: [4], ...OPTIONS }),
    ];
    const [own, others] = await Promise.all([Promise.all(make(one)), Promise.all(make(two))]);
    const use = async (): Promise<void> => {
      const [region, counter, grid] = own as [SharedRegion, Counter, Grid];
      expect(region.view(Uint8Array).length).toBe(8);
      await counter.next(OPTIONS);
      await Promise.all([grid.exchange(0, OPTIONS), (others[2] as Grid).exchange(0, OPTIONS)]);
    };
    for (const wrong of [{ timeout: -1 }, { timeOut: 1 }, { signal: 1 }, null, 5]) {
      for (const one of own) {
        expect(await rejectionOf(one.close(wrong as never))).toMatchObject({ code: "PAMIR_INVAL" });
      }
      await use();
    }
    await Promise.all([...own, ...others].map((each) => each.close(OPTIONS)));
  }));

it("an item whose handler throws does not take those behind it along", () =>
  withMembers(async ({ contexts: [first, second], geometries }) => {
    const came: number[][] = [];
    const kinds = [
      { type: Uint8Array, length: "any", onItems: (items: Uint8Array): void => void came.push([...items]) },
      {
        type: Uint8Array,
        onItems(): void {
          throw new Error("it throws");
        },
      },
    ] as const;
    const [one] = await Promise.all(geometries.map((geometry) => geometry.createAggregator({ kinds, ...OPTIONS })));
    if (one === undefined || first === undefined || second === undefined) throw new Error("none");
    one.push(1, Uint8Array.of(1, 2));
    one.push(1, Uint8Array.of(3), 1);
    one.push(1, new Uint8Array(0));
    one.push(1, Uint8Array.of(4));
    expect(one.flush()).toBe(SUCCESS);
    expect(() => second.advanceUntil(() => came.length === 3, OPTIONS)).toThrow("it throws");
    expect(came).toEqual([[1, 2], [], [4]]);
  }));

it("items go out by themselves after `delay`", () =>
  withMembers(async ({ contexts: [first, second], geometries }) => {
    let came = 0;
    const onItems = (items: Uint8Array): void => {
      came += items.length;
    };
    const [one] = await Promise.all(
      geometries.map((geometry) => geometry.createAggregator({ type: Uint8Array, onItems, delay: 2, ...OPTIONS })),
    );
    expect(one?.push(1, Uint8Array.of(7))).toBe(SUCCESS);
    first?.advance();
    second?.advance();
    const sent = first?.advanceUntil(() => (second?.advance() ?? 0) >= 0 && came > 0, OPTIONS);
    expect(sent).toBe(SUCCESS);
    // The timer runs again for what comes later.
    expect(one?.push(1, Uint8Array.of(8))).toBe(SUCCESS);
    expect(first?.advanceUntil(() => (second?.advance() ?? 0) >= 0 && came > 1, OPTIONS)).toBe(SUCCESS);
  }));

it("wrong arguments are refused", () =>
  withMembers(async ({ geometries }) => {
    const [one] = geometries;
    const regions = await Promise.all(geometries.map((geometry) => geometry.shareRegion(64, OPTIONS)));
    const [region] = regions;
    const wrong: [call: () => Promise<unknown>, text: RegExp][] = [
      [() => one.shareRegion(64, { timout: 1 } as object), /there is no "timout"/],
      [() => one.createCounter({ root: 2 }), /root of createCounter\(\) is 2/],
      [() => one.createCounter({ start: 5, limit: 4 }), /limit of createCounter\(\) is 4/],
      [() => one.createCounter({ striped: true }), /true needs a limit/],
      [() => one.createCounter({ first: 1 } as object), /there is no "first"/],
      [() => one.createGrid({ size: [] }), /size of createGrid\(\) is .*1, 2 or 3 numbers/],
      [() => one.createGrid({ size: [1, 2, 3, 4] }), /1, 2 or 3 numbers/],
      [() => one.createGrid({ size: [4, 0] }), /size of createGrid\(\) is 0/],
      [() => one.createGrid({ size: [4], processes: [3] }), /processes of createGrid\(\) is 3/],
      [() => one.createGrid({ size: [4], processes: [1] }), /processes \[1\] do not make 2 members/],
      [() => one.createGrid({ size: [4], halo: 3 }), /4 cells for 2 members in dimension 0: 2 each, the halo has 3/],
      [() => one.createGrid({ size: [1], halo: 0 }), /1 cells for 2 members/],
      [() => one.createGrid({ size: [4, 4], periodic: [true] }), /periodic of createGrid\(\)/],
      [() => one.createGrid({ size: [4], fields: 0 }), /fields of createGrid\(\) is 0/],
      [() => one.createGrid({ size: [4], type: DataView as never }), /type of createGrid\(\)/],
      [() => one.createAggregator({ type: Int32Array }), /onItems of createAggregator\(\) is undefined/],
      [
        () => one.createAggregator({ type: Int32Array, onItems() {}, bytes: 63 }),
        /bytes of createAggregator\(\) is 63/,
      ],
      [() => one.createAggregator({ type: Int32Array, onItems() {}, bytes: 12_289 }), /12289/],
      [() => one.createAggregator({ type: Int32Array, onItems() {}, length: 1025 }), /length of createAggregator\(\)/],
      [
        () => one.createAggregator({ type: Int32Array, onItems() {}, delay: -1 }),
        /delay of createAggregator\(\) is -1/,
      ],
      [() => one.createAggregator({ type: Int32Array, onItems() {}, length: "all" as never }), /length .* is "all"/],
      [() => one.createAggregator({ type: Int32Array, length: "any", region }), /updates are of one element/],
      [() => one.createAggregator({ kinds: [] }), /kinds of createAggregator\(\) is .*, not a list of 1 … 256/],
      [() => one.createAggregator({ kinds: {} as never }), /kinds of createAggregator\(\)/],
      [() => one.createAggregator({ kinds: [{ type: Int8Array }] }), /onItems of createAggregator\(\) is undefined/],
      [() => one.createAggregator({ kinds: [], type: Int8Array } as never), /there is no "type"/],
      [
        () => one.createAggregator({ kinds: [{ type: Int8Array, length: 4057, onItems() {} }] }),
        /length of createAggregator\(\) is 4057, .*4056/,
      ],
      [() => one.createAggregator({ type: Int8Array, region }), /4 or 8 bytes/],
      [() => one.createAggregator({ type: Float64Array, region, operation: "xor" }), /operation "xor"/],
      [() => one.createAggregator({ type: Int32Array, region: {} as never }), /not from shareRegion\(\)/],
    ];
    for (const [call, text] of wrong) {
      const error = await rejectionOf(call());
      expect({ call: call.toString(), ...error }).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(text),
      });
    }
    const [grid, other] = await Promise.all(
      geometries.map((geometry) => geometry.createGrid({ size: [4], fields: 2 })),
    );
    const [counter] = await Promise.all(
      geometries.map((geometry) => geometry.createCounter({ striped: true, limit: 9 })),
    );
    const [items] = await Promise.all(
      geometries.map((geometry) => geometry.createAggregator({ type: Int32Array, length: 2, onItems() {} })),
    );
    const [updates] = await Promise.all(
      geometries.map((geometry, rank) =>
        geometry.createAggregator({ type: Int32Array, region: regions[rank] as SharedRegion }),
      ),
    );
    const [some] = await Promise.all(
      geometries.map((geometry) => {
        const kinds = [
          { type: Int32Array, length: "any", onItems() {} },
          { type: Int8Array, onItems() {} },
        ] as const;
        return geometry.createAggregator({ bytes: 64, kinds });
      }),
    );
    if (!grid || !other || !counter || !items || !updates || !region || !some) throw new Error("none");
    expect(grid.begin(1)).toBe(SUCCESS);
    const refused: [call: () => unknown, code: string, text?: string][] = [
      [() => region.view(Float64Array, 2), "PAMIR_INVAL"],
      [() => region.view({} as never), "PAMIR_INVAL"],
      [() => grid.begin(1), "PAMIR_INVAL"],
      [() => other.begin(2), "PAMIR_INVAL"],
      [() => grid.exchangeSync(0, OPTIONS), "PAMIR_INVAL"],
      [() => grid.neighbor(1, 1), "PAMIR_INVAL"],
      [() => some.push(0, new Int32Array(15)), "PAMIR_INVAL"],
      [() => some.push(0, Int32Array.of(1), 2), "PAMIR_INVAL"],
      [() => some.push(0, Int8Array.of(1, 2), 1), "PAMIR_INVAL"],
      [() => some.update(0, 0, 1, 1), "PAMIR_INVAL"],
      [() => counter.addSync(1), "PAMIR_INVAL"],
      [() => items.push(2, Int32Array.of(1, 2)), "PAMIR_INVAL"],
      [() => items.push(1, Int32Array.of(1)), "PAMIR_INVAL"],
      [() => items.update(1, 0, 1), "PAMIR_INVAL"],
      [() => updates.push(1, Int32Array.of(1)), "PAMIR_INVAL"],
      [() => updates.update(1, 16, 1), "PAMIR_BOUNDS"],
      [() => updates.update(1, -1, 1), "PAMIR_BOUNDS"],
      [() => items.update(1, 0, 1), "PAMIR_INVAL", "update() of a kind without a region"],
      [
        () => items.updateMany(1, Int32Array.of(0), Int32Array.of(0)),
        "PAMIR_INVAL",
        "updateMany() of a kind without a region",
      ],
      [() => items.reserve(1, 0, 509), "PAMIR_INVAL", "count of reserve() is 509, not an integer from 1 to 508"],
      [() => items.reserve(1, 0, 0), "PAMIR_INVAL", "count of reserve() is 0, not an integer from 1 to 508"],
      [() => items.reserve(2), "PAMIR_INVAL", "rank of reserve() is 2, not an integer from 0 to 1"],
      [() => some.reserve(1, 0, 15), "PAMIR_INVAL", "count of reserve() is 15, not an integer from 0 to 14"],
      [() => updates.reserve(1), "PAMIR_INVAL", "reserve() to a kind of updates"],
      [() => updates.elements(), "PAMIR_INVAL", "elements() to a kind of updates"],
      [() => updates.pushMany(1, Int32Array.of(1)), "PAMIR_INVAL", "pushMany() to a kind of updates"],
      [() => some.pushMany(1, Int32Array.of(1)), "PAMIR_INVAL", "pushMany() of kind 0, whose items have any length"],
      [
        () => items.pushMany(1, new Int32Array(5)),
        "PAMIR_INVAL",
        "items of pushMany() has 5 elements, not a multiple of 2",
      ],
      [
        () => items.pushMany(Uint8Array.of(1, 1), new Int32Array(2)),
        "PAMIR_INVAL",
        "items of pushMany() has 2 elements, not 2 for each of 2 ranks",
      ],
      [
        () => items.pushMany(Int32Array.of(1, -1), new Int32Array(4)),
        "PAMIR_INVAL",
        "rank 1 of pushMany() is -1, not an integer from 0 to 1",
      ],
      [
        () => items.pushMany(1, new Int32Array(4), 0, 3),
        "PAMIR_INVAL",
        "from of pushMany() is 3, not an integer from 0 to 2",
      ],
      [
        () => updates.updateMany(1, Int32Array.of(0, 1), Int32Array.of(1)),
        "PAMIR_INVAL",
        "values of updateMany() has 1 elements for 2 indices",
      ],
      [
        () => updates.updateMany(Uint8Array.of(1), Int32Array.of(0, 1), Int32Array.of(1, 2)),
        "PAMIR_INVAL",
        "ranks of updateMany() has 1 elements for 2 indices",
      ],
      [
        () => updates.updateMany(Uint8Array.of(0, 2), Int32Array.of(0, 1), Int32Array.of(1, 2)),
        "PAMIR_INVAL",
        "rank 1 of updateMany() is 2, not an integer from 0 to 1",
      ],
      [
        () => updates.updateMany(1, Int32Array.of(0, 16), Int32Array.of(1, 2)),
        "PAMIR_BOUNDS",
        "updateMany() of element 16 at rank 1, of 16: index 1",
      ],
      [
        () => updates.updateMany(1, Int32Array.of(-1), Int32Array.of(1)),
        "PAMIR_BOUNDS",
        "updateMany() of element -1 at rank 1, of 16: index 0",
      ],
    ];
    for (const [call, code, text] of refused) {
      const thrown = thrownBy(call);
      expect({ call: call.toString(), ...thrown }).toMatchObject({ code });
      if (text !== undefined) expect(thrown.text).toBe(text);
    }
    for (const call of [
      () => items.pushMany(1, new Int32Array(2)),
      () => items.reserve(1),
      () => updates.updateMany(1, Int32Array.of(0), Int32Array.of(0)),
    ]) {
      expect(call()).toBeGreaterThanOrEqual(0);
    }
    // Who waits in vain may wait on.
    expect((await rejectionOf(grid.exchange(1, { timeout: 20 }))).code).toBe("PAMIR_TIMEDOUT");
    await Promise.all([grid.exchange(1, OPTIONS), other.exchange(1, OPTIONS)]);
    one.close();
    expect(thrownBy(() => grid.exchangeSync(0)).code).toBe("PAMIR_CLOSED");
    expect(thrownBy(() => items.flush()).code).toBe("PAMIR_CLOSED");
    // What was open is closed to the shortest paths, too.
    for (const call of [
      () => items.push(1, Int32Array.of(1, 2)),
      () => items.pushMany(1, Int32Array.of(1, 2)),
      () => items.reserve(1),
      () => items.elements(),
      () => updates.update(1, 0, 1),
      () => updates.updateMany(Uint8Array.of(1), Int32Array.of(0), Int32Array.of(1)),
    ]) {
      expect({ call: call.toString(), ...thrownBy(call) }).toMatchObject({ code: "PAMIR_CLOSED" });
    }
    expect((await rejectionOf(other.exchange(0, OPTIONS))).code).toBe("PAMIR_SHUTDOWN");
    // The memory comes back though the members can't agree on it.
    await region.close(OPTIONS);
    expect(region.region.closed).toBe(true);
  }));

it("calls keep their order while their code is loaded, whichever import() of it ends first", async () => {
  const ended = await run([], [], {}, "load-order.js");
  expect(ended).toEqual({ out: "sums 3,3,30,30\nmade\n", err: "", code: 0 });
});
