// Opens a link over WebSockets: its server by node:http or node:https and the package ws, its client sockets by ws or by the
// host. A browser has no server.
import type { IncomingMessage, Server, ServerOptions } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { PACKET_BYTES_MAX } from "../../../assembly/layout.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import { systemClock } from "../../support/clock.js";
import { nodeModule } from "../../support/host.js";
import { optionalPackage } from "../../support/node/packages.js";
import type { Address } from "../link.js";
import { notOpened } from "../socket-errors.js";
import { parseWebSocketAddress } from "./websocket-address.js";
import {
  checkWebSocketOptions,
  FROM,
  HANDSHAKE_MS,
  PROTOCOL,
  type WebSocketLike,
  WebSocketLink,
  type WebSocketLinkOptions,
} from "./websocket-link.js";

const CONNECTIONS_MAX = 1024;
/** Connections beyond those of nodes of the job, for peers that have yet to prove that they are. */
const CONNECTIONS_MORE = 64;
/**
 * Milliseconds for which a connection makes no room for another one. A node of the job needs up to four round trips until its
 * first packet has come. However many strangers come meanwhile, they do not end its connection.
 */
const PROOF_MS = 2000;
/** Milliseconds between looks for connections that are late with their request. */
const CHECK_MS_MAX = 2000;
/** Milliseconds of silence after which the system looks whether a peer is there. */
const KEEP_ALIVE_MS = 30_000;
/** Bytes of the longest head of a request: an address in the URL, and what a browser adds. */
const HEAD_BYTES_MAX = 16_384;

export interface OpenWebSocketOptions extends WebSocketLinkOptions {
  /**
   * Where this node's server listens: `ws://HOST:PORT/PATH` or `wss://…`. HOST is an address or a name of this machine. Port
   * 0: the system chooses one. Without it, others cannot open connections to this node.
   */
  readonly listen?: string | undefined;
  /** The certificate of a server at `wss:`, and its key, in PEM. */
  readonly tls?: { readonly cert: string | Uint8Array; readonly key: string | Uint8Array } | undefined;
  /** Certificates in PEM that servers may have, in place of those that the host trusts. It needs the package ws. */
  readonly ca?: string | Uint8Array | undefined;
  /**
   * Origins whose pages may connect, as browsers state them (`https://example.org`, or `null`); undefined: all. A request of another
   * origin is refused with 403. One without an origin is not of a page. PAMIR_INVAL names a text that is none.
   */
  readonly origins?: readonly string[] | undefined;
  /** Path of the package ws, for a thread that can't look for it. */
  readonly ws?: string | undefined;
  /**
   * The most connections of nodes of the job, from 1 to 65,536 (default 1,024). Strangers hold those that nodes do not, and 64
   * more: the oldest one makes room for another one.
   */
  readonly connectionsMax?: number | undefined;
}

/** A socket of ws. */
interface WsSocket extends WebSocketLike {
  once(event: "close", listener: () => void): void;
}

/** The part of the package ws that is used. */
interface Ws {
  readonly WebSocket: new (url: string, protocols: string[], options: object) => WsSocket;
  readonly WebSocketServer: new (
    options: object,
  ) => {
    handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, done: (socket: WsSocket) => void): void;
  };
}

/**
 * Parts of a message, and pieces of a part, that a socket keeps until the message is whole. Senders make one part; a proxy may
 * make more. Each costs some 100 bytes beside its own, and ws keeps 16,384 parts and 262,144 pieces by default.
 */
const PARTS_MAX = 64;
const PIECES_MAX = 1024;
/** Options of each socket of ws. A compressed packet would need memory for what it expands to. */
const SOCKET_OPTIONS = {
  perMessageDeflate: false,
  maxPayload: PACKET_BYTES_MAX,
  maxFragments: PARTS_MAX,
  maxBufferedChunks: PIECES_MAX,
  closeTimeout: 2000,
};

/**
 * Makes a link, and opens its server if it has one. The server and the connections keep the thread alive until close().
 * @throws PAMIR_INVAL an option is out of its range, or an address is none; PAMIR_ADDRESS the server does not open (the port
 * is in use or not allowed, the host does not resolve or is not of this machine, the certificate is refused), or this host
 * lacks what is needed for it
 */
