// The endpoints that may still send to a loop of `context.messages()`: once each has ended, the loop is over.
import { type Endpoint, endpointOf, nameOf } from "../core/endpoint.js";
import type { PamiError, RemoteError } from "../core/error.js";
import type { Callback } from "../core/result.js";
import type { ContextCore } from "../protocol/context-core.js";
import type { Task } from "../protocol/task.js";

/**
 * The endpoints of all other tasks that the job may ever have. Undefined where the end of some is not told: there are none,
 * or the job has more tasks than its nodes have slots.
 */
function otherEndpoints({ map, number }: Task): Endpoint[] | undefined {
  if (map.jobTasks === 1 || map.jobTasks > map.tasks) return undefined;
  const others: Endpoint[] = [];
  for (let task = 0; task < map.jobTasks; task++) {
    if (task === number) continue;
    for (let index = 0; index < map.contexts; index++) others.push(endpointOf(task, index));
  }
  return others;
}

export class Producers {
  readonly #task: Task;
  readonly #core: ContextCore;
  /** Undefined: the loop has no end. */
  readonly #all: ReadonlySet<Endpoint> | undefined;
  #left: number;
  readonly #told: Callback = () => {
    this.#left--;
  };

  /** @param from undefined: all other tasks of the job */
  constructor(task: Task, core: ContextCore, from: readonly Endpoint[] | undefined) {
    const all = from ?? otherEndpoints(task);
    this.#task = task;
    this.#core = core;
    this.#all = all && new Set(all);
    this.#left = this.#all?.size ?? 1;
    for (const to of this.#all ?? []) core.watch(to, this.#told, undefined);
  }

  get endpoints(): readonly Endpoint[] {
    return [...(this.#all ?? [])];
  }

  /** Whether all have ended, and no message of theirs to this dispatch id is under way or unread. */
  isOver(id: number): boolean {
    const all = this.#all;
    return this.#left === 0 && all !== undefined && !this.#core.receiver.unexpected.hasFrom(id, all);
  }

  /** The error of the first of them whose task failed; undefined: each has closed its context, or has ended well. */
  failure(call: string): PamiError | undefined {
    for (const to of this.endpoints) {
      const error = this.#task.shutdownError(`${call}: ${nameOf(to)} has ended`, to);
      const cause = error.cause as RemoteError | undefined;
      if (cause !== undefined && cause.exitCode !== 0) return error;
    }
    return undefined;
  }

  close(): void {
    this.#core.unwatch(this.#told);
  }
}
