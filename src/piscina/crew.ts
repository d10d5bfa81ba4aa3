// The jobs that a Piscina's workers join.
import type { MessagePort } from "node:worker_threads";
import { type Context, type Endpoint, type Job, launch, type PamiError } from "../index.js";

/** Tasks of a job over its life: another one is made when they are used up. As few as in pamir/pool: they share the heap. */
const JOB_TASKS = 16;

/** How a worker is called. */
export interface PoolLink {
  readonly context: Context;
  readonly to: Endpoint;
  /** The worker has ended. */
  leave(): void;
}

interface Crew {
  readonly job: Job;
  readonly context: Context;
  /** Workers that have not ended. */
  members: number;
}

/** Jobs, one behind the other. */
export class PiscinaCrews {
  readonly #maxThreads: number;
  /** The job that gets the next worker. */
  #current: Promise<Crew> | undefined;
  readonly #all = new Set<Promise<Crew>>();

  constructor(maxThreads: number) {
    this.#maxThreads = maxThreads;
  }

  /** Makes a worker a task of a job. @param port the other end is the worker's */
  async join(port: MessagePort): Promise<PoolLink> {
    for (;;) {
      this.#current ??= this.#launch();
      const current = this.#current;
      const crew = await current;
      let task: number;
      try {
        task = crew.job.adopt(port);
      } catch (error) {
        // The job has had all of its tasks, or is over.
        if (!["PAMIR_INVAL", "PAMIR_CLOSED"].includes((error as PamiError).code)) throw error;
        if (this.#current === current) this.#current = undefined;
        this.#dismiss(current, crew);
        continue;
      }
      crew.members++;
      const leave = (): void => {
        crew.members--;
        this.#dismiss(current, crew);
      };
      return { context: crew.context, to: crew.job.client.endpoint(task), leave };
    }
  }

  #launch(): Promise<Crew> {
    const crew = (async () => {
      const maxTasks = Math.max(JOB_TASKS, 2 * Math.ceil(this.#maxThreads) + 1);
      // The threads' own events tell how they end.
      const job = await launch(null, { tasks: 1, maxTasks, join: true, onError: "ignore" });
      job.unref();
      return { job, context: job.client.createContext(), members: 0 };
    })();
    this.#all.add(crew);
    crew.catch(() => {
      this.#all.delete(crew);
      if (this.#current === crew) this.#current = undefined;
    });
    return crew;
  }

  /** Ends a job without workers that gets no more. */
  #dismiss(promise: Promise<Crew>, crew: Crew): void {
    if (this.#current === promise || crew.members > 0) return;
    if (this.#all.delete(promise)) void crew.job.terminate();
  }

  /** Ends all jobs, whose workers have ended. */
  async end(): Promise<void> {
    const all = [...this.#all];
    this.#all.clear();
    this.#current = undefined;
    await Promise.allSettled(all.map(async (crew) => (await crew).job.terminate()));
  }
}
