// The kind of link `nats`, as registry.ts loads it: opens the link of a node at a NATS server.
import { connectNats, NATS_PACKAGE } from "../../nats/connection.js";
import { natsPlace } from "../../nats/place.js";
import type { NatsVariables } from "../../nats/variables.js";
import { randomWords } from "../../support/randomness.js";
import type { AbsenceScope, LinkOpening, NodeLink } from "../kind.js";
import type { Address } from "../link.js";
import { NatsLink, packetBytesFor } from "./nats-link.js";

/** Links of this thread that are open: the servers tell them which nodes are absent. */
const links = new Set<NatsLink>();

/** @param bind the variables and the number of the node, as JSON; a user's password may be in it @throws PAMIR_NATS */
export async function openNats(bind: string, { packages, packetBytes }: LinkOpening): Promise<NodeLink> {
  const { node, ...variables } = JSON.parse(bind) as NatsVariables & { readonly node: number };
  const place = natsPlace(variables);
  const name = `pamir ${place.job} node ${node}`;
  const connection = await connectNats(place, { package: packages[NATS_PACKAGE], name });
  try {
    const address = `pamir.${place.job}.n.${node}.${epoch()}`;
    const link = new NatsLink(connection, address, place.job, packetBytesFor(connection, packetBytes));
    links.add(link);
    void connection.closed().then(() => links.delete(link));
    // The server has the subscriptions before another node learns of the address.
    await connection.flush();
    return link;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** 16 hexadecimal digits that no other process has. */
function epoch(): string {
  const word = randomWords();
  return [word(), word()].map((one) => (one >>> 0).toString(16).padStart(8, "0")).join("");
}

/** Whether the server says that nothing listens at an address. Another server of the cluster may be late: after 10 s it counts. */
export async function isNatsAbsent(address: Address, scope: AbsenceScope): Promise<boolean> {
  return [...links].some((link) => link.isAbsent(address, scope === "here"));
}
