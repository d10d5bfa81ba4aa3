// A link over UDP: one socket for a node, one datagram and one system call for a packet. It needs Node's `dgram`.
//
// The kernel copies a datagram within the call, unless the socket's send buffer is full. Then the datagram waits in Node,
// which keeps a reference to its bytes. So each packet is copied into a buffer of a pool. If the kernel has taken it, the
// next packet gets the same buffer, which is still in the cache; else the buffer waits with the datagram.
//
// A socket of udp-calls.ts has calls of its own beside Node's. A packet is sent by them if the system takes it at once. Node
// learns that packets have come, and takes the first one of a burst.
import type { RemoteInfo, Socket, SocketOptions } from "node:dgram";
import { PACKET_BYTES_MAX } from "../../../assembly/layout.js";
import { checkInteger, PamiError } from "../../core/error.js";
import { systemClock } from "../../support/clock.js";
import { copyInto } from "../../support/copy.js";
import { free } from "../../support/free.js";
import { nodeModule } from "../../support/host.js";
import { Queue } from "../../support/queue.js";
import { type Address, checkPacket, type Link, PACKET_BYTES_MIN } from "../link.js";
import { notOpened } from "../socket-errors.js";
import { formatUdpAddress, isLoopback, parseUdpAddress, type UdpEndpoint } from "./udp-address.js";

/** Bytes of a packet that an Ethernet frame carries: its MTU of 1,500, less the headers of IPv6 (40) and UDP (8). */
const ETHERNET_PACKET_BYTES = 1452;
/**
 * The same on loopback, where no frame is transmitted: a stream takes a fifth of the processor time. A packet of a large
 * message is then one packet of the link, too. The receive buffer must hold a burst of LOOPBACK_PACKETS.
 */
const LOOPBACK_PACKET_BYTES = 65_504;
const LOOPBACK_PACKETS = 32;
/** The most packets that wait for the kernel. */
const SEND_PACKETS = 64;
/** Bytes of the socket's receive buffer to ask for: the first that the system grants. Linux grants less without an error. */
const RECEIVE_BUFFER_BYTES = [4_194_304, 1_048_576, 262_144];
/** Calls to receive in a row, before Node looks at what else has happened. */
const RECEIVE_CALLS = 4;
/** The most packets between two attempts to find the rest of a burst are 2 to this power, less 1. */
const SKIP_MAX_LOG = 4;
/** Milliseconds for which the system refuses packets to an address until that is told. Sessions try it some six times in these. */
const UNSENT_MS = 500;
/** Milliseconds after which a refused packet counts as the first one again. Sessions try again each second at the latest. */
const UNSENT_APART_MS = 5000;
/** Errors that tell of a packet that has been sent, of its length, or of room: they are no reason that others can't be sent. */
const PASSING_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EMSGSIZE",
  "ENOBUFS",
  "EAGAIN",
  "ECANCELED",
]);
/** Addresses that the link remembers in their parsed form. */
const PEERS_MAX = 4096;

