// A link over WebSockets: one binary message for a packet, one connection for each direction of a pair of nodes.
//
//   to ws://…      goes by a connection that this node opens at the first packet, and again if it has closed
//   to a token     goes by the connection that a peer without a server has opened: a browser. Its token names it.
//
// A peer with a server states that server's address when it connects, so that its packets come from there. The statement
// proves nothing, as the source of a datagram proves nothing: packets to that address never go by its connection.
//
// Each connection has a queue of its own. A packet that finds it full is lost, so that one node holds up no other.
import { PACKET_BYTES_MAX } from "../../../assembly/layout.js";
import { checkInteger, PamiError } from "../../core/error.js";
import { systemClock } from "../../support/clock.js";
import { after } from "../../support/timers.js";
import { type Address, checkPacket, type Link, PACKET_BYTES_MIN } from "../link.js";
import { parseWebSocketAddress } from "./websocket-address.js";

/** The subprotocol, by which the sides of a connection know each other. */
export const PROTOCOL = "pamir.1";
/** The parameter of the URL that states the address of the peer's own server. */
export const FROM = "from";

const PACKET_BYTES = 32_768;
const QUEUE_BYTES = 1_048_576;
/** Bytes of the longest head of a frame. They count too, so that a queue of empty packets has a bound. */
const HEAD_BYTES = 14;
/** Milliseconds for a connection to open. */
export const HANDSHAKE_MS = 10_000;
/** Milliseconds until a failed connection is tried again. They double with each failure, up to the maximum. */
const RETRY_MS = 50;
const RETRY_MS_MAX = 1000;
/** Milliseconds for which a connection is open that counts as no failure, however it ends. */
const LASTING_MS = 1000;
/** Milliseconds after which a connection whose queue is full and does not move is ended. */
const STALL_MS = 20_000;
/** Addresses for which the link keeps state: connections that it has opened, and when failed ones may be tried again. */
const OUTGOING_MAX = 4096;

/** Codes with which a connection is closed (RFC 6455, section 7.4.1). */
const CLOSE_GOING_AWAY = 1001;
const CLOSE_PROTOCOL_ERROR = 1002;

/** The part of a WebSocket that the link uses. The sockets of browsers, of Node and of the package ws have it. */
export interface WebSocketLike {
  readonly readyState: number;
  readonly bufferedAmount: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { readonly data: unknown } & never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  /** May keep a reference to the bytes until it has sent them. */
  send(packet: Uint8Array<ArrayBuffer>): void;
  close(code?: number): void;
  /** Ends the connection without the closing handshake; of ws. */
  terminate?(): void;
}

const OPEN = 1;

export interface WebSocketLinkOptions {
  /** The canonical address of this node's server, which others connect to. Without one, others cannot open connections. */
  readonly address?: Address | undefined;
  /**
   * Whether an address is that of a node of the job: only these may be stated by peers that connect (default: none). A peer
   * that states another one gets a token.
   */
  readonly isNode?: ((address: Address) => boolean) | undefined;
  /** Bytes of the largest packet: a multiple of 4 from 1,232 to 65,504 (default 32,768). */
  readonly packetBytes?: number | undefined;
  /** Bytes that wait for each connection, from 65,536 to 2^30 (default 1 MiB): further packets are lost. */
  readonly queueBytes?: number | undefined;
  /** Milliseconds for a connection to open, from 1 to 600,000 (default 10,000). */
  readonly handshakeMs?: number | undefined;
}

/** A connection, and the address of the peer at its other end. */
interface Connection {
  readonly address: Address;
  readonly socket: WebSocketLike;
  /** The address that this node has connected to; undefined: the peer has connected. */
  readonly outgoing: Outgoing | undefined;
  /** Packets that wait for it to open. */
  readonly waiting: Uint8Array<ArrayBuffer>[];
  waitingBytes: number;
  /** Called once a packet of a node of the job has come by it. */
  onProof: (() => void) | undefined;
  /** Cancels the timer of the handshake. */
  cancel: () => void;
  /** Milliseconds; undefined: it has not opened. */
  openedAt: number | undefined;
  /** With which its peer has closed it. */
  code: number | undefined;
  /** Bytes that waited when its queue was full, and the time; -1: it was not full since a packet found room. */
  fullBytes: number;
  fullSince: number;
}

