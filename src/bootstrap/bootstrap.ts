// How the processes of a job find each other: a few small values, and barriers, before any link exists.
import { PamiError } from "../core/error.js";
import { decodeText, encodeText } from "../support/text.js";
import { after } from "../support/timers.js";
import type { PmiClient } from "./pmi/pmi-client.js";

/** Where a process of a launcher's server says why it has failed: that server hands on no reason. */
const FAILED_KEY = "failed";
/** Milliseconds for which a process that has failed awaits the others, so that they hear why. */
const FAILED_MS = 5000;

/** Exchanges values between the processes of a job. All methods may be called without waiting for earlier ones. */
export interface Bootstrap {
  /** This process, from 0. */
  readonly rank: number;
  /** Processes of the job. */
  readonly size: number;
  /** Place among the processes of this host, and how many they are, if the launcher says. */
  readonly localRank: number | undefined;
  readonly localSize: number | undefined;
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
   * Resolves once all processes have called it as often as this one.
   * @throws PAMIR_BOOTSTRAP if a process has gone; PAMIR_TIMEDOUT if one does not come
   */
  barrier(): Promise<void>;
  /**
   * Ends the use of the bootstrap. It never rejects. Rank 0 of a rendezvous also waits until the others have closed, for as
   * long as a barrier at most.
   */
  close(): Promise<void>;
}

/** What the launcher says of a process besides rank and size. */
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
   * @param client it has done everything up to `getMyKvsname`
   * @param onClose called once, behind `finalize`
   * @param absent names the processes that a barrier waits for, if they are known here
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

  /**
   * Ends the use of the bootstrap, since this process can't join the job. The others' barriers fail with the reason. It never
   * rejects. Under a launcher that hands on no reason, it waits 5 s for the others at the most; then the launcher ends them.
   */
  async fail(why: string): Promise<void> {
    if (this.#client.isOwn) {
      await this.#client.abort(why);
      await this.#onClose();
    } else if (this.#hasHeard || (await this.#tell(why))) await this.close();
  }

  /** Tells the others at their next barrier. @returns whether they have heard */
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
