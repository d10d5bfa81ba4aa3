// Real threads of which one runs at a time. A thread logs each access to a watched word (control.ts); where the plan
// says so, another one goes on instead. A run can be told from its log, and repeated from its plan.
import type { Memory } from "../../src/kernel/kernel.js";
import { AT, ERROR_MAX, type Hook, KIND, LOG, STEPS_MAX } from "./control.js";

const READY = 0;
const BLOCKED = 1;
const DONE = 2;
const DEAD = 3;

/** What wait() returns where its time was up. */
export const TIMED_OUT = 2;
/** In the place of a thread in a plan: the thread that runs dies instead of going on. */
export const KILL = 7;
/** Thrown through a thread whose run is over: it was killed, or the run failed. */
export class Unwind extends Error {}

export interface Switch {
  readonly step: number;
  readonly thread: number;
}

export class Turnstile {
  readonly me: number;
  /** Looks at the turn before the thread sleeps. */
  readonly #spins: number;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #hook: Hook;
  /** Killed, and on its way out: whatever catches what was thrown through it comes no further than the next step. */
  #dying = false;
  /** Was killed: from then on, another one goes on in its place, which does not die. */
  #isDead = false;

  constructor({ words }: Memory, hook: Hook, me: number, spins: number) {
    this.#words = words;
    this.#hook = hook;
    this.me = me;
    this.#spins = spins;
    hook.onStop = () => this.#obey();
  }

  // ── The driver's ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Begins a run of `count` threads; whoever goes first is a choice of the plan. */
  begin(count: number, plan: readonly number[], salt: number): void {
    const words = this.#words;
    words.fill(0, AT.steps, AT.scenario);
    words[AT.salt] = salt;
    words.fill(0, AT.state, AT.plan);
    words[AT.over] = 0;
    words[AT.error] = 0;
    for (let thread = 0; thread < count; thread++) words[AT.notes + 64 * thread] = 0;
    for (let thread = count; thread < 4; thread++) words[AT.state + thread] = DONE;
    words[AT.enabled] = ((1 << count) - 1) << LOG.enabledShift;
    words[AT.planned] = plan.length >>> 1;
    for (let i = 0; i < plan.length; i++) words[AT.plan + i] = plan[i] as number;
    this.#aim();
    const first = this.#choose(KIND.begin, 0);
    if (first === 0) return;
    this.#handTo(first);
    this.await();
  }

  /** After the driver's own program, when nobody can go on: ends the threads that are left. */
  finish(): void {
    const words = this.#words;
    for (;;) {
      const thread = words.subarray(AT.state, AT.state + 4).findIndex((state) => state < DONE);
      if (thread === -1) return;
      words[AT.over] = 1;
      this.#handTo(thread);
      this.await();
    }
  }

  get steps(): number {
    return this.#words[AT.steps] as number;
  }

  // ── Every thread's ────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether the run is over for good, whatever its threads have left to do. */
  get failed(): boolean {
    return this.#words[AT.failed] !== 0;
  }

  /** The first error of a run stays. */
  fail(error: unknown): void {
    const words = this.#words;
    words[AT.failed] = 1;
    if (words[AT.error] !== 0) return;
    const [first = error] = error instanceof AggregateError ? error.errors : [];
    const text = String(first instanceof Error ? (first.stack ?? first.message) : first).slice(0, ERROR_MAX);
    for (let i = 0; i < text.length; i++) words[AT.error + 1 + i] = text.charCodeAt(i);
    words[AT.error] = text.length;
  }

