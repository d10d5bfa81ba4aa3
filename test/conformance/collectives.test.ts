import type { KernelName } from "../../src/index.js";
import { contextsOf, tasksOf } from "../support/collective-rig.js";
import { NetworkedJob, type NetworkedOptions } from "../support/networked.js";
import { portsJob } from "../support/ports-job.js";
import { realJob, udpLinks } from "../support/real-job.js";
import { SEED } from "../support/seed.js";
import { collectivesSuite } from "./collectives.suite.js";

for (const kernel of ["wasm", "ts"] as const) {
  collectivesSuite({
    name: `contexts of one task, ${kernel}`,
    sizes: [1, 2, 3, 4, 5, 8, 9, 17],
    cases: 8,
    members: (size) => contextsOf(size, kernel),
  });
}

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
    sizes,
    cases: 4,
    most: 300_000,
    members: async (size) =>
      tasksOf(new NetworkedJob({ seed: SEED, limits: limitsOf(size), kernels: KERNELS, ...options })),
  });
}
simulated("faithful", [2, 3, 5, 8, 13], { isFaithful: true });
simulated("packets are lost, two tasks a node", [3, 4, 9], {
  faults: { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 300 },
  tasksPerNode: 2,
});
simulated("one node of many tasks and one of few", [6], { isFaithful: true, tasksPerNode: 4 });

collectivesSuite({
  name: "tasks that share no memory, over ports",
  sizes: [2, 3, 6],
  cases: 3,
  most: 200_000,
  members: async (size) => tasksOf(portsJob(limitsOf(size), KERNELS)),
});

collectivesSuite({
  name: "UDP, sealed, two tasks a node",
  sizes: [2, 5],
  cases: 2,
  most: 200_000,
  members: async (size) => {
    const options = { seed: SEED, limits: limitsOf(size), kernels: KERNELS, tasksPerNode: 2, key: KEY };
    const real = await realJob({ ...options, open: udpLinks() });
    return tasksOf(real.job, () => real.close());
  },
});
