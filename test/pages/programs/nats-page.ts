// A page, or a worker of a page, that joins a job at a NATS server; and, of another entry, a process of that job. Each does what its
// test asks for: what web-page.ts does, and more.
import { credsAuthenticator, wsconnect } from "@nats-io/nats-core";
import { type JobAtNats, type JoinOptions, join } from "pamir/web";
import { begin, page, type WebPage } from "./web-page.js";

const PATIENCE = 60_000;

/** A job as a test hands it over: a ticket, or what stands in JSON. */
export type GivenJob = string | { readonly nats: string; readonly job: string; readonly key?: readonly number[] };
/** Options as a test hands them over. */
export type GivenOptions = JoinOptions & { readonly credentials?: string };

function joinAs(given: GivenJob, { credentials, ...options }: GivenOptions) {
  const job: string | JobAtNats =
    typeof given === "string" ? given : { ...given, key: given.key && Uint8Array.from(given.key) };
  const connect: JoinOptions["connect"] =
    credentials === undefined
      ? wsconnect
      : (more) => wsconnect({ ...more, authenticator: credsAuthenticator(new TextEncoder().encode(credentials)) });
  return join(job, { insecure: true, timeout: PATIENCE, connect, ...options });
}

const more = {
  enter: async (given: GivenJob, options: GivenOptions = {}) => begin(await joinAs(given, options)),
  /** The error of join(). */
  refuse: (given: GivenJob, options: GivenOptions = {}) =>
    joinAs(given, options).then(
      () => "",
      ({ code, message }) => `${code} ${message}`,
    ),
};
export type NatsPage = WebPage & typeof more;

Object.assign(page, more);
