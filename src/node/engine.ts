// The engine as a context sees it: its own thread, within advance(), or the job's engine thread, which it only asks.
import type { Kernel } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { hadEngineBegun, hasEngineThread } from "./liveness.js";

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
