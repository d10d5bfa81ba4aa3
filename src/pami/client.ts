// A client: a task's access to its job. Each task has one, from attach() or from launch() with `join`.
import {
  DISPATCH_ID_MAX,
  JOB_CORES_OFFSET,
  JOB_STARTED_OFFSET,
  POOL_SIZE,
  RECV_IMMEDIATE_MAX,
  SEND_IMMEDIATE_MAX,
  TASK_ABSENT,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_INTERRUPT_OFFSET,
  TASK_NOTICE_OFFSET,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import { checkFlag, checkKeys, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { checkEndpoint, contextOf, type Endpoint, endpointOf, taskOf } from "../core/endpoint.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import type { MemRegion } from "../core/region.js";
import type { TaskErrors } from "../core/task-errors.js";
import type { Kernel, KernelName, Memory } from "../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import { RegionTable } from "../memory/regions.js";
import { announceClose, announceEnds, gracePeriods } from "../node/liveness.js";
import { Parker } from "../node/park.js";
import { Tracer } from "../node/tracer.js";
import { Debug, type DebugLimits } from "../observe/debug.js";
import { type Dump, dumpJob } from "../observe/dump.js";
import { RegionWatch } from "../observe/watch.js";
import { regionIfAny } from "../protocol/rendezvous/transfers.js";
import { type Clock, systemClock } from "../support/clock.js";
import { hardwareThreads } from "../support/cores.js";
import { diagnostics } from "../support/diagnostics.js";
import { processorName } from "../support/host.js";
import { Keepalive } from "../support/keepalive.js";
import { DESK_BYTES } from "../transport/net/bounce.js";
import type { Relay } from "../transport/net/proxy.js";
import { Buffers } from "../transport/shm/buffers.js";
import { Context, type ContextHost, type ContextOptions } from "./context.js";
import { checkTimeout, PROGRESS_KEYS, type ProgressOptions } from "./waits.js";

/** Attributes that `client.query` returns, by name. */
export interface Attributes {
  /** Tasks of the job so far: `client.size`. */
  CLIENT_NUM_TASKS: number;
  /** `client.task`. */
  CLIENT_TASK_ID: number;
  /** Number of tasks that share this memory: all of them. */
  CLIENT_NUM_LOCAL_TASKS: number;
  /** Their numbers. */
  CLIENT_LOCAL_TASKS: readonly number[];
  /** Number of contexts that a task may make. */
  CLIENT_NUM_CONTEXTS: number;
  /** Whether that limit is the same for all tasks: true. */
  CLIENT_CONST_CONTEXTS: boolean;
  /** Number of hardware threads of the machine. */
  CLIENT_HWTHREADS_AVAILABLE: number;
  /** Size of a region's handle in a message, in bytes. */
  CLIENT_MEMREGION_SIZE: number;
  /** Size of the job's heap, in MiB. */
  CLIENT_MEM_SIZE: number;
  /** Name of the processor; empty if the host does not expose it. */
  CLIENT_PROCESSOR_NAME: string;
  /** Resolution of `client.now()`, in seconds. */
  CLIENT_WTICK: number;
  /** Largest dispatch id. */
  CONTEXT_DISPATCH_ID_MAX: number;
  /** RECV_IMMEDIATE_MAX, in bytes. */
  DISPATCH_RECV_IMMEDIATE_MAX: number;
  /** SEND_IMMEDIATE_MAX, in bytes. */
  DISPATCH_SEND_IMMEDIATE_MAX: number;
}

/** Features that depend on whether tasks share memory. */
export interface Capabilities {
  /** `advanceUntil()` works. If false, waits are promises only: `progress()`. */
  readonly blockingWaits: boolean;
  /**
   * put(), get() and rmw() throw for a handle or bounds that the target's region does not have. If false, their callbacks
   * and the next fence get ERROR instead.
   */
  readonly checksRemoteHandles: boolean;
  /** Messages that a task sent before it was killed are delivered. If false, the last of them may be lost. */
  readonly deliversAfterDeath: boolean;
  /** All tasks learn of a task's death. If false, only tasks with traffic for it do, after 10 s without an answer. */
  readonly failureDetection: boolean;
}

/** Options of `client.close`. */
export interface CloseOptions extends ProgressOptions {
  /** Drains all contexts first. */
  readonly drain?: boolean | undefined;
}

const CLOSE_KEYS: Keys<CloseOptions> = { ...PROGRESS_KEYS, drain: true };

/** What a client is made from. @internal */
export interface ClientParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly task: number;
  readonly args: unknown;
  /** Warns of what is never closed, and of what takes long. */
  readonly debug?: DebugLimits | undefined;
  readonly clock?: Clock;
  /** Called once this task has left the job. */
  readonly onLeave?: () => void;
  /** Where this task shares no memory with others: what stands for them in its own, and why. */
  readonly relay?: Relay;
  /** The errors of dead tasks. */
  readonly errors?: TaskErrors;
  readonly whyRelay?: string;
}

/**
 * A task's access to its job, from `attach()` or as `job.client`. It makes contexts and regions. It belongs to its thread.
 * After close() its methods throw PAMIR_CLOSED.
 */
export class Client {
  /** Number of this task: 0 … size - 1. */
  readonly task: number;
  /** `args` of `launch`. */
  readonly args: unknown;
  /** The kernels that this task runs. */
  readonly kernel: KernelName;
  /** Features that depend on the host. All are true if tasks share memory and this thread may block. */
  readonly capabilities: Capabilities;
  /** The job's memory. Offsets of messages and reservations are offsets in it. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;

  readonly #parts: ClientParts;
  readonly #slot: number;
  readonly #clock: Clock;
  readonly #keepalive = new Keepalive();
  readonly #host: ContextHost;
  readonly #contexts = new Map<number, Context>();
  readonly #ended: Uint8Array;
  readonly #regions: RegionTable;
  #interrupts: number;
  #interruptsTaken = 0;
  #created = 0;
  #closed = false;

  /** @internal */
  constructor(parts: ClientParts) {
    const { kernel, memory, map, task, args, clock = systemClock } = parts;
    this.#parts = parts;
    this.#slot = taskSlot(map, task);
    this.#clock = clock;
    this.task = task;
    this.args = args;
    this.kernel = kernel.name;
    this.bytes = memory.bytes;
    this.#ended = new Uint8Array(map.tasks);
    const makeBlock = () => {
      const region = regionIfAny(this.#regions, POOL_SIZE);
      return region && { pointer: region.bytes.byteOffset, close: () => region.close() };
    };
    const buffers = new Buffers(kernel, memory, map, task, () => this.#regions.reclaim(), makeBlock);
    const trim = () => buffers.trim();
    this.#regions = new RegionTable({
      kernel,
      memory,
      map,
      task,
      grace: gracePeriods(kernel, map),
      keptMax: buffers.share,
      trim,
      watch: parts.debug && new RegionWatch(task),
    });
    this.#interrupts = kernel.loadWord(this.#slot + TASK_INTERRUPT_OFFSET);
    // SYNC task-state (up): pairs with those who look whether the task has ended.
    const state = kernel.exchangeIf(this.#slot + TASK_STATE_OFFSET, TASK_ABSENT, TASK_UP);
    if (state !== TASK_ABSENT) {
      throw new PamiError("PAMIR_CLOSED", `task ${task} has a client already, or has ended (state ${state})`);
    }
    const tracer = map.traceEvents > 0 ? new Tracer(memory, map, task, clock) : undefined;
    const debug = parts.debug && new Debug(parts.debug, clock, () => this.dump());
    const patience = debug?.patience ?? Number.POSITIVE_INFINITY;
    const witness = { tracer, patience, ...(debug && { slept: () => debug.slept() }) };
    const keepalive = this.#keepalive;
    // plain: written before any task.
    const cores = memory.words[(map.job + JOB_CORES_OFFSET) >>> 2] as number;
    const parker = new Parker(kernel, memory, map, task, cores, clock, keepalive, witness, parts.whyRelay);
    const isShared = parts.relay === undefined;
    this.capabilities = {
      blockingWaits: parker.mayBlock && isShared,
      checksRemoteHandles: isShared,
      deliversAfterDeath: isShared,
      failureDetection: parts.relay?.failureDetection ?? true,
    };
    parts.relay?.serve(this.#regions.create(DESK_BYTES, true), () => parker.ring());
    this.#host = {
      clock,
      kernel,
      memory,
      map,
      task,
      parker,
      tracer,
      debug,
      interrupts: () => this.#interrupts,
      interruptsTaken: () => this.#interruptsTaken,
      takeInterrupts: () => {
        this.#interruptsTaken = this.#interrupts;
      },
      refresh: () => this.#refresh(),
      hasEnded: (number) => this.#ended[number] !== 0,
      errorOf: (number) => {
        // SYNC task-state (look): pairs with the monitor's store, behind which the error stands.
        const isDead = kernel.loadWord(taskSlot(map, number) + TASK_STATE_OFFSET) === TASK_DEAD;
        return isDead ? parts.errors?.of(number) : undefined;
      },
      regions: this.#regions,
      buffers,
      reclaim: () => {
        this.#regions.reclaim();
        buffers.trim();
      },
      chains: parts.relay?.chains,
      contextClosed: (context, ordinal) => {
        this.#contexts.delete(context.index);
        if (!this.#closed) {
          announceClose(kernel, map, ordinal);
          parts.relay?.closeContext(ordinal);
        } else if (this.#contexts.size === 0) this.#leave();
      },
    };
  }

  /**
   * Returns the state of the whole job: queues, sleeping tasks, and operations that stand still. It is read from the shared
   * memory while the tasks run. If tasks share no memory, it covers this task only.
   */
  dump(): Dump {
    const { map, memory, kernel } = this.#parts;
    return dumpJob(map, memory, kernel, this.#clock);
  }

  /** Number of tasks that the job has had so far. `spawn` and `adopt` add to it. */
  get size(): number {
    const { kernel, map } = this.#parts;
    return kernel.loadWord(map.job + JOB_STARTED_OFFSET);
  }

  /** Numbers of the tasks that share this memory. */
  get localTasks(): readonly number[] {
    return Array.from({ length: this.size }, (_, number) => number);
  }

  /** Whether close() has been called. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Makes the next context of this task: number 0, 1, … up to the job's limit. Numbers of contexts are not used again. The
   * context belongs to the calling thread.
   * @throws PAMIR_INVAL (a wrong option, or more contexts than `launch({ contexts })`), PAMIR_CLOSED
   */
  createContext(options: ContextOptions = NO_OPTIONS): Context {
    this.#checkOpen("createContext");
    const { contexts } = this.#parts.map;
    if (this.#created >= contexts) {
      throw new PamiError(
        "PAMIR_INVAL",
        `context ${this.#created} of task ${this.task}: the limit is ${contexts} a task`,
      );
    }
    const context = new Context(this.#host, this.#created, options);
    this.#contexts.set(this.#created++, context);
    if (diagnostics.context.hasSubscribers) diagnostics.context.publish({ client: this, context });
    return context;
  }

  /**
   * Makes a region of the job's memory. This task owns it; other tasks reach it by its handle. Its bytes begin at a
   * multiple of 4,096 and are not set to 0.
   * @param bytes length of the region, from 1
   * @throws PAMIR_INVAL, PAMIR_NO_MEMORY (the text says how much is free), PAMIR_BUSY
   */
  createRegion(bytes: number): MemRegion {
    this.#checkOpen("createRegion");
    return this.#regions.create(bytes);
  }

  /**
   * Returns the endpoint of a task's context, `context * 2 ** 24 + task`. So a task's number is the endpoint of its context
   * 0. The context need not exist yet: messages to it wait.
   * @throws PAMIR_INVAL for a task or context beyond the job's limits
   */
  endpoint(task: number, context = 0): Endpoint {
    checkInteger("task", task, 0, this.#parts.map.tasks - 1);
    checkInteger("context", context, 0, this.#parts.map.contexts - 1);
    return endpointOf(task, context);
  }

  /** Returns the task of an endpoint. @throws PAMIR_INVAL unless it is an endpoint of this job */
  taskOf(endpoint: Endpoint): number {
    checkEndpoint(endpoint, this.#parts.map.tasks, this.#parts.map.contexts);
    return taskOf(endpoint);
  }

  /** Returns the number of an endpoint's context in its task. @throws PAMIR_INVAL unless it is an endpoint of this job */
  contextOf(endpoint: Endpoint): number {
    checkEndpoint(endpoint, this.#parts.map.tasks, this.#parts.map.contexts);
    return contextOf(endpoint);
  }

  /**
   * Advances several contexts: one round of each, up to `max` times, until a round has an event.
   * @param contexts default: all open contexts of this client
   * @returns the number of events
   * @throws as `context.advance()`, and then the later contexts are not advanced; PAMIR_INVAL, PAMIR_CLOSED
   */
  advance(contexts: Iterable<Context> = this.#contexts.values(), max = 1): number {
    this.#checkOpen("advance");
    checkInteger("max", max, 1, 2 ** 31);
    if (typeof (contexts as Iterable<Context> | null)?.[Symbol.iterator] !== "function") {
      throw new PamiError("PAMIR_INVAL", `contexts of advance() are ${show(contexts)}, not a list of contexts`);
    }
    const list = [...contexts];
    for (const context of list) {
      if (!(context instanceof Context)) {
        throw new PamiError("PAMIR_INVAL", `contexts of advance(): ${show(context)} is not a Context`);
      }
      if (!context.isOf(this.#host)) {
        throw new PamiError("PAMIR_INVAL", "contexts of advance(): one is another client's, which advances it");
      }
    }
    for (let round = 0; round < max; round++) {
      let events = 0;
      for (const context of list) if (!context.closed) events += context.advance();
      if (events > 0) return events;
    }
    return 0;
  }

  /** Returns an attribute, by its PAMI name without the prefix. @throws PAMIR_INVAL for an unknown name */
  query<Name extends keyof Attributes>(name: Name): Attributes[Name] {
    const { map } = this.#parts;
    const attributes: Attributes = {
      CLIENT_NUM_TASKS: this.size,
      CLIENT_TASK_ID: this.task,
      CLIENT_NUM_LOCAL_TASKS: this.localTasks.length,
      CLIENT_LOCAL_TASKS: this.localTasks,
      CLIENT_NUM_CONTEXTS: map.contexts,
      CLIENT_CONST_CONTEXTS: true,
      CLIENT_HWTHREADS_AVAILABLE: hardwareThreads(),
      CLIENT_MEMREGION_SIZE: 8,
      CLIENT_MEM_SIZE: Math.round(map.heapBytes / 1024 ** 2),
      CLIENT_PROCESSOR_NAME: processorName(),
      CLIENT_WTICK: 1e-6,
      CONTEXT_DISPATCH_ID_MAX: DISPATCH_ID_MAX,
      DISPATCH_RECV_IMMEDIATE_MAX: RECV_IMMEDIATE_MAX,
      DISPATCH_SEND_IMMEDIATE_MAX: SEND_IMMEDIATE_MAX,
    };
    if (!Object.hasOwn(attributes, name)) {
      throw new PamiError(
        "PAMIR_INVAL",
        `attribute ${show(name)} is unknown; there are ${Object.keys(attributes).join(", ")}`,
      );
    }
    return attributes[name];
  }

  /** Returns the seconds since an arbitrary start. The clock is monotonic. */
  now(): number {
    return this.#clock.now() / 1000;
  }

  /** Lets waits keep the thread running (the default). */
  ref(): void {
    this.#keepalive.referenced = true;
  }

  /** Stops waits from keeping the thread running. */
  unref(): void {
    this.#keepalive.referenced = false;
  }

  /**
   * Closes all contexts and leaves the job. Sends of other tasks to this one complete with SHUTDOWN. Pending messages and
   * transfers are dropped, unless `drain` is true. With `drain`, the contexts are drained first, and the promise resolves
   * once this task has left. Within a handler or callback, the task leaves at the end of the round.
   * @throws with `drain`, as `context.drain()`; then nothing is closed
   */
  close(): void;
  close(options: CloseOptions & { readonly drain: true }): Promise<void>;
  close(options: CloseOptions = NO_OPTIONS): void | Promise<void> {
    if (options !== NO_OPTIONS) {
      checkKeys("options of close()", options, CLOSE_KEYS);
      checkFlag("drain of close()", options.drain);
      checkTimeout(options.timeout);
      checkSignal("close()", options.signal);
    }
    if (options.drain === true) return this.#drain(options);
    if (this.#closed) return;
    this.#closed = true;
    this.#regions.end();
    if (this.#contexts.size === 0) this.#leave();
    else for (const context of [...this.#contexts.values()]) context.close();
  }

  async #drain({ timeout, signal }: CloseOptions): Promise<void> {
    if (this.#closed) return;
    const contexts = [...this.#contexts.values()];
    // None stops before all are out: what one has for another of them goes out only while that one advances.
    const isOut = () => contexts.every((context) => context.closed || context.drained);
    const drained = contexts.map(async (context) => {
      if (context.closed) return;
      await context.drainUntil(isOut, { timeout, signal });
      this.#host.parker.ring();
    });
    await Promise.all(drained);
    this.close();
  }

  /** Calls close() at the end of a block with `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Tells the others, once no context of this task reads or writes a lane any more: they take the lanes back. */
  #leave(): void {
    const { kernel, map } = this.#parts;
    // SYNC task-state (closed): pairs with those who look whether the task has ended; then each is told to look.
    kernel.exchangeIf(this.#slot + TASK_STATE_OFFSET, TASK_UP, TASK_CLOSED);
    announceEnds(kernel, map, [this.task]);
    this.#host.parker.close();
    this.#parts.relay?.close();
    if (diagnostics.leave.hasSubscribers) diagnostics.leave.publish({ client: this });
    this.#parts.onLeave?.();
  }

  #refresh(): number {
    const { kernel, map } = this.#parts;
    // SYNC notice (acknowledge): read before the table, so that a change in between is noticed again.
    const notice = kernel.loadWord(this.#slot + TASK_NOTICE_OFFSET);
    this.#interrupts = kernel.loadWord(this.#slot + TASK_INTERRUPT_OFFSET);
    this.#regions.reclaim();
    for (let task = 0; task < map.tasks; task++) {
      // SYNC task-state (look): pairs with the monitor's and the closing task's store.
      if (kernel.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) >= TASK_CLOSED) this.#ended[task] = 1;
    }
    return notice;
  }

  #checkOpen(call: string): void {
    if (this.#closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a client that is closed`);
  }
}
