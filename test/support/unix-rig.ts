// Four nodes in one thread, whose links are of a module that a user could have written: for the conformance suite of links.
import { fileURLToPath } from "node:url";
import type { NodeLink } from "../../src/link/kind.js";
import { linkKindOf, linkKinds, openNodeLink } from "../../src/link/registry.js";
import type { LinkRig } from "../conformance/link.suite.js";
import { settler } from "./settler.js";

export const UNIX_LINK: string = fileURLToPath(new URL("./unix-link.mjs", import.meta.url));

type CountingLink = NodeLink & { readonly counts: { readonly sent: number; readonly received: number } };

export async function unixRig(): Promise<LinkRig> {
  const kind = linkKindOf(await linkKinds(UNIX_LINK), "unix");
  const opening = { packetBytes: undefined, packages: {}, isNode: () => true };
  const open = async (node: number): Promise<CountingLink> =>
    (await openNodeLink(kind, kind.bind({ host: "127.0.0.1", port: 0, node }), opening)) as CountingLink;
  const links = await Promise.all([0, 1, 2, 3].map(open));
  const total = (name: "sent" | "received"): number => links.reduce((sum, { counts }) => sum + counts[name], 0);
  const closed = await open(4);
  closed.close();
  return {
    links,
    addresses: links.map(({ address }) => address),
    unknown: ["", "4", "unix:", "unix:node", "unix:/nowhere/node", closed.address],
    refuses: false,
    hasFaults: undefined,
    settle: settler(() => ({ sent: total("sent"), received: total("received") })),
  };
}
