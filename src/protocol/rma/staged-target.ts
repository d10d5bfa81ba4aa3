// The target of the last operation: endpoint, handle and region of this task, which most programs use again and again. They are
// looked up once, and their words stay in the staged descriptor.
import { NONE } from "../../../assembly/layout.js";
import { checkEndpoint, contextOf, type Endpoint, taskOf } from "../../core/endpoint.js";
import { PamiError, show } from "../../core/error.js";
import { checkOwn, generationOf, indexOf, type RegionHandle } from "../../core/region.js";
import { taskAt } from "../../node/address.js";
import type { ContextParts } from "../base.js";
import type { InjectionFifo } from "./injection-fifo.js";

/** Equals no value of a caller. */
const NO_REGION = {};

/** Hot paths read the fields. */
export class StagedTarget {
  to: Endpoint = -1;
  /** NaN, which equals nothing: nothing is staged. */
  handle: RegionHandle = Number.NaN;
  /** The FIFO in which the target is staged. */
  fifo: InjectionFifo;
  /** Slot of the task that owns the remote region; index and generation of that region. */
  owner = 0;
  index: number = NONE;
  generation = 0;
  /** The region of this task that is staged there, or NO_REGION; pointer to its first byte. */
  local: unknown = NO_REGION;
  pointer = 0;
  readonly #fifos: readonly InjectionFifo[];
  readonly #parts: ContextParts;
  /** Slot of the context's task. */
  readonly #slot: number;

  constructor(parts: ContextParts, fifos: readonly InjectionFifo[]) {
    this.fifo = fifos[0] as InjectionFifo;
    this.#fifos = fifos;
    this.#parts = parts;
    this.#slot = taskAt(parts.map, parts.ordinal);
  }

  /** The FIFO of an endpoint. @throws PAMIR_INVAL */
  fifoOf(to: Endpoint): InjectionFifo {
    const { jobTasks, contexts } = this.#parts.map;
    checkEndpoint(to, jobTasks, contexts);
    // Each target is pinned to one FIFO, so that operations to it stay in order.
    return this.#fifos[(taskOf(to) + contextOf(to)) % this.#fifos.length] as InjectionFifo;
  }

  /**
   * Looks up an endpoint and a handle, and stages their region, for this transfer and later transfers with the same endpoint
   * and handle. False: the endpoint has no slot now.
   * @param begun whether a transfer to the endpoint is under way, which keeps its slot
   */
  aim(to: Endpoint, handle: RegionHandle, begun = false): boolean {
    const fifo = this.fifoOf(to);
    const given = indexOf(handle);
    if (given === NONE) throw new PamiError("PAMIR_INVAL", `remote is ${show(handle)}, not a region's handle`);
    const { memory, map, addresses } = this.#parts;
    const { regions, locals } = map;
    const task = taskOf(to);
    const slot = begun ? addresses.slotOf(task) : addresses.reach(task, this.#slot);
    if (slot < 0) return false;
    // A handle has the index within its owner's node. Here the index is that of the owner's slot.
    const isRemote = slot >= locals;
    const index = isRemote ? slot * regions + (given % regions) : given;
    const owner = Math.floor(index / regions);
    if (owner !== slot) {
      const named = addresses.numberOf(owner);
      const other = named < 0 ? addresses.first + owner : named;
      throw new PamiError("PAMIR_INVAL", `remote is a region of task ${other}, not of task ${task}`);
    }
    this.to = to;
    this.handle = handle;
    this.fifo = fifo;
    this.owner = owner;
    this.index = index;
    this.generation = generationOf(handle);
    memory.words[fifo.staged + 5] = index;
    memory.words[fifo.staged + 6] = this.generation;
    this.local = NO_REGION;
    return true;
  }

  /** Stages a region of this task, for this operation and later operations that name the same region. */
  stageLocal(name: string, local: unknown): void {
    const { words } = this.#parts.memory;
    checkOwn(name, local, words);
    local.expose();
    words[this.fifo.staged + 2] = local.index;
    words[this.fifo.staged + 3] = local.generation;
    this.local = local;
    this.pointer = local.bytes.byteOffset;
  }

  /** The staged words are overwritten, or the endpoint's slot is given away. */
  drop(): void {
    this.handle = Number.NaN;
  }
}
