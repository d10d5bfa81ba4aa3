// The link of the host, node 0: it admits nodes by tickets, keeps one connection to each, and passes on the packets between
// them. It opens and seals each packet, so a node can state no other as the origin. Addresses are numbers of nodes.
import { type Address, checkPacket, type Link } from "../link/link.js";
import type { WebSocketLink } from "../link/websocket/websocket-link.js";
import { after } from "../support/timers.js";
import {
  type Admission,
  CONTROL,
  DATA,
  type FromPage,
  HELLO,
  type JobState,
  NONCE_BYTES,
  PageChannel,
  type Refusal,
  readControl,
  readHello,
  refused,
  SEALED_BYTES,
  WEB_VERSION,
  welcome,
} from "./channel.js";
import { sealsOf } from "./page-link.js";
import type { IssuedTicket, Tickets } from "./tickets.js";

/** Milliseconds in which a connection has to prove a ticket. */
const PROVE_MS = 10_000;
/** Milliseconds until a state is sent again to a node that has not acknowledged it. */
const TELL_MS = 500;
/**
 * Milliseconds in which a node whose connection is over has to have another one, if the silence is not shorter. A node that
 * goes on connects again at once. A network that fails ends no connection: the silence is for that.
 */
const RETURN_MS = 10_000;
/** With which a browser closes the connections of a page that it closes or reloads (RFC 6455, section 7.4.1). */
const CLOSE_GOING_AWAY = 1001;

/** A connection. */
interface Peer {
  readonly token: Address;
  /** The handshake that was begun last. */
  greeting:
    | {
        readonly ticket: IssuedTicket;
        readonly nonce: Uint8Array;
        readonly answer: Uint8Array;
        readonly channel: PageChannel;
      }
    | undefined;
  /** By which packets go, and the node at its other end; undefined: it has proved nothing yet. */
  current: { readonly channel: PageChannel; readonly member: Member } | undefined;
  /** The channel before that: packets that the page has sealed by it may be on their way. */
  before: PageChannel | undefined;
  /** Cancels the end of a connection that proves nothing. */
  cancel: () => void;
}

/** A node that was admitted. */
interface Member {
  readonly node: number;
  readonly address: Address;
  readonly instance: string;
  /** Its connection. */
  peer: Peer | undefined;
  hasEnded: boolean;
  /** Serial number of the latest state that it has acknowledged. */
  known: number;
  cancelSilence: () => void;
}

export interface HostLinkOptions {
  readonly tickets: Tickets;
  /** Nodes of the job, with the host. */
  readonly nodes: number;
  /** Options of all nodes' memories. */
  readonly options: object;
  /** Milliseconds without an answer after which a node has ended. */
  readonly silence: number;
  readonly layout: number;
  readonly random: (bytes: number) => Uint8Array;
  /** A node has joined. */
  readonly onJoined: (node: number) => void;
  /** A node has ended. */
  readonly onEnded: (node: number, isCertain: boolean) => void;
}

export class HostLink implements Link {
  readonly packetBytes: number;
  readonly isFaithful = false;
  onPacket: Link["onPacket"] = () => {};
  /** Never called: send() refuses nothing. */
  onRoom: Link["onRoom"] = () => {};
  readonly #inner: WebSocketLink;
  readonly #options: HostLinkOptions;
  readonly #peers = new Map<Address, Peer>();
  /** By number of the node, minus 1. */
  readonly #members: Member[] = [];
  #serial = 1;
  #hasHostLeft = false;
  #cancelTell: (() => void) | undefined;
  #isClosed = false;

