// Launchers of a job whose stewards talk by a server, in virtual time: they are killed, stopped and cut off, the server says old
// messages again, and comers ask for numbers.
import type { LaterFacts, StewardAnswer } from "../../src/bootstrap/nats/come-later.js";
import type { Fact } from "../../src/bootstrap/nats/register.js";
import { Steward, type StewardSaid } from "../../src/bootstrap/nats/steward.js";
import { VERSION } from "../../src/generated/version.js";
import { randomOf } from "./random.js";

const AGAIN_MS = 500;

export interface WorldOptions {
  readonly seed: number;
  readonly launchers: number;
  readonly most: number;
  /** Milliseconds that a message takes at the most. */
  readonly delay: number;
  /** Of 100 messages, so many that the server says again, some time later. */
  readonly replays: number;
}

class SimulatedLauncher {
  readonly steward: Steward;
  readonly facts: Fact[] = [];
  state: "up" | "stopped" | "cutOff" | "killed" = "up";
  /** What has come, or is due, while it is stopped. */
  readonly held: (() => void)[] = [];
  /** What it has said while it was cut off: its client sends it later. */
  readonly unsent: (() => void)[] = [];
  readonly seat: number;
  /** Since when it is up. */
  since: number;
  lastAt = 0;

  constructor(world: StewardWorld, seat: number, seats: readonly number[]) {
    this.seat = seat;
    this.since = world.time;
    this.steward = new Steward(
      {
        tell: (said, to) => this.#send(() => world.route(said, to)),
        answer: (answer) => this.#send(() => world.answer(answer)),
        onFacts: (facts) => this.facts.push(...facts),
        onOffice: () => {},
        now: () => world.time,
        after: (milliseconds, call) => world.after(milliseconds, () => this.take(call)),
      },
      { seat, seats, local: 1, isElastic: true },
    );
  }

  #send(call: () => void): void {
    if (this.state === "cutOff") this.unsent.push(call);
    else call();
  }

  /** Runs something of this launcher's thread, once it may run. */
  take(call: () => void): void {
    if (this.state === "stopped") this.held.push(call);
    else if (this.state !== "killed") call();
  }
}

export class SimulatedComer {
  readonly id: string;
  readonly tasks = new Set<number>();
  addresses: readonly (string | null)[] | undefined;
  refused: string | undefined;
  wait: string | undefined;
  round = "";
  isAway = false;

  constructor(id: string) {
    this.id = id;
  }
}

export class StewardWorld {
  time = 0;
  readonly launchers: SimulatedLauncher[] = [];
  readonly comers: SimulatedComer[] = [];
  readonly random: (below: number) => number;
  readonly #options: WorldOptions;
  readonly #facts: LaterFacts;
  readonly #due: { readonly at: number; readonly order: number; readonly call: () => void }[] = [];
  #order = 0;