  get error(): string | undefined {
    const { [AT.error]: length = 0 } = this.#words;
    return length === 0 ? undefined : String.fromCharCode(...this.#words.subarray(AT.error + 1, AT.error + 1 + length));
  }

  /** `memory.atomic.wait32`: 0 woken, 1 not equal, 2 timed out. */
  wait(word: number, expected: number, timed: boolean): number {
    const words = this.#words;
    this.#hook.step(KIND.wait, word);
    if (words[word] !== expected) return 1;
    this.#block(word, KIND.wait, word, timed);
    return words[AT.fired + this.me] === 0 ? 0 : TIMED_OUT;
  }

  notify(word: number): number {
    this.#hook.step(KIND.notify, word);
    return this.#wake(word);
  }

  /** Sleeps until a thread has ended, by itself or by being killed. */
  awaitEnd(thread: number): void {
    const words = this.#words;
    if ((words[AT.state + thread] as number) < DONE) this.#block(-1 - thread, KIND.join, thread, false);
    this.#hook.step(KIND.join, thread);
  }

  /** Whether a thread has ended, by itself or by being killed. No step: a thread may ask that now and then. */
  hasEnded(thread: number): boolean {
    return (this.#words[AT.state + thread] as number) >= DONE;
  }

  /** Whether a thread was killed. */
  isDead(thread: number): boolean {
    return this.#words[AT.state + thread] === DEAD;
  }

  /** Whether this thread was killed, by the schedule and not because all is over; then it can go on with something else. */
  survive(): boolean {
    const wasKilled = this.#dying && !this.failed;
    if (this.#dying) this.#aim();
    this.#dying = false;
    this.#isDead ||= wasKilled;
    return wasKilled;
  }

  /** The thread's program is over. Only the driver's thread has to wait then. */
  end(dead: boolean): void {
    const words = this.#words;
    const { me } = this;
    this.survive();
    this.#isDead = false;
    const isOver = words[AT.over] !== 0;
    words[AT.state + me] = dead && !isOver ? DEAD : DONE;
    this.#disable();
    this.#wake(-1 - me);
    const to = words[AT.failed] === 0 && !isOver ? this.#choose(KIND.end, 0) : 0;
    this.#fire(to);
    this.#handTo(to);
    if (me === 0) this.await();
  }

  /** Waits until it has the turn. */
  await(): void {
    const words = this.#words;
    const { me } = this;
    // Once the turn has gone on to a third one it will not come back soon, and the third needs the core.
    const holder = Atomics.load(words, AT.turn);
    for (let i = 0; i < this.#spins; i++) {
      const turn = Atomics.load(words, AT.turn);
      if (turn === me) return;
      if (turn !== holder) break;
    }
    Atomics.store(words, AT.asleep + me, 1);
    for (;;) {
      const turn = Atomics.load(words, AT.turn);
      if (turn === me) break;
      Atomics.wait(words, AT.turn, turn);
    }
    Atomics.store(words, AT.asleep + me, 0);
  }

  // ── Turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The hook has come to the step that the plan speaks of: it is logged, and not done yet. */
  #obey(): void {
    const words = this.#words;
    const step = words[AT.stop] as number;
    if (step >= STEPS_MAX - 1) this.#tooLong();
    const entry = words[AT.log + step] as number;
    if (this.#dying) this.#die(step, entry);
    const to = this.#planned();
    if (to === KILL) {
      if (this.#isDead || ((words[AT.mortal] as number) & (1 << this.me)) === 0) return;
      this.#die(step, entry);
    }
    if (to === this.me || !this.#can(to)) return;
    words[AT.log + step] = entry | LOG.switched;
    this.#yieldTo(to);
    this.#log((entry & ((1 << LOG.enabledShift) - 1)) | LOG.resumed | (words[AT.enabled] as number));
  }

  #tooLong(): never {
    this.fail(`livelock: ${STEPS_MAX} steps`);
    throw new Unwind();
  }

  #die(step: number, entry: number): never {
    this.#dying = true;
    this.#words[AT.log + step] = entry | LOG.switched;
    this.#words[AT.stop] = step + 1;
    throw new Unwind();
  }

  /** Takes the plan's next switch: its thread. */
  #planned(): number {
    const words = this.#words;
    const place = words[AT.place] as number;
    words[AT.place] = place + 1;
    this.#aim();
    return words[AT.plan + 2 * place + 1] as number;
  }

  /** The hook stops at the plan's next switch. */
  #aim(): void {
    const words = this.#words;
    const place = words[AT.place] as number;
    words[AT.stop] = place < (words[AT.planned] as number) ? (words[AT.plan + 2 * place] as number) : STEPS_MAX - 1;
  }

  /** Logs a step at which nothing is switched; what the plan says of it is void. */
  #log(entry: number): void {
    const words = this.#words;
    const step = words[AT.steps] as number;
    words[AT.log + step] = entry;
    words[AT.steps] = step + 1;
    if (step === words[AT.stop] && step < STEPS_MAX - 1) this.#planned();
  }

