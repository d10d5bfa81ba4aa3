// Asks the system whether a node's socket is gone. At an address of this machine, a UDP socket can be bound only if no other
// one is there. From elsewhere, a datagram to a port without a socket brings back an ICMP error (RFC 1122, section 4.1.3.3),
// which the system reports to a connected socket. A TCP connection to a port without a server is refused.
import type { Socket } from "node:dgram";
import { nodeModule } from "../support/host.js";
import { after } from "../support/timers.js";
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
  const here = await isAbsentHere(address);
  if (here !== undefined || !isPlace(address)) return here ?? false;
  return isUdp(address) ? ((await withSocket(address, probe)) ?? false) : isRefused(serverOf(address));
}

/**
 * Whether an address is of this machine, and no socket is there, which cannot be forged. Undefined: the address is of another
 * machine, or names a connection, or the host has no sockets.
 */
export async function isAbsentHere(address: Address): Promise<boolean | undefined> {
  if (!isPlace(address)) return undefined;
  return isUdp(address) ? withSocket(address, bind) : isFree(serverOf(address));
}

/** Whether this host can look at an address: that of a connection to a WebSocket server (`ws-peer:…`) is none. */
function isPlace(address: Address): boolean {
  return /^(udp|wss?):/.test(address) && nodeModule("dgram") !== undefined;
}

function isUdp(address: Address): boolean {
  return address.startsWith("udp:");
}

async function withSocket(address: Address, ask: typeof bind): Promise<boolean | undefined> {
  const endpoint = parseUdpAddress(address);
  const { createSocket } = nodeModule("dgram") as typeof import("node:dgram");
  const socket = createSocket(endpoint.family === 6 ? "udp6" : "udp4");
  try {
    return await ask(socket, endpoint);
  } finally {
    socket.close();
  }
}

/** Where a WebSocket server is. */
interface ServerPlace {
  readonly host: string;
  readonly port: number;
}

function serverOf(address: Address): ServerPlace {
  const { hostname, port, protocol } = new URL(address);
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port || (protocol === "wss:" ? 443 : 80)) };
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

/** As bind(), for a server. */
function isFree(place: ServerPlace): Promise<boolean | undefined> {
  const { createServer } = nodeModule("net") as typeof import("node:net");
  const server = createServer();
  return new Promise((resolve) => {
    server.on("error", ({ code }: Error & { code?: string }) => resolve(code === "EADDRINUSE" ? false : undefined));
    server.listen({ ...place, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Whether a connection to a server is refused. */
async function isRefused(place: ServerPlace): Promise<boolean> {
  const { connect } = nodeModule("net") as typeof import("node:net");
  const socket = connect(place);
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
