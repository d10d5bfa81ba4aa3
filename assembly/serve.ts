// The engine thread: the engine of all tasks of the node, on a thread of its own. It does what is short at once, wherever it
// is, and of what is long one slice in each turn, so that nothing short waits behind more than one slice of another's.
import { chainLeft, chainRun } from "./chain";
import { engineRunTo } from "./engine";
import {
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  CONTEXT_TASK_OFFSET,
  INJECTION_AHEAD_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_TAIL_OFFSET,
  JOB_CONTEXT_SIZE_OFFSET,
  JOB_CONTEXTS_BASE_OFFSET,
  JOB_CONTEXTS_OFFSET,
  JOB_DUE_OFFSET,
  JOB_ENGINE_OFFSET,
  JOB_FIFOS_OFFSET,
  JOB_INJECTION_BASE_OFFSET,
  JOB_INJECTION_SIZE_OFFSET,
  JOB_TASKS_BASE_OFFSET,
  JOB_TASKS_OFFSET,
  NONE,
  SHORT_BYTES,
  SLICE_BYTES,
  TASK_ALONE_OFFSET,
  TASK_NOTICE_OFFSET,
  TASK_SEEN_OFFSET,
  TASK_SIZE,
  TASK_STATE_OFFSET,
  TASK_TURN_OFFSET,
  TASK_UP,
} from "./layout";
import { addWord, clearBits, loadWord, ring, setBits, storeWord } from "./sync";

/** Pointer to a context block. */
function contextOf(job: usize, ordinal: u32): usize {
  return load<usize>(job, JOB_CONTEXTS_BASE_OFFSET) + ordinal * load<u32>(job, JOB_CONTEXT_SIZE_OFFSET);
}

/** Pointer to an injection FIFO. */
function fifoOf(job: usize, ordinal: u32, fifo: u32): usize {
  const number = ordinal * load<u32>(job, JOB_FIFOS_OFFSET) + fifo;
  return load<usize>(job, JOB_INJECTION_BASE_OFFSET) + number * load<u32>(job, JOB_INJECTION_SIZE_OFFSET);
}

/** Whether somebody is there for whom to work: what a context or a task has left behind is not done any more. */
function isServed(context: usize): bool {
  // SYNC context-state (look): pairs with announceClose().
  // SYNC task-state (look): pairs with the task's own store and with the monitor's.
  const task = load<usize>(context, CONTEXT_TASK_OFFSET);
  return loadWord(context + CONTEXT_STATE_OFFSET) == CONTEXT_OPEN && loadWord(task + TASK_STATE_OFFSET) == TASK_UP;
}

/** Whether a FIFO has anything to process: asked of each in each turn, mostly in vain. */
function hasSome(fifo: usize): bool {
  // SYNC inject (due): pairs with inject().
  return loadWord(fifo + INJECTION_TAIL_OFFSET) != load<u32>(fifo, INJECTION_HEAD_OFFSET);
}

/** One FIFO of a context, or with number F its windows: what is short, or a slice. Returns what may be left. */
function serve(job: usize, ordinal: u32, number: u32, isSlice: bool): u32 {
  const context = contextOf(job, ordinal);
  const most = isSlice ? SLICE_BYTES : SHORT_BYTES;
  if (number == load<u32>(job, JOB_FIFOS_OFFSET)) return chainRun(job, context, most);
  const fifo = fifoOf(job, ordinal, number);
  const before = load<u32>(fifo, INJECTION_HEAD_OFFSET);
  // A slice has enough of what it knows: a look at its owner's line would have both wait.
  const ahead: u32 = isSlice ? load<u32>(fifo, INJECTION_AHEAD_OFFSET) : 0;
  // SYNC inject (look): pairs with inject().
  const tail = ahead == 0 ? loadWord(fifo + INJECTION_TAIL_OFFSET) : before + ahead;
  const left = engineRunTo(job, fifo, tail, most);
  if (load<u32>(fifo, INJECTION_HEAD_OFFSET) == before) return left;
  // Its owner may wait for a completion, or for room.
  ring(load<usize>(context, CONTEXT_TASK_OFFSET));
  // Meanwhile there may be more: a slice takes longer than it takes to inject.
  return isSlice ? 1 : left;
}

/** Whether a context has anything to process. */
function isDue(job: usize, ordinal: u32): bool {
  for (let number: u32 = 0; number < load<u32>(job, JOB_FIFOS_OFFSET); number++) {
    if (hasSome(fifoOf(job, ordinal, number))) return true;
  }
  return chainLeft(contextOf(job, ordinal));
}

