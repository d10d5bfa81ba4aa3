// What the explorer's threads share, behind the job's memory in the same linear memory, and the hook before an access.
// Whoever has the turn owns all of it; handing the turn over orders it. So every word is plain, but `turn` and `asleep`.
//
// ╒═════════════ control words ════════════════════════════════════════════════════════════════════════════════════╕
//   0  turn      number of the thread that runs                                 (atomic, a cache line of its own)
//  16  asleep[4] 1: the thread waits for its turn in the operating system       (atomic)
//  32  steps     steps of this run so far
//  33  stop      step at which the hook calls the turnstile: the plan's next, or the limit of steps
//  34  enabled   bit 24 + i: thread i could go on; bit 29 + i: but only because its time is up
//  35  place     place in the plan of its next switch
//  36  planned   switches in the plan
//  37  failed    1: the run is over, everybody unwinds
//  38  scenario  number of the scenario
//  39  salt      0: who goes on after a thread that can't is the first that can; else it is drawn from this
//  40  listed    words in `dirty`
//  41  news      1: a word that is not watched has turned out to be shared
//  42  mortal    bit i: thread i may be killed
//  43  endless   bit i: thread i has no end of its own
//  44  over      1: all others are through: those unwind
//  48  state[4]  READY, BLOCKED, DONE, DEAD of each thread
//  52  bell[4]   word that a BLOCKED thread waits for; -1 - i: the end of thread i
//  56  fired[4]  1: its wait ended by its timeout
//  64  plan[]    two words each: step, thread (or KILL)
// 192  error[]   length and characters of what went wrong
// 704  notes[4][] of each thread: how many, and what it noted
// then log[]     one word a step, see LOG
//      flags[]   one half-word for each word of the job's memory, see FLAG
//      dirty[]   indices of the words that were written in any run: these are restored before the next one
// ╘════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
import type { Memory } from "../../src/kernel/kernel.js";
import { type MemoryMap, memoryMap } from "../../src/memory/map.js";

/** What has room for the largest node. */
const room = memoryMap({
  tasks: 4,
  contexts: 2,
  laneBytes: 64,
  heapBytes: 20 * 4096,
  regions: 6,
  fifos: 2,
  slots: 4,
  engine: true,
});
/** Of the scenarios with an engine thread. */
export const map: MemoryMap = { ...room, locals: 3, jobTasks: 3, tasks: 3 };
/** Of the others: all lies where it lies there, and each task is its own engine. */
export const inlineMap: MemoryMap = { ...map, engine: false };
/** Tasks of a job that has more of them than a node has slots. */
const MANY = 99;
/** Of those about slots for tasks of other nodes: locals, slots in all, tasks of the job. */
const NODES = [
  [1, 3, 3],
  [2, 3, 3],
  [1, 3, MANY],
  [2, 3, MANY],
  [2, 4, MANY],
] as const;
export const nodeMaps: readonly MemoryMap[] = NODES.map(([locals, tasks, jobTasks]) => ({
  ...room,
  locals,
  tasks,
  jobTasks,
}));
/** Words of the job's memory: an index has 16 bits. */
export const JOB_WORDS = map.end >>> 2;
export const THREADS_MAX = 3;
/** Steps of one run at the most: more is a livelock. */
export const STEPS_MAX = 20_000;
export const NOTES_MAX = 63;
export const PLAN_MAX = 64;
export const ERROR_MAX = 511;
/** SLICE_BYTES of what is explored: with that of what ships, no transfer of these small heaps would be of two slices. */
export const SLICE = 16;
/** And SHORT_BYTES, which is less. */
export const SHORT = 8;
/**
 * Attempts to take the heap's lock in what is explored, of the kernels and of a region: a thread that holds the lock and has
 * lost the turn must not make a livelock.
 */
export const BUSY = 2;

const CONTROL = Math.ceil(map.end / 65536) * 16384;
/** Indices of the control words. */
export const AT = {
  turn: CONTROL,
  asleep: CONTROL + 16,
  steps: CONTROL + 32,
  stop: CONTROL + 33,
  enabled: CONTROL + 34,
  place: CONTROL + 35,
  planned: CONTROL + 36,
  failed: CONTROL + 37,
  scenario: CONTROL + 38,
  salt: CONTROL + 39,
  listed: CONTROL + 40,
  news: CONTROL + 41,
  mortal: CONTROL + 42,
  endless: CONTROL + 43,
  over: CONTROL + 44,
  state: CONTROL + 48,
  bell: CONTROL + 52,
  fired: CONTROL + 56,
  plan: CONTROL + 64,
  error: CONTROL + 192,
  notes: CONTROL + 704,
  log: CONTROL + 1024,
} as const;
/** Byte offset of the flags. */
export const FLAGS_OFFSET = 4 * (AT.log + STEPS_MAX);
export const DIRTY = (FLAGS_OFFSET >>> 2) + Math.ceil(JOB_WORDS / 2);
export const MEMORY_PAGES = Math.ceil((4 * (DIRTY + JOB_WORDS)) / 65536);

