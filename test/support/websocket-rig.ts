// Four nodes in one thread, each with a WebSocket server of this machine: for the conformance suite of links.
import type { Address, Link } from "../../src/link/link.js";
import { PROTOCOL, type WebSocketLink } from "../../src/link/websocket/websocket-link.js";
import { type OpenWebSocketOptions, openWebSocketLink } from "../../src/link/websocket/websocket-server.js";
import type { LinkRig } from "../conformance/link.suite.js";
import { settler } from "./settler.js";

/** The lines by which a stranger asks for a WebSocket of the job, without the empty one behind them. */
export const UPGRADE: readonly string[] = [
  "GET / HTTP/1.1",
  "Host: x",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  `Sec-WebSocket-Protocol: ${PROTOCOL}`,
];

/** An address at which no server is. */
export async function closedServer(): Promise<Address> {
  const link = await openWebSocketLink({ listen: "ws://127.0.0.1:0/" });
  link.close();
  return link.address as Address;
}

export async function websocketRig(
  options: OpenWebSocketOptions,
  around: (link: Link) => Link = (link) => link,
): Promise<LinkRig & { readonly sockets: readonly WebSocketLink[] }> {
  const addresses: Address[] = [];
  const isNode = (address: Address): boolean => addresses.includes(address);
  const open = (): Promise<WebSocketLink> => openWebSocketLink({ ...options, isNode });
  const links = await Promise.all([open(), open(), open(), open()]);
  addresses.push(...links.map(({ address }) => address as Address));
  const closed = await closedServer();
  const unknown = ["", "4", "ws:", "ws://", "http://127.0.0.1:80/", "ws://127.0.0.1:0/", "ws-peer:1", closed];
  const settle = settler(() => ({
    sent: links.reduce((sum, { counts }) => sum + counts.sent, 0),
    received: links.reduce((sum, { counts }) => sum + counts.received, 0),
  }));
  return { links: links.map(around), sockets: links, addresses, unknown, refuses: false, hasFaults: undefined, settle };
}