export async function openWebSocketLink(
  options: OpenWebSocketOptions & { readonly listen: string },
): Promise<WebSocketLink & { readonly address: Address }>;
export async function openWebSocketLink(options?: OpenWebSocketOptions): Promise<WebSocketLink>;
export async function openWebSocketLink(options: OpenWebSocketOptions = {}): Promise<WebSocketLink> {
  const { listen, tls, origins, connectionsMax = CONNECTIONS_MAX, handshakeMs = HANDSHAKE_MS } = options;
  checkWebSocketOptions(options);
  if (origins !== undefined) checkOrigins(origins);
  checkInteger("connectionsMax", connectionsMax, 1, 65_536);
  const own = options.address === undefined ? undefined : parseWebSocketAddress(options.address);
  const connect = connectorOf(options);
  if (listen === undefined) return new WebSocketLink(connect, () => {}, { ...options, address: own });

  const url = new URL(parseWebSocketAddress(listen, 0));
  if ((url.protocol === "wss:") !== (tls !== undefined))
    throw new PamiError("PAMIR_INVAL", `listen is ${listen}: a server at wss: needs tls, one at ws: takes none`);
  const ws = wsOrNone(options.ws);
  if (ws === undefined) throw new PamiError("PAMIR_ADDRESS", `no WebSocket server at ${listen}: ${WS_MISSING}`);
  const waits = {
    headersTimeout: handshakeMs,
    requestTimeout: handshakeMs,
    connectionsCheckingInterval: Math.min(handshakeMs, CHECK_MS_MAX),
    maxHeaderSize: HEAD_BYTES_MAX,
  };
  let server: Server;
  try {
    server = makeServer(waits, tls, handshakeMs);
    await listening(server, url);
  } catch (cause) {
    throw notOpened("WebSocket server", listen, cause);
  }
  url.port = String((server.address() as { port: number }).port);
  const close = (): void => {
    server.close();
    // Those that are no WebSockets, or not yet.
    server.closeAllConnections();
  };
  const link = new WebSocketLink(connect, close, { ...options, address: own ?? (url.href as Address) });
  const isAllowed = (origin: string | undefined): boolean =>
    origin === undefined || origins === undefined || origins.includes(origin);
  try {
    serve(server, ws, link, { path: url.pathname, connectionsMax, isAllowed });
  } catch (cause) {
    // A package ws of another make.
    close();
    throw notOpened("WebSocket server", listen, cause);
  }
  return link;
}

/** @throws PAMIR_INVAL a text is no origin as a browser states it, which is compared as text */
function checkOrigins(origins: unknown): void {
  if (!Array.isArray(origins)) throw new PamiError("PAMIR_INVAL", `origins is ${show(origins)}, not a list of texts`);
  for (const [place, origin] of origins.entries()) {
    const canonical = canonicalOrigin(origin);
    if (canonical === origin) continue;
    const hint = canonical === undefined ? 'such as "https://example.org"' : `which would be ${show(canonical)}`;
    throw new PamiError(
      "PAMIR_INVAL",
      `origins[${place}] is ${show(origin)}, not an origin as browsers state it, ${hint}`,
    );
  }
}

/** The origin of a URL, as browsers state it; undefined: it is none. Pages without one of their own state null. */
function canonicalOrigin(origin: unknown): string | undefined {
  if (origin === "null") return origin;
  try {
    const { protocol, host } = new URL(origin as string);
    return typeof origin === "string" && host !== "" ? `${protocol}//${host}` : undefined;
  } catch {
    return undefined;
  }
}

const WS_MISSING = "the package ws is not installed (npm install ws)";

function wsOrNone(path: string | undefined): Ws | undefined {
  return optionalPackage("ws", path) as Ws | undefined;
}