  constructor(options: WorldOptions) {
    const { launchers, most, seed } = options;
    this.#options = options;
    this.random = randomOf(seed);
    this.#facts = {
      epoch: "0",
      world: launchers,
      most,
      nodes: launchers,
      perNode: 1,
      layoutHash: 0,
      random: 0,
      options: {},
      isVisible: false,
      machine: "",
      network: "",
    };
    const seats = Array.from({ length: launchers }, (_, seat) => seat);
    for (const seat of seats) this.#start(seat, seats);
  }

  #start(seat: number, seats: readonly number[], hasMet = true): SimulatedLauncher {
    const one = new SimulatedLauncher(this, seat, seats);
    this.launchers.push(one);
    this.after(this.random(500), () =>
      one.take(() => {
        const addresses = Array.from({ length: this.#options.launchers }, (_, node) => `first ${node}`);
        if (hasMet) one.steward.know(this.#facts, addresses);
        one.steward.open();
      }),
    );
    return one;
  }

  /** A launcher of a later task. @param hasMet whether that task meets the others */
  join(seat: number, hasMet = true): SimulatedLauncher {
    return this.#start(seat, [], hasMet);
  }

  after(milliseconds: number, call: () => void): () => void {
    const entry = { at: this.time + milliseconds, order: this.#order++, call };
    this.#due.push(entry);
    return () => {
      const at = this.#due.indexOf(entry);
      if (at >= 0) this.#due.splice(at, 1);
    };
  }

  run(milliseconds: number): void {
    const end = this.time + milliseconds;
    for (;;) {
      let next = -1;
      for (const [i, { at, order }] of this.#due.entries()) {
        const best = this.#due[next];
        if (at <= end && (best === undefined || at < best.at || (at === best.at && order < best.order))) next = i;
      }
      if (next < 0) break;
      const [due] = this.#due.splice(next, 1);
      if (due === undefined) break;
      this.time = Math.max(this.time, due.at);
      due.call();
    }
    this.time = end;
  }

  /** The server hands a message on, to its sender, too. Each launcher gets its messages in the server's order. */
  route(said: StewardSaid, to: number | undefined): void {
    for (const one of this.launchers) if (to === undefined || one.seat === to) this.#deliver(one, said);
    if (this.random(100) < this.#options.replays) this.after(this.random(20_000), () => this.route(said, to));
  }

  #deliver(one: SimulatedLauncher, said: StewardSaid): void {
    if (one.state === "cutOff") return;
    one.lastAt = Math.max(one.lastAt, this.time + this.random(this.#options.delay));
    this.after(one.lastAt - this.time, () => {
      if (one.state !== "cutOff") one.take(() => one.steward.hear(structuredClone(said)));
    });
  }

  /** Says something to the steward: to each that takes itself for it. */
  ask(comer: SimulatedComer, said: object): void {
    for (const one of this.launchers) {
      if (one.state === "cutOff") continue;
      const { id: come, round } = comer;
      this.after(this.random(this.#options.delay), () =>
        one.take(() => one.steward.hearComer({ come, round, ask: "", version: VERSION, host: "h", ...said })),
      );
    }
  }

  answer(answer: StewardAnswer): void {
    const comer = this.comers.find(({ id }) => id === answer.to);
    if (comer === undefined || comer.isAway) return;
    if (answer.task !== undefined) comer.tasks.add(answer.task);
    if (answer.addresses !== undefined) comer.addresses = answer.addresses;
    comer.refused ??= answer.refused;
    comer.wait = answer.wait;
    if (answer.round !== undefined) comer.round = answer.round;
  }

  /** A task that asks until it has a number and the addresses. */
  come(): SimulatedComer {
    const comer = new SimulatedComer((this.comers.length + 1).toString(16).padStart(16, "0"));
    this.comers.push(comer);
    const again = (): void => {
      if (comer.addresses !== undefined || comer.refused !== undefined || comer.isAway) return;
      this.ask(
        comer,
        comer.tasks.size === 0 ? {} : { task: [...comer.tasks][0], address: `later ${comer.id}`, from: 0 },
      );
      this.after(AGAIN_MS, again);
    };
    again();
    return comer;
  }

  kill(one: SimulatedLauncher): void {
    one.state = "killed";
  }

  stop(one: SimulatedLauncher): void {
    if (one.state === "up") one.state = "stopped";
  }

  goOn(one: SimulatedLauncher): void {
    if (one.state !== "stopped") return;
    one.state = "up";
    one.since = this.time;
    for (const call of one.held.splice(0)) call();
  }

  /** @param isNoticed whether its client hears of it at once */
  cut(one: SimulatedLauncher, isNoticed: boolean): void {
    if (one.state !== "up") return;
    one.state = "cutOff";
    if (isNoticed) one.steward.cutOff();
  }

  connect(one: SimulatedLauncher): void {
    if (one.state !== "cutOff") return;
    one.state = "up";
    one.since = this.time;
    for (const call of one.unsent.splice(0)) call();
    one.steward.cutOff();
  }

  get stewards(): SimulatedLauncher[] {
    return this.launchers.filter(({ state, steward }) => state === "up" && steward.isSteward);
  }
}
