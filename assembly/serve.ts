// The engine thread: the engine of all tasks of the node, on a thread of its own. In each turn it does all short transfers,
// and one slice of a long one. So a short transfer waits for at most one slice of another task's transfer.
import { chainLeft, chainRun } from "./chain";
import { engineRunTo } from "./engine";
import {
  AWAY_NONE,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  CONTEXT_TASK_OFFSET,
  INJECTION_AHEAD_OFFSET,
  INJECTION_AWAY_OFFSET,
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
  JOB_LOCALS_OFFSET,
  JOB_TASKS_BASE_OFFSET,
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

/** Whether a context and its task are still open. The engine leaves what a closed one has queued. */
function isServed(context: usize): bool {
  // SYNC context-state (look): pairs with announceClose().
  // SYNC task-state (look): pairs with the task's own store and with the monitor's.
  const task = load<usize>(context, CONTEXT_TASK_OFFSET);
  return loadWord(context + CONTEXT_STATE_OFFSET) == CONTEXT_OPEN && loadWord(task + TASK_STATE_OFFSET) == TASK_UP;
}

/** Whether a FIFO has descriptors for the engine. Each turn asks it of every FIFO; the answer is mostly no. */
function hasSome(fifo: usize): bool {
  // SYNC inject (due): pairs with inject().
  if (loadWord(fifo + INJECTION_TAIL_OFFSET) == load<u32>(fifo, INJECTION_HEAD_OFFSET)) return false;
  return load<u32>(fifo, INJECTION_AWAY_OFFSET) == AWAY_NONE;
}

/**
 * Serves one FIFO of a context, or its rget FIFOs (number F): the short transfers, or one slice. Returns not 0 if more may
 * be left.
 */
function serve(job: usize, ordinal: u32, number: u32, isSlice: bool): u32 {
  const context = contextOf(job, ordinal);
  const most = isSlice ? SLICE_BYTES : SHORT_BYTES;
  if (number == load<u32>(job, JOB_FIFOS_OFFSET)) return chainRun(job, context, most);
  const fifo = fifoOf(job, ordinal, number);
  const before = load<u32>(fifo, INJECTION_HEAD_OFFSET);
  // The known descriptors are enough for a slice. Reading the owner's line would make both threads wait for it.
  const ahead: u32 = isSlice ? load<u32>(fifo, INJECTION_AHEAD_OFFSET) : 0;
  // SYNC inject (look): pairs with inject().
  const tail = ahead == 0 ? loadWord(fifo + INJECTION_TAIL_OFFSET) : before + ahead;
  const left = engineRunTo(job, fifo, tail, most);
  if (load<u32>(fifo, INJECTION_HEAD_OFFSET) == before) return left;
  // The owner may wait for a completion, or for room.
  ring(load<usize>(context, CONTEXT_TASK_OFFSET));
  // The owner may have injected more meanwhile: that is faster than a slice.
  return isSlice ? 1 : left;
}

/** Whether a context has descriptors to process. */
function isDue(job: usize, ordinal: u32): bool {
  for (let number: u32 = 0; number < load<u32>(job, JOB_FIFOS_OFFSET); number++) {
    if (hasSome(fifoOf(job, ordinal, number))) return true;
  }
  return chainLeft(contextOf(job, ordinal));
}

/**
 * Acknowledges the notices so far. No transfer is in hand now, so from here on the engine finds closed whatever was closed
 * before those notices.
 */
function acknowledge(job: usize, engine: usize): void {
  const notice = loadWord(engine + TASK_NOTICE_OFFSET);
  if (notice == load<u32>(engine, TASK_SEEN_OFFSET)) return;
  // SYNC quiescence (seen): pairs with hasEngineSeen(). Whatever waits for it looks again when it is notified below.
  storeWord(engine + TASK_SEEN_OFFSET, notice);
  const tasks = load<u32>(job, JOB_LOCALS_OFFSET);
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

/** Stops looking at a context until the next engineCall() for it, unless it has work already. */
function letGo(job: usize, ordinal: u32): void {
  const pointer = job + JOB_DUE_OFFSET + ((ordinal >>> 5) << 2);
  const bit: u32 = 1 << (ordinal & 31);
  // SYNC engine-call (clear): clears first, then looks once more; pairs with engineCall().
  clearBits(pointer, bit);
  if (isServed(contextOf(job, ordinal)) && isDue(job, ordinal)) setBits(pointer, bit);
}

/**
 * Engine thread: one turn. It first processes short transfers in all FIFOs and rget FIFOs of all due contexts. Then it does
 * one slice of a long transfer, of another FIFO each turn. If a single FIFO had long work in the last turn, the first pass
 * skips it. Its later descriptors wait for the long one anyway (`bench -- engine`, puts of 64 KiB).
 * @returns how many contexts have work left, or had when that slice began, or were called for during the turn
 */
export function engineServe(job: usize): u32 {
  const engine = load<usize>(job, JOB_ENGINE_OFFSET);
  acknowledge(job, engine);
  const words = (load<u32>(job, JOB_LOCALS_OFFSET) * load<u32>(job, JOB_CONTEXTS_OFFSET) + 31) >>> 5;
  // Each context has its FIFOs, and then its rget FIFOs.
  const rgetFifos = load<u32>(job, JOB_FIFOS_OFFSET);
  const numbers = rgetFifos + 1;
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
          if (number != rgetFifos && !hasSome(fifoOf(job, ordinal, number))) continue;
          if (serve(job, ordinal, number, false) == 0) continue;
          longs++;
          // The first one after `last`, around the ring of all.
          if (item - last - 1 < next - last - 1) next = item;
        }
        hasLong = true;
      }
      if (!hasLong) letGo(job, ordinal);
    }
  }
  // That FIFO is not alone any more: the short pass, for it as for the others.
  if (isAloneDue && longs != 0) longs += u32(serve(job, last / numbers, last % numbers, false) != 0);
  if (isAloneDue || longs != 0) {
    const ordinal = next / numbers;
    const number = next % numbers;
    store<u32>(engine, next, TASK_TURN_OFFSET);
    const left = serve(job, ordinal, number, true);
    // The rget FIFOs of a context share one allowance: the short work in one has to precede the slice of another.
    store<u32>(engine, u32(left != 0 && longs <= 1 && number != rgetFifos), TASK_ALONE_OFFSET);
    if (left == 0) letGo(job, ordinal);
  }
  return countDue(job, words);
}
