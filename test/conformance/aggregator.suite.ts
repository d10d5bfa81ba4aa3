// Items and updates that are added in every way there is - one, many, in place, to one member or to many - against a model.
import { expect } from "vitest";
import { EAGAIN, SUCCESS } from "../../src/core/result.js";
import type { Aggregator } from "../../src/pami/extensions/aggregator.js";
import type { ItemArray, ItemKind } from "../../src/pami/extensions/item-kind.js";
import type { SharedRegion } from "../../src/pami/extensions/shared-region.js";
import type { Geometry } from "../../src/pami/geometry.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";
import type { Members } from "./extensions.suite.js";

const OPTIONS = { timeout: 60_000 };
const ROUNDS = 250;
/** Elements of each region. */
const WORDS = 16;
const ITEMS = [
  { type: Int32Array, length: 2 },
  { type: Float64Array, length: 1 },
  { type: BigInt64Array, length: 3 },
  { type: Uint8Array, length: 40 },
  { type: Uint16Array, length: "any" },
] as const;
const UPDATES = [
  { type: Float64Array, operation: "sum", change: (old: number, value: number) => old + value },
  { type: BigInt64Array, operation: "max", change: (old: bigint, value: bigint) => (value > old ? value : old) },
  { type: Int32Array, operation: "xor", change: (old: number, value: number) => old ^ value },
] as const;
const RANKS = [Int32Array, Uint32Array, Uint16Array, Uint8Array];

/** A kind of one member: an aggregator, and its number there. */
interface Adder {
  readonly aggregator: Aggregator<ItemArray>;
  readonly kind: number;
}

/** `mixed`: one aggregator has all kinds. */
export type Manner = "mixed" | "plain";
export const BYTES: Record<Manner, number> = { mixed: 200, plain: 12_288 };

/** Items of each kind by the target and the origin, as texts. Kinds of several aggregators come in any order. */
type Texts = readonly (readonly string[][])[];

function viewOf(type: new (length: number) => ItemArray, values: readonly number[]): ItemArray {
  const view = new type(values.length);
  for (const [at, value] of values.entries()) {
    if (view instanceof BigInt64Array) view[at] = BigInt(value);
    else view[at] = value;
  }
  return view;
}

async function addersOf(geometry: Geometry, manner: Manner, came: Texts, regions: SharedRegion[][]): Promise<Adder[]> {
  const items = ITEMS.map(({ type, length }, kind): ItemKind => {
    const onItems = (view: ItemArray, rank: number): void => {
      const list = came[geometry.rank]?.[rank] as string[];
      const each = length === "any" ? Math.max(1, view.length) : length;
      for (let at = 0; at === 0 || at < view.length; at += each) list.push(`${kind}: ${view.slice(at, at + each)}`);
    };
    return { type, length, onItems } as ItemKind;
  });
  const updates = UPDATES.map(({ type, operation }, kind) => {
    return { type, operation, region: regions[kind]?.[geometry.rank] } as ItemKind;
  });
  const kinds = [...items, ...updates];
  const options = { ...OPTIONS, bytes: BYTES[manner] };
  if (manner === "mixed") {
    const aggregator = await geometry.createAggregator({ ...options, kinds });
    return kinds.map((_, kind) => ({ aggregator, kind }));
  }
  const adders: Adder[] = [];
  for (const kind of kinds) {
    adders.push({ aggregator: await geometry.createAggregator({ ...options, ...kind }), kind: 0 });
  }
  return adders;
}

