// What one thread of the explorer has: its turnstile, the hook that the instrumented code calls, and the kernels.
import { workerData } from "node:worker_threads";
import { type Futex, type Memory, memoryOf, type PacketKernel } from "../../src/kernel/kernel.js";
import { twinPacketKernel } from "../../src/kernel/twin/index.js";
import { FLAG, Hook, KIND, markFirst, THREADS_MAX } from "./control.js";
import type { Scenario } from "./scenario.js";
import { TIMED_OUT, Turnstile } from "./turnstile.js";

/** What the explorer hands to each of its threads. */
export interface Orders {
  readonly kernel: "wasm" | "ts";
  readonly instrumented: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly me: number;
  /** See Turnstile. */
  readonly spins: number;
}

export const orders = workerData as Orders;
export const { me } = orders;
export const memory = memoryOf(orders.memory.buffer as unknown as SharedArrayBuffer);
const { words, bytes } = memory;

const hook = new Hook(memory, me);
hook.onFirst = (kind, word) => markFirst(memory, me, kind, word);
export const turnstile = new Turnstile(memory, hook, me, orders.spins);

/** What of it the threads are: see Scenario. */
let processes: Scenario["processes"];

/** Before the program of a scenario. */
export function become(scenario: Scenario): void {
  processes = scenario.processes;
}

/** Longest sleep in milliseconds, if sleeps end. */
const SLEEP_MS = 2000;

const futex: Futex = {
  wait(pointer, seen, milliseconds) {
    const word = pointer >>> 2;
    hook.onFirst(KIND.wait, word);
    const isTimed = milliseconds !== Number.POSITIVE_INFINITY || processes?.sleepsEnd === true;
    return turnstile.wait(word, seen, isTimed) === TIMED_OUT ? Math.min(milliseconds, SLEEP_MS) : 0;
  },
  wake(pointer) {
    if (processes !== undefined) turnstile.notify(pointer >>> 2);
  },
  reserve: () => true,
  doorbell: undefined,
  close() {},
};
/** The memory of threads that stand for processes. */
export const processMemory: Memory = { ...memory, futex };

/** Atomics.wait(), whose sleepers threads of other processes do not reach. */
function wait(word: number, expected: number, isTimed: boolean): number {
  if (processes !== undefined) throw new Error("Atomics.wait() in a memory that processes share");
  hook.onFirst(KIND.wait, word);
  return turnstile.wait(word, expected, isTimed);
}

const notify = (word: number): number => (processes === undefined ? turnstile.notify(word) : 0);

/** Byte by byte, with a stop before each word that is read or written: a copy is no atomic. */
function copy(hooked: Hook, to: number, from: number, length: number): void {
  const back = to > from && to < from + length;
  let read = -1;
  let written = -1;
  for (let i = 0; i < length; i++) {
    const offset = back ? length - 1 - i : i;
    const [source, place] = [(from + offset) >>> 2, (to + offset) >>> 2];
    if (source !== read) hooked.access(KIND.load, source);
    const byte = bytes[from + offset] as number;
    if (place !== written) hooked.access(KIND.store, place);
    read = source;
    written = place;
    bytes[to + offset] = byte;
  }
}

function change(operation: (array: Int32Array, index: number, ...values: number[]) => number) {
  return (array: Int32Array, index: number, ...values: number[]): number => {
    if (array.BYTES_PER_ELEMENT === 4) hook.access(KIND.atomicChange, index);
    else for (const word of [2 * index, 2 * index + 1]) hook.access(KIND.atomicChange, word);
    return operation(array, index, ...values);
  };
}

/** In the place of Atomics, and of what touches `words`, in the sources that instrument.ts has changed. */
export const explored = {
  access: (kind: number, word: number): number => hook.access(kind, word),
  set(_: Int32Array, word: number, value: number): void {
    hook.access(KIND.store, word);
    words[word] = value;
  },
  /** A plain look at the table of endpoints, on which nothing is built that an atomic load does not repeat. */
  look(table: Uint32Array, place: number): number {
    hook.access(KIND.hint, (table.byteOffset >>> 2) + place);
    return place;
  },
  fill(value: number, from: number, to: number): void {
    for (let word = from; word < to; word++) explored.set(words, word, value);
  },
  copyWithin: (to: number, from: number, end: number): void => copy(hook, to, from, end - from),
  load(_: Int32Array, word: number): number {
    hook.access(KIND.atomicLoad, word);
    return words[word] as number;
  },
  store(_: Int32Array, word: number, value: number): void {
    hook.access(KIND.atomicStore, word);
    words[word] = value;
  },
  add: change(Atomics.add),
  or: change(Atomics.or),
  and: change(Atomics.and),
  exchange: change(Atomics.exchange),
  compareExchange: change(Atomics.compareExchange as never),
  wait(_: Int32Array, word: number, expected: number, timeout: number): string {
    const result = wait(word, expected, timeout !== Number.POSITIVE_INFINITY);
    return ["ok", "not-equal", "timed-out"][result] as string;
  },
  notify: (_: Int32Array, word: number): number => notify(word),
};

/** The instrumented module as a PacketKernel: every number that comes out is unsigned. */
function wasmKernel(hooked: Hook, number: number, watched: number): PacketKernel {
  const { exports } = new WebAssembly.Instance(orders.instrumented, {
    env: { memory: orders.memory },
    heap: { reserve: () => 1 },
    sync: { wake: (pointer: number) => (number === THREADS_MAX ? undefined : futex.wake(pointer)) },
    explore: {
      me: number,
      watched,
      first: (kind: number, word: number) => hooked.onFirst(kind, word),
      stop: () => hooked.onStop(),
      wait: (pointer: number, expected: number, timeout: bigint) => wait(pointer >>> 2, expected, timeout >= 0n),
      notify: (pointer: number) => (number === THREADS_MAX ? 0 : notify(pointer >>> 2)),
      fill(to: number, value: number, length: number): void {
        for (let word = to >>> 2; word < (to + length) >>> 2; word++) hooked.access(KIND.store, word);
        bytes.fill(value, to, to + length);
      },
      copy: (to: number, from: number, length: number) => copy(hooked, to >>> 0, from >>> 0, length),
    },
  });
  const kernel: Record<string, unknown> = { name: "wasm" };
  for (const [name, call] of Object.entries(exports)) {
    if (typeof call !== "function") continue;
    kernel[name] = (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => {
      const result = call(a, b, c, d, e, f, g) as number | undefined;
      return result === undefined ? undefined : result >>> 0;
    };
  }
  return kernel as unknown as PacketKernel;
}

/** The kernels that are explored. */
export const kernel: PacketKernel =
  orders.kernel === "wasm" ? wasmKernel(hook, me, FLAG.watched) : twinPacketKernel(processMemory);

const marks = new Hook(memory, THREADS_MAX);
marks.onFirst = (kind, word) => markFirst(memory, THREADS_MAX, kind, word);

/** What setup and check have, outside of schedules: kernels and accesses that only take note of what is written. */
export const outside = {
  kernel: (): PacketKernel => wasmKernel(marks, THREADS_MAX, 0),
  access: (kind: number, word: number): number => marks.access(kind, word),
};
