// How the nodes of a job find each other at a NATS server, in whatever order they start: one of them collects the others, and
// numbers them once all are there.
//
//   pamir.JOB.boot.KEY          where the collector listens: `join` of the others, `claim` of another collector
//   pamir.JOB.boot.KEY.m.ID     a node's own subject, for the answers
//   pamir.JOB.keys              the fingerprint KEY of each node's job key: nodes with another key never meet these, and say so
//
//   node → collector            { join: ID, nodes, tasks, spare, host, version }, twice a second: a node that falls silent is dropped
//   collector → node            { to: ID, from: ID } and { wait, round, within: MS }, { start: NODE, epoch }, { full },
//                               { differs } or { moved }
//   node → collector            { join: ID, ..., round }, at once: it is there. Of such nodes alone the job is made
//   collector → collectors      { claim: ID }; to one with a greater ID { to: ID, from: ID, claim: ID, against: ID }
//   node → collector            { has: ID }: it has its number; { leaves: ID }
//
// A node to which the server says twice that nothing listens (status 503) becomes a collector; so does one without an answer for some
// seconds, since a program that subscribes to all subjects counts as a listener. Two collectors hear of each other: the one
// with the greater ID gives way, unless it has given out numbers. A node that has answered a round answers no other collector
// for twice the time of a round, in which alone its collector counts on it: else two would give it numbers.
// Core NATS keeps the membership, so a server needs no JetStream: until the start the collector has it, from then on the nodes.
//
// The server, and every program that it admits, may record messages and say them again. IDs and rounds are random, and used once.
// A message gives a number, or takes a collector's part, only if it names an ID or a round of its receiver.
import { PamiError } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import {
  deniedSubject,
  hasNoListener,
  lastWord,
  type NatsConnection,
  type NatsMessage,
} from "../../nats/connection.js";
import { isId, randomId } from "../../nats/ids.js";
import { systemClock } from "../../support/clock.js";
import { promise } from "../../support/promise.js";
import { randomWords } from "../../support/randomness.js";
import { after } from "../../support/timers.js";
import { quote, secondsText } from "../text.js";
import { type OnWait, reportWait } from "../waits.js";
import { SealedMessages } from "./sealed-messages.js";

/** Milliseconds between messages of a node that waits, and between claims of a collector. */
const AGAIN_MS = 500;
/** Milliseconds after which a node that has said nothing is dropped. */
const SILENT_MS = 5000;
/**
 * Milliseconds for the answers to the first round: most networks answer within a third of a second. A round behind one that came
 * to nothing has twice its time, up to the most: else a busy machine would never answer in time.
 */
const ROUND_MS = 2000;
const ROUND_MOST_MS = 16_000;
/**
 * For so many times a round's time, a node that has answered the round answers no other collector, and does not collect. The node
 * counts its messages, AGAIN_MS apart, since a thread that stood still has not read what came meanwhile.
 */
const FAITH = 2;
/**
 * Milliseconds, at most, before a node that found no collector looks once more, and collects itself: of 200 nodes that begin at
 * once, some collect, and not all, of which each answers all others.
 */
const SPREAD_MS = 100;
/** Milliseconds for which the collector tells the nodes their numbers again. */
const LINGER_MS = 10_000;
const FULL =
  "all of its nodes are there: a job of this name runs at the server; with --later, pamir run joins one that takes later tasks";
/** Names of nodes that a text lists. */
const SHOWN = 8;

export interface MeetingOptions {
  readonly job: string;
  /** Undefined: everything that reaches the server may take part. */
  readonly key: Uint8Array | undefined;
  readonly nodes: number;
  /** Of this node. All nodes have equally many. */
  readonly tasks: number;
  /** Tasks that may come later (default 0): all nodes say the same. */
  readonly spare?: number | undefined;
  /** The name of this machine: nodes are numbered in the order of these names. */
  readonly host: string;
  /** Milliseconds until all nodes must have come. */
  readonly timeout: number;
  /** Resolves if this node is to give up. */
  readonly givenUp?: Promise<unknown> | undefined;
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
  readonly spare: number;
  readonly host: string;
  readonly version: string;
}

