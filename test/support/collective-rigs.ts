// Members in all that carries their bytes: one memory, ports, nodes of several tasks.
import { contextsOf, type Members, tasksOf } from "./collective-rig.js";
import { NetworkedJob, type NetworkedOptions } from "./networked.js";
import { portsJob } from "./ports-job.js";
import { SEED } from "./seed.js";

export const limitsOf = (tasks: number) => ({
  tasks,
  contexts: 1,
  laneBytes: 16_384,
  heapBytes: 2 ** 24,
  regions: 64,
  fifos: 2,
  slots: 8,
});

const KERNELS = ["wasm", "ts"] as const;

export const portsOf = (size: number): Members => tasksOf(portsJob(limitsOf(size), KERNELS));

/** Members in nodes that a faithful network joins. */
export const nodesOf = (size: number, options: Partial<NetworkedOptions> = {}): Members =>
  tasksOf(new NetworkedJob({ seed: SEED, limits: limitsOf(size), kernels: KERNELS, isFaithful: true, ...options }));

/** A name, the number of members, and what makes them. */
export const RIGS: readonly (readonly [string, number, (size: number) => Promise<Members>])[] = [
  ["contexts", 2, (size) => contextsOf(size, "wasm")],
  ["contexts", 5, (size) => contextsOf(size, "ts")],
  ...[2, 3, 5, 8].map((size) => ["ports", size, async () => portsOf(size)] as const),
  [
    "two nodes of several tasks",
    6,
    // Room for the regions of long arrays of the tasks of one node.
    async (size) => nodesOf(size, { limits: { ...limitsOf(size), heapBytes: 2 ** 26 }, tasksPerNode: 4 }),
  ],
];
