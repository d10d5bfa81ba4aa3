// Whether other programs want the cores: figures that are measured meanwhile say little.
import { Worker } from "node:worker_threads";

/** Two readings of the clock are some 0.1 µs apart. So many milliseconds, and another thread had the core. */
const GAP_MS = 0.2;

/** Reads the clock for a while. @returns the share of that time in which this thread had no core */
export function missedShare(milliseconds: number): number {
  const start = performance.now();
  let missed = 0;
  for (let last = start; last < start + milliseconds; ) {
    const now = performance.now();
    if (now - last > GAP_MS) missed += now - last;
    last = now;
  }
  return missed / (performance.now() - start);
}

/** Looks one after the other, of which the middle one counts: a thread also stops for its own garbage and its compiler. */
const PIECES = 5;

/** The median of the shares that missedShare() gives for parts of a while. */
export function usualShare(milliseconds: number): number {
  const shares = Array.from({ length: PIECES }, () => missedShare(milliseconds / PIECES));
  return shares.sort((a, b) => a - b)[PIECES >> 1] as number;
}

/** Looks at the cores that two threads get. */
export class Crowd {
  readonly #worker = new Worker(new URL("./tasks/gaps.js", import.meta.url));
  /** The largest share of time, of all looks, that one of two threads had no core. */
  missed = 0;

  /** Lets two threads run for a while. */
  async look(milliseconds: number): Promise<void> {
    const answer = new Promise<number>((resolve) => this.#worker.once("message", resolve));
    this.#worker.postMessage(milliseconds);
    const own = usualShare(milliseconds);
    this.missed = Math.max(this.missed, own, await answer);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
