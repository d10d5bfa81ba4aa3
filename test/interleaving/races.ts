// Finds accesses that nothing orders: vector clocks over the atomics, as a race detector keeps them. A plain access
// races with any access of another thread to the same word, one of them a write, that does not happen before it.
import { ACCESS } from "./instrument.js";
import { STEP } from "./turnstile.js";

const THREADS = 4;

/** Where clocks, release clocks and the last accesses lie, in words; all of it shared, owned by whoever has the turn. */
export function raceWords(memoryWords: number): number {
  return THREADS * THREADS + memoryWords * THREADS * 5;
}

export class Races {
  readonly #clocks: Int32Array;
  /** What each word's last atomic write has released. */
  readonly #released: Int32Array;
  /** Clock of each thread's last access to each word, by sort. */
  readonly #reads: Int32Array;
  readonly #writes: Int32Array;
  readonly #atomicReads: Int32Array;
  readonly #atomicWrites: Int32Array;
  readonly #me: number;
  readonly #first: number;

  /** @param first pointer of the first word that is watched */
  constructor(words: Int32Array, memoryWords: number, first: number, me: number) {
    const size = memoryWords * THREADS;
    const start = THREADS * THREADS;
    this.#clocks = words.subarray(0, start);
    const [released, reads, writes, atomicReads, atomicWrites] = [0, 1, 2, 3, 4].map((i) =>
      words.subarray(start + i * size, start + (i + 1) * size),
    ) as [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
    this.#released = released;
    this.#reads = reads;
    this.#writes = writes;
    this.#atomicReads = atomicReads;
    this.#atomicWrites = atomicWrites;
    this.#me = me;
    this.#first = first;
  }

  /** All that was before is ordered before all that comes. */
  begin(): void {
    const latest = Math.max(...this.#clocks) + 1;
    this.#clocks.fill(latest);
    for (let thread = 0; thread < THREADS; thread++) this.#clocks[thread * THREADS + thread] = latest + 1;
  }

  /** Notes an access; a text if it races. */
  access(kind: number, pointer: number): string | undefined {
    const me = this.#me;
    const clocks = this.#clocks;
    const at = ((pointer - this.#first) >>> 2) * THREADS;
    const own = clocks[me * THREADS + me] as number;
    const plain = kind === ACCESS.load || kind === ACCESS.store;
    const writes = kind === ACCESS.store || kind === ACCESS.atomicStore || kind === ACCESS.atomicChange;
    const acquires = kind === ACCESS.atomicLoad || kind === ACCESS.atomicChange || kind === STEP.wait;
    if (acquires) {
      for (let thread = 0; thread < THREADS; thread++) {
        const released = this.#released[at + thread] as number;
        if (released > (clocks[me * THREADS + thread] as number)) clocks[me * THREADS + thread] = released;
      }
    }
    let race: string | undefined;
    for (let thread = 0; thread < THREADS; thread++) {
      if (thread === me) continue;
      const seen = clocks[me * THREADS + thread] as number;
      if ((this.#writes[at + thread] as number) > seen) race = `a plain write of thread ${thread}`;
      if (plain && (this.#atomicWrites[at + thread] as number) > seen) race = `an atomic write of thread ${thread}`;
      if (writes && (this.#reads[at + thread] as number) > seen) race = `a plain read of thread ${thread}`;
      if (plain && writes && (this.#atomicReads[at + thread] as number) > seen)
        race = `an atomic read of thread ${thread}`;
    }
    if (plain) (writes ? this.#writes : this.#reads)[at + me] = own;
    else (writes ? this.#atomicWrites : this.#atomicReads)[at + me] = own;
    if (!plain && writes) {
      for (let thread = 0; thread < THREADS; thread++) {
        this.#released[at + thread] = clocks[me * THREADS + thread] as number;
      }
      clocks[me * THREADS + me] = own + 1;
    }
    return race;
  }
}
