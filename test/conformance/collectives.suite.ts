// What holds for collective operations, whatever carries them, against a plain sequential model. The product of types,
// algorithms, elements, operations, roots, lengths, places and forms is large: a run draws cases from its seed.
import { describe, expect, it } from "vitest";
import { COLLECTIVE_TYPES } from "../../src/collective/signature.js";
import { SUCCESS } from "../../src/core/result.js";
import { PATIENCE } from "../api/support.js";
import { drawCase } from "../support/collective-draws.js";
import { geometryOf, type Member, type Members, runCase, settled, until } from "../support/collective-rig.js";
import { byEffort, hashOf, scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { elementBytes } from "./tasks/collective-case.js";

const OPTIONS = { timeout: PATIENCE };

export interface CollectivesSuite {
  readonly name: string;
  /** Numbers of members. */
  readonly sizes: readonly number[];
  /** Cases of each type and number of members. */
  readonly cases: number;
  /** The most bytes of all members' blocks together. */
  readonly most?: number;
  members(size: number): Promise<Members>;
}

const DISPATCH = 7;

/** Messages between the members meanwhile: each comes once, unharmed and in the order of its sender. */
class Traffic {
  readonly wrong: string[] = [];
  readonly #members: readonly Member[];
  /** Messages sent and received, by sender and receiver. */
  readonly #sent = new Map<string, number>();
  readonly #came = new Map<string, number>();

  constructor(members: readonly Member[]) {
    this.#members = members;
    for (const [to, { context }] of members.entries()) {
      context.dispatch(DISPATCH, (message) => {
        const [from, number, length] = new Int32Array(message.header.slice().buffer) as unknown as [
          number,
          number,
          number,
        ];
        const pair = `${from} to ${to}`;
        const expected = this.#came.get(pair) ?? 0;
        this.#came.set(pair, expected + 1);
        const isWhole = message.payload.length === length && message.payload.every((byte) => byte === (number & 255));
        if (number !== expected || !isWhole) this.wrong.push(`message ${number} of ${pair}: ${expected} is next`);
      });
    }
  }

  get isOver(): boolean {
    return [...this.#sent].every(([pair, count]) => (this.#came.get(pair) ?? 0) >= count);
  }

  /** Some members send to others, or to themselves. */
  send(random: (below: number) => number): void {
    for (const [from, { context }] of this.#members.entries()) {
      for (let count = random(3); count > 0; count--) {
        const to = random(this.#members.length);
        const pair = `${from} to ${to}`;
        const number = this.#sent.get(pair) ?? 0;
        const payload = new Uint8Array(random(2) === 0 ? random(64) : random(3000)).fill(number);
        const header = Int32Array.of(from, number, payload.length);
        const endpoint = (this.#members[to] as Member).context.endpoint;
        if (context.sendImmediate(endpoint, DISPATCH, header, payload) === SUCCESS) this.#sent.set(pair, number + 1);
      }
    }
  }
}

/** Members that are all on this thread, so that nothing blocks. */
export function collectivesSuite(suite: CollectivesSuite): void {
  const { name, sizes, cases, most } = suite;
  describe(`${name} (${replayNote()})`, () => {
    it.each(sizes)("%i members: each type gives what a sequential program gives", async (size) => {
      const given = await suite.members(size);
      try {
        const geometries = await geometryOf(given);
        const [first] = geometries;
        const algorithms = first?.algorithms.bind(first) as NonNullable<typeof first>["algorithms"];
        const random = randomOf(SEED ^ hashOf(`${name} ${size}`));
        const traffic = new Traffic(given.members);
        const draw = { size, forms: ["callback", "promise"] as const, ...(most && { most }) };
        // Many members take long for each.
        const rounds = Math.ceil(scaled(cases) * Math.min(1, 6 / size));
        for (let count = 0; count < rounds; count++) {
          for (const type of COLLECTIVE_TYPES) {
            const one = drawCase(random, draw, algorithms, type);
            traffic.send(random);
            const problems = await runCase(one, given, geometries);
            if (problems.length > 0) expect.fail(`${JSON.stringify(one)}\n${problems.join("\n")}`);
          }
        }
        for (const type of byEffort({ quick: [], normal: [], deep: ["broadcast", "allreduce"] as const })) {
          const { algorithm: _, ...one } = drawCase(random, draw, algorithms, type);
          const large = { ...one, count: Math.floor(2 ** 20 / elementBytes(one)) };
          traffic.send(random);
          expect(await runCase(large, given, geometries)).toEqual([]);
        }
        await until(given, () => traffic.isOver);
        expect(traffic.wrong).toEqual([]);
        for (const geometry of geometries) geometry.close();
      } finally {
        await given.close();
      }
    });

    it.each(sizes)("%i members: each begins active messages, which the others answer", async (size) => {
      const given = await suite.members(size);
      try {
        const geometries = await geometryOf(given);
        const heard: string[] = [];
        for (const geometry of geometries) {
          geometry.dispatch(1, ({ type, root, header, payload }) => {
            const last = payload.length === 0 ? -1 : payload[payload.length - 1];
            heard.push(`${geometry.rank} ${type} ${root} ${header[0]} ${payload.length} ${last}`);
            return Int32Array.of(geometry.rank, root);
          });
        }
        const long = Math.min(20_000, Math.floor((most ?? 20_000 * size) / size));
        const blocks = new Uint8Array(long * size).map((_, at) => Math.floor(at / long));
        const begun = geometries.map(async (geometry) => {
          const { rank } = geometry;
          const own = { dispatch: 1, header: Uint8Array.of(rank) };
          const send = Int32Array.of(rank, rank);
          const results = await Promise.all([
            geometry.amBroadcast({ ...own, payload: blocks.subarray(0, long) }, OPTIONS),
            geometry.amScatter({ ...own, send: blocks }, OPTIONS),
            geometry.amGather({ ...own, send }, OPTIONS),
            geometry.amReduce({ ...own, send, operation: "sum" }, OPTIONS),
          ]);
          expect([...results[2]]).toEqual(geometries.flatMap((_, other) => [other, rank]));
          expect([...results[3]]).toEqual([(size * (size - 1)) / 2, size * rank]);
        });
        for (const outcome of await settled(given, begun)) expect(outcome).toMatchObject({ status: "fulfilled" });
        await settled(
          given,
          geometries.map((geometry) => geometry.barrier(OPTIONS)),
        );
        const ranks = geometries.map(({ rank }) => rank);
        const pairs = ranks.flatMap((root) => ranks.filter((to) => to !== root).map((to) => [to, root]));
        const expected = pairs.flatMap(([to, root]) => [
          `${to} amBroadcast ${root} ${root} ${long} 0`,
          `${to} amScatter ${root} ${root} ${long} ${to}`,
          `${to} amGather ${root} ${root} 0 -1`,
          `${to} amReduce ${root} ${root} 0 -1`,
        ]);
        expect(heard.sort()).toEqual(expected.sort());
        for (const geometry of geometries) geometry.close();
      } finally {
        await given.close();
      }
    });
  });
}
