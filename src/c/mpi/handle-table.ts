// Objects behind the handles that a program has.
import { FIRST_OWN } from "./constants.js";
import { MpiFailure } from "./failure.js";

/** Objects behind handles. */
export class HandleTable<T> {
  readonly #objects = new Map<number, T>();
  readonly #what: string;
  readonly #errorClass: number;
  #next = FIRST_OWN;
  /** Called with each object that comes (or undefined: goes), and its handle. */
  onChange: ((handle: number, object: T | undefined) => void) | undefined;

  /** @param what "communicator", for errors */
  constructor(what: string, errorClass: number) {
    this.#what = what;
    this.#errorClass = errorClass;
  }

  /** @throws MpiFailure */
  get(handle: number): T {
    const found = this.#objects.get(handle);
    if (found === undefined)
      throw new MpiFailure(this.#errorClass, `0x${(handle >>> 0).toString(16)} is no ${this.#what}`);
    return found;
  }

  has(handle: number): boolean {
    return this.#objects.has(handle);
  }

  add(object: T): number {
    this.set(this.#next, object);
    return this.#next++;
  }

  /** The handle of the next object. */
  get next(): number {
    return this.#next;
  }

  set(handle: number, object: T): void {
    this.#objects.set(handle, object);
    this.onChange?.(handle, object);
  }

  remove(handle: number): void {
    this.get(handle);
    this.#objects.delete(handle);
    this.onChange?.(handle, undefined);
  }

  entries(): Iterable<readonly [handle: number, object: T]> {
    return this.#objects;
  }
}
