// The part that the contexts of one task share: the task's memory, regions and transport, and the state of other tasks.
import * as L from "../../assembly/layout.js";
import { type Endpoint, taskOf } from "../core/endpoint.js";
import { PamiError, type RemoteError } from "../core/error.js";
import type { TaskErrors } from "../core/task-errors.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";
import { RegionTable } from "../memory/regions.js";
import { SlotTable } from "../node/address.js";
import { announceClose, announceEnds, gracePeriods } from "../node/liveness.js";
import { Parker } from "../node/park.js";
import { type Clock, systemClock } from "../support/clock.js";
import { Keepalive } from "../support/keepalive.js";
import { after } from "../support/timers.js";
import type { RemoteAgent, Transport, TransportHeap } from "../transport/transport.js";
import { type Observers, UNOBSERVED } from "./observers.js";
import { regionIfAny } from "./rendezvous/transfers.js";
import type { LookAtSlots } from "./slots.js";

/** The parts of a task. */
export interface TaskParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  /** Slot of the task in the node's tables. */
  readonly task: number;
  /** Makes its transport. */
  readonly transport: (heap: TransportHeap) => Transport;
  readonly clock?: Clock | undefined;
  readonly observers?: Observers | undefined;
  /** If tasks of other nodes have slots: looks at those slots. */
  readonly lookAtSlots?: LookAtSlots | undefined;
  /** The errors of dead tasks. */
  readonly errors?: TaskErrors | undefined;
  /** The task's end of a channel to the launching thread, for what can't be copied. */
  readonly port?: MessagePort | undefined;
  /** Why the task shares no memory with other tasks; undefined if it does. */
  readonly whyPrivate?: string | undefined;
}

/** The ends of tasks of which the launching thread has told the program. */
export interface Exits {
  /**
   * Calls `then` once the program has been told of a task's end. @returns a function that prevents the call; undefined: the
   * program has been told
   */
  whenTold(task: number, then: () => void): (() => void) | undefined;
  /** How a task ended, once the program has been told of the end. */
  errorOf(task: number): RemoteError | undefined;
}

/** Milliseconds in which the launching thread hears of a task's end. A node that is given up may not have ended. */
const TOLD_MS = 1000;
/** Characters of a cause that the text of an error repeats. */
const CAUSE_CHARACTERS = 300;

export class Task {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly addresses: SlotTable;
  /** Its number in the job. */
  readonly number: number;
  /** Its slot in the node's tables. */
  readonly slot: number;
  readonly clock: Clock;
  readonly observers: Observers;
  readonly keepalive = new Keepalive();
  readonly parker: Parker;
  readonly regions: RegionTable;
  readonly transport: Transport;
  readonly lookAtSlots: LookAtSlots | undefined;
  readonly port: MessagePort | undefined;
  /** Each function gives back the idle memory of one part, and returns whether there was any. */
  readonly trims: (() => boolean)[] = [];
  /** The ends of tasks that the job has told the program of, on the thread that has launched it. */
  exits: Exits | undefined;
  /** Interrupts seen so far. */
  interrupts: number;
  /** Interrupts that have ended a wait. A wait that begins now ends when `interrupts` differs from this number. */
  interruptsTaken = 0;
  readonly #slot: number;
  readonly #ended: Uint8Array;
  readonly #errors: TaskErrors | undefined;

