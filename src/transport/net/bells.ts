// Rings the node's tasks once for frames that come together. A wake-up takes the waking thread 14 to 23 µs: as long as the
// agent's work for a packet. A task that has taken one record sleeps again before the next record is written. So the agent
// takes the flags of sleeping tasks down itself, and rings once it has nothing more to write.
import { TASK_PARKED_OFFSET } from "../../../assembly/layout.js";
import type { Kernel } from "../../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";

export class Bells {
  readonly #kernel: Kernel;
  readonly #map: MemoryMap;
  /** Pointers to the slots of tasks whose flags were taken down, and that are to be rung. */
  readonly #held = new Set<number>();

  constructor(kernel: Kernel, map: MemoryMap) {
    this.#kernel = kernel;
    this.#map = map;
  }

  /** From now on, records written to a sleeping task do not ring it: ring() follows. @param slot of the task */
  hold(slot: number): void {
    const task = taskSlot(this.#map, slot);
    if (this.#kernel.loadWord(task + TASK_PARKED_OFFSET) === 0) return;
    // SYNC park (hold): as in ring(), the flag goes down before the ring. Another thread may have taken the flag down first.
    if (this.#kernel.exchangeIf(task + TASK_PARKED_OFFSET, 1, 0) === 1) this.#held.add(task);
  }

  /** Rings the tasks that hold() has kept from being rung. */
  ring(): void {
    for (const task of this.#held) {
      this.#held.delete(task);
      this.#kernel.ringAlways(task);
    }
  }
}
