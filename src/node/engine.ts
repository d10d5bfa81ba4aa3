// A context's engine: its own thread, within advance(), or the job's engine thread.
import type { Kernel } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { hadEngineBegun, hasEngineThread } from "./liveness.js";

/** The engine of one context. */
export class ContextEngine {
  /** Whether the engine is the context's own thread, within advance(). A field, because hot paths read it. */
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

  /** Wakes the engine: there is work for it. */
  call(): void {
    this.#kernel.engineCall(this.#map.job, this.#ordinal);
  }

  /** Whether the engine thread has ended since the last call. From then on, the context is its own engine. */
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
