// The side of a page that has a ticket for a job at a NATS server: it gets the job key from the ticket's issuer, and tells it the
// number of its task.
import type { SealedMessages } from "../../bootstrap/nats/sealed-messages.js";
import { PamiError } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import { hasNoListener, type NatsConnection, type NatsMessage } from "../../nats/connection.js";
import { hexOf } from "../../nats/ids.js";
import type { Algorithms } from "../../seal/schedule.js";
import { systemClock } from "../../support/clock.js";
import { promise } from "../../support/promise.js";
import { after, pause } from "../../support/timers.js";
import { randomBytes } from "../bytes.js";
import {
  bytesOfHex,
  KeyExchange,
  type NatsTicket,
  type TicketAnswer,
  type TicketAsked,
  type TicketRefusal,
  ticketMessages,
  ticketSubject,
} from "./nats-ticket.js";

/** Milliseconds between messages without an answer. */
const AGAIN_MS = 500;
/** Milliseconds for which the server must have said that nothing listens: an issuer that connects again listens soon. */
const ABSENT_MS = 3000;
const INSTANCE_BYTES = 16;

export class TicketHolder {
  readonly #connection: NatsConnection;
  readonly #ticket: NatsTicket;
  readonly #algorithms: Algorithms;
  readonly #messages: SealedMessages;
  readonly #instance = hexOf(randomBytes(INSTANCE_BYTES));
  readonly #subject: string;
  readonly #unsubscribe: () => void;
  #hear: (message: NatsMessage) => void = () => {};

  /** @param connection stays the caller's */
  constructor(connection: NatsConnection, ticket: NatsTicket, algorithms: Algorithms) {
    this.#connection = connection;
    this.#ticket = ticket;
    this.#algorithms = algorithms;
    this.#messages = ticketMessages(ticket, algorithms);
    this.#subject = ticketSubject(ticket);
    const callback = (error: Error | null, message: NatsMessage): void => {
      if (error === null) this.#hear(message);
    };
    const subscription = connection.subscribe(this.#own, { callback });
    this.#unsubscribe = () => subscription.unsubscribe();
  }

  get #own(): string {
    return `${this.#subject}.${this.#instance}`;
  }

  /**
   * Gets the job key; undefined: the job has none.
   * @param stopped resolves with the error by which join() ends @param within milliseconds in which it ends
   * @throws PAMIR_TICKET, PAMIR_TICKET_USED, PAMIR_TICKET_EXPIRED, PAMIR_VERSION, PAMIR_INSECURE, and that of `stopped`
   */
  async key(stopped: Promise<PamiError>, within: number): Promise<Uint8Array | undefined> {
    const exchange = await KeyExchange.begin();
    const said = { use: this.#instance, point: exchange.point, version: VERSION, within };
    const answer = await this.#until(said, (one) => "key" in one, stopped);
    const { point, key } = answer as TicketAnswer & { readonly point: string; readonly key: string };
    const messages = await exchange.messages(this.#ticket, point, this.#algorithms);
    const opened = messages.open(bytesOfHex(key)) as { readonly key?: string };
    return opened.key === undefined ? undefined : bytesOfHex(opened.key);
  }

  /** Tells the issuer, until it answers or is gone. */
  async joined(task: number): Promise<void> {
    const ended = pause(ABSENT_MS, false).then(() => this.#absent());
    // It is the page's task that counts.
    await this.#until({ use: this.#instance, task }, (one) => "task" in one, ended).catch(() => {});
    this.close();
  }

  close(): void {
    this.#unsubscribe();
  }

  /** Says something again and again, until an answer is enough. */
  async #until(
    said: TicketAsked,
    isEnough: (answer: TicketAnswer) => boolean,
    stopped: Promise<PamiError>,
  ): Promise<TicketAnswer> {
    const [answered, settle] = promise<TicketAnswer | PamiError>();
    let absentSince = 0;
    this.#hear = (message) => {
      const now = systemClock.now();
      if (hasNoListener(message)) {
        if (absentSince === 0) absentSince = now;
        if (now - absentSince >= ABSENT_MS) settle(this.#absent());
        return;
      }
      absentSince = 0;
      const answer = this.#messages.open(message.data) as TicketAnswer | null | undefined;
      if (answer?.to !== this.#instance) return;
      if ("refused" in answer) settle(refusalBy(answer.refused));
      else if (isEnough(answer)) settle(answer);
    };
    const again = (): void => {
      try {
        this.#connection.publish(this.#subject, this.#messages.seal(said), { reply: this.#own });
      } catch {
        // The page's task has ended meanwhile, and its connection with it.
      }
      stop = after(AGAIN_MS, again);
    };
    let stop = (): void => {};
    void stopped.then(settle);
    again();
    const result = await answered;
    stop();
    this.#hear = () => {};
    if (result instanceof PamiError) throw result;
    return result;
  }

  #absent(): PamiError {
    const { job } = this.#ticket;
    return new PamiError("PAMIR_TICKET", `job ${job}: the issuer of this ticket has ended, or has never issued it`);
  }
}

function refusalBy(why: TicketRefusal): PamiError {
  if (why === "used") return new PamiError("PAMIR_TICKET_USED", "the ticket has admitted another node");
  if (why === "expired") return new PamiError("PAMIR_TICKET_EXPIRED", "the ticket has expired");
  return new PamiError(
    "PAMIR_VERSION",
    `the issuer of the ticket has another pamir than this ${VERSION}: use one version`,
  );
}