/** An address that this node connects to. */
interface Outgoing {
  readonly address: Address;
  connection: Connection | undefined;
  /** Connections in a row that did not open, or closed soon. */
  failures: number;
  /** No connection before that time, in milliseconds. */
  notBefore: number;
}

export class WebSocketLink implements Link {
  readonly packetBytes: number;
  /** A packet may be lost with its connection, and overtaken by those of the next one. */
  readonly isFaithful = false;
  readonly address: Address | undefined;
  onPacket: Link["onPacket"] = () => {};
  /** Never called: send() refuses nothing. */
  onRoom: Link["onRoom"] = () => {};
  onMove: Link["onMove"];
  /** Called with the token of a peer without a server that has opened a connection. */
  onAccept: ((address: Address) => void) | undefined;
  /** Called once a connection that a peer had opened is over. `code`: as the peer has closed it, if it has. */
  onEnd: ((address: Address, code: number | undefined) => void) | undefined;
  /**
   * Packets: given to a connection, or waiting for it to open (`sent`); received; lost because the address is none, or is of
   * a connection that has closed (`noAddress`), because the queue was full, or because the connection failed (`lost`).
   * Connections that failed before they opened (`failed`). Messages that are no packets (`wrong`): they end the connection.
   */
  readonly counts = { sent: 0, received: 0, noAddress: 0, full: 0, lost: 0, failed: 0, wrong: 0 };
  /** Why a connection has failed, if none has opened since, and the host says so; browsers do not. */
  failure: string | undefined;
  readonly #connect: (url: string) => WebSocketLike;
  readonly #end: () => void;
  readonly #isNode: (address: Address) => boolean;
  readonly #queueBytes: number;
  readonly #handshakeMs: number;
  readonly #outgoing = new Map<Address, Outgoing>();
  /** Of peers without a server, by token. */
  readonly #byToken = new Map<Address, Connection>();
  readonly #connections = new Set<Connection>();
  #tokens = 0;
  #isClosed = false;

  /**
   * @param connect opens a socket, with PROTOCOL as the subprotocol. Its messages are `ArrayBuffer` or `Uint8Array`.
   * @param end ends the server; called by close()
   * @throws PAMIR_INVAL an option is out of its range
   */
  constructor(connect: (url: string) => WebSocketLike, end: () => void, options: WebSocketLinkOptions = {}) {
    checkWebSocketOptions(options);
    const { packetBytes = PACKET_BYTES, queueBytes = QUEUE_BYTES, handshakeMs = HANDSHAKE_MS } = options;
    this.packetBytes = packetBytes;
    this.address = options.address;
    this.#connect = connect;
    this.#end = end;
    this.#isNode = options.isNode ?? (() => false);
    this.#queueBytes = queueBytes;
    this.#handshakeMs = handshakeMs;
  }

  /** Connections that are open or opening. */
  get connections(): number {
    return this.#connections.size;
  }

  // ── Sending ───────────────────────────────────────────────────────────────────────────────────────────────────

  send(to: Address, packet: Uint8Array): boolean {
    checkPacket(packet, this.packetBytes);
    if (this.#isClosed) return true;
    const connection = this.#byToken.get(to) ?? this.#connectionTo(to);
    if (connection !== undefined) this.#give(connection, packet);
    return true;
  }

  /** The connection to an address. Undefined: there is none now, and the packet is counted as lost. */
  #connectionTo(to: Address): Connection | undefined {
    const outgoing = this.#outgoing.get(to) ?? this.#look(to);
    if (outgoing === undefined) {
      this.counts.noAddress++;
      return undefined;
    }
    const { connection, notBefore } = outgoing;
    if (connection !== undefined) return connection;
    const opened = systemClock.now() < notBefore ? undefined : this.#open(outgoing);
    if (opened === undefined) this.counts.lost++;
    return opened;
  }

