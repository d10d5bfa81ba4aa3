// Four nodes in one thread, whose links are of one NATS server: for the conformance suite of links.

import { setTimeout as delay } from "node:timers/promises";
import type { Address, Link } from "../../src/link/link.js";
import { openNats } from "../../src/link/nats/nats.js";
import { NatsLink } from "../../src/link/nats/nats-link.js";
import { TwoWayLink } from "../../src/link/nats/two-way-link.js";
import type { LinkRig } from "../conformance/link.suite.js";
import { settler } from "./settler.js";

let jobs = 0;

/** What the rig needs of its links: their counts, whichever way packets go. */
type CountingLink = NatsLink | TwoWayLink;

function countsOf(link: CountingLink): { readonly sent: number; readonly received: number } {
  if (link instanceof NatsLink) return link.counts;
  const { counts, long } = link;
  return { sent: long.sent + counts.direct, received: long.received + counts.receivedDirect };
}

/**
 * @param isDirect whether the nodes reach each other by UDP: then each has found that way before a test begins
 */
export async function natsRig(
  url: string,
  { isDirect, around = (link) => link }: { readonly isDirect: boolean; readonly around?: (link: Link) => Link },
): Promise<LinkRig> {
  // Of its own: what a slow server still has for nodes of an earlier test comes to none of these.
  const job = `rig-${++jobs}`;
  const opening = {
    packetBytes: undefined,
    packages: {},
    isNode: () => true,
    library: () => undefined,
    warn: () => {},
  };
  const udp = isDirect ? "udp:127.0.0.1:0" : undefined;
  const open = async (node: number): Promise<CountingLink> =>
    (await openNats(JSON.stringify({ nats: url, job, node, udp }), opening)) as CountingLink;
  const links = await Promise.all([0, 1, 2, 3].map(open));
  const addresses: Address[] = links.map(({ address }) => address);
  const closed = await open(4);
  closed.close();
  const unknown = [
    "",
    "4",
    "nats",
    `pamir.${job}.n.1`,
    `${addresses[1]}.0`,
    `pamir.${job}.n.*.0`,
    "a b",
    closed.address,
  ];
  const total = (name: "sent" | "received"): number => links.reduce((sum, link) => sum + countsOf(link)[name], 0);
  const settle = settler(() => ({ sent: total("sent"), received: total("received") }));
  if (isDirect) {
    await findWays(links, addresses);
    // What was sent has come before the test begins.
    await settle();
  }
  return { links: links.map(around), addresses, unknown, refuses: false, hasFaults: undefined, settle };
}

/** Sends from each link to each other one until all go the short way. */
async function findWays(links: readonly CountingLink[], addresses: readonly Address[]): Promise<void> {
  const pairs = links.length * (links.length - 1);
  const found = (): number =>
    links.reduce((sum, link) => sum + (link instanceof TwoWayLink ? link.counts.shortened : 0), 0);
  for (const began = performance.now(); found() < pairs; await delay(5)) {
    if (performance.now() - began > 60_000) throw new Error(`${found()} of ${pairs} short ways are found`);
    for (const link of links) for (const to of addresses) if (to !== link.address) link.send(to, new Uint8Array(0));
  }
}
