// The kernels' interface. The wasm module (wasm.ts) implements it and, over the same bytes, plain TypeScript (twin/).
// Pointers are u32 byte offsets into the job's memory. Each function is documented in assembly/, under the same name.

import type { KernelName } from "../core/kernel-name.js";

/** What threads of several processes need of the system. Pointers are those of words in the memory. */
export interface Futex {
  /**
   * Blocks this thread while the word reads `seen`, for at most `milliseconds`. It may return earlier.
   * @returns milliseconds of the sleep if nothing ended it, else 0. They are fewer than asked for if that is too long: V8
   *   can't terminate a thread in a foreign call
   */
  wait(pointer: number, seen: number, milliseconds: number): number;
  /** Wakes the threads of all processes that sleep on a task's bell. Threads in Atomics.wait() go on sleeping. */
  wake(bell: number): void;
  /** Makes what sleeps on the bell of a task slot for a thread that must not block; undefined: this thread always blocks. */
  readonly doorbell: ((slot: number) => Bell) | undefined;
  /** Has the system provide the pages of some bytes, which no thread uses yet. @returns whether it can */
  reserve(pointer: number, bytes: number): boolean;
  /** Releases what wake() has opened. A later call opens it again. */
  close(): void;
}

/** Sleeps on a task's bell for a thread that must not block. */
export interface Bell {
  /** Resolves once the bell no longer reads `seen`, or earlier. The wait before is given up. */
  wait(seen: number): Promise<void>;
  /** Ends it, and resolves a wait that is under way. */
  close(): void;
}

/** The linear memory of a job as typed views. They cover all of it, and it never grows. */
export interface Memory {
  readonly buffer: SharedArrayBuffer;
  readonly words: Int32Array<SharedArrayBuffer>;
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** Where processes share the memory: how their threads sleep. Atomics.wait() is used otherwise. */
  readonly futex: Futex | undefined;
  /** The memory for further wasm modules; undefined where no wasm can run in it. */
  readonly wasm: WebAssembly.Memory | undefined;
  /** With more tasks than cores: finds what gives this thread's core to another one, if anything does. */
  findYield?: (() => (() => void) | undefined) | undefined;
}

/** Views over a job's memory. */
export function memoryOf(buffer: SharedArrayBuffer, futex?: Futex, wasm?: WebAssembly.Memory): Memory {
  return { buffer, words: new Int32Array(buffer), bytes: new Uint8Array(buffer), futex, wasm };
}

/** The functions that the wasm kernels import. */
export function kernelImports(memory: WebAssembly.Memory, futex: Futex | undefined): WebAssembly.Imports {
  // Boolean does nothing: a function of its own would be interpreted, as long as few wake-ups have come.
  if (futex === undefined) return { env: { memory }, sync: { wake: Boolean }, heap: { reserve: () => 1 } };
  return {
    env: { memory },
    sync: { wake: (word: number) => futex.wake(word >>> 0) },
    heap: { reserve: (extent: number, bytes: number) => +futex.reserve(extent >>> 0, bytes >>> 0) },
  };
}

export interface Kernel {
  readonly name: KernelName;

  // sync
  loadWord(pointer: number): number;
  storeWord(pointer: number, value: number): void;
  exchangeIf(pointer: number, expected: number, replacement: number): number;
  addWord(pointer: number, value: number): number;
  clearBits(pointer: number, bits: number): void;
  ring(task: number): void;
  ringAlways(task: number): void;
  bellArm(task: number): number;
  bellDisarm(task: number): void;
  bellWait(task: number, seen: number, milliseconds: number): number;
  spinEnter(job: number, task: number, tasks: number): number;
  spinLeave(job: number, task: number): void;
  pause(divisions: number): number;

  // heap
  heapAllocate(job: number, pages: number, owner: number): number;
  heapFree(job: number, extent: number): void;
  regionAllocate(job: number, pages: number, owner: number): number;
  heapReclaim(job: number, owner: number): void;
  heapFreePages(job: number): number;
  extentPass(job: number, extent: number, owner: number, to: number): number;

  // buffers
  bufferRelease(slot: number, state: number): void;
  bufferWant(pool: number, wanted: number): void;

  // lanes, the producer's side
  copyBytes(to: number, from: number, bytes: number): void;
  fillBytes(to: number, value: number, bytes: number): void;
  laneInit(
    job: number,
    lane: number,
    origin: number,
    target: number,
    capacity: number,
    recordMax: number,
    start: number,
  ): void;
  laneOpen(job: number, origin: number, target: number, capacity: number, recordMax: number): number;
  laneRoom(lane: number): number;
  laneSendWords(lane: number, bytes: number, meta: number, a: number, b: number): number;
  laneReserve(lane: number, bytes: number): number;
  laneCommit(lane: number, kind: number, bytes: number, meta: number): void;
  laneAbort(lane: number): void;
  laneWantRoom(lane: number, wanted: number): void;
  laneReplace(job: number, lane: number, capacity: number, recordMax: number): number;
  laneReclaim(job: number, origin: number, target: number): void;

  // reception, the consumer's side
  laneRelease(lane: number): void;
  laneOf(context: number, origin: number): number;
  advance(context: number, rounds: number): number;
  release(context: number): void;
  peek(context: number): number;
  lastLook(context: number): number;
  lanePeek(lane: number): number;
  lanePause(lane: number, body: number): void;
  laneResume(context: number, origin: number): void;
  laneReady(context: number, origin: number): void;
  laneSwitch(job: number, context: number, origin: number, fresh: number): void;

  // regions, injection FIFOs, the engine
  regionOpen(job: number, index: number, base: number, bytes: number): number;
  regionClose(job: number, index: number): void;
  placeOf(job: number, index: number, generation: number, offset: number, bytes: number): number;
  perform(job: number, descriptor: number, most: number): number;
  inject(fifo: number, completions: number): number;
  submit(job: number, fifo: number, hasCallback: boolean): number;
  moveNow(
    job: number,
    index: number,
    generation: number,
    offset: number,
    local: number,
    bytes: number,
    isPut: boolean,
  ): number;
  changeNow(
    job: number,
    index: number,
    generation: number,
    offset: number,
    operation: number,
    value: number,
    local: number,
  ): number;
  engineRun(job: number, fifo: number, most: number): number;
  engineCarried(fifo: number, result: number): void;
  engineGiveUp(job: number, fifo: number): void;
  completionTake(fifo: number): number;

  // rget FIFOs and chains
  rgetOpen(rgetFifo: number, allowed: number): number;
  rgetClose(rgetFifo: number): void;
  rgetClear(rgetFifo: number): number;
  chainWrite(job: number, rgetFifo: number): number;
  chainNotice(
    job: number,
    index: number,
    generation: number,
    offset: number,
    own: number,
    origin: number,
    result: number,
  ): number;
  chainRun(job: number, context: number, most: number): number;
  chainLeft(context: number): number;
  chainBreak(job: number, rgetFifo: number): number;

  // the engine thread
  engineCall(job: number, ordinal: number): void;
  engineServe(job: number): number;
}

/** The kernels with those for packets and their order, which threads that share a memory do not need. */
export interface PacketKernel extends Kernel {
  packetCheck(packet: number, bytes: number, job: number): number;
  queueInit(queue: number, rgetFifo: number, first: number, shared: boolean): void;
  queueInsert(queue: number, order: number, packet: number): number;
  queueReset(queue: number): number;
  queueTake(queue: number): number;
  queueNext(queue: number): number;
}
