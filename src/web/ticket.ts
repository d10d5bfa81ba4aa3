// Tickets as text. A ticket says where the host listens, and has a secret of its own: the key of one node.
//
//   byte   0  TICKET_FORMAT
//          1  the job's fingerprint, little-endian
//          5  id of the ticket
//         13  its secret
//         45  address of the host, as text
//
// The text is base64url, so that it may stand in the fragment of a page's URL: browsers send no fragment to a server.
import { PamiError, show } from "../core/error.js";
import type { Address } from "../link/link.js";
import { parseWebSocketAddress } from "../link/websocket/websocket-address.js";
import { decodeText, encodeText } from "../support/text.js";

const TICKET_FORMAT = 1;
/** Of tickets for jobs at a NATS server: nats/nats-ticket.ts. */
export const NATS_TICKET_FORMAT = 2;
export const ID_BYTES = 8;
export const SECRET_BYTES = 32;
const JOB_AT = 1;
const ID_AT = 5;
const SECRET_AT = ID_AT + ID_BYTES;
const ADDRESS_AT = SECRET_AT + SECRET_BYTES;
/** Characters of the longest ticket. */
const LENGTH_MAX = 4096;

export interface Ticket {
  readonly job: number;
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
  readonly address: Address;
}

export function ticketText({ job, id, secret, address }: Ticket): string {
  const host = encodeText(address);
  const bytes = new Uint8Array(ADDRESS_AT + host.length);
  bytes[0] = TICKET_FORMAT;
  new DataView(bytes.buffer).setUint32(JOB_AT, job, true);
  bytes.set(id, ID_AT);
  bytes.set(secret, SECRET_AT);
  bytes.set(host, ADDRESS_AT);
  return textOfBytes(bytes);
}

/** Bytes as the text of a ticket. */
export function textOfBytes(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Whether a text that is a ticket is one for a job at a NATS server. */
export function isNatsTicket(text: unknown): text is string {
  return typeof text === "string" && ticketBytes(text)?.[0] === NATS_TICKET_FORMAT;
}

/** @throws PAMIR_TICKET the text is no ticket. The error does not show the text, which may be a secret. */
export function parseTicket(text: unknown): Ticket {
  if (typeof text !== "string") throw new PamiError("PAMIR_INVAL", `ticket of join() is ${show(text)}, not a string`);
  const bytes = ticketBytes(text);
  if (bytes !== undefined && bytes.length > ADDRESS_AT && bytes[0] === TICKET_FORMAT) {
    try {
      return {
        job: new DataView(bytes.buffer).getUint32(JOB_AT, true),
        id: bytes.slice(ID_AT, SECRET_AT),
        secret: bytes.slice(SECRET_AT, ADDRESS_AT),
        address: parseWebSocketAddress(decodeText(bytes.slice(ADDRESS_AT))),
      };
    } catch {}
  }
  throw new PamiError("PAMIR_TICKET", `a text of ${text.length} characters is no ticket of invite(), or a part of one`);
}

/** Undefined: the text is no ticket. */
export function ticketBytes(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length > LENGTH_MAX || !/^[\w-]+$/.test(text)) return undefined;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
