// What a page and its host say on a connection. A handshake makes the keys of each connection from the ticket's secret and
// from random numbers of both sides. All packets behind it are sealed, so the packets of sessions need no seal of their own.
//
//   page ─► HELLO     id of the ticket, nonce of the page, authenticated by the ticket's secret
//        ◄─ WELCOME   the same nonce, nonce of the host, authenticated; or REFUSED: it says why, to a page without the key
//   page ─► CONTROL   Confirmation: proves that HELLO was no replay, and names the page's instance
//        ◄─ CONTROL   Admission: the number of the node, and what it has to know; or a sealed refusal
//   page ◄─► DATA     packets of sessions, and more CONTROL
//
// A packet of 8 bytes of head, a body and a tag:
//
//   byte  0  kind
//         1  WEB_VERSION
//         2  u16: the node that a DATA packet of a page is for, or from which one to a page comes
//         4  u32: a number that grows with each packet of the connection, and is the nonce of its seal
//
// Connections keep order, so a number that has not grown is a replay, and is dropped.
import { TAG_BYTES } from "../../assembly/layout.js";
import type { Seal } from "../session/wire/key-schedule.js";
import { decodeText, encodeText } from "../support/text.js";
import { ID_BYTES } from "./ticket.js";

export const WEB_VERSION = 1;
export const HELLO = 1;
export const WELCOME = 2;
export const REFUSED = 3;
export const DATA = 4;
export const CONTROL = 5;

export const HEAD_BYTES = 8;
/** Bytes that a sealed packet has besides its body. */
export const SEALED_BYTES = HEAD_BYTES + TAG_BYTES;
export const NONCE_BYTES = 16;
/** Of HELLO, with zeros at its end: no answer to it is longer. */
const HELLO_BYTES = 64;
const HELLO_NONCE_AT = HEAD_BYTES + ID_BYTES;
const WELCOME_BYTES = HEAD_BYTES + 2 * NONCE_BYTES + TAG_BYTES;
const REFUSED_BYTES = HEAD_BYTES + NONCE_BYTES;

/** Why a page is refused, as a stable word. */
export type Refusal = "unknown" | "used" | "expired" | "version" | "ended";
/** The refusals that a page without the key may get; REFUSED has the index in its third byte. */
const OPEN_REFUSALS = ["unknown", "version"] as const;

/** The state of the job that pages are told. */
export interface JobState {
  /** It grows with each change. */
  readonly serial: number;
  /** Tasks that the job has had so far. */
  readonly started: number;
  /** Nodes that have ended. The host's number, 0, says that its task has left; its process still passes packets on. */
  readonly ended: readonly number[];
}
/** What an admitted page has to know. */
export interface Admission {
  readonly node: number;
  readonly nodes: number;
  /** Options of all nodes' memories. */
  readonly options: object;
  /** Milliseconds. */
  readonly silence: number;
  readonly state: JobState;
}
export type FromHost =
  | { readonly admitted: Admission }
  | { readonly refused: Refusal }
  | { readonly state: JobState }
  /** The host ends the job. */
  | { readonly over: true };
export type FromPage =
  | { readonly confirm: string; readonly layout: number; readonly version: string }
  /** The latest state that the page knows, by its serial. */
  | { readonly known: number }
  /** The page's task has left. */
  | { readonly left: true };

function packet(kind: number, bytes: number): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(bytes);
  made[0] = kind;
  made[1] = WEB_VERSION;
  return made;
}

export function hello(id: Uint8Array, nonce: Uint8Array, seal: Seal): Uint8Array {
  const made = packet(HELLO, HELLO_BYTES);
  made.set(id, HEAD_BYTES);
  made.set(nonce, HELLO_NONCE_AT);
  seal.seal(made, HEAD_BYTES, 0);
  return made;
}

/** The parts of a HELLO that are read before it is known to be right. Undefined: it is none. */
export function readHello(bytes: Uint8Array): { version: number; id: Uint8Array; nonce: Uint8Array } | undefined {
  if (bytes.length !== HELLO_BYTES) return undefined;
  const id = new Uint8Array(bytes.subarray(HEAD_BYTES, HELLO_NONCE_AT));
  const nonce = new Uint8Array(bytes.subarray(HELLO_NONCE_AT, HELLO_NONCE_AT + NONCE_BYTES));
  return { version: bytes[1] as number, id, nonce };
}

