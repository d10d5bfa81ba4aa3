// join(): a page, a worker or a process of Node joins the job of a host by a ticket, or a job at a NATS server.
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { checkCallback, checkFlag, checkKeys, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { PamiError } from "../core/error.js";
import { VERSION } from "../generated/version.js";
import type { AbortSignalLike, Client } from "../index.js";
import { openWebSocketLink } from "../link/websocket/websocket-server.js";
import { checkTimeout } from "../pami/waits.js";
import { selectKeySchedules } from "../seal/select.js";
import { hearAbort } from "../support/abort.js";
import { after } from "../support/timers.js";
import { randomBytes } from "./bytes.js";
import type { Admission, JobState, Refusal } from "./channel.js";
import { hearHide } from "./hide.js";
import type { JobAtNats } from "./nats/job-at-nats.js";
import type { NatsConnect } from "./nats/web-connection.js";
import { loadKernels, makeRoom, type NodeRoom, WebNode } from "./node.js";
import { PageLink } from "./page-link.js";
import { checkSecure } from "./secure.js";
import { isNatsTicket, parseTicket, type Ticket } from "./ticket.js";

const TIMEOUT_MS = 30_000;
const ARENA_BYTES = 2 ** 22;
const INSTANCE_BYTES = 16;

/** Options of `join`. */
export interface JoinOptions {
  /** Allows an address of `ws:`, and a job at a NATS server without a key. Packets are sealed there too, but a network that can change the page reads all. */
  readonly insecure?: boolean | undefined;
  /** Milliseconds until the host has to have admitted this node (default 30,000). */
  readonly timeout?: number | undefined;
  /** Gives it up. */
  readonly signal?: AbortSignalLike | undefined;
  /** For a job at a NATS server: `wsconnect` of the package @nats-io/nats-core, or a function that calls it with more options. */
  readonly connect?: NatsConnect | undefined;
}
const KEYS: Keys<JoinOptions> = { insecure: true, timeout: true, signal: true, connect: true };

/**
 * Joins a job as its next task, and resolves with the client of that task. The thread may be one of a page, a worker, or Node's. It
 * must not block: its event loop carries the messages. In Node, the package ws serves if it is installed. The connection keeps a
 * process running until the client is closed.
 * @param job a ticket of `host.invite()` or of `natsInviter()`; or a job at a NATS server, with its key. A ticket is a secret until it is
 *   used: pass it in the fragment of a URL or in a response, not in a query, which servers log
 * @throws PAMIR_INVAL, PAMIR_TICKET, PAMIR_TICKET_USED, PAMIR_TICKET_EXPIRED, PAMIR_INSECURE, PAMIR_VERSION, PAMIR_TIMEDOUT
 *   (nothing admits this node in time), PAMIR_CANCELED, PAMIR_MEMORY, PAMIR_ADDRESS (Node without WebSockets: install ws); at a NATS
 *   server also PAMIR_NATS (no server, or not the rights), PAMIR_KEY, PAMIR_BOOTSTRAP (the job takes no more tasks)
 */
export async function join(job: string | JobAtNats, options: JoinOptions = NO_OPTIONS): Promise<Client> {
  checkKeys("options of join()", options, KEYS);
  const { insecure, timeout = TIMEOUT_MS, signal, connect } = options;
  checkFlag("insecure of join()", insecure);
  checkTimeout(timeout);
  checkSignal("join()", signal);
  checkCallback("connect of join()", connect);
  if (typeof job === "object" || isNatsTicket(job))
    return (await import("./nats/nats-joining.js")).joinAtNats(job, { insecure, timeout, signal, connect });
  const parsed = parseTicket(job);
  checkSecure("join()", parsed.address, insecure);
  return new Joining(parsed).join(timeout, signal);
}

/** A node from its first packet to its last one. */
class Joining {
  readonly #ticket: Ticket;
  #link: PageLink | undefined;
  #node: WebNode | undefined;
  #state: JobState = { serial: 0, started: 1, ended: [] };
  #isOver = false;
  #unhear = (): void => {};

  constructor(ticket: Ticket) {
    this.#ticket = ticket;
  }

  async join(timeout: number, signal: AbortSignalLike | undefined): Promise<Client> {
    const { job, id, secret, address } = this.#ticket;
    const [schedules, kernels] = await Promise.all([selectKeySchedules(), loadKernels()]);
    const schedule = schedules(secret, job);
    const inner = await openWebSocketLink();
    let cancel = (): void => {};
    try {
      const admission = await new Promise<Admission>((resolve, reject) => {
        const stop = after(timeout, () => {
          const late = `${address} did not admit this node in ${timeout} ms: ${inner.failure ?? "is the host there?"}`;
          reject(new PamiError("PAMIR_TIMEDOUT", late));
        });
        const give = (): void =>
          reject(new PamiError("PAMIR_CANCELED", "join(): the signal was aborted", { cause: signal?.reason }));
        cancel = () => {
          stop();
          unheard();
        };
        const unheard = hearAbort(signal, give);
        if (signal?.aborted === true) give();
        const instance = randomBytes(INSTANCE_BYTES).join();
        this.#link = new PageLink(
          inner,
          { address, id, schedule, instance, layout: LAYOUT_HASH, version: VERSION, random: randomBytes },
          {
            admitted: resolve,
            refused: (why) => {
              reject(refusal(why, address));
              this.#cutOff(`${address} refuses this node: ${why}`);
            },
            state: (state) => this.#take(state),
            over: () => {
              reject(new PamiError("PAMIR_CLOSED", `the host at ${address} has ended the job`));
              this.#cutOff(undefined);
            },
            silent: () => this.#cutOff(`${address} did not answer`),
          },
        );
      });
      const { node: first, nodes: tasks, options } = admission;
      const room = makeRoom(kernels, { first, tasks, options });
      // Without a turn between, as a rule: other nodes may send at once.
      return this.#start(admission, room instanceof Promise ? await room : room).client;
    } catch (error) {
      inner.close();
      this.#link?.close();
      throw error;
    } finally {
      cancel();
    }
  }

  #start({ node, nodes, silence }: Admission, room: NodeRoom): WebNode {
    const link = this.#link as PageLink;
    const made = new WebNode({
      room,
      link,
      node,
      nodes,
      job: this.#ticket.job,
      silence,
      started: this.#state.started,
      arenaBytes: ARENA_BYTES,
      onLost: (lost) => {
        // The host's task may have left, and its process still passes packets on.
        if (lost === 0 && !this.#state.ended.includes(0)) this.#cutOff(undefined);
      },
      onLeave: () => this.#leave(),
    });
    this.#node = made;
    this.#unhear = hearHide(() => this.#link?.leave());
    for (const ended of this.#state.ended) made.lose(ended);
    return made;
  }

  #take(state: JobState): void {
    const before = this.#state;
    this.#state = state;
    const node = this.#node;
    if (node === undefined || this.#isOver) return;
    if (state.started > before.started) node.haveStarted(state.started);
    for (const ended of state.ended) if (!before.ended.includes(ended)) node.lose(ended);
  }

  async #leave(): Promise<void> {
    const node = this.#node as WebNode;
    if (this.#isOver) return;
    await node.settled();
    this.#link?.leave();
    this.#close(node);
  }

  /** No other node is in reach any more: all their tasks have ended. @param why for the console, if it is a failure */
  #cutOff(why: string | undefined): void {
    const node = this.#node;
    if (node === undefined || this.#isOver) return;
    this.#isOver = true;
    if (why !== undefined) console.warn(`pamir: this node is cut off: ${why}`);
    for (let other = 0; other < this.#state.started; other++) if (other !== node.client.task) node.lose(other);
    this.#close(node);
  }

  #close(node: WebNode): void {
    this.#unhear();
    node.close();
  }
}

function refusal(why: Refusal, address: string): PamiError {
  if (why === "used") return new PamiError("PAMIR_TICKET_USED", `the ticket for ${address} has admitted another node`);
  if (why === "expired") return new PamiError("PAMIR_TICKET_EXPIRED", `the ticket for ${address} has expired`);
  if (why === "version") {
    const text = `the host at ${address} has another pamir than this ${VERSION} (layout ${LAYOUT_HASH}): use one version`;
    return new PamiError("PAMIR_VERSION", text);
  }
  return new PamiError("PAMIR_TICKET", `the host at ${address} has issued no such ticket, or has been started again`);
}
