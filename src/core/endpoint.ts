// An endpoint is one number, so that it can be sent in a message: context in the upper 8 bits, task in the lower 24. So the
// number of a task is the endpoint of its context 0. CONTEXT_COUNT_MAX keeps it positive in an Int32Array. Only this file,
// and `#directLane` of protocol/eager/sender.ts, know where the two lie.
import { PamiError, show } from "./error.js";

/**
 * Identity of a context, `context * 2 ** 24 + task`: the number of a task is the endpoint of its context 0. It is valid in
 * every task of the job, and fits an Int32Array.
 */
export type Endpoint = number;

export const ENDPOINT_TASK_BITS = 24;
export const ENDPOINT_TASK_MASK = 0xffffff;

/** The endpoint of a task's context; the caller has checked both. */
export function endpointOf(task: number, context: number): Endpoint {
  return (context << ENDPOINT_TASK_BITS) | task;
}

/** Task of an endpoint. */
export function taskOf(endpoint: Endpoint): number {
  return endpoint & ENDPOINT_TASK_MASK;
}

/** Context of an endpoint. */
export function contextOf(endpoint: Endpoint): number {
  return endpoint >>> ENDPOINT_TASK_BITS;
}

/** An endpoint in words. */
export function nameOf(endpoint: Endpoint): string {
  return `context ${contextOf(endpoint)} of task ${taskOf(endpoint)}`;
}

/** @throws PAMIR_INVAL for what is no endpoint of a job with so many tasks, and so many contexts each */
export function checkEndpoint(endpoint: unknown, tasks: number, contexts: number): asserts endpoint is Endpoint {
  if (typeof endpoint !== "number") {
    throw new PamiError("PAMIR_INVAL", `endpoint is ${show(endpoint)}, not a number from client.endpoint()`);
  }
  if (endpoint === endpoint >>> 0 && taskOf(endpoint) < tasks && contextOf(endpoint) < contexts) return;
  throw new PamiError(
    "PAMIR_INVAL",
    endpoint === endpoint >>> 0
      ? `endpoint ${endpoint} is ${nameOf(endpoint)}: the job has ${tasks} tasks with ${contexts} contexts each`
      : `endpoint ${endpoint} is not an integer from 0 to 2^32 - 1`,
  );
}
