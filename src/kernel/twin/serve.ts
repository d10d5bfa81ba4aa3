// Twin of assembly/serve.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import { popcount, type SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Chain } from "./chain.js";
import type { Engine } from "./engine.js";

export function twinServe(
  { words }: Memory,
  sync: SharedAtomics,
  { engineRunTo }: Engine,
  { chainLeft, chainRun }: Chain,
) {
  const { addWord, clearBits, loadWord, ring, setBits, storeWord } = sync;

  function get(pointer: number, offset: number): number {
    return (words[(pointer + offset) >>> 2] as number) >>> 0;
  }

  function contextOf(job: number, ordinal: number): number {
    return get(job, L.JOB_CONTEXTS_BASE_OFFSET) + ordinal * get(job, L.JOB_CONTEXT_SIZE_OFFSET);
  }

  function fifoOf(job: number, ordinal: number, fifo: number): number {
    const number = ordinal * get(job, L.JOB_FIFOS_OFFSET) + fifo;
    return get(job, L.JOB_INJECTION_BASE_OFFSET) + number * get(job, L.JOB_INJECTION_SIZE_OFFSET);
  }

  function isServed(context: number): boolean {
    // SYNC context-state (look)
    // SYNC task-state (look)
    if (loadWord(context + L.CONTEXT_STATE_OFFSET) !== L.CONTEXT_OPEN) return false;
    return loadWord(get(context, L.CONTEXT_TASK_OFFSET) + L.TASK_STATE_OFFSET) === L.TASK_UP;
  }

  function hasSome(fifo: number): boolean {
    // SYNC inject (due)
    if (loadWord(fifo + L.INJECTION_TAIL_OFFSET) >>> 0 === get(fifo, L.INJECTION_HEAD_OFFSET)) return false;
    return get(fifo, L.INJECTION_AWAY_OFFSET) === L.AWAY_NONE;
  }

  function serve(job: number, ordinal: number, number: number, isSlice: boolean): number {
    const context = contextOf(job, ordinal);
    const most = isSlice ? L.SLICE_BYTES : L.SHORT_BYTES;
    if (number === get(job, L.JOB_FIFOS_OFFSET)) return chainRun(job, context, most);
    const fifo = fifoOf(job, ordinal, number);
    const before = get(fifo, L.INJECTION_HEAD_OFFSET);
    const ahead = isSlice ? get(fifo, L.INJECTION_AHEAD_OFFSET) : 0;
    // SYNC inject (look)
    const tail = ahead === 0 ? loadWord(fifo + L.INJECTION_TAIL_OFFSET) : (before + ahead) | 0;
    const left = engineRunTo(job, fifo, tail, most);
    if (get(fifo, L.INJECTION_HEAD_OFFSET) === before) return left;
    ring(get(context, L.CONTEXT_TASK_OFFSET));
    return isSlice ? 1 : left;
  }

  function isDue(job: number, ordinal: number): boolean {
    for (let number = 0; number < get(job, L.JOB_FIFOS_OFFSET); number++)
      if (hasSome(fifoOf(job, ordinal, number))) return true;
    return chainLeft(contextOf(job, ordinal)) !== 0;
  }

  function acknowledge(job: number, engine: number): void {
    const notice = loadWord(engine + L.TASK_NOTICE_OFFSET);
    if (notice >>> 0 === get(engine, L.TASK_SEEN_OFFSET)) return;
    // SYNC quiescence (seen)
    storeWord(engine + L.TASK_SEEN_OFFSET, notice);
    const base = get(job, L.JOB_TASKS_BASE_OFFSET);
    for (let task = 0; task < get(job, L.JOB_LOCALS_OFFSET); task++) {
      addWord(base + task * L.TASK_SIZE + L.TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)
      ring(base + task * L.TASK_SIZE);
    }
  }

  function countDue(job: number, endpoints: number): number {
    let count = 0;
    for (let at = 0; at < endpoints; at += 32) {
      count += popcount(loadWord(job + L.JOB_DUE_OFFSET + (at >>> 3)));
    }
    return count;
  }

  function letGo(job: number, ordinal: number): void {
    const pointer = job + L.JOB_DUE_OFFSET + ((ordinal >>> 5) << 2);
    const bit = 1 << (ordinal & 31);
    // SYNC engine-call (clear)
    clearBits(pointer, bit);
    if (isServed(contextOf(job, ordinal)) && isDue(job, ordinal)) setBits(pointer, bit);
  }

  function engineServe(job: number): number {
    const engine = get(job, L.JOB_ENGINE_OFFSET);
    acknowledge(job, engine);
    const endpoints = get(job, L.JOB_LOCALS_OFFSET) * get(job, L.JOB_CONTEXTS_OFFSET);
    const rgetFifos = get(job, L.JOB_FIFOS_OFFSET);
    const numbers = rgetFifos + 1;
    const last = get(engine, L.TASK_TURN_OFFSET);
    const alone = get(engine, L.TASK_ALONE_OFFSET) !== 0 ? last : undefined;
    let isAloneDue = false;
    let longs = 0;
    let next = last;
    for (let at = 0; at < endpoints; at += 32) {
      // SYNC engine-call (look)
      for (let bits = loadWord(job + L.JOB_DUE_OFFSET + (at >>> 3)); bits !== 0; bits &= bits - 1) {
        const ordinal = at + 31 - Math.clz32(bits & -bits);
        const served = isServed(contextOf(job, ordinal));
        let hasLong = false;
        for (let number = 0; served && number < numbers; number++) {
          const item = ordinal * numbers + number;
          if (item === alone) isAloneDue = true;
          else {
            if (number !== rgetFifos && !hasSome(fifoOf(job, ordinal, number))) continue;
            if (serve(job, ordinal, number, false) === 0) continue;
            longs++;
            if ((item - last - 1) >>> 0 < (next - last - 1) >>> 0) next = item;
          }
          hasLong = true;
        }
        if (!hasLong) letGo(job, ordinal);
      }
    }
    if (isAloneDue && longs !== 0 && serve(job, Math.floor(last / numbers), last % numbers, false) !== 0) longs++;
    if (isAloneDue || longs !== 0) {
      const ordinal = Math.floor(next / numbers);
      const number = next % numbers;
      words[(engine + L.TASK_TURN_OFFSET) >>> 2] = next;
      const left = serve(job, ordinal, number, true);
      words[(engine + L.TASK_ALONE_OFFSET) >>> 2] = left !== 0 && longs <= 1 && number !== rgetFifos ? 1 : 0;
      if (left === 0) letGo(job, ordinal);
    }
    return countDue(job, endpoints);
  }

  return { engineServe };
}
