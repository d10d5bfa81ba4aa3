// Tasks with the cores of their contexts, all on one thread, without the API above them. Tasks share a memory, or each has
// its own. A core's owner does what a client does when a context closes.
import { setImmediate as nextTurn } from "node:timers/promises";
import { CONTEXT_OPEN, CONTEXT_STATE_OFFSET, TASK_STATE_OFFSET, TASK_UP } from "../../assembly/layout.js";
import { CompletionQueue } from "../../src/core/completion.js";
import { type Endpoint, endpointOf } from "../../src/core/endpoint.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { HandlerTable } from "../../src/core/message/dispatch.js";
import { Activity } from "../../src/core/progress.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import { contextBlock, engineSlot, type Limits, type MemoryMap, ordinalOf } from "../../src/memory/map.js";
import { ContextEngine } from "../../src/node/engine.js";
import { markDead, markEngineDead } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { ContextParts } from "../../src/protocol/base.js";
import { ContextCore, type CoreOptions } from "../../src/protocol/context-core.js";
import { type Observers, UNOBSERVED } from "../../src/protocol/observers.js";
import { Rendezvous } from "../../src/protocol/rendezvous/rendezvous.js";
import { Task } from "../../src/protocol/task.js";
import { sharedMemory } from "../../src/transport/shm/shm.js";
import type { PrivateJob } from "./ports-job.js";

const KIB = 1024;
const OPTIONS: CoreOptions = { pendingBytes: 64 * KIB, unexpectedBytes: 64 * KIB };

export const SMALL: Limits = {
  tasks: 2,
  contexts: 2,
  laneBytes: 4096,
  heapBytes: 4 * KIB * KIB,
  regions: 64,
  fifos: 2,
  slots: 16,
};

type MakeCore = (task: Task, index: number, options: CoreOptions, closed: () => void) => ContextCore;

const makeCore: MakeCore = (task, index, options, closed) =>
  new ContextCore(task, index, options, { advanceSoon: () => {}, taskEnded: () => {}, closed });

/** A task with its contexts. */
interface Member {
  readonly task: Task;
  readonly cores: ContextCore[];
  isOver: boolean;
}

export class CoresJob {
  /** Whether all tasks share one memory. */
  readonly isShared: boolean;
  readonly map: MemoryMap;
  readonly #members: readonly Member[];
  readonly #activities = new Map<Endpoint, Activity>();
  readonly #apart: PrivateJob | undefined;

  private constructor(tasks: readonly Task[], activities: Map<Endpoint, Activity>, apart: PrivateJob | undefined) {
    this.isShared = apart === undefined;
    this.map = (tasks[0] as Task).map;
    this.#members = tasks.map((task) => ({ task, cores: [], isOver: false }));
    this.#activities = activities;
    this.#apart = apart;
  }

  /** Tasks of one memory, each with a kernel of these, in turn. @param around what a task has instead of its kernel */
  static shared(
    kernels: readonly KernelName[],
    limits: Partial<Limits> = {},
    around: (kernel: Kernel, task: number) => Kernel = (kernel) => kernel,
    isStrict = false,
  ): CoresJob {
    const isWasm = kernels.includes("wasm");
    const { map, shared, memory } = makeJobMemory({ limits: { ...SMALL, ...limits }, isFixed: true, base: 0 }, isWasm);
    const activities = new Map<Endpoint, Activity>();
    const observers: Observers = {
      ...UNOBSERVED,
      isStrict,
      parts: (own) => ({
        ...UNOBSERVED.parts(own),
        completions: (activity) => {
          activities.set(own, activity);
          return new CompletionQueue(activity);
        },
      }),
    };
    const tasks = Array.from({ length: map.tasks }, (_, task) => {
      const kernel = around(selectKernel(kernels[task % kernels.length] as KernelName, shared, memory), task);
      return new Task({ kernel, memory, map, task, transport: sharedMemory(kernel, memory, map, task), observers });
    });
    return new CoresJob(tasks, activities, undefined);
  }

  /** Tasks of a job in which each has a memory of its own. */
  static apart(job: PrivateJob): CoresJob {
    return new CoresJob(
      job.tasks.map(({ task }) => task),
      new Map(),
      job,
    );
  }

  task(number: number): Task {
    return this.#member(number).task;
  }

  /** The ordinal of a context, in the memory of the task `at`. */
  ordinal(at: number, task: number, context: number): number {
    const { addresses, map, slot } = this.task(at);
    return ordinalOf(map, addresses.bind(task, slot), context);
  }

