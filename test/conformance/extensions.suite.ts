// What is built upon geometries - shared regions, counters, grids, aggregators - wherever the members are.
import { describe, expect, it } from "vitest";
import { EAGAIN, SUCCESS } from "../../src/core/result.js";
import type { Client } from "../../src/pami/client.js";
import type { Context } from "../../src/pami/context.js";
import type { GridParameters } from "../../src/pami/extensions/grid.js";
import type { Geometry } from "../../src/pami/geometry.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";
import { addInAllWays } from "./aggregator.suite.js";

export interface Members {
  readonly clients: readonly Client[];
  readonly contexts: readonly Context[];
  readonly geometries: readonly Geometry[];
  /** Has time go on until a promise has settled. */
  drive<T>(promise: Promise<T>): Promise<T>;
}

export type WithMembers = (size: number, body: (given: Members) => Promise<void>) => Promise<void>;

const OPTIONS = { timeout: 60_000 };
/** What elements have before the first update: no operation leaves all of them alone. */
const FIRST = 501;

export function extensionsSuite(name: string, withMembers: WithMembers): void {
  describe(name, () => suite(withMembers));
}

function suite(withMembers: WithMembers): void {
  const test = (title: string, size: number, body: (given: Members) => Promise<void>): void =>
    it(`${title}, ${size} members`, () => withMembers(size, body));
  const all = <T>({ geometries, drive }: Members, call: (geometry: Geometry) => Promise<T>): Promise<T[]> =>
    drive(Promise.all(geometries.map(call)));

  test(
    "a handler throws while something is made or closed: all have it, and the error comes after it",
    3,
    async (given) => {
      const { clients, contexts, geometries, drive } = given;
      const endpoints = contexts.map(({ endpoint }) => endpoint);
      const [context] = contexts as [Context];
      let thrown = 0;
      context.dispatch(7, () => {
        throw new RangeError(`thrown ${++thrown}`);
      });
      /** Has all members call. In the call of the first one, a handler throws before the others call. */
      const together = async <T>(call: (rank: number) => Promise<T>): Promise<T[]> => {
        const before = thrown;
        const first = call(0);
        const hasThrown = async (): Promise<void> => {
          expect(contexts[2]?.sendImmediate(context.endpoint, 7)).toBe(SUCCESS);
          while (thrown === before) await new Promise((resolve) => setImmediate(resolve));
        };
        await drive(hasThrown());
        const results = await drive(Promise.all(geometries.map((_, rank) => (rank === 0 ? first : call(rank)))));
        const errors: unknown[] = [];
        for (let round = 0; round < 10; round++) {
          try {
            context.advance();
          } catch (error) {
            errors.push(error);
          }
        }
        expect(errors).toEqual([new RangeError(`thrown ${before + 1}`)]);
        return results;
      };
      const inAll = <T>(call: (geometry: Geometry) => Promise<T>): Promise<T[]> =>
        together((rank) => call(geometries[rank] as Geometry));
      const made = [
        await together((rank) => {
          const own = { ...OPTIONS, id: 1, context: contexts[rank] as Context };
          return (clients[rank] as Client).createGeometry(endpoints, own);
        }),
        await inAll((geometry) => geometry.split(0, 0, OPTIONS)),
        await inAll((geometry) => geometry.shrink(OPTIONS)),
      ];
      for (const geometry of made) await drive(Promise.all(geometry.map((one) => one.barrier(OPTIONS))));
      const regions = await inAll((geometry) => geometry.shareRegion(64, OPTIONS));
      const counters = await inAll((geometry) => geometry.createCounter(OPTIONS));
      const grids = await inAll((geometry) => geometry.createGrid({ size: [12], ...OPTIONS }));
      const aggregators = await inAll((geometry) =>
        geometry.createAggregator({ ...OPTIONS, type: Int32Array, onItems() {} }),
      );
      const numbers = await drive(Promise.all(counters.map((counter) => counter.next(OPTIONS))));
      expect(numbers.sort()).toEqual([0, 1, 2]);
      await drive(Promise.all(grids.map((grid) => grid.exchange(0, OPTIONS))));
      await drive(Promise.all(aggregators.map((aggregator) => aggregator.finish(OPTIONS))));
      for (const list of [regions, counters, grids]) {
        await together((rank) => {
          const closing = (list[rank] as (typeof list)[number]).close(OPTIONS);
          // While others may use it, its memory is there.
          if (rank > 0) expect(regions[0]?.region.closed).toBe(list !== regions);
          return closing;
        });
      }
    },
  );

  for (const size of [1, 3, 4]) {
    test("a shared region: each member reads those of all", size, async (given) => {
      const regions = await all(given, (geometry) => geometry.shareRegion(64 + 8 * geometry.rank, OPTIONS));
      for (const [rank, region] of regions.entries()) {
        expect(region.lengths).toEqual(regions.map((_, other) => 64 + 8 * other));
        expect(region.handles).toEqual(regions.map(({ region: own }) => own.handle));
        expect([...region.bytes].every((byte) => byte === 0)).toBe(true);
        region.view(Float64Array)[0] = rank + 0.5;
      }
      await all(given, (geometry) => geometry.barrier(OPTIONS));
      for (const [rank, region] of regions.entries()) {
        const { client, context } = { client: given.clients[rank] as Client, context: given.contexts[rank] as Context };
        for (const [other, handle] of region.handles.entries()) {
          const local = client.createRegion(8);
          const to = given.geometries[rank]?.endpoint(other) as number;
          expect(context.get({ to, local, remote: handle, bytes: 8 })).toBe(SUCCESS);
          await given.drive(context.flush(OPTIONS));
          expect(new Float64Array(local.bytes.buffer, local.bytes.byteOffset, 1)[0]).toBe(other + 0.5);
          if (region.isDirect(other)) expect(region.view(Float64Array, other)[0]).toBe(other + 0.5);
          local.close();
        }
      }
      await Promise.all(regions.map((region) => given.drive(region.close(OPTIONS))));
      expect(regions.every(({ region }) => region.closed)).toBe(true);
    });

    test("a counter gives out each number once", size, async (given) => {
      for (const striped of [false, true]) {
        const options = { ...OPTIONS, start: 2 ** 32 - 5, limit: 2 ** 32 + 20, striped, root: size - 1 };
        const counters = await all(given, (geometry) => geometry.createCounter(options));
        const taken = counters.map(async (counter) => {
          const numbers: number[] = [];
          for (let next = await counter.next(OPTIONS); next !== undefined; next = await counter.next(OPTIONS)) {
            numbers.push(next);
          }
          return numbers;
        });
        const numbers = (await given.drive(Promise.all(taken))).flat().sort((a, b) => a - b);
        expect(numbers).toEqual(Array.from({ length: 25 }, (_, at) => 2 ** 32 - 5 + at));
        await given.drive(Promise.all(counters.map((counter) => counter.close(OPTIONS))));
      }
      const counters = await all(given, (geometry) => geometry.createCounter(OPTIONS));
      const sums = counters.map((counter, rank) => counter.add(rank - 1, OPTIONS));
      await given.drive(Promise.all(sums));
      const values = await given.drive(Promise.all(counters.map((counter) => counter.add(0, OPTIONS))));
      const sum = (size * (size - 1)) / 2 - size;
      expect(values).toEqual(counters.map(() => sum));
    });

    test("hundreds of numbers of a counter are asked for at once", size, async (given) => {
      const counters = await all(given, (geometry) => geometry.createCounter(OPTIONS));
      const asked = counters.flatMap((counter) => Array.from({ length: 270 }, () => counter.next(OPTIONS)));
      const numbers = (await given.drive(Promise.all(asked))) as number[];
      expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, at) => at));
    });

    test("an aggregator brings items in order, and all of them by finish()", size, async (given) => {
      const came = given.geometries.map(() => given.geometries.map((): number[] => []));
      const aggregators = await all(given, (geometry) =>
        geometry.createAggregator({
          ...OPTIONS,
          type: Int32Array,
          length: 2,
          bytes: 128,
          onItems: (items, rank) => table(came, geometry.rank, rank).push(...items),
        }),
      );
      const random = randomOf(SEED);
      const sent = aggregators.map(() => aggregators.map((): number[] => []));
      for (let item = 0; item < 300; item++) {
        for (const [rank, aggregator] of aggregators.entries()) {
          const to = random(size);
          while (aggregator.push(to, Int32Array.of(item, rank)) === EAGAIN) {
            await given.drive(aggregator.whenRoom(to, OPTIONS));
          }
          table(sent, to, rank).push(item, rank);
        }
      }
      await given.drive(Promise.all(aggregators.map((aggregator) => aggregator.finish(OPTIONS))));
      expect(came).toEqual(sent);
      // Once more: what was finished is not sent again.
      await given.drive(Promise.all(aggregators.map((aggregator) => aggregator.finish(OPTIONS))));
      expect(came).toEqual(sent);
    });

    test("an aggregator of several kinds brings all items in the order pushed", size, async (given) => {
      const came = given.geometries.map(() => given.geometries.map((): unknown[] => []));
      const regions = await all(given, (geometry) => geometry.shareRegion(64, OPTIONS));
      const aggregators = await all(given, (geometry) => {
        /** Items of a fixed length, one by one. */
        const note =
          (kind: number, length: number) =>
          (items: ArrayLike<number | bigint>, rank: number): void => {
            const values = Array.from(items);
            const list = table(came, geometry.rank, rank);
            if (length === 0) list.push([kind, ...values]);
            else for (let at = 0; at < values.length; at += length) list.push([kind, ...values.slice(at, at + length)]);
          };
        return geometry.createAggregator({
          ...OPTIONS,
          bytes: 200,
          kinds: [
            { type: Uint8Array, length: 3, onItems: note(0, 3) },
            { type: Float64Array, onItems: note(1, 1) },
            { type: Uint16Array, length: "any", onItems: note(2, 0) },
            { type: BigInt64Array, length: 2, onItems: note(3, 2) },
            { type: Uint32Array, region: regions[geometry.rank], operation: "sum" },
          ],
        });
      });
      const random = randomOf(SEED);
      const sent = aggregators.map(() => aggregators.map((): unknown[] => []));
      const sums = regions.map(() => new Uint32Array(16));
      for (let item = 0; item < 400; item++) {
        const [rank, to, kind] = [random(size), random(size), random(5)];
        const aggregator = aggregators[rank] as (typeof aggregators)[number];
        const index = random(16);
        const length = [3, 1, random(4) === 0 ? 96 : random(9), 2, 1][kind] as number;
        const values = Array.from({ length }, (_, at) => (item + at) % 251);
        const view = [Uint8Array, Float64Array, Uint16Array, BigInt64Array][kind];
        const push = (): number =>
          view === undefined
            ? aggregator.update(to, index, item, 4)
            : view === BigInt64Array
              ? aggregator.push(to, BigInt64Array.from(values, BigInt), kind)
              : aggregator.push(to, (view as Float64ArrayConstructor).from(values), kind);
        while (push() === EAGAIN) await given.drive(aggregator.whenRoom(to, OPTIONS));
        if (kind === 4) (sums[to] as Uint32Array)[index] = (sums[to]?.[index] as number) + item;
        else table(sent, to, rank).push([kind, ...(kind === 3 ? values.map(BigInt) : values)]);
      }
      await given.drive(Promise.all(aggregators.map((aggregator) => aggregator.finish(OPTIONS))));
      expect(came).toEqual(sent);
      expect(regions.map((region) => region.view(Uint32Array))).toEqual(sums);
    });

    for (const manner of ["mixed", "plain"] as const) {
      test(`items and updates that are added in all ways come as in a model, ${manner}`, size, (given) =>
        addInAllWays(given, manner),
      );
    }

    for (const operation of ["sum", "xor", "and", "or", "min", "max", "copy"] as const) {
      test(`updates of a region: ${operation}`, size, async (given) => {
        const regions = await all(given, (geometry) => geometry.shareRegion(32, OPTIONS));
        for (const region of regions) region.view(Uint32Array).fill(FIRST);
        const aggregators = await all(given, (geometry) =>
          geometry.createAggregator({
            ...OPTIONS,
            type: Uint32Array,
            region: regions[geometry.rank],
            operation,
            bytes: 64,
          }),
        );
        const random = randomOf(SEED);
        const model = regions.map(() => new Uint32Array(8).fill(FIRST));
        for (let count = 0; count < 200; count++) {
          // One origin for each element, so that the order of updates is known.
          const [to, index, value] = [random(size), random(8), random(1000)];
          const aggregator = aggregators[index % size] as (typeof aggregators)[number];
          while (aggregator.update(to, index, value) === EAGAIN) await given.drive(aggregator.whenRoom(to, OPTIONS));
          const target = model[to] as Uint32Array;
          const old = target[index] as number;
          const extremes = { min: Math.min(old, value), max: Math.max(old, value) };
          const updated = {
            sum: old + value,
            xor: old ^ value,
            and: old & value,
            or: old | value,
            copy: value,
            ...extremes,
          };
          target[index] = updated[operation];
        }
        await given.drive(Promise.all(aggregators.map((aggregator) => aggregator.finish(OPTIONS))));
        expect(regions.map((region) => region.view(Uint32Array))).toEqual(model);
      });
    }
  }

  const grids: readonly [number, Omit<GridParameters<Float64Array>, "type">][] = [
    [1, { size: [5], periodic: true }],
    [3, { size: [10], halo: 2 }],
    [2, { size: [7], periodic: true, halo: 3, fields: 2 }],
    [4, { size: [9, 40], halo: [1, 3], corners: true }],
    [4, { size: [7, 6], periodic: [true, false], processes: [4, 0], halo: [1, 2] }],
    [6, { size: [8, 7], periodic: true, corners: true, processes: [3, 2] }],
    [8, { size: [5, 6, 37], periodic: [false, true, true], corners: true }],
    [4, { size: [2, 4, 5], halo: [0, 1, 2] }],
    // Borders that go to other nodes in messages that are not copied.
    [2, { size: [4, 1100], halo: [2, 1], periodic: [true, false] }],
  ];
  for (const [size, parameters] of grids) {
    test(`the halo of a grid, ${JSON.stringify(parameters)}`, size, async (given) => {
      const made = await all(given, (geometry) => geometry.createGrid({ ...OPTIONS, ...parameters }));
      const { fields = 1, periodic = false, corners = false } = parameters;
      const whole = parameters.size;
      const ends = typeof periodic === "boolean" ? whole.map(() => periodic) : periodic;
      expect(made.reduce((sum, { count }) => sum + count.reduce((cells, one) => cells * one), 0)).toBe(
        whole.reduce((cells, one) => cells * one),
      );
      const cellAt = (at: readonly number[], step: number): number =>
        at.reduce((sum, one, dimension) => sum * 4096 + (one % (whole[dimension] as number)), step);
      for (let step = 1; step <= 5; step++) {
        const field = step % fields;
        for (const grid of made) {
          for (const { at, isOwn } of cellsOf(grid)) {
            const place = at.map((one, dimension) => one + (grid.first[dimension] as number));
            (grid.fields[field] as Float64Array)[grid.index(...at)] = isOwn ? cellAt(place, step) : -step;
          }
        }
        // One of them computes before it waits.
        if (step % 2 === 0) expect(made[0]?.begin(field)).toBe(SUCCESS);
        await given.drive(Promise.all(made.map((grid) => grid.exchange(field, OPTIONS))));
        for (const grid of made) {
          for (const { at, isOwn, sides } of cellsOf(grid)) {
            const place = at.map((one, dimension) => one + (grid.first[dimension] as number));
            const isBeyond = place.some(
              (one, dimension) => !ends[dimension] && (one < 0 || one >= (whole[dimension] as number)),
            );
            const wraps = place.map((one, dimension) => one + (whole[dimension] as number));
            const expected = !isOwn && (isBeyond || (sides > 1 && !corners)) ? -step : cellAt(wraps, step);
            if ((grid.fields[field] as Float64Array)[grid.index(...at)] !== expected) {
              expect({ at, value: grid.fields[field]?.[grid.index(...at)] }).toEqual({ at, value: expected });
            }
          }
        }
      }
      await given.drive(Promise.all(made.map((grid) => grid.close(OPTIONS))));
    });
  }
}

function table<Item>(rows: readonly (readonly Item[][])[], to: number, from: number): Item[] {
  return (rows[to] as readonly Item[][])[from] as Item[];
}

interface Cell {
  readonly at: readonly number[];
  readonly isOwn: boolean;
  /** In how many dimensions it lies in the halo. */
  readonly sides: number;
}

/** All cells of a block with its halo. */
function cellsOf({ count, halo }: { count: readonly number[]; halo: readonly number[] }): Cell[] {
  let all: number[][] = [[]];
  for (const [dimension, cells] of count.entries()) {
    const width = halo[dimension] as number;
    const places = Array.from({ length: cells + 2 * width }, (_, one) => one - width);
    all = all.flatMap((at) => places.map((one) => [...at, one]));
  }
  return all.map((at) => {
    const sides = at.filter((one, dimension) => one < 0 || one >= (count[dimension] as number)).length;
    return { at, sides, isOwn: sides === 0 };
  });
}
