// A job whose nodes are on this thread, with sockets, sessions and time that are real.
import { LinkHost } from "../../src/launch/link-host.js";
import type { LinkNodeHost } from "../../src/launch/link-node.js";
import type { Link } from "../../src/link/link.js";
import { openUdpLink, type UdpLink, type UdpLinkOptions } from "../../src/link/udp-link.js";
import { NetworkedJob, type NetworkedOptions, type Wire } from "./networked.js";

export interface UdpWireOptions {
  /** As addresses have it (default 127.0.0.1). */
  readonly host?: string | undefined;
  /** By node; the last is for all further ones, too. */
  readonly links?: readonly UdpLinkOptions[] | undefined;
  readonly around?: ((link: Link) => Link) | undefined;
  /** How fast the time of nodes is: of 20, a node is given up after half a second. */
  readonly speed?: number | undefined;
}

export interface UdpWire extends Wire {
  readonly sockets: readonly UdpLink[];
  close(): void;
}

export async function udpWire(nodes: number, options: UdpWireOptions): Promise<UdpWire> {
  const { host = "127.0.0.1", around = (link) => link, speed = 1 } = options;
  const numbers = Array.from({ length: nodes }, (_, node) => node);
  const sockets = await Promise.all(
    numbers.map((node) => openUdpLink(`udp:${host}:0`, options.links?.[node] ?? options.links?.at(-1))),
  );
  const hosts = numbers.map(() => new LinkHost());
  const faster = (one: LinkHost): LinkNodeHost => ({
    now: () => one.now() * speed,
    at: (microseconds, call) => one.at(microseconds / speed, call),
    random: () => one.random(),
  });
  return {
    sockets,
    links: sockets.map(around),
    addresses: sockets.map(({ address }) => address),
    hosts: hosts.map(faster),
    close: () => {
      for (const one of sockets) one.close();
      for (const one of hosts) one.close();
    },
  };
}

export interface UdpJobOptions extends Omit<NetworkedOptions, "wire">, UdpWireOptions {}

export interface UdpJob {
  readonly job: NetworkedJob;
  readonly links: readonly UdpLink[];
  close(): void;
}

export async function udpJob(options: UdpJobOptions): Promise<UdpJob> {
  const { limits, tasksPerNode = 1 } = options;
  const wire = await udpWire(Math.ceil((limits.jobTasks ?? limits.tasks) / tasksPerNode), options);
  const job = new NetworkedJob({ ...options, wire });
  const close = (): void => {
    for (const { node } of job.tasks) node.close();
    wire.close();
  };
  return { job, links: wire.sockets, close };
}
