// An endpoint is one u32, so that it can be sent in a message: task in the upper 24 bits, context in the lower 8.

declare const brand: unique symbol;

/** Identity of a context: (task, context). A plain number, valid in every task of the job. */
export type Endpoint = number & { readonly [brand]: "endpoint" };

export const ENDPOINT_CONTEXT_BITS = 8;
export const ENDPOINT_CONTEXT_MASK = 255;

/** The endpoint of a task's context; the caller has checked both. */
export function endpointOf(task: number, context: number): Endpoint {
  return (((task << ENDPOINT_CONTEXT_BITS) | context) >>> 0) as Endpoint;
}

/** The endpoint of each ordinal: a look into a table, not a division by the number of contexts (38 → 44 M messages/s). */
export function endpointTable(tasks: number, contexts: number): Uint32Array {
  return Uint32Array.from({ length: tasks * contexts }, (_, ordinal) =>
    endpointOf(Math.floor(ordinal / contexts), ordinal % contexts),
  );
}

/** Task of an endpoint. */
export function taskOf(endpoint: number): number {
  return endpoint >>> ENDPOINT_CONTEXT_BITS;
}

/** Context of an endpoint. */
export function contextOf(endpoint: number): number {
  return endpoint & ENDPOINT_CONTEXT_MASK;
}

/** An endpoint in words. */
export function nameOf(endpoint: Endpoint): string {
  return `context ${contextOf(endpoint)} of task ${taskOf(endpoint)}`;
}

/** The endpoint of an ordinal, where each task has so many contexts. */
export function endpointAt(ordinal: number, contexts: number): Endpoint {
  return endpointOf(Math.floor(ordinal / contexts), ordinal % contexts);
}
