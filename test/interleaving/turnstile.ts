// Several real threads of which one runs at a time. A thread that comes to an access asks whether it goes on; a plan
// says at which step which other thread goes on instead. Every step is logged, so a run can be told and repeated.
//
// All words but TURN and the sleepers are plain: whoever has the turn owns them, and handing it over orders them.
// ╒═════════════ control words ════════════════════════════════════════════════════════════════════════════════════╕
//   0  turn      number of the thread that runs                                        (atomic, its own cache line)
//  32  steps     steps of this run so far
//  33  next      place in the plan of the next switch
//  34  planned   switches in the plan
//  35  failed    1: the run is over, everybody unwinds
//  64  state[8]  READY, BLOCKED, DONE, DEAD of each thread
//  72  bell[8]   pointer that a BLOCKED thread waits for
//  80  timed[8]  1: its wait has a timeout, which may fire at any step
//  88  fired[8]  1: its timeout has fired
//  96  asleep[8] 1: it waits for its turn in the operating system                      (atomic)
// 128  plan[64]  two words each: step, thread (KILL set: the thread that runs dies there)
// 256  log       three words for each step: thread | enabled << 8 | forced << 16, kind, pointer
// ╘════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
// Held here: the explorer puts its own in the place of the global ones, for the twin.
const { load, store, wait, notify } = Atomics;

const TURN = 0;
const STEPS = 32;
const NEXT = 33;
const PLANNED = 34;
const FAILED = 35;
const STATE = 64;
const BELL = 72;
const TIMED = 80;
const FIRED = 88;
const ASLEEP = 96;
const PLAN = 128;
const LOG = 256;
const LOG_WORDS = 3;

const READY = 0;
const BLOCKED = 1;
const DONE = 2;
const DEAD = 3;

/** Set in a plan's thread: the thread that runs dies instead of going on. */
export const KILL = 64;
/** Steps of one run at the most: more is a livelock. */
export const STEPS_MAX = 20_000;
export const CONTROL_WORDS = LOG + LOG_WORDS * STEPS_MAX;
/** Looks at the turn before the thread sleeps: a hand-over between two cores takes some hundred. */
const SPINS = 20_000;

/** Kinds of steps beside those of instrument.ts. */
export const STEP = { wait: 8, notify: 9, end: 10 } as const;

/** Thrown through a thread whose run is over: it was killed, or another thread failed. */
export class Unwind extends Error {}

export interface Switch {
  readonly step: number;
  readonly thread: number;
}

export interface Step {
  readonly thread: number;
  /** Bit i: thread i could go on here. */
  readonly enabled: number;
  /** The thread could not go on itself: to go on with another is no preemption. */
  readonly forced: boolean;
  readonly kind: number;
  readonly pointer: number;
}

export class Turnstile {
  /** Called with each access, in order, by the thread that makes it. */
  onAccess: (kind: number, pointer: number) => void = () => {};
  readonly me: number;
  readonly #count: number;
  readonly #words: Int32Array<SharedArrayBuffer>;

  constructor(words: Int32Array<SharedArrayBuffer>, me: number, count: number) {
    this.#words = words;
    this.me = me;
    this.#count = count;
  }

  /** The driver, thread 0, begins a run. */
  begin(plan: readonly Switch[]): void {
    const words = this.#words;
    words.fill(0, STEPS, ASLEEP);
    words[PLANNED] = plan.length;
    plan.forEach(({ step, thread }, i) => {
      words[PLAN + 2 * i] = step;
      words[PLAN + 2 * i + 1] = thread;
    });
  }

  get steps(): number {
    return this.#words[STEPS] as number;
  }

  get failed(): boolean {
    return this.#words[FAILED] !== 0;
  }

  fail(): void {
    this.#words[FAILED] = 1;
  }

  step(index: number): Step {
    const at = LOG + LOG_WORDS * index;
    const [who = 0, kind = 0, pointer = 0] = this.#words.subarray(at, at + LOG_WORDS);
    return {
      thread: who & 255,
      enabled: (who >>> 8) & 255,
      forced: who >>> 16 !== 0,
      kind,
      pointer: pointer >>> 0,
    };
  }

  /** Word of the log that says who ran and who could have: cheaper than step(). */
  who(index: number): number {
    return this.#words[LOG + LOG_WORDS * index] as number;
  }

  /** Before an access: goes on, or lets others go on first. */
  access(kind: number, pointer: number): void {
    this.#pass(kind, pointer, false);
    this.onAccess(kind, pointer);
  }

  /** `memory.atomic.wait32`: 0 woken, 1 not equal, 2 timed out. */
  wait(pointer: number, equal: () => boolean, timed: boolean): number {
    const words = this.#words;
    this.#pass(STEP.wait, pointer, false);
    this.onAccess(STEP.wait, pointer);
    if (!equal()) return 1;
    words[STATE + this.me] = BLOCKED;
    words[BELL + this.me] = pointer;
    words[TIMED + this.me] = timed ? 1 : 0;
    words[FIRED + this.me] = 0;
    // Goes on once somebody has made it READY, or the plan has let its timeout fire.
    this.#pass(STEP.wait, pointer, true);
    words[STATE + this.me] = READY;
    return words[FIRED + this.me] === 0 ? 0 : 2;
  }

