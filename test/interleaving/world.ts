// What a scenario sees: one job's memory, the kernels under exploration over it, and what the runtime builds on them.
import { WAIT_TIMED_OUT } from "../../assembly/layout.js";
import type { Memory, PacketKernel } from "../../src/kernel/kernel.js";
import type { MemoryMap } from "../../src/memory/map.js";
import { sleepOn } from "../../src/node/bell.js";
import { Parker } from "../../src/node/park.js";
import type { Client } from "../../src/pami/client.js";
import { lookAtSlotsAndRing } from "../../src/protocol/slot-bell.js";
import { makeClient } from "../../src/start/client.js";
import type { Clock } from "../../src/support/clock.js";
import { Keepalive } from "../../src/support/keepalive.js";
import { ShmLanes } from "../../src/transport/shm/lanes.js";
import { Rig } from "../support/kernels.js";
import { AT, KIND, NOTES_MAX } from "./control.js";

export class World extends Rig {
  readonly kernel: PacketKernel;
  /** Number of the thread. */
  readonly me: number;
  readonly #access: (kind: number, word: number) => number;
  readonly awaitEnd: (thread: number) => void;
  readonly isDead: (thread: number) => boolean;
  readonly hasEnded: (thread: number) => boolean;
  readonly #parkers: Parker[] = [];
  /** The kernels, but a sleep whose timeout fires moves the clock: else it stands still. */
  readonly #timed: PacketKernel;
  readonly #timedMemory: Memory;
  readonly #clock: Clock = { now: () => this.#now, origin: 0 };
  #now = 0;

  constructor(
    kernel: PacketKernel,
    memory: Memory,
    map: MemoryMap,
    me: number,
    access: (kind: number, word: number) => number,
    awaitEnd: (thread: number) => void,
    isDead: (thread: number) => boolean,
    hasEnded: (thread: number) => boolean,
  ) {
    super(kernel, kernel, memory, map);
    this.kernel = kernel;
    this.me = me;
    this.#access = access;
    this.awaitEnd = awaitEnd;
    this.isDead = isDead;
    this.hasEnded = hasEnded;
    this.#timed = {
      ...kernel,
      bellWait: (slot, seen, milliseconds) => {
        const result = kernel.bellWait(slot, seen, milliseconds);
        if (result === WAIT_TIMED_OUT) this.#now += milliseconds;
        return result;
      },
    };
    const { futex } = memory;
    const wait = (pointer: number, seen: number, milliseconds: number): number => {
      const slept = futex?.wait(pointer, seen, milliseconds) ?? 0;
      this.#now += slept;
      return slept;
    };
    this.#timedMemory = { ...memory, futex: futex && { ...futex, wait } };
  }

  /** A bare sleep on a bell. Returns whether the time was up. */
  sleep(slot: number, seen: number, milliseconds: number): boolean {
    const start = this.#now;
    sleepOn(this.#timed, this.#timedMemory, slot, seen, milliseconds);
    return this.#now > start;
  }

  /** The thread's own record of what it saw, for the scenario's check. */
  note(value: number): void {
    const { words } = this.memory;
    const at = AT.notes + (NOTES_MAX + 1) * this.me;
    const count = (words[at] as number) + 1;
    if (count > NOTES_MAX) throw new Error(`more than ${NOTES_MAX} notes`);
    words[at] = count;
    words[at + count] = value;
  }

  /** What this thread has noted. */
  get notes(): number[] {
    const { words } = this.memory;
    const at = AT.notes + (NOTES_MAX + 1) * this.me;
    return [...words.subarray(at + 1, at + 1 + (words[at] as number))];
  }

  /** A plain load, as the runtime makes one. */
  load(pointer: number): number {
    return this.memory.words[this.#access(KIND.load, pointer >>> 2)] as number;
  }

  /** A plain store. */
  store(pointer: number, value: number): void {
    this.memory.words[this.#access(KIND.store, pointer >>> 2)] = value;
  }

  /** The lanes of an origin, as its context has them. */
  lanes(origin: number): ShmLanes {
    return new ShmLanes(this.kernel, this.memory, this.map, origin);
  }

  /** How the thread of a task waits. */
  parker(task: number): Parker {
    this.#parkers[task] ??= new Parker({
      kernel: this.#timed,
      memory: this.#timedMemory,
      map: this.map,
      task,
      cores: 2,
      clock: this.#clock,
      keepalive: new Keepalive(),
      witness: { tracer: undefined, patience: Number.POSITIVE_INFINITY },
    });
    return this.#parkers[task];
  }

  /** The client of a task: for the thread that stands for it, and anew in each run. */
  client(task: number): Client {
    const slots = this.map.locals < this.map.tasks && { lookAtSlots: lookAtSlotsAndRing };
    return makeClient({
      kernel: this.#timed,
      memory: this.#timedMemory,
      map: this.map,
      task,
      clock: this.#clock,
      ...slots,
    });
  }
}
