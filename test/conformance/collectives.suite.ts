// What holds for collective operations, whatever carries them, against a plain sequential model. The product of types,
// algorithms, elements, operations, roots, lengths, places and forms is large: a run draws cases from its seed.
import { describe, expect, it } from "vitest";
import { COLLECTIVE_TYPES } from "../../src/collective/operations.js";
import { PATIENCE } from "../api/support.js";
import { casesAtLimits, drawCase, hugeCase } from "../support/collective-draws.js";
import { geometryOf, type Members, runCase, settled, until } from "../support/collective-rig.js";
import { byEffort, EFFORT, hashOf, sample, scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import type { Case } from "./tasks/collective-case.js";
import { Traffic } from "./tasks/traffic.js";

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
/** The most members of which each type has 1 MiB: the sequential program takes long for more. */
const HUGE_MEMBERS = 3;

/** Members that are all on this thread, so that nothing blocks. */
export function collectivesSuite(suite: CollectivesSuite): void {
  const { name, sizes, cases, most } = suite;
  if (sizes.length === 0) return;
  describe(`${name} (${replayNote()})`, () => {
    it.each(sizes)("%i members: each type gives what a sequential program gives", async (size) => {
      const given = await suite.members(size);
      try {
        const geometries = await geometryOf(given);
        const [first] = geometries;
        const algorithms = first?.algorithms.bind(first) as NonNullable<typeof first>["algorithms"];
        const random = randomOf(SEED ^ hashOf(`${name} ${size}`));
        const endpoints = given.members.map(({ context }) => context.endpoint);
        const traffic = given.members.map(
          ({ context }, rank) => new Traffic(context as never, DISPATCH, endpoints, rank),
        );
        const draw = { size, forms: ["callback", "promise"] as const, ...(most && { most }) };
        const run = async (one: Case): Promise<void> => {
          for (const own of traffic) own.send(random);
          const problems = await runCase(one, given, geometries);
          if (problems.length > 0) expect.fail(`${JSON.stringify(one)}\n${problems.join("\n")}`);
        };
        // Many members take long for each.
        const rounds = Math.ceil(scaled(cases) * Math.min(1, 6 / size));
        for (let count = 0; count < rounds; count++) {
          for (const type of COLLECTIVE_TYPES) await run(drawCase(random, draw, algorithms, type));
        }
        const atLimits = COLLECTIVE_TYPES.flatMap((type) => casesAtLimits(random, draw, type));
        const some = byEffort({ quick: 4, normal: 6, deep: atLimits.length });
        for (const one of sample(atLimits, some, `${name} ${size}`)) await run(one);
        const hasHuge = EFFORT === "deep" && size <= HUGE_MEMBERS;
        const huge = hasHuge ? COLLECTIVE_TYPES.filter((type) => type !== "barrier") : [];
        for (const type of huge) await run(hugeCase(random, draw, type));
        await until(given, () => traffic.filter((own) => !own.isOver()).length === 0);
        expect(traffic.flatMap(({ wrong }) => wrong)).toEqual([]);
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
