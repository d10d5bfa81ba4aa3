// One injection FIFO of a context, from the side that issues: whether the staged operation is done at once, gets slots, or
// waits for room. Behind each operation with a callback there is a completion descriptor, whose bit in the completion mask says
// that the operation is done. An operation that is done at once, with nothing before it, needs no completion descriptor and no
// bit: its callbacks only become due.
import * as L from "../../../assembly/layout.js";
import type { Callback } from "../../core/result.js";
import type { ContextParts } from "../base.js";
import { EngineProgress } from "./engine-progress.js";
import { FifoWork } from "./fifo-work.js";
import { PendingCallbacks } from "./pending-callbacks.js";
import { PendingQueue, type PendingSpace } from "./pending-queue.js";
import { checkCallbacks } from "./refusals.js";

/** Not a TRANSFER_…: the pending queue has no space. */
const WAITING_FULL = -1;

export class InjectionFifo extends FifoWork {
  /** Index of the first word of the staged descriptor. */
  readonly staged: number;
  readonly progress: EngineProgress;
  readonly waiting: PendingQueue;
  readonly #callbacks: PendingCallbacks;
  readonly #parts: ContextParts;
  readonly #pointer: number;

  /** @param pointer pointer to the FIFO */
  constructor(parts: ContextParts, all: { busy: number }, space: PendingSpace, pointer: number) {
    super(all, parts.activity);
    this.staged = (pointer + L.INJECTION_STAGED_OFFSET) >>> 2;
    this.progress = new EngineProgress(parts, this, pointer);
    this.waiting = new PendingQueue(parts.memory.words, this.staged, space, this);
    this.#callbacks = new PendingCallbacks(parts, this);
    this.#parts = parts;
    this.#pointer = pointer;
  }

  /**
   * Does the staged operation, injects it, or makes it wait.
   * @returns TRANSFER_…: the operation's error; WAITING_FULL: the operation can't even wait
   */
  submit(onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown): number {
    let result: number;
    if (onLocal !== undefined || onRemote !== undefined) {
      checkCallbacks(onLocal, onRemote);
      result = this.submitNow();
      if (result === L.TRANSFER_DONE) this.#parts.completions.pushDone(onLocal, onRemote, cookie);
    } else {
      // An rmw without a callback waits for nothing.
      const mayBeDone = this.waiting.length === 0 || this.#kind === L.DESCRIPTOR_RMW;
      result = mayBeDone ? this.#submit(false) : this.look();
    }
    return result === L.TRANSFER_LATER ? this.inject(onLocal, onRemote, cookie) : result;
  }

  /**
   * Does the staged operation, if all earlier operations of this FIFO are done.
   * @returns TRANSFER_LATER: not done, but nothing is wrong; or TRANSFER_DONE, or the operation's error
   */
  submitNow(): number {
    const { map, completions } = this.#parts;
    return this.waiting.length === 0 && completions.due < map.slots ? this.#submit(true) : this.look();
  }

  /** The kind of the staged descriptor. */
  get #kind(): number {
    return this.#parts.memory.words[this.staged] as number;
  }

  #submit(hasCallback: boolean): number {
    return this.#parts.kernel.submit(this.#parts.map.job, this.#pointer, hasCallback);
  }

  /** Checks the staged operation: TRANSFER_LATER, or its error. */
  look(): number {
    const result = this.perform(0);
    return result === L.TRANSFER_DONE ? L.TRANSFER_LATER : result;
  }

  /** Does the staged operation, whatever is before it. @param most bytes to move at most @returns TRANSFER_… */
  perform(most: number): number {
    return this.#parts.kernel.perform(this.#parts.map.job, this.#pointer + L.INJECTION_STAGED_OFFSET, most);
  }

  /**
   * Injects the staged operation. Without room, the operation waits.
   * @param always the operation may always wait
   * @returns TRANSFER_DONE, or WAITING_FULL
   */
  inject(onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown, always = false): number {
    if (this.waiting.length === 0 && this.#injected(onLocal, onRemote, cookie)) return L.TRANSFER_DONE;
    return this.waiting.keep(onLocal, onRemote, cookie, always) ? L.TRANSFER_DONE : WAITING_FULL;
  }

  /** Injects the staged operation if there is room, lists its callbacks, and gives the engine a turn. False: there is no room. */
  #injected(onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown): boolean {
    // A fence is itself a completion: its callback is listed at its own slot.
    const isFence = this.#kind === L.DESCRIPTOR_FENCE;
    const completions = (onLocal === undefined || isFence ? 0 : 1) + (onRemote === undefined ? 0 : 1);
    const slot = this.#parts.kernel.inject(this.#pointer, completions);
    if (slot === L.NONE) return false;
    let next = isFence ? slot : slot + 1;
    if (onLocal !== undefined) this.#callbacks.list(next++, onLocal, cookie);
    if (onRemote !== undefined) this.#callbacks.list(next, onRemote, cookie);
    this.progress.injected();
    return true;
  }

  /**
   * Issues a fence, whose callback comes behind all earlier operations.
   * @param always the fence may always wait
   * @returns as inject()
   */
  fence(onDone: Callback, cookie: unknown, always = false): number {
    const { memory, completions } = this.#parts;
    memory.words[this.staged] = L.DESCRIPTOR_FENCE;
    // Nothing can be wrong with a fence.
    if (this.submitNow() !== L.TRANSFER_DONE) return this.inject(onDone, undefined, cookie, always);
    completions.pushDone(onDone, undefined, cookie);
    return L.TRANSFER_DONE;
  }

  /** One round: gives the engine a turn, injects waiting operations, and takes completions. */
  advance(): void {
    const { progress, waiting } = this;
    const { kernel } = this.#parts;
    const callbacks = this.#callbacks;
    const { count } = callbacks;
    progress.run(count);
    if (waiting.length > 0) this.#flush();
    progress.isIdle = progress.isBlocked;
    for (let due = count; due > 0; due--) {
      const taken = kernel.completionTake(this.#pointer);
      if (taken === L.NONE) {
        if (progress.isBlocked) kernel.pause(L.ENGINE_PAUSE);
        break;
      }
      progress.isIdle = false;
      callbacks.complete(taken);
      if (callbacks.count === 0) progress.drained();
    }
  }

  /** Injects waiting operations, in order, as far as there is room. */
  #flush(): void {
    const { waiting } = this;
    for (let next = waiting.restage(); next !== undefined; next = waiting.restage()) {
      if (!this.#injected(next.onLocal, next.onRemote, next.cookie)) return;
      waiting.shift();
    }
  }
}
