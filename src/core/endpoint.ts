// An endpoint is one number, so that a message can carry it: context in the upper 8 bits, task in the lower 24. So a task's
// number is the endpoint of its context 0. CONTEXT_COUNT_MAX keeps an endpoint positive in an Int32Array. Only this file, and
// `#directLane` of protocol/eager/sender.ts, know these bits.
import { PamiError, show } from "./error.js";

/**
 * Identity of a context: `context * 2 ** 24 + task`. So a task's number is the endpoint of its context 0. An endpoint is
 * valid in every task of the job and fits an Int32Array.
 */
export type Endpoint = number;

export const ENDPOINT_TASK_BITS = 24;
export const ENDPOINT_TASK_MASK = 0xffffff;

/** Returns the endpoint of a task's context. The caller has checked both numbers. */
export function endpointOf(task: number, context: number): Endpoint {
  return (context << ENDPOINT_TASK_BITS) | task;
}

/** Returns the task of an endpoint. */
export function taskOf(endpoint: Endpoint): number {
  return endpoint & ENDPOINT_TASK_MASK;
}

/** Returns the context of an endpoint. */
export function contextOf(endpoint: Endpoint): number {
  return endpoint >>> ENDPOINT_TASK_BITS;
}

/** Names an endpoint in an error's text. */
export function nameOf(endpoint: Endpoint): string {
  return `context ${contextOf(endpoint)} of task ${taskOf(endpoint)}`;
}

/** Checks an endpoint of a job with this many tasks, and contexts per task. @throws PAMIR_INVAL */
export function checkEndpoint(endpoint: unknown, tasks: number, contexts: number): asserts endpoint is Endpoint {
  if (typeof endpoint !== "number") {
    throw new PamiError("PAMIR_INVAL", `endpoint is ${show(endpoint)}, not a number from client.endpoint()`);
  }
  // taskOf() and contextOf(), written out: each call checks its endpoint.
  if (endpoint === endpoint >>> 0 && (endpoint & 0xffffff) < tasks && endpoint >>> 24 < contexts) return;
  throw new PamiError(
    "PAMIR_INVAL",
    endpoint === endpoint >>> 0
      ? `endpoint ${endpoint} is ${nameOf(endpoint)}: the job has ${tasks} tasks with ${contexts} contexts each`
      : `endpoint ${endpoint} is not an integer from 0 to 2^32 - 1`,
  );
}
