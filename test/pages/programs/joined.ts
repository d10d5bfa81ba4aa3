// What a task module of launch() takes for "pamir" where its task joins by a ticket: attach() does that.
import type { Client } from "pamir";
import { join } from "pamir/web";

export * from "pamir";

let given: { readonly ticket: string; readonly args: unknown };

/** Says what attach() joins by, and the `args` of its client. */
export function give(ticket: string, args: unknown): void {
  given = { ticket, args };
}

export async function attach(): Promise<Client> {
  const client = await join(given.ticket, { insecure: true, timeout: 60_000 });
  return Object.assign(client, { args: given.args });
}