/** The part of a socket of `dgram` that the link uses. */
export interface DatagramSocket {
  address(): { readonly address: string; readonly family: string; readonly port: number };
  /** Datagrams that wait for the kernel. */
  getSendQueueCount(): number;
  send(bytes: Uint8Array, offset: number, length: number, port: number, host: string, sent: SendCallback): void;
  on(event: "message", listener: (packet: Buffer, from: RemoteInfo) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  off(event: "message", listener: (packet: Buffer, from: RemoteInfo) => void): unknown;
  close(): unknown;
  ref(): unknown;
  unref(): unknown;
}
type SendCallback = (error: Error | null) => void;

/** System calls on a socket of IPv4, where they cost less than Node's. None of them waits. */
export interface DatagramCalls {
  /** The socket, which is bound. */
  readonly descriptor: number;
  /** Once Node has the socket: no other may be bound to its port. Node lets others that allow the same share it. */
  ownPort(): void;
  /** Sends a packet. @returns false: the system does not take it now, or refuses it */
  send(host: string, port: number, packet: Uint8Array): boolean;
  /**
   * Receives some packets.
   * @param take gets each, which is valid until it returns
   * @returns whether there may be more
   */
  receive(take: (packet: Uint8Array, host: string, port: number) => void): boolean;
  /** Lets another thread run that waits for this one's processor. */
  yieldProcessor(): void;
  /** See Link. */
  receiveInto(allocate: (bytes: number) => Uint8Array | undefined): void;
}

export interface UdpLinkOptions {
  /**
   * Bytes of the largest packet: a multiple of 4 from 1,232 to 65,504. A longer packet than the path carries is fragmented
   * by IP, or lost. The default fits an Ethernet frame; on loopback it is up to 65,504.
   */
  readonly packetBytes?: number | undefined;
  /** The most packets that wait for the kernel, 1 to 65,536 (default 64): further ones are refused. */
  readonly sendPackets?: number | undefined;
  /** Bytes of the socket's receive buffer to ask for: 4,096 to 2^30 (default 4 MiB, or less if the system refuses that). */
  readonly receiveBufferBytes?: number | undefined;
  /** Used beside those of Node. */
  readonly calls?: DatagramCalls | undefined;
}

export class UdpLink implements Link {
  readonly packetBytes: number;
  readonly isFaithful = false;
  /** Its own address. If the socket is bound to an unspecified address (0.0.0.0, ::), others use one of the machine's. */
  readonly address: Address;
  onPacket: Link["onPacket"] = () => {};
  onRoom: Link["onRoom"] = () => {};
  /**
   * Packets: taken by send(), received, refused by send(), lost because the text of their address is no address for this
   * socket, and lost by an error of the system.
   */
  readonly counts = { sent: 0, received: 0, refused: 0, noAddress: 0, failed: 0 };
  /** Errors of the system, by code (ECONNREFUSED, EMSGSIZE, ENETUNREACH, …). Each has lost a packet, or reports a lost one. */
  readonly errors = new Map<string, number>();
  onUnsent: Link["onUnsent"];
  readonly receive: Link["receive"];
  readonly #socket: DatagramSocket;
  readonly #family: 4 | 6;
  readonly #calls: DatagramCalls | undefined;
  readonly #sendPackets: number;
  /** By address; null: the text is no address for this socket. */
  readonly #peers = new Map<Address, UdpEndpoint | null>();
  /** Buffers without a packet. */
  readonly #free: Uint8Array<ArrayBuffer>[] = [];
  /** Buffers whose packets wait for the kernel, in the order of sending. */
  readonly #waiting = new Queue<Uint8Array<ArrayBuffer>>();
  /** By address and code: since when the system has refused packets, in milliseconds; Infinity: that was told. */
  readonly #unsent = new Map<string, number>();
  #hasRefused = false;
  /** Attempts to receive a rest of a burst that found none, in a row, and packets before the next attempt. */
  #inVain = 0;
  #toSkip = 0;
  #isClosed = false;
  /** The sender of the last packet. */
  #lastHost = "";
  #lastPort = -1;
  #lastFrom: Address = "";

