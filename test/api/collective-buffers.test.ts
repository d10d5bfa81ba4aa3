// Buffers of collective operations that members share a memory for: which member may write them when.
import { describe, expect, it } from "vitest";
import { type Geometry, type MemRegion, type Result, SUCCESS } from "../../src/index.js";
import { contextsOf, geometryOf, until } from "../support/collective-rig.js";

it("in place in shared memory, a member's part of a reduceScatter does not overwrite what others still read", async () => {
  const given = await contextsOf(3, "wasm");
  try {
    const geometries = await geometryOf(given);
    const { client } = given.members[0] as (typeof given.members)[0];
    // Longer than what members copy into their slots.
    const views = geometries.map(() => {
      const { bytes } = client.createRegion(3 * 160);
      const view = new Int32Array(bytes.buffer, bytes.byteOffset, 3 * 40);
      view.set(view.map((_, place) => place));
      return view;
    });
    let left = 3;
    const onDone = (): void => void left--;
    // The last member that begins goes on as far as it can, before the others have read anything.
    for (const [rank, geometry] of geometries.entries()) {
      geometry.collective("reduceScatter", {
        send: null,
        receive: views[rank] as Int32Array,
        operation: "sum",
        onDone,
      });
    }
    await until(given, () => left === 0);
    expect(views.map((view) => [...view.subarray(0, 40)])).toEqual(
      [0, 40, 80].map((from) => Array.from({ length: 40 }, (_, place) => 3 * (from + place))),
    );
  } finally {
    await given.close();
  }
});

it("ordinary arrays longer than the job's memory", { timeout: 300_000 }, async () => {
  const given = await contextsOf(3, "wasm", 2 ** 22);
  try {
    const geometries = await geometryOf(given);
    const length = 2 ** 20;
    const results: number[] = [];
    const onDone = (_: unknown, result: number): void => void results.push(result);
    const sums = geometries.map(() => new Float64Array(length));
    const buffers = geometries.map(({ rank }) => new Float64Array(length).fill(rank + 7));
    const all = geometries.map(() => new Float64Array(3 * length));
    for (const [rank, geometry] of geometries.entries()) {
      const send = Float64Array.from({ length }, (_, place) => place * (rank + 1));
      geometry.collective("allreduce", { send, receive: sums[rank] as Float64Array, operation: "sum", onDone });
      geometry.collective("broadcast", { buffer: buffers[rank] as Float64Array, root: 1, onDone });
      geometry.collective("allgather", { send, receive: all[rank] as Float64Array, onDone });
    }
    await until(given, () => results.length === 9);
    expect(results.filter((result) => result !== 0)).toEqual([]);
    expect(sums.every((sum) => sum.every((value, place) => value === 6 * place))).toBe(true);
    expect(buffers.every((buffer) => buffer.every((value) => value === 8))).toBe(true);
    const isBlock = (value: number, place: number): boolean =>
      value === (place % length) * (Math.floor(place / length) + 1);
    expect(all.every((blocks) => blocks.every(isBlock))).toBe(true);
  } finally {
    await given.close();
  }
});

it("in place by the same array, an operation that is repeated sends what is there then", async () => {
  const given = await contextsOf(2, "wasm");
  try {
    const geometries = await geometryOf(given);
    const views = [Int32Array.of(1, 2), Int32Array.of(3, 4)];
    const run = async (type: "alltoall" | "allreduce", more: object): Promise<void> => {
      let left = 2;
      const onDone = (_: unknown, result: number): void => {
        if (result === SUCCESS) left--;
      };
      for (const [rank, geometry] of geometries.entries()) {
        const [send, receive] = [views[rank] as Int32Array, views[rank] as Int32Array];
        geometry.collective(type, { send, receive, onDone, ...more } as never);
      }
      await until(given, () => left === 0);
    };
    await run("alltoall", {});
    expect(views).toEqual([Int32Array.of(1, 3), Int32Array.of(2, 4)]);
    await run("alltoall", {});
    expect(views).toEqual([Int32Array.of(1, 2), Int32Array.of(3, 4)]);
    for (let round = 0; round < 2; round++) await run("allreduce", { operation: "sum" });
    expect(views).toEqual([Int32Array.of(8, 12), Int32Array.of(8, 12)]);
  } finally {
    await given.close();
  }
});