  notify(pointer: number): number {
    const words = this.#words;
    this.#pass(STEP.notify, pointer, false);
    let woken = 0;
    for (let thread = 0; thread < this.#count; thread++) {
      if (words[STATE + thread] !== BLOCKED || words[BELL + thread] !== (pointer | 0)) continue;
      words[STATE + thread] = READY;
      woken++;
    }
    return woken;
  }

  /** The thread's program is over; returns when the run is. Only the driver comes back from it before the next run. */
  end(dead: boolean): void {
    this.#words[STATE + this.me] = dead ? DEAD : DONE;
    if (this.failed) this.#handTo(0);
    else this.#pass(STEP.end, 0, true);
  }

  /** The driver's: every thread that has not ended yet unwinds, after a failure; else nothing is left to do. */
  finish(): void {
    this.await();
    for (let thread = 1; thread < this.#count; thread++) {
      while ((this.#words[STATE + thread] as number) < DONE) {
        this.#handTo(thread);
        this.await();
      }
    }
  }

  /** After an error at the end of a program: the driver goes on. */
  leave(): void {
    this.#handTo(0);
  }

  /** Waits until it has the turn. */
  await(): void {
    const words = this.#words;
    for (let i = 0; i < SPINS; i++) if (load(words, TURN) === this.me) return;
    store(words, ASLEEP + this.me, 1);
    for (;;) {
      const turn = load(words, TURN);
      if (turn === this.me) break;
      wait(words, TURN, turn);
    }
    store(words, ASLEEP + this.me, 0);
  }

  #handTo(thread: number): void {
    const words = this.#words;
    if (thread === this.me) return;
    store(words, TURN, thread);
    if (load(words, ASLEEP + thread) !== 0) notify(words, TURN);
  }

  /** Bits of the threads that can go on; one that sleeps with a timeout can, by its timeout. */
  #enabled(): number {
    const words = this.#words;
    let enabled = 0;
    for (let thread = 0; thread < this.#count; thread++) {
      const state = words[STATE + thread];
      if (state === READY || (state === BLOCKED && words[TIMED + thread] !== 0)) enabled |= 1 << thread;
    }
    return enabled;
  }

  /** One step: looks into the plan, and logs. `forced`: this thread can't go on by itself. */
  #pass(kind: number, pointer: number, forced: boolean): void {
    const words = this.#words;
    const { me } = this;
    let stays = !forced;
    for (;;) {
      if (words[FAILED] !== 0) {
        if (kind !== STEP.end) throw new Unwind("another thread failed");
        this.#handTo(0);
        return;
      }
      const step = words[STEPS] as number;
      const next = words[NEXT] as number;
      let to = stays ? me : -1;
      const enabled = this.#enabled();
      if (next < (words[PLANNED] as number) && words[PLAN + 2 * next] === step) {
        const planned = words[PLAN + 2 * next + 1] as number;
        words[NEXT] = next + 1;
        if ((planned & KILL) !== 0) {
          this.#log(step, enabled, stays, kind, pointer);
          throw new Unwind(`killed at step ${step}`);
        }
        to = planned;
      }
      if (to === -1) {
        // The first that is ready; else a timeout has to fire; else all is over, or nobody can go on.
        for (let thread = this.#count - 1; thread >= 0; thread--) {
          if (words[STATE + thread] === READY) to = thread;
        }
        for (let thread = 0; to === -1 && thread < this.#count; thread++) {
          if (words[STATE + thread] === BLOCKED && words[TIMED + thread] !== 0) to = thread;
        }
      }
      if (to === -1) {
        const blocked = [...words.subarray(STATE, STATE + this.#count)].includes(BLOCKED);
        if (blocked) {
          this.fail();
          throw new Error("deadlock: every thread that is left sleeps");
        }
        this.#handTo(0);
        return;
      }
      this.#log(step, enabled, stays, kind, pointer);
      if (to !== me) {
        if (words[STATE + to] === BLOCKED) {
          words[STATE + to] = READY;
          words[FIRED + to] = 1;
        }
        this.#handTo(to);
        if (kind === STEP.end) return;
        this.await();
        if (forced && words[STATE + me] === READY) return;
        stays = !forced;
        continue;
      }
      return;
    }
  }

  #log(step: number, enabled: number, stays: boolean, kind: number, pointer: number): void {
    const words = this.#words;
    if (step >= STEPS_MAX) {
      this.fail();
      throw new Error(`livelock: ${STEPS_MAX} steps`);
    }
    const at = LOG + LOG_WORDS * step;
    words[at] = this.me | (enabled << 8) | (stays ? 0 : 1 << 16);
    words[at + 1] = kind;
    words[at + 2] = pointer;
    words[STEPS] = step + 1;
  }
}
