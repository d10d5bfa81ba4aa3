// The engine as a task sees it: its own thread, within advance(), or the job's engine thread, which it only asks.
import {
  TASK_CLOSED,
  TASK_DEAD,
  TASK_NOTICE_OFFSET,
  TASK_SEEN_OFFSET,
  TASK_STATE_OFFSET,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Kernel } from "../kernel/kernel.js";
import { engineSlot, type MemoryMap } from "../memory/map.js";

type Sync = Pick<Kernel, "loadWord" | "addWord" | "ring">;

/** Whether the job has an engine thread, and it has not ended. One that has not begun yet is about to. */
export function hasEngineThread(kernel: Pick<Kernel, "loadWord">, map: MemoryMap): boolean {
  // SYNC D (engine): pairs with the monitor's store.
  return map.engine && kernel.loadWord(engineSlot(map) + TASK_STATE_OFFSET) < TASK_CLOSED;
}

/** Once the engine thread has ended: whether it may have done anything. One whose worker was not loaded has not. */
export function hadEngineBegun(kernel: Pick<Kernel, "loadWord">, map: MemoryMap): boolean {
  return kernel.loadWord(engineSlot(map) + TASK_STATE_OFFSET) === TASK_DEAD;
}

/** Tells the engine thread, if there is one, that something was closed: what hasSeen() is to be asked for. */
export function tellEngine(kernel: Sync, map: MemoryMap): number {
  if (!map.engine) return 0;
  const slot = engineSlot(map);
  // SYNC N (tell): pairs with acknowledge() of assembly/serve.ts.
  const notice = (kernel.addWord(slot + TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
  kernel.ring(slot);
  return notice;
}

/** Whether the engine thread is at nothing any more that was closed before a notice; true where there is none. */
export function hasEngineSeen(kernel: Sync, map: MemoryMap, notice: number): boolean {
  if (!hasEngineThread(kernel, map)) return true;
  // SYNC N (seen): pairs with acknowledge() of assembly/serve.ts.
  return seqDelta(kernel.loadWord(engineSlot(map) + TASK_SEEN_OFFSET), notice) >= 0;
}

/** Who is the engine of one context. */
export class ContextEngine {
  /** Whether it is the context's own thread, within advance(). A field, since hot calls ask for it. */
  isOwn: boolean;
  readonly #kernel: Kernel;
  readonly #map: MemoryMap;
  readonly #ordinal: number;

  constructor(kernel: Kernel, map: MemoryMap, ordinal: number) {
    this.#kernel = kernel;
    this.#map = map;
    this.#ordinal = ordinal;
    this.isOwn = !hasEngineThread(kernel, map);
  }

  /** There is something for it: wakes it. */
  call(): void {
    this.#kernel.engineCall(this.#map.job, this.#ordinal);
  }

  /** Whether the engine thread has ended since this was asked last: from now on the context has its own. */
  hasEnded(): boolean {
    if (this.isOwn || hasEngineThread(this.#kernel, this.#map)) return false;
    this.isOwn = true;
    return true;
  }

  /** See hadEngineBegun(). */
  hadBegun(): boolean {
    return hadEngineBegun(this.#kernel, this.#map);
  }
}

/** Whether it has seen all that it was told so far. */
export function hasEngineSeenAll(kernel: Sync, map: MemoryMap): boolean {
  return hasEngineSeen(kernel, map, map.engine ? kernel.loadWord(engineSlot(map) + TASK_NOTICE_OFFSET) : 0);
}
