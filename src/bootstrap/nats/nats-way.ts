// Processes that find each other at a NATS server: PAMIR_NATS and PAMIR_NODES are set. Under `pamir run --nats`, the nodes have
// met before, and each process knows its rank. Elsewhere each process is a node of one task, and meets the others here. Rank 0
// then serves a rendezvous at a subject.
import { PamiError } from "../../core/error.js";
import { connectNats, deniedSubject, NATS_PACKAGE, type NatsConnection } from "../../nats/connection.js";
import { randomId } from "../../nats/ids.js";
import { type NatsPlace, natsPlace } from "../../nats/place.js";
import { natsVariables } from "../../nats/variables.js";
import { findPackage } from "../../support/node/packages.js";
import { pause } from "../../support/timers.js";
import type { Bootstrap, BootstrapSetup, BootstrapWay, StewardedJob } from "../bootstrap.js";
import { type Launcher, natsNodesOf } from "../environment.js";
import type { Later } from "../later.js";
import type { Stream } from "../lines.js";
import { needModule } from "../node.js";
import { openRendezvous } from "../rendezvous/rendezvous.js";
import type { RendezvousPlace } from "../rendezvous/rendezvous-place.js";
import { reasonText } from "../text.js";
import { Comer } from "./come-later.js";
import { LaterBootstrap } from "./later-bootstrap.js";
import { BegunError, meetAtNats } from "./meeting.js";
import { connectToSubject, listenAtSubject } from "./nats-stream.js";
import { SealedMessages } from "./sealed-messages.js";

/** The variable with the epoch of nodes that have met. */
export const NATS_EPOCH = "PAMIR_NATS_EPOCH";
/** The variable with the ID for which a launcher has got the number of a later task. */
export const NATS_ID = "PAMIR_NATS_ID";
/** Milliseconds for which streams that end may still send. */
const LINGER_MS = 2000;
/** Milliseconds for the others to hear why a process has ended before its attach(). */
const FAIL_MS = 10_000;

export const natsWay: BootstrapWay = {
  isServed: false,
  meets: () => `NATS, ${placeText(natsPlace(natsVariables()))}`,
  open: openNatsBootstrap,
};

function placeText({ servers, job }: NatsPlace): string {
  return `job ${job} at ${servers.join(", ")}`;
}

