// host(): a process of Node makes a job that pages can join, and is its first task.
import { TASK_COUNT_MAX } from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { checkFlag, checkKeys, checkObject, NO_OPTIONS } from "../core/check.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { parseWebSocketAddress } from "../link/websocket/websocket-address.js";
import type { WebSocketLink } from "../link/websocket/websocket-link.js";
import { openWebSocketLink } from "../link/websocket/websocket-server.js";
import type { Client } from "../pami/client.js";
import { selectKeySchedules } from "../seal/select.js";
import { randomWords } from "../support/randomness.js";
import { randomBytes } from "./bytes.js";
import type { Host, HostOptions, Invitation, InviteOptions } from "./host.js";
import { HostLink } from "./host-link.js";
import { lifetimeOf } from "./lifetime.js";
import { loadKernels, makeRoom, type NodeRoom, WebNode } from "./node.js";
import { checkSecure } from "./secure.js";
import { Tickets } from "./tickets.js";

const PAGES_DEFAULT = 16;
/** All tasks of a job but the host. */
const PAGES_MAX = TASK_COUNT_MAX - 1;
const SILENCE_DEFAULT_MS = 60_000;
const SILENCE_MIN_MS = 100;
const SILENCE_MAX_MS = 86_400_000;
const ARENA_BYTES = 2 ** 24;

const KEYS: Readonly<Record<keyof HostOptions, true>> = {
  listen: true,
  address: true,
  tls: true,
  origins: true,
  insecure: true,
  pages: true,
  silence: true,
  contexts: true,
  laneBytes: true,
  heapBytes: true,
  regions: true,
  fifos: true,
  slots: true,
};
const TLS_KEYS: Readonly<Record<keyof NonNullable<HostOptions["tls"]>, true>> = { cert: true, key: true };

/** See host() of host.ts. */
export async function makeHost(options: HostOptions): Promise<Host> {
  checkObject("options of host()", options);
  checkKeys("options of host()", options, KEYS);
  const { listen, address, tls, origins, insecure, ...rest } = options;
  const { pages = PAGES_DEFAULT, silence = SILENCE_DEFAULT_MS, ...memory } = rest;
  checkFlag("insecure of host()", insecure);
  checkInteger("pages of host()", pages, 1, PAGES_MAX);
  checkInteger("silence of host()", silence, SILENCE_MIN_MS, SILENCE_MAX_MS);
  if (tls !== undefined) checkTls(tls);
  const stated = address === undefined ? undefined : parseWebSocketAddress(address);
  const named = stated ?? parseWebSocketAddress(listen, 0);
  checkSecure("host()", named, insecure);
  if (/^wss?:\/\/(0\.0\.0\.0|\[::\])[:/]/.test(named)) {
    const what = stated === undefined ? "listen" : "address";
    throw new PamiError(
      "PAMIR_INVAL",
      `${what} is ${named}: tickets need an address at which nodes find this host, in address`,
    );
  }
  const [makeKeySchedule, kernels] = await Promise.all([selectKeySchedules(), loadKernels()]);
  const room = await makeRoom(kernels, { first: 0, tasks: 1 + pages, options: memory });
  const inner = await openWebSocketLink({ listen, tls, origins });
  try {
    const given = { pages, silence, memory, address: stated ?? (inner.address as string) };
    return new WebHost(inner, given, makeKeySchedule, room);
  } catch (error) {
    inner.close();
    throw error;
  }
}

/** @throws PAMIR_INVAL */
function checkTls(tls: object): void {
  checkObject("tls of host()", tls);
  checkKeys("tls of host()", tls, TLS_KEYS);
  for (const [name, value] of Object.entries({ cert: undefined, key: undefined, ...tls })) {
    if (typeof value !== "string" && !ArrayBuffer.isView(value))
      throw new PamiError("PAMIR_INVAL", `${name} in tls of host() is ${show(value)}, not a text or bytes in PEM`);
  }
}

class WebHost implements Host {
  readonly client: Client;
  readonly address: string;
  readonly #node: WebNode;
  readonly #link: HostLink;
  readonly #tickets: Tickets;
  /** Resolves once the host's task has left, and the other nodes have all that it sent. */
  readonly #left: Promise<void>;
  readonly #onExit: () => void;
  #closing: Promise<void> | undefined;

  constructor(
    inner: WebSocketLink,
    given: { readonly pages: number; readonly silence: number; readonly memory: object; readonly address: string },
    makeKeySchedule: Awaited<ReturnType<typeof selectKeySchedules>>,
    room: NodeRoom,
  ) {
    const { pages, silence, memory, address } = given;
    const job = randomWords()();
    const nodes = 1 + pages;
    this.address = address;
    this.#tickets = new Tickets({ job, address, most: pages, makeKeySchedule, random: randomBytes });
    this.#link = new HostLink(inner, {
      tickets: this.#tickets,
      nodes,
      options: memory,
      silence,
      layout: LAYOUT_HASH,
      random: randomBytes,
      onJoined: (node) => this.#node.haveStarted(node + 1),
      onEnded: (node, isCertain) => this.#node.lose(node, isCertain),
    });
    let leave = (_: Promise<void>): void => {};
    this.#left = new Promise((resolve) => {
      leave = resolve;
    });
    this.#node = new WebNode({
      room,
      link: this.#link,
      node: 0,
      nodes,
      job,
      silence,
      started: 1,
      arenaBytes: ARENA_BYTES,
      onLost: (node) => this.#link.end(node),
      onLeave: () => {
        leave(this.#node.settled().then(() => this.#link.hostLeft()));
        return this.#left;
      },
    });
    this.client = this.#node.client;
    // A process that exits still hands its sockets what was written to them.
    this.#onExit = () => this.#link.leave();
    process.once("exit", this.#onExit);
  }

  invite(options: InviteOptions = NO_OPTIONS): Invitation {
    return this.#tickets.issue(lifetimeOf(options));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#tickets.close();
    if (!this.client.closed) this.client.close();
    await this.#left;
    this.#link.leave();
    this.#node.close();
    process.off("exit", this.#onExit);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
