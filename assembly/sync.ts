// The only file of the kernels that names an atomic. All wasm atomics are sequentially consistent; the callers say
// which role each one plays, and which partner it pairs with.
import { JOB_SPINNING_OFFSET, TASK_BELL_OFFSET, TASK_PARKED_OFFSET } from "./layout";

/** Atomic load of a shared word. */
export function loadWord(pointer: usize): u32 {
  return atomic.load<u32>(pointer);
}

/** Atomic store to a shared word. */
export function storeWord(pointer: usize, value: u32): void {
  atomic.store<u32>(pointer, value);
}

/** Atomic compare-exchange: the word's old value. */
export function exchangeIf(pointer: usize, expected: u32, replacement: u32): u32 {
  return atomic.cmpxchg<u32>(pointer, expected, replacement);
}

/** Sets bits of a shared word. */
export function setBits(pointer: usize, bits: u32): void {
  atomic.or<u32>(pointer, bits);
}

/** Clears bits of a shared word. */
export function clearBits(pointer: usize, bits: u32): void {
  atomic.and<u32>(pointer, ~bits);
}

/** Adds to a shared word: its old value. */
export function addWord(pointer: usize, value: u32): u32 {
  return atomic.add<u32>(pointer, value);
}

/** Wakes the owner of a task slot if it may be asleep; call it after the store that it shall see. */
export function ring(task: usize): void {
  // SYNC P (look): the store before this and this load are ordered, as are armBell()'s store and the sleeper's last
  // look: one of the two sees the other. 11-23 ns for a notify without a sleeper are only paid while one is armed.
  if (atomic.load<u32>(task + TASK_PARKED_OFFSET) != 0) ringAlways(task);
}

/** Wakes the owner of a task slot, armed or not. */
export function ringAlways(task: usize): void {
  // SYNC P (ring): changes what bellWait() compares; pairs with armBell() and bellWait().
  atomic.add<u32>(task + TASK_BELL_OFFSET, 1);
  atomic.notify(task + TASK_BELL_OFFSET, -1);
}

/**
 * Says that the task may fall asleep from now on. The caller looks at everything it waits for once more, and only
 * then calls bellWait() with the result.
 */
export function bellArm(task: usize): u32 {
  const seen = atomic.load<u32>(task + TASK_BELL_OFFSET);
  // SYNC P (arm): pairs with ring().
  atomic.store<u32>(task + TASK_PARKED_OFFSET, 1);
  return seen;
}

/** The task is awake again. */
export function bellDisarm(task: usize): void {
  atomic.store<u32>(task + TASK_PARKED_OFFSET, 0);
}

/** Sleeps until the bell no longer reads `seen`, or for `milliseconds` (negative: for ever). Returns WAIT_…. */
export function bellWait(task: usize, seen: u32, milliseconds: f64): u32 {
  // SYNC P (sleep): compares and sleeps in one step; pairs with ringAlways().
  const nanoseconds: i64 = milliseconds < 0 ? -1 : <i64>(milliseconds * 1e6);
  return atomic.wait<i32>(task + TASK_BELL_OFFSET, <i32>seen, nanoseconds);
}

/** Says that a task begins the long phase of its spin; returns how many tasks are in it now. */
export function spinEnter(job: usize, task: u32, tasks: u32): u32 {
  // SYNC S: a count that decides how long to spin, nothing more: each task owns its bit, the monitor clears a dead one's.
  atomic.or<u32>(job + JOB_SPINNING_OFFSET + ((task >> 5) << 2), 1 << (task & 31));
  let count: u32 = 0;
  for (let word: u32 = 0; word << 5 < tasks; word++) {
    count += popcnt<u32>(atomic.load<u32>(job + JOB_SPINNING_OFFSET + (word << 2)));
  }
  return count;
}

/** The end of what spinEnter() began. */
export function spinLeave(job: usize, task: u32): void {
  atomic.and<u32>(job + JOB_SPINNING_OFFSET + ((task >> 5) << 2), ~(1 << (task & 31)));
}
