// The link of a node that has joined by a ticket. All its packets go to the host, which passes on those for other nodes. When
// its connection is lost, the link connects again, and proves that it is the same node. Addresses are numbers of nodes.
import { type Address, checkPacket, type Link } from "../link/link.js";
import type { WebSocketLink } from "../link/websocket/websocket-link.js";
import type { KeySchedule } from "../session/wire/key-schedule.js";
import { after } from "../support/timers.js";
import {
  type Admission,
  DATA,
  type FromHost,
  hello,
  type JobState,
  NONCE_BYTES,
  PageChannel,
  REFUSED,
  type Refusal,
  readControl,
  readRefused,
  readWelcome,
  SEALED_BYTES,
  WELCOME,
  wordsOf,
} from "./channel.js";

/** Milliseconds until a part of the handshake is sent again. They double with each time, up to the maximum. */
const AGAIN_MS = 100;
const AGAIN_MS_MAX = 2000;
/** Packets in one direction after which a connection gets other keys. */
const PACKETS_MAX = 2 ** 31;

export interface PageLinkOptions {
  /** Of the host. */
  readonly address: Address;
  /** Id of the ticket, and the key schedule of its secret. */
  readonly id: Uint8Array;
  readonly schedule: KeySchedule;
  /** Random bytes that tell this use of the ticket from another one. */
  readonly instance: string;
  readonly layout: number;
  readonly version: string;
  readonly random: (bytes: number) => Uint8Array;
  readonly packetsMax?: number;
}

/** What the link reports. */
export interface PageLinkEvents {
  /** At the first time. */
  admitted(admission: Admission): void;
  /** The host refuses this node, before or after it has joined. */
  refused(why: Refusal): void;
  state(state: JobState): void;
  /** The host has ended the job. */
  over(): void;
  /** The host was out of reach for the silence. */
  silent(): void;
}

export class PageLink implements Link {
  readonly packetBytes: number;
  readonly isFaithful = false;
  onPacket: Link["onPacket"] = () => {};
  /** Never called: send() refuses nothing. */
  onRoom: Link["onRoom"] = () => {};
  onMove: Link["onMove"];
  readonly #inner: WebSocketLink;
  readonly #options: PageLinkOptions;
  readonly #events: PageLinkEvents;
  readonly #packetsMax: number;
  /** The handshake under way: the own nonce, and the channel once the host has answered. Undefined: there is none. */
  #greeting: { readonly nonce: Uint8Array; channel: PageChannel | undefined; sent: number } | undefined;
  /** The channel of the connection by which this node was admitted last. */
  #channel: PageChannel | undefined;
  #silence: number | undefined;
  #cancelAgain: () => void = () => {};
  #cancelSilence: () => void = () => {};
  #isClosed = false;

  constructor(inner: WebSocketLink, options: PageLinkOptions, events: PageLinkEvents) {
    this.#inner = inner;
    this.#options = options;
    this.#events = events;
    this.#packetsMax = options.packetsMax ?? PACKETS_MAX;
    this.packetBytes = inner.packetBytes - SEALED_BYTES;
    inner.onPacket = (_, packet) => this.#received(packet);
    inner.onMove = () => this.#lost();
    this.#greet();
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.#channel === undefined || this.#isClosed || to === "") return true;
    this.#give(this.#channel.seal(DATA, Number(to), packet));
    if (this.#channel.packets >= this.#packetsMax && this.#greeting === undefined) this.#greet();
    return true;
  }

  #give(packet: Uint8Array): void {
    this.#inner.send(this.#options.address, packet);
  }

  /** The connection is lost. What was sent may be, too. */
  #lost(): void {
    if (this.#isClosed) return;
    this.#channel = undefined;
    this.#greet();
    if (this.#silence === undefined) return;
    this.#cancelSilence();
    this.#cancelSilence = after(this.#silence, () => this.#events.silent());
  }

  /** Begins a handshake with a new nonce. */
  #greet(): void {
    this.#greeting = { nonce: this.#options.random(NONCE_BYTES), channel: undefined, sent: 0 };
    this.#say();
  }

