// A link over NATS: a packet is one message to the subject of a node, and the reply subject is that of its sender. The server
// may drop packets, and a broken connection loses those on their way: sessions repair both.
//
//   pamir.JOB.n.NODE.PLACE      packets to a node: its address (nats-address.ts)
//   pamir.JOB.n.NODE.PLACE.K    the reply subject: packets that this node has sent to the K-th address that it has used. If
//                               nothing listens at that address, the server answers there (status 503) instead
//
// The server's PONG says that it has processed what was published. Up to WINDOW_BYTES may await one.
import { PACKET_BYTES_MAX } from "../../../assembly/layout.js";
import { PamiError } from "../../core/error.js";
import { hasNoListener, type NatsConnection, type NatsMessage } from "../../nats/connection.js";
import { keepSubscription } from "../../nats/rights.js";
import { systemClock } from "../../support/clock.js";
import type { LinkWays, NodeLink, PacketWay, WayTraffic } from "../kind.js";
import { type Address, checkPacket, type Link, PACKET_BYTES_MIN } from "../link.js";
import { parseNatsAddress } from "./nats-address.js";

/** Bytes that may await the server's answer, and after how many a question goes out. Far below its 64 MiB for a slow reader. */
const WINDOW_BYTES = 4 * 2 ** 20;
const ASK_BYTES = 2 ** 18;
/** What the text of a message has besides its packet, about: "PUB", both subjects, the length. */
const HEAD_BYTES = 160;
/** Addresses that a link remembers: with more of them, it forgets those of packets that came, or were sent, first. */
const ADDRESSES_MAX = 65_536;
/** Milliseconds for which a node must have been without a subscription: a server that starts again has none for a moment. */
const ABSENT_MS = 10_000;

/** An address to which packets have gone. */
interface Peer {
  readonly reply: string;
  /** Since when the server has said that nothing listens there, and when it has said so last; 0: something does. */
  absentSince: number;
  absentAt: number;
}

export class NatsLink implements NodeLink, LinkWays {
  readonly packetBytes: number;
  /** The server may drop packets, and a new connection overtakes those of the last one. */
  readonly isFaithful = false;
  readonly address: Address;
  onPacket: Link["onPacket"] = () => {};
  onRoom: Link["onRoom"] = () => {};
  /**
   * Packets: given to the connection (`sent`), received, lost because there is no connection or the address is none (`lost`).
   * Answers that nothing listens at an address (`absent`). Connections after the first one (`reconnects`).
   */
  readonly counts = { sent: 0, received: 0, lost: 0, absent: 0, reconnects: 0 };
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #peers = new Map<Address, Peer>();
  /** By K. */
  readonly #addresses: Address[] = [];
  /** By reply subject: the address of its sender. */
  readonly #senders = new Map<string, Address>();
  readonly #job: string;
  #isConnected = true;
  /** When the connection was opened, made again or broken. */
  #since = systemClock.now();
  #isClosed = false;
  /** Whether the link does not keep its thread alive. */
  #rests = false;
  #hasRefused = false;
  /** Bytes since the last PONG, and of those that a PING asks about. */
  #awaiting = 0;
  #unasked = 0;

  /** @param connection open; the link owns it @param job of natsPlace() */
  constructor(connection: NatsConnection, address: Address, job: string, packetBytes: number) {
    this.packetBytes = packetBytes;
    this.address = address;
    this.#connection = connection;
    this.#prefix = `${address}.`;
    this.#job = job;
    keepSubscription(connection, address, (message) => this.#deliver(message));
    keepSubscription(connection, `${address}.*`, (message) => this.#hearAbsence(message));
    void this.#watch();
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.#isClosed) return true;
    const peer = this.#isConnected ? (this.#peers.get(to) ?? this.#add(to)) : undefined;
    if (peer === undefined) {
      this.counts.lost++;
      return true;
    }
    if (this.#awaiting >= WINDOW_BYTES) {
      this.#hasRefused = true;
      return false;
    }
    this.counts.sent++;
    // Not slice(): that of a Buffer copies nothing.
    this.#connection.publish(to, new Uint8Array(packet), { reply: peer.reply });
    const bytes = packet.length + HEAD_BYTES;
    this.#awaiting += bytes;
    this.#unasked += bytes;
    if (this.#unasked >= ASK_BYTES) this.#ask();
    return true;
  }

  /** Undefined: the address is none of this job. */
  #add(to: Address): Peer | undefined {
    if (!this.#isAddress(to) || this.#addresses.length >= ADDRESSES_MAX) return undefined;
    const peer = { reply: `${this.#prefix}${this.#addresses.length}`, absentSince: 0, absentAt: 0 };
    this.#addresses.push(to);
    this.#peers.set(to, peer);
    return peer;
  }

  /** Whether it is an address of the job. */
  #isAddress(address: Address): boolean {
    return parseNatsAddress(address)?.job === this.#job;
  }

  /** Asks the server for a PONG behind what was published. */
  #ask(): void {
    const asked = this.#unasked;
    this.#unasked = 0;
    this.#connection.flush().then(
      () => this.#answered(asked),
      // The connection broke: what it carried is lost, or has come.
      () => this.#answered(asked),
    );
  }

