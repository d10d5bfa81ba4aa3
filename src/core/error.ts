// Errors: misuse throws them, and promises reject with them.

/**
 * Stable codes. The text of an error names the given value and the limit that it broke. docs/errors.md says which calls
 * throw each code, and what to do.
 * - `PAMIR_INVAL`: an argument is out of its range or of the wrong type
 * - `PAMIR_NOT_IN_JOB`: `attach()` in a thread that no job started, or `job.client` without `join: true`
 * - `PAMIR_VERSION`: two versions of pamir in one job
 * - `PAMIR_CLOSED`: use after `close()`, or after the job has ended
 * - `PAMIR_REENTRANT`: `advance()` from within a handler or callback
 * - `PAMIR_DISPATCH_TAKEN`: the dispatch id has a handler already, or a stream
 * - `PAMIR_HINT`: a hint that can't be honored, or is unknown
 * - `PAMIR_TOO_LARGE`: a message or header over its limit
 * - `PAMIR_NO_DESTINATION`: a handler returned without choosing where a large message goes
 * - `PAMIR_BOUNDS`: a transfer that is not wholly within its region
 * - `PAMIR_STALE`: a handle of a region that is closed or never existed
 * - `PAMIR_NO_MEMORY`: the heap has no place for a region or a lane, or the task has too many regions
 * - `PAMIR_BUSY`: the heap was locked at every attempt
 * - `PAMIR_FENCE`: a fence region that is nested or not begun
 * - `PAMIR_MEMORY`: limits that don't fit together or into 4 GiB, or memory that the host refuses
 * - `PAMIR_ENTRY`: the task module can't be found, or can't become a worker
 * - `PAMIR_NO_WASM`: `kernel: 'wasm'` where WebAssembly is forbidden or missing
 * - `PAMIR_NO_WORKERS`: several tasks on a host without workers
 * - `PAMIR_ADDRESS`: an address that does not resolve, or at which no socket can be opened
 * - `PAMIR_LINK_MODULE`: the module of a link of the user's own that does not load, or gives no link
 * - `PAMIR_NO_PROCESSES`: processes can't share memory on this host
 * - `PAMIR_DESCRIPTORS`: a process has no descriptor left, for itself or for another that it starts
 * - `PAMIR_NOT_ISOLATED`: a call that needs shared memory, on a page that is not cross-origin isolated
 * - `PAMIR_WOULD_BLOCK`: a blocking wait on a page's own thread, which must not block
 * - `PAMIR_TIMEDOUT`: a wait reached its `timeout`
 * - `PAMIR_CANCELED`: the `signal` was aborted; the error's `cause` is its reason
 * - `PAMIR_INTERRUPTED`: `job.interrupt` ended the wait
 * - `PAMIR_SHUTDOWN`: the other task has ended
 * - `PAMIR_NO_HANDLER`: the target of a call has no handler of its dispatch id, and has said that no more come
 * - `PAMIR_COLLECTIVE`: members of a geometry began different operations, or one has failed at a member
 * - `PAMIR_MINORITY`: `shrink()` in a part of a geometry whose other part may go on
 * - `PAMIR_GIVEN_UP`: another node has given this one up, because it did not answer for the silence
 * - `PAMIR_LAUNCHER`: a variable of the launcher is missing or makes no sense, or no launcher started this process
 * - `PAMIR_PMI`: a line of PMI-1 that is malformed, too long or out of turn, or a request that the PMI server refused
 * - `PAMIR_BOOTSTRAP`: the processes of a job don't find each other: no way to the rendezvous, or one of them has gone
 * - `PAMIR_NATS`: a NATS server is not reached, or refuses this process, or a variable that names the server makes no sense
 * - `PAMIR_KEY`: a job key that is missing, open to other users, malformed or not that of the other processes
 * - `PAMIR_TICKET`: a text that is no ticket, or a ticket that the host has not issued
 * - `PAMIR_TICKET_USED`: the ticket has admitted a node already
 * - `PAMIR_TICKET_EXPIRED`: the ticket was not used in its lifetime
 * - `PAMIR_INSECURE`: an address of `ws:` without `insecure: true`
 * - `PAMIR_CLONE`: a value with a part that can't be copied to another task, or bytes that are no copy of a value
 * - `PAMIR_QUEUE_FULL`: as many calls wait for a pool's workers as its `maxQueue` allows
 * - `PAMIR_PROGRAM`: a program that is no WebAssembly, or can't be moved, or imports what is not there
 * - `PAMIR_HOSTS`: a list of hosts or a host file with an error, or hosts with too few slots
 */
