// natsInviter(): issues tickets for a job at a NATS server, and hands the job key to the page that uses one first.
import type { SealedMessages } from "../../bootstrap/nats/sealed-messages.js";
import { checkFlag, checkKeys, type Keys, NO_OPTIONS } from "../../core/check.js";
import { type ErrorCode, PamiError, show } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import { checkRights, type NatsConnection, type NatsMessage } from "../../nats/connection.js";
import { hexOf } from "../../nats/ids.js";
import type { Algorithms } from "../../seal/schedule.js";
import { selectAlgorithms } from "../../seal/select.js";
import { after } from "../../support/timers.js";
import { randomBytes } from "../bytes.js";
import type { Invitation, InviteOptions } from "../host.js";
import { lifetimeOf } from "../lifetime.js";
import { ID_BYTES, SECRET_BYTES } from "../ticket.js";
import type { NatsInviter, NatsInviterOptions } from "./inviter.js";
import { checkJobAtNats, checkServers, connectTo, type JobAtNats } from "./job-at-nats.js";
import {
  KeyExchange,
  type NatsTicket,
  natsTicketText,
  type TicketAnswer,
  type TicketAsked,
  type TicketRefusal,
  ticketMessages,
  ticketSubject,
} from "./nats-ticket.js";
import { webPlace } from "./web-connection.js";

const TIMEOUT_MS = 30_000;
/** Milliseconds for a page to tell its task, once it has joined. */
const TELL_MS = 3000;
/** Tickets that were used or have expired, and are remembered: their use gets an error of its own. */
const FORMER_MAX = 1024;

const KEYS: Keys<NatsInviterOptions> = {
  nats: true,
  job: true,
  key: true,
  address: true,
  insecure: true,
  connect: true,
};

/** See natsInviter() of web.ts. */
export async function openTicketOffice(options: NatsInviterOptions): Promise<NatsInviter> {
  checkKeys("options of natsInviter()", options, KEYS);
  const { address, insecure, connect, ...place } = options;
  checkFlag("insecure of natsInviter()", insecure);
  const job = checkJobAtNats("natsInviter()", place, insecure);
  webPlace(address, job.job, "address of natsInviter()");
  if (/\s/.test(address))
    throw new PamiError("PAMIR_INVAL", `address of natsInviter() is ${show(address)}, which has spaces`);
  checkServers("natsInviter()", address, insecure);
  const opening = { name: `pamir ${job.job} tickets`, timeout: TIMEOUT_MS };
  const connection = await connectTo("natsInviter()", job, connect, opening);
  return new TicketOffice(connection, job, address, await selectAlgorithms());
}

/** A ticket as its issuer has it. */
interface Issued {
  readonly ticket: NatsTicket;
  readonly messages: SealedMessages;
  /** The use of the ticket, and what the page is answered. */
  use: { readonly instance: string; readonly answer: Promise<TicketAnswer> } | undefined;
  hasExpired: boolean;
  /** A page has used the ticket, and has joined after so many milliseconds, or never will. */
  readonly used: (within: number) => void;
  readonly joined: (task: number) => void;
  readonly failed: (error: PamiError) => void;
  readonly unsubscribe: () => void;
}

class TicketOffice implements NatsInviter {
  readonly #connection: NatsConnection;
  readonly #job: JobAtNats;
  readonly #address: string;
  readonly #algorithms: Algorithms;
  readonly #open = new Set<Issued>();
  readonly #former = new Set<Issued>();
  #isClosed = false;

  constructor(connection: NatsConnection, job: JobAtNats, address: string, algorithms: Algorithms) {
    this.#connection = connection;
    this.#job = job;
    this.#address = address;
    this.#algorithms = algorithms;
  }

