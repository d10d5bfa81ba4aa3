// `pamir run --restart`: tasks that fail are started again, with new numbers.
import { PROCESS_COUNT_MAX } from "../../bootstrap/environment.js";
import { say, UsageError } from "../usage.js";
import { count, type Values } from "./options.js";

export class Restarts {
  /** Numbers for tasks that replace others. */
  readonly spare: number;
  readonly #most: number;
  /** By task: its rank, if that is not its number. */
  readonly #ranks = new Map<number, number>();
  /** By rank. */
  readonly #restarts = new Map<number, number>();

  /**
   * @param limit numbers that the job may have
   * @param why the limit is lower than that of all jobs
   * @param takesOthers whether other launchers may start later tasks: then --spare needs no --restart
   * @throws UsageError
   */
  constructor(values: Values, tasks: number, limit: number = PROCESS_COUNT_MAX, why = "", takesOthers = false) {
    this.#most = count("--restart", values.restart) ?? 0;
    const spare = count("--spare", values.spare);
    if (this.#most === 0 && spare !== undefined && !takesOthers) throw new UsageError("--spare takes --restart");
    if (this.#most > 0 && values["on-error"] === "abort") {
      throw new UsageError("--restart does not go with --on-error abort");
    }
    // A job without room for one restart is refused, unless its tasks alone are too many: then another text says so.
    const room = Math.max(tasks > limit ? 0 : 1, limit - tasks);
    this.spare = spare ?? Math.min(this.#most * tasks, room);
    if (this.spare > 0 && tasks + this.spare > limit) {
      const numbers = `${this.spare} more number${this.spare === 1 ? "" : "s"} for restarts`;
      const option = spare === undefined ? "--restart" : "--spare";
      throw new UsageError(`${tasks} tasks and ${numbers} (${option}) are more than ${limit}${why}`);
    }
  }

  /**
   * Starts a task in the place of one that has failed.
   * @param spawn starts it, or gives its number
   * @returns undefined: its rank, or the job, has had its restarts
   */
  replace(task: number, spawn: (rank: number) => number): { task: number; rank: number } | undefined {
    const rank = this.rankFor(task);
    if (rank === undefined) return undefined;
    const next = spawn(rank);
    this.began(rank, next);
    return { task: next, rank };
  }

  /** Whether tasks that fail are started again. */
  get isOn(): boolean {
    return this.#most > 0 && this.spare > 0;
  }

  /** The rank of a task that may be started again. Undefined: its rank, or the job, has had its restarts. */
  rankFor(task: number): number | undefined {
    const rank = this.#ranks.get(task) ?? task;
    const restarts = (this.#restarts.get(rank) ?? 0) + 1;
    return restarts > this.#most || this.#ranks.size >= this.spare ? undefined : rank;
  }

  /** A rank goes on as another task. */
  began(rank: number, next: number): void {
    const restarts = (this.#restarts.get(rank) ?? 0) + 1;
    this.#ranks.set(next, rank);
    this.#restarts.set(rank, restarts);
    say(`pamir run: rank ${rank} goes on as task ${next} (restart ${restarts} of ${this.#most})`);
  }
}