/** How this host opens client sockets. @throws PAMIR_ADDRESS it can't */
function connectorOf({ ca, ws: path }: OpenWebSocketOptions): (url: string) => WebSocketLike {
  const ws = wsOrNone(path);
  if (ws !== undefined) {
    const options = { ...SOCKET_OPTIONS, ...(ca !== undefined && { ca }) };
    return (url) => new ws.WebSocket(url, [PROTOCOL], options);
  }
  const { WebSocket } = globalThis as { WebSocket?: new (url: string, protocols: string[]) => WebSocketLike };
  if (ca !== undefined)
    throw new PamiError("PAMIR_ADDRESS", `no WebSocket with certificates of its own: ${WS_MISSING}`);
  if (WebSocket === undefined) throw new PamiError("PAMIR_ADDRESS", `this host has no WebSocket: ${WS_MISSING}`);
  return (url) => Object.assign(new WebSocket(url, [PROTOCOL]), { binaryType: "arraybuffer" });
}

function makeServer(options: ServerOptions, tls: OpenWebSocketOptions["tls"], handshakeTimeout: number): Server {
  const [http, https] = [nodeModule("http"), nodeModule("https")];
  if (http === undefined || https === undefined) throw new Error("this host has no servers");
  if (tls === undefined) return http.createServer(options);
  const { cert, key } = tls;
  return https.createServer({ ...options, handshakeTimeout, cert: cert as Buffer, key: key as Buffer });
}

function listening(server: Server, { hostname, port, protocol }: URL): Promise<void> {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port: Number(port || (protocol === "wss:" ? 443 : 80)), exclusive: true }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Which requests a server accepts, and how many. */
interface Admission {
  readonly path: string;
  readonly connectionsMax: number;
  readonly isAllowed: (origin: string | undefined) => boolean;
}

/**
 * Accepts the connections of peers, and refuses others with the least answer. A connection is a stranger's until a packet of
 * the job has come by it.
 */
function serve(server: Server, ws: Ws, link: WebSocketLink, { path, connectionsMax, isAllowed }: Admission): void {
  const handleProtocols = (): string => PROTOCOL;
  const upgrades = new ws.WebSocketServer({
    ...SOCKET_OPTIONS,
    noServer: true,
    clientTracking: false,
    handleProtocols,
  });
  /** Connections by which no packet of the job has come, from the oldest on, and when they were made. */
  const strangers = new Map<Socket, number>();
  const members = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    const now = systemClock.now();
    strangers.set(socket, now);
    socket.once("close", () => {
      strangers.delete(socket);
      members.delete(socket);
    });
    if (strangers.size + members.size <= connectionsMax + CONNECTIONS_MORE) return;
    const [[oldest, since] = [socket, now]] = strangers;
    const leaver = now - since < PROOF_MS ? socket : oldest;
    // It is closed later, and another one may come before.
    strangers.delete(leaver);
    leaver.destroy();
  });
  /** A packet of the job has come. With TLS, the socket is around that of the connection. */
  const proved = (socket: Socket): void => {
    const ends = ["remotePort", "remoteAddress", "localAddress"] as const;
    for (const one of strangers.keys())
      if (ends.every((end) => one[end] === socket[end])) {
        strangers.delete(one);
        members.add(one);
      }
  };
  // An accept that fails, say for want of descriptors, concerns that connection alone.
  server.on("error", () => {});
  server.on("clientError", (_, socket) => socket.destroy());
  server.on("request", (_, response) => {
    response.writeHead(426, { connection: "close", upgrade: "websocket" }).end();
  });
  server.on("upgrade", (request, socket, head) => {
    const url = requestUrl(request);
    const protocols = request.headers["sec-websocket-protocol"]?.split(",") ?? [];
    if (!isAllowed(request.headers.origin)) refuse(socket, "403 Forbidden");
    else if (url?.pathname !== path) refuse(socket, "404 Not Found");
    else if (!protocols.some((one) => one.trim() === PROTOCOL)) refuse(socket, "400 Bad Request");
    else if (members.size >= connectionsMax) refuse(socket, "503 Service Unavailable");
    else {
      // A peer that has lost its power or its network says nothing.
      request.socket.setKeepAlive(true, KEEP_ALIVE_MS);
      upgrades.handleUpgrade(request, socket, head, (accepted) => {
        link.accept(accepted, url.searchParams.get(FROM), () => proved(request.socket));
      });
    }
  });
}

function requestUrl({ url = "" }: IncomingMessage): URL | undefined {
  try {
    return new URL(url, "ws://host/");
  } catch {
    return undefined;
  }
}

function refuse(socket: Duplex, status: string): void {
  socket.on("error", () => {});
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}
