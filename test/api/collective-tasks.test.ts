// Collective operations of tasks on threads and in processes, which block; and tasks that end right after their last one.
import type { Message } from "pamir";
import { expect, it } from "vitest";
import type { GeometryCore } from "../../src/collective/geometry-core.js";
import { COLLECTIVE_TYPES } from "../../src/collective/operations.js";
import { ALGORITHMS } from "../../src/collective/select.js";
import { SUCCESS } from "../../src/core/result.js";
import type { Geometry } from "../../src/index.js";
import { type Case, guarded, lengthsOf, parametersOf } from "../conformance/tasks/collective-case.js";
import { Traffic } from "../conformance/tasks/traffic.js";
import { casesAtLimits, drawCase, hugeCase } from "../support/collective-draws.js";
import { problemOf } from "../support/collective-model.js";
import { byEffort, EFFORT, sample, scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { DATA, LINKED_VARIANTS, PATIENCE, RESULT, until, withJob } from "./support.js";
import { randomFrom } from "./tasks/random.js";

const CHOSEN = LINKED_VARIANTS.filter(({ memoryBase }) => memoryBase === undefined);

/** Odd numbers, and more tasks than cores, on threads with both kernels alone. */
const sizesOf = ({ name }: (typeof CHOSEN)[number]): number[] =>
  name === "wasm with ts" ? [2, 3, 4, 5, 7, 8, 16] : [2, 4];

it.each(CHOSEN.flatMap((variant) => sizesOf(variant).map((tasks) => [variant.name, tasks, variant] as const)))(
  `%s, %i tasks: each gets what a sequential program gives (${replayNote()})`,
  (_, tasks, variant) => {
    const random = randomOf(SEED ^ tasks);
    const draw = { size: tasks, forms: ["sync"] as const, most: 100_000 };
    // All tasks share one memory, or each is a node.
    const placed = { isShared: variant.isLinked !== true, hasLevels: false, size: tasks } as GeometryCore;
    const algorithms = ((type: keyof typeof ALGORITHMS) =>
      ALGORITHMS[type].filter(({ fits }) => fits(placed))) as unknown as Geometry["algorithms"];
    const cases = Array.from({ length: scaled(tasks > 8 ? 6 : tasks > 4 ? 20 : 80) }, () =>
      drawCase(random, draw, algorithms),
    );
    const atLimits = COLLECTIVE_TYPES.flatMap((type) => casesAtLimits(random, draw, type));
    const some = byEffort({ quick: 4, normal: 8, deep: tasks > 4 ? 16 : atLimits.length });
    cases.push(...sample(atLimits, some, `${variant.name} ${tasks}`));
    const huge = EFFORT === "deep" && tasks === 2 ? COLLECTIVE_TYPES.filter((type) => type !== "barrier") : [];
    cases.push(...huge.map((type) => hugeCase(random, draw, type)));
    // The last rank is the test's: it needs the others, and they are gone by then. A long message would wait for it.
    const short = { ...draw, most: 8000 };
    let last: Case;
    // With a user's function, all members wait for all.
    do last = drawCase(random, short, algorithms, "scan");
    while (["compose", "add"].includes(last.operation));
    cases.push({ ...last, algorithm: "recursive-doubling" });
    const members = Array.from({ length: tasks }, (__, rank) => tasks - 1 - rank);
    const request = {
      tasks,
      module: "collective.js",
      scenario: "cases",
      args: { cases, members, seed: SEED },
      heapBytes: 2 ** 23 * Math.max(4, tasks),
    };
    return withJob(variant, request, async ({ client, context }) => {
      const problems: string[] = [];
      const counts = members.map(() => 0);
      const check = (rank: number, result: number, isWhole: boolean, got: Uint8Array): void => {
        const one = cases[counts[rank] as number] as Case;
        counts[rank] = (counts[rank] as number) + 1;
        const hasView = lengthsOf(one, rank, tasks).receive !== undefined;
        const wrong = result !== SUCCESS ? `result ${result}` : hasView ? problemOf(one, rank, tasks, got) : undefined;
        if (wrong !== undefined || !isWhole) problems.push(`rank ${rank}: ${wrong} ${JSON.stringify(one)}`);
      };
      context.dispatch(RESULT, (message: Message) => {
        const [rank, result, isWhole] = new Int32Array(message.header.slice().buffer) as unknown as [
          number,
          number,
          number,
        ];
        const bytes = new Uint8Array(message.payloadBytes);
        if (message.immediate) check(rank, result, isWhole === 1, message.payload.slice());
        else message.receive(bytes, () => check(rank, result, isWhole === 1, bytes));
      });
      const rank = tasks - 1;
      const endpoints = members.map((task) => client.endpoint(task));
      const traffic = new Traffic(context, DATA, endpoints, rank);
      const { below } = randomFrom(SEED + rank);
      const geometry = await client.createGeometry(members, { timeout: PATIENCE });
      for (const [place, one] of cases.entries()) {
        const memory = guarded(one, client);
        const { parameters, received } = parametersOf(one, rank, tasks, memory.take);
        // The last operation of the others, after which they end.
        if (place < cases.length - 1) traffic.send(below);
        else {
          until(context, () => traffic.isOver());
          until(context, () => counts.every((count, other) => other === rank || count === cases.length));
          for (let task = 1; task < tasks; task++)
            await context.whenEnded(client.endpoint(task), { timeout: PATIENCE });
        }
        const call = geometry[`${one.type}Sync`] as (given: object, options?: object) => number;
        const options = { timeout: PATIENCE };
        const result =
          one.type === "barrier" ? geometry.barrierSync(options) : call.call(geometry, parameters, options);
        check(rank, result, memory.isWhole(), received?.bytes.slice() ?? new Uint8Array(0));
        memory.close();
      }
      until(context, () => counts.every((count) => count === cases.length));
      expect(problems).toEqual([]);
      expect(traffic.wrong).toEqual([]);
    });
  },
);
