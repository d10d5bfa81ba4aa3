// Finds accesses that nothing orders, in the log of a run: vector clocks over the atomics, as a race detector keeps
// them. A plain access races with an access of another thread to the same word, one of them a write, that does not
// happen before it.
import { JOB_WORDS, KIND, LOG } from "./control.js";

const THREADS = 4;
/** Words that are shared, at the most. */
const PLACES = 1024;

export interface Race {
  /** Step of the second access. */
  readonly step: number;
  readonly word: number;
  /** What it does not come after. */
  readonly text: string;
}

export class Races {
  readonly #clocks = new Int32Array(THREADS * THREADS);
  /** What each word's last atomic write has released; behind the words, what each thread's end has. */
  readonly #released = new Int32Array((PLACES + THREADS) * THREADS);
  /** Clock of each thread's last access to each word, by sort. */
  readonly #reads = new Int32Array(PLACES * THREADS);
  readonly #writes = new Int32Array(PLACES * THREADS);
  readonly #atomicReads = new Int32Array(PLACES * THREADS);
  readonly #atomicWrites = new Int32Array(PLACES * THREADS);
  /** Place of each word, from 1 on; 0: it has none yet. */
  readonly #places = new Uint16Array(JOB_WORDS);
  #used = 0;

  /** The first race among the steps of a log, or undefined. */
  find(log: Int32Array, steps: number): Race | undefined {
    // All that was before is ordered before all that comes.
    const clocks = this.#clocks;
    let latest = 0;
    for (let i = 0; i < clocks.length; i++) if ((clocks[i] as number) > latest) latest = clocks[i] as number;
    for (let i = 0; i < clocks.length; i++) clocks[i] = latest + (i % (THREADS + 1) === 0 ? 2 : 1);
    for (let step = 0; step < steps; step++) {
      const entry = log[step] as number;
      if (step > 0 && entry === log[step - 1]) continue; // as one that spins: it orders nothing new
      const kind = (entry >>> LOG.kindShift) & 15;
      const thread = (entry >>> LOG.threadShift) & 3;
      const word = entry & LOG.wordMask;
      if (kind === KIND.end) this.#release(thread, (PLACES + thread) * THREADS);
      else if (kind === KIND.join) this.#acquire(thread, (PLACES + word) * THREADS);
      if ((entry & LOG.switched) !== 0 || (kind > KIND.atomicChange && kind !== KIND.wait)) continue;
      const text = this.#access(thread, kind, this.#place(word));
      if (text !== undefined) return { step, word, text };
    }
    return undefined;
  }

  #place(word: number): number {
    let place = this.#places[word] as number;
    if (place === 0) {
      place = ++this.#used;
      if (place === PLACES) throw new Error(`more than ${PLACES} shared words`);
      this.#places[word] = place;
    }
    return place * THREADS;
  }

  #acquire(me: number, at: number): void {
    for (let thread = 0; thread < THREADS; thread++) {
      const released = this.#released[at + thread] as number;
      const own = me * THREADS + thread;
      if (released > (this.#clocks[own] as number)) this.#clocks[own] = released;
    }
  }

  #release(me: number, at: number): void {
    for (let thread = 0; thread < THREADS; thread++) {
      this.#released[at + thread] = this.#clocks[me * THREADS + thread] as number;
    }
    this.#clocks[me * THREADS + me] = (this.#clocks[me * THREADS + me] as number) + 1;
  }

  #access(me: number, kind: number, at: number): string | undefined {
    const plain = (kind & 2) === 0;
    const writes = (kind & 1) === 1;
    if (kind === KIND.atomicLoad || kind === KIND.atomicChange || kind === KIND.wait) this.#acquire(me, at);
    let race: string | undefined;
    for (let thread = 0; thread < THREADS; thread++) {
      if (thread === me) continue;
      const seen = this.#clocks[me * THREADS + thread] as number;
      if ((this.#writes[at + thread] as number) > seen) race = `a plain write of thread ${thread}`;
      else if (plain && (this.#atomicWrites[at + thread] as number) > seen)
        race = `an atomic write of thread ${thread}`;
      else if (writes && (this.#reads[at + thread] as number) > seen) race = `a plain read of thread ${thread}`;
      else if (plain && writes && (this.#atomicReads[at + thread] as number) > seen)
        race = `an atomic read of thread ${thread}`;
    }
    const clock = this.#clocks[me * THREADS + me] as number;
    if (plain) (writes ? this.#writes : this.#reads)[at + me] = clock;
    else (writes ? this.#atomicWrites : this.#atomicReads)[at + me] = clock;
    if (!plain && writes) this.#release(me, at);
    return race;
  }
}
