// The types of natsInviter().

import type { Invitation, InviteOptions } from "../host.js";
import type { JobAtNats } from "./job-at-nats.js";
import type { NatsConnect } from "./web-connection.js";

/** Options of `natsInviter`. */
export interface NatsInviterOptions extends JobAtNats {
  /**
   * The WebSocket port of the server as pages reach it: `wss://HOST:PORT` or `ws://…`, or several with commas. Tickets have it, with
   * the `USER:PASSWORD@` or `TOKEN@` that pages are to be.
   */
  readonly address: string;
  /** Allows an `address` of `ws:`, and a job without a key. */
  readonly insecure?: boolean | undefined;
  /** As of `join`: where this program reaches the server by its WebSocket port, too. */
  readonly connect?: NatsConnect | undefined;
}

/** Issues tickets for a job at a NATS server. */
export interface NatsInviter {
  /**
   * Makes a ticket by which one page can join. It is answered by this program, which must run until the ticket is used.
   * @throws PAMIR_INVAL (a wrong option), PAMIR_CLOSED
   */
  invite(options?: InviteOptions): Promise<Invitation>;
  /** Closes the connection: tickets that are not used are void. */
  close(): Promise<void>;
  /** Calls close() at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
