import type { launch } from "pamir";
import { vi } from "vitest";
import type { Faults } from "../../src/wire/simulated.js";
import { launchNetworked, type NetworkedLaunch } from "../support/launch-networked.js";
import { replayNote, SEED } from "../support/seed.js";
import { apiSuite } from "./api.suite.js";

// The tasks are on this thread: their pamir is the one of the tests, with an attach() that knows which task it is.
vi.mock("pamir", async () => {
  const { attach } = await import("../support/launch-networked.js");
  return { ...(await import("../../src/index.js")), attach };
});

const FAULTS: Faults = { loss: 0.02, duplicate: 0.02, reorder: 0.02, reorderMicroseconds: 300 };

const started = (network: Partial<NetworkedLaunch>): typeof launch =>
  // "pamir" is that of src/ here, and its types are those of dist/.
  launchNetworked({ seed: SEED, ...network }) as unknown as typeof launch;

const name = `network (${replayNote()})`;
apiSuite({ name: `${name}, wasm, faithful`, kernels: ["wasm"], many: 30, launch: started({ isFaithful: true }) });
apiSuite({ name: `${name}, wasm and twin`, kernels: ["wasm", "ts"], many: 30, launch: started({}) });
apiSuite({
  name: `${name}, wasm and twin, lossy`,
  kernels: ["wasm", "ts"],
  many: 30,
  launch: started({ faults: FAULTS }),
});
