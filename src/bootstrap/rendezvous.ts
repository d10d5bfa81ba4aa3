// Processes without a PMI launcher: rank 0 listens at an address that all processes know, and serves PMI-1 there.
//
// With a job key, lines are sealed (sealed-lines.ts), so rank 0 may listen at any address. Without a job key, a rendezvous is
// refused unless `insecure` says that all programs that reach the address are trusted.
import type { Server, Socket } from "node:net";
import { PamiError } from "../core/error.js";
import { systemClock } from "../support/clock.js";
import { promise } from "../support/promise.js";
import { after } from "../support/timers.js";
import { addressText, type HostPort } from "./address.js";
import { type BootstrapWay, type LocalPlace, PmiBootstrap } from "./bootstrap.js";
import { checkKey, makeKey } from "./key.js";
import { type Lines, linkedLines, StreamLines } from "./lines.js";
import { needModule } from "./node.js";
import { OWN_KVSNAME, PmiClient, RefusedError } from "./pmi/pmi-client.js";
import { PmiServer, RENDEZVOUS_VERSION } from "./pmi/pmi-server.js";
import { PlainFraming } from "./pmi/pmi-wire.js";
import { ClosedError, HandshakeError, sealLines } from "./sealed-lines.js";
import { ranksText, reasonText, runsOf, secondsText } from "./text.js";
import { DEFAULT_TIMEOUT_MS, GRACE_MS, type OnWait, reportWait } from "./waits.js";

/** Most milliseconds that one attempt takes to connect, and each message of the handshake to come. */
const ATTEMPT_MS = 10_000;
/** Least milliseconds for an attempt, including the last one: a shorter attempt would end with an error that says nothing. */
const ATTEMPT_MIN_MS = 1000;
/** Milliseconds between attempts: the first pause, and the longest. */
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 1000;
/**
 * Connections in a row that may end instead of a handshake: ten seconds with the pauses. Rank 0 says nothing to a process with
 * another key, so such ends are the only sign of a wrong key. Until rank 0 listens, a proxy may also close connections.
 */
const CLOSED_MAX = 16;
/** Connections above the number of ranks that have not said their rank. The oldest is closed for a new one. */
const SPARE_PENDING = 64;
/** Milliseconds of silence on a connection until the system probes it. */
const KEEPALIVE_MS = 10_000;
/** Refused connections that an error tells about, and reasons that are told at once. */
const TOLD_REFUSALS = 3;

export interface RendezvousOptions extends LocalPlace {
  readonly rank: number;
  readonly size: number;
  /** Where rank 0 listens. A job of one process needs no address. */
  readonly address: HostPort | undefined;
  /** Local address at which rank 0 listens, if it is not the address' host. */
  readonly bind?: string | undefined;
  /** A name that the processes of a job share. */
  readonly job?: string | undefined;
  /** 32 bytes. */
  readonly key?: Uint8Array | undefined;
  /** Lines travel as they are, and every program that reaches the address may take part. */
  readonly insecure?: boolean | undefined;
  /** Milliseconds of each wait for other processes. */
  readonly timeout?: number | undefined;
  /** Milliseconds between two attempts to reach rank 0 at the most (default 1,000). */
  readonly pauseMax?: number | undefined;
  /** Called every five seconds while other processes are awaited. */
  readonly onWait?: OnWait | undefined;
  /** Called on rank 0 with the first reasons for which it has refused processes, each once. */
  readonly onRefused?: ((why: string) => void) | undefined;
}

/**
 * Opens a rendezvous. On rank 0 the promise resolves once all other ranks have connected, elsewhere once rank 0 has accepted
 * this process.
 * @throws PAMIR_KEY without a key, unless `insecure` is true; if rank 0 ends each handshake, as for another key
 * @throws PAMIR_TIMEDOUT with the ranks that are missing, or the address that was not reached, and why
 * @throws PAMIR_BOOTSTRAP if rank 0 can't listen, or refuses this process
 */