  constructor(inner: WebSocketLink, options: HostLinkOptions) {
    this.#inner = inner;
    this.#options = options;
    this.packetBytes = inner.packetBytes - SEALED_BYTES;
    inner.onAccept = (token) => {
      const cancel = after(PROVE_MS, () => inner.end(token));
      this.#peers.set(token, { token, greeting: undefined, current: undefined, before: undefined, cancel });
    };
    inner.onPacket = (from, packet) => this.#received(from, packet);
    inner.onEnd = (token, code) => this.#over(token, code === CLOSE_GOING_AWAY);
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (to !== "" && !this.#isClosed) this.#pass(Number(to), 0, packet);
    return true;
  }

  /** Sends a packet to a node, if it is connected. */
  #pass(node: number, origin: number, packet: Uint8Array): void {
    const peer = this.#members[node - 1]?.peer;
    if (peer?.current !== undefined) this.#inner.send(peer.token, peer.current.channel.seal(DATA, origin, packet));
  }

  // ── Handshake ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** @returns whether its connection has proved a ticket */
  #received(token: Address, packet: Uint8Array): boolean {
    const peer = this.#peers.get(token);
    if (this.#isClosed || peer === undefined) return false;
    if (packet[0] === HELLO) this.#greeted(peer, packet);
    else this.#opened(peer, packet);
    return peer.current !== undefined;
  }

