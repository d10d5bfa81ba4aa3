// join() of a job at a NATS server: a page, a worker or a process is a later node of the job (come-later.ts), with one task and a link
// of its own. Packets go straight to the subjects of the other nodes, pages or not, sealed by the job key.
import { LAYOUT_HASH } from "../../../assembly/layout-hash.js";
import { type Came, Comer } from "../../bootstrap/nats/come-later.js";
import { isFact } from "../../bootstrap/nats/register.js";
import { SealedMessages } from "../../bootstrap/nats/sealed-messages.js";
import { PamiError, show } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import { formatNatsAddress, SECRET_BYTES } from "../../link/nats/nats-address.js";
import { NatsLink, packetBytesFor } from "../../link/nats/nats-link.js";
import { checkRights, deniedSubject, type NatsConnection } from "../../nats/connection.js";
import { randomId } from "../../nats/ids.js";
import type { Client } from "../../pami/client.js";
import type { Algorithms } from "../../seal/schedule.js";
import { scheduleOf } from "../../seal/schedule.js";
import { selectAlgorithms } from "../../seal/select.js";
import { hearAbort } from "../../support/abort.js";
import { systemClock } from "../../support/clock.js";
import type { AbortSignalLike } from "../../support/like.js";
import { promise } from "../../support/promise.js";
import { after } from "../../support/timers.js";
import { randomBytes } from "../bytes.js";
import { hearHide } from "../hide.js";
import { loadKernels, type MemoryOptions, makeRoom, type NodeKernels, WebNode } from "../node.js";
import { checkJobAtNats, checkServers, connectTo, type JobAtNats } from "./job-at-nats.js";
import { parseNatsTicket } from "./nats-ticket.js";
import { TicketHolder } from "./ticket-holder.js";
import type { NatsConnect } from "./web-connection.js";

const ARENA_BYTES = 2 ** 24;
const SILENCE_DEFAULT_MS = 60_000;
/** Unanswered attempts in a row before the server is asked, and answers in a row that nothing listens before a node is lost. */
const UNANSWERED_MIN = 3;
const GONE_MIN = 2;

export interface NatsJoinOptions {
  readonly insecure: boolean | undefined;
  readonly timeout: number;
  readonly signal: AbortSignalLike | undefined;
  readonly connect: NatsConnect | undefined;
}

/** @param job a ticket, or what has the job key @throws as join() */
export async function joinAtNats(job: string | JobAtNats, options: NatsJoinOptions): Promise<Client> {
  const { insecure, timeout, signal, connect } = options;
  const ticket = typeof job === "string" ? parseNatsTicket(job) : undefined;
  if (ticket !== undefined) checkServers("join()", ticket.address, insecure);
  const place =
    ticket === undefined
      ? checkJobAtNats("join()", job, insecure)
      : { nats: ticket.address, job: ticket.job, key: undefined };
  const until = systemClock.now() + timeout;
  const [stopped, stop] = promise<PamiError>();
  const give = (): void =>
    stop(new PamiError("PAMIR_CANCELED", "join(): the signal was aborted", { cause: signal?.reason }));
  const unheard = hearAbort(signal, give);
  if (signal?.aborted === true) give();
  const late = (): void =>
    stop(new PamiError("PAMIR_TIMEDOUT", `job ${place.job} did not admit this node in ${timeout} ms`));
  // The parts have the same limit, and say what they await.
  const cancel = after(timeout + 1000, late);
  const connecting = connectTo("join()", place, connect, { name: `pamir ${place.job} page`, timeout });
  try {
    const connection = await orStopped(connecting, stopped);
    const [algorithms, kernels] = await Promise.all([selectAlgorithms(), loadKernels()]);
    void deniedSubject(connection, place.job).then(stop);
    const holder = ticket && new TicketHolder(connection, ticket, algorithms);
    const key = holder === undefined ? place.key : await holder.key(stopped, timeout);
    const left = Math.max(1, until - systemClock.now());
    const joining = new NatsJoining(connection, { job: place.job, key, timeout: left, stopped, algorithms, kernels });
    const { client } = await joining.join();
    void holder?.joined(client.task);
    return client;
  } catch (error) {
    void connecting.then((connection) => connection.close()).catch(() => {});
    throw error;
  } finally {
    cancel();
    unheard();
  }
}