  /** Sends this side's part of the handshake, until it is over. */
  #say(): void {
    const greeting = this.#greeting;
    this.#cancelAgain();
    if (greeting === undefined || this.#isClosed) return;
    const { id, schedule, instance, layout, version } = this.#options;
    this.#give(
      greeting.channel?.control({ confirm: instance, layout, version }) ??
        hello(id, greeting.nonce, schedule.handshake),
    );
    const wait = Math.min(AGAIN_MS * 2 ** greeting.sent++, AGAIN_MS_MAX);
    this.#cancelAgain = after(wait, () => this.#say());
  }

  #received(packet: Uint8Array): void {
    if (this.#isClosed) return;
    const [kind] = packet;
    if (kind === WELCOME) this.#welcomed(packet);
    else if (kind === REFUSED) this.#refusedOpenly(packet);
    else this.#opened(packet);
  }

  #welcomed(packet: Uint8Array): void {
    const greeting = this.#greeting;
    if (greeting === undefined || greeting.channel !== undefined) return;
    const { schedule } = this.#options;
    const theirs = readWelcome(packet, greeting.nonce, schedule.handshake);
    if (theirs === undefined) return;
    const { toTarget, toOrigin } = sealsOf(schedule, greeting.nonce, theirs);
    greeting.channel = new PageChannel(toTarget, toOrigin);
    greeting.sent = 0;
    this.#say();
  }

  #refusedOpenly(packet: Uint8Array): void {
    const greeting = this.#greeting;
    const why = greeting && readRefused(packet, greeting.nonce);
    if (why !== undefined) this.#events.refused(why);
  }

  #opened(packet: Uint8Array): void {
    const opened = this.#channel?.open(packet) ?? this.#greeting?.channel?.open(packet);
    if (opened === undefined) return;
    const { kind, node, body } = opened;
    if (kind === DATA) this.onPacket(String(node), body);
    else this.#controlled(readControl<FromHost>(body) as Partial<FromHost>);
  }

  #controlled(message: Partial<FromHost> = {}): void {
    if ("refused" in message) this.#events.refused(message.refused as Refusal);
    else if ("over" in message) this.#events.over();
    else if ("admitted" in message) this.#admitted(message.admitted as Admission);
    else if ("state" in message) this.#stated(message.state as JobState);
  }

  #admitted(admission: Admission): void {
    if (this.#greeting?.channel === undefined) return;
    this.#channel = this.#greeting.channel;
    this.#greeting = undefined;
    this.#cancelAgain();
    this.#cancelSilence();
    const isFirst = this.#silence === undefined;
    this.#silence = admission.silence;
    if (isFirst) this.#events.admitted(admission);
    this.#stated(admission.state);
    // What was sent meanwhile is lost.
    if (!isFirst) this.onMove?.();
  }

  #stated(state: JobState): void {
    if (this.#channel !== undefined) this.#give(this.#channel.control({ known: state.serial }));
    this.#events.state(state);
  }

  /** This node's task has left: the host hears of it behind all that was sent. */
  leave(): void {
    if (this.#channel !== undefined && !this.#isClosed) this.#give(this.#channel.control({ left: true }));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelAgain();
    this.#cancelSilence();
    this.#inner.close();
  }
}

/** The seals of a connection: of packets to the host, its target, and to the page, its origin. */
export function sealsOf(schedule: KeySchedule, page: Uint8Array, host: Uint8Array): ReturnType<KeySchedule["session"]> {
  const nodes = { origin: 1, target: 0, originEpoch: 0, targetEpoch: 0, initiator: 0, responder: 0 };
  return schedule.session({ ...nodes, connectNonce: wordsOf(page), acceptNonce: wordsOf(host) });
}
