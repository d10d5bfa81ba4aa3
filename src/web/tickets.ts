// The tickets that a host has issued. Each admits one node, once, until it expires.
import { PamiError } from "../core/error.js";
import type { Address } from "../link/link.js";
import type { MakeKeySchedule } from "../seal/select.js";
import type { KeySchedule } from "../session/wire/key-schedule.js";
import { systemClock } from "../support/clock.js";
import { after } from "../support/timers.js";
import { ID_BYTES, SECRET_BYTES, ticketText } from "./ticket.js";

/** Expired tickets that the host remembers: their use gets an error of its own. */
const EXPIRED_MAX = 1024;

/** A ticket as its host has it. */
export interface IssuedTicket {
  readonly schedule: KeySchedule;
  /** When it expires, in milliseconds of the system's clock; -Infinity once its invitation has failed. */
  end: number;
  /** The node that it has admitted. */
  node: number | undefined;
  /** Settle the promise of the invitation, and end its timer. */
  readonly joined: (node: number) => void;
  readonly failed: (error: PamiError) => void;
}

export interface TicketsOptions {
  readonly job: number;
  /** The address that tickets name. */
  readonly address: Address;
  /** Nodes that may be admitted. */
  readonly most: number;
  readonly makeKeySchedule: MakeKeySchedule;
  readonly random: (bytes: number) => Uint8Array;
}

export class Tickets {
  readonly #options: TicketsOptions;
  /** By id, in the order in which they were issued. */
  readonly #issued = new Map<string, IssuedTicket>();
  #used = 0;
  #isClosed = false;

  constructor(options: TicketsOptions) {
    this.#options = options;
  }

  /**
   * Issues a ticket. The promise resolves with the number of the node that it admits.
   * @param lifetime milliseconds
   * @throws PAMIR_INVAL all numbers of nodes are used, or promised by tickets that may be used
   */
  issue(lifetime: number): { ticket: string; joined: Promise<number> } {
    const { job, address, most, makeKeySchedule, random } = this.#options;
    const open = [...this.#issued.values()].filter((one) => one.node === undefined && !this.hasExpired(one)).length;
    if (this.#isClosed) throw new PamiError("PAMIR_CLOSED", "invite(): the host is closed");
    if (this.#used + open >= most) {
      const text = `${this.#used} nodes have joined and ${open} tickets are open, the limit is ${most}, see host({ pages })`;
      throw new PamiError("PAMIR_INVAL", `invite(): ${text}`);
    }
    this.#forgetExpired();
    const [id, secret] = [random(ID_BYTES), random(SECRET_BYTES)];
    const joined = new Promise<number>((resolve, reject) => {
      const cancel = after(lifetime, () => {
        ticket.end = Number.NEGATIVE_INFINITY;
        reject(new PamiError("PAMIR_TICKET_EXPIRED", `a ticket was not used for ${lifetime} ms`));
      });
      const ticket: IssuedTicket = {
        schedule: makeKeySchedule(secret, job),
        end: systemClock.now() + lifetime,
        node: undefined,
        joined: (node) => {
          cancel();
          resolve(node);
        },
        failed: (error) => {
          cancel();
          reject(error);
        },
      };
      this.#issued.set(id.join(), ticket);
    });
    // A program need not await it.
    joined.catch(() => {});
    return { ticket: ticketText({ job, id, secret, address }), joined };
  }

  find(id: Uint8Array): IssuedTicket | undefined {
    return this.#issued.get(id.join());
  }

  hasExpired({ end }: IssuedTicket): boolean {
    return systemClock.now() >= end;
  }

  use(ticket: IssuedTicket, node: number): void {
    ticket.node = node;
    this.#used++;
    ticket.joined(node);
  }

  #forgetExpired(): void {
    const expired = [...this.#issued].filter(([, one]) => one.node === undefined && this.hasExpired(one));
    for (const [id] of expired.slice(0, Math.max(0, expired.length - EXPIRED_MAX))) this.#issued.delete(id);
  }

  close(): void {
    this.#isClosed = true;
    for (const { node, failed } of this.#issued.values())
      if (node === undefined) failed(new PamiError("PAMIR_CLOSED", "the host was closed before a ticket was used"));
  }
}
