// `pamir run --restart`: tasks that fail are started again, with new numbers.
import type { Job } from "pamir";
import { UsageError } from "../usage.js";
import { count, type Values } from "./options.js";

export class Restarts {
  /** Numbers for tasks that replace others. */
  readonly spare: number;
  readonly #most: number;
  /** By task: its rank, if that is not its number. */
  readonly #ranks = new Map<number, number>();
  /** By rank. */
  readonly #restarts = new Map<number, number>();

  /** @throws UsageError */
  constructor(values: Values, tasks: number) {
    this.#most = count("--restart", values.restart) ?? 0;
    const spare = count("--spare", values.spare);
    if (this.#most === 0 && spare !== undefined) throw new UsageError("--spare takes --restart");
    if (this.#most > 0 && values["on-error"] === "abort") {
      throw new UsageError("--restart does not go with --on-error abort");
    }
    this.spare = spare ?? this.#most * tasks;
  }

  /** Starts a task in the place of one that has failed. @returns false: its rank, or the job, has had its restarts */
  replace(job: Job, task: number): boolean {
    const rank = this.#ranks.get(task) ?? task;
    const restarts = (this.#restarts.get(rank) ?? 0) + 1;
    if (restarts > this.#most || this.#ranks.size >= this.spare) return false;
    const next = job.spawn({ rank });
    this.#ranks.set(next, rank);
    this.#restarts.set(rank, restarts);
    process.stderr.write(`pamir run: rank ${rank} goes on as task ${next} (restart ${restarts} of ${this.#most})\n`);
    return true;
  }
}
