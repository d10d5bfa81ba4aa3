// How the processes of a job find each other: a few small values, and barriers, before any link exists.
import type { PmiClient } from "./pmi-client.js";

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
  #closed: Promise<void> | undefined;

  /**
   * @param client it has done everything up to `getMyKvsname`
   * @param onClose called once, behind `finalize`
   */
  constructor(
    client: PmiClient,
    { rank, size, localRank, localSize }: { readonly rank: number; readonly size: number } & LocalPlace,
    onClose: () => Promise<void> = async () => {},
  ) {
    this.#client = client;
    this.rank = rank;
    this.size = size;
    this.localRank = localRank;
    this.localSize = localSize;
    this.#onClose = onClose;
  }

  put(key: string, value: Uint8Array): Promise<void> {
    return this.#client.put(key, value);
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#client.get(key);
  }

  barrier(): Promise<void> {
    return this.#client.barrier();
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
