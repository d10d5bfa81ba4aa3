// The types of host().
import type { Client } from "../index.js";

/** Options of `host`. */
export interface HostOptions {
  /** Where the server listens: `wss://HOST:PORT/PATH` or `ws://…`. Port 0: the system chooses one. */
  readonly listen: string;
  /**
   * The address that tickets name, if it is another one (default: `listen`): that of a proxy in front of this server, or of
   * this machine where the server listens at all addresses (`ws://0.0.0.0:PORT/`).
   */
  readonly address?: string | undefined;
  /** The certificate of a server at `wss:`, and its key, in PEM. */
  readonly tls?: { readonly cert: string | Uint8Array; readonly key: string | Uint8Array } | undefined;
  /**
   * Origins whose pages may connect, as browsers state them: `https://example.org`, with the port if it is another one than that of the
   * scheme; or `null`, for pages without an origin (default: all). A page of another origin is refused with 403, before a ticket
   * is looked at. A program that is no browser may state any origin, or none: tickets admit it.
   */
  readonly origins?: readonly string[] | undefined;
  /** Allows tickets for `ws:`, on a trusted network. Packets are sealed there too. */
  readonly insecure?: boolean | undefined;
  /** Nodes that may join in the life of the job, from 1 to 1,023 (default 16). Those that have ended count too. */
  readonly pages?: number | undefined;
  /** Milliseconds without an answer or a connection after which a node has ended: 100 to 86,400,000 (default 60,000). */
  readonly silence?: number | undefined;
  /** As of `launch`, for each node. */
  readonly contexts?: number | undefined;
  /** As of `launch`, for each node. */
  readonly laneBytes?: number | undefined;
  /** As of `launch`, for each node. */
  readonly heapBytes?: number | undefined;
  /** As of `launch`, for each node. */
  readonly regions?: number | undefined;
  /** As of `launch`, for each node. */
  readonly fifos?: number | undefined;
  /** As of `launch`, for each node. */
  readonly slots?: number | undefined;
}

/** Options of `host.invite`. */
export interface InviteOptions {
  /** Milliseconds in which the ticket may be used, from 1 to 86,400,000 (default 300,000). */
  readonly lifetime?: number | undefined;
}

/** A ticket, and its use. */
export interface Invitation {
  /** Text for `join`. It is a secret, and admits one node, once. It has no characters that a URL's fragment lacks. */
  readonly ticket: string;
  /**
   * Resolves with the number of the task that has joined by the ticket. It rejects with PAMIR_TICKET_EXPIRED, with PAMIR_CLOSED if
   * the host is closed first, or at a NATS server with PAMIR_TIMEDOUT: a page has used it, and has not joined; a program need not
   * handle that.
   */
  readonly joined: Promise<number>;
}

/** A job that pages can join. Its maker is task 0. */
export interface Host {
  /** The client of task 0. Its thread must not block: its event loop carries the messages of all pages. */
  readonly client: Client;
  /** The address that tickets name. */
  readonly address: string;
  /**
   * Makes a ticket by which one node can join. Nodes are numbered in the order in which they join.
   * @throws PAMIR_INVAL (a wrong option, or as many nodes have joined or are invited as `pages` allows), PAMIR_CLOSED
   */
  invite(options?: InviteOptions): Invitation;
  /** Closes the client, tells all nodes that the job is over, and ends the server. Resolves once the last messages are sent. */
  close(): Promise<void>;
  /** Calls close() at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
