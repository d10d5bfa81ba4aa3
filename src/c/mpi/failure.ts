// Errors of MPI calls: a class of the standard, and a text that names the value and the limit.
import { ERR } from "./constants.js";

export class MpiFailure extends Error {
  /** MPI_ERR_…, by its number. */
  readonly errorClass: number;

  constructor(errorClass: number, text: string) {
    super(text);
    this.errorClass = errorClass;
  }
}

/**
 * Of several errors that one advance() has thrown, the one that says why: a failure that a program may handle hides no other. What
 * is no AggregateError is its own cause.
 */
export function causeOf(error: unknown): unknown {
  if (!(error instanceof AggregateError)) return error;
  const { errors } = error as { errors: unknown[] };
  return errors.find((one) => !(one instanceof MpiFailure)) ?? errors[0];
}

/** The name of an error class. */
export function nameOfClass(errorClass: number): string {
  const name = Object.entries(ERR).find(([, number]) => number === errorClass)?.[0];
  if (name !== undefined && errorClass > ERR.LASTCODE) return `MPIX_ERR_${name}`;
  return name === undefined ? `error class ${errorClass}` : `MPI_ERR_${name}`;
}
