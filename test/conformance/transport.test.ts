// The contract of a transport, for each of them: shared memory with either kernel and with both, and nodes of one task each, or
// of two.
import { CoresJob } from "../support/cores.js";
import { NetworkedJob } from "../support/networked.js";
import { portsJob } from "../support/ports-job.js";
import { SEED } from "../support/seed.js";
import { TRANSPORT_LIMITS, transportSuite } from "./transport.suite.js";

/** Virtual microseconds in which a node that does not answer is given up. */
const SILENCE = 20_000_000;

transportSuite("shared memory, wasm", () => ({
  job: CoresJob.shared(["wasm"], TRANSPORT_LIMITS),
  failureDetection: true,
}));

transportSuite("shared memory, twin", () => ({
  job: CoresJob.shared(["ts"], TRANSPORT_LIMITS),
  failureDetection: true,
}));

transportSuite("shared memory, wasm and twin", () => ({
  job: CoresJob.shared(["wasm", "ts"], TRANSPORT_LIMITS),
  failureDetection: true,
}));

transportSuite("nodes of one task, ports", () => ({
  job: CoresJob.apart(portsJob(TRANSPORT_LIMITS, ["wasm", "ts"])),
  failureDetection: true,
}));

transportSuite("nodes of one task, a simulated network", () => {
  const network = new NetworkedJob({ limits: TRANSPORT_LIMITS, kernels: ["wasm", "ts"], seed: SEED });
  return { job: CoresJob.apart(network), failureDetection: false, elapse: () => network.run(SILENCE) };
});

for (const [name, places] of [
  ["origin and target in one node, the other apart", [0, 1, 2]],
  ["origin and the other in one node, the target apart", [0, 2, 1]],
  ["target and the other in one node, the origin apart", [2, 1, 0]],
] as const) {
  transportSuite(`nodes of two tasks, a simulated network: ${name}`, () => {
    const network = new NetworkedJob({
      limits: TRANSPORT_LIMITS,
      kernels: ["wasm", "ts"],
      seed: SEED,
      tasksPerNode: 2,
    });
    return { job: CoresJob.apart(network), failureDetection: false, places, elapse: () => network.run(SILENCE) };
  });
}