export type ErrorCode =
  | "PAMIR_INVAL"
  | "PAMIR_NOT_IN_JOB"
  | "PAMIR_VERSION"
  | "PAMIR_CLOSED"
  | "PAMIR_REENTRANT"
  | "PAMIR_DISPATCH_TAKEN"
  | "PAMIR_HINT"
  | "PAMIR_TOO_LARGE"
  | "PAMIR_NO_DESTINATION"
  | "PAMIR_BOUNDS"
  | "PAMIR_STALE"
  | "PAMIR_NO_MEMORY"
  | "PAMIR_BUSY"
  | "PAMIR_FENCE"
  | "PAMIR_MEMORY"
  | "PAMIR_ENTRY"
  | "PAMIR_NO_WASM"
  | "PAMIR_NO_WORKERS"
  | "PAMIR_ADDRESS"
  | "PAMIR_LINK_MODULE"
  | "PAMIR_NO_PROCESSES"
  | "PAMIR_DESCRIPTORS"
  | "PAMIR_COLLECTIVE"
  | "PAMIR_NOT_ISOLATED"
  | "PAMIR_WOULD_BLOCK"
  | "PAMIR_TIMEDOUT"
  | "PAMIR_CANCELED"
  | "PAMIR_INTERRUPTED"
  | "PAMIR_SHUTDOWN"
  | "PAMIR_NO_HANDLER"
  | "PAMIR_MINORITY"
  | "PAMIR_GIVEN_UP"
  | "PAMIR_LAUNCHER"
  | "PAMIR_PMI"
  | "PAMIR_BOOTSTRAP"
  | "PAMIR_NATS"
  | "PAMIR_KEY"
  | "PAMIR_TICKET"
  | "PAMIR_TICKET_USED"
  | "PAMIR_TICKET_EXPIRED"
  | "PAMIR_INSECURE"
  | "PAMIR_CLONE"
  | "PAMIR_QUEUE_FULL"
  | "PAMIR_PROGRAM"
  | "PAMIR_HOSTS";

/** An error of pamir. Its `code` is stable; its text is for people. */
export class PamiError extends Error {
  /** Stable code by which a program tells errors apart. */
  readonly code: ErrorCode;

  /** Makes an error, for pamir itself and for tests. */
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PamiError";
    this.code = code;
  }
}

/** Checks that a value is an integer from `least` to `most`. @throws PAMIR_INVAL */
export function checkInteger(name: string, value: unknown, least: number, most: number): asserts value is number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw new PamiError("PAMIR_INVAL", `${name} is ${show(value)}, not an integer from ${least} to ${most}`);
  }
}

/** Formats a value for an error's text. It throws nothing, whatever the value's own code does. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return String(value);
  const isFunction = typeof value === "function";
  const name = partOf(isFunction ? value : partOf(value, "constructor"), "name");
  if (typeof name !== "string") return isFunction ? "function" : "object";
  const copy = partOf(value, COPY);
  if (typeof copy === "string" && copy !== OWN_COPY)
    return `a ${name} of another copy of pamir (${copy}; this one: ${OWN_COPY})`;
  return isFunction ? `function ${name}` : name;
}

/** Names the copy of this package that made an object: a program may have loaded two, each with its own classes. */
const COPY = Symbol.for("pamir.copy");
const OWN_COPY = (import.meta.url as string | undefined) ?? "in a bundle";

/** Notes on a class that its objects are of this copy: then an error says so where they come to another one. */
export function markCopy({ prototype }: { readonly prototype: object }): void {
  Object.defineProperty(prototype, COPY, { value: OWN_COPY });
}

/** A property of any value; undefined also if reading it throws. */
export function partOf(value: unknown, key: string | symbol): unknown {
  try {
    return (value as Record<string | symbol, unknown> | null | undefined)?.[key];
  } catch {
    return undefined;
  }
}

/** What String() gives; `otherwise` if it throws, as it does for an object without a prototype. */
export function textOf(value: unknown, otherwise = "a value without a text"): string {
  try {
    return String(value);
  } catch {
    return otherwise;
  }
}

/** The parts of an error of another task. */
export interface RemoteParts {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number | undefined;
  readonly stack?: string | undefined;
  /** Its own enumerable fields. None has the name of a part, or of a property of every object. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Of the end of a task. */
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
  readonly omitted?: readonly string[];
}

/**
 * An error of another task, or how that task ended. It has the name, message, code and stack of the original, and those of its
 * own enumerable fields that are plain data: after `throw { status: 500 }`, `error.status` is 500. `omitted` names the others.
 */
export class RemoteError extends Error {
  /** The `code` of the original, if it had one. */
  readonly code: string | number | undefined;
  /** The cause of the original, if it had one: a RemoteError, or plain data. At most 8 causes follow one another. */
  declare readonly cause?: unknown;
  /** Of an AggregateError: its errors, each a RemoteError or plain data. */
  declare readonly errors?: unknown;
  /**
   * Names of fields that were left out: no plain data, not readable, or beyond the bounds (8,192 characters of fields, 32
   * errors). Absent if nothing was. A text that is too long ends with the number of its missing characters instead.
   */
  declare readonly omitted?: readonly string[];
  /** If it says how a task ended: the exit code, as `TaskExit.code`. */
  declare readonly exitCode?: number;
  /** If a signal killed the task's process: its name. */
  declare readonly signal?: string;
  /** Fields of the original. */
  readonly [field: string]: unknown;

  /** @internal @param from the place that threw it, in words */
  constructor(error: RemoteParts, from: string) {
    super(error.message, "cause" in error ? { cause: error.cause } : undefined);
    this.name = error.name;
    this.code = error.code;
    // Only where they say something: an inspected error shows its own properties.
    if (error.exitCode !== undefined) this.exitCode = error.exitCode;
    if (error.signal !== undefined) this.signal = error.signal;
    this.stack = `${error.stack ?? `${error.name}: ${error.message}`}\n    at ${from}`;
    const { fields = {}, errors, omitted } = error;
    for (const key of Object.keys(fields)) define(this, key, fields[key], true);
    // As an AggregateError has them.
    if (errors !== undefined) define(this, "errors", errors, false);
    if (omitted !== undefined && omitted.length > 0) define(this, "omitted", omitted, true);
  }
}

function define(error: RemoteError, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
}
