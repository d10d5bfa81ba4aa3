// The kind of link `nats`, as registry.ts loads it: opens the link of a node at a NATS server, with a UDP socket for the nodes
// that reach it.
import { checkRights, connectNats, NATS_PACKAGE, type NatsConnection } from "../../nats/connection.js";
import { type NatsPlace, natsPlace } from "../../nats/place.js";
import { watchRights } from "../../nats/rights.js";
import type { NatsVariables } from "../../nats/variables.js";
import type { AbsenceScope, HostedOpening, NodeLink } from "../kind.js";
import type { Address } from "../link.js";
import type { UdpLink } from "../udp/udp-link.js";
import { formatNatsAddress, SECRET_BYTES } from "./nats-address.js";
import { NatsLink, packetBytesFor } from "./nats-link.js";
import { TwoWayLink } from "./two-way-link.js";

/** Links of this thread that are open: the servers tell them which nodes are absent. */
const links = new Set<NatsLink | TwoWayLink>();

/** The text that registry.ts makes, as JSON. A user's password may be in it. */
interface NatsBind extends NatsVariables {
  readonly node: number;
  /** Where the UDP socket is bound; undefined: all packets go through the server. */
  readonly udp?: string | undefined;
}

/** @throws PAMIR_NATS */
export async function openNats(bind: string, opening: HostedOpening): Promise<NodeLink> {
  const { node, udp, ...variables } = JSON.parse(bind) as NatsBind;
  const place = natsPlace(variables);
  const name = `pamir ${place.job} node ${node}`;
  const connection = await connectNats(place, { package: opening.packages[NATS_PACKAGE], name });
  let socket: UdpLink | undefined;
  let link: NatsLink | TwoWayLink | undefined;
  try {
    socket = udp === undefined ? undefined : await openSocket(udp, opening);
    const opened = linkOf(connection, place, node, socket, opening.packetBytes);
    link = opened;
    links.add(opened);
    void connection.closed().then(() => links.delete(opened));
    // The server has the subscriptions before another node learns of the address.
    await checkRights(connection, place.job, link.address);
    const lost = "until that changes, packets through the server are lost";
    void watchRights(connection, place.job, (text) => opening.warn(`node ${node}: ${text}; ${lost}`));
    return link;
  } catch (error) {
    if (link === undefined) socket?.close();
    link?.close();
    await connection.close();
    throw error;
  }
}

/** Undefined: this machine opens none, and all packets go through the server. */
async function openSocket(bind: string, { packetBytes, ...opening }: HostedOpening): Promise<UdpLink | undefined> {
  try {
    return await (await import("../udp/udp.js")).openUdp(bind, { ...opening, packetBytes });
  } catch {
    return undefined;
  }
}

function linkOf(
  connection: NatsConnection,
  { job }: NatsPlace,
  node: number,
  socket: UdpLink | undefined,
  packetBytes: number | undefined,
): NatsLink | TwoWayLink {
  const secret = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  const address = formatNatsAddress(job, node, secret, socket?.address);
  const link = new NatsLink(connection, address, job, packetBytesFor(connection, packetBytes));
  return socket === undefined ? link : new TwoWayLink(link, socket, secret);
}

/** Whether the server says that nothing listens at an address. Another server of the cluster may be late: after 10 s it counts. */
export async function isNatsAbsent(address: Address, scope: AbsenceScope): Promise<boolean> {
  return [...links].some((link) => link.isAbsent(address, scope === "here"));
}