  async invite(options: InviteOptions = NO_OPTIONS): Promise<Invitation> {
    const lifetime = lifetimeOf(options);
    if (this.#isClosed) throw new PamiError("PAMIR_CLOSED", "invite(): the inviter is closed");
    const { job } = this.#job;
    const ticket = { id: randomBytes(ID_BYTES), secret: randomBytes(SECRET_BYTES), job, address: this.#address };
    const joined = this.#issue(ticket, lifetime);
    // A program need not await it.
    joined.catch(() => {});
    // The page may ask at once.
    await checkRights(this.#connection, job, ticketSubject(ticket));
    return { ticket: natsTicketText(ticket), joined };
  }

  /** Listens to the page that has the ticket. @returns a promise of its task */
  #issue(ticket: NatsTicket, lifetime: number): Promise<number> {
    return new Promise<number>((resolve, reject) => {
      const subscription = this.#connection.subscribe(ticketSubject(ticket), {
        callback: (error, message) => void (error ?? this.#hear(issued, message)),
      });
      const fail = (code: ErrorCode, text: string): void => {
        issued.failed(new PamiError(code, text));
        this.#keep(issued);
      };
      let cancel = after(lifetime, () => {
        issued.hasExpired = true;
        fail("PAMIR_TICKET_EXPIRED", `a ticket was not used for ${lifetime} ms`);
      });
      const issued: Issued = {
        ticket,
        messages: ticketMessages(ticket, this.#algorithms),
        use: undefined,
        hasExpired: false,
        used: (within) => {
          cancel();
          const text = `a page has used a ticket, and has not joined within ${Math.round(within)} ms`;
          cancel = after(within + TELL_MS, () => fail("PAMIR_TIMEDOUT", text));
        },
        joined: (task) => {
          cancel();
          resolve(task);
          this.#keep(issued);
        },
        failed: (error) => {
          cancel();
          reject(error);
        },
        unsubscribe: () => subscription.unsubscribe(),
      };
      this.#open.add(issued);
    });
  }

  /** A ticket that admits no other page, and is still answered. */
  #keep(issued: Issued): void {
    this.#open.delete(issued);
    this.#former.add(issued);
    const [oldest] = this.#former;
    if (this.#former.size <= FORMER_MAX || oldest === undefined) return;
    this.#former.delete(oldest);
    oldest.unsubscribe();
  }

  async #hear(issued: Issued, { data, reply }: NatsMessage): Promise<void> {
    const asked = issued.messages.open(data) as TicketAsked | null | undefined;
    if (typeof asked?.use !== "string" || !reply) return;
    const answer = await this.#answer(issued, asked);
    if (!this.#isClosed) this.#connection.publish(reply, issued.messages.seal(answer));
  }

  #answer(issued: Issued, asked: TicketAsked): TicketAnswer | Promise<TicketAnswer> {
    const refused = (why: TicketRefusal): TicketAnswer => ({ to: asked.use, refused: why });
    const { use } = issued;
    if (use !== undefined && use.instance !== asked.use) return refused("used");
    if ("task" in asked) {
      if (use !== undefined) issued.joined(asked.task);
      return { to: asked.use, task: asked.task };
    }
    if (use !== undefined) return use.answer;
    if (issued.hasExpired) return refused("expired");
    if (asked.version !== VERSION) return refused("version");
    const answer = this.#handOver(issued.ticket, asked);
    issued.use = { instance: asked.use, answer };
    issued.used(typeof asked.within === "number" ? asked.within : Number.POSITIVE_INFINITY);
    return answer;
  }

  /** Hands the job key over. */
  async #handOver(
    ticket: NatsTicket,
    { use, point }: { readonly use: string; readonly point: string },
  ): Promise<TicketAnswer> {
    const exchange = await KeyExchange.begin();
    const messages = await exchange.messages(ticket, point, this.#algorithms);
    const { key } = this.#job;
    const sealed = messages.seal({ key: key && hexOf(key) });
    return { to: use, point: exchange.point, key: hexOf(sealed) };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { failed } of this.#open)
      failed(new PamiError("PAMIR_CLOSED", "the inviter was closed before a ticket was used"));
    await this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
