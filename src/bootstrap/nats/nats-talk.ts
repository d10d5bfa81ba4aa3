// What the launchers of a job tell each other at a NATS server, and what one of them, the steward, tells tasks that come later.
import { checkRights, hasNoListener, lastWord, type NatsConnection, type NatsMessage } from "../../nats/connection.js";
import { isId } from "../../nats/ids.js";
import { keepSubscription, watchRights } from "../../nats/rights.js";
import { systemClock } from "../../support/clock.js";
import { after } from "../../support/timers.js";
import type { ComerSaid } from "./come-later.js";
import type { Fact } from "./register.js";
import { SealedMessages } from "./sealed-messages.js";
import { Steward, type StewardSaid, type StewardSetup } from "./steward.js";

export interface NatsTalkSetup extends StewardSetup {
  readonly job: string;
  readonly epoch: string;
  readonly key: Uint8Array | undefined;
  /** What others have told, each once. */
  readonly onFacts: (facts: readonly Fact[]) => void;
  /** The server refuses this launcher something that it has had. */
  readonly onWarning: (text: string) => void;
  /** The job ends, since a task of another launcher has failed. */
  readonly onAbort: () => void;
}

export class NatsTalk {
  readonly steward: Steward;
  readonly #connection: NatsConnection;
  readonly #setup: NatsTalkSetup;
  readonly #subject: string;
  readonly #own: string;
  readonly #messages: SealedMessages;
  /** As those of the meeting. */
  readonly #toComers: SealedMessages;
  readonly #boot: string;
  #closeOffice: () => void = () => {};

  /** @param connection stays the caller's */
  constructor(connection: NatsConnection, setup: NatsTalkSetup) {
    const { job, epoch, key, seat } = setup;
    this.#connection = connection;
    this.#setup = setup;
    this.#subject = `pamir.${job}.l.${epoch}`;
    this.#own = `${this.#subject}.${seat}`;
    this.#messages = new SealedMessages(key, `${job} ${epoch}`);
    this.#toComers = new SealedMessages(key, job);
    this.#boot = `pamir.${job}.boot.${this.#toComers.fingerprint}`;
    this.steward = new Steward(
      {
        tell: (said, to) => this.#tell(said, to),
        answer: (answer) => connection.publish(`${this.#boot}.m.${answer.to}`, this.#toComers.seal(answer)),
        onFacts: setup.onFacts,
        onOffice: (isSteward) => this.#setOffice(isSteward),
        now: () => systemClock.now(),
        after: (milliseconds, call) => after(milliseconds, call),
      },
      setup,
    );
  }

  /** @throws PAMIR_NATS */
  async open(): Promise<void> {
    const { job, onWarning } = this.#setup;
    const heard = ({ data }: NatsMessage): void => this.#hear(data);
    keepSubscription(this.#connection, this.#subject, heard);
    keepSubscription(this.#connection, this.#own, heard);
    keepSubscription(this.#connection, `${this.#own}.*`, (message) => {
      if (hasNoListener(message)) this.steward.absent(Number(message.subject.slice(this.#own.length + 1)));
    });
    await checkRights(this.#connection, job, this.#subject);
    void this.#watch();
    void watchRights(this.#connection, job, (text) =>
      onWarning(`${text}; until that changes, no launcher hears this one`),
    );
    this.steward.open();
  }

  /** Ends all nodes of the job. */
  abort(): void {
    this.#connection.publish(this.#subject, this.#messages.seal({ abort: true }));
  }

  /** All tasks of this launcher have ended. */
  async leave(): Promise<void> {
    this.steward.leave();
    await lastWord(this.#connection);
  }

  #hear(data: Uint8Array): void {
    const said = this.#messages.open(data) as (StewardSaid & { readonly abort?: true }) | null | undefined;
    if (typeof said !== "object" || said === null) return;
    if (said.abort) this.#setup.onAbort();
    else this.steward.hear(said);
  }

  #tell(said: StewardSaid, to: number | undefined): void {
    const sealed = this.#messages.seal(said);
    if (to === undefined) this.#connection.publish(this.#subject, sealed);
    else this.#connection.publish(`${this.#subject}.${to}`, sealed, { reply: `${this.#own}.${to}` });
  }

  /** Listens to comers, or does so no longer. */
  #setOffice(isSteward: boolean): void {
    this.#closeOffice();
    if (!isSteward) return;
    const endComers = keepSubscription(this.#connection, this.#boot, ({ data }) => this.#hearComer(data));
    const subject = `pamir.${this.#setup.job}.keys`;
    const own = new TextEncoder().encode(this.#toComers.fingerprint);
    const endKeys = keepSubscription(this.#connection, subject, ({ data }) => {
      const other = new TextDecoder().decode(data.subarray(0, 64));
      if ((isId(other) || other === "open") && other !== this.#toComers.fingerprint)
        this.#connection.publish(subject, own);
    });
    this.#closeOffice = () => {
      endComers();
      endKeys();
    };
  }

  #hearComer(data: Uint8Array): void {
    type Met = { readonly join?: string; readonly claim?: string };
    const said = this.#toComers.open(data) as (ComerSaid & Met) | null | undefined;
    if (typeof said !== "object" || said === null) return;
    if (said.come !== undefined) {
      this.steward.hearComer(said);
      return;
    }
    // Nodes that would begin a job of this name: meeting.ts.
    const to = said.join ?? said.claim;
    if (isId(to)) this.#connection.publish(`${this.#boot}.m.${to}`, this.#toComers.seal({ to, full: true }));
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status())
      if (type === "disconnect" || type === "reconnect") this.steward.cutOff();
  }
}
