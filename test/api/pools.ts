// Pools of a test file: each is terminated once its test is over.
import { type Pool, type PoolOptions, pool } from "pamir/pool";
import { afterEach } from "vitest";

/** Makes what starts a file's pools. @param defaults options that a test does not give */
export function starter<Api>(
  entry: URL,
  defaults: PoolOptions,
): { start(options?: PoolOptions): Promise<Pool<Api>>; readonly open: Pool<Api>[] } {
  const open: Pool<Api>[] = [];
  afterEach(async () => {
    for (const workers of open.splice(0)) await workers.terminate();
  });
  return {
    open,
    async start(options = {}) {
      const workers = await pool<Api>(entry, { ...defaults, ...options });
      open.push(workers);
      return workers;
    },
  };
}

/** What a call gives, or the code of its error. */
export const endOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: { code?: string }) => error.code);