/** Kinds of steps. Of an access: bit 0 it writes, bit 1 it is atomic. */
export const KIND = {
  load: 0,
  store: 1,
  atomicLoad: 2,
  atomicStore: 3,
  /** The twin's plain look at a word that others write: it orders nothing, and nothing is built on it. */
  hint: 6,
  atomicChange: 7,
  wait: 10,
  notify: 8,
  begin: 12,
  end: 13,
  join: 14,
} as const;

/** A step in the log: index of the word, then these. */
export const LOG = {
  wordMask: 0xffff,
  kindShift: 16,
  threadShift: 20,
  /** The thread could not go on by itself: to go on with another is no preemption. */
  forced: 1 << 22,
  /** Another thread went on instead; the access comes in a later step. */
  switched: 1 << 23,
  /** Bit 24 + i: thread i could have gone on. */
  enabledShift: 24,
  /** The access of an earlier step that was switched away from. */
  resumed: 1 << 28,
  /** Bit 29 + i: thread i sleeps, and could go on only because its time is up. */
  sleepingShift: 29,
} as const;

/** Flags of a word: bit i, thread i has read it; bit 4 + i, written it; thread 3 is setup and check. */
export const FLAG = { writtenShift: 4, watched: 256 } as const;

/** The hook before an access, for code in TypeScript; hook.wat.ts is the same for the kernels. */
export class Hook {
  /** A thread's first access of its kind to a word. */
  onFirst: (kind: number, word: number) => void = () => {};
  /** The plan says that something happens before this step. */
  onStop: () => void = () => {};
  readonly #words: Int32Array;
  readonly #flags: Uint16Array;
  readonly #me: number;
  readonly #watched: number;

  /** @param me number of the thread; THREADS_MAX: one that runs outside of schedules */
  constructor({ words, buffer }: Memory, me: number) {
    this.#words = words;
    this.#flags = new Uint16Array(buffer, FLAGS_OFFSET, JOB_WORDS);
    this.#me = me;
    this.#watched = me === THREADS_MAX ? 0 : FLAG.watched;
  }

  /** Returns the index of the word. */
  access(kind: number, word: number): number {
    if (word >= JOB_WORDS) this.onFirst(kind, word);
    const flags = this.#flags[word] as number;
    if ((flags & (1 << (this.#me + 4 * (kind & 1)))) === 0) this.onFirst(kind, word);
    if ((flags & this.#watched) !== 0) this.step(kind, word);
    return word;
  }

  /** Logs a step, and lets the plan have its way. */
  step(kind: number, word: number): void {
    const words = this.#words;
    const step = words[AT.steps] as number;
    words[AT.log + step] =
      word | (kind << LOG.kindShift) | (this.#me << LOG.threadShift) | (words[AT.enabled] as number);
    words[AT.steps] = step + 1;
    if (step === words[AT.stop]) this.onStop();
  }
}

/** Marks the first access of its kind by a thread, and lists words that are written for the first time. */
export function markFirst({ words, buffer }: Memory, me: number, kind: number, word: number): void {
  if (word >= JOB_WORDS) throw new Error(`an access to byte ${4 * word}, behind the job's memory`);
  const flags = new Uint16Array(buffer, FLAGS_OFFSET, JOB_WORDS);
  const before = flags[word] as number;
  if ((kind & 1) === 1 && ((before >>> FLAG.writtenShift) & 15) === 0) {
    const listed = words[AT.listed] as number;
    words[DIRTY + listed] = word;
    words[AT.listed] = listed + 1;
  }
  const after = before | (1 << (me + 4 * (kind & 1)));
  flags[word] = after;
  if ((after & FLAG.watched) === 0 && isShared(after)) words[AT.news] = 1;
}

/** Whether several threads come to a word, and one of them writes it: only then does it matter who comes first. */
export function isShared(flags: number): boolean {
  const threads = (flags | (flags >>> FLAG.writtenShift)) & 7;
  return (threads & (threads - 1)) !== 0 && ((flags >>> FLAG.writtenShift) & 7) !== 0;
}