async function orStopped<T>(made: Promise<T>, stopped: Promise<PamiError>): Promise<T> {
  const result = await Promise.race([made, stopped]);
  if (result instanceof PamiError) throw result;
  return result;
}

interface Joining {
  readonly job: string;
  readonly key: Uint8Array | undefined;
  /** Milliseconds. */
  readonly timeout: number;
  /** Resolves with the error by which join() ends. */
  readonly stopped: Promise<PamiError>;
  readonly algorithms: Algorithms;
  readonly kernels: NodeKernels;
}

/** A node from its first message to its last one. */
class NatsJoining {
  readonly #connection: NatsConnection;
  readonly #joining: Joining;
  readonly #comer: Comer;
  #link: NatsLink | undefined;
  #made: WebNode | undefined;
  /** By node: attempts in a row at which the server has said that nothing listens there. */
  readonly #absent = new Map<number, number>();
  #nodes = 0;
  #own = 0;
  #isOver = false;
  readonly #ends: (() => void)[] = [];

  constructor(connection: NatsConnection, joining: Joining) {
    const { job, key, timeout, stopped, algorithms } = joining;
    this.#connection = connection;
    this.#joining = joining;
    const host = globalThis.location?.host ?? "a page";
    const options = { job, id: randomId(), host, timeout, denied: stopped };
    this.#comer = new Comer(connection, new SealedMessages(key, job, algorithms), options);
  }

  async join(): Promise<WebNode> {
    const comer = this.#comer;
    try {
      const came = await comer.come();
      const options = this.#optionsOf(came);
      const { task, facts } = came;
      const node = facts.nodes + task - facts.world;
      // Before others hear of this node: they send at once.
      const room = await makeRoom(this.#joining.kernels, { first: task, tasks: facts.most, options });
      const link = await this.#open(node);
      const { addresses } = await comer.enter(link.address);
      this.#own = node;
      this.#nodes = addresses.length;
      const made = this.#node(came, addresses, room, link);
      this.#made = made;
      this.#start(came, addresses, made);
      return made;
    } catch (error) {
      await comer.leave();
      comer.close();
      throw error;
    }
  }

  /** @throws PAMIR_VERSION, PAMIR_INVAL the job's nodes have another link */
  #optionsOf({ facts: { layoutHash, options } }: Came): MemoryOptions & { readonly silence?: number } {
    if (layoutHash !== LAYOUT_HASH) {
      const text = `job ${this.#joining.job} has another pamir than this ${VERSION} (layout ${layoutHash}, here ${LAYOUT_HASH})`;
      throw new PamiError("PAMIR_VERSION", `${text}: use one version`);
    }
    const given = options as MemoryOptions & { readonly link?: string; readonly silence?: number };
    if (given.link === "nats") return given;
    const text = `the nodes of job ${this.#joining.job} have the link ${show(given.link)}, not "nats", so that no page reaches them`;
    throw new PamiError("PAMIR_INVAL", text);
  }

