// Where the nodes of a job meet on a NATS server: its address, how this process proves itself, and the name of the job.
import { PamiError } from "../core/error.js";
import { nodeModule } from "../support/host.js";
import { printable } from "../support/printable.js";
import type { NatsVariables } from "./variables.js";

/** Where the nodes of a job meet. It is plain data: threads hand it on. */
export interface NatsPlace {
  /** Without users and passwords: texts and errors have them. */
  readonly servers: readonly string[];
  readonly job: string;
  readonly isTls: boolean;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly token?: string | undefined;
  /** Paths. */
  readonly credentials?: string | undefined;
  readonly authorities?: string | undefined;
}

const JOB = /^[\w-]{1,64}$/;
const PORT = "4222";
/** A job that another launcher has started needs no name: its nodes have each other's subjects by that launcher. */
const UNNAMED = "unnamed";
/** Bits of a file's mode that let other users read or write. */
const OTHERS_MASK = 0o066;

/** @throws PAMIR_NATS a part is missing or makes no sense; the text has the value but for passwords, and what it may be */
export function natsPlace({ nats, job = UNNAMED, credentials, authorities }: NatsVariables): NatsPlace {
  if (nats === undefined || nats.trim() === "")
    throw new PamiError("PAMIR_NATS", `PAMIR_NATS is not set: it names a NATS server, such as nats://host:${PORT}`);
  const urls = nats.split(",").map((text) => parseServer(text.trim()));
  const [first] = urls as [URL];
  const other = urls.find(({ username, password }) => username + password !== first.username + first.password);
  if (other !== undefined)
    throw new PamiError("PAMIR_NATS", `PAMIR_NATS has two users: ${other.host} and ${first.host} need the same`);
  if (credentials !== undefined) checkSecret(credentials);
  if (authorities !== undefined) checkReadable("PAMIR_NATS_CA", authorities);
  const [user, password] = [decodeURIComponent(first.username), decodeURIComponent(first.password)];
  return {
    servers: urls.map(({ hostname, port }) => `${hostname}:${port || PORT}`),
    job: checkJob(job),
    isTls: first.protocol === "tls:",
    ...(password === "" ? (user === "" ? {} : { token: user }) : { user, password }),
    credentials,
    authorities,
  };
}

/** Undefined: the text is no URL, or its user or password is none. */
export function urlOf(text: string): URL | undefined {
  try {
    const url = new URL(text);
    decodeURIComponent(url.username + url.password);
    return url;
  } catch {
    return undefined;
  }
}

/** The text of a URL, or of what should be one, for an error: a password stands before "@". */
export function withoutUser(text: string): string {
  return printable(text.replace(/^([a-z][\w+.-]*:\/\/)?.*@/is, "$1…@"));
}

function parseServer(text: string): URL {
  const url = urlOf(/^[a-z][\w+.-]*:\/\//i.test(text) ? text : `nats://${text}`);
  const isServer =
    url !== undefined && /^(nats|tls):$/.test(url.protocol) && url.hostname !== "" && /^\/?$/.test(url.pathname);
  if (isServer && (url as URL).search === "" && (url as URL).hash === "") return url as URL;
  throw new PamiError("PAMIR_NATS", `PAMIR_NATS has "${withoutUser(text)}", not nats://HOST:PORT or tls://HOST:PORT`);
}

/** @throws PAMIR_NATS a subject's parts have no such characters */
export function checkJob(job: string): string {
  if (JOB.test(job)) return job;
  const wrong = /[^\w-]/.exec(job)?.[0];
  const why = wrong === undefined ? `has ${job.length} characters` : `has ${JSON.stringify(wrong)}`;
  const shown = JSON.stringify(printable(job.slice(0, 80)));
  throw new PamiError(
    "PAMIR_NATS",
    `PAMIR_JOB is ${shown}, and ${why}: it may have 1 to 64 letters, digits, "_" and "-"`,
  );
}

/** A file that no other user may read. @throws PAMIR_NATS */
function checkSecret(path: string): void {
  const mode = checkReadable("PAMIR_NATS_CREDS", path);
  if (globalThis.process?.geteuid === undefined || (mode & OTHERS_MASK) === 0) return;
  const octal = (mode & 0o777).toString(8).padStart(4, "0");
  const why = `has mode ${octal}: other users may use it; make it 0600 or 0400`;
  throw new PamiError("PAMIR_NATS", `the file of credentials ${JSON.stringify(path)} (PAMIR_NATS_CREDS) ${why}`);
}

/** @returns the file's mode @throws PAMIR_NATS */
function checkReadable(name: string, path: string): number {
  const fs = nodeModule("fs") as typeof import("node:fs");
  try {
    fs.accessSync(path, fs.constants.R_OK);
    return fs.statSync(path).mode;
  } catch (cause) {
    const text = `${name} is ${JSON.stringify(path)}, which can't be read: ${(cause as Error).message}`;
    throw new PamiError("PAMIR_NATS", text, { cause });
  }
}
