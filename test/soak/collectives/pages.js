// @ts-check
// Words that the tasks of a round and its launcher share, behind the book.

/** Geometries of an epoch at most, and how often each is shrunk. */
const GEOMETRIES = 3;
export const SHRINKS = 24;

export class Pages {
  /** @param {number} places */
  static bytes(places) {
    return 4 * (4 + 4 * places + GEOMETRIES * SHRINKS);
  }

  /** @param {SharedArrayBuffer} buffer @param {number} offset @param {number} places */
  constructor(buffer, offset, places) {
    this.places = places;
    this.words = new Int32Array(buffer, offset, Pages.bytes(places) / 4);
  }

  /** The epoch that has begun, from 1; -1: the round is over. */
  get epoch() {
    return Atomics.load(this.words, 0);
  }

  set epoch(epoch) {
    Atomics.store(this.words, 0, epoch);
  }

  /** Survivors that are through with the epoch; and those that have closed everything. */
  get done() {
    return Atomics.load(this.words, 1);
  }

  raiseDone() {
    Atomics.add(this.words, 1, 1);
  }

  /** Before an epoch. */
  clear() {
    Atomics.store(this.words, 1, 0);
    this.words.fill(0, 4 + 4 * this.places);
  }

  /** A task asks to be ended after so many milliseconds. @param {number} task @param {number} delay */
  strike(task, delay) {
    Atomics.store(this.words, 4 + task, delay + 1);
  }

  /** undefined: it has not asked. @param {number} task */
  delayOf(task) {
    const word = Atomics.load(this.words, 4 + task);
    return word === 0 ? undefined : word - 1;
  }

  /** The last operation that a task has begun. @param {number} task @param {number} number */
  begin(task, number) {
    Atomics.store(this.words, 4 + this.places + task, number);
  }

  /** @param {number} task */
  begun(task) {
    return Atomics.load(this.words, 4 + this.places + task);
  }

  /** A task has attached. @param {number} task */
  attach(task) {
    Atomics.store(this.words, 4 + 2 * this.places + task, 1);
  }

  /** @param {number} task */
  isAttached(task) {
    return Atomics.load(this.words, 4 + 2 * this.places + task) === 1;
  }

  /** A task has ended, as the monitor says. @param {number} task */
  bury(task) {
    Atomics.store(this.words, 4 + 3 * this.places + task, 1);
  }

  /** @param {number} task */
  isDead(task) {
    return Atomics.load(this.words, 4 + 3 * this.places + task) === 1;
  }

  /**
   * The members of a geometry that was shrunk, as a hash: the same at all of them.
   * @param {number} geometry
   * @param {number} time
   * @param {number} hash
   */
  isSame(geometry, time, hash) {
    const place = 4 + 4 * this.places + geometry * SHRINKS + time;
    const before = Atomics.compareExchange(this.words, place, 0, hash);
    return before === 0 || before === hash;
  }
}