export function welcome(theirs: Uint8Array, own: Uint8Array, seal: Seal): Uint8Array {
  const made = packet(WELCOME, WELCOME_BYTES);
  made.set(theirs, HEAD_BYTES);
  made.set(own, HEAD_BYTES + NONCE_BYTES);
  seal.seal(made, HEAD_BYTES, 0);
  return made;
}

/** The host's nonce. Undefined: this answers no HELLO with that nonce, or comes from no host with the ticket's secret. */
export function readWelcome(bytes: Uint8Array, nonce: Uint8Array, seal: Seal): Uint8Array | undefined {
  if (bytes.length !== WELCOME_BYTES || !isNonce(bytes, nonce) || !seal.open(bytes, HEAD_BYTES, 0)) return undefined;
  return new Uint8Array(bytes.subarray(HEAD_BYTES + NONCE_BYTES, HEAD_BYTES + 2 * NONCE_BYTES));
}

export function refused(nonce: Uint8Array, why: (typeof OPEN_REFUSALS)[number]): Uint8Array {
  const made = packet(REFUSED, REFUSED_BYTES);
  made[2] = OPEN_REFUSALS.indexOf(why);
  made.set(nonce, HEAD_BYTES);
  return made;
}

export function readRefused(bytes: Uint8Array, nonce: Uint8Array): Refusal | undefined {
  return bytes.length === REFUSED_BYTES && isNonce(bytes, nonce) ? OPEN_REFUSALS[bytes[2] as number] : undefined;
}

function isNonce(bytes: Uint8Array, nonce: Uint8Array): boolean {
  return nonce.every((byte, i) => byte === bytes[HEAD_BYTES + i]);
}

/** Words of a nonce, as a key schedule takes them. */
export function wordsOf(nonce: Uint8Array): number[] {
  const view = new DataView(nonce.buffer, nonce.byteOffset, NONCE_BYTES);
  return [0, 4, 8, 12].map((offset) => view.getUint32(offset, true));
}

/** A sealed packet that was opened. Its body is valid until the caller of open() returns. */
export interface Opened {
  readonly kind: number;
  readonly node: number;
  readonly body: Uint8Array;
}

/** One connection's seals, from one side. */
export class PageChannel {
  readonly #out: Seal;
  readonly #in: Seal;
  #sent = 0;
  #received = 0;

  constructor(out: Seal, into: Seal) {
    this.#out = out;
    this.#in = into;
  }

  /** The larger number of packets in either direction: seals count them with 32 bits. */
  get packets(): number {
    return Math.max(this.#sent, this.#received);
  }

  seal(kind: number, node: number, body: Uint8Array): Uint8Array {
    const made = packet(kind, HEAD_BYTES + body.length + TAG_BYTES);
    const view = new DataView(made.buffer);
    view.setUint16(2, node, true);
    view.setUint32(4, ++this.#sent, true);
    made.set(body, HEAD_BYTES);
    this.#out.seal(made, HEAD_BYTES, this.#sent);
    return made;
  }

  control(message: FromHost | FromPage): Uint8Array {
    return this.seal(CONTROL, 0, encodeText(JSON.stringify(message)));
  }

  /** Opens a packet in place. Undefined: it is not of this channel, or came before. */
  open(bytes: Uint8Array): Opened | undefined {
    if (bytes.length < SEALED_BYTES) return undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset, HEAD_BYTES);
    const number = view.getUint32(4, true);
    if (number <= this.#received || !this.#in.open(bytes, HEAD_BYTES, number)) return undefined;
    this.#received = number;
    const body = bytes.subarray(HEAD_BYTES, bytes.length - TAG_BYTES);
    return { kind: bytes[0] as number, node: view.getUint16(2, true), body };
  }
}

/** What a CONTROL packet says. The other side has the key, but need not be right: undefined if it is no object. */
export function readControl<Message extends object>(body: Uint8Array): Partial<Message> | undefined {
  try {
    const message: unknown = JSON.parse(decodeText(new Uint8Array(body)));
    return typeof message === "object" && message !== null ? (message as Partial<Message>) : undefined;
  } catch {
    return undefined;
  }
}