/** The job has begun: its nodes are there. */
export class BegunError extends PamiError {}

/** All that a message may say. */
type Said = Partial<Join> & {
  readonly to?: string;
  readonly from?: string;
  readonly round?: string;
  readonly within?: number;
  readonly claim?: string;
  readonly against?: string;
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
 *   this node gives up; PAMIR_NATS this user may not use the job's subjects
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
  #hasFoundNone = false;
  /** Milliseconds without an answer after which this node collects: seldom those of another node. */
  readonly #patience = ROUND_MS * (1 + randomWords()() / 2 ** 32);
  /** The collector whose round this node has answered, and messages until this node may answer another one. */
  #from = "";
  #faithfulFor = 0;
  #collector: Collector | undefined;
  #settled: Promise<void> | undefined;
  /** Ends the collector of this node. */
  #stopCollecting = (): void => {};

  constructor(connection: NatsConnection, options: MeetingOptions) {
    const { job, key, nodes, tasks, spare = 0, host } = options;
    this.#connection = connection;
    this.#options = options;
    this.#messages = new SealedMessages(key, job);
    this.#subject = `pamir.${job}.boot.${this.#messages.fingerprint}`;
    const id = randomId();
    this.#own = this.#subjectOf(id);
    this.#join = { join: id, nodes, tasks, spare, host, version: VERSION };
  }

  /** The own subject of a node. */
  #subjectOf(id: string): string {
    return `${this.#subject}.m.${id}`;
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
    void this.#options.givenUp?.then(() => settle(new PamiError("PAMIR_BOOTSTRAP", `job ${job}: this node gives up`)));
    this.#subscribe(this.#own, (message) => this.#hear(message, settle));
    this.#watchKeys();
    const again = (): void => {
      this.#ask(settle);
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
    await lastWord(this.#connection);
    throw result;
  }

  /** Asks the collector for a number, or says again that this node is there. */
  #ask(settle: (result: Met | PamiError) => void): void {
    if (this.#collector !== undefined) return;
    if (systemClock.now() - this.#heardAt > this.#patience && !this.#isFaithful) {
      this.#collect(settle);
      return;
    }
    this.#faithfulFor--;
    this.#tell(this.#subject, this.#join);
  }

  /** Whether a collector counts on this node: its start may be on the way. */
  get #isFaithful(): boolean {
    return this.#from !== "" && this.#faithfulFor > 0;
  }

  #hear(message: NatsMessage, settle: (result: Met | PamiError) => void): void {
    if (hasNoListener(message)) {
      if (!this.#isFaithful) this.#findNone(settle);
      return;
    }
    const said = this.#messages.open(message.data) as Said | undefined;
    if (typeof said !== "object" || said === null || said.to !== this.#join.join) return;
    this.#heardAt = systemClock.now();
    this.#hasFoundNone = false;
    if (said.claim !== undefined) {
      this.#collector?.hear(said);
      return;
    }
    const { job } = this.#options;
    const refuse = (why: string): void => settle(new PamiError("PAMIR_BOOTSTRAP", `job ${job}: ${why}`));
    if (said.start !== undefined && said.epoch !== undefined) settle({ node: said.start, epoch: said.epoch });
    else if (said.full) settle(new BegunError("PAMIR_BOOTSTRAP", `job ${job}: ${FULL}`));
    else if (said.differs !== undefined) refuse(said.differs);
    else if (said.moved) this.#release(said.from);
    else if (said.wait !== undefined && said.from !== undefined) this.#answer(said.from, said.wait, said);
  }

  /** Nothing listens. */
  #findNone(settle: (result: Met | PamiError) => void): void {
    if (this.#hasFoundNone) {
      this.#collect(settle);
      return;
    }
    this.#hasFoundNone = true;
    this.#ends.push(after((SPREAD_MS * randomWords()()) / 2 ** 32, () => this.#ask(settle)));
  }

  /** Two collectors that begin at once both hear this node: the one that is heard first may count it. */
  #answer(from: string, came: readonly string[], { round, within = ROUND_MS }: Said): void {
    if (this.#collector !== undefined || (this.#isFaithful && this.#from !== from)) return;
    this.#from = round === undefined ? "" : from;
    this.#faithfulFor = Math.ceil((FAITH * Math.min(within, ROUND_MOST_MS)) / AGAIN_MS);
    this.#came = came;
    if (round !== undefined) this.#tell(this.#subject, { ...this.#join, round });
  }

  /** This collector counts on this node no more. */
  #release(collector: string | undefined): void {
    if (this.#from === collector) this.#from = "";
  }

  /** This node becomes the collector. */
  #collect(settle: (result: Met | PamiError) => void): void {
    if (this.#collector !== undefined) return;
    const { join: from } = this.#join;
    const tellAll = (said: Said): void => this.#tell(this.#subject, said);
    const tell = (to: string, said: Said): void => this.#tell(this.#subjectOf(to), { ...said, to, from });
    const collector = new Collector(this.#join, tell, tellAll, {
      onCome: (hosts) => {
        this.#came = hosts;
      },
      onStart: (met, settled) => {
        this.#settled = settled.then(this.#stopCollecting);
        settle(met);
      },
      onMoved: () => {
        this.#stopCollecting();
        this.#heardAt = systemClock.now();
        this.#ask(settle);
      },
    });
    this.#collector = collector;
    this.#stopCollecting = () => {
      this.#collector = undefined;
      collector.close();
      subscription.unsubscribe();
    };
    const subscription = this.#connection.subscribe(this.#subject, {
      callback: (error, { data }) => {
        const said = error === null ? (this.#messages.open(data) as Said | undefined) : undefined;
        if (typeof said === "object" && said !== null) collector.hear(said);
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
  heardAt: number;
  /** The last round that it has answered. */
  round: string;
  hasNumber: boolean;
}

/** Collects the nodes, among them its own. */
class Collector {
  readonly #join: Join;
  readonly #tell: (to: string, said: Said) => void;
  readonly #tellAll: (said: Said) => void;
  readonly #events: CollectorEvents;
  readonly #comers = new Map<string, Comer>();
  /** Undefined: fewer nodes than the job has were there. */
  #round: string | undefined;
  #roundAt = 0;
  #roundMs = ROUND_MS;
  /** By id, once all have come. */
  #numbers: ReadonlyMap<string, number> | undefined;
  #epoch = "";
  #isClosed = false;
  #cancel = (): void => {};
  #settle = (): void => {};

  /** @param tell a node, by its id @param tellAll other collectors */
  constructor(
    join: Join,
    tell: (to: string, said: Said) => void,
    tellAll: (said: Said) => void,
    events: CollectorEvents,
  ) {
    this.#join = join;
    this.#tell = tell;
    this.#tellAll = tellAll;
    this.#events = events;
  }

  /** The server knows that this collector listens. */
  open(): void {
    if (this.#isClosed) return;
    const { join, host } = this.#join;
    this.#comers.set(join, { host, heardAt: Number.POSITIVE_INFINITY, round: "", hasNumber: true });
    const claim = (): void => {
      this.#cancel = after(AGAIN_MS, claim);
      this.#tellAll({ claim: join });
      this.#drop();
      this.#look();
    };
    claim();
  }

  hear(said: Said): void {
    const { join: own } = this.#join;
    if (said.claim !== undefined) this.#hearClaim(said.claim, said.against);
    else if (said.has !== undefined) this.#hasNumber(said.has);
    else if (said.leaves !== undefined && this.#numbers === undefined) this.#comers.delete(said.leaves);
    else if (said.join !== undefined && said.join !== own && isId(said.join)) this.#come(said as Said & Join);
  }

  /**
   * The smaller ID answers each claim, to the claiming node alone: all that collect at once would else answer each other's answers.
   * A claim that was recorded is not against this collector, whose ID is new.
   */
  #hearClaim(other: string, against: string | undefined): void {
    const { join: own } = this.#join;
    if (other === own || !isId(other) || (against !== undefined && against !== own)) return;
    if (this.#numbers !== undefined) this.#tell(other, { full: true });
    else if (other > own) {
      if (against === undefined) this.#tell(other, { claim: own, against: other });
    } else if (against === own) this.#events.onMoved();
  }

  #come(given: Said & Join): void {
    const { join: id, host, round = "" } = given;
    if (this.#numbers !== undefined) {
      const node = this.#numbers.get(id);
      this.#tell(id, node === undefined ? { full: true } : { start: node, epoch: this.#epoch });
      return;
    }
    const differs = this.#difference(given);
    if (differs !== undefined) {
      this.#tell(id, { differs });
      return;
    }
    const known = this.#comers.get(id);
    const heardAt = systemClock.now();
    this.#comers.set(id, { host, heardAt, round: round || (known?.round ?? ""), hasNumber: false });
    if (known === undefined || round !== "") this.#look();
    if (round === "" && this.#numbers === undefined) this.#ask(id);
  }

  #ask(id: string): void {
    const wait = this.#hosts;
    this.#tell(id, this.#round === undefined ? { wait } : { wait, round: this.#round, within: this.#roundMs });
  }

  get #hosts(): string[] {
    return [...this.#comers.values()].map(({ host }) => host);
  }

  /** How another node was started differently. */
  #difference({ nodes, tasks, spare, version, host }: Join): string | undefined {
    const own = this.#join;
    const said = (what: string, theirs: unknown, ours: unknown): string =>
      `${what} is ${quote(String(theirs))} on ${quote(String(host))}, and ${quote(String(ours))} on ${quote(own.host)}`;
    if (nodes !== own.nodes) return said("the number of nodes", nodes, own.nodes);
    if (tasks !== own.tasks) return said("the number of tasks of a node", tasks, own.tasks);
    if (spare !== own.spare)
      return said("the number of later tasks (--spare, --restart, spare of attach())", spare, own.spare);
    return version === own.version ? undefined : said("the version of pamir", version, own.version);
  }

  /** Drops nodes that have fallen silent. */
  #drop(): void {
    const before = systemClock.now() - SILENT_MS;
    for (const [id, { heardAt }] of this.#comers) if (heardAt < before) this.#comers.delete(id);
  }

  /**
   * Asks all once enough nodes are there, and gives out numbers once enough have answered this round: after its time, nodes
   * may answer another collector.
   */
  #look(): void {
    const { join: own, nodes } = this.#join;
    this.#events.onCome(this.#hosts);
    if (this.#comers.size < nodes) {
      this.#round = undefined;
      return;
    }
    const isLate = this.#round !== undefined && systemClock.now() - this.#roundAt >= this.#roundMs;
    if (isLate) this.#roundMs = Math.min(2 * this.#roundMs, ROUND_MOST_MS);
    if (isLate || this.#round === undefined) this.#askAll();
    const answered = [...this.#comers].filter(([id, { round }]) => id === own || round === this.#round);
    if (answered.length >= nodes) this.#start(answered.slice(0, nodes));
  }

  /** Begins a round. */
  #askAll(): void {
    this.#round = randomId();
    this.#roundAt = systemClock.now();
    for (const id of this.#comers.keys()) if (id !== this.#join.join) this.#ask(id);
  }

  /** Gives numbers to these nodes. */
  #start(nodes: [string, Comer][]): void {
    this.#cancel();
    const order = nodes.sort(
      ([one, { host: a }], [other, { host: b }]) => compareNames(a, b) || (one < other ? -1 : 1),
    );
    this.#numbers = new Map(order.map(([id], node) => [id, node]));
    this.#epoch = randomId();
    for (const id of [...this.#comers.keys()]) if (!this.#numbers.has(id)) this.#comers.delete(id);
    for (const [id, start] of this.#numbers) if (id !== this.#join.join) this.#tell(id, { start, epoch: this.#epoch });
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

  /** Its nodes need not wait for it. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
    if (this.#numbers !== undefined) return;
    for (const id of this.#comers.keys()) if (id !== this.#join.join) this.#tell(id, { moved: true });
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