/**
 * Takes note of what the tasks have told of: nothing is in hand now, so what was closed, or whoever has ended, before they
 * told it is found so from here on.
 */
function acknowledge(job: usize, engine: usize): void {
  const notice = loadWord(engine + TASK_NOTICE_OFFSET);
  if (notice == load<u32>(engine, TASK_SEEN_OFFSET)) return;
  // SYNC quiescence (seen): pairs with hasEngineSeen(). Whatever waits for it looks again when it is notified below.
  storeWord(engine + TASK_SEEN_OFFSET, notice);
  const tasks = load<u32>(job, JOB_TASKS_OFFSET);
  for (let task: u32 = 0; task < tasks; task++) {
    const slot = load<usize>(job, JOB_TASKS_BASE_OFFSET) + task * TASK_SIZE;
    addWord(slot + TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)
    ring(slot);
  }
}

/** How many contexts are due. */
function countDue(job: usize, words: u32): u32 {
  let count: u32 = 0;
  for (let word: u32 = 0; word < words; word++) count += popcnt<u32>(loadWord(job + JOB_DUE_OFFSET + (word << 2)));
  return count;
}

/** Has a context looked at no more until somebody calls for it, unless there is something already. */
function letGo(job: usize, ordinal: u32): void {
  const pointer = job + JOB_DUE_OFFSET + ((ordinal >>> 5) << 2);
  const bit: u32 = 1 << (ordinal & 31);
  // SYNC engine-call (clear): cleared first, then looked at once more; pairs with engineCall().
  clearBits(pointer, bit);
  if (isServed(contextOf(job, ordinal)) && isDue(job, ordinal)) setBits(pointer, bit);
}

/**
 * Engine thread: one turn. What is short is processed in all FIFOs and windows of all contexts that are due; then one slice of
 * something long, of each of those in turn. A FIFO that alone was long in the last turn is not looked at twice: what is behind
 * something long waits for it (`bench:engine`, puts of 64 KiB).
 * @returns how many contexts have something left, or had when that slice began; whoever was called for in the turn is one
 */
export function engineServe(job: usize): u32 {
  const engine = load<usize>(job, JOB_ENGINE_OFFSET);
  acknowledge(job, engine);
  const words = (load<u32>(job, JOB_TASKS_OFFSET) * load<u32>(job, JOB_CONTEXTS_OFFSET) + 31) >>> 5;
  // Of each context its FIFOs, and then its windows.
  const windows = load<u32>(job, JOB_FIFOS_OFFSET);
  const numbers = windows + 1;
  const last = load<u32>(engine, TASK_TURN_OFFSET);
  const alone: u32 = load<u32>(engine, TASK_ALONE_OFFSET) != 0 ? last : NONE;
  let isAloneDue = false;
  let longs: u32 = 0;
  let next = last;
  for (let word: u32 = 0; word < words; word++) {
    // SYNC engine-call (look): pairs with engineCall().
    for (let bits = loadWord(job + JOB_DUE_OFFSET + (word << 2)); bits != 0; bits &= bits - 1) {
      const ordinal = (word << 5) + ctz<u32>(bits);
      const served = isServed(contextOf(job, ordinal));
      let hasLong = false;
      for (let number: u32 = 0; served && number < numbers; number++) {
        const item = ordinal * numbers + number;
        if (item == alone) isAloneDue = true;
        else {
          if (number != windows && !hasSome(fifoOf(job, ordinal, number))) continue;
          if (serve(job, ordinal, number, false) == 0) continue;
          longs++;
          // The first behind `last`, around the ring of all.
          if (item - last - 1 < next - last - 1) next = item;
        }
        hasLong = true;
      }
      if (!hasLong) letGo(job, ordinal);
    }
  }
  // It is not alone any more: looked at as the others were.
  if (isAloneDue && longs != 0) longs += u32(serve(job, last / numbers, last % numbers, false) != 0);
  if (isAloneDue || longs != 0) {
    const ordinal = next / numbers;
    const number = next % numbers;
    store<u32>(engine, next, TASK_TURN_OFFSET);
    const left = serve(job, ordinal, number, true);
    // Windows share what they may move: what is short in one has to be done before the slice of another.
    store<u32>(engine, u32(left != 0 && longs <= 1 && number != windows), TASK_ALONE_OFFSET);
    if (left == 0) letGo(job, ordinal);
  }
  return countDue(job, words);
}
