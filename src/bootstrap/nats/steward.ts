// The stewards of a job at a NATS server: one of its launchers gives numbers to tasks that come later (come-later.ts), the others are
// ready to take over. Each launcher has a seat, the number of its first task. In a job without launchers, each node has one, and a
// thread that takes a launcher's part here (steward-thread.ts).
//
//   pamir.JOB.l.EPOCH           what launchers tell each other, sealed by the job key and the epoch
//   pamir.JOB.l.EPOCH.SEAT      to one of them
//
//   any → all          { of: SEAT, term, add: FACTS }                what has happened: register.ts
//   steward → all      { of, term, beat: DIGEST, at: MS }            once a second; { add, token }: answer that you have it
//   other → steward    { of, term, here: TOKEN }                     TOKEN: "" for a beat; { add, pull: true }: its facts differ
//   other → steward    { of, term, add, against: TOKEN }             it has other facts for these numbers
//   any → all          { of, term, claim: TOKEN }                    it takes over; the others answer { add, here: TOKEN, knows }
//   any → one          { of, term, stale: true }                     a later steward is there
//
// A number is given once. Terms order the stewards: a claim has a term that no launcher has had, and from then on no launcher that
// has heard of it answers an earlier steward. A number counts, and its task hears of it, once every other launcher that lives
// has answered that it has it. A steward that takes over hears first what all of these have. So it knows each number that
// counts, unless all that had it have ended; and it gives no number twice, since each launcher says what it has against it.
// A launcher that was stopped or cut off claims anew: it knows the first by its clock, the second by its own messages, which
// come back to it. Its facts may be old. They are not once one that was not cut off has answered its claim (`knows`), or all others
// have: then no other knows more. Where the servers of a cluster lose each other, both sides may give one number: each
// task is then refused by the nodes of the other side, as another process with that number.
import { VERSION } from "../../generated/version.js";
import { isId, randomId } from "../../nats/ids.js";
import { quote } from "../text.js";
import type { ComerSaid, LaterFacts, StewardAnswer } from "./come-later.js";
import { type Fact, isFact, Register } from "./register.js";

/** Milliseconds between beats. */
const BEAT_MS = 1000;
/** Milliseconds without a beat after which the next launcher takes over, and how much longer each further one waits. */
const LOST_MS = 3500;
const TURN_MS = 1000;
/** Milliseconds that a launcher with old facts leaves to others that do not answer, which may know of more numbers. */
const OLD_MS = 20_000;
const TURNS_MAX = 8;
/** Milliseconds without an answer after which a launcher is not waited for. */
const SILENT_MS = 5000;
/** Milliseconds in which all that live must have answered a claim. */
const CLAIM_MS = 2000;
/** Milliseconds between two ticks after which this launcher has been stopped. */
const STOPPED_MS = 2500;
/** Milliseconds without its own beats after which a steward is cut off. */
const ECHO_MS = 2500;
/** Milliseconds for which the server must have said that a launcher has no subscription. */
const ABSENT_MS = 10_000;
/** Facts, and characters of addresses, in a message: far below the server's `max_payload`. */
const FACTS_MAX = 200;
const ADDRESSES_LENGTH = 16_384;
/** Terms are multiples of this plus a seat; weights are terms times this plus a count. */
const SEATS = 65_536;

/** What a launcher says. */
export interface StewardSaid {
  readonly of: number;
  readonly term: number;
  readonly beat?: string;
  /** The sender's clock, in milliseconds: its own beat that comes back is as old as that. */
  readonly at?: number;
  readonly here?: string;
  readonly add?: readonly unknown[];
  readonly token?: string;
  readonly against?: string;
  readonly pull?: boolean;
  readonly claim?: string;
  /** Answers a claim: the sender was not cut off. */
  readonly knows?: boolean;
  readonly stale?: boolean;
}

export interface StewardSetup {
  /** The number of the first task of this launcher. */
  readonly seat: number;
  /** Of the launchers with which the job began; empty: this launcher comes later. */
  readonly seats: readonly number[];
  /** Tasks with which each of these began. */
  readonly local: number;
  /** Whether tasks may come later. */
  readonly isElastic: boolean;
}

