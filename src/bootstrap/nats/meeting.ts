// How the nodes of a job find each other at a NATS server, in whatever order they start: one of them collects the others, and
// numbers them once all are there.
//
//   pamir.JOB.boot.KEY          where the collector listens: `join` of the others, `claim` of another collector
//   pamir.JOB.boot.KEY.m.ID     a node's own subject, for the answers
//   pamir.JOB.keys              the fingerprint KEY of each node's job key: nodes with another key never meet these, and say so
//
//   node → collector            { join: ID, nodes, tasks, host, version }, each second: a node that falls silent is dropped
//   collector → node            { wait }, { start: NODE, epoch }, { full }, { differs } or { moved }
//   collector → collector       { claim: ID }
//   node → collector            { has: ID }: it has its number; { leaves: ID }
//
// A node to which the server says that nothing listens (status 503) becomes a collector. Two that do so at once hear of each
// other: the one with the greater ID gives way, unless it has given out numbers. Core NATS keeps the membership, so a server
// needs no JetStream: until the start the collector has it, from then on the nodes themselves.
import { PamiError } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import { deniedSubject, type NatsConnection, type NatsMessage } from "../../nats/connection.js";
import { systemClock } from "../../support/clock.js";
import { promise } from "../../support/promise.js";
import { after } from "../../support/timers.js";
import { needModule } from "../node.js";
import { quote, secondsText } from "../text.js";
import { type OnWait, reportWait } from "../waits.js";
import { SealedMessages } from "./sealed-messages.js";

/** Milliseconds between messages of a node that waits, and between claims of a collector. */
const AGAIN_MS = 500;
/** Milliseconds after which a node that has said nothing is dropped, or a collector that has not answered is given up. */
const SILENT_MS = 5000;
/** Milliseconds for which the collector tells the nodes their numbers again. */
const LINGER_MS = 10_000;
const NO_RESPONDERS = 503;
/** Names of nodes that a text lists. */
const SHOWN = 8;

export interface MeetingOptions {
  readonly job: string;
  /** Undefined: everything that reaches the server may take part. */
  readonly key: Uint8Array | undefined;
  readonly nodes: number;
  /** Of this node. All nodes have equally many. */
  readonly tasks: number;
  /** The name of this machine: nodes are numbered in the order of these names. */
  readonly host: string;
  /** Milliseconds until all nodes must have come. */
  readonly timeout: number;
  readonly onWait?: OnWait | undefined;
  /** Called once if a job of the same name, but with another key, meets at the server. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/** What a node learns. */
export interface Met {
  /** Number of this node. */
  readonly node: number;
  /** 16 hexadecimal digits that no other job has. */
  readonly epoch: string;
}

interface Join {
  readonly join: string;
  readonly nodes: number;
  readonly tasks: number;
  readonly host: string;
  readonly version: string;
}

/** All that a message may say. */
type Said = Partial<Join> & {
  readonly claim?: string;
  readonly has?: string;
  readonly leaves?: string;
  readonly wait?: readonly string[];
  readonly start?: number;
  readonly epoch?: string;
  readonly full?: boolean;
  readonly differs?: string;
  readonly moved?: boolean;
};

/**
 * Meets the other nodes.
 * @param connection stays the caller's; the collector uses it for ten more seconds: `settled` resolves once it does not
 * @throws PAMIR_TIMEDOUT names the nodes that have come; PAMIR_BOOTSTRAP the job is complete, or its nodes were started differently;
 *   PAMIR_NATS this user may not use the job's subjects
 */
export async function meetAtNats(
  connection: NatsConnection,
  options: MeetingOptions,
): Promise<Met & { readonly settled: Promise<void> }> {
  return new Attendance(connection, options).meet();
}

/** A node that meets the others. */
class Attendance {
  readonly #connection: NatsConnection;
  readonly #options: MeetingOptions;
  readonly #messages: SealedMessages;
  readonly #subject: string;
  readonly #own: string;
  readonly #join: Join;
  readonly #ends: (() => void)[] = [];
  #came: readonly string[] = [];
  #heardAt = systemClock.now();
  #collector: Collector | undefined;
  #settled: Promise<void> | undefined;
  /** Ends the collector of this node. */
  #stopCollecting = (): void => {};

  constructor(connection: NatsConnection, options: MeetingOptions) {
    const { job, key, nodes, tasks, host } = options;
    this.#connection = connection;
    this.#options = options;
    this.#messages = new SealedMessages(key, job);
    this.#subject = `pamir.${job}.boot.${this.#messages.fingerprint}`;
    const id = needModule("crypto").randomBytes(8).toString("hex");
    this.#own = `${this.#subject}.m.${id}`;
    this.#join = { join: id, nodes, tasks, host, version: VERSION };
  }

