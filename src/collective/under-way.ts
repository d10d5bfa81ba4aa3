// The operations of a geometry that are under way, by number. Each step costs the same, however many there are, and makes no
// garbage: a program may begin hundreds at once.
import { seqDelta } from "../../assembly/seq.js";
import type { CollectiveOperation } from "./operation.js";

const LEAST_PLACES = 16;

export class UnderWay {
  /** Operations that are under way. */
  count = 0;
  /**
   * The place of a number is its low bits. Numbers from `first` to before `next` have places; the places of finished operations
   * are empty.
   */
  #places: (CollectiveOperation | undefined)[] = new Array<CollectiveOperation | undefined>(LEAST_PLACES).fill(
    undefined,
  );
  /** Number of the oldest operation under way; the next number, if there is none. Read by other objects. */
  first = 1;
  /** Number of the next operation. Read by other objects. */
  next = 1;

  at(number: number): CollectiveOperation | undefined {
    const isWithin = seqDelta(number, this.first) >= 0 && seqDelta(number, this.next) < 0;
    return isWithin ? this.#places[this.#place(number)] : undefined;
  }

  /** Adds the operation with the next number. */
  add(operation: CollectiveOperation): void {
    if (seqDelta(this.next, this.first) === this.#places.length) this.#grow();
    this.#places[this.#place(this.next)] = operation;
    this.next = (this.next + 1) >>> 0;
    this.count++;
  }

  /** Passes over the next number, while no operation is under way: its operation is over already. */
  skip(): void {
    this.next = (this.next + 1) >>> 0;
    this.first = this.next;
  }

  /** Passes over the numbers before `next`, while no operation is under way. */
  skipTo(next: number): void {
    this.next = next;
    this.first = next;
  }

  /** Removes an operation that is over. */
  remove(number: number): void {
    this.#places[this.#place(number)] = undefined;
    this.count--;
    while (this.first !== this.next && this.#places[this.#place(this.first)] === undefined) {
      this.first = (this.first + 1) >>> 0;
    }
  }

  /** All operations under way, in order, as a new list. */
  all(): CollectiveOperation[] {
    const list: CollectiveOperation[] = [];
    for (let number = this.first; number !== this.next; number = (number + 1) >>> 0) {
      const operation = this.#places[this.#place(number)];
      if (operation !== undefined) list.push(operation);
    }
    return list;
  }

  #place(number: number): number {
    return number & (this.#places.length - 1);
  }

  #grow(): void {
    const old = this.#places;
    this.#places = new Array<CollectiveOperation | undefined>(2 * old.length).fill(undefined);
    for (const operation of old) if (operation !== undefined) this.#places[this.#place(operation.number)] = operation;
  }
}
