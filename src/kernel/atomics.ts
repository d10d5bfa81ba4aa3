// Atomics on the words of a job's memory, for the runtime and for the twin: the only file of src/ that names an atomic.
// It has the functions of assembly/sync.ts, in the same order. An atomic costs 7–10 ns from JavaScript (V8 calls it), so the
// twin reads the words of its own thread plainly.
import * as L from "../../assembly/layout.js";
import type { Memory } from "./kernel.js";

export type SharedAtomics = ReturnType<typeof sharedAtomics>;

const WAIT_RESULTS = { ok: L.WAIT_OK, "not-equal": L.WAIT_NOT_EQUAL, "timed-out": L.WAIT_TIMED_OUT } as const;

/** How many bits are set. */
export function popcount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** The atomics over a job's memory. */
export function sharedAtomics({ words, buffer, futex }: Memory) {
  const wide = new BigUint64Array(buffer);

  function loadWord(pointer: number): number {
    return Atomics.load(words, pointer >>> 2);
  }

  function storeWord(pointer: number, value: number): void {
    Atomics.store(words, pointer >>> 2, value);
  }

  function exchangeIf(pointer: number, expected: number, replacement: number): number {
    return Atomics.compareExchange(words, pointer >>> 2, expected, replacement);
  }

  function setBits(pointer: number, bits: number): void {
    Atomics.or(words, pointer >>> 2, bits);
  }

  function setBitsOf(pointer: number, bits: number): number {
    return Atomics.or(words, pointer >>> 2, bits);
  }

  function clearBits(pointer: number, bits: number): void {
    Atomics.and(words, pointer >>> 2, ~bits);
  }

  function addWord(pointer: number, value: number): number {
    return Atomics.add(words, pointer >>> 2, value);
  }

  function changeWord(pointer: number, operation: number, value: number, test: number, compares: boolean): number {
    const index = pointer >>> 2;
    if (compares) return Atomics.compareExchange(words, index, test, combine(operation, test, value));
    if (operation === L.RMW_ADD) return Atomics.add(words, index, value);
    if (operation === L.RMW_OR) return Atomics.or(words, index, value);
    if (operation === L.RMW_AND) return Atomics.and(words, index, value);
    if (operation === L.RMW_XOR) return Atomics.xor(words, index, value);
    return Atomics.exchange(words, index, value);
  }

  function changeWide(pointer: number, operation: number, value: bigint, test: bigint, compares: boolean): bigint {
    const index = pointer >>> 3;
    if (compares) return Atomics.compareExchange(wide, index, test, combineWide(operation, test, value));
    if (operation === L.RMW_ADD) return Atomics.add(wide, index, value);
    if (operation === L.RMW_OR) return Atomics.or(wide, index, value);
    if (operation === L.RMW_AND) return Atomics.and(wide, index, value);
    if (operation === L.RMW_XOR) return Atomics.xor(wide, index, value);
    return Atomics.exchange(wide, index, value);
  }

  function combine(operation: number, old: number, value: number): number {
    if (operation === L.RMW_ADD) return (old + value) | 0;
    if (operation === L.RMW_OR) return old | value;
    if (operation === L.RMW_AND) return old & value;
    if (operation === L.RMW_XOR) return old ^ value;
    return value;
  }

  function combineWide(operation: number, old: bigint, value: bigint): bigint {
    if (operation === L.RMW_ADD) return old + value;
    if (operation === L.RMW_OR) return old | value;
    if (operation === L.RMW_AND) return old & value;
    if (operation === L.RMW_XOR) return old ^ value;
    return value;
  }

  function ring(task: number): void {
    const parked = (task + L.TASK_PARKED_OFFSET) >>> 2;
    // SYNC park (look)
    if (Atomics.load(words, parked) === 0) return;
    // SYNC park (rung)
    Atomics.store(words, parked, 0);
    ringAlways(task);
  }

  function ringAlways(task: number): void {
    // SYNC park (ring)
    const bell = (task + L.TASK_BELL_OFFSET) >>> 2;
    Atomics.add(words, bell, 1);
    Atomics.notify(words, bell);
    futex?.wake(task + L.TASK_BELL_OFFSET);
  }

  function bellArm(task: number): number {
    const seen = Atomics.load(words, (task + L.TASK_BELL_OFFSET) >>> 2);
    // SYNC park (arm)
    Atomics.store(words, (task + L.TASK_PARKED_OFFSET) >>> 2, 1);
    return seen;
  }

  function bellDisarm(task: number): void {
    Atomics.store(words, (task + L.TASK_PARKED_OFFSET) >>> 2, 0);
  }

  function bellWait(task: number, seen: number, milliseconds: number): number {
    // SYNC park (sleep)
    const limit = milliseconds < 0 ? Number.POSITIVE_INFINITY : milliseconds;
    return WAIT_RESULTS[Atomics.wait(words, (task + L.TASK_BELL_OFFSET) >>> 2, seen, limit)];
  }

  function spinEnter(job: number, task: number, tasks: number): number {
    // SYNC spinners (enter)
    const spinning = (job + L.JOB_SPINNING_OFFSET) >>> 2;
    Atomics.or(words, spinning + (task >>> 5), 1 << (task & 31));
    let count = 0;
    for (let word = 0; word << 5 < tasks; word++) count += popcount(Atomics.load(words, spinning + word));
    return count;
  }

  function spinLeave(job: number, task: number): void {
    // SYNC spinners (leave)
    Atomics.and(words, ((job + L.JOB_SPINNING_OFFSET) >>> 2) + (task >>> 5), ~(1 << (task & 31)));
  }

  function pause(divisions: number): number {
    let quotient = divisions;
    for (let left = divisions; left !== 0; left--) quotient = (L.NONE / ((quotient | 1) >>> 0)) >>> 0;
    return quotient;
  }

  return {
    loadWord,
    storeWord,
    exchangeIf,
    setBits,
    setBitsOf,
    clearBits,
    addWord,
    changeWord,
    changeWide,
    ring,
    ringAlways,
    bellArm,
    bellDisarm,
    bellWait,
    spinEnter,
    spinLeave,
    pause,
  };
}

/**
 * Sleeps without blocking the thread: resolves once the bell no longer reads `seen`. Returns undefined if the bell reads
 * something else already, null if this host has no Atomics.waitAsync. A thread keeps one such
 * promise and shares it, because an abandoned one stays in the queue. Not in a kernel, because wasm has no instruction for it.
 */
export function bellWaitAsync({ words }: Memory, task: number, seen: number): Promise<unknown> | undefined | null {
  // hasWaitAsync(), written out: each sleep asks.
  if (typeof Atomics.waitAsync !== "function") return null;
  // SYNC park (sleep): pairs with ringAlways().
  const { async, value } = Atomics.waitAsync(words, (task + L.TASK_BELL_OFFSET) >>> 2, seen);
  return async ? value : undefined;
}

/** Whether this host has Atomics.waitAsync: Firefox has it since version 145. */
export function hasWaitAsync(): boolean {
  return typeof Atomics.waitAsync === "function";
}

let ownWord: Int32Array | undefined;

/** Blocks this thread for so many milliseconds. @throws TypeError the thread must not block: a page's own */
export function sleep(milliseconds: number): void {
  ownWord ??= new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(ownWord, 0, 0, milliseconds);
}

/**
 * Source of a worker that stands in for Atomics.waitAsync. It gets the words and an index, then values. It answers each
 * value once the word reads something else (SYNC park).
 */
export const doorbellSource = `let words,index
onmessage=({data})=>{
if(typeof data=="object")return({words,index}=data)
Atomics.wait(words,index,data)
postMessage(0)}`;