  async meet(): Promise<Met & { readonly settled: Promise<void> }> {
    const { job, timeout, nodes } = this.#options;
    const [met, settle] = promise<Met | PamiError>();
    const late = (): string => `${this.#came.length} of ${nodes} nodes of job ${job} (${namesText(this.#came)})`;
    this.#ends.push(
      after(timeout, () => {
        const text = `job ${job}: ${nodes} nodes did not meet within ${secondsText(timeout)}; there are ${late()}`;
        settle(new PamiError("PAMIR_TIMEDOUT", text));
      }),
      reportWait(this.#options.onWait, timeout, () => `the other nodes; there are ${late()}`),
    );
    void deniedSubject(this.#connection, job).then(settle);
    this.#subscribe(this.#own, (message) => this.#hear(message, settle));
    this.#watchKeys();
    const again = (): void => {
      this.#ask();
      stop = after(AGAIN_MS, again);
    };
    let stop = after(0, again);
    this.#ends.push(() => stop());
    const result = await met;
    for (const end of this.#ends) end();
    // Another collector may have given the number.
    if (this.#settled === undefined) this.#stopCollecting();
    if (!(result instanceof PamiError)) {
      this.#tell(this.#subject, { has: this.#join.join });
      return { ...result, settled: this.#settled ?? Promise.resolve() };
    }
    this.#tell(this.#subject, { leaves: this.#join.join });
    await this.#connection.flush().catch(() => {});
    throw result;
  }

  /** Asks the collector for a number, or says again that this node is there. */
  #ask(): void {
    if (this.#collector !== undefined) return;
    this.#connection.publish(this.#subject, this.#messages.seal(this.#join), { reply: this.#own });
    // A collector that has fallen silent: the server says so if its process has ended.
    if (systemClock.now() - this.#heardAt > SILENT_MS) this.#came = [];
  }

  #hear({ data, headers }: NatsMessage, settle: (result: Met | PamiError) => void): void {
    if (headers?.code === NO_RESPONDERS) {
      this.#collect(settle);
      return;
    }
    const said = this.#messages.open(data) as Said | undefined;
    if (typeof said !== "object" || said === null) return;
    this.#heardAt = systemClock.now();
    const { job } = this.#options;
    const refuse = (why: string): void => settle(new PamiError("PAMIR_BOOTSTRAP", `job ${job}: ${why}`));
    if (said.start !== undefined && said.epoch !== undefined) settle({ node: said.start, epoch: said.epoch });
    else if (said.full) refuse("all of its nodes are there: a job of this name runs at the server");
    else if (said.differs !== undefined) refuse(said.differs);
    else if (said.wait !== undefined) this.#came = said.wait;
  }

  /** Nothing listens: this node becomes the collector. */
  #collect(settle: (result: Met | PamiError) => void): void {
    if (this.#collector !== undefined) return;
    const collector = new Collector(this.#join, (to, said) => this.#tell(to, said), this.#subject, {
      onCome: (hosts) => {
        this.#came = hosts;
      },
      onStart: (met, settled) => {
        this.#settled = settled.then(this.#stopCollecting);
        settle(met);
      },
      onMoved: () => {
        this.#stopCollecting();
        this.#ask();
      },
    });
    this.#collector = collector;
    this.#stopCollecting = () => {
      this.#collector = undefined;
      collector.close();
      subscription.unsubscribe();
    };
    const subscription = this.#connection.subscribe(this.#subject, {
      callback: (error, { data, reply }) => {
        const said = error === null ? (this.#messages.open(data) as Said | undefined) : undefined;
        if (typeof said === "object" && said !== null) collector.hear(said, reply || undefined);
      },
    });
    void this.#connection.flush().then(
      () => collector.open(),
      () => {},
    );
  }

  #tell(to: string, said: Said): void {
    this.#connection.publish(to, this.#messages.seal(said), { reply: this.#own });
  }

  #subscribe(subject: string, hear: (message: NatsMessage) => void): void {
    const callback = (error: Error | null, message: NatsMessage): void => {
      if (error === null) hear(message);
    };
    const subscription = this.#connection.subscribe(subject, { callback });
    this.#ends.push(() => subscription.unsubscribe());
  }

  /** Nodes with another key have subjects of their own, and would wait in silence. */
  #watchKeys(): void {
    const { job, onNotice } = this.#options;
    if (onNotice === undefined) return;
    const { fingerprint } = this.#messages;
    const subject = `pamir.${job}.keys`;
    const own = new TextEncoder().encode(fingerprint);
    let isTold = false;
    this.#subscribe(subject, ({ data }) => {
      const other = new TextDecoder().decode(data.subarray(0, 64));
      if (other === fingerprint || isTold) return;
      isTold = true;
      this.#connection.publish(subject, own);
      onNotice(`a job named ${job} with ${fingerprint === "open" ? "a" : "another"} key meets at the same server`);
    });
    this.#connection.publish(subject, own);
  }
}

interface CollectorEvents {
  readonly onCome: (hosts: readonly string[]) => void;
  readonly onStart: (met: Met, settled: Promise<void>) => void;
  /** Another collector takes over. */
  readonly onMoved: () => void;
}

interface Comer {
  readonly host: string;
  readonly reply: string;
  heardAt: number;
  hasNumber: boolean;
}

