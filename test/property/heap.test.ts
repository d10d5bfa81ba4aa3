// The heap against a row of pages, each free or with the number of its extent.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  EXTENT_LANE,
  EXTENT_OWNER_MASK,
  EXTENT_OWNER_SHIFT,
  EXTENT_PAGES_MASK,
  EXTENT_STATE_SHIFT,
  JOB_HEAP_LOCK_OFFSET,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
} from "../../assembly/layout.js";
import { fraction, share } from "../support/arbitraries.js";
import { type Build, makeRig, type Rig, type Straddle } from "../support/kernels.js";
import { assertProperty } from "../support/seed.js";

const PAGES = 48;

interface Model {
  /** For each page: number of its extent, or 0. */
  pages: number[];
  extents: { number: number; pointer: number; pages: number; owner: number }[];
  last: number;
}

type Command = fc.Command<Model, Rig>;

/** Follows the table: it covers every page once, and says of each extent whose it is. */
function checkTable({ extents }: Model, rig: Rig): void {
  const { map } = rig;
  const used = new Map(extents.map((extent) => [extent.pointer, extent]));
  let page = 0;
  while (page < PAGES) {
    const entry = rig.word(map.heapTable + 4 * page);
    const length = entry & EXTENT_PAGES_MASK;
    expect(length, `page ${page}`).toBeGreaterThan(0);
    if (entry >>> EXTENT_STATE_SHIFT === EXTENT_LANE) {
      const extent = used.get(map.heapBase + page * PAGE_SIZE);
      expect([length, (entry >>> EXTENT_OWNER_SHIFT) & EXTENT_OWNER_MASK]).toEqual([extent?.pages, extent?.owner]);
      used.delete(map.heapBase + page * PAGE_SIZE);
    }
    page += length;
  }
  expect(page).toBe(PAGES);
  expect([...used.keys()]).toEqual([]);
}

function check(model: Model, rig: Rig): void {
  checkTable(model, rig);
  expect(rig.consumer.heapFreePages(rig.map.job)).toBe(model.pages.filter((page) => page === 0).length);
  expect(rig.word(rig.map.job + JOB_HEAP_LOCK_OFFSET)).toBe(0);
}

class Allocate implements Command {
  readonly #pages: number;
  readonly #owner: number;

  constructor(pages: number, owner: number) {
    this.#pages = pages;
    this.#owner = owner;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, rig: Rig): void {
    const pages = this.#pages;
    const fits = (at: number): boolean =>
      at + pages <= PAGES && model.pages.slice(at, at + pages).every((page) => page === 0);
    const at = model.pages.findIndex((_, page) => fits(page));
    const pointer = rig.producer.heapAllocate(rig.map.job, pages, this.#owner);
    expect(pointer).toBe(at < 0 ? OPEN_NO_MEMORY : rig.map.heapBase + at * PAGE_SIZE);
    if (at >= 0) {
      const number = ++model.last;
      model.pages.fill(number, at, at + pages);
      model.extents.push({ number, pointer, pages, owner: this.#owner });
    }
    check(model, rig);
  }

  toString(): string {
    return `allocate(${this.#pages} pages, owner ${this.#owner})`;
  }
}

class Free implements Command {
  readonly #which: number;

  constructor(which: number) {
    this.#which = which;
  }

  check({ extents }: Model): boolean {
    return extents.length > 0;
  }

  run(model: Model, rig: Rig): void {
    const [extent] = model.extents.splice(share(this.#which, model.extents.length - 1), 1);
    rig.consumer.heapFree(rig.map.job, extent?.pointer as number);
    model.pages = model.pages.map((page) => (page === extent?.number ? 0 : page));
    check(model, rig);
  }

  toString(): string {
    return `free(${this.#which})`;
  }
}

const commands = fc.commands(
  [
    fc
      .tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom(0, 1, 5, 1023))
      .map(([pages, owner]) => new Allocate(pages, owner)),
    fc.integer({ min: 1, max: PAGES + 1 }).map((pages) => new Allocate(pages, 2)),
    fraction.map((which) => new Free(which)),
    fraction.map((which) => new Free(which)),
  ],
  { maxCommands: 60, size: "max" },
);

describe.each<[Build, Build, Straddle | undefined]>([
  ["wasm", "wasm", undefined],
  ["twin", "twin", undefined],
  ["wasm", "twin", "heap"],
  ["twin", "wasm", "heap"],
])("%s allocates, %s frees, straddle %s", (producer, consumer, straddle) => {
  it("gives the first place that fits, never one twice, and in the end all is one extent again", () => {
    const property = fc.property(commands, (sequence) => {
      const rig = makeRig({ producer, consumer, straddle, heapBytes: PAGES * PAGE_SIZE });
      const model: Model = { pages: new Array<number>(PAGES).fill(0), extents: [], last: 0 };
      fc.modelRun(() => ({ model, real: rig }), sequence);
      for (const { pointer } of model.extents) rig.consumer.heapFree(rig.map.job, pointer);
      expect(rig.producer.heapAllocate(rig.map.job, PAGES, 0)).toBe(rig.map.heapBase);
    });
    assertProperty(property, 100);
  });
});