  #answered(bytes: number): void {
    this.#awaiting -= bytes;
    if (!this.#hasRefused || this.#isClosed) return;
    this.#hasRefused = false;
    this.onRoom();
  }

  #deliver({ reply, data }: NatsMessage): void {
    if (this.#isClosed || reply === undefined || data.length > PACKET_BYTES_MAX) return;
    const from = this.#senders.get(reply) ?? this.#senderOf(reply);
    if (from === undefined) return;
    this.counts.received++;
    const peer = this.#peers.get(from);
    if (peer !== undefined) peer.absentSince = 0;
    try {
      this.onPacket(from, data);
    } catch (error) {
      // The client would print the error, and never read again.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #senderOf(reply: string): Address | undefined {
    const from = reply.slice(0, reply.lastIndexOf("."));
    if (!this.#isAddress(from)) return undefined;
    if (this.#senders.size >= ADDRESSES_MAX) this.#senders.clear();
    this.#senders.set(reply, from);
    return from;
  }

  #hearAbsence(message: NatsMessage): void {
    if (!hasNoListener(message)) return;
    const { subject } = message;
    const peer = this.#peers.get(this.#addresses[Number(subject.slice(this.#prefix.length))] ?? "");
    if (peer === undefined) return;
    this.counts.absent++;
    const now = systemClock.now();
    if (peer.absentSince === 0) peer.absentSince = now;
    peer.absentAt = now;
  }

  /**
   * Whether the server says that nothing listens at an address.
   * @param isLong only if it has said so for 10 s, and this connection has lasted as long
   */
  isAbsent(address: Address, isLong: boolean): boolean {
    const { absentSince = 0, absentAt = 0 } = this.#peers.get(address) ?? {};
    return absentSince > 0 && this.#isConnected && (!isLong || absentAt - absentSince >= ABSENT_MS);
  }

  wayTo(to: Address): PacketWay | undefined {
    if (!this.#peers.has(to)) return undefined;
    return { by: "nats", at: this.#at, since: this.#since };
  }

  /** The server, for people. */
  get #at(): string {
    return this.#isConnected ? this.#connection.getServer() : "no server";
  }

  get traffic(): readonly WayTraffic[] {
    const { sent, received, reconnects } = this.counts;
    return [{ by: "nats", at: this.#at, sent, received, breaks: reconnects }];
  }

  /** Follows the state of the connection. */
  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status()) {
      // A ping has begun another timer, a connection another socket.
      if (this.#rests && (type === "ping" || type === "reconnect")) this.unref();
      if (type === "disconnect") {
        this.#isConnected = false;
        this.#since = systemClock.now();
      } else if (type === "reconnect") {
        this.#isConnected = true;
        this.#since = systemClock.now();
        this.counts.reconnects++;
        for (const peer of this.#peers.values()) peer.absentSince = 0;
      }
    }
  }

  ref(): void {
    this.#rests = false;
    for (const one of partsThatWait(this.#connection)) one.ref();
  }

  unref(): void {
    this.#rests = true;
    for (const one of partsThatWait(this.#connection)) one.unref();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // What was sent still goes out.
    void this.#connection
      .flush()
      .catch(() => {})
      .then(() => this.#connection.close());
  }
}

interface Waiting {
  ref(): void;
  unref(): void;
}

/** What keeps a thread alive: parts of the client that it does not publish. */
interface Unpublished {
  readonly protocol?: {
    readonly transport?: { readonly socket?: Waiting };
    readonly heartbeats?: { readonly timer?: Waiting };
  };
}

function partsThatWait(connection: NatsConnection): Waiting[] {
  const { transport, heartbeats } = (connection as Unpublished).protocol ?? {};
  return [transport?.socket, heartbeats?.timer].filter((one) => one !== undefined);
}

/** @throws PAMIR_NATS the server's messages are too short, or shorter than asked for */
export function packetBytesFor(connection: NatsConnection, given: number | undefined): number {
  const { max_payload: most = 0 } = connection.info ?? {};
  const wanted = given ?? PACKET_BYTES_MAX;
  if (most >= wanted) return wanted;
  if (given === undefined && most >= PACKET_BYTES_MIN) return most - (most % 4);
  const needed = given === undefined ? `at least ${PACKET_BYTES_MIN}` : `packetBytes of PAMIR_OPTIONS, ${given}`;
  const text = `the NATS server ${connection.getServer()} takes messages of ${most} bytes (max_payload), less than ${needed}`;
  throw new PamiError("PAMIR_NATS", text);
}
