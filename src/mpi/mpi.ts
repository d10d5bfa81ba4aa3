// The entry pamir/mpi: MPI for programs in TypeScript, by the same engine as programs in C. Source: MPI 5.0.
import { type Client, type Context, PamiError, type ProgressOptions } from "../index.js";
import { Comm } from "./comm.js";
import { Rank } from "./rank.js";
import { makeWorld } from "./world.js";

/** Options of `init`. */
export interface InitOptions {
  /** The task's context 0, if the program has made it. Default: it is made. */
  readonly context?: Context | undefined;
}

/** MPI, as one rank has it. */
export class Mpi {
  /** The communicator of all ranks: the tasks with which the job began. */
  readonly world: Comm;
  /** The communicator of this rank alone. */
  readonly self: Comm;
  readonly #rank: Rank;

  /** @internal */
  constructor(rank: Rank) {
    const { world, self } = rank.communicators;
    this.#rank = rank;
    this.world = new Comm(rank, world);
    this.self = new Comm(rank, self);
  }

  /**
   * Ends MPI. All ranks call it, also those in C, as `MPI_Finalize`: it resolves once all have, and all that this rank has sent
   * is received or out. The context stays.
   * @throws as `context.progress()`, and as `comm.barrier()`
   */
  async finalize(options?: ProgressOptions): Promise<void> {
    const rank = this.#rank;
    rank.checkOpen("finalize");
    await rank.until("finalize", () => rank.isDrained, options);
    const geometry = await rank.communicators.world.geometryAsync();
    await geometry.barrier(options);
    this.#end();
  }

  /** As finalize(), but blocks the thread. */
  finalizeSync(): void {
    const rank = this.#rank;
    rank.checkOpen("finalizeSync");
    rank.block(() => rank.isDrained);
    this.world.barrierSync();
    this.#end();
  }

  /** Calls finalize() at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#rank.isFinalized) await this.finalize();
  }

  #end(): void {
    this.#rank.isFinalized = true;
    this.#rank.places.close();
    this.#rank.engine.close();
  }
}

/**
 * Begins MPI in a task. All tasks of the job call it, or run a program in C by `runProgram()` of `pamir/c`; together they are the
 * ranks of `mpi.world`. It takes the task's context 0, and its dispatch id 4095.
 * @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN (MPI has begun already); as `client.world()`
 */
export async function init(client: Client, options: InitOptions = {}): Promise<Mpi> {
  if (typeof (client as Partial<Client> | null)?.createContext !== "function") {
    throw new PamiError("PAMIR_INVAL", `client of init() is ${String(client)}, not a Client`);
  }
  const { context, world } = await makeWorld(client, options.context);
  return new Mpi(new Rank(client, context, world));
}