  /** The thread can't go on: who does? -1: nobody can, all is over. */
  #choose(kind: number, word: number): number {
    const words = this.#words;
    const step = words[AT.steps] as number;
    // The hook stops at the last step, unless that is this one.
    if (step >= STEPS_MAX - 1 && kind !== KIND.end) this.#tooLong();
    const enabled = words[AT.enabled] as number;
    words[AT.log + step] =
      word | (kind << LOG.kindShift) | (this.me << LOG.threadShift) | LOG.forced | LOG.switched | enabled;
    words[AT.steps] = step + 1;
    if (step === words[AT.stop] && step < STEPS_MAX - 1) {
      const to = this.#planned();
      // A thread that can't go on does not die either. The bit of KILL would be that of a sleeper.
      if (to !== KILL && this.#can(to)) return to;
    }
    const salt = words[AT.salt] as number;
    const first = salt === 0 ? 0 : Math.imul(salt, step + 1) >>> 30;
    for (let i = 0; i < 4; i++) {
      const thread = (first + i) & 3;
      if (this.#can(thread) && words[AT.state + thread] === READY) return thread;
    }
    // By its timeout, if no thread can go on otherwise: each in its turn, so that none sleeps for ever.
    for (let i = 1; i <= 4; i++) if (this.#can((this.me + i) & 3)) return (this.me + i) & 3;
    const endless = words[AT.endless] as number;
    const isStuck = (state: number, thread: number) => state === BLOCKED && (endless & (1 << thread)) === 0;
    if (words.subarray(AT.state, AT.state + 4).some(isStuck)) {
      this.fail("deadlock: every thread that is left sleeps");
      if (kind !== KIND.end) throw new Unwind();
    }
    return 0;
  }

  #can(thread: number): boolean {
    return (((this.#words[AT.enabled] as number) >>> LOG.enabledShift) & (1 << thread)) !== 0;
  }

  #enable(thread: number): void {
    const words = this.#words;
    const awake = (words[AT.enabled] as number) & ~(1 << (LOG.sleepingShift + thread));
    words[AT.enabled] = awake | (1 << (LOG.enabledShift + thread));
  }

  #disable(): void {
    this.#words[AT.enabled] = (this.#words[AT.enabled] as number) & ~(1 << (LOG.enabledShift + this.me));
  }

  #block(bell: number, kind: number, word: number, timed: boolean): void {
    const words = this.#words;
    const { me } = this;
    if (this.#dying) throw new Unwind();
    words[AT.state + me] = BLOCKED;
    words[AT.bell + me] = bell;
    words[AT.fired + me] = 0;
    if (timed) words[AT.enabled] = (words[AT.enabled] as number) | (1 << (LOG.sleepingShift + me));
    else this.#disable();
    const to = this.#choose(kind, word);
    if (to === me) this.#fire(me);
    else this.#yieldTo(to);
  }

  #wake(bell: number): number {
    const words = this.#words;
    let woken = 0;
    for (let thread = 0; thread < 4; thread++) {
      if (words[AT.state + thread] !== BLOCKED || words[AT.bell + thread] !== bell) continue;
      words[AT.state + thread] = READY;
      this.#enable(thread);
      woken++;
    }
    return woken;
  }

  /** A sleeper goes on because its time is up. */
  #fire(thread: number): void {
    const words = this.#words;
    if (words[AT.state + thread] !== BLOCKED) return;
    words[AT.state + thread] = READY;
    words[AT.fired + thread] = 1;
    this.#enable(thread);
  }

  #yieldTo(thread: number): void {
    this.#fire(thread);
    this.#handTo(thread);
    this.await();
    if (this.#words[AT.failed] !== 0 || this.#words[AT.over] !== 0) throw new Unwind();
  }

  #handTo(thread: number): void {
    const words = this.#words;
    if (thread === this.me) return;
    Atomics.store(words, AT.turn, thread);
    if (Atomics.load(words, AT.asleep + thread) !== 0) Atomics.notify(words, AT.turn);
  }
}
