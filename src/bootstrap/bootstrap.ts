// How the processes of a job find each other: a few small values, and barriers, before any link exists.
import { PamiError } from "../core/error.js";
import type { NatsPlace } from "../nats/place.js";
import { decodeText, encodeText } from "../support/text.js";
import { after } from "../support/timers.js";
import type { Environment, Launcher } from "./environment.js";
import type { Later } from "./later.js";
import type { PmiClient } from "./pmi/pmi-client.js";
import type { OnWait } from "./waits.js";

/** Prefix of the key under which a process says why it has failed: a foreign launcher's server hands on no reason. */
const FAILED_KEY = "failed";
/** Milliseconds for which a failed process awaits the other processes, so that they hear the reason. */
const FAILED_MS = 5000;

/** A job at a NATS server which no launcher has started, and which takes later tasks. */
export interface StewardedJob {
  readonly place: NatsPlace;
  /** 16 hexadecimal digits that no other job has. */
  readonly epoch: string;
  readonly key: Uint8Array | undefined;
  /** Path of the client's package; undefined: where this module finds it. */
  readonly package: string | undefined;
}

/** Exchanges values between the processes of a job. All methods may be called without waiting for earlier ones. */
export interface Bootstrap {
  /** This process, from 0. */
  readonly rank: number;
  /** Processes of the job. */
  readonly size: number;
  /** Place among the processes of this host, and the number of these processes, if the launcher says. */
  readonly localRank: number | undefined;
  readonly localSize: number | undefined;
  /** Present if tasks may come later, or this process does, and the bootstrap tells so. */
  readonly later?: Later | undefined;
  /** Present if this process may be the steward of its job, since it has no launcher. */
  readonly stewarded?: StewardedJob | undefined;
  /**
   * Stores a value, for all processes behind the next barrier. The bytes are copied.
   * @param key 1 to 24 letters, digits, "_", ".", ":" or "-"; it is stored once in a job
   * @param value at most 64 KiB
   * @throws PAMIR_INVAL, PAMIR_PMI, PAMIR_BOOTSTRAP, PAMIR_TIMEDOUT
   */
  put(key: string, value: Uint8Array): Promise<void>;
  /**
   * A value that a process stored before the last barrier.
   * @returns undefined if there is none
   * @throws PAMIR_INVAL, PAMIR_PMI, PAMIR_BOOTSTRAP, PAMIR_TIMEDOUT
   */
  get(key: string): Promise<Uint8Array | undefined>;
  /**
   * Resolves once all processes have called barrier() as often as this process.
   * @throws PAMIR_BOOTSTRAP if a process has gone; PAMIR_TIMEDOUT if one does not come
   */
  barrier(): Promise<void>;
  /**
   * Ends the use of the bootstrap, and never rejects. Rank 0 of a rendezvous also waits until all other ranks have closed, for
   * as long as a barrier at most.
   */
  close(): Promise<void>;
  /**
   * Ends the use of the bootstrap instead of close(), since this process can't join the job; it never rejects. Barriers of other
   * processes fail, with the reason if the bootstrap can hand it on.
   */
  fail(why: string): Promise<void>;
}

/** A way by which processes find each other: the part of a row of launchers.ts that opens a bootstrap. */
export interface BootstrapWay {
  /**
   * Whether a server of the launcher's carries it, which is there at once: a process that can't even begin says so there, and
   * the server may carry the job key. Otherwise the key comes from the environment.
   */
  readonly isServed: boolean;
  /** Where the processes meet, for `pamir info`; undefined: nowhere, since the job has one process. */
  meets(launcher: Launcher): string | undefined;
  /** @throws PAMIR_LAUNCHER, PAMIR_KEY, PAMIR_PMI, PAMIR_BOOTSTRAP, PAMIR_TIMEDOUT */
  open(launcher: Launcher, setup: BootstrapSetup): Promise<Bootstrap>;
}

/** What a bootstrap is opened with. */
export interface BootstrapSetup {
  /** Without the variables of the job key. */
  readonly env: Environment;
  /** Milliseconds of each wait for other processes. */
  readonly timeout: number;
  /** The job key of the environment. */
  readonly key?: Uint8Array | undefined;
  /** Processes may meet without a job key where others could take part. */
  readonly insecure?: boolean | undefined;
  /** Called every five seconds while other processes are awaited. */
  readonly onWait?: OnWait | undefined;
  /** Called with the first reasons for which other processes were refused, each once. */
  readonly onRefused?: ((why: string) => void) | undefined;
}

/** The launcher's data about a process besides rank and size. */
export interface LocalPlace {
  readonly localRank?: number | undefined;
  readonly localSize?: number | undefined;
}

/** A bootstrap by PMI-1. */
export class PmiBootstrap implements Bootstrap {
  readonly rank: number;
  readonly size: number;
  readonly localRank: number | undefined;
  readonly localSize: number | undefined;
  readonly #client: PmiClient;
  readonly #onClose: () => Promise<void>;
  readonly #absent: () => string;
  #closed: Promise<void> | undefined;
  /** Another process has said that it failed. */
  #hasHeard = false;

  /**
   * @param client has done everything up to `getMyKvsname`
   * @param onClose called once, behind `finalize`
   * @param absent names the processes that a barrier waits for, if this process knows them
   */
  constructor(
    client: PmiClient,
    { rank, size, localRank, localSize }: { readonly rank: number; readonly size: number } & LocalPlace,
    onClose: () => Promise<void> = async () => {},
    absent: () => string = () => client.barrierText(size),
  ) {
    this.#client = client;
    this.rank = rank;
    this.size = size;
    this.localRank = localRank;
    this.localSize = localSize;
    this.#onClose = onClose;
    this.#absent = absent;
  }

  put(key: string, value: Uint8Array): Promise<void> {
    return this.#client.put(key, value);
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#client.get(key);
  }

  async barrier(): Promise<void> {
    await this.#client.barrier(this.#absent);
    if (this.#client.isOwn) return;
    const why = await this.#client.get(FAILED_KEY);
    if (why === undefined) return;
    this.#hasHeard = true;
    throw new PamiError("PAMIR_BOOTSTRAP", `the barrier failed: ${decodeText(why)}`);
  }

  /** Under a launcher that hands on no reason, it waits at most 5 s for the other processes; then the launcher ends them. */
  async fail(why: string): Promise<void> {
    if (this.#client.isOwn) {
      await this.#client.abort(why);
      await this.#onClose();
    } else if (this.#hasHeard || (await this.#tell(why))) await this.close();
  }

  /** Tells the other processes at their next barrier. @returns whether they have heard the reason */
  async #tell(why: string): Promise<boolean> {
    const client = this.#client;
    // A second process that fails finds the key taken.
    await client.put(FAILED_KEY, encodeText(`rank ${this.rank} failed: ${why}`)).catch(() => {});
    const told = client.barrier().then(
      () => true,
      () => false,
    );
    let stop = (): void => {};
    const late = new Promise<boolean>((resolve) => {
      stop = after(FAILED_MS, () => resolve(false));
    });
    const hasTold = await Promise.race([told, late]);
    stop();
    if (!hasTold) client.destroySoon();
    return hasTold;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // A server that has gone needs no finalize.
    await this.#client.finalize().catch(() => {});
    await this.#onClose();
  }
}