  /** The link of this node. The server has its subscriptions before another node learns of the address. */
  async #open(node: number): Promise<NatsLink> {
    const { job } = this.#joining;
    const address = formatNatsAddress(job, node, randomBytes(SECRET_BYTES));
    const link = new NatsLink(this.#connection, address, job, packetBytesFor(this.#connection, undefined));
    this.#link = link;
    await checkRights(this.#connection, job, address);
    return link;
  }

  #node(
    { task, facts }: Came,
    addresses: readonly (string | null)[],
    room: ConstructorParameters<typeof WebNode>[0]["room"],
    link: NatsLink,
  ): WebNode {
    const { key, algorithms } = this.#joining;
    const { world, most, nodes, perNode, random } = facts;
    const all = nodes + most - world;
    const { silence = SILENCE_DEFAULT_MS } = facts.options as { readonly silence?: number };
    return new WebNode({
      room,
      link,
      node: this.#own,
      nodes: all,
      job: random,
      silence,
      started: Math.max(world, task + 1),
      arenaBytes: ARENA_BYTES,
      peers: {
        // A node that has come and is unknown greets this one; no packet goes to one that has ended.
        addressOf: (other) => addresses[other] ?? (other < nodes || other >= all ? "" : undefined),
        keySchedule: key && scheduleOf(algorithms, key, random),
        tasksPerNode: perNode,
        world,
      },
      onLost: (other, why) => {
        if (why === "givenUp") this.#cutOff(`node ${other} has given it up, which it did not answer for ${silence} ms`);
      },
      onUnanswered: (other, attempts) => this.#look(other, attempts),
      onLeave: () => this.#leave(),
    });
  }

  #start({ ended, gone, facts }: Came, addresses: readonly (string | null)[], made: WebNode): void {
    this.#hearEnds(facts.epoch);
    for (const task of gone) made.confirm(task);
    for (const other of ended) made.lose(other);
    for (const [other, address] of addresses.entries())
      if (address !== null && other !== this.#own && !ended.includes(other)) made.greet(other);
    this.#ends.push(
      // A page that is closed says so, or the others would hear of it by the silence.
      hearHide(() => void this.#comer.leave()),
      () => this.#comer.close(),
    );
  }

  /** The launchers tell each other of the ends that they see, and of pages that have left: steward.ts. */
  #hearEnds(epoch: string): void {
    const { job, key, algorithms } = this.#joining;
    const messages = new SealedMessages(key, `${job} ${epoch}`, algorithms);
    const subscription = this.#connection.subscribe(`pamir.${job}.l.${epoch}`, {
      callback: (error, { data }) => {
        const said =
          error === null ? (messages.open(data) as { readonly add?: unknown } | null | undefined) : undefined;
        if (!Array.isArray(said?.add)) return;
        for (const fact of said.add) {
          if (!isFact(fact)) continue;
          const [kind, number, isFailure] = fact;
          // Others say themselves that they leave, behind all that they have sent.
          if (isFailure !== 1) continue;
          if (kind === "gone") this.#made?.confirm(number);
          else if (kind === "ended" && number !== this.#own) this.#made?.lose(number);
        }
      },
    });
    this.#ends.push(() => subscription.unsubscribe());
  }

  /** A node has not answered. If the server says for long that nothing listens there, the node is lost. */
  #look(other: number, attempts: number): void {
    const made = this.#made as WebNode;
    const address = made.addressOf(other);
    if (attempts < UNANSWERED_MIN || address === "" || this.#link === undefined) return;
    const count = this.#link.isAbsent(address, true) ? (this.#absent.get(other) ?? 0) + 1 : 0;
    this.#absent.set(other, count);
    if (count === GONE_MIN) made.lose(other);
  }

  async #leave(): Promise<void> {
    const made = this.#made as WebNode;
    if (this.#isOver) return;
    this.#isOver = true;
    await made.settled();
    await this.#comer.leave();
    this.#close(made);
  }

  /** No other node is in reach any more: all their tasks have ended. */
  #cutOff(why: string): void {
    const made = this.#made;
    if (made === undefined || this.#isOver) return;
    this.#isOver = true;
    console.warn(`pamir: this node is cut off: ${why}`);
    for (let other = 0; other < this.#nodes; other++) if (other !== this.#own) made.lose(other);
    void this.#comer.leave();
    this.#close(made);
  }

  #close(made: WebNode): void {
    for (const end of this.#ends) end();
    made.close();
  }
}
