// Addresses of the link `nats`: subjects. The last part tells processes of one node apart, and says where the node's UDP socket is.
//
//   pamir.JOB.n.NODE.PLACE      PLACE: 16 hexadecimal digits, which are the node's secret for UDP; then "-" and the socket's
//                               host and port in hexadecimal digits of their ASCII, if there is one
import type { Address } from "../link.js";

export const SECRET_BYTES = 8;
const PATTERN = /^pamir\.([\w-]{1,64})\.n\.\d{1,10}\.([\da-f]{16})(?:-([\da-f]{2,200}))?$/;

/** What an address says of a node. */
export interface NatsAddress {
  readonly job: string;
  readonly secret: Uint8Array;
  /** The address of its UDP socket; undefined: it has none. */
  readonly udp: Address | undefined;
}

/** @param secret of SECRET_BYTES @param udp the address of the node's UDP socket, if it has one */
export function formatNatsAddress(job: string, node: number, secret: Uint8Array, udp?: Address): Address {
  return `pamir.${job}.n.${node}.${hex(secret)}${udp === undefined ? "" : `-${hex(new TextEncoder().encode(udp))}`}`;
}

/** Undefined: it is no such address. */
export function parseNatsAddress(address: Address): NatsAddress | undefined {
  const [, job, secret, udp] = PATTERN.exec(address) ?? [];
  if (job === undefined || secret === undefined || (udp !== undefined && udp.length % 2 !== 0)) return undefined;
  return { job, secret: bytesOf(secret), udp: udp && new TextDecoder().decode(bytesOf(udp)) };
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}
