// A client: a task's access to its job. Each task has one, from attach() or from launch() with `join`.
import { checkFlag, checkKeys, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { checkEndpoint, contextOf, type Endpoint, endpointOf, taskOf } from "../core/endpoint.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { DISPATCH_ID_MAX, RECV_IMMEDIATE_MAX, SEND_IMMEDIATE_MAX } from "../core/limits.js";
import type { MemRegion } from "../core/region.js";
import type { TransferType } from "../core/transfer-type.js";
import { type Dump, dumpJob } from "../observe/dump.js";
import type { Exits, Task } from "../protocol/task.js";
import { diagnostics } from "../support/diagnostics.js";
import { processorName } from "../support/host.js";
import type { HostMessagePort } from "../support/like.js";
import { hardwareThreads } from "../support/node/cores.js";
import { loadOnce } from "../support/promise.js";
import { Context, type ContextOptions } from "./context.js";
import type { Geometry } from "./geometry.js";
import type { GeometryOptions, GeometryRange, GeometrySyncOptions } from "./make-geometry.js";
import { checkTimeout, PROGRESS_KEYS, type ProgressOptions } from "./waits.js";

/** Attributes that `client.query` returns, by name. */
export interface Attributes {
  /** Tasks of the job so far: `client.size`. */
  CLIENT_NUM_TASKS: number;
  /** `client.task`. */
  CLIENT_TASK_ID: number;
  /** Number of tasks that share this memory: `client.localTasks`. */
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
   * put(), get() and rmw() throw for a handle or bounds that the target's region does not have. If false, they do so for
   * tasks of `client.localTasks` alone; for others, their callbacks and the next fence get ERROR instead.
   */
  readonly checksRemoteHandles: boolean;
  /** Messages that a task sent before it was killed are delivered. If false, the last of them may be lost. */
  readonly deliversAfterDeath: boolean;
  /** All tasks learn of a task's death. If false, only tasks with traffic for it do, after 60 s without an answer. */
  readonly failureDetection: boolean;
}

/** Options of `client.close`. */
export interface CloseOptions extends ProgressOptions {
  /** Drains all contexts first. */
  readonly drain?: boolean | undefined;
}

/** Called once a task has left. A promise resolves once other nodes have all that the task has sent, or 10 s later. */
export type OnLeave = () => void | Promise<void>;

/** What makes geometries, once it is loaded. */
let geometries: typeof import("./make-geometry.js") | undefined;
const loadGeometries = loadOnce(() => import("./make-geometry.js"));
const CLOSE_KEYS: Keys<CloseOptions> = { ...PROGRESS_KEYS, drain: true };

/**
 * A task's access to its job, from `attach()` or as `job.client`. It makes contexts and regions. It belongs to its thread.
 * After close() its methods throw PAMIR_CLOSED.
 */
export class Client {
  /** Number of this task: 0 … size - 1. */
  readonly task: number;
  /**
   * Number that the launcher gives this task: `task`, or that of a task which this one replaces. `job.spawn({ rank })` and
   * `pamir run --restart` make such tasks.
   */
  readonly rank: number;
  /** `args` of `launch`. */
  readonly args: unknown;
  /** The kernels that this task runs. */
  readonly kernel: KernelName;
  /** Features that depend on the host. All are true if tasks share memory and this thread may block. */
  readonly capabilities: Capabilities;
  /**
   * This task's end of a channel to the thread that has launched the job, whose end is `job.port(task)`: for what can't be
   * copied. It keeps no thread running until the program listens to it, and is closed with this client. undefined unless the
   * job was launched with `ports`, and in another process than that thread's.
   */
  readonly port: HostMessagePort | undefined;
  /** The job's memory. Offsets of messages and reservations are offsets in it. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;

  readonly #task: Task;
  readonly #onLeave: OnLeave | undefined;
  readonly #contexts = new Map<number, Context>();
  #created = 0;
  #world: Promise<Geometry> | undefined;
  /** The world, once it is made. */
  #made: Geometry | undefined;
  #closed = false;
  #left: void | Promise<void> = undefined;

  /** @internal This thread has launched the job: it tells the program of the ends of tasks. */
  hearExits(exits: Exits): void {
    this.#task.exits = exits;
  }

  /** @internal @param onLeave called once this task has left the job @param rank default: the task's number */
  constructor(task: Task, args: unknown, onLeave?: OnLeave, rank = task.number) {
    const { kernel, map, memory, parker, remote } = task;
    this.#task = task;
    this.#onLeave = onLeave;
    this.task = task.number;
    this.rank = rank;
    this.args = args;
    this.kernel = kernel.name;
    this.bytes = memory.bytes;
    this.port = task.port as HostMessagePort | undefined;
    // Tasks of other nodes may be behind an agent that has a thread of its own.
    const isShared = map.jobTasks === map.locals;
    this.capabilities = {
      blockingWaits: parker.mayBlock && remote === undefined,
      checksRemoteHandles: isShared,
      deliversAfterDeath: isShared,
      failureDetection: remote?.failureDetection ?? isShared,
    };
  }

  /**
   * Returns the state of the whole job: queues, sleeping tasks, and operations that stand still. It is read from the shared
   * memory while the tasks run. If tasks share no memory, it covers this task only.
   */
  dump(): Dump {
    const { map, memory, kernel, clock } = this.#task;
    return dumpJob(map, memory, kernel, clock);
  }

  /** Number of tasks that the job has had so far. `spawn` and `adopt` add to it. */
  get size(): number {
    return this.#task.size;
  }

  /** Numbers of the tasks that share this memory. */
  get localTasks(): readonly number[] {
    const { addresses, map } = this.#task;
    const numbers = Array.from({ length: map.locals }, (_, slot) => addresses.numberOf(slot));
    return numbers.filter((number) => number < this.size);
  }

  /** @internal The job's memory for further wasm modules; undefined where none can run in it. */
  get linearMemory(): WebAssembly.Memory | undefined {
    return this.#task.memory.wasm;
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
    const { contexts } = this.#task.map;
    if (this.#created >= contexts) {
      throw new PamiError(
        "PAMIR_INVAL",
        `context ${this.#created} of task ${this.task}: the limit is ${contexts} a task`,
      );
    }
    const context = new Context(this.#task, this.#created, options, (closed) => this.#contextClosed(closed));
    this.#contexts.set(this.#created++, context);
    if (diagnostics.context.hasSubscribers) diagnostics.context.publish({ client: this, context });
    return context;
  }

  /**
   * Returns the geometry of all tasks with which the job began, of their contexts 0. All of them call it, once each; it is
   * made at the first call, and anew at the first one after it was closed. If this task has no context yet, its context 0 is
   * made.
   * @throws as createGeometry()
   */
  world(options: ProgressOptions = NO_OPTIONS): Promise<Geometry> {
    if (this.#made?.closed) this.#world = undefined;
    this.#world ??= this.#makeWorld(options);
    return this.#world;
  }

  /**
   * Makes a geometry: endpoints that do collective operations together. All members call it with the same list, and it
   * resolves once all have. Only members call it. A task's geometries of one list are made in the order of the calls.
   * @param members tasks, which stand for their contexts 0, or endpoints; or a range of tasks. Their order is that of ranks
   * @throws PAMIR_INVAL (this task is no member, a member twice), PAMIR_SHUTDOWN (a member has ended, or has given up);
   *   PAMIR_NO_MEMORY; as `progress()`; PAMIR_TIMEDOUT names the members that have not come
   */
  createGeometry(
    members: readonly Endpoint[] | GeometryRange,
    options: GeometryOptions = NO_OPTIONS,
  ): Promise<Geometry> {
    return this.#makeGeometry("createGeometry", members, options);
  }

  /**
   * As createGeometry(), but blocks the thread. Only where the code of geometries is loaded: by world() or createGeometry().
   * @throws as createGeometry(), and as advanceUntil(); PAMIR_WOULD_BLOCK also before that
   */
  createGeometrySync(
    members: readonly Endpoint[] | GeometryRange,
    options: GeometrySyncOptions = NO_OPTIONS,
  ): Geometry {
    this.#checkOpen("createGeometrySync");
    if (geometries === undefined) {
      throw new PamiError(
        "PAMIR_WOULD_BLOCK",
        "createGeometrySync() needs code that is not loaded: await world() first",
      );
    }
    return geometries.makeGeometrySync(this.#task, this.#geometryContexts(), members, options);
  }

  /**
   * Makes a region of the job's memory. This task owns it; other tasks reach it by its handle. Its bytes begin at a
   * multiple of 4,096 and are not set to 0.
   * @param bytes length of the region, from 1
   * @throws PAMIR_INVAL, PAMIR_NO_MEMORY (the text says how much is free), PAMIR_BUSY
   */
  createRegion(bytes: number): MemRegion {
    this.#checkOpen("createRegion");
    const { regions, observers } = this.#task;
    const watch = observers.regions;
    if (watch === undefined) return regions.create(bytes);
    return watch.during(watch.placeOfCall(this.createRegion), () => regions.create(bytes));
  }

  /** @internal For programs in whose memory the job lies. */
  get inside(): Task {
    return this.#task;
  }

  /**
   * Makes an empty type for transfers of data that is not contiguous. The first call loads the code for it.
   * @throws PAMIR_CLOSED
   */
  async createType(): Promise<TransferType> {
    this.#checkOpen("createType");
    const { makeType } = await import("../types/type.js");
    return makeType(this.#task);
  }

  /**
   * Returns the endpoint of a task's context, `context * 2 ** 24 + task`. So a task's number is the endpoint of its context
   * 0. The context need not exist yet: messages to it wait.
   * @throws PAMIR_INVAL for a task or context beyond the job's limits
   */
  endpoint(task: number, context = 0): Endpoint {
    checkInteger("task", task, 0, this.#task.map.jobTasks - 1);
    checkInteger("context", context, 0, this.#task.map.contexts - 1);
    return endpointOf(task, context);
  }

  /** Returns the task of an endpoint. @throws PAMIR_INVAL unless it is an endpoint of this job */
  taskOf(endpoint: Endpoint): number {
    checkEndpoint(endpoint, this.#task.map.jobTasks, this.#task.map.contexts);
    return taskOf(endpoint);
  }

  /** Returns the number of an endpoint's context in its task. @throws PAMIR_INVAL unless it is an endpoint of this job */
  contextOf(endpoint: Endpoint): number {
    checkEndpoint(endpoint, this.#task.map.jobTasks, this.#task.map.contexts);
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
      if (!context.isOf(this.#task)) {
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
    const { map } = this.#task;
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
    return this.#task.clock.now() / 1000;
  }

  /** Lets waits keep the thread running (the default). */
  ref(): void {
    this.#task.keepalive.referenced = true;
  }

  /** Stops waits from keeping the thread running. */
  unref(): void {
    this.#task.keepalive.referenced = false;
  }

  /**
   * Closes all contexts and leaves the job. Sends of other tasks to this one complete with SHUTDOWN. Pending messages and
   * transfers are dropped, unless `drain` is true. With `drain`, the contexts are drained first, and the promise resolves
   * once this task has left. If its thread carries its messages to other nodes, as a page's does, these have acknowledged them
   * then, or 10 s have passed. Within a handler or callback, the task leaves at the end of the round.
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
    this.#task.regions.end();
    if (this.#contexts.size === 0) this.#leave();
    else for (const context of [...this.#contexts.values()]) context.close();
  }

  async #makeWorld(options: ProgressOptions): Promise<Geometry> {
    try {
      this.#made = await this.#makeGeometry("world", { from: 0, to: this.#task.world - 1 }, options);
      return this.#made;
    } catch (error) {
      this.#world = undefined;
      throw error;
    }
  }

  async #makeGeometry(
    call: "world" | "createGeometry",
    members: readonly Endpoint[] | GeometryRange,
    options: GeometryOptions,
  ): Promise<Geometry> {
    this.#checkOpen(call);
    this.#geometryContexts();
    geometries = await loadGeometries();
    return geometries.makeGeometry(call, this.#task, this.#geometryContexts(), members, options);
  }

  #geometryContexts(): readonly Context[] {
    if (this.#contexts.size === 0 && this.#created === 0) this.createContext();
    return [...this.#contexts.values()];
  }

  async #drain({ timeout, signal }: CloseOptions): Promise<void> {
    const contexts = [...this.#contexts.values()];
    // None stops before all are out: what one has for another of them goes out only while that one advances.
    const isOut = () => contexts.every((context) => context.closed || context.drained);
    const drained = contexts.map(async (context) => {
      if (context.closed) return;
      await context.drainUntil(isOut, { timeout, signal });
      this.#task.parker.ring();
    });
    await Promise.all(drained);
    this.close();
    return this.#left;
  }

  /** Calls close() at the end of a block with `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #contextClosed(context: Context): void {
    this.#contexts.delete(context.index);
    if (!this.#closed) this.#task.contextClosed(context.index);
    else if (this.#contexts.size === 0) this.#leave();
  }

  #leave(): void {
    this.#task.leave();
    this.port?.close();
    if (diagnostics.leave.hasSubscribers) diagnostics.leave.publish({ client: this });
    this.#left = this.#onLeave?.();
  }

  #checkOpen(call: string): void {
    if (this.#closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a client that is closed`);
  }
}
