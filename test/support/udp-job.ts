// A job whose nodes are on this thread, with sockets, sessions and time that are real.
import { LinkHost } from "../../src/launch/link-host.js";
import type { LinkNodeHost } from "../../src/launch/link-node.js";
import type { Link } from "../../src/link/link.js";
import { openUdpLink, type UdpLink, type UdpLinkOptions } from "../../src/link/udp-link.js";
import { NetworkedJob, type NetworkedOptions, type Wire } from "./networked.js";

export interface UdpJobOptions extends Omit<NetworkedOptions, "wire"> {
  /** As addresses have it (default 127.0.0.1). */
  readonly host?: string;
  /** By node; the last is for all further ones, too. */
  readonly links?: readonly UdpLinkOptions[];
  readonly around?: (link: Link) => Link;
  /** How fast the time of nodes is: of 20, a node is given up after half a second. */
  readonly speed?: number;
}

export interface UdpJob {
  readonly job: NetworkedJob;
  readonly links: readonly UdpLink[];
  close(): void;
}

export async function udpJob(options: UdpJobOptions): Promise<UdpJob> {
  const { limits, tasksPerNode = 1, host = "127.0.0.1", around = (link) => link, speed = 1 } = options;
  const nodes = Math.ceil((limits.jobTasks ?? limits.tasks) / tasksPerNode);
  const numbers = Array.from({ length: nodes }, (_, node) => node);
  const links = await Promise.all(
    numbers.map((node) => openUdpLink(`udp:${host}:0`, options.links?.[node] ?? options.links?.at(-1))),
  );
  const hosts = numbers.map(() => new LinkHost());
  const faster = (one: LinkHost): LinkNodeHost => ({
    now: () => one.now() * speed,
    at: (microseconds, call) => one.at(microseconds / speed, call),
    random: () => one.random(),
  });
  const wire: Wire = {
    links: links.map(around),
    addresses: links.map(({ address }) => address),
    hosts: hosts.map(faster),
  };
  const job = new NetworkedJob({ ...options, wire });
  return {
    job,
    links,
    close: () => {
      for (const { node } of job.tasks) node.close();
      for (const one of hosts) one.close();
    },
  };
}
