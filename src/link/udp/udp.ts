// The kind of link `udp`, as registry.ts loads it: opens the link of a node, and asks the system whether a node's socket is
// gone. At an address of this machine, a socket can be bound only if no other one is there. From elsewhere, a datagram to a port
// without a socket brings back an ICMP error (RFC 1122, section 4.1.3.3), which the system reports to a connected socket.
import type { Socket } from "node:dgram";
import { nodeModule } from "../../support/host.js";
import { after } from "../../support/timers.js";
import type { AbsenceScope, HostedOpening } from "../kind.js";
import type { Address } from "../link.js";
import { parseUdpAddress, type UdpEndpoint } from "./udp-address.js";
import { openDatagrams } from "./udp-calls.js";
import { openUdpLink, type UdpLink } from "./udp-link.js";

/** Milliseconds for an answer of another machine. */
const ANSWER_MS = 50;

/** Opens the link of a node. @throws as openUdpLink() */
export function openUdp(bind: string, { packetBytes, library: find }: HostedOpening): Promise<UdpLink> {
  const library = find();
  return openUdpLink(bind, { packetBytes }, (host, port) => library && openDatagrams(library, host, port));
}

/**
 * Whether the system reports that no socket is at an address. For another machine it is a hint: systems limit the rate of
 * ICMP errors, and a firewall may send an error, too.
 * @param address numeric
 */
export async function isUdpAbsent(address: Address, scope: AbsenceScope): Promise<boolean> {
  if (!address.startsWith("udp:") || nodeModule("dgram") === undefined) return false;
  const here = await withSocket(address, bindTo);
  if (here !== undefined || scope === "here") return here ?? false;
  return (await withSocket(address, probe)) ?? false;
}

async function withSocket(address: Address, ask: typeof bindTo): Promise<boolean | undefined> {
  const endpoint = parseUdpAddress(address);
  const { createSocket } = nodeModule("dgram") as typeof import("node:dgram");
  const socket = createSocket(endpoint.family === 6 ? "udp6" : "udp4");
  try {
    return await ask(socket, endpoint);
  } finally {
    socket.close();
  }
}

/** Whether the address is of this machine, and free; undefined: it is of another machine. */
function bindTo(socket: Socket, { host, port }: UdpEndpoint): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    socket.on("error", ({ code }: Error & { code?: string }) => resolve(code === "EADDRINUSE" ? false : undefined));
    socket.bind({ address: host, port, exclusive: true }, () => resolve(true));
  });
}

/** Whether an ICMP error comes back. */
function probe(socket: Socket, { host, port }: UdpEndpoint): Promise<boolean | undefined> {
  let cancel = (): void => {};
  const answer = new Promise<boolean>((resolve) => {
    socket.on("error", ({ code }: Error & { code?: string }) => resolve(code === "ECONNREFUSED"));
    socket.connect(port, host, () => {
      // A single byte is no packet: a node drops it.
      socket.send(new Uint8Array(1));
      cancel = after(ANSWER_MS, () => resolve(false));
    });
  });
  return answer.finally(() => cancel());
}
