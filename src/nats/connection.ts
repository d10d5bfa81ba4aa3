// The connection of this thread to a NATS server, by the package @nats-io/transport-node: what is used of it, how it is opened,
// and its errors in words. The link, the meeting of nodes and the bootstrap each open one.
import type { PeerCertificate } from "node:tls";
import { PamiError } from "../core/error.js";
import { systemClock } from "../support/clock.js";
import { nodeModule } from "../support/host.js";
import { optionalPackage } from "../support/node/packages.js";
import { printable } from "../support/printable.js";
import { after, pause } from "../support/timers.js";
import type { NatsPlace } from "./place.js";

/** The package that connects. */
export const NATS_PACKAGE = "@nats-io/transport-node";
/** Milliseconds for a server to answer. */
export const ANSWER_MS = 5000;
/** Milliseconds between attempts to reach a server again. */
export const RETRY_MS = 250;
/** Milliseconds between the pings of the client, and pings without an answer after which it connects to another server. */
const PING_MS = 5000;
const PINGS_MAX = 2;
/** Options of the client by which a connection that breaks is made again, until it is closed. */
export const RECONNECTING = {
  maxReconnectAttempts: -1,
  reconnectTimeWait: RETRY_MS,
  // A server of the cluster that starts again may know no users for a moment.
  ignoreAuthErrorAbort: true,
  pingInterval: PING_MS,
  maxPingOut: PINGS_MAX,
};
/** Status of the server's answer where nothing listens at a subject. */
const NO_RESPONDERS = 503;
/** Milliseconds for what was published last: its server may have gone. */
const LAST_MS = 1000;

/** What NATS calls a message. `data` is the receiver's. */
export interface NatsMessage {
  readonly subject: string;
  readonly reply?: string | undefined;
  readonly data: Uint8Array;
  readonly headers?: { readonly code: number } | undefined;
}

/** What is used of the client's connection. */
export interface NatsConnection {
  readonly info?: { readonly max_payload: number; readonly version: string } | undefined;
  /** Keeps a reference to the bytes until the end of the microtasks. */
  publish(subject: string, data: Uint8Array, options?: { readonly reply?: string }): void;
  subscribe(
    subject: string,
    options: { callback(error: Error | null, message: NatsMessage): void },
  ): { unsubscribe(): void };
  /** Resolves once the server has processed all that was published. */
  flush(): Promise<void>;
  close(): Promise<void>;
  closed(): Promise<undefined | Error>;
  getServer(): string;
  status(): AsyncIterable<{ readonly type: string; readonly error?: Error }>;
}

interface NatsClient {
  connect(options: object): Promise<NatsConnection>;
  credsAuthenticator(file: Uint8Array): unknown;
}

export interface NatsOpening {
  /** The path of the package, for a thread that can't look for it. */
  readonly package?: string | undefined;
  /** Milliseconds in which a server must answer (default 5,000): it may start later than this process. */
  readonly timeout?: number | undefined;
  /** For the server's own list of clients. */
  readonly name: string;
}

/**
 * Connects. A connection that breaks is made again, with any server of the cluster, until close().
 * @throws PAMIR_NATS the package is not installed, no server answers, or the server refuses this process
 */
export async function connectNats(place: NatsPlace, opening: NatsOpening): Promise<NatsConnection> {
  const client = clientOf(opening.package);
  const until = systemClock.now() + (opening.timeout ?? ANSWER_MS);
  const options = { ...optionsOf(place, client), name: opening.name };
  for (;;) {
    const left = until - systemClock.now();
    try {
      await Promise.any(place.servers.map((server) => greeting(server, Math.max(left, 100))));
      return await client.connect({ ...options, timeout: Math.min(Math.max(left, 100), ANSWER_MS) });
    } catch (error) {
      const failure = notConnected(place, error);
      if (failure.isFinal || systemClock.now() + RETRY_MS >= until) throw failure.error;
    }
    await pause(RETRY_MS);
  }
}

