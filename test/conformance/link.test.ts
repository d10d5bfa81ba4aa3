// The contract of a link, for each of them.
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { afterAll } from "vitest";
import { DelayedLink } from "../../src/link/delayed-link.js";
import type { Link } from "../../src/link/link.js";
import { LossyLink } from "../../src/link/lossy-link.js";
import { type NetworkOptions, SimulatedNetwork } from "../../src/link/simulated-network.js";
import { openUdpLink, type UdpLink } from "../../src/link/udp/udp-link.js";
import { systemClock } from "../../src/support/clock.js";
import { natsRig } from "../support/nats-rig.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";
import { portsRig } from "../support/ports-rig.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";
import { hasIpv6, slowLink, udpRig, withCalls } from "../support/udp-rig.js";
import { unixRig } from "../support/unix-rig.js";
import { websocketRig } from "../support/websocket-rig.js";
import { type LinkRig, linkSuite } from "./link.suite.js";

const NODES = [0, 1, 2, 3];
const FAULTS = { loss: 0.1, duplicate: 0.1, reorder: 0.2 };

interface SimulatedOptions extends Partial<NetworkOptions> {
  readonly isFaithful?: boolean;
  readonly around?: (link: Link) => Link;
}

function simulated({ isFaithful = false, around = (link) => link, ...options }: SimulatedOptions): LinkRig {
  const random = randomOf(SEED);
  const network = new SimulatedNetwork({ nodes: 4, queueBytes: 1e9, ...options, random: () => random(2 ** 32) });
  return {
    links: NODES.map((node) => around(network.attach(node, isFaithful))),
    addresses: NODES.map(String),
    unknown: ["", "4", "-1", "01", "1.5", "nowhere"],
    refuses: options.linkPackets !== undefined,
    hasFaults: options.faults !== undefined,
    settle: async () => {
      while (network.step());
    },
  };
}

function lossy(options: SimulatedOptions): LinkRig {
  const random = randomOf(SEED + 1);
  const around = (link: Link) => new LossyLink(link, FAULTS, () => random(2 ** 32));
  return { ...simulated({ ...options, around }), hasFaults: true };
}

linkSuite("a simulated network, faithful", () => simulated({ isFaithful: true }));

linkSuite("a simulated network, faithful, that takes 4 packets", () => simulated({ isFaithful: true, linkPackets: 4 }));

linkSuite("a simulated torus with faults", () =>
  simulated({ topology: { kind: "torus", sides: [2, 2] }, faults: { ...FAULTS, reorderMicroseconds: 100 } }),
);

linkSuite("a lossy link over a simulated network", () => lossy({ isFaithful: true }));

linkSuite("a lossy link over a simulated network that takes 4 packets", () => lossy({ linkPackets: 4 }));

/** Node delivers some hundred messages of a port in one turn. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await nextTurn();
}

linkSuite("ports", () => portsRig((accept) => accept(), settle));

linkSuite("ports, where both nodes may make a channel at the same time", () => portsRig(setImmediate, settle));

linkSuite("UDP on 127.0.0.1", () => udpRig("127.0.0.1"));

linkSuite("UDP on 127.0.0.1, by foreign calls", () =>
  udpRig("127.0.0.1", { open: () => openUdpLink("udp:127.0.0.1:0", {}, withCalls) }),
);

linkSuite("UDP on 127.0.0.1, where the system takes 4 packets", () =>
  udpRig("127.0.0.1", { open: () => slowLink("127.0.0.1", { sendPackets: 4 }), refuses: true }),
);

linkSuite("a lossy link over UDP on 127.0.0.1", async () => {
  const random = randomOf(SEED + 2);
  const around = (link: Link) => new LossyLink(link, FAULTS, () => random(2 ** 32));
  return { ...(await udpRig("127.0.0.1", { around })), hasFaults: true };
});

/** Links of UDP over which packets take some milliseconds more. */
async function delayed(open?: () => Promise<UdpLink>): Promise<LinkRig> {
  const around = (link: Link) => new DelayedLink(link, 3, systemClock);
  const rig = await udpRig("127.0.0.1", open ? { around, open } : { around });
  const settle = async (): Promise<void> => {
    await delay(10);
    await rig.settle();
  };
  return { ...rig, settle };
}

linkSuite("a link with a delay over UDP on 127.0.0.1", () => delayed());

linkSuite("a link with a delay over UDP on 127.0.0.1, where the system takes 4 packets", () =>
  delayed(() => slowLink("127.0.0.1", { sendPackets: 4 })),
);

if (await hasIpv6()) {
  linkSuite("UDP on ::1", () => udpRig("[::1]"));

  linkSuite("UDP on ::1, packets of 65,504 bytes", () =>
    udpRig("[::1]", { open: () => openUdpLink("udp:[::1]:0", { packetBytes: 65_504 }) }),
  );
} else console.log("not run: the links of UDP on ::1, which this machine does not have");

linkSuite("a link of a user's own, over Unix sockets", unixRig);

linkSuite("WebSockets", () => websocketRig({ listen: "ws://127.0.0.1:0/" }));

linkSuite("a lossy link over WebSockets", async () => {
  const random = randomOf(SEED + 3);
  const around = (link: Link) => new LossyLink(link, FAULTS, () => random(2 ** 32));
  return { ...(await websocketRig({ listen: "ws://127.0.0.1:0/pamir" }, around)), hasFaults: true };
});

if (NATS_SERVER !== undefined) {
  const server = await NatsServer.start();
  afterAll(() => server.close());

  linkSuite("NATS", () => natsRig(server.url, { isDirect: false }));

  linkSuite("NATS, nodes that reach each other by UDP", () => natsRig(server.url, { isDirect: true }));

  for (const isDirect of [false, true]) {
    linkSuite(`a lossy link over NATS${isDirect ? ", nodes that reach each other by UDP" : ""}`, async () => {
      const random = randomOf(SEED + 4);
      const around = (link: Link) => new LossyLink(link, FAULTS, () => random(2 ** 32));
      return { ...(await natsRig(server.url, { isDirect, around })), hasFaults: true };
    });
  }
}
