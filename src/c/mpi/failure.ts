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

/** The name of an error class. */
export function nameOfClass(errorClass: number): string {
  const name = Object.entries(ERR).find(([, number]) => number === errorClass)?.[0];
  if (name !== undefined && errorClass > ERR.LASTCODE) return `MPIX_ERR_${name}`;
  return name === undefined ? `error class ${errorClass}` : `MPI_ERR_${name}`;
}