/** What a launcher does for its steward. */
export interface StewardHost {
  /** Tells the launcher with a seat; undefined: all others. */
  tell(said: StewardSaid, seat?: number): void;
  /** Answers a comer. */
  answer(answer: StewardAnswer): void;
  /** Facts that other launchers have told, each once. */
  onFacts(facts: readonly Fact[]): void;
  /** From now on this launcher listens to comers, or does so no longer. */
  onOffice(isSteward: boolean): void;
  now(): number;
  after(milliseconds: number, call: () => void): () => void;
}

/** Facts that wait until all others have them. */
interface Proposal {
  readonly fact: Fact;
  readonly waiting: Set<number>;
  /** Called then: the last of those that wait for it asks again. */
  call: () => void;
}

export class Steward {
  readonly #host: StewardHost;
  readonly #setup: StewardSetup;
  readonly #register = new Register();
  #facts: LaterFacts | undefined;
  #addresses: readonly (string | null)[] = [];
  /** The greatest term that this launcher has heard of, and the seat of its steward. */
  #term = -1;
  /** When the steward was heard last; its end is as if that were long ago. */
  #heardAt: number;
  #tickAt: number;
  /** When the connection broke, or was there again, last. Claims of others do not count here: two could wait for each other. */
  #cutOffAt = Number.NEGATIVE_INFINITY;
  /** By seat: when it has answered last, and since when the server says that it has no subscription. */
  readonly #answeredAt = new Map<number, number>();
  readonly #absentSince = new Map<number, number>();
  /** Whether this launcher has the facts of the others: one that comes later has none, one that was cut off has old ones. */
  #knows: "none" | "old" | "all";
  #office: "none" | "claims" | "holds" = "none";
  #claimed = new Set<number>();
  #claimToken = "";
  #claimedAt = 0;
  /** When a message of this launcher has come back to it last. */
  #echoAt = Number.NEGATIVE_INFINITY;
  #round = "";
  #weight = 0;
  /** By token. */
  readonly #proposals = new Map<string, Proposal>();
  /** Keys of facts that all others have. */
  readonly #counted = new Set<string>();
  #cancel = (): void => {};
  #isClosed = false;