  /** @param socket bound, and used by this link alone @throws PAMIR_INVAL an option is out of its range */
  constructor(socket: DatagramSocket, options: UdpLinkOptions = {}) {
    const { address, family, port } = socket.address();
    const { packetBytes = ETHERNET_PACKET_BYTES, sendPackets = SEND_PACKETS } = options;
    checkPacketBytes(packetBytes);
    checkInteger("sendPackets", sendPackets, 1, 65_536);
    this.packetBytes = packetBytes;
    this.address = formatUdpAddress(address, port);
    this.#socket = socket;
    // Node 18.0 to 18.3 gave the number 6.
    this.#family = family.endsWith("6") ? 6 : 4;
    const { calls } = options;
    this.#calls = calls;
    this.receive = calls && (() => this.#receiveOrYield(calls));
    this.#sendPackets = sendPackets;
    socket.on("message", this.#onMessage);
    socket.on("error", this.#onError);
  }

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.#isClosed) return true;
    const known = this.#peers.get(to);
    const peer = known === undefined ? this.#look(to) : known;
    if (peer === null) {
      this.counts.noAddress++;
      return true;
    }
    // A packet overtakes none that waits.
    if (this.#waiting.length === 0 && this.#calls?.send(peer.host, peer.port, packet)) {
      this.counts.sent++;
      return true;
    }
    const buffer = this.#buffer();
    if (buffer === undefined) {
      this.#hasRefused = true;
      this.counts.refused++;
      return false;
    }
    this.counts.sent++;
    copyInto(buffer, 0, packet);
    this.#socket.send(buffer, 0, packet.length, peer.port, peer.host, this.#onSent);
    if (this.#socket.getSendQueueCount() > this.#waiting.length) this.#waiting.push(buffer);
    else this.#free.push(buffer);
    return true;
  }

  #buffer(): Uint8Array<ArrayBuffer> | undefined {
    const buffer = this.#free.pop();
    if (buffer !== undefined || this.#waiting.length >= this.#sendPackets) return buffer;
    return new Uint8Array(this.packetBytes);
  }

  /** Finds out where an address is, and remembers it. Those that come with packets are as many as strangers like. */
  #look(to: Address): UdpEndpoint | null {
    if (this.#peers.size === PEERS_MAX) this.#peers.clear();
    const peer = endpointFor(to, this.#family);
    this.#peers.set(to, peer);
    return peer;
  }

  /** The kernel has taken a packet, or refused it. This is never called within send(). */
  readonly #onSent: SendCallback = (error) => {
    if (this.#isClosed) return;
    if (error !== null && error !== undefined) {
      this.#onError(error);
      this.#noteUnsent(error);
    }
    this.#release();
  };

  /** The system has refused a packet. It may do so once, as while a route changes. */
  #noteUnsent(error: Error): void {
    const { code = "unknown", address, port } = error as { code?: string; address?: string; port?: number };
    if (PASSING_CODES.has(code) || address === undefined || port === undefined) return;
    const to = formatUdpAddress(address, port);
    const key = `${code} ${to}`;
    const now = systemClock.now();
    const since = this.#unsent.get(key);
    if (since === undefined && this.#unsent.size === PEERS_MAX) return;
    if (since === undefined || now - since > UNSENT_APART_MS) this.#unsent.set(key, now);
    else if (now - since >= UNSENT_MS) {
      this.#unsent.set(key, Number.POSITIVE_INFINITY);
      this.onUnsent?.(to, code);
    }
  }

  /** Takes back the buffers whose packets wait no more. Node completes them in the order of sending. */
  #release(): void {
    const waiting = this.#waiting;
    const count = this.#socket.getSendQueueCount();
    while (waiting.length > count) {
      this.#free.push(waiting.first as Uint8Array<ArrayBuffer>);
      waiting.shift();
    }
    // Half of the room, so that the caller does not come back for each packet.
    if (!this.#hasRefused || waiting.length * 2 > this.#sendPackets) return;
    this.#hasRefused = false;
    this.onRoom();
  }

  readonly #onMessage = (packet: Uint8Array, { address, port }: RemoteInfo): void => {
    this.#received(packet, address, port);
    // Node makes an ArrayBuffer for each packet.
    free(packet);
    if (this.#calls !== undefined && this.#toSkip-- <= 0) this.#receiveRest(this.#calls);
  };

  #receiveOrYield(calls: DatagramCalls): boolean {
    if (this.#isClosed) return false;
    const { received } = this.counts;
    calls.receive(this.#received);
    if (this.counts.received > received) return true;
    calls.yieldProcessor();
    return false;
  }

  /** Receives the rest of a burst. An attempt in vain takes 5 µs, so that after several the next ones are skipped. */
  #receiveRest(calls: DatagramCalls): void {
    const { received } = this.counts;
    for (let count = 0; count < RECEIVE_CALLS && !this.#isClosed; count++) if (!calls.receive(this.#received)) break;
    this.#inVain = received === this.counts.received ? Math.min(this.#inVain + 1, SKIP_MAX_LOG) : 0;
    this.#toSkip = 2 ** this.#inVain - 1;
  }

  readonly #received = (packet: Uint8Array, address: string, port: number): void => {
    if (this.#isClosed) return;
    this.counts.received++;
    if (port !== this.#lastPort || address !== this.#lastHost) {
      [this.#lastHost, this.#lastPort] = [address, port];
      this.#lastFrom = formatUdpAddress(address, port);
    }
    this.onPacket(this.#lastFrom, packet);
  };

  readonly #onError = (error: Error): void => {
    const { code = "unknown" } = error as { code?: string };
    this.counts.failed++;
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  };

  receiveInto(allocate: (bytes: number) => Uint8Array | undefined): void {
    this.#calls?.receiveInto(allocate);
  }

  /** The link keeps its thread alive, as at first. */
  ref(): void {
    this.#socket.ref();
  }

  /** The link no longer keeps its thread alive. */
  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // The listener of errors stays: what waits for the kernel may still fail.
    this.#socket.off("message", this.#onMessage);
    this.#socket.close();
  }
}

function checkPacketBytes(bytes: number): void {
  checkInteger("packetBytes of a UDP link", bytes, PACKET_BYTES_MIN, PACKET_BYTES_MAX);
  if (bytes % 4 !== 0) throw new PamiError("PAMIR_INVAL", `packetBytes of a UDP link is ${bytes}, not a multiple of 4`);
}

/** What a socket on loopback sends by default, if its receive buffer is as large as those of its peers. */
function loopbackPacketBytes(socket: Socket): number {
  const burst = Math.floor(socket.getRecvBufferSize() / LOOPBACK_PACKETS);
  return Math.max(ETHERNET_PACKET_BYTES, Math.min(LOOPBACK_PACKET_BYTES, burst - (burst % 4)));
}

/** What a socket of a family is to send to. null: the text is no numeric address, or one of another family. */
function endpointFor(to: Address, family: 4 | 6): UdpEndpoint | null {
  let endpoint: UdpEndpoint;
  try {
    endpoint = parseUdpAddress(to);
  } catch {
    return null;
  }
  if (endpoint.family === family) return endpoint;
  // A socket of IPv6 reaches IPv4 by mapped addresses, unless it is bound to an address of IPv6 alone.
  if (family === 6 && endpoint.family === 4) return { ...endpoint, host: `::ffff:${endpoint.host}` };
  return null;
}

/**
 * Resolves a host name. Links send to numeric addresses only.
 * @param family of the address to find; 0: the one that the system prefers
 * @returns the canonical address
 * @throws PAMIR_INVAL the text is no address; PAMIR_ADDRESS the name does not resolve
 */
export async function resolveUdpAddress(text: string, family: 0 | 4 | 6 = 0): Promise<Address> {
  const { host, port } = await resolved(text, 1, family);
  return formatUdpAddress(host, port);
}

async function resolved(text: string, portMin: 0 | 1, family: 0 | 4 | 6): Promise<UdpEndpoint> {
  const endpoint = parseUdpAddress(text, portMin);
  if (endpoint.family !== 0) return endpoint;
  const dns = nodeModule("dns");
  if (dns === undefined) throw unavailable(text);
  const found = await dns.promises.lookup(endpoint.host, { family }).catch((cause: Error) => {
    throw new PamiError("PAMIR_ADDRESS", `${text}: the host name does not resolve (${cause.message})`, { cause });
  });
  // In the canonical form, as in messages.
  return parseUdpAddress(formatUdpAddress(found.address, endpoint.port), portMin);
}

/**
 * Opens a socket, and makes a link over it. The socket keeps the thread alive until close().
 * @param address of this machine, which may be a host name; port 0: the system chooses one
 * @param open opens a socket of IPv4 with calls of its own; undefined: it can't
 * @throws PAMIR_INVAL the text is no address, or an option is out of its range; PAMIR_ADDRESS the name does not resolve, the
 * address is not of this machine, the port is in use or not allowed, or the host has no UDP
 */
export async function openUdpLink(
  address: string,
  options: UdpLinkOptions = {},
  open: (host: string, port: number) => DatagramCalls | undefined = () => undefined,
): Promise<UdpLink> {
  const { packetBytes, receiveBufferBytes } = options;
  if (packetBytes !== undefined) checkPacketBytes(packetBytes);
  if (receiveBufferBytes !== undefined) checkInteger("receiveBufferBytes", receiveBufferBytes, 4096, 2 ** 30);
  const { host, port, family } = await resolved(address, 0, 0);
  const dgram = nodeModule("dgram");
  if (dgram === undefined) throw unavailable(address);
  const type = family === 6 ? "udp6" : "udp4";
  const socket = dgram.createSocket({ type, lookup: numericLookup });
  const calls = family === 4 ? open(host, port) : undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      const place = calls === undefined ? { address: host, port } : { fd: calls.descriptor };
      // Exclusive: workers of node:cluster would share the socket.
      socket.bind({ ...place, exclusive: true }, () => {
        socket.off("error", reject);
        resolve();
      });
    });
    calls?.ownPort();
    growReceiveBuffer(socket, receiveBufferBytes);
    const found = packetBytes === undefined && isLoopback(host) ? loopbackPacketBytes(socket) : packetBytes;
    return new UdpLink(socket, { ...options, packetBytes: found, calls });
  } catch (error) {
    socket.close();
    throw notOpened("UDP socket", address, error);
  }
}

/** Hosts are numeric here. So no send waits for a turn of the event loop, as Node's own lookup does. */
const numericLookup: NonNullable<SocketOptions["lookup"]> = (host, _options, callback) => {
  callback(null, host, host.includes(":") ? 6 : 4);
};

function growReceiveBuffer(socket: Socket, wanted: number | undefined): void {
  for (const bytes of wanted === undefined ? RECEIVE_BUFFER_BYTES : [wanted]) {
    try {
      socket.setRecvBufferSize(bytes);
      return;
    } catch {
      // The system refuses it. The socket works with less.
    }
  }
}

function unavailable(address: string): PamiError {
  return new PamiError("PAMIR_ADDRESS", `${address}: this host has no UDP sockets; Node has`);
}
