import type { launch } from "pamir";
import { afterAll, vi } from "vitest";
import type { Link } from "../../src/link/link.js";
import { LossyLink } from "../../src/link/lossy-link.js";
import type { Faults } from "../../src/link/simulated-network.js";
import { launchNetworked, type NetworkedLaunch } from "../support/launch-networked.js";
import { randomOf } from "../support/random.js";
import { realWire, udpLinks, webSocketLinks } from "../support/real-job.js";
import { replayNote, SEED } from "../support/seed.js";
import { apiSuite } from "./api.suite.js";

// Other test files of this worker have the real package: neither they nor this one take a module that the other has loaded.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock("pamir");
  vi.resetModules();
});

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
const of = (what: string, kernels: readonly ("wasm" | "ts")[], network: Partial<NetworkedLaunch>): void =>
  apiSuite({ name: `${name}, ${what}`, kernels, many: 30, launch: started(network) });
of("wasm, faithful", ["wasm"], { isFaithful: true });
of("wasm and twin", ["wasm", "ts"], {});
of("wasm and twin, lossy", ["wasm", "ts"], { faults: FAULTS });
// Each job's tasks are on one node, or on several, of which the last has fewer.
of("2 tasks a node, wasm and twin, lossy", ["wasm", "ts"], { faults: FAULTS, tasksPerNode: 2 });
of("4 tasks a node, twin and wasm, lossy", ["ts", "wasm"], { faults: FAULTS, tasksPerNode: 4 });
of("twin and wasm, few sessions, small packets", ["ts", "wasm"], {
  faults: FAULTS,
  initiators: 1,
  responders: 2,
  packetBytes: 256,
});

// Real sockets and time, which goes faster: a node that ends is given up after two seconds.
const SPEED = 5;
const KEY = Uint8Array.from({ length: 32 }, (_, i) => 255 - i);
const random = randomOf(SEED);
of("UDP, wasm and twin", ["wasm", "ts"], { open: (nodes) => realWire(nodes, udpLinks(), { speed: SPEED }) });
const IMPAIRED = {
  speed: SPEED,
  around: (link: Link) => new LossyLink(link, { loss: 0.01, duplicate: 0.01, reorder: 0.01 }, () => random(2 ** 32)),
};
of("UDP, 2 tasks a node, small packets that are lost, sealed", ["ts", "wasm"], {
  tasksPerNode: 2,
  key: KEY,
  open: (nodes) => realWire(nodes, udpLinks([{ packetBytes: 1232 }]), IMPAIRED),
});
of("WebSockets, 2 tasks a node, wasm and twin, sealed", ["wasm", "ts"], {
  tasksPerNode: 2,
  key: KEY,
  open: (nodes) => realWire(nodes, webSocketLinks(), { speed: SPEED }),
});
of("WebSockets, packets that are lost, sealed", ["wasm", "ts"], {
  key: KEY,
  open: (nodes) => realWire(nodes, webSocketLinks({ packetBytes: 1232 }), IMPAIRED),
});