  #greeted(peer: Peer, packet: Uint8Array): void {
    const read = readHello(packet);
    if (read === undefined) return;
    const { id, nonce, version } = read;
    const ticket = this.#options.tickets.find(id);
    if (version !== WEB_VERSION || ticket?.schedule.handshake.open(packet, 0, 0) !== true) {
      this.#inner.send(peer.token, refused(nonce, version === WEB_VERSION ? "unknown" : "version"));
      this.#inner.end(peer.token);
      return;
    }
    const { greeting } = peer;
    const { schedule } = ticket;
    // The page repeats itself if an answer takes long.
    if (greeting?.ticket === ticket && greeting.nonce.every((byte, i) => byte === nonce[i])) {
      this.#inner.send(peer.token, welcome(nonce, greeting.answer, schedule.handshake));
      return;
    }
    const answer = this.#options.random(NONCE_BYTES);
    const { toTarget, toOrigin } = sealsOf(schedule, nonce, answer);
    peer.greeting = { ticket, nonce, answer, channel: new PageChannel(toOrigin, toTarget) };
    this.#inner.send(peer.token, welcome(nonce, answer, schedule.handshake));
  }

  #opened(peer: Peer, packet: Uint8Array): void {
    const opened = peer.current?.channel.open(packet) ?? peer.before?.open(packet);
    if (opened !== undefined) {
      const { member } = peer.current as NonNullable<Peer["current"]>;
      const { kind, node, body } = opened;
      if (member.peer !== peer) return;
      if (kind === CONTROL) this.#controlled(member, readControl<FromPage>(body) as Partial<FromPage>);
      else if (kind === DATA && node === 0) this.onPacket(member.address, body);
      else if (kind === DATA) this.#pass(node, member.node, body);
      return;
    }
    const confirmed = peer.greeting?.channel.open(packet);
    if (confirmed?.kind === CONTROL) this.#confirmed(peer, readControl<FromPage>(confirmed.body) ?? {});
  }

  #confirmed(peer: Peer, message: Partial<FromPage>): void {
    const { ticket, channel } = peer.greeting as NonNullable<Peer["greeting"]>;
    if (!("confirm" in message) || typeof message.confirm !== "string") return;
    const member = this.#members[(ticket.node ?? 0) - 1];
    const why = this.#whyNot(ticket, member, message.confirm, message.layout);
    if (why !== undefined) {
      this.#inner.send(peer.token, channel.control({ refused: why }));
      this.#inner.end(peer.token);
      return;
    }
    const isNew = member === undefined;
    this.#connect(member ?? this.#admit(ticket, message.confirm), peer, channel);
    if (isNew) this.#options.onJoined(ticket.node as number);
    this.#tell();
  }

  #whyNot(
    ticket: IssuedTicket,
    member: Member | undefined,
    instance: string,
    layout: number | undefined,
  ): Refusal | undefined {
    if (member === undefined && layout !== this.#options.layout) return "version";
    if (member === undefined) return this.#options.tickets.hasExpired(ticket) ? "expired" : undefined;
    if (member.instance !== instance) return "used";
    return member.hasEnded ? "ended" : undefined;
  }

  #admit(ticket: IssuedTicket, instance: string): Member {
    const node = this.#members.length + 1;
    const member = {
      node,
      address: String(node),
      instance,
      peer: undefined,
      hasEnded: false,
      known: 0,
      cancelSilence: () => {},
    };
    this.#members.push(member);
    this.#serial++;
    this.#options.tickets.use(ticket, node);
    return member;
  }

  /** Packets to a node go by this connection from now on. */
  #connect(member: Member, peer: Peer, channel: PageChannel): void {
    const { nodes, options, silence } = this.#options;
    const before = member.peer;
    peer.cancel();
    peer.before = peer.current?.channel;
    peer.current = { channel, member };
    peer.greeting = undefined;
    member.peer = peer;
    member.cancelSilence();
    if (before !== undefined && before !== peer) this.#inner.end(before.token);
    const admitted: Admission = { node: member.node, nodes, options, silence, state: this.#state };
    this.#inner.send(peer.token, channel.control({ admitted }));
  }

  // ── What nodes are told, and say ──────────────────────────────────────────────────────────────────────────────

  get #state(): JobState {
    const ended = this.#members.filter(({ hasEnded }) => hasEnded).map(({ node }) => node);
    if (this.#hasHostLeft) ended.unshift(0);
    return { serial: this.#serial, started: this.#members.length + 1, ended };
  }

  /** Sends the job's state to each node that does not know it yet, until it does. */
  #tell(): void {
    this.#cancelTell?.();
    const late = this.#members.filter(({ known, peer }) => known !== this.#serial && peer !== undefined);
    if (late.length === 0 || this.#isClosed) return;
    for (const { peer } of late) {
      const { token, current } = peer as Peer;
      if (current !== undefined) this.#inner.send(token, current.channel.control({ state: this.#state }));
    }
    this.#cancelTell = after(TELL_MS, () => this.#tell());
  }

  #controlled(member: Member, message: Partial<FromPage> = {}): void {
    if ("known" in message && typeof message.known === "number") member.known = message.known;
    else if ("left" in message) this.end(member.node);
  }

  // ── Ends ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A connection is over. @param isLeft whether a browser has closed it with its page */
  #over(token: Address, isLeft: boolean): void {
    const peer = this.#peers.get(token);
    this.#peers.delete(token);
    peer?.cancel();
    const member = peer?.current?.member;
    if (member === undefined || member.peer !== peer) return;
    member.peer = undefined;
    if (member.hasEnded || this.#isClosed) return;
    if (isLeft) this.end(member.node, true);
    else member.cancelSilence = after(Math.min(this.#options.silence, RETURN_MS), () => this.end(member.node));
  }

  /** A node has ended: it does not come back, and the others hear of it. @param isCertain false: nothing is heard of it */
  end(node: number, isCertain = false): void {
    const member = this.#members[node - 1];
    if (member === undefined || member.hasEnded || this.#isClosed) return;
    member.hasEnded = true;
    member.cancelSilence();
    this.#serial++;
    this.#tell();
    if (member.peer !== undefined) this.#inner.end(member.peer.token);
    this.#options.onEnded(node, isCertain);
  }

  /** The host's task has left, and the others have all that it sent. Nodes that join later hear of it, too. */
  hostLeft(): void {
    this.#hasHostLeft = true;
    this.#serial++;
    this.#tell();
  }

  /** Tells all nodes that the job is over. */
  leave(): void {
    if (this.#isClosed) return;
    for (const { peer } of this.#members)
      if (peer?.current !== undefined) this.#inner.send(peer.token, peer.current.channel.control({ over: true }));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelTell?.();
    for (const { cancelSilence } of this.#members) cancelSilence();
    for (const { cancel } of this.#peers.values()) cancel();
    this.#inner.close();
  }
}
