import { expect, it } from "vitest";
import { FLAT_MEMBERS } from "../../src/collective/shared/shared-steps.js";
import type { KernelName } from "../../src/index.js";
import { casesAtLimits } from "../support/collective-draws.js";
import { contextsOf, geometryOf, runCase, tasksOf } from "../support/collective-rig.js";
import { byEffort, sample } from "../support/effort.js";
import { NetworkedJob, type NetworkedOptions } from "../support/networked.js";
import { portsJob } from "../support/ports-job.js";
import { randomOf } from "../support/random.js";
import { realJob, udpLinks } from "../support/real-job.js";
import { replayNote, SEED } from "../support/seed.js";
import { collectivesSuite } from "./collectives.suite.js";

/** Numbers of members. In npm test, a rig has those of its own that are among the ones drawn. */
const NUMBERS = Array.from({ length: 17 }, (_, i) => i + 1);
const DRAWN = sample(NUMBERS, byEffort({ quick: 5, normal: 5, deep: NUMBERS.length }), "members");
const among = (sizes: readonly number[]): number[] => DRAWN.filter((size) => sizes.includes(size));

for (const [kernel, sizes] of [
  ["wasm", DRAWN],
  ["ts", among([1, 2, 3, 4, 5, 8, 9, 17])],
] as const) {
  collectivesSuite({
    name: `contexts of one task, ${kernel}`,
    sizes,
    cases: 8,
    members: (size) => contextsOf(size, kernel),
  });
}

it.each(sample([FLAT_MEMBERS, FLAT_MEMBERS + 1], byEffort({ quick: 1, normal: 1, deep: 2 })))(
  `%i members in one memory reduce what fits into slots, and a little more (${replayNote()})`,
  async (size) => {
    const given = await contextsOf(size, "wasm");
    try {
      const geometries = await geometryOf(given);
      const random = randomOf(SEED);
      const draw = { size, forms: ["callback"] as const, most: 128 };
      const cases = (["reduce", "allreduce"] as const).flatMap((type) => casesAtLimits(random, draw, type));
      for (const one of cases) expect(await runCase(one, given, geometries), JSON.stringify(one)).toEqual([]);
      for (const geometry of geometries) geometry.close();
    } finally {
      await given.close();
    }
  },
);

const KERNELS: readonly KernelName[] = ["wasm", "ts"];
const KEY = Uint8Array.from({ length: 32 }, (_, i) => 3 * i);
const limitsOf = (tasks: number) => ({
  tasks,
  contexts: 1,
  laneBytes: 16_384,
  heapBytes: 2 ** 25,
  regions: 256,
  fifos: 2,
  slots: 8,
});

function simulated(what: string, sizes: readonly number[], options: Partial<NetworkedOptions>): void {
  collectivesSuite({
    name: `simulated network, ${what}`,
    sizes: among(sizes),
    cases: 4,
    most: 300_000,
    members: async (size) =>
      tasksOf(new NetworkedJob({ seed: SEED, limits: limitsOf(size), kernels: KERNELS, ...options })),
  });
}
simulated("faithful", [2, 3, 5, 7, 8, 13, 16, 17], { isFaithful: true });
simulated("packets are lost, two tasks a node", [3, 4, 7, 9], {
  faults: { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 300 },
  tasksPerNode: 2,
});
simulated("one node of many tasks and one of few", [6], { isFaithful: true, tasksPerNode: 4 });

collectivesSuite({
  name: "tasks that share no memory, over ports",
  sizes: among([2, 3, 6, 7]),
  cases: 3,
  most: 200_000,
  members: async (size) => tasksOf(portsJob(limitsOf(size), KERNELS)),
});

collectivesSuite({
  name: "UDP, sealed, two tasks a node",
  sizes: among([2, 5, 7]),
  cases: 2,
  most: 200_000,
  members: async (size) => {
    const options = { seed: SEED, limits: limitsOf(size), kernels: KERNELS, tasksPerNode: 2, key: KEY };
    const real = await realJob({ ...options, open: udpLinks() });
    return tasksOf(real.job, () => real.close());
  },
});
