// The pending queue of one injection FIFO: operations that wait for room in the FIFO, in order (C8). The queues of a context
// share a limit.
import { DESCRIPTOR_SIZE, DESCRIPTOR_WORDS } from "../../../assembly/layout.js";
import type { Callback } from "../../core/result.js";
import { Queue } from "../../support/queue.js";
import type { FifoWork } from "./fifo-work.js";

/** An operation that waits for room in its FIFO, or behind another waiting operation. */
interface Waiting {
  /** The descriptor. */
  readonly words: Int32Array;
  readonly onLocal: Callback | undefined;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
}

/** Space for the descriptors that wait, of all FIFOs of a context. */
export interface PendingSpace {
  /** Bytes that are left. Below 0: an operation waits beyond the limit. */
  bytes: number;
  /** Whether operations wait without a limit: all of a typed transfer wait, or none. */
  isUnbounded: boolean;
}

export class PendingQueue extends Queue<Waiting> {
  readonly #words: Int32Array;
  readonly #staged: number;
  readonly #space: PendingSpace;
  readonly #work: FifoWork;

  /** @param staged index of the first word of the FIFO's staged descriptor */
  constructor(words: Int32Array, staged: number, space: PendingSpace, work: FifoWork) {
    super();
    this.#words = words;
    this.#staged = staged;
    this.#space = space;
    this.#work = work;
  }

  /** Makes the staged operation wait. False: there is no space. @param always waits beyond the limit, too */
  keep(onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown, always: boolean): boolean {
    const space = this.#space;
    if (!always && !space.isUnbounded && space.bytes < DESCRIPTOR_SIZE) return false;
    space.bytes -= DESCRIPTOR_SIZE;
    const words = this.#words.slice(this.#staged, this.#staged + DESCRIPTOR_WORDS);
    this.push({ words, onLocal, onRemote, cookie });
    this.#work.add(1);
    return true;
  }

  /** Stages the first waiting operation anew, which overwrites the staged descriptor. */
  restage(): Waiting | undefined {
    const { first } = this;
    if (first !== undefined) this.#words.set(first.words, this.#staged);
    return first;
  }

  /** Removes the first waiting operation. */
  override shift(): void {
    super.shift();
    this.#space.bytes += DESCRIPTOR_SIZE;
    this.#work.add(-1);
  }
}
