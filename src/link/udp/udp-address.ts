// Addresses of UDP sockets as text: `udp:HOST:PORT`, an IPv6 address in brackets. Sessions compare addresses as strings, so
// each socket has one canonical address: numeric, in the form that the system reports.
import { PamiError, show } from "../../core/error.js";
import type { Address } from "../link.js";

export interface UdpEndpoint {
  /** A canonical IP address, or a host name in lower case. */
  readonly host: string;
  /** 0 only for a socket whose port the system is to choose. */
  readonly port: number;
  /** 0: `host` is a name. */
  readonly family: 0 | 4 | 6;
}

const PORT_MAX = 65535;
/** Octets of a host name, and of a label in it (RFC 1035, section 2.3.4). */
const NAME_MAX = 253;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
/** The interface of a link-local address (RFC 4007, section 11). */
const ZONE = /^[\w.:-]{1,63}$/;

/**
 * Reads an address. @param portMin 0 for a socket to be opened
 * @throws PAMIR_INVAL the text is no address of this kind
 */
export function parseUdpAddress(text: string, portMin: 0 | 1 = 1): UdpEndpoint {
  const match = typeof text === "string" ? /^udp:(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) : null;
  if (match === null) throw refused(text, "udp:HOST:PORT, with an IPv6 address in brackets");
  const [, inBrackets, plain, digits] = match;
  const port = Number(digits);
  if (port < portMin || port > PORT_MAX || String(port) !== digits)
    throw refused(text, `an address with a port from ${portMin} to ${PORT_MAX}`);
  if (inBrackets !== undefined) {
    const host = canonicalIpv6(inBrackets);
    if (host === undefined) throw refused(text, "an address with an IPv6 address in its brackets");
    return { host, port, family: host.includes(":") ? 6 : 4 };
  }
  const host = (plain as string).toLowerCase();
  if (ipv4Words(host) !== undefined) return { host, port, family: 4 };
  const isName =
    host.length <= NAME_MAX && host.split(".").every((label) => LABEL.test(label)) && !/^[\d.]+$/.test(host);
  if (!isName) throw refused(text, "an address with an IPv4 address or a host name");
  return { host, port, family: 0 };
}

function refused(text: unknown, wanted: string): PamiError {
  // What is printed has a bound: the text may come from anywhere.
  const shown = typeof text === "string" && text.length > 300 ? `${show(text.slice(0, 300))}…` : show(text);
  return new PamiError("PAMIR_INVAL", `a UDP address is ${shown}, not ${wanted}`);
}

/** The address of a socket. @param host an IP address as the system reports it, or a host name */
export function formatUdpAddress(host: string, port: number): Address {
  if (!host.includes(":")) return `udp:${host}:${port}`;
  // Systems report some IPv6 addresses with an IPv4 address at the end. IPv4 peers of an IPv6 socket are among them.
  const canonical = host.includes(".") || host.includes("%") ? (canonicalIpv6(host) ?? host) : host;
  return canonical.includes(":") ? `udp:[${canonical}]:${port}` : `udp:${canonical}:${port}`;
}

/** Whether packets to a host stay on this machine. */
export function isLoopback(host: string): boolean {
  return host === "::1" || /^127\./.test(host);
}

/** The two halves of an IPv4 address; undefined: the text is none. Leading zeros are refused: some systems read octal. */
function ipv4Words(text: string): [number, number] | undefined {
  const octets = text.split(".").map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) ? Number(part) : 256));
  if (octets.length !== 4 || octets.some((octet) => octet > 255)) return undefined;
  const [a, b, c, d] = octets as [number, number, number, number];
  return [a * 256 + b, c * 256 + d];
}

/**
 * The form of RFC 5952, with the zone if there is one. An IPv4-mapped address (::ffff:0:0/96) gives the IPv4 address.
 * @returns undefined: the text is no IPv6 address
 */
export function canonicalIpv6(text: string): string | undefined {
  const [address, zone, ...more] = text.split("%");
  if (more.length > 0 || (zone !== undefined && !ZONE.test(zone))) return undefined;
  const halves = (address as string).split("::");
  const groups = halves.map((half, i) => groupsOf(half, i === halves.length - 1));
  const [head, tail] = groups;
  if (halves.length > 2 || head === undefined || groups.includes(undefined)) return undefined;
  const given = head.length + (tail?.length ?? 0);
  // "::" stands for at least one group.
  if (halves.length === 1 ? given !== 8 : given > 7) return undefined;
  const words = [...head, ...Array<number>(8 - given).fill(0), ...(tail ?? [])];
  if (words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff) {
    if (zone !== undefined) return undefined;
    const [high, low] = words.slice(6) as [number, number];
    return `${high >>> 8}.${high & 255}.${low >>> 8}.${low & 255}`;
  }
  // The first of the longest runs of zeros is left out, if it has two groups or more.
  let [first, length] = [-1, 1];
  for (let at = 0; at < 8; at++) {
    let end = at;
    while (words[end] === 0) end++;
    if (end - at > length) [first, length] = [at, end - at];
  }
  const hex = words.map((word) => word.toString(16));
  const shown =
    first === -1 ? hex.join(":") : `${hex.slice(0, first).join(":")}::${hex.slice(first + length).join(":")}`;
  return zone === undefined ? shown : `${shown}%${zone}`;
}

/** The groups of one side of "::". @param isLast whether it may end with an IPv4 address */
function groupsOf(text: string, isLast: boolean): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    const quad = isLast && i === parts.length - 1 ? ipv4Words(part) : undefined;
    if (quad !== undefined) groups.push(...quad);
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}
