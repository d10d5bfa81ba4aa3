// Random programs of collective operations on overlapping geometries, with messages between the members meanwhile. Each member
// begins the operations of a geometry in the same order, at its own pace, and has several under way.
import fc from "fast-check";
import { expect, it } from "vitest";
import { SUCCESS } from "../../src/core/result.js";
import type { Client, Context, Geometry, MemRegion } from "../../src/index.js";
import type { Case } from "../conformance/tasks/collective-case.js";
import { drawCase } from "../support/collective-draws.js";
import {
  beginCase,
  contextsOf,
  geometryOf,
  type Members,
  type Part,
  tasksOf,
  until,
} from "../support/collective-rig.js";
import { scaled } from "../support/effort.js";
import { NetworkedJob } from "../support/networked.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const SIZE = 4;
const DATA = 3;
const LIMITS = { tasks: SIZE, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 24, regions: 256, fifos: 2, slots: 8 };
/** Members of the geometries: they overlap, and one has another order. */
const MEMBERSHIPS = [
  [0, 1, 2, 3],
  [3, 1, 0],
  [1, 2],
  [2, 3, 0, 1],
];

interface Step {
  readonly geometry: number;
  readonly seed: number;
}

const program = fc.record({
  steps: fc.array(fc.record({ geometry: fc.nat(MEMBERSHIPS.length - 1), seed: fc.nat(2 ** 30) }), { maxLength: 24 }),
  /** Draws the pace of the members. */
  pace: fc.nat(2 ** 30),
});

/** Runs a program. @param isShort whether memory is short: it comes and goes meanwhile. @returns what has gone wrong */
async function run(given: Members, isShort: boolean, steps: readonly Step[], pace: number): Promise<string[]> {
  const geometries: Geometry[][] = [];
  for (const [id, which] of MEMBERSHIPS.entries()) geometries.push(await geometryOf(given, which, id));
  const cases = steps.map(({ geometry, seed }): Case => {
    const [first] = geometries[geometry] as [Geometry];
    const draw = { size: first.size, forms: ["callback", "promise"] as const, most: 40_000 };
    return drawCase(randomOf(seed), draw, first.algorithms.bind(first));
  });
  const contexts = given.members.map(({ context }) => context);
  const came: number[][] = contexts.map(() => contexts.map(() => 0));
  const sent: number[][] = contexts.map(() => contexts.map(() => 0));
  const problems: string[] = [];
  for (const [to, context] of contexts.entries()) {
    context.dispatch(DATA, (message) => {
      const from = contexts.findIndex(({ endpoint }) => endpoint === message.origin);
      const counts = came[to] as number[];
      if (message.getInt32(0) !== counts[from]) problems.push(`message ${message.getInt32(0)} from ${from} to ${to}`);
      counts[from] = (counts[from] as number) + 1;
    });
  }
  const random = randomOf(pace);
  const places = contexts.map(() => 0);
  const parts: Part[] = [];
  const hogs = isShort ? given.members.map(({ client }) => new Hog(client)) : [];
  const act = async (member: number): Promise<void> => {
    const context = contexts[member] as Context;
    const what = random(6);
    if (what === 0) context.advance();
    else if (what === 1) {
      await given.turn();
      hogs[member]?.change(random);
    } else if (what === 2) {
      const to = random(SIZE);
      const counts = sent[member] as number[];
      const result = context.sendImmediate(
        (contexts[to] as Context).endpoint,
        DATA,
        null,
        Int32Array.of(counts[to] as number),
      );
      if (result === SUCCESS) counts[to] = (counts[to] as number) + 1;
    } else {
      const place = places[member] as number;
      if (place === steps.length) return;
      places[member] = place + 1;
      const { geometry } = steps[place] as Step;
      const own = geometries[geometry]?.find(({ endpoints, rank }) => endpoints[rank] === context.endpoint);
      const client = given.members[member]?.client;
      const views = hogs[member] ?? client;
      if (own !== undefined && views !== undefined) parts.push(beginCase(cases[place] as Case, own, views));
    }
  };
  while (places.some((place) => place < steps.length)) await act(random(SIZE));
  await until(
    given,
    () => parts.every(({ isOver }) => isOver),
    () => JSON.stringify({ cases, pace }),
  );
  await until(given, () => came.every((counts, to) => counts.every((count, from) => count === sent[from]?.[to])));
  problems.push(...parts.flatMap((part) => part.problem() ?? []));
  for (const geometry of geometries.flat()) geometry.close();
  for (const hog of hogs) hog.close();
  return problems;
}

/** Takes the memory of a job, but for some of it now and then. Views lie in that memory if it has room for them. */
class Hog {
  readonly #client: Client;
  #regions: MemRegion[] = [];

  constructor(client: Client) {
    this.#client = client;
    this.#fill();
  }

  createRegion(bytes: number): { bytes: Uint8Array; close(): void } {
    try {
      return this.#client.createRegion(bytes);
    } catch {
      return { bytes: new Uint8Array(bytes), close: () => {} };
    }
  }

  /** Gives some memory back, or takes what there is. */
  change(random: (below: number) => number): void {
    if (random(2) === 0) this.#fill();
    else for (const region of this.#regions.splice(random(this.#regions.length + 1), 2)) region.close();
  }

  close(): void {
    for (const region of this.#regions) region.close();
  }

  #fill(): void {
    for (let bytes = 2 ** 22; bytes >= 4096; bytes /= 4) {
      try {
        for (;;) this.#regions.push(this.#client.createRegion(bytes));
      } catch {
        // There is none of that length any more.
      }
    }
  }
}

const nodes = async (): Promise<Members> =>
  tasksOf(
    new NetworkedJob({
      seed: SEED,
      limits: LIMITS,
      kernels: ["wasm", "ts"],
      tasksPerNode: 2,
      faults: { loss: 0.01, duplicate: 0.01, reorder: 0.01, reorderMicroseconds: 300 },
    }),
  );

it.each([
  ["contexts of one task", false, () => contextsOf(SIZE, "wasm")],
  ["contexts of one task that is short of memory", true, () => contextsOf(SIZE, "wasm", 2 ** 22)],
  ["nodes of two tasks", false, nodes],
  ["nodes of two tasks that are short of memory", true, nodes],
] as const)(`%s: any program gives what a sequential one does (${replayNote()})`, async (...row) => {
  const [, isShort, members] = row;
  const property = fc.asyncProperty(program, async ({ steps, pace }) => {
    const given = await members();
    try {
      expect(await run(given, isShort, steps, pace)).toEqual([]);
    } finally {
      await given.close();
    }
  });
  const details = await fc.check(property, { seed: SEED, numRuns: scaled(24), endOnFailure: true });
  if (details.failed)
    throw new Error(`${replayNote()}\n${fc.defaultReportMessage(details)}`, { cause: details.errorInstance });
});