export async function addInAllWays({ contexts, geometries, drive }: Members, manner: Manner): Promise<void> {
  const random = randomOf(SEED);
  const size = geometries.length;
  const all = <T>(call: (geometry: Geometry) => Promise<T>): Promise<T[]> => drive(Promise.all(geometries.map(call)));
  const texts = (): string[][][] => geometries.map(() => geometries.map(() => []));
  const [came, sent] = [texts(), texts()];
  const regions: SharedRegion[][] = [];
  for (const { type } of UPDATES) {
    const made = await all((geometry) => geometry.shareRegion(8 * WORDS, OPTIONS));
    for (const region of made) region.view(Uint8Array).fill(0);
    regions.push(made);
    expect(made[0]?.view(type as typeof Int32Array).length).toBeGreaterThanOrEqual(WORDS);
  }
  const models = UPDATES.map(({ type }) => geometries.map(() => new type((8 * WORDS) / type.BYTES_PER_ELEMENT)));
  const adders = await all((geometry) => addersOf(geometry, manner, came, regions));

  /** Has all members read until one has room again. */
  const roomOf = async ({ aggregator }: Adder, to: number): Promise<void> => {
    let isOver = false;
    const room = aggregator.whenRoom(to, OPTIONS).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      for (const context of contexts) context.advance();
      await drive(new Promise((resolve) => setImmediate(resolve)));
    }
    await room;
  };
  /** Adds many, as far as there is room, and goes on from there. */
  const addAll = async (adder: Adder, targets: readonly number[], add: (from: number) => number): Promise<void> => {
    for (let at = 0; at < targets.length; ) {
      const taken = add(at);
      expect(taken === -EAGAIN || taken > 0).toBe(true);
      if (taken === -EAGAIN) await roomOf(adder, targets[at] as number);
      else at += taken;
    }
  };
  const ranksOf = (targets: readonly number[]) => (RANKS[random(RANKS.length)] as typeof Int32Array).from(targets);
  const many = (): number => 1 + random(manner === "mixed" ? 60 : 3000);

  const addItems = async (rank: number, number: number): Promise<void> => {
    const { type, length } = ITEMS[number] as (typeof ITEMS)[number];
    const adder = adders[rank]?.[number] as Adder;
    const { aggregator, kind } = adder;
    const ways = ["push", "reserve", "reserve some", "many to one", "many to many"] as const;
    const way = ways[random(length === "any" ? 2 : ways.length)];
    const count = way === "push" || way === "reserve" ? 1 : way === "reserve some" ? 1 + random(3) : many();
    const each = length === "any" ? random(9) : length;
    const to = random(size);
    const targets = Array.from({ length: count }, () => (way === "many to many" ? random(size) : to));
    const items = viewOf(
      type,
      Array.from({ length: count * each }, () => random(251)),
    );
    for (const [at, target] of targets.entries()) {
      sent[target]?.[rank]?.push(`${number}: ${items.slice(at * each, (at + 1) * each)}`);
    }
    if (way === "push") {
      const push = (): number => aggregator.push(to, items, kind);
      let result = push();
      for (; result === EAGAIN; result = push()) await roomOf(adder, to);
      expect(result).toBe(SUCCESS);
    } else if (way === "reserve" || way === "reserve some") {
      const reserve = (): number => aggregator.reserve(to, kind, length === "any" ? each : count);
      let place = reserve();
      for (; place === -EAGAIN; place = reserve()) await roomOf(adder, to);
      (aggregator.elements(kind) as Int32Array).set(items as Int32Array, place);
    } else {
      const ranks = way === "many to one" ? to : ranksOf(targets);
      await addAll(adder, targets, (from) => aggregator.pushMany(ranks, items, kind, from));
    }
  };

  const update = async (rank: number, number: number): Promise<void> => {
    const { type, change } = UPDATES[number] as (typeof UPDATES)[number];
    const adder = adders[rank]?.[ITEMS.length + number] as Adder;
    const { aggregator, kind } = adder;
    const way = ["one", "many to one", "many to many"][random(3)];
    const to = random(size);
    const count = way === "one" ? 1 : many();
    const targets = Array.from({ length: count }, () => (way === "many to many" ? random(size) : to));
    const indices = ranksOf(targets.map(() => random(WORDS)));
    const values = viewOf(
      type,
      targets.map(() => random(1000) - 500),
    );
    for (const [at, target] of targets.entries()) {
      const model = models[number]?.[target] as Int32Array;
      const index = indices[at] as number;
      model[index] = (change as (old: number, value: number) => number)(model[index] as number, values[at] as number);
    }
    if (way === "one") {
      const one = (): number => aggregator.update(to, indices[0] as number, values[0] as number, kind);
      let result = one();
      for (; result === EAGAIN; result = one()) await roomOf(adder, to);
      expect(result).toBe(SUCCESS);
    } else {
      const ranks = way === "many to one" ? to : ranksOf(targets);
      await addAll(adder, targets, (from) => aggregator.updateMany(ranks, indices, values, kind, from));
    }
  };

  for (let round = 0; round < ROUNDS; round++) {
    const number = random(ITEMS.length + UPDATES.length);
    if (number < ITEMS.length) await addItems(random(size), number);
    else await update(random(size), number - ITEMS.length);
  }
  for (const [number] of (adders[0] as Adder[]).entries()) {
    await drive(Promise.all(adders.map((own) => own[number]?.aggregator.finish(OPTIONS))));
  }
  // Each aggregator keeps its order: one for all kinds has it among them, too.
  const ordered = (lists: Texts): Texts =>
    manner === "mixed"
      ? lists
      : lists.map((rows) => rows.map((row) => row.toSorted((a, b) => Number(a[0]) - Number(b[0]))));
  expect(ordered(came)).toEqual(ordered(sent));
  for (const [number, { type }] of UPDATES.entries()) {
    expect(regions[number]?.map((region) => region.view(type as typeof Int32Array))).toEqual(models[number]);
  }
}