export async function openRendezvous(options: RendezvousOptions): Promise<PmiBootstrap> {
  const { rank, size, address } = options;
  if (size === 1) return serveRendezvous(options, undefined, undefined);
  if (address === undefined) throw new PamiError("PAMIR_INVAL", `a rendezvous of ${size} processes needs an address`);
  const key = options.key === undefined ? undefined : checkKey("the job key", options.key);
  if (key === undefined && options.insecure !== true) {
    const ways =
      "PAMIR_KEY_FILE, PAMIR_KEY_FD, or PAMIR_INSECURE=1 where every program that reaches the address is trusted";
    throw new PamiError("PAMIR_KEY", `the rendezvous at ${addressText(address)} needs a job key: ${ways}`);
  }
  return rank === 0 ? serveRendezvous(options, address, key) : joinRendezvous(options, address, key);
}

export const rendezvousWay: BootstrapWay = {
  isServed: false,
  meets: ({ coordinator }) => coordinator && `rendezvous, ${addressText(coordinator)}`,
  // Their finders need both numbers.
  open: (launcher, setup) =>
    openRendezvous({
      ...launcher,
      ...setup,
      rank: launcher.rank as number,
      size: launcher.size as number,
      address: launcher.coordinator,
    }),
};

/** Rank 0. */
async function serveRendezvous(
  options: RendezvousOptions,
  address: HostPort | undefined,
  key: Uint8Array | undefined,
): Promise<PmiBootstrap> {
  const { size, job, timeout = DEFAULT_TIMEOUT_MS } = options;
  const refusals: string[] = [];
  let refused = 0;
  const told = new Set<string>();
  const onRefused = (why: string, from = ""): void => {
    refused++;
    if (told.size < TOLD_REFUSALS && !told.has(why)) {
      told.add(why);
      options.onRefused?.(`${from}${why}`);
    }
    refusals.push(`${from}${why}`);
    if (refusals.length > TOLD_REFUSALS) refusals.shift();
  };
  const name = needModule("buffer").Buffer.from(makeKey().subarray(0, 8)).toString("hex");
  const server = new PmiServer({ size, kvsname: `${OWN_KVSNAME}${name}`, barrierTimeout: timeout, job, onRefused });
  const listener = address === undefined ? undefined : await Listener.open(options, address, key, server, onRefused);
  const [own, other] = linkedLines();
  server.serve(other, 0);
  const client = new PmiClient(own, "the rendezvous of this process", timeout + GRACE_MS, options.onWait);
  const close = (): void => {
    server.close();
    listener?.close();
  };
  try {
    await begin(client);
    const isComplete = await reached(server, () => server.joined === size, timeout, options.onWait);
    if (!isComplete) {
      const absent = ranksText(runsOf(server.missing));
      const where = addressText(address as HostPort);
      const count = refused === 1 ? "1 connection was" : `${refused} connections were`;
      const others = refused === 0 ? "" : `; ${count} refused, at last: ${refusals.join("; ")}`;
      throw new PamiError(
        "PAMIR_TIMEDOUT",
        `${absent} did not come to ${where} within ${secondsText(timeout)}${others}`,
      );
    }
  } catch (error) {
    // Ranks that have come are told which ranks are missing.
    server.fail("timedout", server.missing, `did not come within ${secondsText(timeout)}`);
    client.destroy();
    close();
    throw error;
  }
  const absent = (): string => ranksText(runsOf(server.absent));
  const onClose = async (): Promise<void> => {
    await reached(server, () => server.done === size, timeout);
    close();
  };
  return new PmiBootstrap(client, options, onClose, absent);
}

/** Waits until something is true of the server. @returns false if the time is over */
async function reached(server: PmiServer, isTrue: () => boolean, timeout: number, onWait?: OnWait): Promise<boolean> {
  const [settled, settle] = promise<boolean>();
  const stop = after(timeout, () => settle(false));
  const stopReports = reportWait(onWait, timeout, () => ranksText(runsOf(server.missing)));
  let isOver = false;
  server.watch(() => {
    if (isOver) return true;
    if (isTrue()) settle(true);
    return isTrue();
  });
  const result = await settled;
  isOver = true;
  stop();
  stopReports();
  return result;
}

