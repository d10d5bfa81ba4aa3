// launch(): how a job starts. What it takes is loaded with the first job: a task, which loads all of this anew, launches none.
import { PamiError } from "../core/error.js";
import type { URLLike, WorkerLike } from "../support/like.js";
import { bareScope } from "./info.js";
import type { Job } from "./job.js";
import type { LaunchOptions } from "./launch-options.js";

/**
 * Starts a job: `tasks` workers that import the module `entry`, where each calls `attach()`. Resolves while the workers are
 * starting. Without `join: true` the caller is no task: it watches and ends the job, but sends tasks nothing and hears nothing
 * from them. With `join: true` the caller is task 0, which `tasks` counts: `tasks: 4` starts three workers, and `job.client` is
 * the caller's client. Messages to a task that is not up yet wait for it. A task that fails to load ends with its error in
 * `job.exited`. In a browser, call it on the page: in Firefox 153, about one in a hundred workers that start workers hangs.
 * @param entry URL of the task module: `new URL('./task.js', import.meta.url)`. In a browser also a function that makes its
 *   worker, for bundlers: `() => new Worker(new URL('./task.js', import.meta.url), { type: 'module' })`. With
 *   `tasks: 1, join: true` it may be null
 * @throws PAMIR_INVAL, PAMIR_ENTRY, PAMIR_MEMORY, PAMIR_NO_WASM, PAMIR_NO_WORKERS, PAMIR_NO_PROCESSES, PAMIR_CANCELED
 */
export async function launch(
  entry: URLLike | string | (() => WorkerLike) | null,
  options: LaunchOptions = {},
): Promise<Job> {
  const why = bareScope();
  if (why !== undefined) throw new PamiError("PAMIR_NO_WORKERS", `launch(): ${why}`);
  const { launchJob } = await import("./launch-job.js");
  return launchJob(entry, options);
}
