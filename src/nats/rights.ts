// What a NATS server refuses a process that is connected to it: rights, users and passwords may change there at any time.
import type { PamiError } from "../core/error.js";
import { systemClock } from "../support/clock.js";
import { after } from "../support/timers.js";
import { denialOf, type NatsConnection, type NatsMessage, REFUSED_USER } from "./connection.js";

/** Milliseconds after which a subscription that the server has refused is tried again: the rights may be back. */
const AGAIN_MS = 2000;
/** Milliseconds without a refusal after which the next one is told again. */
const APART_MS = 30_000;
/** Refusals in a row of a user. A server of a cluster that starts again may know no users for a moment. */
const USER_REFUSALS = 8;

/**
 * Follows a connection until it is closed.
 * @param warn called with the first refusal to publish, to subscribe and to connect, and with later ones if the server has
 * refused nothing for 30 s
 */
export async function watchRights(
  connection: NatsConnection,
  job: string,
  warn: (text: string) => void,
): Promise<void> {
  const refusedAt = new Map<string, number>();
  const tell = (kind: string, text: string): void => {
    const now = systemClock.now();
    const before = refusedAt.get(kind) ?? Number.NEGATIVE_INFINITY;
    refusedAt.set(kind, now);
    if (now - before > APART_MS) warn(`${text} (PAMIR_NATS)`);
  };
  let users = 0;
  for await (const { type, error } of connection.status()) {
    if (type === "reconnect") users = 0;
    const denied = type === "error" ? denialOf(connection, job, error) : undefined;
    if (denied !== undefined) tell(operationOf(denied), denied.message);
    else if (type === "error" && /^Authori|^UserAuth/.test(error?.name ?? "") && ++users >= USER_REFUSALS)
      tell("user", `NATS at ${connection.getServer()}: ${REFUSED_USER}`);
  }
}

function operationOf({ cause }: PamiError): string {
  return String((cause as { readonly operation?: string }).operation);
}

/**
 * Subscribes, and does so again where the server has ended the subscription, as long as the connection is open.
 * @returns a function that ends it
 */
export function keepSubscription(
  connection: NatsConnection,
  subject: string,
  heard: (message: NatsMessage) => void,
): () => void {
  let isOver = false;
  let cancel = (): void => {};
  let end = (): void => {};
  const open = (): void => {
    const subscription = connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) heard(message);
        else if (!isOver) cancel = after(AGAIN_MS, openAgain, false);
      },
    });
    end = () => subscription.unsubscribe();
  };
  const openAgain = (): void => {
    try {
      open();
    } catch {
      // The connection is closed.
    }
  };
  open();
  return () => {
    isOver = true;
    cancel();
    end();
  };
}
