// Tickets for jobs at a NATS server. Such a ticket names the server and the job, and has a secret of its own, by which its issuer
// hands over the job key, once.
//
//   byte   0  NATS_TICKET_FORMAT
//          1  id of the ticket
//          9  its secret
//         41  the job's name, a space, and the address of the server's WebSocket port, with the user that pages are
//
//   pamir.JOB.t.ID           where the issuer listens. ID: in hexadecimal digits
//   pamir.JOB.t.ID.INSTANCE  the page's own subject, for the answers. INSTANCE: 32 random hexadecimal digits
//
//   page → issuer    { use: INSTANCE, point, version }    twice a second, until it is answered
//   issuer → page    { to: INSTANCE, point, key }         or { to: INSTANCE, refused }
//   page → issuer    { use: INSTANCE, task }              it has joined; the issuer answers { to: INSTANCE, task }
//
// All of that is sealed by the secret (SealedMessages), and `key` once more by an exchange of Diffie and Hellman, on P-256 of
// WebCrypto: a ticket that was used does not open messages that were recorded.
import { SealedMessages } from "../../bootstrap/nats/sealed-messages.js";
import { PamiError } from "../../core/error.js";
import { hexOf } from "../../nats/ids.js";
import type { Algorithms } from "../../seal/schedule.js";
import { decodeText, encodeText } from "../../support/text.js";
import { ID_BYTES, NATS_TICKET_FORMAT, SECRET_BYTES, textOfBytes, ticketBytes } from "../ticket.js";

const ID_AT = 1;
const SECRET_AT = ID_AT + ID_BYTES;
const PLACE_AT = SECRET_AT + SECRET_BYTES;
const CURVE = { name: "ECDH", namedCurve: "P-256" };
const SHARED_BITS = 256;

export interface NatsTicket {
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
  readonly job: string;
  /** As `nats` of join(). */
  readonly address: string;
}

/** Why an issuer refuses a ticket. */
export type TicketRefusal = "used" | "expired" | "version";

/** What a page says, and what it is answered. */
export type TicketAsked =
  | { readonly use: string; readonly point: string; readonly version: string; readonly within: number }
  | { readonly use: string; readonly task: number };
export type TicketAnswer = { readonly to: string } & (
  | { readonly point: string; readonly key: string }
  | { readonly refused: TicketRefusal }
  | { readonly task: number }
);

export function natsTicketText({ id, secret, job, address }: NatsTicket): string {
  const place = encodeText(`${job} ${address}`);
  const bytes = new Uint8Array(PLACE_AT + place.length);
  bytes[0] = NATS_TICKET_FORMAT;
  bytes.set(id, ID_AT);
  bytes.set(secret, SECRET_AT);
  bytes.set(place, PLACE_AT);
  return textOfBytes(bytes);
}

/** @throws PAMIR_TICKET the text is a part of a ticket. The error does not show the text, which may be a secret. */
export function parseNatsTicket(text: string): NatsTicket {
  const bytes = ticketBytes(text) ?? new Uint8Array(0);
  const [, job, address] = /^([\w-]{1,64}) (\S+)$/.exec(decodeText(bytes.slice(PLACE_AT))) ?? [];
  if (job !== undefined && address !== undefined)
    return { id: bytes.slice(ID_AT, SECRET_AT), secret: bytes.slice(SECRET_AT, PLACE_AT), job, address };
  throw new PamiError("PAMIR_TICKET", `a text of ${text.length} characters is a part of a ticket`);
}

export const bytesOfHex = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));

/** Where the issuer of a ticket listens. */
export const ticketSubject = ({ job, id }: NatsTicket): string => `pamir.${job}.t.${hexOf(id)}`;

export const ticketMessages = ({ job, secret }: NatsTicket, algorithms: Algorithms): SealedMessages =>
  new SealedMessages(secret, `${job} ticket`, algorithms);

/** One side of the exchange by which a job key is handed over. */
export class KeyExchange {
  readonly #pair: CryptoKeyPair;
  /** This side's point, in hexadecimal digits. */
  readonly point: string;

  private constructor(pair: CryptoKeyPair, point: string) {
    this.#pair = pair;
    this.point = point;
  }

  /** @throws PAMIR_INSECURE this page is not one of https or of this machine, and so has no WebCrypto */
  static async begin(): Promise<KeyExchange> {
    const { subtle } = crypto as Partial<Crypto>;
    if (subtle === undefined)
      throw new PamiError(
        "PAMIR_INSECURE",
        "join(): a ticket for a NATS server takes a page of https:, or of localhost",
      );
    const pair = await subtle.generateKey(CURVE, false, ["deriveBits"]);
    return new KeyExchange(pair, hexOf(new Uint8Array(await subtle.exportKey("raw", pair.publicKey))));
  }

  /**
   * Messages that only the two sides of the exchange open.
   * @param point of the other side @throws DOMException it is none
   */
  async messages({ job, secret }: NatsTicket, point: string, algorithms: Algorithms): Promise<SealedMessages> {
    const { subtle } = crypto;
    const other = await subtle.importKey("raw", bytesOfHex(point), CURVE, false, []);
    const shared = await subtle.deriveBits({ name: "ECDH", public: other }, this.#pair.privateKey, SHARED_BITS);
    const both = new Uint8Array([...secret, ...new Uint8Array(shared)]);
    return new SealedMessages(both, `${job} ticket key`, algorithms);
  }
}
