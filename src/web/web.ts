// pamir/web: pages, workers and processes join the job of a process of Node, through WebSockets, or a job at a NATS server. What only
// Node can use is loaded by host().
import type { Host, HostOptions } from "./host.js";
import type { NatsInviter, NatsInviterOptions } from "./nats/inviter.js";

export type { Host, HostOptions, Invitation, InviteOptions } from "./host.js";
export { type JoinOptions, join } from "./join.js";
export type { NatsInviter, NatsInviterOptions } from "./nats/inviter.js";
export type { JobAtNats } from "./nats/job-at-nats.js";
export type { NatsConnect, NatsConnectOptions } from "./nats/web-connection.js";

/**
 * Makes a job that pages, workers and processes of Node can join by tickets, and opens its server. The caller is task 0. All
 * messages between the nodes go through this process, sealed on each connection with the key of that node's ticket. It
 * needs Node and the package ws. The server keeps the process running until close().
 * @throws PAMIR_INVAL, PAMIR_ADDRESS (the server does not open, or there is no ws), PAMIR_INSECURE (`ws:` without `insecure`),
 *   PAMIR_MEMORY
 */
export async function host(options: HostOptions): Promise<Host> {
  return (await import("./web-host.js")).makeHost(options);
}

/**
 * Opens a connection to a NATS server, and issues tickets by which pages join a job there. It needs the job key, which it hands to the
 * page that uses a ticket first. A process of Node needs the package @nats-io/transport-node. The connection keeps the process running
 * until close().
 * @throws PAMIR_INVAL, PAMIR_KEY, PAMIR_INSECURE (an address of `ws:` without `insecure`), PAMIR_NATS
 */
export async function natsInviter(options: NatsInviterOptions): Promise<NatsInviter> {
  return (await import("./nats/ticket-office.js")).openTicketOffice(options);
}
