// pamir/web: pages, workers and processes join the job of a process of Node, through WebSockets. What only Node can use is
// loaded by host().
import type { Host, HostOptions } from "./host.js";

export type { Host, HostOptions, Invitation, InviteOptions } from "./host.js";
export { type JoinOptions, join } from "./join.js";

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