  /** @throws PAMIR_CLOSED the task is up already, or has ended */
  constructor({ kernel, memory, map, task, clock = systemClock, observers = UNOBSERVED, ...parts }: TaskParts) {
    this.kernel = kernel;
    this.memory = memory;
    this.map = map;
    this.addresses = new SlotTable(kernel, memory, map);
    this.slot = task;
    this.number = this.addresses.numberOf(task);
    this.clock = clock;
    this.observers = observers;
    this.#errors = parts.errors;
    this.lookAtSlots = parts.lookAtSlots;
    this.port = parts.port;
    this.#slot = taskSlot(map, task);
    this.#ended = new Uint8Array(map.tasks);
    const transport = parts.transport({
      reclaim: () => this.reclaim(),
      reclaimRegions: () => this.regions.reclaim(),
      block: (bytes) => {
        const region = regionIfAny(this.regions, bytes);
        return region && { pointer: region.bytes.byteOffset, close: () => region.close() };
      },
    });
    this.transport = transport;
    const { buffers } = transport;
    this.trims.push(() => buffers.trim());
    this.regions = new RegionTable({
      kernel,
      memory,
      map,
      task,
      grace: gracePeriods(kernel, map),
      keptMax: buffers.share,
      trim: () => this.trim(),
      watch: observers.regions,
    });
    this.interrupts = kernel.loadWord(this.#slot + L.TASK_INTERRUPT_OFFSET);
    // SYNC task-state (up): pairs with refresh() of the other tasks.
    const state = kernel.exchangeIf(this.#slot + L.TASK_STATE_OFFSET, L.TASK_ABSENT, L.TASK_UP);
    if (state !== L.TASK_ABSENT) {
      throw new PamiError("PAMIR_CLOSED", `task ${this.number} has a client already, or has ended (state ${state})`);
    }
    // plain: written before any task.
    const cores = memory.words[(map.job + L.JOB_CORES_OFFSET) >>> 2] as number;
    const { keepalive, remote } = this;
    const { witness } = observers;
    const { whyPrivate } = parts;
    const receive = remote?.receive;
    this.parker = new Parker({ kernel, memory, map, task, cores, clock, keepalive, witness, whyPrivate, receive });
    remote?.serve(task, () => this.parker.ring());
  }

  /** The node's agent, if it has no thread of its own. */
  get remote(): RemoteAgent | undefined {
    return this.transport.remote;
  }

  /** Tasks with which the job began. */
  get world(): number {
    return this.kernel.loadWord(this.map.job + L.JOB_WORLD_OFFSET);
  }

  /** Tasks of the job so far. */
  get size(): number {
    return this.kernel.loadWord(this.map.job + L.JOB_STARTED_OFFSET);
  }

  /** A wait ends with INTERRUPTED: the interrupts seen so far end no other wait. */
  takeInterrupts(): void {
    this.interruptsTaken = this.interrupts;
  }

  /** Whether the task in a slot has ended, as far as refresh() has seen. */
  hasEnded(slot: number): boolean {
    return this.#ended[slot] !== 0;
  }

  /** Whether an endpoint that is gone has ended for certain. Otherwise its task is only silent, and may go on. */
  hasCertainlyEnded(to: Endpoint): boolean {
    const { kernel, map } = this;
    const slot = this.addresses.slotOf(taskOf(to));
    if (slot < map.locals) return slot >= 0;
    const pointer = taskSlot(map, slot);
    // SYNC task-state (look): pairs with the agent's store. If only the context has closed, the context's own frame has said
    // so.
    if (kernel.loadWord(pointer + L.TASK_STATE_OFFSET) < L.TASK_CLOSED) return true;
    return kernel.loadWord(pointer + L.TASK_CERTAIN_OFFSET) === L.END_CERTAIN;
  }

  /** Whether an endpoint is gone by silence, and a launcher reports the end of its process, sooner or later. */
  isEndAwaited(to: Endpoint): boolean {
    const { addresses, kernel, map } = this;
    const slot = addresses.slotOf(taskOf(to));
    if (slot < map.locals || addresses.hasAgentEnded) return false;
    return kernel.loadWord(taskSlot(map, slot) + L.TASK_CERTAIN_OFFSET) === L.END_AWAITED;
  }

  /**
   * PAMIR_SHUTDOWN. Its cause and its text say how the task of an endpoint has ended, if this is known. A task that has closed
   * its client, and ended well, is no cause.
   */
  shutdownError(text: string, to: Endpoint): PamiError {
    const task = taskOf(to);
    const cause = this.#isDead(task) ? (this.#errors?.of(task) ?? this.exits?.errorOf(task)) : undefined;
    if (cause === undefined) return new PamiError("PAMIR_SHUTDOWN", text);
    const [line] = (cause.name === "Error" ? cause.message : `${cause.name}: ${cause.message}`).split("\n", 1);
    return new PamiError("PAMIR_SHUTDOWN", `${text}: ${line?.slice(0, CAUSE_CHARACTERS)}`, { cause });
  }

  /**
   * On the thread that has launched the job, calls `then` once the program has been told of the end of an endpoint's task
   * (`onExit`), or after TOLD_MS. On other threads, calls `then` at once.
   */
  onceTold(to: Endpoint, then: () => void): void {
    const task = taskOf(to);
    const told = (): void => {
      stop();
      then();
    };
    const forget = this.#isDead(task) ? this.exits?.whenTold(task, told) : undefined;
    if (forget === undefined) {
      then();
      return;
    }
    const stop = after(TOLD_MS, () => {
      forget();
      then();
    });
  }

  /** Whether the thread or the node of a task has ended, and not only its client. */
  #isDead(task: number): boolean {
    const slot = this.addresses.slotOf(task);
    // SYNC task-state (look): pairs with the monitor's store, which follows that of the error.
    return slot >= 0 && this.kernel.loadWord(taskSlot(this.map, slot) + L.TASK_STATE_OFFSET) === L.TASK_DEAD;
  }

  /** Gives back closed memory of this task that nothing uses any more, and idle memory. */
  reclaim(): void {
    this.regions.reclaim();
    this.trim();
  }

  /** Gives back idle memory. @returns whether there was any */
  trim(): boolean {
    return this.trims.map((trim) => trim()).includes(true);
  }

  /** Reads the task table again: ended tasks, and the count of interrupts. @returns the notice seen */
  refresh(): number {
    const { kernel, map } = this;
    // SYNC notice (acknowledge): read before the table, so that a change in between is noticed again.
    const notice = kernel.loadWord(this.#slot + L.TASK_NOTICE_OFFSET);
    this.interrupts = kernel.loadWord(this.#slot + L.TASK_INTERRUPT_OFFSET);
    this.regions.reclaim();
    for (let task = 0; task < map.tasks; task++) {
      // SYNC task-state (look): pairs with the monitor's and the closing task's store.
      const state = kernel.loadWord(taskSlot(map, task) + L.TASK_STATE_OFFSET);
      // For another node's task, CLOSED means a freed slot; by now the slot may belong to another task.
      this.#ended[task] = Number(state >= (task < map.locals ? L.TASK_CLOSED : L.TASK_DEAD));
    }
    return notice;
  }

  /** A context has closed, and the task goes on: notifies the other tasks. */
  contextClosed(index: number): void {
    const ordinal = ordinalOf(this.map, this.slot, index);
    announceClose(this.kernel, this.map, ordinal);
    this.remote?.turn();
  }

  /** Announces this task's end, once none of its contexts uses a lane any more. The other tasks take the lanes back. */
  leave(): void {
    const { kernel, map } = this;
    // SYNC task-state (closed): pairs with refresh() of the other tasks, which get a notice.
    kernel.exchangeIf(this.#slot + L.TASK_STATE_OFFSET, L.TASK_UP, L.TASK_CLOSED);
    announceEnds(kernel, map, [this.slot]);
    this.parker.close();
    this.remote?.close();
  }
}