/** Collects the nodes, among them its own. */
class Collector {
  readonly #join: Join;
  readonly #tell: (to: string, said: Said) => void;
  readonly #subject: string;
  readonly #events: CollectorEvents;
  readonly #comers = new Map<string, Comer>();
  /** By id, once all have come. */
  #numbers: ReadonlyMap<string, number> | undefined;
  #epoch = "";
  #isClosed = false;
  #cancel = (): void => {};
  #settle = (): void => {};

  constructor(join: Join, tell: (to: string, said: Said) => void, subject: string, events: CollectorEvents) {
    this.#join = join;
    this.#tell = tell;
    this.#subject = subject;
    this.#events = events;
  }

  /** The server knows that this collector listens. */
  open(): void {
    if (this.#isClosed) return;
    const { join, host } = this.#join;
    this.#comers.set(join, { host, reply: "", heardAt: Number.POSITIVE_INFINITY, hasNumber: true });
    const claim = (): void => {
      this.#tell(this.#subject, { claim: join });
      this.#drop();
      this.#cancel = after(AGAIN_MS, claim);
    };
    claim();
    this.#look();
  }

  hear(said: Said, reply: string | undefined): void {
    const { join: own } = this.#join;
    if (said.claim !== undefined && said.claim !== own) this.#hearClaim(said.claim, reply);
    else if (said.has !== undefined) this.#hasNumber(said.has);
    else if (said.leaves !== undefined && this.#numbers === undefined) this.#comers.delete(said.leaves);
    else if (said.join !== undefined && said.join !== own && reply !== undefined) this.#come(said as Join, reply);
  }

  #hearClaim(other: string, reply: string | undefined): void {
    if (this.#numbers !== undefined) {
      if (reply !== undefined) this.#tell(reply, { full: true });
      return;
    }
    if (other > this.#join.join) return;
    for (const { reply: to } of this.#comers.values()) if (to !== "") this.#tell(to, { moved: true });
    this.#events.onMoved();
  }

  #come(given: Join, reply: string): void {
    const { join: id, host } = given;
    if (this.#numbers !== undefined) {
      const node = this.#numbers.get(id);
      this.#tell(reply, node === undefined ? { full: true } : { start: node, epoch: this.#epoch });
      return;
    }
    const differs = this.#difference(given);
    if (differs !== undefined) {
      this.#tell(reply, { differs });
      return;
    }
    this.#comers.set(id, { host, reply, heardAt: systemClock.now(), hasNumber: false });
    this.#look();
    if (this.#numbers === undefined) this.#tell(reply, { wait: this.#hosts });
  }

  get #hosts(): string[] {
    return [...this.#comers.values()].map(({ host }) => host);
  }

  /** How another node was started differently. */
  #difference({ nodes, tasks, version, host }: Join): string | undefined {
    const own = this.#join;
    const said = (what: string, theirs: unknown, ours: unknown): string =>
      `${what} is ${quote(String(theirs))} on ${quote(String(host))}, and ${quote(String(ours))} on ${quote(own.host)}`;
    if (nodes !== own.nodes) return said("the number of nodes", nodes, own.nodes);
    if (tasks !== own.tasks) return said("the number of tasks of a node", tasks, own.tasks);
    return version === own.version ? undefined : said("the version of pamir", version, own.version);
  }

  /** Drops nodes that have fallen silent. */
  #drop(): void {
    const before = systemClock.now() - SILENT_MS;
    for (const [id, { heardAt }] of this.#comers) if (heardAt < before) this.#comers.delete(id);
  }

  /** Gives out numbers once all nodes are there. */
  #look(): void {
    this.#events.onCome(this.#hosts);
    if (this.#comers.size < this.#join.nodes) return;
    this.#cancel();
    const order = [...this.#comers].sort(
      ([one, { host: a }], [other, { host: b }]) => compareNames(a, b) || (one < other ? -1 : 1),
    );
    this.#numbers = new Map(order.map(([id], node) => [id, node]));
    this.#epoch = needModule("crypto").randomBytes(8).toString("hex");
    for (const [id, { reply }] of this.#comers) {
      const start = this.#numbers.get(id) as number;
      if (reply !== "") this.#tell(reply, { start, epoch: this.#epoch });
    }
    const [settled, settle] = promise<void>();
    this.#cancel = after(LINGER_MS, settle);
    this.#settle = settle;
    this.#events.onStart({ node: this.#numbers.get(this.#join.join) as number, epoch: this.#epoch }, settled);
    this.#hasNumber("");
  }

  #hasNumber(id: string): void {
    const comer = this.#comers.get(id);
    if (comer !== undefined) comer.hasNumber = true;
    if (this.#numbers === undefined || ![...this.#comers.values()].every(({ hasNumber }) => hasNumber)) return;
    this.#cancel();
    this.#settle();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }
}

/** Numbers within names count as numbers: node-2 comes before node-10. */
function compareNames(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).map((name) => quote(name));
  return shown.join(", ") + (names.length > SHOWN ? ` and ${names.length - SHOWN} more` : "");
}