describe("short reductions that differ in their arrays alone", () => {
  type Views = [one: Int32Array | Float32Array, other: Int32Array | Float32Array];

  async function withTwo(test: (sum: (...views: Views) => Promise<number[][]>, pair: readonly Geometry[]) => unknown) {
    const given = await contextsOf(2, "wasm");
    try {
      const pair = await geometryOf(given);
      const sum = async (...views: Views): Promise<number[][]> => {
        const sums = pair.map((one, rank) => one.allreduce({ send: views[rank] as Int32Array, operation: "sum" }));
        return (await Promise.all(sums)).map((view) => [...view]);
      };
      await test(sum, pair);
    } finally {
      await given.close();
    }
  }

  it("each has its own operands and its own result", () =>
    withTwo(async (sum) => {
      for (let i = 1; i <= 20; i++) {
        expect(await sum(Int32Array.of(i, 1), Int32Array.of(10 * i, 2))).toEqual([
          [11 * i, 3],
          [11 * i, 3],
        ]);
        // As many bytes of another type, and fewer of the same.
        expect(await sum(Float32Array.of(i, 0.5), Float32Array.of(i, 0.25))).toEqual([
          [2 * i, 0.75],
          [2 * i, 0.75],
        ]);
        expect(await sum(Int32Array.of(i), Int32Array.of(i + 1))).toEqual([[2 * i + 1], [2 * i + 1]]);
      }
    }));

  it("results of earlier ones stay as they are, also if several are under way", () =>
    withTwo(async (sum) => {
      const sums = Array.from({ length: 12 }, (_, i) => sum(Int32Array.of(i), Int32Array.of(100)));
      const after = await Promise.all(sums);
      for (let i = 0; i < 12; i++) after.push(await sum(Int32Array.of(i), Int32Array.of(200)));
      const results = after.map(([one, other]) => [one?.[0], other?.[0]]);
      const from = (first: number): number[][] => Array.from({ length: 12 }, (_, i) => [first + i, first + i]);
      expect(results).toEqual([...from(100), ...from(200)]);
    }));

  it("arrays in turn, at both members", () =>
    withTwo(async (_, pair) => {
      const all = pair.map(({ rank }) =>
        Array.from({ length: 6 }, (_, i) => ({
          send: Int32Array.of(100 * rank + i),
          receive: new Int32Array(1),
          operation: "sum" as const,
        })),
      );
      for (let round = 0; round < 4; round++) {
        for (let i = 0; i < 6; i++) {
          const sums = pair.map((one, rank) => one.allreduce(all[rank]?.[i] as (typeof all)[0][0]));
          expect((await Promise.all(sums)).map(([sum]) => sum)).toEqual([100 + 2 * i, 100 + 2 * i]);
        }
        for (const [rank, calls] of all.entries())
          for (const { send } of calls) expect(send[0]).toBeLessThan(100 * rank + 6);
      }
    }));

  it("a call that is wrong is refused, however many like it were right", () =>
    withTwo(async (sum, [one]) => {
      for (let i = 0; i < 8; i++) await sum(Int32Array.of(i, 0), Int32Array.of(i, 0));
      const [send, receive] = [new Int32Array(2), new Int32Array(2)];
      const of = (parameters: object) => one?.allreduce({ send, receive, operation: "sum", ...parameters });
      const gone = new Int32Array(2);
      structuredClone(gone, { transfer: [gone.buffer] });
      const both = new Int32Array(3);
      for (const [parameters, text] of [
        [{ roots: 1 }, /roots/],
        [{ receive: gone }, /detached/],
        [{ send: both.subarray(0, 2), receive: both.subarray(1) }, /overlap/],
        [{ operation: "some" }, /"some"/],
        [{ receive: { constructor: Int32Array, byteLength: 8, byteOffset: 0, buffer: 0 } }, /not an ArrayBufferView/],
      ] as const) {
        await expect(of(parameters)).rejects.toThrow(text);
      }
    }));
});