function clientOf(path: string | undefined): NatsClient {
  const found = optionalPackage(NATS_PACKAGE, path) as NatsClient | undefined;
  if (found !== undefined) return found;
  throw new PamiError("PAMIR_NATS", `the package ${NATS_PACKAGE} is not installed (npm install ${NATS_PACKAGE})`);
}

function optionsOf({ servers, isTls, user, password, token, credentials, authorities }: NatsPlace, client: NatsClient) {
  const { readFileSync } = nodeModule("fs") as typeof import("node:fs");
  const tls = {
    ...(authorities === undefined ? {} : { caFile: authorities }),
    checkServerIdentity: (host: string, certificate: PeerCertificate) => checkIdentity(servers, host, certificate),
  };
  return {
    servers,
    ...(isTls || authorities !== undefined ? { tls } : {}),
    ...(user === undefined ? {} : { user, pass: password }),
    ...(token === undefined ? {} : { token }),
    ...(credentials === undefined ? {} : { authenticator: client.credsAuthenticator(readFileSync(credentials)) }),
    ...RECONNECTING,
  };
}

/** Whether the server says that nothing listens where a message went. */
export const hasNoListener = ({ headers }: NatsMessage): boolean => headers?.code === NO_RESPONDERS;

/** Resolves once the server has what was published, or after a second. */
export async function lastWord(connection: NatsConnection): Promise<void> {
  await Promise.race([connection.flush().catch(() => {}), pause(LAST_MS)]);
}

/**
 * The first subject that the server refuses this connection's user, as an error of PAMIR_NATS. The server answers nothing else to
 * what a user may not do, so without this a node would wait in vain.
 * @returns a promise that never resolves if the user has all rights
 */
export async function deniedSubject(connection: NatsConnection, job: string): Promise<PamiError> {
  for await (const { type, error } of connection.status()) {
    const denied = type === "error" ? denialOf(connection, job, error) : undefined;
    if (denied !== undefined) return denied;
  }
  return new Promise(() => {});
}

/** An error of the client, if it says that the server refuses this connection's user a subject. */
export function denialOf(connection: NatsConnection, job: string, error: Error | undefined): PamiError | undefined {
  if (error?.name !== "PermissionViolationError") return undefined;
  const { operation, subject } = error as Error & { readonly operation?: string; readonly subject?: string };
  const what = operation === "subscription" ? "subscribe to" : "publish to";
  const where = subject ? printable(subject) : `a subject (${printable(error.message)})`;
  const text = `the NATS server ${connection.getServer()} does not let this process ${what} ${where}`;
  const remedy = `its user needs the rights to publish to and to subscribe to pamir.${job}.>`;
  return new PamiError("PAMIR_NATS", `${text}: ${remedy}`, { cause: error });
}

/**
 * Call it right after subscribe(): resolves once the server has the subscriptions.
 * @param subject of this process: gets an empty message, without a reply subject
 * @throws PAMIR_NATS the user may not subscribe, or not publish to the subject
 */
export async function checkRights(connection: NatsConnection, job: string, subject: string): Promise<void> {
  const denied = deniedSubject(connection, job);
  connection.publish(subject, new Uint8Array(0));
  await connection.flush();
  // The server's refusal has come before its answer, and reaches deniedSubject() some microtasks later.
  const error = await Promise.race([denied, pause(0)]);
  if (error instanceof PamiError) throw error;
}

/**
 * Whether a certificate is of a server that PAMIR_NATS names, or of one that these have named. The client gives Node no name for a
 * server with an IP address, and Node then looks for "localhost".
 */
function checkIdentity(servers: readonly string[], host: string, certificate: PeerCertificate): Error | undefined {
  const { checkServerIdentity } = nodeModule("tls") as typeof import("node:tls");
  const hosts = servers.map((server) => hostOf(server).hostname);
  const errors = (host === "localhost" ? hosts : [...hosts, host]).map((one) => checkServerIdentity(one, certificate));
  return errors.includes(undefined) ? undefined : errors[0];
}

