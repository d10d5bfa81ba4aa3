// The memory of a node whose processes another launcher has started: the first process makes it, the other processes open it by
// their right to open the first process's descriptors.
import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET } from "../../../assembly/layout.js";
import type { Bootstrap } from "../../bootstrap/bootstrap.js";
import type { Later } from "../../bootstrap/later.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import type { SharedMemory } from "../../kernel/open.js";
import { nodeLimits } from "../../node/limits.js";
import { makeJobMemory } from "../../node/memory.js";
import { noProcesses, openFfi } from "../../process/ffi.js";
import type { FutexSetup } from "../../process/futex.js";
import { mapProcessMemory } from "../../process/mapping.js";
import { findFfi, ProcessMemories } from "../../process/process-memory.js";
import { nodeModule } from "../../support/host.js";
import { checkLimits } from "../limits.js";
import type { Introduction } from "./introduce.js";
import type { ProcessJoinOptions } from "./join-options.js";
import type { NodePlace } from "./place.js";
import { get } from "./values.js";

/** A memory that the first process of a node has made. */
interface Offer {
  readonly descriptor: number;
  readonly bytes: number;
  /** Pointer to the job header. */
  readonly job: number;
}

/** A node's memory in this process. */
export interface JoinedMemory {
  readonly shared: SharedMemory;
  /** Present where processes share the memory. */
  readonly futex: FutexSetup | undefined;
  readonly job: number;
}

/** A node's memory in the process that has made it. */
export interface MadeMemory {
  readonly mapped: JoinedMemory;
  /** Undefined: no other process shares the memory, or each of them has opened it. */
  offer: Offer | undefined;
}

/** Once each process of the node has opened the memory. */
export function closeOffer(made: MadeMemory | undefined): void {
  if (made?.offer === undefined) return;
  fs().closeSync(made.offer.descriptor);
  made.offer = undefined;
}

/** In the first process of a node: makes its memory. @param isWasm whether wasm kernels may run in it */
export function makeMemory(
  { nodes, locals, first }: NodePlace,
  { world, most }: Later,
  options: ProcessJoinOptions,
  isWasm: boolean,
): MadeMemory {
  const memories = locals > 1 ? new ProcessMemories() : undefined;
  const own = checkLimits(options, locals);
  const isAlone = nodes === 1 && most === world;
  const limits = isAlone ? own : nodeLimits({ ...own, tasks: most, jobTasks: most }, locals);
  const { map, memory, shared } = makeJobMemory(
    { limits, isFixed: options.heapBytes !== undefined, first },
    isWasm,
    memories?.make,
  );
  const sync = sharedAtomics(memory);
  sync.storeWord(map.job + JOB_STARTED_OFFSET, Math.max(world, first + 1));
  sync.storeWord(map.job + JOB_WORLD_OFFSET, world);
  const { job } = map;
  const mapped = { shared, futex: memories?.futex, job };
  const offer = memories?.setup && { descriptor: memories.setup.descriptor, bytes: memories.setup.bytes, job };
  return { mapped, offer };
}

/** In the other processes of a node: maps its memory. */
export async function openOffered(bootstrap: Bootstrap, { pid }: Introduction, node: number): Promise<JoinedMemory> {
  const { descriptor: theirs, bytes, job } = await get<Offer>(bootstrap, `memory-${node}`);
  // Not by node:fs, for which node --permission takes --allow-fs-write.
  const descriptor = openFfi(findFfi()).open(`/proc/${pid}/fd/${theirs}`);
  if (descriptor < 0) throw noProcesses(`descriptor ${theirs} of process ${pid} can't be opened`);
  try {
    return { ...mapProcessMemory({ descriptor, bytes, ffi: findFfi() }, job), job };
  } finally {
    fs().closeSync(descriptor);
  }
}

const fs = (): typeof import("node:fs") => nodeModule("fs") as typeof import("node:fs");