  #look(to: Address): Outgoing | undefined {
    let address: Address;
    try {
      address = parseWebSocketAddress(to);
    } catch {
      return undefined;
    }
    if (this.#outgoing.size >= OUTGOING_MAX) this.#forgetIdle();
    if (this.#outgoing.size >= OUTGOING_MAX) return undefined;
    const outgoing = { address, connection: undefined, failures: 0, notBefore: 0 };
    this.#outgoing.set(to, outgoing);
    return outgoing;
  }

  #forgetIdle(): void {
    for (const [to, { connection }] of this.#outgoing) if (connection === undefined) this.#outgoing.delete(to);
  }

  /** Opens a connection. Undefined: the host refuses that at once. */
  #open(outgoing: Outgoing): Connection | undefined {
    const { address } = outgoing;
    const from = this.address === undefined ? "" : `?${FROM}=${encodeURIComponent(this.address)}`;
    let socket: WebSocketLike;
    try {
      socket = this.#connect(`${address}${from}`);
    } catch {
      this.counts.failed++;
      this.#postpone(outgoing);
      return undefined;
    }
    const connection = this.#add(address, socket, outgoing);
    outgoing.connection = connection;
    connection.cancel = after(this.#handshakeMs, () => this.#drop(connection));
    return connection;
  }

  /** A copy of a packet goes to the socket, or waits for it to open, or is lost. */
  #give(connection: Connection, packet: Uint8Array): void {
    const { socket, waiting } = connection;
    const isOpen = socket.readyState === OPEN;
    const queued = isOpen ? socket.bufferedAmount : connection.waitingBytes;
    const bytes = packet.length + HEAD_BYTES;
    if (queued + bytes > this.#queueBytes) {
      this.counts.full++;
      this.#checkProgress(connection, queued);
      return;
    }
    connection.fullBytes = -1;
    this.counts.sent++;
    // Not slice(): that of a Buffer copies nothing.
    const copy = new Uint8Array(packet);
    if (isOpen) {
      socket.send(copy);
      return;
    }
    waiting.push(copy);
    connection.waitingBytes += bytes;
  }

