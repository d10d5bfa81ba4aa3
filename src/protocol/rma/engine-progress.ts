// How far the engine is in one injection FIFO. The engine is this thread, which processes one slice in each turn; or the engine
// thread, at whose progress this thread looks.
import * as L from "../../../assembly/layout.js";
import type { ContextParts } from "../base.js";
import type { FifoWork } from "./fifo-work.js";

export class EngineProgress {
  /** Whether the engine has something left to process. */
  left = false;
  /**
   * Whether this thread can't process the rest of the FIFO: another task has to answer, or the engine thread has to process
   * descriptors.
   */
  isBlocked = false;
  /** Whether an advance() would find nothing to do: all operations left are on their way. */
  isIdle = false;
  /** Slots that the engine thread had processed at the last look. */
  #seen = 0;
  readonly #parts: ContextParts;
  readonly #work: FifoWork;
  readonly #pointer: number;

  /** @param pointer pointer to the FIFO */
  constructor(parts: ContextParts, work: FifoWork, pointer: number) {
    this.#parts = parts;
    this.#work = work;
    this.#pointer = pointer;
  }

  /** Whether an advance() would make progress. Not if only other threads can process the operations left. */
  get hasWork(): boolean {
    if (!this.isIdle) return true;
    if (this.#parts.engine.isOwn) return false;
    const seen = this.#seen;
    return this.#leftElsewhere() === 0 || this.#seen !== seen;
  }

  /** A descriptor was injected: gives the engine a turn, or wakes it. */
  injected(): void {
    const { engine } = this.#parts;
    this.#leave(true);
    this.isIdle = false;
    if (engine.isOwn) this.run(0);
    else engine.call();
  }

  /** The last callback in the pending callback list became due. */
  drained(): void {
    // The callback shall find the context drained, but the engine thread may not yet have stored its head.
    if (!this.#parts.engine.isOwn) this.run(0);
  }

  /** One turn of the engine, or a look at the engine thread's progress. @param pending callbacks of the FIFO that are listed */
  run(pending: number): void {
    if (!this.left) return;
    const { kernel, map, engine } = this.#parts;
    // Completions show the progress of operations with callbacks. Each look at the head takes a cache line from the engine
    // thread.
    if (!engine.isOwn && pending > 0) {
      this.isBlocked = true;
      return;
    }
    const left = engine.isOwn ? kernel.engineRun(map.job, this.#pointer, L.SLICE_BYTES) : -this.#leftElsewhere();
    this.isBlocked = left < 0;
    this.#leave(left !== 0);
  }

  /** The engine thread has ended: its operations end too, unless the thread had begun none. */
  engineEnded(hadBegun: boolean): void {
    // Even if all completions are taken: the thread may have ended before it stored its head.
    if (hadBegun) {
      this.#parts.kernel.engineGiveUp(this.#parts.map.job, this.#pointer);
      this.#leave(false);
    }
    this.isBlocked = false;
    this.isIdle = false;
  }

  #leave(left: boolean): void {
    if (left === this.left) return;
    this.left = left;
    this.#work.add(left ? 1 : -1);
  }

  /** Slots that the engine thread has not processed. */
  #leftElsewhere(): number {
    const { kernel, memory } = this.#parts;
    const pointer = this.#pointer;
    const tail = memory.words[(pointer + L.INJECTION_TAIL_OFFSET) >>> 2] as number;
    // Slots whose completions are taken are processed, even if the engine thread has not yet stored its head.
    if (memory.words[(pointer + L.INJECTION_OLDEST_OFFSET) >>> 2] === tail) return 0;
    // SYNC processed (look): pairs with engineRun().
    this.#seen = kernel.loadWord(pointer + L.INJECTION_HEAD_OFFSET);
    return (tail - this.#seen) | 0;
  }
}
