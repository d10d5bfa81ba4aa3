// What each part of an agent works on.
import type { Kernel, Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import type { SlotTable } from "../../node/address.js";

export interface NetParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly addresses: SlotTable;
}
