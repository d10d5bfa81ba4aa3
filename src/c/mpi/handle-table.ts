// Objects behind the handles of a program.
import { FIRST_OWN } from "./constants.js";
import { MpiFailure } from "./failure.js";

export class HandleTable<T> {
  readonly #objects = new Map<number, T>();
  readonly #what: string;
  readonly #errorClass: number;
  #next = FIRST_OWN;

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
    this.#objects.set(this.#next, object);
    return this.#next++;
  }

  set(handle: number, object: T): void {
    this.#objects.set(handle, object);
  }

  remove(handle: number): void {
    this.get(handle);
    this.#objects.delete(handle);
  }

  values(): Iterable<T> {
    return this.#objects.values();
  }
}
