// The connection of a page to a NATS server, at its WebSocket port. The program passes wsconnect() of @nats-io/nats-core: a
// bundler would refuse an import of a package that most pages do not have.
import { PamiError, show } from "../../core/error.js";
import { ANSWER_MS, type NatsConnection, RECONNECTING, RETRY_MS } from "../../nats/connection.js";
import { checkJob, urlOf, withoutUser } from "../../nats/place.js";
import { systemClock } from "../../support/clock.js";
import { printable } from "../../support/printable.js";
import { promise } from "../../support/promise.js";
import { after, pause } from "../../support/timers.js";

/** What `connect` of join() is given: options of `wsconnect()` of @nats-io/nats-core, of which these and others are set. */
export interface NatsConnectOptions {
  /** `wss://HOST:PORT/PATH` or `ws://…` of each server. */
  servers: string[];
  /** For the server's own list of clients. */
  name: string;
  /** Milliseconds for a server to answer. */
  timeout: number;
}

/** Connects to a NATS server: `wsconnect` of @nats-io/nats-core, or a function that calls it with more options. */
export type NatsConnect = (options: NatsConnectOptions) => Promise<object>;

/** Where the WebSocket ports of a job's servers are. */
export interface WebPlace {
  /** Without users and passwords. */
  readonly servers: readonly string[];
  readonly job: string;
  readonly user: string;
  readonly password: string;
}

/** @param what has the address: "nats of join()" @throws PAMIR_INVAL, PAMIR_NATS (the job's name) */
export function webPlace(nats: unknown, job: string, what: string): WebPlace {
  if (typeof nats !== "string") throw new PamiError("PAMIR_INVAL", `${what} is ${show(nats)}, not a text`);
  const urls = nats.split(",").map((text) => parseServer(text.trim(), what));
  const [first] = urls as [URL];
  const other = urls.find(({ username, password }) => username + password !== first.username + first.password);
  if (other !== undefined)
    throw new PamiError("PAMIR_INVAL", `${what} has two users: ${other.host} and ${first.host} need the same`);
  const [user, password] = [decodeURIComponent(first.username), decodeURIComponent(first.password)];
  return {
    servers: urls.map(({ protocol, host, pathname }) => `${protocol}//${host}${pathname}`.replace(/\/$/, "")),
    job: checkJob(job),
    user,
    password,
  };
}

function parseServer(text: string, what: string): URL {
  const url = urlOf(text);
  const isServer = url !== undefined && /^wss?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  if (isServer) return url as URL;
  const shown = withoutUser(text).slice(0, 300);
  const wanted = "wss://HOST:PORT, the address of the websocket {} part of a NATS server's configuration";
  throw new PamiError("PAMIR_INVAL", `${what} has "${shown}", not ${wanted}`);
}

/**
 * Connects. A connection that breaks is made again, with any of the servers, until close().
 * @param given milliseconds in which a server must answer, 5,000 at the most
 * @throws PAMIR_NATS no server answers, or the server refuses this page
 */
export async function connectByWeb(
  place: WebPlace,
  connect: NatsConnect,
  { name, timeout }: { readonly name: string; readonly timeout: number },
): Promise<NatsConnection> {
  const until = systemClock.now() + Math.min(timeout, ANSWER_MS);
  for (;;) {
    const left = Math.max(100, until - systemClock.now());
    try {
      return checkedConnection(await inTime(connect({ ...optionsOf(place), name, timeout: left }), left));
    } catch (error) {
      if (error instanceof PamiError) throw error;
      const refused = refusalOf(place, error);
      if (refused !== undefined) throw refused;
      if (systemClock.now() + RETRY_MS >= until) throw await notReached(place, error);
    }
    await pause(RETRY_MS);
  }
}

/** Milliseconds beyond the time that connect is given: it says itself why it fails. */
const GRACE_MS = 1000;

/** A connection that comes too late is closed. @throws Error wsconnect() itself waits for ever where there is no WebSocket */
async function inTime(connecting: Promise<object>, timeout: number): Promise<object> {
  const [late, tell] = promise<undefined>();
  const cancel = after(timeout + GRACE_MS, () => tell(undefined));
  const connection = await Promise.race([connecting, late]).finally(cancel);
  if (connection !== undefined) return connection;
  const close = (one: object): unknown => (one as Partial<NatsConnection>).close?.();
  void Promise.resolve(connecting).then(close, () => {});
  throw new Error("connect did not answer");
}