function hostOf(server: string): { hostname: string; port: number } {
  const { hostname, port } = new URL(`nats://${server}`);
  return { hostname: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

const WANTS_CERTIFICATE =
  "the server wants a certificate of each client (verify), and pamir has none: let it know clients by users or credentials";

/** Of a server that does not take this process. */
export const REFUSED_USER =
  "the server refuses this process's user, token or credentials: PAMIR_NATS and PAMIR_NATS_CREDS";

/** An error that another attempt would meet again. */
class OtherProgramError extends Error {}

/** A program that says nothing: a server that is stopped, or another program. */
class SilentError extends Error {}

/**
 * Waits for the first line of a server, which comes in clear also with TLS. The client would keep a connection to a program that says
 * nothing, and so the process.
 * @throws Error no server is there
 */
function greeting(server: string, timeout: number): Promise<void> {
  const { connect } = nodeModule("net") as typeof import("node:net");
  const { hostname, port } = hostOf(server);
  const socket = connect({ host: hostname, port });
  let cancel = (): void => {};
  return new Promise<void>((resolve, reject) => {
    const most = Math.round(Math.min(timeout, ANSWER_MS));
    const silent = `a program that has said nothing for ${most} ms listens there, where NATS begins with INFO`;
    let isConnected = false;
    cancel = after(most, () => reject(isConnected ? new SilentError(silent) : new Error("no server answers")));
    socket.on("error", reject).on("connect", () => {
      isConnected = true;
    });
    socket.once("data", (bytes) => {
      const line = bytes.toString("latin1");
      if (!line.startsWith("INFO ")) reject(new OtherProgramError("another program than NATS answers there"));
      // The client would end at its time, and say nothing.
      else if (/"tls_verify":\s*true/.test(line)) reject(new OtherProgramError(WANTS_CERTIFICATE));
      else resolve();
    });
    socket.on("close", () => reject(new Error("the server has closed the connection")));
  }).finally(() => {
    cancel();
    socket.destroy();
  });
}

/** Why no server was reached, and whether another attempt is in vain. */
function notConnected({ servers, isTls }: NatsPlace, cause: unknown): { error: PamiError; isFinal: boolean } {
  const where = `NATS at ${servers.join(", ")}`;
  const failures = cause instanceof AggregateError ? cause.errors : [cause];
  const other = failures.find((one) => one instanceof OtherProgramError || one instanceof SilentError);
  const { message, name, code } = rootOf(other ?? failures[0]);
  const made = (why: string, isFinal: boolean) => ({
    error: new PamiError("PAMIR_NATS", `${where}: ${printable(why)}`, { cause }),
    isFinal,
  });
  if (other !== undefined) return made(message, other instanceof OtherProgramError);
  if (/authorization|authentication/i.test(`${name} ${message}`)) return made(REFUSED_USER, true);
  if (/certificate|self.signed|altname/i.test(`${message} ${code}`))
    return made(
      `the server's certificate is not trusted (${message}): PAMIR_NATS_CA names a file of authorities`,
      true,
    );
  if (/tls/i.test(message)) return made(`${message}${isTls ? ": take nats://" : ": take tls://"}`, true);
  if (/refused|ECONNREFUSED/i.test(`${message} ${code}`)) return made("no server listens there", false);
  if (code === "ENOTFOUND") return made("there is no such host", false);
  return made(message === "" || /timeout/i.test(message) ? "no server answers" : message, false);
}

function rootOf(error: unknown): { message: string; name: string; code: string } {
  let deepest = error as Error & { code?: string };
  let { code = "" } = deepest ?? {};
  while (deepest?.cause instanceof Error) {
    deepest = deepest.cause as typeof deepest;
    code = deepest.code ?? code;
  }
  return { message: String(deepest?.message ?? error ?? ""), name: String(deepest?.name ?? ""), code };
}
