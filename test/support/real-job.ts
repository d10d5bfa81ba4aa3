// A job whose nodes are on this thread, with sockets, sessions and time that are real.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import type { Address, Link } from "../../src/link/link.js";
import { formatUdpAddress, parseUdpAddress } from "../../src/link/udp/udp-address.js";
import { openUdpLink, type UdpLinkOptions } from "../../src/link/udp/udp-link.js";
import { type OpenWebSocketOptions, openWebSocketLink } from "../../src/link/websocket/websocket-server.js";
import { LinkHost } from "../../src/start/node/link-host.js";
import type { LinkNodeHost } from "../../src/start/node/link-node.js";
import { NetworkedJob, type NetworkedOptions, type Wire } from "./networked.js";

/** Links of as many nodes, and the addresses by which they know each other. */
export type OpenLinks = (nodes: number) => Promise<readonly OpenLink[]>;

interface OpenLink {
  readonly link: Link;
  /** Undefined: the node is mobile. */
  readonly address: Address | undefined;
}

export interface WireOptions {
  readonly around?: ((link: Link) => Link) | undefined;
  /** How fast the time of nodes is: of 20, a node is given up after half a second. */
  readonly speed?: number | undefined;
}

/** @param links by node; the last is for all further ones, too @param host as addresses have it */
export function udpLinks(links: readonly UdpLinkOptions[] = [], host = "127.0.0.1"): OpenLinks {
  return (nodes) =>
    Promise.all(
      Array.from({ length: nodes }, async (_, node) => {
        const link = await openUdpLink(`udp:${host}:0`, links[node] ?? links.at(-1));
        return { link, address: link.address };
      }),
    );
}

/** Each node has a server. */
export function webSocketLinks(options: OpenWebSocketOptions = {}): OpenLinks {
  return async (nodes) => {
    const addresses: Address[] = [];
    const isNode = (address: Address): boolean => addresses.includes(address);
    const links = await Promise.all(
      Array.from({ length: nodes }, () => openWebSocketLink({ ...options, listen: "ws://127.0.0.1:0/", isNode })),
    );
    addresses.push(...links.map(({ address }) => address as Address));
    return links.map((link) => ({ link, address: link.address as Address }));
  };
}

/** Node 0 has a server, and the others connect to it. */
export function webSocketStar(): OpenLinks {
  return async (nodes) => {
    const server = await openWebSocketLink({ listen: "ws://127.0.0.1:0/" });
    const clients = await Promise.all(Array.from({ length: nodes - 1 }, () => openWebSocketLink()));
    return [server, ...clients].map((link) => ({ link, address: link.address }));
  };
}

/** Two nodes, the second of which is behind a NAT: a socket for its side, and one for that of the first node. */
export interface Translated {
  readonly open: OpenLinks;
  /** The NAT takes another port, and what comes to the old one is lost. */
  rebind(): Promise<void>;
  close(): void;
}

async function boundSocket(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

export function translatedLinks(): Translated {
  let inside: Socket | undefined;
  let outside: Socket | undefined;
  let isClosed = false;
  /** Ports of the nodes. */
  let ports: readonly number[] = [];
  const rebind = async (): Promise<void> => {
    const socket = await boundSocket();
    outside?.close();
    if (isClosed) socket.close();
    else outside = socket.on("message", (packet) => inside?.send(packet, ports[1], "127.0.0.1"));
  };
  const open: OpenLinks = async () => {
    const links = [await openUdpLink("udp:127.0.0.1:0"), await openUdpLink("udp:127.0.0.1:0")];
    ports = links.map(({ address }) => parseUdpAddress(address).port);
    inside = (await boundSocket()).on("message", (packet) => outside?.send(packet, ports[0], "127.0.0.1"));
    await rebind();
    const addresses = [inside, outside].map((socket) => formatUdpAddress("127.0.0.1", socket?.address().port ?? 0));
    return links.map((link, node) => ({ link, address: addresses[node] }));
  };
  const close = (): void => {
    isClosed = true;
    inside?.close();
    outside?.close();
    inside = outside = undefined;
  };
  return { open, rebind, close };
}

export interface RealWire extends Wire {
  /** Without what is around them. */
  readonly sockets: readonly Link[];
  close(): void;
}

export async function realWire(nodes: number, open: OpenLinks, options: WireOptions = {}): Promise<RealWire> {
  const { around = (link) => link, speed = 1 } = options;
  const links = await open(nodes);
  const sockets = links.map(({ link }) => link);
  const hosts = links.map(() => new LinkHost());
  const faster = (one: LinkHost): LinkNodeHost => ({
    now: () => one.now() * speed,
    at: (microseconds, call) => one.at(microseconds / speed, call),
    random: () => one.random(),
  });
  return {
    sockets,
    links: sockets.map(around),
    addresses: links.map(({ address }) => address),
    hosts: hosts.map(faster),
    close: () => {
      for (const one of sockets) one.close();
      for (const one of hosts) one.close();
    },
  };
}

export interface RealJobOptions extends Omit<NetworkedOptions, "wire">, WireOptions {
  readonly open: OpenLinks;
}

export interface RealJob {
  readonly job: NetworkedJob;
  readonly wire: RealWire;
  close(): void;
}

export async function realJob(options: RealJobOptions): Promise<RealJob> {
  const { limits, tasksPerNode = 1, open } = options;
  const wire = await realWire(Math.ceil((limits.jobTasks ?? limits.tasks) / tasksPerNode), open, options);
  const job = new NetworkedJob({ ...options, wire });
  const close = (): void => {
    for (const { node } of job.tasks) node.close();
    wire.close();
  };
  return { job, wire, close };
}
