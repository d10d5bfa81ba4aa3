// The kinds of links between nodes: a row for each, and that of the module that a process's user names. Rows are small: the
// code of a link is loaded when a node opens it.
import { PACKET_BYTES_MAX } from "../../assembly/layout.js";
import { PamiError, show } from "../core/error.js";
import { natsVariables } from "../nats/variables.js";
import { environment, nodeModule } from "../support/host.js";
import { findPackage } from "../support/node/packages.js";
import type { HostedOpening, LinkKind, LinkOpening, NodeLink } from "./kind.js";
import { PACKET_BYTES_MIN } from "./link.js";

/** The kinds of this package. The first one is the default. */
const BUILT_IN: readonly [LinkKind, ...LinkKind[]] = [
  {
    name: "udp",
    title: "UDP",
    mayRest: true,
    measures: { ways: ["sealed", "open", "inline", "lossy"], beside: ["dgram", "tcp"] },
    bind: ({ host, port }) => `udp:${host}:${port}`,
    open: async (bind, opening: HostedOpening) => (await import("./udp/udp.js")).openUdp(bind, opening),
    isAbsent: async (address, scope) => (await import("./udp/udp.js")).isUdpAbsent(address, scope),
    whyUnreachable(own, other) {
      const [ours, theirs] = [own, other].map((address) => address.startsWith("udp:["));
      if (ours === theirs) return undefined;
      return "UDP does not go between IPv4 and IPv6: PAMIR_BIND_HOST names another address of a machine";
    },
  },
  {
    name: "websocket",
    title: "WebSockets",
    needs: ["ws"],
    measures: { ways: ["sealed", "open"], beside: ["ws"] },
    bind: ({ host, port }) => `ws://${host}:${port}/`,
    open: async (bind, opening) => (await import("./websocket/websocket.js")).openWebSocket(bind, opening),
    isAbsent: async (address, scope) => (await import("./websocket/websocket.js")).isServerAbsent(address, scope),
  },
  {
    name: "nats",
    title: "NATS",
    needs: ["@nats-io/transport-node"],
    mayRest: true,
    measures: { ways: ["sealed", "open", "inline"], beside: [] },
    bind: ({ host, port, node }) => JSON.stringify({ ...natsVariables(), node, ...directOf(host, port) }),
    open: async (bind, opening: HostedOpening) => (await import("./nats/nats.js")).openNats(bind, opening),
    isAbsent: async (address, scope) => (await import("./nats/nats.js")).isNatsAbsent(address, scope),
  },
];

/** Where a node of the link `nats` has a UDP socket, for the nodes that reach it. */
function directOf(host: string, port: number): { readonly udp?: string } {
  return environment("PAMIR_NATS_DIRECT") === "0" ? {} : { udp: `udp:${host}:${port}` };
}

export const DEFAULT_LINK: string = BUILT_IN[0].name;
/** Packages that the links of this package need. */
export const LINK_PACKAGES: readonly string[] = [...new Set(BUILT_IN.flatMap(({ needs = [] }) => needs))];
/** The links of this package, as help says them: each with the packages that it needs. */
export const LINKS_TEXT: string = BUILT_IN.map(({ name, needs = [] }) => {
  const said = [
    ...(name === DEFAULT_LINK ? ["default"] : []),
    ...(needs.length > 0 ? [`with the package ${needs.join(" and ")}`] : []),
  ];
  return said.length === 0 ? name : `${name} (${said.join(", ")})`;
}).join(", ");

/** The kinds that a process may name. */
export type LinkKinds = readonly LinkKind[];

/** The module of this process's own kind: a path. @throws PAMIR_LINK_MODULE */
export function linkModule(given: string | undefined = environment("PAMIR_LINK_MODULE")): string | undefined {
  if (given === undefined || given === "") return undefined;
  if (/^([\\/]|[a-z]:[\\/])/i.test(given)) return given;
  const isName = /^(@[\w.-]+\/)?\w[\w.-]*(\/[\w.-]+)*$/.test(given);
  const found = isName ? findPackage(given) : undefined;
  if (found !== undefined) return found;
  throw refused(
    given,
    isName ? "a package that is not installed" : "neither an absolute path nor the name of a package",
  );
}

/**
 * The kinds of this package, and that of a module of the user's own. A peer never names the module: each process takes its own.
 * @param module of linkModule() @throws PAMIR_LINK_MODULE
 */
export async function linkKinds(module?: string): Promise<LinkKinds> {
  return module === undefined ? BUILT_IN : [...BUILT_IN, await load(module)];
}

