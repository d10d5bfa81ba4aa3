// The side of a task that comes later to a job at a NATS server. It runs in a browser, too: nothing here is Node's.
//
// One launcher of the job is its steward (steward.ts), and listens where the nodes have met (meeting.ts). All messages are JSON,
// sealed by the job key as those of the meeting.
//
//   pamir.JOB.boot.KEY          where the steward listens. KEY: the fingerprint of the job key
//   pamir.JOB.boot.KEY.m.ID     the comer's own subject, for the answers. ID: 16 random hexadecimal digits, used for one task
//   pamir.JOB.keys              the fingerprint of each comer's job key, in clear: a steward with another key says its own
//
//   comer → steward    { come: ID, ask, version, host, [rank], [seat], [count] }   twice a second. `ask`: random, for one question
//   steward → comer    { to: ID, ask, round }            the job takes later tasks: say it again, with this round
//   comer → steward    { come: ID, ask, ..., round }     now the steward gives a number, and tells the other launchers
//   steward → comer    { to: ID, ask, task, facts, ended, gone }
//
//   comer → steward    { come: ID, ask, round, task, address, from: 0 }           once its own link is open
//   steward → comer    { to: ID, ask, from, of, addresses, begun }                addresses of the nodes from .. from + length,
//                                                        of `of`; null: no longer there, or not known. Ask again for the rest
//
//   steward → comer    { to: ID, ask, wait: TEXT }       not yet; { to: ID, ask, refused: TEXT }: never
//   comer → steward    { come: ID, leaves: true }        it does not come after all, or its task has ended
//
// `rank`: of the task that this one replaces. `seat`: of the launcher that asks, if it is one of the job. `count`: numbers that it
// needs, this one among them; it gets none if fewer are left. A node of the job's start
// has the number of its first task divided by `perNode`; a later one has `nodes + task - world`, and one task. The same ID gets the
// same number, however often it asks, and of whichever steward.
//
// Replays: an answer counts if its `ask` is that of the question. A `come` that was recorded in an earlier
// job lacks this steward's round, so it takes no number; one of this job names an ID that has its number already.
import { PamiError } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import { lastWord, type NatsConnection } from "../../nats/connection.js";
import { randomId } from "../../nats/ids.js";
import { promise } from "../../support/promise.js";
import { after } from "../../support/timers.js";
import type { StartReport } from "../later.js";
import { secondsText } from "../text.js";
import { type OnWait, reportWait } from "../waits.js";
import type { SealedMessages } from "./sealed-messages.js";

/** Milliseconds between messages of a comer that has no answer. */
const AGAIN_MS = 500;

/** What a later task has to know of its job before it opens its link. */
export interface LaterFacts extends Omit<StartReport, "addresses"> {
  /** 16 hexadecimal digits that no other job has. */
  readonly epoch: string;
  /** Tasks with which the job began, and tasks that it has at the most. */
  readonly world: number;
  readonly most: number;
}

/** The number of a task that comes later. */
export interface Came {
  readonly task: number;
  readonly facts: LaterFacts;
  /** Nodes that have ended, and tasks whose processes have. */
  readonly ended: readonly number[];
  readonly gone: readonly number[];
}

/** How the others are reached. */
export interface Entered {
  /** By node; null: it is not there any more, or its address is not known: that node greets this one. */
  readonly addresses: readonly (string | null)[];
  /** Later tasks that have numbers, this one among them. */
  readonly begun: number;
}

export interface ComerOptions {
  readonly job: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** The name of this machine, for texts. */
  readonly host: string;
  /** Of the task that this one replaces. */
  readonly rank?: number | undefined;
  /** Of the launcher that asks. */
  readonly seat?: number | undefined;
  /** Numbers that the launcher needs, this one among them: it is given none if fewer are left. 1 by default. */
  readonly count?: number | undefined;
  /** Milliseconds for each answer. */
  readonly timeout: number;
  /** Resolves if this task is to give up. */
  readonly givenUp?: Promise<unknown> | undefined;
  /** Resolves if the server refuses a subject: see deniedSubject(). */
  readonly denied?: Promise<PamiError> | undefined;
  readonly onWait?: OnWait | undefined;
}

/** What a comer says. */
export interface ComerSaid {
  readonly come: string;
  readonly ask?: string;
  readonly round?: string | undefined;
  readonly version?: string;
  readonly host?: string;
  readonly rank?: number | undefined;
  readonly seat?: number | undefined;
  readonly count?: number | undefined;
  readonly task?: number;
  readonly address?: string;
  readonly from?: number;
  readonly leaves?: boolean;
}

/** What a steward answers. */
export type StewardAnswer = Partial<Came> & {
  readonly to: string;
  readonly ask: string;
  readonly round?: string;
  readonly addresses?: readonly (string | null)[];
  readonly from?: number;
  readonly of?: number;
  readonly begun?: number;
  readonly wait?: string;
  readonly refused?: string;
};

