import { tasksOf } from "../support/collective-rig.js";
import { limitsOf, nodesOf } from "../support/collective-rigs.js";
import { NetworkedJob } from "../support/networked.js";
import { portsJob } from "../support/ports-job.js";
import { SEED } from "../support/seed.js";
import { mpiSuite } from "./mpi.suite.js";

const limits = (size: number) => ({ ...limitsOf(size), heapBytes: 2 ** 25 });

mpiSuite({
  name: "tasks that share no memory, over ports",
  size: 3,
  members: async () => tasksOf(portsJob(limits(3), ["wasm", "ts"])),
});
mpiSuite({
  name: "two nodes of several tasks",
  size: 6,
  fills: true,
  members: async () => nodesOf(6, { limits: { ...limits(6), heapBytes: 2 ** 26 }, tasksPerNode: 4 }),
});
mpiSuite({
  name: "one node",
  size: 5,
  fills: true,
  members: async () => nodesOf(5, { limits: { ...limits(5), heapBytes: 2 ** 26 }, tasksPerNode: 5 }),
});
mpiSuite({
  name: "packets are lost",
  size: 2,
  members: async () =>
    tasksOf(
      new NetworkedJob({
        seed: SEED,
        limits: limits(2),
        kernels: ["wasm", "ts"],
        faults: { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 300 },
      }),
    ),
});
