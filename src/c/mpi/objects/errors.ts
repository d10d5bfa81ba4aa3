// Error handlers of the program, and error classes and codes that it adds.
import { ERR, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN, FIRST_OWN, SUCCESS } from "../constants.js";
import { MpiFailure, nameOfClass } from "../failure.js";

/** The program's own codes are larger than MPI_ERR_LASTCODE, 0x3fff, and than those of ULFM behind it. */
const LAST_CODE = 0x40ff;
const PREDEFINED = [ERRORS_ARE_FATAL, ERRORS_RETURN, ERRORS_ABORT] as const;

/** Error classes, codes and handlers of a program. */
export class ProgramErrors {
  /** Places of handlers in the program's table of functions: the first one has the handle FIRST_OWN. */
  readonly #handlers: number[] = [];
  readonly #classes = new Map<number, number>();
  readonly #texts = new Map<number, string>();
  /** The largest code in use. */
  last = LAST_CODE;

  /** @param call place in the program's table of functions @returns the handle */
  addHandler(call: number): number {
    return FIRST_OWN + this.#handlers.push(call) - 1;
  }

  /** A handler of the program. A communicator may have one whose handle was freed. */
  handlerAt(handle: number): number | undefined {
    return this.#handlers[handle - FIRST_OWN];
  }

  addClass(): number {
    this.last++;
    this.#classes.set(this.last, this.last);
    return this.last;
  }

  addCode(errorClass: number): number {
    this.last++;
    this.#classes.set(this.last, errorClass);
    return this.last;
  }

  /** @throws MpiFailure MPI_ERR_ARG */
  setText(code: number, text: string): void {
    if (!this.#classes.has(code)) throw new MpiFailure(ERR.ARG, `${code} is no error code of the program`);
    this.#texts.set(code, text);
  }

  classOf(code: number): number {
    return this.#classes.get(code) ?? code;
  }

  textOf(code: number): string {
    if (code === SUCCESS) return "MPI_SUCCESS";
    return this.#texts.get(code) ?? (this.#classes.has(code) ? "" : nameOfClass(code));
  }

  /** @throws MpiFailure MPI_ERR_ERRHANDLER */
  checkHandler(handle: number): void {
    if (PREDEFINED.includes(handle as (typeof PREDEFINED)[number]) || this.handlerAt(handle) !== undefined) return;
    throw new MpiFailure(ERR.ERRHANDLER, `0x${(handle >>> 0).toString(16)} is no error handler`);
  }
}