  /** A queue is full. A peer that has gone, or reads nothing, keeps it full: then the connection ends. */
  #checkProgress(connection: Connection, queued: number): void {
    const now = systemClock.now();
    if (connection.fullBytes < 0 || queued < connection.fullBytes) {
      connection.fullBytes = queued;
      connection.fullSince = now;
    } else if (now - connection.fullSince > STALL_MS) this.#drop(connection);
  }

  // ── Connections ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Takes an open connection that a peer has made.
   * @param stated the address that the peer states as its own, if any
   * @param onProof called once a packet of a node of the job has come by it
   */
  accept(socket: WebSocketLike, stated: string | null, onProof?: () => void): void {
    if (this.#isClosed) {
      end(socket, CLOSE_GOING_AWAY);
      return;
    }
    const isStated = stated !== null && isCanonical(stated) && this.#isNode(stated);
    const address = isStated ? stated : `ws-peer:${++this.#tokens}`;
    const connection = this.#add(address, socket, undefined);
    connection.openedAt = systemClock.now();
    connection.onProof = onProof;
    if (isStated) return;
    this.#byToken.set(address, connection);
    this.onAccept?.(address);
  }

  #add(address: Address, socket: WebSocketLike, outgoing: Outgoing | undefined): Connection {
    const cancel = (): void => {};
    const state = { waitingBytes: 0, cancel, openedAt: undefined, code: undefined, fullBytes: -1, fullSince: 0 };
    const connection: Connection = { address, socket, outgoing, waiting: [], onProof: undefined, ...state };
    this.#connections.add(connection);
    socket.onopen = () => this.#opened(connection);
    socket.onmessage = ({ data }) => this.#message(connection, data);
    socket.onclose = ({ code }: { readonly code?: number }) => {
      connection.code = code;
      this.#closed(connection);
    };
    // It is closed next. An error of ws has a code.
    socket.onerror = ({ error }: { readonly error?: { readonly code?: string; readonly message?: string } }) => {
      this.failure = error?.message;
      if (this.#connections.has(connection) && error?.code?.startsWith("WS_ERR_") === true) this.counts.wrong++;
    };
    return connection;
  }

  #opened(connection: Connection): void {
    connection.cancel();
    if (!this.#connections.has(connection)) return;
    connection.openedAt = systemClock.now();
    this.failure = undefined;
    for (const packet of connection.waiting.splice(0)) connection.socket.send(packet);
    connection.waitingBytes = 0;
  }

  #message(connection: Connection, data: unknown): void {
    if (!this.#connections.has(connection)) return;
    const packet = data instanceof Uint8Array ? data : data instanceof ArrayBuffer ? new Uint8Array(data) : undefined;
    if (packet === undefined || packet.length > PACKET_BYTES_MAX) {
      this.counts.wrong++;
      this.#remove(connection);
      end(connection.socket, CLOSE_PROTOCOL_ERROR);
      return;
    }
    this.counts.received++;
    if (this.onPacket(connection.address, packet) !== true) return;
    connection.onProof?.();
    connection.onProof = undefined;
  }

  #closed(connection: Connection): void {
    if (!this.#connections.has(connection)) return;
    const { openedAt, outgoing } = connection;
    if (openedAt === undefined) this.counts.failed++;
    this.#remove(connection);
    // It may be called within send(), which has found a connection that stalls.
    if (openedAt !== undefined && outgoing !== undefined && this.address === undefined)
      queueMicrotask(() => this.#isClosed || this.onMove?.());
  }

  /** Ends a connection of which nothing is to be expected. */
  #drop(connection: Connection): void {
    this.#closed(connection);
    const { socket } = connection;
    if (socket.terminate === undefined) end(socket, CLOSE_GOING_AWAY);
    else socket.terminate();
  }

  /** Ends the connection that a peer has opened, behind what was sent. */
  end(address: Address): void {
    const connection = this.#byToken.get(address);
    if (connection === undefined) return;
    this.#remove(connection);
    end(connection.socket, CLOSE_GOING_AWAY);
  }

  /** Forgets a connection. The next packet to the address that this node has connected to goes by another one. */
  #remove(connection: Connection): void {
    const { address, outgoing, waiting, openedAt, code } = connection;
    connection.cancel();
    this.#connections.delete(connection);
    this.#byToken.delete(address);
    this.counts.lost += waiting.length;
    waiting.length = 0;
    // It may be called within send().
    if (outgoing === undefined) queueMicrotask(() => this.#isClosed || this.onEnd?.(address, code));
    if (outgoing?.connection !== connection) return;
    outgoing.connection = undefined;
    if (openedAt !== undefined && systemClock.now() - openedAt > LASTING_MS) outgoing.failures = 0;
    this.#postpone(outgoing);
  }

  /** Sets when a connection may be tried again. */
  #postpone(outgoing: Outgoing): void {
    const wait = Math.min(RETRY_MS * 2 ** outgoing.failures, RETRY_MS_MAX);
    outgoing.failures++;
    outgoing.notBefore = systemClock.now() + wait;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const connection of [...this.#connections]) {
      this.#remove(connection);
      end(connection.socket, CLOSE_GOING_AWAY);
    }
    this.#outgoing.clear();
    this.#end();
  }
}

/** Closes a socket, which may be opening. A browser lets programs state none of these codes. */
function end(socket: WebSocketLike, code: number): void {
  if (socket.terminate === undefined) socket.close();
  else socket.close(code);
}

function isCanonical(address: string): boolean {
  try {
    return parseWebSocketAddress(address) === address;
  } catch {
    return false;
  }
}

/** @throws PAMIR_INVAL */
export function checkWebSocketOptions({ packetBytes, queueBytes, handshakeMs }: WebSocketLinkOptions): void {
  const name = "packetBytes of a WebSocket link";
  if (packetBytes !== undefined) checkInteger(name, packetBytes, PACKET_BYTES_MIN, PACKET_BYTES_MAX);
  if (packetBytes !== undefined && packetBytes % 4 !== 0)
    throw new PamiError("PAMIR_INVAL", `${name} is ${packetBytes}, not a multiple of 4`);
  // A queue that is empty takes a packet of any size.
  if (queueBytes !== undefined) checkInteger("queueBytes", queueBytes, 2 ** 17, 2 ** 30);
  if (handshakeMs !== undefined) checkInteger("handshakeMs", handshakeMs, 1, 600_000);
}