  constructor(host: StewardHost, setup: StewardSetup) {
    this.#host = host;
    this.#setup = setup;
    this.#heardAt = host.now();
    this.#tickAt = host.now();
    this.#knows = setup.seats.length > 0 ? "all" : "none";
    for (const seat of setup.seats) this.#register.add(["seat", seat, 0]);
    if (this.#knows === "none") this.add([["seat", setup.seat, 0]]);
  }

  /** Whether this launcher answers comers. */
  get isSteward(): boolean {
    return this.#office === "holds";
  }

  /** Whether this launcher could take over: it has had the facts of the others. */
  get isReady(): boolean {
    return this.#knows !== "none";
  }

  get ended(): readonly number[] {
    return this.#register.numbers("ended");
  }

  get gone(): readonly number[] {
    return this.#register.numbers("gone");
  }

  /** Begins: this launcher hears the others from now on. */
  open(): void {
    if (this.#setup.isElastic) this.#tick();
  }

  /** The tasks of this launcher have met the others: comers get this. @param addresses by node */
  know(facts: LaterFacts, addresses: readonly (string | null)[]): void {
    this.#facts = facts;
    this.#addresses = addresses;
  }

  /** Something has happened here: tells all others. */
  add(facts: readonly Fact[]): void {
    const fresh = facts.filter((fact) => this.#register.add(fact));
    if (fresh.length > 0) this.#tellAll({ add: fresh });
  }

  /** This launcher leaves: another one takes over. */
  leave(): void {
    this.add([["seat", this.#setup.seat, (this.#register.get("seat", this.#setup.seat)?.[2] ?? 0) + 1]]);
    this.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#resign();
  }

  /** The connection broke: other launchers may have chosen another steward meanwhile. */
  cutOff(): void {
    const isSteward = this.#office === "holds" && this.#hasEcho && !this.#hasStopped();
    if (this.#knows === "all" && !isSteward) this.#knows = "old";
    this.#resign();
    this.#heardAt = this.#host.now();
    this.#cutOffAt = this.#heardAt;
  }

  /** The server says that a launcher has no subscription. */
  absent(seat: number): void {
    const now = this.#host.now();
    const since = this.#absentSince.get(seat) ?? now;
    this.#absentSince.set(seat, since);
    if (this.#office !== "holds" || now - since < ABSENT_MS) return;
    const count = (this.#register.get("seat", seat)?.[2] ?? 0) + 1;
    this.add([["seat", seat, count], ...this.#nodesOf(seat).map((node): Fact => ["ended", node, 0])]);
  }

  /** A message of another launcher. */
  hear(said: StewardSaid): void {
    const { of: from, term } = said;
    if (this.#isClosed || !Number.isSafeInteger(from) || !Number.isSafeInteger(term)) return;
    if (this.#office !== "none" && this.#hasStopped()) this.#resign();
    if (from === this.#setup.seat) {
      if (term === this.#term) this.#hearEcho(said);
      return;
    }
    this.#absentSince.delete(from);
    const facts = (said.add ?? []).filter(isFact);
    if (term > this.#term) this.#follow(term);
    const isStale =
      term < this.#term && (said.beat !== undefined || said.claim !== undefined || said.token !== undefined);
    if (isStale) this.#tell({ stale: true }, from);
    const against = said.token === undefined || isStale ? [] : this.#against(facts);
    if (against.length > 0) this.#tell({ add: against, against: said.token as string }, from);
    if (said.against === undefined)
      this.#merge(facts.filter(([, number]) => !against.some((other) => other[1] === number)));
    if (isStale) return;
    if (said.beat !== undefined) this.#hearBeat(from, said.beat);
    else if (said.claim !== undefined) this.#tellFacts(from, { here: said.claim, knows: this.#knows === "all" });
    else if (said.pull) this.#tellFacts(from, { here: "" });
    else if (said.token !== undefined && against.length === 0) this.#tell({ here: said.token }, from);
    else if (this.#office === "holds" && facts.some(([kind, seat]) => kind === "seat" && seat === from))
      this.#tellFacts(from, { here: "" });
    if (said.here !== undefined) this.#hearAnswer(from, said.here, said.knows === true);
    else if (said.against !== undefined) this.#hearAgainst(said.against, facts);
  }

  /** A message of a comer. */
  hearComer(said: ComerSaid): void {
    if (this.#office !== "holds" || !isId(said.come)) return;
    if (this.#hasStopped()) {
      this.#resign();
      return;
    }
    const { come: to, ask = "", round, version, host } = said;
    const answer = (given: Omit<StewardAnswer, "to" | "ask">): void => this.#host.answer({ ...given, to, ask });
    if (said.leaves) this.#left(to);
    else if (version !== undefined && version !== VERSION)
      answer({
        refused: `the version of pamir is ${quote(version)} on ${quote(String(host))}, and "${VERSION}" in the job`,
      });
    else if (round !== this.#round) answer({ round: this.#round });
    else if (this.#facts === undefined)
      answer({
        wait:
          this.#setup.seats.length > 0
            ? "the tasks with which the job begins to meet"
            : "a task that has met the others: the launchers that had one have ended",
      });
    else this.#serve(said, this.#facts, answer);
  }

  /** Gives a number, or says where the others are. */
  #serve(said: ComerSaid, facts: LaterFacts, answer: (given: Omit<StewardAnswer, "to" | "ask">) => void): void {
    const { come: id, rank = -1, seat = -1, count = 1, address, from = 0 } = said;
    const again = (): void => this.hearComer(said);
    // A comer that has a number says it: it may be all that is left of those that had it.
    const known = said.task === undefined ? this.#register.given(id)[0] : this.#register.get("give", said.task);
    const task = known?.[1] ?? said.task ?? this.#next(facts.world);
    if (known !== undefined && known[3] !== id)
      answer({ refused: `its number ${task} has been given to another task` });
    else if (!(task >= facts.world && task < facts.most)) {
      const spare = facts.most - facts.world;
      answer({ refused: `all of its ${spare} numbers for later tasks are taken (--spare, spare of attach())` });
    } else if (known === undefined && task + count > facts.most) {
      const left = `${facts.most - task} of its ${facts.most - facts.world} numbers for later tasks are left (--spare)`;
      answer({ refused: `${left}, and a launcher with ${count} tasks needs as many: give it fewer (-n)` });
    } else if (known === undefined) this.#propose(["give", task, this.#weigh(), id, rank, seat], again);
    else if (!this.#counts(known)) this.#propose(["give", task, this.#weigh(), id, known[4], known[5]], again);
    else if (address === undefined) {
      const { ended, gone } = this;
      answer({ task, facts, ended, gone });
    } else this.#serveAddress({ id, task, address, from }, facts, answer, again);
  }

  /** Takes the address of a later node, and says those of the others. */
  #serveAddress(
    { id, task, address, from }: { id: string; task: number; address: string; from: number },
    facts: LaterFacts,
    answer: (given: Omit<StewardAnswer, "to" | "ask">) => void,
    again: () => void,
  ): void {
    const node = facts.nodes + task - facts.world;
    const at = this.#register.get("at", node);
    if (at?.[3] !== address || !this.#counts(at)) {
      this.#propose(["at", node, this.#weigh(), address], again);
      return;
    }
    // Two stewards may have given numbers to one ID.
    for (const [, wasted] of this.#register.given(id)) if (wasted !== task) this.#end(wasted, facts);
    answer(this.#addressesFrom(from, facts));
  }

  #next(world: number): number {
    return Math.max(world - 1, ...this.#register.of("give").map((fact) => fact[1])) + 1;
  }

  #addressesFrom(from: number, { nodes, world }: LaterFacts): Omit<StewardAnswer, "to" | "ask"> {
    const begun = this.#next(world) - world;
    const of = nodes + begun;
    const addresses: (string | null)[] = [];
    let length = 0;
    for (let node = from; node < of && length < ADDRESSES_LENGTH; node++) {
      const hasEnded = this.#register.get("ended", node) !== undefined;
      const address = hasEnded ? null : (this.#register.get("at", node)?.[3] ?? this.#addresses[node] ?? null);
      addresses.push(address);
      length += 4 + (address?.length ?? 0);
    }
    return { addresses, from, of, begun };
  }

  /** A comer without a launcher has ended. */
  #left(id: string): void {
    const task = this.#register.given(id)[0]?.[1];
    if (task !== undefined && this.#facts !== undefined) this.#end(task, this.#facts);
  }

  /** No task has this number any more. */
  #end(task: number, { nodes, world }: LaterFacts): void {
    if (this.#register.get("gone", task) !== undefined) return;
    const ends: Fact[] = [
      ["gone", task, 1],
      ["ended", nodes + task - world, 1],
    ];
    this.add(ends);
    this.#host.onFacts(ends);
  }

  // ── Facts that count once all others have them ─────────────────────────────────────────────────────────────────

  /** Weights of a steward are greater than those of earlier ones. */
  #weigh(): number {
    return this.#term * SEATS + ++this.#weight;
  }

  #counts(fact: Fact): boolean {
    return this.#counted.has(JSON.stringify(fact));
  }

  #propose(fact: Fact, call: () => void): void {
    const [kind, number, , value] = fact;
    for (const proposal of this.#proposals.values()) {
      const { fact: other } = proposal;
      if (other[0] !== kind || other[1] !== number || other[3] !== value) continue;
      proposal.call = call;
      return;
    }
    this.#register.add(fact);
    const token = randomId();
    const proposal = { fact, waiting: new Set(this.#living), call };
    this.#proposals.set(token, proposal);
    this.#tellAll({ add: [fact], token });
    this.#look(token, proposal);
  }

  /** Whether all others have it. */
  #look(token: string, { fact, waiting, call }: Proposal): void {
    const living = new Set(this.#living);
    for (const seat of waiting) if (!living.has(seat)) waiting.delete(seat);
    // A steward that is cut off hears none of the others.
    if (waiting.size > 0 || !this.#hasEcho) return;
    this.#proposals.delete(token);
    this.#counted.add(JSON.stringify(fact));
    call();
  }

  /** What this launcher has against numbers: they have another ID, or their ID has another number. */
  #against(facts: readonly Fact[]): Fact[] {
    return facts.flatMap((fact) => {
      if (fact[0] !== "give") return [];
      const known = this.#register.get("give", fact[1]);
      if (known !== undefined) return known[3] === fact[3] ? [] : [known];
      return this.#register.given(fact[3]).slice(0, 1);
    });
  }

  /** Launchers have other numbers for these IDs, or other IDs: those hold, and this steward looks again. */
  #hearAgainst(token: string, facts: readonly Fact[]): void {
    const proposal = this.#proposals.get(token);
    if (proposal === undefined || this.#office !== "holds") return;
    this.#proposals.delete(token);
    for (const fact of facts) {
      if (fact[0] !== "give") continue;
      const [kind, task, , ...values] = fact;
      const heavier: Fact = [kind, task, this.#weigh(), ...values];
      this.#register.add(heavier);
      this.#tellAll({ add: [heavier] });
    }
    proposal.call();
  }

  // ── The steward ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Seats of other launchers that have not left, in ascending order. */
  get #others(): number[] {
    return this.#register
      .of("seat")
      .filter(([, seat, count]) => count % 2 === 0 && seat !== this.#setup.seat)
      .map(([, seat]) => seat)
      .sort((a, b) => a - b);
  }

  /** Those of them that have answered lately. */
  get #living(): number[] {
    const before = this.#host.now() - SILENT_MS;
    return this.#others.filter((seat) => (this.#answeredAt.get(seat) ?? this.#heardAt) >= before);
  }

  get #hasEcho(): boolean {
    return this.#host.now() - this.#echoAt <= ECHO_MS;
  }

  #hasStopped(): boolean {
    return this.#host.now() - this.#tickAt > STOPPED_MS;
  }

  #tick(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#host.after(BEAT_MS, () => this.#tick());
    const now = this.#host.now();
    if (this.#hasStopped()) this.cutOff();
    this.#tickAt = now;
    if (this.#office === "holds") this.#beat(now);
    else if (this.#office === "claims") {
      this.#lookAtClaim();
      // The claim was lost.
      if (this.#office === "claims" && now - this.#claimedAt > LOST_MS) this.#resign();
    } else if (this.#knows !== "none" && now - this.#heardAt >= this.#patience) this.#claim();
  }

  #beat(now: number): void {
    this.#tellAll({ beat: this.#register.digest, at: now });
    for (const [token, proposal] of [...this.#proposals]) {
      this.#tellAll({ add: [proposal.fact], token });
      this.#look(token, proposal);
    }
    // The server says at once that nothing listens there: absent().
    for (const seat of this.#others) if (now - (this.#answeredAt.get(seat) ?? 0) > SILENT_MS) this.#tell({}, seat);
  }

  /** Milliseconds without a beat after which this launcher takes over. */
  get #patience(): number {
    const lost = this.#term < 0 ? undefined : this.#term % SEATS;
    const others = this.#others;
    const isGone = lost === undefined || lost === this.#setup.seat || !others.includes(lost);
    const turn = others.filter((seat) => seat < this.#setup.seat && seat !== lost).length;
    const lateness = this.#knows === "all" && isGone ? 0 : LOST_MS;
    return lateness + TURN_MS * Math.min(turn, TURNS_MAX);
  }

  #claim(): void {
    this.#office = "claims";
    const count = Math.floor(Math.max(this.#term, 0) / SEATS) + 1;
    this.#term = count * SEATS + this.#setup.seat;
    this.#claimToken = randomId();
    this.#claimed = new Set(this.#others);
    this.#claimedAt = this.#host.now();
    this.#echoAt = Number.NEGATIVE_INFINITY;
    for (const seat of this.#claimed) this.#answeredAt.set(seat, this.#claimedAt);
    this.#tellAll({ claim: this.#claimToken });
  }

  /** Takes the office once all others have answered its claim, or had the time to. */
  #lookAtClaim(): void {
    const now = this.#host.now();
    const hasFacts = this.#knows === "all" || now - this.#cutOffAt >= OLD_MS;
    const isTime = this.#claimed.size === 0 || (hasFacts && now - this.#claimedAt >= CLAIM_MS);
    if (this.#office === "claims" && isTime && this.#echoAt >= this.#claimedAt) this.#take();
  }

  /** A message of this launcher has come back. */
  #hearEcho({ beat, at = 0, claim }: StewardSaid): void {
    if (beat !== undefined) this.#echoAt = Math.max(this.#echoAt, Math.min(at, this.#host.now()));
    if (claim === undefined || claim !== this.#claimToken) return;
    this.#echoAt = this.#claimedAt;
    this.#lookAtClaim();
  }

  #take(): void {
    this.#office = "holds";
    this.#knows = "all";
    this.#round = randomId();
    this.#weight = 0;
    this.#counted.clear();
    this.#host.onOffice(true);
    this.#beat(this.#host.now());
  }

  /** Another launcher has a later term. */
  #follow(term: number): void {
    this.#term = term;
    this.#heardAt = this.#host.now();
    this.#resign();
  }

  #resign(): void {
    const wasSteward = this.#office === "holds";
    this.#office = "none";
    this.#proposals.clear();
    if (wasSteward) this.#host.onOffice(false);
  }

  #hearBeat(from: number, digest: string): void {
    this.#heardAt = this.#host.now();
    if (digest === this.#register.digest) {
      this.#knows = "all";
      this.#tell({ here: "" }, from);
    } else this.#tellFacts(from, { pull: true });
  }

  #hearAnswer(from: number, token: string, knows: boolean): void {
    this.#answeredAt.set(from, this.#host.now());
    // The last of all facts of the steward.
    if (token === "" && this.#term >= 0 && from === this.#term % SEATS) this.#knows = "all";
    if (token === this.#claimToken) {
      // An answer to an earlier claim may be older than what cut this launcher off.
      if (knows && this.#office === "claims") this.#knows = "all";
      this.#claimed.delete(from);
      this.#lookAtClaim();
      return;
    }
    const proposal = this.#proposals.get(token);
    if (proposal?.waiting.delete(from)) this.#look(token, proposal);
  }

  // ── Facts and messages ─────────────────────────────────────────────────────────────────────────────────────────

  #merge(facts: readonly Fact[]): void {
    const fresh = facts.filter((fact) => this.#register.add(fact));
    if (fresh.length > 0) this.#host.onFacts(fresh);
    const [, seat, count] = fresh.find(([kind, number]) => kind === "seat" && number === this.#setup.seat) ?? [];
    // The server was wrong about this launcher.
    if (seat !== undefined && count !== undefined && count % 2 === 1) this.add([["seat", seat, count + 1]]);
  }

  /** Nodes of a launcher. */
  #nodesOf(seat: number): number[] {
    const facts = this.#facts;
    if (facts === undefined) return [];
    const { world, nodes, perNode } = facts;
    const first =
      seat < world ? Array.from({ length: this.#setup.local }, (_, i) => Math.floor((seat + i) / perNode)) : [];
    const later = this.#register
      .of("give")
      .filter(([, task, , , , by]) => task === seat || by === seat)
      .map(([, task]) => nodes + task - world);
    return [...new Set([...first, ...later])];
  }

  /** All facts, in several messages; the last one says more. */
  #tellFacts(seat: number, last: Omit<StewardSaid, "of" | "term">): void {
    const facts = this.#register.all;
    for (let at = 0; at < facts.length; at += FACTS_MAX) {
      const add = facts.slice(at, at + FACTS_MAX);
      this.#tell(at + FACTS_MAX < facts.length ? { add } : { add, ...last }, seat);
    }
  }

  #tellAll(said: Omit<StewardSaid, "of" | "term">): void {
    this.#tell(said);
  }

  #tell(said: Omit<StewardSaid, "of" | "term">, seat?: number): void {
    this.#host.tell({ of: this.#setup.seat, term: this.#term, ...said }, seat);
  }
}