async function openNatsBootstrap(launcher: Launcher, setup: BootstrapSetup): Promise<Bootstrap> {
  const place = natsPlace(natsVariables());
  const { env, key, insecure, timeout } = setup;
  const { isLater, spare } = natsNodesOf(env);
  checkNatsKey(place, key, insecure, isLater || spare > 0);
  const connection = await connectNats(place, { name: `pamir ${place.job}`, timeout });
  try {
    const { size } = launcher;
    const met = size === undefined ? undefined : await rankOf(launcher, setup, place, connection);
    if (met === undefined) return await openLater(connection, place, setup);
    const { rank, epoch, settled, spare = 0 } = met;
    const meeting = new NatsRendezvous(connection, place, epoch);
    const inner = await openRendezvous({ ...launcher, ...setup, rank, size: size as number, place: meeting });
    const stewarded = spare > 0 ? stewardedJob(place, epoch, key) : undefined;
    const later = spare > 0 ? { world: inner.size, most: inner.size + spare } : undefined;
    return new NatsBootstrap(inner, () => settled.then(() => meeting.close()), later, stewarded);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** @param epoch of the job */
function stewardedJob(place: NatsPlace, epoch: string, key: Uint8Array | undefined): StewardedJob {
  return { place, epoch, key, package: findPackage(NATS_PACKAGE) };
}

/** This process comes later. */
async function openLater(
  connection: NatsConnection,
  place: NatsPlace,
  { env, key, timeout, onWait }: BootstrapSetup,
): Promise<Bootstrap> {
  const { job } = place;
  const comer = new Comer(connection, new SealedMessages(key, job), {
    job,
    id: env[NATS_ID] ?? randomId(),
    host: needModule("os").hostname(),
    timeout,
    denied: deniedSubject(connection, job),
    onWait,
  });
  try {
    const came = await comer.come();
    const stewarded = env[NATS_ID] === undefined ? stewardedJob(place, came.facts.epoch, key) : undefined;
    return new LaterBootstrap(comer, came, () => connection.close(), stewarded);
  } catch (error) {
    // The answer may be on its way.
    await comer.leave();
    throw error;
  }
}

/**
 * @param isElastic whether tasks may come later: others know their nodes by the seals alone
 * @throws PAMIR_KEY everything that reaches the server could take part, or later tasks could not
 */
export function checkNatsKey(
  place: NatsPlace,
  key: Uint8Array | undefined,
  insecure: boolean | undefined,
  isElastic: boolean,
): void {
  if (key !== undefined) return;
  if (insecure === true && isElastic) {
    const why = "tasks that come later take a job key, since no address tells of their nodes: PAMIR_KEY_FILE";
    throw new PamiError("PAMIR_KEY", `${placeText(place)} (NATS), without a key: ${why}`);
  }
  if (insecure === true) return;
  const ways = "PAMIR_KEY_FILE, or PAMIR_INSECURE=1 where every program that reaches the server is trusted";
  throw new PamiError("PAMIR_KEY", `${placeText(place)} (NATS) needs a job key: ${ways}`);
}

/** A job that has begun. */
interface Begun {
  /** Of this process. */
  readonly rank: number;
  readonly epoch: string;
  /** Resolves once the other nodes need no more answers. */
  readonly settled: Promise<void>;
  /** Without a launcher: tasks that may come later. */
  readonly spare?: number;
}

/** The rank of this process, and the epoch of its job. Undefined: the job has begun, and this process comes later. */
async function rankOf(
  { rank, size }: Launcher,
  { env, key, timeout, onWait, onRefused }: BootstrapSetup,
  place: NatsPlace,
  connection: NatsConnection,
): Promise<Begun | undefined> {
  const epoch = env[NATS_EPOCH];
  if (epoch !== undefined && rank !== undefined) return { rank, epoch, settled: Promise.resolve() };
  const { hostname } = needModule("os");
  const { isLater, spare } = natsNodesOf(env);
  const options = { job: place.job, key, nodes: size as number, tasks: 1, spare, host: hostname(), timeout };
  try {
    const met = await meetAtNats(connection, { ...options, onWait, onNotice: onRefused });
    return { ...met, rank: met.node, spare };
  } catch (error) {
    if (isLater && error instanceof BegunError) return undefined;
    throw error;
  }
}

/**
 * A process has ended before its attach(): the others, which await it, hear why. @param connection is closed behind it
 * @param process its rank, the job's size and its key
 */
export async function failInPlace(
  connection: NatsConnection,
  place: NatsPlace,
  epoch: string,
  process: { readonly rank: number; readonly size: number; readonly key: Uint8Array | undefined },
  why: string,
): Promise<void> {
  const meeting = new NatsRendezvous(connection, place, epoch);
  const insecure = process.key === undefined;
  const options = { ...process, insecure, timeout: FAIL_MS, place: meeting, job: place.job, coordinator: undefined };
  try {
    const inner = await openRendezvous(options);
    await inner.fail(why);
  } catch {
    // The others have ended, or have heard of it.
  }
  await meeting.close();
}

/** Where rank 0 serves: a subject. */
class NatsRendezvous implements RendezvousPlace {
  readonly text: string;
  readonly #connection: NatsConnection;
  readonly #subject: string;
  readonly #job: string;
  readonly #denied: Promise<PamiError>;
  readonly #streams = new Set<Stream>();

  constructor(connection: NatsConnection, place: NatsPlace, epoch: string) {
    this.text = `NATS, ${placeText(place)}`;
    this.#connection = connection;
    this.#job = place.job;
    this.#denied = deniedSubject(connection, place.job);
    this.#subject = `pamir.${place.job}.b.${epoch}`;
  }

  async listen(onStream: (stream: Stream, from: string) => void): Promise<() => void> {
    let count = 0;
    try {
      return await listenAtSubject(this.#connection, this.#job, this.#subject, (stream) => {
        this.#keep(stream);
        onStream(stream, `connection ${++count}`);
      });
    } catch (error) {
      throw this.#refused(error);
    }
  }

  async connect(timeout: number): Promise<Stream> {
    const own = `pamir.${this.#job}.c.${randomId()}`;
    try {
      return this.#keep(await connectToSubject(this.#connection, this.#subject, own, timeout, this.#denied));
    } catch (error) {
      throw this.#refused(error);
    }
  }

  #keep(stream: Stream): Stream {
    this.#streams.add(stream);
    stream.once("close", () => this.#streams.delete(stream));
    return stream;
  }

  #refused(error: unknown): PamiError {
    if (error instanceof PamiError) return error;
    const text = `no connection to ${this.text}: ${reasonText(error)}`;
    return new PamiError("PAMIR_BOOTSTRAP", text, { cause: error });
  }

  /** Closes the connection once the streams are closed, or two seconds later. */
  async close(): Promise<void> {
    const closed = [...this.#streams].map((stream) => new Promise<void>((resolve) => stream.once("close", resolve)));
    await Promise.race([Promise.all(closed), pause(LINGER_MS, false)]);
    for (const stream of this.#streams) stream.destroy();
    await this.#connection.close();
  }
}

/** The bootstrap of a rendezvous, which closes the connection behind it. */
class NatsBootstrap implements Bootstrap {
  readonly rank: number;
  readonly size: number;
  readonly localRank: number | undefined;
  readonly localSize: number | undefined;
  readonly later: Later | undefined;
  readonly stewarded: StewardedJob | undefined;
  readonly #inner: Bootstrap;
  readonly #close: () => Promise<void>;

  constructor(inner: Bootstrap, close: () => Promise<void>, later?: Later, stewarded?: StewardedJob) {
    const { rank, size, localRank, localSize } = inner;
    [this.rank, this.size, this.localRank, this.localSize] = [rank, size, localRank, localSize];
    [this.later, this.stewarded] = [later, stewarded];
    this.#inner = inner;
    this.#close = close;
  }

  put(key: string, value: Uint8Array): Promise<void> {
    return this.#inner.put(key, value);
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#inner.get(key);
  }

  barrier(): Promise<void> {
    return this.#inner.barrier();
  }

  async close(): Promise<void> {
    await this.#inner.close();
    void this.#close();
  }

  async fail(why: string): Promise<void> {
    await this.#inner.fail(why);
    void this.#close();
  }
}