/** The first requests of every client. */
async function begin(client: PmiClient): Promise<void> {
  await client.init();
  await client.getMaxes();
  await client.getMyKvsname();
}

/** @param from the connection's address, if the reason does not name it */
type Refuse = (why: string, from?: string) => void;

/** The socket where rank 0 listens, and the connections that have not said their rank. */
class Listener {
  readonly #listener: Server;
  readonly #pending = new Set<Socket>();
  readonly #pendingMax: number;
  readonly #key: Uint8Array | undefined;
  readonly #server: PmiServer;
  readonly #onRefused: Refuse;

  private constructor(key: Uint8Array | undefined, server: PmiServer, pendingMax: number, onRefused: Refuse) {
    this.#key = key;
    this.#server = server;
    this.#pendingMax = pendingMax;
    this.#onRefused = onRefused;
    this.#listener = needModule("net").createServer((socket) => void this.#accept(socket));
  }

  /** @throws PAMIR_BOOTSTRAP if this process can't listen there */
  static async open(
    { size, bind }: RendezvousOptions,
    address: HostPort,
    key: Uint8Array | undefined,
    server: PmiServer,
    onRefused: Refuse,
  ): Promise<Listener> {
    const made = new Listener(key, server, size + SPARE_PENDING, onRefused);
    const local = { host: bind ?? address.host, port: address.port };
    await new Promise<void>((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => {
        const text = `rank 0 can't listen at ${addressText(local)}: ${error.message}${hintOf(error.code)}`;
        reject(new PamiError("PAMIR_BOOTSTRAP", text, { cause: error }));
      };
      made.#listener.once("error", onError);
      made.#listener.listen({ ...local, backlog: 511 }, () => {
        made.#listener.off("error", onError);
        // A connection that broke before it was accepted, or too many descriptors: other connections go on.
        made.#listener.on("error", (error) => onRefused(error.message));
        resolve();
      });
    });
    return made;
  }

  close(): void {
    this.#listener.close();
    for (const socket of this.#pending) socket.destroy();
  }

  async #accept(socket: Socket): Promise<void> {
    const from = addressText({ host: socket.remoteAddress ?? "an unknown address", port: socket.remotePort ?? 0 });
    const pending = this.#pending;
    pending.add(socket);
    socket.once("close", () => pending.delete(socket));
    if (pending.size > this.#pendingMax) for (const oldest of [...pending].slice(0, 1)) oldest.destroy();
    prepare(socket);
    try {
      const lines = await linesOver(socket, this.#key, "acceptor");
      this.#server.serve(lines, undefined, () => pending.delete(socket), `${from}: `);
    } catch (error) {
      if (!(error instanceof HandshakeError)) throw error;
      this.#onRefused(error.message, `${from}: `);
    }
  }
}

function hintOf(code: string | undefined): string {
  if (code === "EADDRINUSE") return "; another program listens there, or another job";
  if (code === "EADDRNOTAVAIL") return "; this host has no such address: PAMIR_BIND names another one to listen at";
  return "";
}

function prepare(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEPALIVE_MS);
}

async function linesOver(socket: Socket, key: Uint8Array | undefined, role: "initiator" | "acceptor"): Promise<Lines> {
  return key === undefined ? new StreamLines(socket, new PlainFraming()) : sealLines(socket, key, role, ATTEMPT_MS);
}

