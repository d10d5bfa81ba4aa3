// Four nodes in one thread, whose links are of one NATS server: for the conformance suite of links.

import type { Address, Link } from "../../src/link/link.js";
import { openNats } from "../../src/link/nats/nats.js";
import type { NatsLink } from "../../src/link/nats/nats-link.js";
import type { LinkRig } from "../conformance/link.suite.js";
import { settler } from "./settler.js";

const JOB = "rig";

export async function natsRig(
  url: string,
  around: (link: Link) => Link = (link) => link,
): Promise<LinkRig & { readonly bare: readonly NatsLink[] }> {
  const opening = { packetBytes: undefined, packages: {}, isNode: () => true };
  const open = async (node: number): Promise<NatsLink> =>
    (await openNats(JSON.stringify({ nats: url, job: JOB, node }), opening)) as NatsLink;
  const links = await Promise.all([0, 1, 2, 3].map(open));
  const addresses: Address[] = links.map(({ address }) => address);
  const closed = await open(4);
  closed.close();
  const unknown = ["", "4", "nats", `pamir.${JOB}.n.1`, `${addresses[1]}.0`, "pamir.rig.n.*.0", "a b", closed.address];
  const settle = settler(() => ({
    sent: links.reduce((sum, { counts }) => sum + counts.sent, 0),
    received: links.reduce((sum, { counts }) => sum + counts.received, 0),
  }));
  return { links: links.map(around), bare: links, addresses, unknown, refuses: false, hasFaults: undefined, settle };
}
