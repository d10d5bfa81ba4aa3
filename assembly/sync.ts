// The only file of the kernels that names an atomic. All wasm atomics are sequentially consistent. The callers say which
// role an atomic plays and which partner it pairs with.
import {
  JOB_SPINNING_OFFSET,
  NONE,
  RMW_ADD,
  RMW_AND,
  RMW_OR,
  RMW_XOR,
  TASK_BELL_OFFSET,
  TASK_PARKED_OFFSET,
} from "./layout";

/** Atomic load of a shared word. */
export function loadWord(pointer: usize): u32 {
  return atomic.load<u32>(pointer);
}

/** Atomic store to a shared word. */
export function storeWord(pointer: usize, value: u32): void {
  atomic.store<u32>(pointer, value);
}

/** Atomic compare-exchange. Returns the word's old value. */
export function exchangeIf(pointer: usize, expected: u32, replacement: u32): u32 {
  return atomic.cmpxchg<u32>(pointer, expected, replacement);
}

/** Sets bits of a shared word. */
export function setBits(pointer: usize, bits: u32): void {
  atomic.or<u32>(pointer, bits);
}

/** Sets bits of a shared word. Returns its old value. */
export function setBitsOf(pointer: usize, bits: u32): u32 {
  return atomic.or<u32>(pointer, bits);
}

/** Clears bits of a shared word. */
export function clearBits(pointer: usize, bits: u32): void {
  atomic.and<u32>(pointer, ~bits);
}

/** Adds to a shared word. Returns its old value. */
export function addWord(pointer: usize, value: u32): u32 {
  return atomic.add<u32>(pointer, value);
}

/**
 * Changes a shared word: applies `operation` with `value`. If `compares`, only while the word equals `test`.
 * @param operation RMW_SET … RMW_XOR
 * @returns its old value
 */
export function changeWord(pointer: usize, operation: u32, value: u32, test: u32, compares: bool): u32 {
  if (compares) return atomic.cmpxchg<u32>(pointer, test, combine<u32>(operation, test, value));
  if (operation == RMW_ADD) return atomic.add<u32>(pointer, value);
  if (operation == RMW_OR) return atomic.or<u32>(pointer, value);
  if (operation == RMW_AND) return atomic.and<u32>(pointer, value);
  if (operation == RMW_XOR) return atomic.xor<u32>(pointer, value);
  return atomic.xchg<u32>(pointer, value);
}

/** As changeWord(), for a word of 64 bits. */
export function changeWide(pointer: usize, operation: u32, value: u64, test: u64, compares: bool): u64 {
  if (compares) return atomic.cmpxchg<u64>(pointer, test, combine<u64>(operation, test, value));
  if (operation == RMW_ADD) return atomic.add<u64>(pointer, value);
  if (operation == RMW_OR) return atomic.or<u64>(pointer, value);
  if (operation == RMW_AND) return atomic.and<u64>(pointer, value);
  if (operation == RMW_XOR) return atomic.xor<u64>(pointer, value);
  return atomic.xchg<u64>(pointer, value);
}

/** The value after an operation. */
function combine<T>(operation: u32, old: T, value: T): T {
  if (operation == RMW_ADD) return (old + value) as T;
  if (operation == RMW_OR) return (old | value) as T;
  if (operation == RMW_AND) return (old & value) as T;
  if (operation == RMW_XOR) return (old ^ value) as T;
  return value;
}

/**
 * Wakes the owner of a task slot if it may be asleep. Call it after the store that the owner must see. The first caller
 * takes the flag down. Until the owner arms its bell again it is awake or waking, and looks once more before it sleeps.
 */
export function ring(task: usize): void {
  // SYNC park (look): the caller's store precedes this load, as bellArm()'s store precedes the sleeper's last look. So one
  // of the two sees the other. A notify without a sleeper costs 11-23 ns; it is only paid while the bell is armed.
  if (atomic.load<u32>(task + TASK_PARKED_OFFSET) == 0) return;
  // SYNC park (rung): a wake on another core takes 14 us, so one wake serves all stores until the owner is up. The flag goes
  // down before the ring: if the owner has raised it again meanwhile, a ring still follows.
  atomic.store<u32>(task + TASK_PARKED_OFFSET, 0);
  ringAlways(task);
}

/**
 * Wakes threads of other processes that sleep on a word: atomic.notify only reaches those of its own process. The host
 * supplies it; where all tasks are in one process, it does nothing. As a result of each call that may ring, a wake-up
 * would be lost wherever a caller forgot to look at it.
 */
declare function wake(word: usize): void;

/** Wakes the owner of a task slot, armed or not. */
export function ringAlways(task: usize): void {
  // SYNC park (ring): changes what bellWait() and Futex.wait() compare; pairs with bellArm() and both.
  atomic.add<u32>(task + TASK_BELL_OFFSET, 1);
  atomic.notify(task + TASK_BELL_OFFSET, -1);
  wake(task + TASK_BELL_OFFSET);
}

/**
 * Declares that the task may fall asleep from now on. The caller then looks once more at everything it waits for, and
 * only then calls bellWait() with the result.
 */
export function bellArm(task: usize): u32 {
  const seen = atomic.load<u32>(task + TASK_BELL_OFFSET);
  // SYNC park (arm): pairs with ring().
  atomic.store<u32>(task + TASK_PARKED_OFFSET, 1);
  return seen;
}

/** Declares that the task is awake again. */
export function bellDisarm(task: usize): void {
  atomic.store<u32>(task + TASK_PARKED_OFFSET, 0);
}

/** Sleeps until the bell no longer reads `seen`, or for `milliseconds` (negative: without a limit). Returns WAIT_…. */
export function bellWait(task: usize, seen: u32, milliseconds: f64): u32 {
  // SYNC park (sleep): compares and sleeps in one step; pairs with ringAlways().
  const nanoseconds: i64 = milliseconds < 0 ? -1 : <i64>(milliseconds * 1e6);
  return atomic.wait<i32>(task + TASK_BELL_OFFSET, <i32>seen, nanoseconds);
}

/** Declares that a task begins the long phase of its spin. Returns how many tasks are in that phase now. */
export function spinEnter(job: usize, task: u32, tasks: u32): u32 {
  // SYNC spinners (enter): the count only decides how long to spin. A task owns its bit; the monitor clears a dead task's.
  atomic.or<u32>(job + JOB_SPINNING_OFFSET + ((task >> 5) << 2), 1 << (task & 31));
  let count: u32 = 0;
  for (let word: u32 = 0; word << 5 < tasks; word++) {
    count += popcnt<u32>(atomic.load<u32>(job + JOB_SPINNING_OFFSET + (word << 2)));
  }
  return count;
}

/** Declares that a task ends the phase that spinEnter() began. */
export function spinLeave(job: usize, task: u32): void {
  // SYNC spinners (leave): pairs with spinEnter() of other tasks.
  atomic.and<u32>(job + JOB_SPINNING_OFFSET + ((task >> 5) << 2), ~(1 << (task & 31)));
}

/**
 * Lets time pass: integer divisions, each of which needs the result of the one before it. A loop that polled instead would
 * take execution slots and cache lines from the thread it waits for. Returns the last quotient, so that no compiler drops
 * the divisions.
 */
export function pause(divisions: u32): u32 {
  let quotient = divisions;
  for (; divisions != 0; divisions--) quotient = NONE / (quotient | 1);
  return quotient;
}