async function load(module: string): Promise<LinkKind> {
  const { pathToFileURL } = nodeModule("url") as typeof import("node:url");
  const url = pathToFileURL(module).href;
  let found: { readonly default?: LinkKind };
  try {
    found = (await import(/* webpackIgnore: true */ /* @vite-ignore */ url)) as typeof found;
  } catch (cause) {
    const [line] = String((cause as Error)?.message ?? cause).split("\n");
    throw refused(module, `a module that does not load: ${line}`, cause);
  }
  const { default: kind } = found;
  const why = whyNoKind(kind);
  if (why !== undefined) throw refused(module, `a module ${why}`);
  return kind as LinkKind;
}

function whyNoKind(kind: Partial<LinkKind> | null | undefined): string | undefined {
  if (typeof kind !== "object" || kind === null) return `whose default export is ${show(kind)}, not an object`;
  const { name, needs = [], packetBytesMax = PACKET_BYTES_MAX } = kind;
  if (typeof name !== "string" || !/^[a-z][a-z\d-]{0,31}$/.test(name))
    return `whose name is ${show(name)}, not 1 to 32 lower-case letters, digits and hyphens`;
  if (BUILT_IN.some((one) => one.name === name)) return `whose name is ${show(name)}, that of a link of this package`;
  for (const method of ["bind", "open"] as const)
    if (typeof kind[method] !== "function") return `whose ${method} is ${show(kind[method])}, not a function`;
  if (!Array.isArray(needs) || needs.some((one) => typeof one !== "string"))
    return `whose needs is ${show(needs)}, not an array of names of packages`;
  const isSize = Number.isInteger(packetBytesMax) && packetBytesMax >= PACKET_BYTES_MIN;
  if (isSize && packetBytesMax <= PACKET_BYTES_MAX) return undefined;
  return `whose packetBytesMax is ${show(packetBytesMax)}, not from ${PACKET_BYTES_MIN} to ${PACKET_BYTES_MAX}`;
}

function refused(module: string, why: string, cause?: unknown): PamiError {
  return new PamiError("PAMIR_LINK_MODULE", `PAMIR_LINK_MODULE is ${show(module)}, ${why}`, { cause });
}

/** The option that names a link, unless it is one of launch(). */
const OPTION = "link of PAMIR_OPTIONS";

/** The kind of a name. @param option that has the name @throws PAMIR_INVAL there is none */
export function linkKindOf(kinds: LinkKinds, name: string = DEFAULT_LINK, option: string = OPTION): LinkKind {
  const found = kinds.find((kind) => kind.name === name);
  if (found !== undefined) return found;
  const names = kinds.map((kind) => show(kind.name)).join(" or ");
  const advice = "PAMIR_LINK_MODULE names the module of another link, in each process";
  throw new PamiError("PAMIR_INVAL", `${option} is ${show(name)}, not ${names}: ${advice}`);
}

/** Paths of the packages that a kind needs. @param option that names the kind @throws PAMIR_ADDRESS one is not installed */
export function packagesOf({ name, needs = [] }: LinkKind, option: string = OPTION): Record<string, string> {
  const entries = needs.map((one) => {
    const path = findPackage(one);
    if (path !== undefined) return [one, path] as const;
    const why = `the package ${one} is not installed (npm install ${one})`;
    throw new PamiError("PAMIR_ADDRESS", `${option} is ${show(name)}, but ${why}`);
  });
  return Object.fromEntries(entries);
}

/** Opens the link of a node. @throws PAMIR_ADDRESS, PAMIR_INVAL; PAMIR_LINK_MODULE what a kind of the user's gives is no link */
export async function openNodeLink(kind: LinkKind, bind: string, opening: LinkOpening): Promise<NodeLink> {
  let link: NodeLink;
  try {
    link = await kind.open(bind, opening);
  } catch (error) {
    if ((error as PamiError)?.code?.startsWith?.("PAMIR_")) throw error;
    const [line] = String((error as Error)?.message ?? error).split("\n");
    throw new PamiError("PAMIR_ADDRESS", `link ${show(kind.name)} does not open at ${bind}: ${line}`, { cause: error });
  }
  const why = whyNoLink(link, kind);
  if (why === undefined) return link;
  throw new PamiError("PAMIR_LINK_MODULE", `open() of link ${show(kind.name)} has given a link ${why}`);
}

function whyNoLink(link: NodeLink, { mayRest = false }: LinkKind): string | undefined {
  const { address, packetBytes } = link ?? {};
  if (typeof address !== "string" || address === "") return `whose address is ${show(address)}, not a text`;
  const isSize = Number.isInteger(packetBytes) && packetBytes % 4 === 0;
  if (!isSize || packetBytes < PACKET_BYTES_MIN || packetBytes > PACKET_BYTES_MAX)
    return `whose packetBytes is ${show(packetBytes)}, not a multiple of 4 from ${PACKET_BYTES_MIN} to ${PACKET_BYTES_MAX}`;
  const methods = ["send", "close", ...(mayRest ? (["ref", "unref"] as const) : [])] as const;
  const missing = methods.find((method) => typeof link[method] !== "function");
  return missing && `whose ${missing} is ${show(link[missing])}, not a function`;
}