/** All other ranks. */
async function joinRendezvous(
  options: RendezvousOptions,
  address: HostPort,
  key: Uint8Array | undefined,
): Promise<PmiBootstrap> {
  const { rank, timeout = DEFAULT_TIMEOUT_MS, pauseMax = PAUSE_MAX_MS, onWait } = options;
  const where = addressText(address);
  const began = systemClock.now();
  let last = "no attempt has ended yet";
  /** Connections in a row that have ended instead of a handshake. */
  let closed = 0;
  const stopReports = reportWait(onWait, timeout, () => `${where} (${last})`);
  try {
    for (let attempts = 1, pause = PAUSE_MIN_MS; ; attempts++, pause = Math.min(2 * pause, pauseMax)) {
      const left = began + timeout - systemClock.now();
      try {
        return await attempt(options, address, key, Math.max(ATTEMPT_MIN_MS, Math.min(left, ATTEMPT_MS)));
      } catch (error) {
        // Another attempt makes sense if rank 0 does not listen yet, or something on the way has closed the connection.
        const isFinal =
          error instanceof PamiError && (error instanceof RefusedError || error.code !== "PAMIR_BOOTSTRAP");
        if (isFinal) throw error;
        last = reasonText(error);
        closed = (error as PamiError).cause instanceof ClosedError ? closed + 1 : 0;
        if (closed === CLOSED_MAX) {
          const text = `rank ${rank} has another job key than rank 0, or another program is at ${where}`;
          const times = `${CLOSED_MAX} times in a row`;
          throw new PamiError("PAMIR_KEY", `${text}: ${times}, it closed the connection during the handshake`, {
            cause: error,
          });
        }
        const waited = systemClock.now() - began;
        if (waited + pause > timeout) {
          const tried = `within ${secondsText(timeout)} (attempts: ${attempts})`;
          const text = `rank ${rank} did not reach rank 0 at ${where} ${tried}: ${last}`;
          throw new PamiError("PAMIR_TIMEDOUT", text, { cause: error });
        }
      }
      await new Promise<void>((resolve) => after(pause, resolve));
    }
  } finally {
    stopReports();
  }
}

async function attempt(
  options: RendezvousOptions,
  address: HostPort,
  key: Uint8Array | undefined,
  timeout: number,
): Promise<PmiBootstrap> {
  const { rank, size, job } = options;
  const socket = await connectSocket(address, timeout);
  let lines: Lines;
  try {
    lines = await linesOver(socket, key, "initiator");
  } catch (error) {
    if (!(error instanceof HandshakeError)) throw error;
    const hint = "; its job key may be another one, or it is another program";
    throw new PamiError("PAMIR_BOOTSTRAP", `${addressText(address)}: ${error.message}${hint}`, { cause: error });
  }
  const longest = (options.timeout ?? DEFAULT_TIMEOUT_MS) + GRACE_MS;
  const client = new PmiClient(lines, `the rendezvous at ${addressText(address)}`, longest, options.onWait);
  try {
    await client.initack(`${rank}`, { size, version: RENDEZVOUS_VERSION, ...(job === undefined ? {} : { job }) });
    await begin(client);
  } catch (error) {
    client.destroy();
    const mayLackKey = key === undefined && (error as PamiError).code === "PAMIR_BOOTSTRAP";
    if (!mayLackKey || error instanceof RefusedError) throw error;
    const hint = "; rank 0 may have a job key, and this process has none";
    throw new PamiError("PAMIR_BOOTSTRAP", `${(error as PamiError).message}${hint}`, { cause: error });
  }
  return new PmiBootstrap(client, options);
}

/** Connects, once. The socket does not keep the process running: waits do. @throws PAMIR_BOOTSTRAP */
export function connectSocket(address: HostPort, timeout: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = needModule("net").connect(address);
    const fail = (why: string, cause?: Error): void => {
      stop();
      socket.destroy();
      reject(new PamiError("PAMIR_BOOTSTRAP", `no connection to ${addressText(address)}: ${why}`, { cause }));
    };
    // Several addresses of a name are tried: the error of each is in an AggregateError without a text.
    const onError = (error: Error & { errors?: Error[] }): void => {
      fail(error.message || (error.errors ?? []).map(reasonText).join(", "), error);
    };
    const stop = after(timeout, () => fail(`no answer within ${secondsText(timeout)}`));
    socket.on("error", onError);
    socket.once("connect", () => {
      stop();
      socket.off("error", onError);
      // Until lines are made of the socket: then the lines see that it is destroyed.
      socket.on("error", () => {});
      prepare(socket);
      socket.unref();
      resolve(socket);
    });
  });
}
