// Processes without a PMI launcher: rank 0 listens at a place that all processes know, and serves PMI-1 there.
//
// With a job key, lines are sealed (sealed-lines.ts), so rank 0 may listen at any address. Without a job key, a rendezvous is
// refused unless `insecure` says that all programs that reach the address are trusted.
import { PamiError } from "../../core/error.js";
import { systemClock } from "../../support/clock.js";
import { promise } from "../../support/promise.js";
import { after } from "../../support/timers.js";
import { addressText } from "../address.js";
import { type BootstrapWay, type LocalPlace, PmiBootstrap } from "../bootstrap.js";
import { checkKey, makeKey } from "../key.js";
import { type Lines, linkedLines, type Stream, StreamLines } from "../lines.js";
import { needModule } from "../node.js";
import { OWN_KVSNAME, PmiClient, RefusedError } from "../pmi/pmi-client.js";
import { PmiServer, RENDEZVOUS_VERSION } from "../pmi/pmi-server.js";
import { PlainFraming } from "../pmi/pmi-wire.js";
import { ranksText, reasonText, runsOf, secondsText } from "../text.js";
import { DEFAULT_TIMEOUT_MS, GRACE_MS, type OnWait, reportWait } from "../waits.js";
import { type RendezvousPlace, tcpPlace } from "./rendezvous-place.js";
import { ClosedError, HandshakeError, sealLines } from "./sealed-lines.js";

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
/** Refused connections that an error tells about, and reasons that are told at once. */
const TOLD_REFUSALS = 3;

export interface RendezvousOptions extends LocalPlace {
  readonly rank: number;
  readonly size: number;
  /** Where rank 0 listens. A job of one process needs no place. */
  readonly place: RendezvousPlace | undefined;
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
  const { rank, size, place } = options;
  if (size === 1) return serveRendezvous(options, undefined, undefined);
  if (place === undefined) throw new PamiError("PAMIR_INVAL", `a rendezvous of ${size} processes needs an address`);
  const key = options.key === undefined ? undefined : checkKey("the job key", options.key);
  if (key === undefined && options.insecure !== true) {
    const ways =
      "PAMIR_KEY_FILE, PAMIR_KEY_FD, or PAMIR_INSECURE=1 where every program that reaches the address is trusted";
    throw new PamiError("PAMIR_KEY", `the rendezvous at ${place.text} needs a job key: ${ways}`);
  }
  return rank === 0 ? serveRendezvous(options, place, key) : joinRendezvous(options, place, key);
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
      place: launcher.coordinator && tcpPlace(launcher.coordinator, launcher.bind),
    }),
};

/** Rank 0. */
async function serveRendezvous(
  options: RendezvousOptions,
  place: RendezvousPlace | undefined,
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
  const listener = place === undefined ? undefined : await Listener.open(size, place, key, server, onRefused);
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
      const where = (place as RendezvousPlace).text;
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

/** The place where rank 0 listens, and the connections that have not said their rank. */
class Listener {
  readonly #pending = new Set<Stream>();
  readonly #pendingMax: number;
  readonly #key: Uint8Array | undefined;
  readonly #server: PmiServer;
  readonly #onRefused: Refuse;
  #stop = (): void => {};

  private constructor(key: Uint8Array | undefined, server: PmiServer, pendingMax: number, onRefused: Refuse) {
    this.#key = key;
    this.#server = server;
    this.#pendingMax = pendingMax;
    this.#onRefused = onRefused;
  }

  /** @throws PAMIR_BOOTSTRAP if this process can't listen there */
  static async open(
    size: number,
    place: RendezvousPlace,
    key: Uint8Array | undefined,
    server: PmiServer,
    onRefused: Refuse,
  ): Promise<Listener> {
    const made = new Listener(key, server, size + SPARE_PENDING, onRefused);
    made.#stop = await place.listen((stream, from) => void made.#accept(stream, from), onRefused);
    return made;
  }

  close(): void {
    this.#stop();
    for (const stream of this.#pending) stream.destroy();
  }

  async #accept(stream: Stream, from: string): Promise<void> {
    const pending = this.#pending;
    pending.add(stream);
    stream.once("close", () => pending.delete(stream));
    if (pending.size > this.#pendingMax) for (const oldest of [...pending].slice(0, 1)) oldest.destroy();
    try {
      const lines = await linesOver(stream, this.#key, "acceptor");
      this.#server.serve(lines, undefined, () => pending.delete(stream), `${from}: `);
    } catch (error) {
      if (!(error instanceof HandshakeError)) throw error;
      this.#onRefused(error.message, `${from}: `);
    }
  }
}

async function linesOver(stream: Stream, key: Uint8Array | undefined, role: "initiator" | "acceptor"): Promise<Lines> {
  return key === undefined ? new StreamLines(stream, new PlainFraming()) : sealLines(stream, key, role, ATTEMPT_MS);
}

/** All other ranks. */
async function joinRendezvous(
  options: RendezvousOptions,
  place: RendezvousPlace,
  key: Uint8Array | undefined,
): Promise<PmiBootstrap> {
  const { rank, timeout = DEFAULT_TIMEOUT_MS, pauseMax = PAUSE_MAX_MS, onWait } = options;
  const { text: where } = place;
  const began = systemClock.now();
  let last = "no attempt has ended yet";
  /** Connections in a row that have ended instead of a handshake. */
  let closed = 0;
  const stopReports = reportWait(onWait, timeout, () => `${where} (${last})`);
  try {
    for (let attempts = 1, pause = PAUSE_MIN_MS; ; attempts++, pause = Math.min(2 * pause, pauseMax)) {
      const left = began + timeout - systemClock.now();
      try {
        return await attempt(options, place, key, Math.max(ATTEMPT_MIN_MS, Math.min(left, ATTEMPT_MS)));
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
  place: RendezvousPlace,
  key: Uint8Array | undefined,
  timeout: number,
): Promise<PmiBootstrap> {
  const { rank, size, job } = options;
  const stream = await place.connect(timeout);
  let lines: Lines;
  try {
    lines = await linesOver(stream, key, "initiator");
  } catch (error) {
    if (!(error instanceof HandshakeError)) throw error;
    const hint = "; its job key may be another one, or it is another program";
    throw new PamiError("PAMIR_BOOTSTRAP", `${place.text}: ${error.message}${hint}`, { cause: error });
  }
  const longest = (options.timeout ?? DEFAULT_TIMEOUT_MS) + GRACE_MS;
  const client = new PmiClient(lines, `the rendezvous at ${place.text}`, longest, options.onWait);
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
