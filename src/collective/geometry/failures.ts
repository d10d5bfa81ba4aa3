// Which operations of a geometry have failed, here or elsewhere, and the first operation from which on all must fail.
import { seqDelta } from "../../../assembly/seq.js";
import { type Endpoint, nameOf } from "../../core/endpoint.js";
import { PamiError } from "../../core/error.js";
import { CANCELED, ENOMEM, ERROR, type Result, SHUTDOWN } from "../../core/result.js";

/** The results with which an operation may fail at another member. */
const FAILURES: ReadonlySet<Result> = new Set([ERROR, ENOMEM, SHUTDOWN, CANCELED]);
/** Numbers of failed operations that are remembered, so that each is passed on once. */
const FAILURES_MAX = 64;

export class Failures {
  /** By number, so that each failure is passed on once. Other code reads whether there are any. */
  readonly results = new Map<number, Result>();
  /**
   * The first operation that has failed because a member is gone: no later operation can succeed. Other code reads this number.
   */
  brokenFrom: number | undefined;
  /** Which member is gone, in words. */
  lost = "";

  isBrokenAt(number: number): boolean {
    return this.brokenFrom !== undefined && seqDelta(number, this.brokenFrom) >= 0;
  }

  /** Whether a failure ends operations that no earlier failure has ended: this operation, and all that begin later. */
  breaksAt(number: number, result: Result): boolean {
    return result === SHUTDOWN && !this.isBrokenAt(number);
  }

  /** The failure of an operation; undefined: the operation has not failed. */
  of(number: number): Result | undefined {
    if (this.isBrokenAt(number)) return SHUTDOWN;
    return this.results.size > 0 ? this.results.get(number) : undefined;
  }

  add(number: number, result: Result): void {
    this.results.set(number, result);
    if (this.results.size > FAILURES_MAX) this.results.delete(this.results.keys().next().value as number);
  }
}

export function describeEnd(endpoint: Endpoint | undefined): string {
  return `${endpoint === undefined ? "a member" : nameOf(endpoint)} has ended`;
}

/**
 * The error of an operation that has failed.
 * @param lost an endpoint that has ended, if any has
 * @param shutdown the error for this endpoint
 * @param cause the thrown error
 */
export function failureError(
  what: string,
  result: Result,
  why: string,
  lost: Endpoint | undefined,
  shutdown: (text: string, to: Endpoint) => Error,
  cause: unknown,
): Error {
  const because = why === "" ? "" : `: ${why}`;
  if (result === SHUTDOWN) {
    const text = `${what}: ${why || describeEnd(lost)}`;
    return lost === undefined ? new PamiError("PAMIR_SHUTDOWN", text) : shutdown(text, lost);
  }
  if (result === CANCELED) return new PamiError("PAMIR_CLOSED", `${what}: the geometry was closed`);
  if (result === ENOMEM) return new PamiError("PAMIR_NO_MEMORY", `${what} has no memory${because}`);
  const text = `${what} has failed${because === "" ? " at another member" : because}`;
  return new PamiError("PAMIR_COLLECTIVE", text, cause === undefined ? {} : { cause });
}

/** The result of an operation that has failed elsewhere: a code that is no failure counts as ERROR of that member. */
export function failureIn(tag: number): Result {
  return FAILURES.has(tag as Result) ? (tag as Result) : ERROR;
}
