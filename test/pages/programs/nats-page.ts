// A page, or a worker of a page, that joins a job at a NATS server; and, of another entry, a process of that job. Each does what its
// test asks for: what web-page.ts does, and more.
import { wsconnect } from "@nats-io/nats-core";
import { type JobAtNats, type JoinOptions, join } from "pamir/web";
import { begin, page, type WebPage } from "./web-page.js";

const PATIENCE = 60_000;

/** A job as a test hands it over: a ticket, or what stands in JSON. */
export type GivenJob = string | { readonly nats: string; readonly job: string; readonly key?: readonly number[] };

function joinAs(given: GivenJob, options: JoinOptions) {
  const job: string | JobAtNats =
    typeof given === "string" ? given : { ...given, key: given.key && Uint8Array.from(given.key) };
  return join(job, { insecure: true, timeout: PATIENCE, connect: wsconnect, ...options });
}

const more = {
  enter: async (given: GivenJob, options: JoinOptions = {}) => begin(await joinAs(given, options)),
  /** The error of join(). */
  refuse: (given: GivenJob, options: JoinOptions = {}) =>
    joinAs(given, options).then(
      () => "",
      ({ code, message }) => `${code} ${message}`,
    ),
};
export type NatsPage = WebPage & typeof more;

Object.assign(page, more);
