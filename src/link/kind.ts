// What a job of nodes knows of a kind of link: a row of registry.ts, or the default export of a module of the user's own
// (docs/own-link.md). Nothing but the row knows the link's name, its addresses and its packages.
import type { CLibrary } from "../support/node/foreign.js";
import type { Address, Link } from "./link.js";

/** A link that other nodes reach at an address. */
export interface NodeLink extends Link {
  /** Where others send to. Packets of this node come from the same text. */
  readonly address: Address;
}

/** Where the node of a process is to be reached. */
export interface LinkPlace {
  /** An IP address or a name of this machine, IPv6 in brackets: loopback if all nodes are here. */
  readonly host: string;
  /** 0: the system chooses. */
  readonly port: number;
  /** Number of the node in its job. */
  readonly node: number;
}

/** What a link is opened with. */
export interface LinkOpening {
  /** Bytes of the largest packet, a multiple of 4; undefined: the link's default. */
  readonly packetBytes: number | undefined;
  /** By name: paths of the packages that the kind needs. */
  readonly packages: Readonly<Record<string, string>>;
  /** Whether an address is that of a node of the job. It is false for all of them until these are known. */
  isNode(address: Address): boolean;
}

/** What the links of this package get besides. */
export interface HostedOpening extends LinkOpening {
  /** Makes foreign calls; undefined: koffi is not installed, or can't be loaded. */
  library(): CLibrary | undefined;
  /** Tells people, while the link is open, what they can help against. */
  warn(text: string): void;
}

/**
 * `here`: the address is one of this machine, and free; no other program can forge that. `anywhere`: also hints of other
 * machines, which may be wrong.
 */
export type AbsenceScope = "here" | "anywhere";

/** How a link is measured: with a job key, without one, with inline agents, and with lost packets. */
export type LinkWay = "sealed" | "open" | "inline" | "lossy";

/** A kind of link between the nodes of a job. */
export interface LinkKind {
  /** As the option `link` names it: lower-case letters, digits and hyphens. */
  readonly name: string;
  /** As sentences name it (default: `name`). */
  readonly title?: string | undefined;
  /** Packages that it needs, which the user installs. */
  readonly needs?: readonly string[] | undefined;
  /** Bytes of the largest packet that it can be configured for (default 65,504). */
  readonly packetBytesMax?: number | undefined;
  /** Whether its links have `ref()` and `unref()`: agents on the task's thread need them (default false). */
  readonly mayRest?: boolean | undefined;
  /** What `pamir perf` measures (default: sealed and open), and the bare systems beside it. */
  readonly measures?: { readonly ways: readonly LinkWay[]; readonly beside: readonly string[] } | undefined;
  /** The text that open() takes. Called in the process of the node. */
  bind(place: LinkPlace): string;
  /** Opens the link of a node. Called on the thread of the node's agent. @throws what attach() is to reject with */
  open(bind: string, opening: LinkOpening): Promise<NodeLink>;
  /** Whether the system reports that no link is at an address. Without it, only silence tells that a node is gone. */
  isAbsent?(address: Address, scope: AbsenceScope): Promise<boolean>;
  /** Why no packet goes from one address to another, and what helps. Undefined: nothing is known against it. */
  whyUnreachable?(own: Address, other: Address): string | undefined;
}

/** How packets go to an address now. */
export interface PacketWay {
  /** As texts name it. */
  readonly by: string;
  /** Where they go first: an address, or a server. */
  readonly at: string;
  /** Since when they go so, by the system's clock. */
  readonly since: number;
}

/** Packets that have gone by a way. */
export interface WayTraffic {
  readonly by: string;
  /** The server through which all of them go. */
  readonly at?: string | undefined;
  readonly sent: number;
  readonly received: number;
  /** How often the way was lost, and packets went by another one, or by a new connection. */
  readonly breaks: number;
}

/** What a link has that has several ways. */
export interface LinkWays {
  /** How packets go to an address now; undefined: none have gone there. */
  wayTo(to: Address): PacketWay | undefined;
  readonly traffic: readonly WayTraffic[];
}
