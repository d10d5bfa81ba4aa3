// The contract of a transport, for each of them: shared memory with either kernel and with both, and nodes of one task each.
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