describe("a region that is closed while a collective operation has a buffer in it", () => {
  const BYTES = 32_768;
  const LENGTH = BYTES / 4;
  const of = (value: number, length = LENGTH): Int32Array => new Int32Array(length).fill(value);
  const all = (): Int32Array => Int32Array.from({ length: 3 * LENGTH }, (_, place) => 1 + Math.floor(place / LENGTH));
  const cases = [
    ["allreduce", { operation: "sum" }, ["slices", "recursive-doubling", "rabenseifner", "ring"], 1, of(6)],
    ["reduce", { operation: "sum", root: 1 }, ["slices", "binomial", "rabenseifner"], 1, of(6)],
    ["allgather", {}, ["direct", "ring", "bruck"], 3, all()],
    ["gather", { root: 1 }, ["direct", "linear"], 3, all()],
    ["amReduce", { operation: "sum", dispatch: 1 }, [undefined], 1, of(6)],
    ["amGather", { dispatch: 1 }, [undefined], 3, all()],
  ] as const;
  const rows = cases.flatMap(([type, more, algorithms, blocks, expected]) =>
    algorithms.map((algorithm) => [type, algorithm, more, blocks, expected] as const),
  );

  it.each(rows)("stays open until that is over: %s, %s", async (type, algorithm, more, blocks, expected) => {
    // Too little for what all rounds take.
    const given = await contextsOf(3, "wasm", 2 ** 21);
    try {
      const geometries = await geometryOf(given);
      const { client } = given.members[0] as (typeof given.members)[0];
      const isActive = type.startsWith("am");
      for (const [rank, geometry] of geometries.entries()) geometry.dispatch(1, () => of(rank + 1));
      for (let round = 0; round < 5; round++) {
        const regions = geometries.map(
          () => [client.createRegion(BYTES), client.createRegion(blocks * BYTES)] as const,
        );
        const wordsOf = ({ bytes, length }: MemRegion): Int32Array =>
          new Int32Array(bytes.buffer, bytes.byteOffset, length / 4);
        const results: Result[] = [];
        const onDone = (_: unknown, result: Result): void => void results.push(result);
        const others: MemRegion[] = [];
        for (const [rank, geometry] of geometries.entries()) {
          if (isActive && rank !== 1) continue;
          const [send, receive] = regions[rank] as (typeof regions)[0];
          wordsOf(send).fill(rank + 1);
          geometry.collective(type, {
            send: wordsOf(send),
            receive: wordsOf(receive),
            ...(algorithm && { algorithm }),
            onDone,
            ...more,
          } as never);
          if (results.length > 0) continue;
          send.close();
          receive.close();
          expect([send.closed, receive.closed]).toEqual([true, true]);
          // They would lie where those lay.
          others.push(client.createRegion(BYTES), client.createRegion(blocks * BYTES));
          for (const { bytes } of others.slice(-2)) bytes.fill(0xee);
        }
        await until(given, () => results.length === (isActive ? 1 : 3));
        expect(results.every((result) => result === SUCCESS)).toBe(true);
        expect(wordsOf(regions[1]?.[1] as MemRegion)).toEqual(expected);
        expect(others.filter(({ bytes }) => !Buffer.alloc(bytes.length, 0xee).equals(bytes))).toEqual([]);
        for (const region of [...others, ...regions.flat()]) region.close();
        await until(given, () => true);
      }
    } finally {
      await given.close();
    }
  });

  it("can't be given away meanwhile", async () => {
    const given = await contextsOf(2, "wasm");
    try {
      const geometries = await geometryOf(given);
      const { client, context } = given.members[0] as (typeof given.members)[0];
      const regions = geometries.map(() => client.createRegion(BYTES));
      let left = 2;
      const begin = (rank: number): void => {
        const onDone = (): void => void left--;
        geometries[rank]?.collective("broadcast", { buffer: (regions[rank] as MemRegion).bytes, root: 1, onDone });
      };
      const give = (): Result =>
        context.send({ to: context.endpoint, dispatch: 1, payload: regions[0]?.bytes, transfer: true });
      begin(0);
      expect(give).toThrow(/under way/);
      begin(1);
      await until(given, () => left === 0);
      context.dispatch(1, () => {});
      expect(give()).toBe(SUCCESS);
    } finally {
      await given.close();
    }
  });
});