/** @throws PAMIR_INVAL */
function checkedConnection(connection: unknown): NatsConnection {
  const { publish, subscribe } = (connection ?? {}) as Partial<NatsConnection>;
  if (typeof publish === "function" && typeof subscribe === "function") return connection as NatsConnection;
  const text = `connect of join() gave ${show(connection)}, not a connection of wsconnect()`;
  throw new PamiError("PAMIR_INVAL", text);
}

function optionsOf({ servers, user, password }: WebPlace) {
  return {
    servers: [...servers],
    ...(password === "" ? (user === "" ? {} : { token: user }) : { user, pass: password }),
    ...RECONNECTING,
    // A cluster names addresses of its own network, which a page behind a proxy does not reach.
    ignoreClusterUpdates: true,
  };
}

const failure = ({ servers }: WebPlace, why: string, cause: unknown): PamiError =>
  new PamiError("PAMIR_NATS", `NATS at ${servers.join(", ")}: ${printable(why)}`, { cause });

/** An error that another attempt would meet again; undefined: it is none. */
function refusalOf(place: WebPlace, error: unknown): PamiError | undefined {
  const { name = "", message = "" } = (error ?? {}) as Partial<Error>;
  if (/authorization|authentication/i.test(`${name} ${message}`))
    return failure(place, "the server refuses this page's user, password, token or credentials", error);
  if (/secure/i.test(name) || /insecure/i.test(message))
    return failure(place, `this browser opens no connection there (${message}): a page of https: takes wss:`, error);
  return undefined;
}

const NO_WEBSOCKET =
  "this host has no WebSocket (Node has one from 22 on): give the server as nats://HOST:PORT, without connect";

/** Why no server was reached. A browser does not say it, so the first server's socket is looked at. */
async function notReached(place: WebPlace, error: unknown): Promise<PamiError> {
  if (typeof WebSocket !== "function") return failure(place, NO_WEBSOCKET, error);
  const [server = ""] = place.servers;
  const first = await firstWords(server);
  if (first === undefined) return failure(place, unopened(server), error);
  if (first === "") return failure(place, `a program that says nothing is there, where NATS begins with INFO`, error);
  if (!first.startsWith("INFO ")) return failure(place, "another program than NATS answers there", error);
  const { message = "" } = (error ?? {}) as Partial<Error>;
  return failure(place, message === "" || /timeout/i.test(message) ? "the server is too slow" : message, error);
}

function unopened(server: string): string {
  const origin = globalThis.location?.origin;
  const causes = [
    "no server listens there",
    "it is another port than that of its websocket {}",
    ...(server.startsWith("wss:")
      ? ["this browser does not trust its certificate, or it has none (no_tls)"]
      : ["it demands TLS (wss:)"]),
    ...(origin === undefined ? [] : [`it refuses pages of ${origin} (allowed_origins, same_origin)`]),
  ];
  return `no WebSocket opens there: ${causes.slice(0, -1).join(", ")}, or ${causes.at(-1)}`;
}

/** The first message of a WebSocket; "": there was none in a second. Undefined: it does not open. */
function firstWords(server: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let isOpen = false;
    let socket: WebSocket;
    try {
      socket = new WebSocket(server);
    } catch {
      resolve(undefined);
      return;
    }
    socket.binaryType = "arraybuffer";
    const end = (words: string | undefined): void => {
      cancel();
      socket.close();
      resolve(words);
    };
    const cancel = after(1000, () => end(isOpen ? "" : undefined));
    socket.onopen = () => {
      isOpen = true;
    };
    socket.onerror = () => end(undefined);
    socket.onclose = () => end(isOpen ? "" : undefined);
    socket.onmessage = ({ data }) =>
      end(
        typeof data === "string" ? data : new TextDecoder().decode(new Uint8Array(data as ArrayBuffer).subarray(0, 64)),
      );
  });
}
