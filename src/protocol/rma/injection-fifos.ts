// The injection FIFOs of a context, a progress source: which FIFOs a round has to look after, and what the end of a task or of
// the engine thread changes.
import type { ProgressSource } from "../../core/progress.js";
import { injectionFifo, type MemoryMap } from "../../memory/map.js";
import { taskAt } from "../../node/address.js";
import type { ContextParts } from "../base.js";
import { InjectionFifo } from "./injection-fifo.js";
import type { PendingSpace } from "./pending-queue.js";
import { StagedTarget } from "./staged-target.js";

export class InjectionFifos implements ProgressSource {
  /** Operations that are not over. 0: there is nothing to scan (C7). */
  busy = 0;
  readonly all: readonly InjectionFifo[];
  readonly target: StagedTarget;
  /** By slot, 1: the task has ended, and no operation to it begins. */
  readonly hasEnded: Uint8Array;
  readonly #map: MemoryMap;

  constructor(parts: ContextParts, space: PendingSpace) {
    const { map, ordinal } = parts;
    this.#map = map;
    this.hasEnded = new Uint8Array(map.tasks);
    this.all = Array.from(
      { length: map.fifos },
      (_, fifo) => new InjectionFifo(parts, this, space, injectionFifo(map, ordinal, fifo)),
    );
    this.target = new StagedTarget(parts, this.all);
  }

  /** Whether an advance would make progress. Not if only other threads can process the operations left. */
  get hasWork(): boolean {
    return this.all.some(({ busy, progress }) => busy > 0 && progress.hasWork);
  }

  /** Whether no operation is under way or waits. */
  get isDrained(): boolean {
    return this.busy === 0;
  }

  /** One round of each FIFO that has something to do. Due callbacks go to the context's completions, which are the events. */
  advance(): number {
    for (const fifo of this.all) {
      if (fifo.busy === 0) continue;
      // Waiting operations overwrite the staged descriptor.
      if (fifo.waiting.length > 0) this.target.drop();
      fifo.advance();
    }
    return 0;
  }

  /** A task has ended: no operation to it begins. Operations under way or waiting end with SHUTDOWN in their turn. */
  ended(ordinal: number, isTaskOver: boolean): void {
    if (isTaskOver) this.hasEnded[taskAt(this.#map, ordinal)] = 1;
  }

  /** The engine thread has ended. */
  engineEnded(hadBegun: boolean): void {
    for (const { progress } of this.all) progress.engineEnded(hadBegun);
  }

  /** Whether an operation with an endpoint may be under way: true if there is any operation. */
  holds(): boolean {
    return this.busy > 0;
  }

  /** An ordinal stands for another endpoint from now on. */
  forget(ordinal: number): void {
    this.hasEnded[taskAt(this.#map, ordinal)] = 0;
    this.target.drop();
  }
}