  /** Free pages of a task's heap. */
  free(task: number): number {
    const { kernel, map } = this.task(task);
    return kernel.heapFreePages(map.job);
  }

  /** Opens the next context of a task. @param make makes its core, which calls `closed` */
  open(number: number, options: Partial<CoreOptions> = {}, make: MakeCore = makeCore): ContextCore {
    const member = this.#member(number);
    const index = member.cores.length;
    const { task } = member;
    const closed = (): void => {
      if (!member.isOver) task.contextClosed(index);
    };
    const core = make(task, index, { ...OPTIONS, ...options }, closed);
    member.cores.push(core);
    return core;
  }

  /** The counter that the parts of a context share. Only where tasks share a memory. */
  activityOf({ endpoint }: ContextCore): Activity {
    return this.#activities.get(endpoint) as Activity;
  }

  /** Each context advances, of those that go on; what is under way between memories arrives, or comes closer. */
  async turn(turns = 1): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      await this.#apart?.turn();
      this.advance();
      for (const { task, isOver } of this.#members) if (!isOver) task.remote?.turn();
    }
  }

  /** As turn(), where tasks share a memory. */
  advance(): void {
    for (const { cores, isOver } of this.#members) {
      for (const core of cores) if (!isOver && !core.isClosed) core.advance(1);
    }
  }

  /** A task closes all its contexts, and leaves. */
  leave(number: number): void {
    const member = this.#member(number);
    if (member.isOver) return;
    member.isOver = true;
    for (const core of member.cores) core.close();
    const apart = this.#apart?.tasks[number];
    // Its client has no contexts of its own, so its close is that of the task.
    if (apart !== undefined) apart.client.close();
    else {
      member.task.regions.end();
      member.task.leave();
    }
  }

  /** A task ends without a word. */
  die(number: number): void {
    const member = this.#member(number);
    member.isOver = true;
    if (this.#apart !== undefined) this.#apart.end(number);
    else markDead((this.#members.find(({ isOver }) => !isOver) ?? member).task.kernel, this.map, number);
  }

  /** A turn of the engine thread, where the job has one: it is this thread too. */
  serve(): void {
    const { kernel, map } = this.task(0);
    kernel.storeWord(engineSlot(map) + TASK_STATE_OFFSET, TASK_UP);
    kernel.engineServe(map.job);
  }

  /** The engine thread ends, between two turns. */
  endEngine(): void {
    markEngineDead(this.task(0).kernel, this.map);
  }

  /** All tasks that are left leave. */
  async close(): Promise<void> {
    for (const number of this.#members.keys()) this.leave(number);
    await nextTurn();
  }

  #member(number: number): Member {
    return this.#members[number] as Member;
  }
}

/** An endpoint by task and context. */
export function at(task: number, context = 0): Endpoint {
  return endpointOf(task, context);
}

/** What a part of a context adds to the counter that its parts share. */
export function busyParts({ completions, work, sender, receiver, rma, rendezvous }: ContextCore): number {
  return completions.length + work.length + sender.busy + receiver.unexpected.busy + rma.fifos.busy + rendezvous.busy;
}

/** Takes all that is left of a task's heap. Returns what gives it back. */
export function fillHeap({ kernel, map, number }: Task): () => void {
  const taken: number[] = [];
  for (let pages = map.heapPages; pages >= 1; ) {
    const extent = kernel.heapAllocate(map.job, pages, number);
    if (extent <= 1) pages >>>= 1;
    else taken.push(extent);
  }
  return () => {
    for (const extent of taken.splice(0)) kernel.heapFree(map.job, extent);
  };
}

/** What a core hands to its parts, and the rendezvous that its sender needs: to make one part alone. */
export interface PartsBase {
  readonly base: ContextParts;
  readonly rendezvous: Rendezvous;
}

/** Opens a context that has no core; the parts that a test makes are all that it has. */
export function baseOf(task: Task, index: number): PartsBase {
  const { kernel, memory, map, addresses, clock, regions, transport } = task;
  const ordinal = ordinalOf(map, task.slot, index);
  const block = contextBlock(map, ordinal);
  const activity = new Activity();
  const base: ContextParts = {
    kernel,
    memory,
    map,
    addresses,
    clock,
    ordinal,
    block,
    engine: new ContextEngine(kernel, map, ordinal),
    lanes: transport.lanes(ordinal),
    buffers: transport.buffers,
    completions: new CompletionQueue(activity),
    handlers: new HandlerTable((_, handler) => handler),
    posted: undefined,
    tell: () => {},
    activity,
  };
  kernel.storeWord(block + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
  return { base, rendezvous: new Rendezvous(base, regions, OPTIONS) };
}