/** A task that comes later. */
export class Comer {
  readonly #connection: NatsConnection;
  readonly #messages: SealedMessages;
  readonly #options: ComerOptions;
  readonly #subject: string;
  readonly #own: string;
  readonly #unsubscribe: () => void;
  #ask = "";
  #round: string | undefined;
  #task = -1;
  #hear: (answer: StewardAnswer) => void = () => {};
  #awaited =
    "a steward of the job: it may not run, or take no later tasks (--spare or --restart of pamir run, spare of attach())";

  /** @param connection stays the caller's */
  constructor(connection: NatsConnection, messages: SealedMessages, options: ComerOptions) {
    const { job, id } = options;
    this.#connection = connection;
    this.#messages = messages;
    this.#options = options;
    this.#subject = `pamir.${job}.boot.${messages.fingerprint}`;
    this.#own = `${this.#subject}.m.${id}`;
    const answers = connection.subscribe(this.#own, {
      callback: (error, { data }) => void (error ?? this.#open(data)),
    });
    const keys = connection.subscribe(`pamir.${job}.keys`, {
      callback: (error, { data }) => void (error ?? this.#hearKey(data)),
    });
    this.#unsubscribe = () => {
      answers.unsubscribe();
      keys.unsubscribe();
    };
    connection.publish(`pamir.${job}.keys`, new TextEncoder().encode(messages.fingerprint));
  }

  /**
   * Asks for a number.
   * @throws PAMIR_TIMEDOUT names what was awaited; PAMIR_BOOTSTRAP the job has no number left, or another version; PAMIR_NATS
   */
  async come(): Promise<Came> {
    const { host, rank, seat, count } = this.#options;
    const answer = await this.#until(
      () => ({ version: VERSION, host, rank, seat, count }),
      ({ task }) => task !== undefined,
    );
    this.#task = answer.task as number;
    return answer as Came;
  }

  /**
   * Says where its link is, and asks for the addresses of all nodes. @param address of this task's node
   * @throws as come()
   */
  async enter(address: string): Promise<Entered> {
    const addresses: (string | null)[] = [];
    for (;;) {
      const from = addresses.length;
      const answer = await this.#until(
        () => ({ task: this.#task, address, from }),
        (one) => one.addresses !== undefined && one.from === from,
      );
      addresses.push(...(answer.addresses as readonly (string | null)[]));
      const { of = 0, begun = 0 } = answer;
      if (addresses.length >= of || addresses.length === from) return { addresses, begun };
    }
  }

  /** Says that this task does not come after all, or has ended. */
  async leave(): Promise<void> {
    this.#tell({ come: this.#options.id, leaves: true });
    await lastWord(this.#connection);
  }

  /** Ends the subscriptions. */
  close(): void {
    this.#unsubscribe();
  }

  /** Says something again and again, until an answer is enough. */
  async #until(
    said: () => Omit<ComerSaid, "come">,
    isEnough: (answer: StewardAnswer) => boolean,
  ): Promise<StewardAnswer> {
    const { job, id, timeout, onWait, denied, givenUp } = this.#options;
    const [answered, settle] = promise<StewardAnswer | PamiError>();
    const failed = (code: "PAMIR_TIMEDOUT" | "PAMIR_BOOTSTRAP", why: string): void =>
      settle(new PamiError(code, `job ${job}: ${why}`));
    const again = (): void => {
      stop();
      this.#tell({ come: id, ask: this.#ask, ...said(), round: this.#round });
      stop = after(AGAIN_MS, again);
    };
    let stop = (): void => {};
    this.#ask = randomId();
    this.#hear = (answer) => {
      if (answer.refused !== undefined) failed("PAMIR_BOOTSTRAP", answer.refused);
      else if (isEnough(answer)) settle(answer);
      else if (answer.wait !== undefined) this.#awaited = answer.wait;
      else if (answer.round !== undefined && answer.round !== this.#round) {
        this.#round = answer.round;
        again();
      }
    };
    void denied?.then(settle);
    void givenUp?.then(() => failed("PAMIR_BOOTSTRAP", "this task gives up"));
    const stopReports = reportWait(onWait, timeout, () => this.#awaited);
    const stopTimer = after(timeout, () =>
      failed("PAMIR_TIMEDOUT", `no task could come within ${secondsText(timeout)}; awaited was ${this.#awaited}`),
    );
    again();
    const result = await answered;
    for (const end of [stop, stopReports, stopTimer]) end();
    this.#hear = () => {};
    if (result instanceof PamiError) throw result;
    return result;
  }

  #open(data: Uint8Array): void {
    const answer = this.#messages.open(data) as StewardAnswer | null | undefined;
    if (typeof answer !== "object" || answer === null) return;
    if (answer.to === this.#options.id && answer.ask === this.#ask) this.#hear(answer);
  }

  #hearKey(data: Uint8Array): void {
    const other = new TextDecoder().decode(data.subarray(0, 64));
    const { fingerprint } = this.#messages;
    if (other === fingerprint) return;
    const which = fingerprint === "open" ? "a key, and this task has none" : "another key than this task";
    this.#awaited = `a steward with the same job key: a job named ${this.#options.job} is there with ${which}`;
  }

  #tell(said: ComerSaid): void {
    this.#connection.publish(this.#subject, this.#messages.seal(said), { reply: this.#own });
  }
}
