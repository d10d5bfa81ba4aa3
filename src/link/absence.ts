// Asks the system whether a node's socket is gone. At an address of this machine, a UDP socket can be bound only if no other
// one is there. From elsewhere, a datagram to a port without a socket brings back an ICMP error (RFC 1122, section 4.1.3.3),
// which the system reports to a connected socket. A TCP connection to a port without a server is refused.
import type { Socket } from "node:dgram";
import { after, nodeModule } from "../support/host.js";
import type { Address } from "./link.js";
import { parseUdpAddress, type UdpEndpoint } from "./udp-address.js";

/** Milliseconds for an answer of another machine. */
const ANSWER_MS = 50;

/**
 * Whether the system reports that no socket is at an address. For another machine it is a hint: systems limit the rate of
 * ICMP errors, and a firewall may send an error, too.
 * @param address numeric, of a UDP link or of a WebSocket server
 */
export async function isAbsent(address: Address): Promise<boolean> {
  const dgram = nodeModule("dgram");
  if (dgram === undefined) return false;
  if (!address.startsWith("udp:")) return isRefused(new URL(address));
  const endpoint = parseUdpAddress(address);
  const ask = async (how: typeof bind): Promise<boolean | undefined> => {
    const socket = dgram.createSocket(endpoint.family === 6 ? "udp6" : "udp4");
    try {
      return await how(socket, endpoint);
    } finally {
      socket.close();
    }
  };
  return (await ask(bind)) ?? (await ask(probe)) ?? false;
}

/** Whether the address is of this machine, and free; undefined: it is of another machine. */
function bind(socket: Socket, { host, port }: UdpEndpoint): Promise<boolean | undefined> {
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

/** Whether a connection to a server is refused. */
async function isRefused({ hostname, port, protocol }: URL): Promise<boolean> {
  const { connect } = nodeModule("net") as typeof import("node:net");
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const socket = connect({ host, port: Number(port || (protocol === "wss:" ? 443 : 80)) });
  let cancel = (): void => {};
  const answer = new Promise<boolean>((resolve) => {
    socket.on("error", ({ code }: Error & { code?: string }) => resolve(code === "ECONNREFUSED"));
    socket.on("connect", () => resolve(false));
    cancel = after(ANSWER_MS, () => resolve(false));
  });
  return answer.finally(() => {
    cancel();
    socket.destroy();
  });
}
