// The kind of link `websocket`, as registry.ts loads it: opens the link of a node, and asks the system whether a node's server
// is gone. At an address of this machine, a server can listen only if no other one does. A TCP connection to a port without a
// server is refused.
import { nodeModule } from "../../support/host.js";
import { after } from "../../support/timers.js";
import type { AbsenceScope, LinkOpening, NodeLink } from "../kind.js";
import type { Address } from "../link.js";
import { openWebSocketLink } from "./websocket-server.js";

/** Milliseconds for an answer of another machine. */
const ANSWER_MS = 50;

/** Opens the link of a node. @throws as openWebSocketLink() */
export function openWebSocket(bind: string, { isNode, packages, packetBytes }: LinkOpening): Promise<NodeLink> {
  // Other nodes are programs, which state no origin. Without a key, a page of any origin could take part.
  return openWebSocketLink({ listen: bind, origins: [], isNode, ws: packages.ws, packetBytes });
}

/**
 * Whether the system reports that no server is at an address. For another machine it is a hint: a firewall may refuse, too.
 * An address of a connection (`ws-peer:…`) is never absent here.
 */
export async function isServerAbsent(address: Address, scope: AbsenceScope): Promise<boolean> {
  if (!/^wss?:/.test(address) || nodeModule("net") === undefined) return false;
  const here = await isFree(serverOf(address));
  if (here !== undefined || scope === "here") return here ?? false;
  return isRefused(serverOf(address));
}

/** Where a WebSocket server is. */
interface ServerPlace {
  readonly host: string;
  readonly port: number;
}

function serverOf(address: Address): ServerPlace {
  const { hostname, port, protocol } = new URL(address);
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port || (protocol === "wss:" ? 443 : 80)) };
}

/** Whether the address is of this machine, and free; undefined: it is of another machine. */
function isFree(place: ServerPlace): Promise<boolean | undefined> {
  const { createServer } = nodeModule("net") as typeof import("node:net");
  const server = createServer();
  return new Promise((resolve) => {
    server.on("error", ({ code }: Error & { code?: string }) => resolve(code === "EADDRINUSE" ? false : undefined));
    server.listen({ ...place, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Whether a connection to a server is refused. */
async function isRefused(place: ServerPlace): Promise<boolean> {
  const { connect } = nodeModule("net") as typeof import("node:net");
  const socket = connect(place);
  let cancel = (): void => {};
  const answer = new Promise<boolean>((resolve) => {
    socket.on("error", ({ code }: Error & { code?: string }) => resolve(code === "ECONNREFUSED"));
    socket.on("connect", () => resolve(false));
    cancel = after(ANSWER_MS, () => resolve(false));
  });
  return answer.finally(() => {
    cancel();
    socket.destroy();
  });
}
