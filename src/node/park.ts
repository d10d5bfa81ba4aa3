// How a thread waits: a bounded spin, then a sleep on its task's bell. Each thread has one Parker.

import * as L from "../../assembly/layout.js";
import { bellWaitAsync } from "../kernel/atomics.js";
import type { Bell, Kernel, Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { taskSlot } from "../memory/map.js";
import type { Clock } from "../support/clock.js";
import { isNode, mayBlock, nextTurn } from "../support/host.js";
import type { Keepalive } from "../support/keepalive.js";
import { after } from "../support/timers.js";
import { sleepOn } from "./bell.js";
import { Doorbell } from "./doorbell.js";
import type { Spins } from "./spins.js";
import type { Tracer } from "./tracer.js";

/** A wait: its condition, and what other threads see of it. */
export interface Awaited {
  /** The kind of wait, WAIT_…, and its context's block, where other threads see it while this one sleeps. */
  readonly kind: number;
  readonly block: number;
  /** Makes progress, with at most `rounds` looks. Returns whether the wait is over. */
  poll(rounds: number): boolean;
  /** Set by poll() if it found something. */
  found: boolean;
  /**
   * The last look before falling asleep: arms the bell, then looks once more at all that other threads change. Returns whether
   * there is anything to do; the bell may be armed then, or not.
   */
  lastLook(): boolean;
  /** At 0, messages alone may be there already: the last look finds these. */
  readonly activity: { readonly busy: number };
  /** Whether the wait includes an event for which no thread rings, so that sleeps must be short. */
  restless(): boolean;
  /** The record of the spins of this kind of wait. */
  readonly spins: Spins;
  /** Of waitAsync(): whether it may block the thread now, see #nap(). Undefined: never. */
  readonly mayNap?: (() => boolean) | undefined;
  /** Debug mode: called once the wait has lasted for `ParkerWitness.patience`. */
  readonly lasts?: (() => void) | undefined;
}

/** Observes a Parker, for traces and debug mode. */
export interface ParkerWitness {
  readonly tracer: Tracer | undefined;
  /** Debug mode: milliseconds after which a wait is reported; else Infinity. */
  readonly patience: number;
  /** Debug mode: called after the thread has slept, during which it did no work. */
  readonly slept?: () => void;
}

/**
 * Looks in one call into the kernel while spinning: 2.1 µs with nothing to find (twin 7.3; Zen 5). Reading the clock and
 * calling the condition take less than a twentieth of that.
 */
const SPIN_ROUNDS = 512;
/**
 * Looks of the first phase of the spin, each a call of advance(): some 8 µs. A loop of such calls finds an answer sooner
 * than rounds within the kernel, which take the cache line from its writer. 8 B there and back: 0.22 instead of 0.33 µs.
 */
const SHORT_LOOKS = 256;
/** Looks of that phase between two readings of the clock. A reading costs as much as five looks. */
const CLOCK_LOOKS = 16;
/** Milliseconds between two readings of the clock, some 2 µs of work apart, that show that the thread lost its core. */
const PREEMPTED_MS = 0.5;
/**
 * Polls in a row that may find something before the spin ends, since the caller may have a timeout. Reading the clock after
 * each made a hop in Chromium 125 ns instead of 82 (performance.now() costs more there than in Node.js).
 */
const BUSY_POLLS = 256;
/** Milliseconds: rarer events are not worth a spin. */
const BUSY_MS = 0.2;
/** Milliseconds of a sleep while the wait includes an event for which no thread rings. */
export const RESTLESS_MS = 1;
/** Milliseconds for which an asynchronous wait blocks its thread at once, and how often in a row. */
const NAP_MS = 10;
const NAPS_MAX = 20;
/** Turns of the event loop last so many times as long as a spin: a datagram to another process and back takes some 90 µs. */
const TURNS_A_SPIN = 4;
/**
 * Looks for datagrams of such a spin, in which one is a turn. A turn takes 5 µs, and brings a datagram 6 µs later than a call to
 * receive it, which takes 2 µs. Of a ping-pong, with every look a turn, half a round trip took 22 instead of 16.5 µs.
 */
const LOOKS_A_TURN = 32;
/**
 * Short sleeps in a row, in a crowded job, after which a thread looks for what gives its core away: koffi takes some 15 ms to
 * load.
 */
const CROWDED_SLEEPS = 16;
/**
 * Milliseconds: a longer sleep would have come behind gifts all the same. In a pipeline of 250 chunks, four threads loaded
 * koffi for nothing: a fifteenth of its processor time.
 */
const CROWDED_SLEEP_MS = 1;
/** As SHORT_LOOKS, where the core can be given away. */
const CROWDED_LOOKS = 8;
/** As BUSY_MS, where the core can be given away: in a crowded job, others take their turns before an event comes. */
const CROWDED_BUSY_MS = 4;
/** Looks between two of those gifts. */
const YIELD_ROUNDS = 8;
/** Milliseconds for which a thread gives its core away before it sleeps, in spins: the others take turns. */
const YIELD_SPINS = 20;
/** Such gifts in one spin, whatever is found, since the caller may have a timeout. */
const YIELDS_MAX = 4096;
/**
 * Milliseconds for which others may have the core meanwhile: more, and one of them computes. At 1 ms, calls of 0.2 ms by four
 * workers on two cores made the caller's event loop turn each 4 ms; with 0.3 ms it turns each 1 ms.
 */
const SLICE_MS = 0.3;
/**
 * Milliseconds without gifts after such a slice, in which this thread's event loop stood still. Twice as many after the
 * next one, at most PAUSE_MAX_MS, and half as many after each event that came in time.
 */
const PAUSE_MS = 1;
const PAUSE_MAX_MS = 1000;
/** Turns of the event loop are counted modulo 2^31. */
const TURNS_MASK = 0x7fffffff;
/** Milliseconds after which a thread that finds something at each look yields to its event loop. */
const TURN_MS = 4;

/** What the waits of a thread are made of. */
export interface ParkerParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  /** The task's slot. */
  readonly task: number;
  /** Processors that tasks of this host may use. */
  readonly cores: number;
  readonly clock: Clock;
  readonly keepalive: Keepalive;
  readonly witness: ParkerWitness;
  /** The reason why no event comes while this thread blocks; empty if events do. */
  readonly whyPrivate?: string | undefined;
  /** Takes events that have come; undefined: only a turn of the event loop brings them. */
  readonly receive?: (() => void) | undefined;
}

export class Parker {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  /** Words that other threads write too, read plainly: the bell, which the sleep compares atomically, and the flag. */
  readonly #hintWords: Int32Array;
  /** Places of the bell and of its flag in those words. */
  readonly #bellAt: number;
  readonly #parkedAt: number;
  readonly #map: MemoryMap;
  readonly #task: number;
  readonly #slot: number;
  readonly #cores: number;
  readonly #clock: Clock;
  /** The clock's: see stampOf(). */
  readonly #origin: number;
  readonly #keepalive: Keepalive;
  readonly #witness: ParkerWitness;
  /** Whether this thread may block in wait(). */
  readonly mayBlock: boolean;
  /** Why no event comes while this thread blocks; empty if events do. */
  readonly whyPrivate: string;
  readonly #receive: (() => void) | undefined;
  /** Whether only this task rings its bell: no other task has this memory. */
  readonly #isAlone: boolean;
  /** Ends the asynchronous sleep, if only this task rings. */
  #wake: (() => void) | undefined;
  /** The turn of the event loop that spinning waits of this thread share; whether it was asked for; and what ends it. */
  #turning: Promise<void> | undefined;
  #isTurnAsked = false;
  #endTurn = (): void => {};
  /** Whether this thread sleeps by Atomics.waitAsync where the host has it, and not by a doorbell. */
  readonly #isBellAsync: boolean;
  /** The one asynchronous sleep of this thread. All its asynchronous waits share it. */
  #asleep: Promise<unknown> | undefined;
  /** Waits in that sleep. */
  sleepers = 0;
  #doorbell: Bell | undefined;
  /** Time of the last known turn of the event loop. */
  #turn = 0;
  /** Known turns of the event loop, modulo 2^31. There may have been more. */
  turns = 0;
  /** Looks of the first phase of a spin, each a call of advance(). */
  shortLooks = SHORT_LOOKS;
  /** Gives the core to another thread. Looked for once it would pay. */
  #yield: (() => void) | undefined;
  /** Milliseconds: rarer events are not worth a spin. */
  #busy = BUSY_MS;
  /** Short sleeps in a row. */
  #crowdedSleeps = 0;
  /** Milliseconds of the last pause without gifts, and its end. */
  #pause = PAUSE_MS;
  #pauseEnd = 0;
  /** End of the last sleep; NaN: a spin has been won since. */
  #awake = Number.NaN;
  /** Milliseconds of the last sleep. */
  #slept = 0;
  /** Whether the last look before a sleep has found something. */
  #hasFound = false;

  constructor(parts: ParkerParts) {
    const { kernel, memory, map, task, cores, clock, keepalive, witness, whyPrivate = "", receive } = parts;
    this.#kernel = kernel;
    this.#memory = memory;
    this.#hintWords = memory.words;
    this.#map = map;
    this.#task = task;
    this.#slot = taskSlot(map, task);
    this.#bellAt = (this.#slot + L.TASK_BELL_OFFSET) >>> 2;
    this.#parkedAt = (this.#slot + L.TASK_PARKED_OFFSET) >>> 2;
    this.#cores = cores;
    this.#clock = clock;
    this.#origin = clock.origin;
    this.#keepalive = keepalive;
    this.#witness = witness;
    this.whyPrivate = whyPrivate;
    this.#receive = receive;
    this.#isAlone = whyPrivate !== "" && map.locals === 1;
    this.#isBellAsync = !this.#isAlone && memory.futex === undefined;
    this.mayBlock = mayBlock();
  }

  /** Wakes every wait of this thread, for events that arise on the thread itself. */
  ring(): void {
    this.#kernel.ring(this.#slot);
    this.#wake?.();
    this.#endTurn();
  }

  /**
   * Waits, blocking the thread.
   * @param timeout milliseconds, Infinity for none
   * @param spin milliseconds of spinning before it sleeps
   * @param looked whether the caller has looked `shortLooks` times already, see mayLook()
   * @returns whether the wait is over; false: the timeout has passed
   */
  wait(awaited: Awaited, timeout: number, spin: number, looked = false): boolean {
    const deadline = timeout === Number.POSITIVE_INFINITY ? timeout : this.#clock.now() + timeout;
    let toldAt = this.#patienceEnds();
    let hasLooked = looked;
    for (;;) {
      const most = Math.min(spin, timeout);
      if (hasLooked ? this.#spinOn(awaited, most) : this.spin(awaited, most)) return true;
      hasLooked = false;
      if (this.#sleep(awaited, Math.min(deadline, toldAt)) && this.#awake >= toldAt) {
        toldAt = Number.POSITIVE_INFINITY;
        awaited.lasts?.();
      }
      if (awaited.poll(1)) return true;
      if (deadline !== Number.POSITIVE_INFINITY && this.#clock.now() >= deadline) return false;
    }
  }

  /**
   * As wait(), without blocking the thread. To end it early, make `isStopped` true, and ring. While nothing comes it enters as
   * few functions as can be: a program that waits now and then is interpreted. `bench -- counts` counts them.
   * @param spun whether the caller has called spin() for it already
   */
  async waitAsync(
    awaited: Awaited,
    timeout: number,
    spin: number,
    isStopped: () => boolean,
    spun = false,
  ): Promise<boolean> {
    const deadline = timeout === Number.POSITIVE_INFINITY ? timeout : this.#clock.now() + timeout;
    const most = spin < timeout ? spin : timeout;
    /** Set at the first sleep and cleared after the last, so that no timer work delays a woken wait. */
    let stopTimer: (() => void) | undefined;
    const { patience } = this.#witness;
    const stopTelling = patience < timeout ? after(patience, () => awaited.lasts?.()) : undefined;
    /** Whether the event loop has just had a turn. */
    let hasSlept = false;
    try {
      for (let hasSpun = spun; ; hasSpun = false) {
        if (!hasSpun && this.spin(awaited, most)) {
          hasSlept = false;
          return true;
        }
        if (this.#isAlone && this.#mayTurn(awaited.spins, spin) && (await this.#spinTurns(awaited, most))) return true;
        if (awaited.mayNap !== undefined && (await this.#nap(awaited, awaited.mayNap, deadline))) return true;
        if (deadline !== Number.POSITIVE_INFINITY) {
          const left = deadline - this.#clock.now();
          if (left <= 0) return false;
          stopTimer ??= after(left, () => {
            stopTimer = undefined;
            this.ring();
          });
        }
        // No further promise between the ring and the caller: with three more, a call on one core took 59.5 µs, not 56.5.
        let rung: Promise<unknown> | undefined;
        // Read before the arming: a ring in between only ends the sleep at once.
        const seen = this.#hintWords[this.#bellAt] as number;
        this.#hasFound = awaited.lastLook();
        if (!this.#hasFound) {
          // The one sleep of this thread, shared by all of its waits.
          if (this.#asleep === undefined) {
            const asleep = this.#isBellAsync ? bellWaitAsync(this.#memory, this.#slot, seen) : null;
            this.#asleep = asleep === null ? this.#bell(seen) : asleep;
          }
          rung = this.#asleep;
        }
        hasSlept = rung !== undefined && !this.#isAlone;
        if (rung === undefined) {
          if (this.sleepers === 0) this.#disarm();
          // There is work already, or the wait is stopped; other microtasks of the caller run first.
          await undefined;
        } else {
          this.sleepers++;
          this.#keepalive.begin();
          const start = this.#clock.now();
          this.#fallsAsleep(awaited, start);
          const stopRestless = awaited.restless() ? after(RESTLESS_MS, () => this.ring()) : undefined;
          await rung;
          stopRestless?.();
          if (this.#asleep === rung) this.#asleep = undefined;
          this.#keepalive.end();
          const now = this.#woke(awaited, start);
          // If only this task rings, a microtask of another wait may have rung: then the event loop had no turn.
          if (hasSlept) {
            this.#turn = now;
            this.turns = (this.turns + 1) & TURNS_MASK;
          }
          // A wait that has fallen asleep since keeps the flag up. As #disarm(), written out.
          if (--this.sleepers === 0 && this.#hintWords[this.#parkedAt] !== 0) this.#kernel.bellDisarm(this.#slot);
        }
        if (awaited.poll(1)) return true;
        if (isStopped()) return false;
        const turn = hasSlept ? undefined : this.turn();
        if (turn !== undefined) await turn;
      }
    } finally {
      stopTimer?.();
      stopTelling?.();
      const turn = hasSlept ? undefined : this.turn();
      if (turn !== undefined) await turn;
    }
  }

  /**
   * Sleeps by blocking the thread, a short while at a time, since a blocked thread wakes sooner than one whose event loop has
   * to turn. Before each sleep the loop turns: so timers, I/O and what handlers have left to microtasks come first, and are
   * late by NAP_MS at most.
   * @returns whether the wait is over; false: it goes on
   */
  async #nap(awaited: Awaited, mayNap: () => boolean, deadline: number): Promise<boolean> {
    for (let naps = 0; naps < NAPS_MAX; naps++) {
      if (!mayNap()) return false;
      await this.#letLoopTurn();
      if (!mayNap()) return false;
      this.#sleep(awaited, deadline, NAP_MS);
      if (awaited.poll(1)) return true;
      if (this.#clock.now() >= deadline) return false;
    }
    return false;
  }

  /** Sleeps, blocking the thread, until `end` or for `longest` milliseconds. @returns false: there is work already */
  #sleep(awaited: Awaited, end: number, longest = Number.POSITIVE_INFINITY): boolean {
    // Read before the arming: a ring in between only ends the sleep at once.
    const seen = this.#hintWords[this.#bellAt] as number;
    const hasWork = awaited.lastLook();
    this.#hasFound = hasWork;
    if (!hasWork) {
      const now = this.#clock.now();
      const most = Math.min(end - now, awaited.restless() ? RESTLESS_MS : longest);
      this.#fallsAsleep(awaited, now);
      if (most > 0) sleepOn(this.#kernel, this.#memory, this.#slot, seen, most);
      this.#woke(awaited, now);
    }
    // An asynchronous wait of this thread may still be asleep on the same bell.
    if (this.sleepers === 0) this.#disarm();
    return !hasWork;
  }

  /** Whether to let the event loop turn before a sleep. Only where it brings the events of other tasks, and costs 1 µs. */
  #mayTurn(spins: Spins, spin: number): boolean {
    return this.#isAlone && spin > 0 && this.#cores > 1 && isNode() && spins.pays(this.#clock) && this.#isBusy();
  }

  /** Looks for packets for a while: one then needs not wake this thread. Returns whether the wait is over. */
  async #spinTurns(awaited: Awaited, milliseconds: number): Promise<boolean> {
    const { spins } = awaited;
    let last = this.#clock.now();
    const end = last + TURNS_A_SPIN * milliseconds;
    let preempted = false;
    for (let looks = 0; last < end && !preempted; looks++) {
      if (this.#receive === undefined || looks % LOOKS_A_TURN === 0) await this.#turnOrRing();
      else {
        this.#receive();
        // What the caller, or the agent, has left to microtasks.
        await undefined;
      }
      const now = this.#clock.now();
      if (awaited.poll(1)) {
        this.won(spins);
        return true;
      }
      preempted = now - last > PREEMPTED_MS;
      last = now;
    }
    this.#lost(spins, last, preempted);
    return false;
  }

  /** Resolves after a turn of the event loop, or when the bell rings within it: a packet then needs not wait for its end. */
  #turnOrRing(): Promise<void> {
    this.#turning ??= new Promise((resolve) => {
      this.#endTurn = () => {
        this.#turning = undefined;
        resolve();
      };
      if (this.#isTurnAsked) return;
      this.#isTurnAsked = true;
      void nextTurn().then(() => {
        this.#isTurnAsked = false;
        this.#hadTurn(this.#clock.now());
        this.#endTurn();
      });
    });
    return this.#turning;
  }

  /** Lets timers, I/O and messages run, if the thread has only run microtasks for TURN_MS: each wait found work at once. */
  turn(): Promise<void> | undefined {
    return this.#clock.now() - this.#turn > TURN_MS ? this.#letLoopTurn() : undefined;
  }

  async #letLoopTurn(): Promise<void> {
    await nextTurn();
    this.#hadTurn(this.#clock.now());
  }

  #hadTurn(now: number): void {
    this.#turn = now;
    this.turns = (this.turns + 1) & TURNS_MASK;
  }

  /** Takes the flag down, unless the thread that rang has done so. Only this thread raises it. */
  #disarm(): void {
    if (this.#hintWords[this.#parkedAt] !== 0) this.#kernel.bellDisarm(this.#slot);
  }

  /** Resolves when the bell rings; undefined: it has rung already. */
  #bell(seen: number): Promise<unknown> | undefined {
    if (this.#isAlone) {
      return new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const { futex, words } = this.#memory;
    this.#doorbell ??= futex?.doorbell?.(this.#slot) ?? new Doorbell(words, this.#bellAt);
    return this.#doorbell.wait(seen);
  }

  /** Releases the doorbell. The task leaves: no wait is left. */
  close(): void {
    this.#doorbell?.close();
    this.#memory.futex?.close();
  }

  /**
   * Whether a wait may begin with `shortLooks` looks. Not on one core, where no event comes while this thread spins, nor
   * after lost spins. Reads no clock while spins are won.
   * @param found whether an event has come just now
   */
  mayLook(spins: Spins, spin: number, found: boolean): boolean {
    return (
      spin > 0 &&
      (this.#cores > 1 || (this.#yield !== undefined && this.#clock.now() >= this.#pauseEnd)) &&
      this.whyPrivate === "" &&
      spins.pays(this.#clock) &&
      (found || this.#isBusy())
    );
  }

  /** Notes that a wait was over at its first look, so that the next event may come soon, too. */
  stayedAwake(): void {
    this.#awake = Number.NaN;
  }

  /** Notes that the awaited event came while the thread spun. */
  won(spins: Spins): void {
    this.#awake = Number.NaN;
    spins.won();
    this.#addTo(this.#slot + L.TASK_SPINS_WON_OFFSET, 1);
  }

  /** Spins for a while. Returns whether the wait is over. */
  spin(awaited: Awaited, milliseconds: number): boolean {
    // #isBusy(), which mayLook() asks, written out: a wait that falls asleep at once enters no more functions.
    const isIdle =
      !Number.isNaN(this.#awake) && (this.#slept >= this.#busy || this.#clock.now() - this.#awake >= this.#busy);
    // Then the last look before the sleep is enough, unless the one before it has found something.
    if (isIdle && !this.#hasFound && awaited.activity.busy === 0) return false;
    awaited.found = false;
    // An event that is there already does not predict when the next one comes. If the woken thread took the
    // sender's core, the sender finds its answer so. Calls, both sides asleep, callee blocking: 180 → 50 µs without a spin.
    if (awaited.poll(1)) return true;
    if (isIdle && !awaited.found) return false;
    if (!this.mayLook(awaited.spins, milliseconds, awaited.found)) return false;
    awaited.found = false;
    let end = 0;
    for (let i = 0; i < this.shortLooks; i++) {
      if (awaited.poll(1)) {
        this.won(awaited.spins);
        return true;
      }
      if (i % CLOCK_LOOKS !== CLOCK_LOOKS - 1) continue;
      // If this thread is its own engine, a look may move a slice: 256 KiB in 5 µs.
      const now = this.#clock.now();
      if (end === 0) end = now + milliseconds;
      else if (now >= end) break;
    }
    return this.#spinOn(awaited, milliseconds);
  }

  /** The long phase of a spin, after `shortLooks` looks. Returns whether the wait is over. */
  #spinOn(awaited: Awaited, milliseconds: number): boolean {
    const { job, tasks } = this.#map;
    const { spins } = awaited;
    let won = awaited.found;
    let last = this.#clock.now();
    const yieldCore = this.#yield;
    if (yieldCore !== undefined && last >= this.#pauseEnd) return this.#yieldOn(awaited, yieldCore, last, milliseconds);
    // Spinning pays only while no other task waits for the core. Otherwise it keeps that task from answering.
    if (this.#kernel.spinEnter(job, this.#task, tasks) > this.#cores) {
      this.#kernel.spinLeave(job, this.#task);
      if (won) this.won(spins);
      else this.#lost(spins, last, false);
      return false;
    }
    let end = last + milliseconds;
    let over = false;
    let preempted = false;
    for (let busy = 0; busy < BUSY_POLLS; ) {
      awaited.found = false;
      over = awaited.poll(SPIN_ROUNDS);
      if (over) break;
      if (awaited.found) {
        won = true;
        busy++;
        end = Number.NaN;
        continue;
      }
      const now = this.#clock.now();
      // If no handler ran in this interval, only a loss of the core explains its length.
      preempted = now - last > PREEMPTED_MS && !Number.isNaN(end);
      last = now;
      if (now >= end || preempted) break;
      // An event has come: the spin begins anew.
      if (Number.isNaN(end)) end = now + milliseconds;
    }
    this.#kernel.spinLeave(job, this.#task);
    if ((over || won) && !preempted) this.won(spins);
    else this.#lost(spins, last, preempted);
    return over;
  }

  /**
   * As #spinOn(), in a job with more tasks than cores: gives the core away between looks, because the event comes only once
   * another task has run. Eight tasks on two cores pass a barrier so without a sleep.
   */
  #yieldOn(awaited: Awaited, yieldCore: () => void, start: number, milliseconds: number): boolean {
    const { spins } = awaited;
    const most = YIELD_SPINS * milliseconds;
    let last = start;
    let end = last + most;
    let won = awaited.found;
    let preempted = false;
    for (let turns = 0; turns < YIELDS_MAX && last < end && !preempted; turns++) {
      awaited.found = false;
      if (awaited.poll(YIELD_ROUNDS)) {
        this.#pause = Math.max(PAUSE_MS, this.#pause / 2);
        this.won(spins);
        return true;
      }
      won ||= awaited.found;
      const before = this.#clock.now();
      if (awaited.found) end = before + most;
      yieldCore();
      last = this.#clock.now();
      // A thread that computes has had the core meanwhile: a sleeper would have got it back at once.
      preempted = last - before > SLICE_MS;
    }
    if (preempted) {
      this.#pause = Math.min(PAUSE_MAX_MS, 2 * this.#pause);
      this.#pauseEnd = last + this.#pause;
    }
    if (won && !preempted) this.won(spins);
    else this.#lost(spins, last, preempted);
    return false;
  }

  /** Notes that a spin was in vain, or kept another thread from its core. */
  #lost(spins: Spins, now: number, preempted: boolean): void {
    spins.lost(now, preempted);
    this.#addTo(this.#slot + L.TASK_SPINS_LOST_OFFSET, 1);
  }

  /**
   * Whether to expect the awaited event soon: not if the last event came after a long sleep, or long ago. A spin then may
   * keep the core from the thread just woken, because Linux likes to put both on one core. bench -- calls, both sides asleep:
   * 256 µs became 40 where the callee blocks, 352 became 79 where neither side blocks.
   */
  #isBusy(): boolean {
    if (Number.isNaN(this.#awake)) return true;
    return this.#slept < this.#busy && this.#clock.now() - this.#awake < this.#busy;
  }

  /** Notes in shared memory that the thread falls asleep, and in which wait. Only this thread writes these words. */
  #fallsAsleep(awaited: Awaited, now: number): void {
    const { words } = this.#memory;
    const sleeps = (this.#slot + L.TASK_SLEEPS_OFFSET) >>> 2;
    const asleep = (awaited.block + L.CONTEXT_ASLEEP_OFFSET + 4 * awaited.kind) >>> 2;
    words[(this.#slot + L.TASK_SINCE_OFFSET) >>> 2] = this.#origin + now;
    words[sleeps] = (words[sleeps] as number) + 1;
    words[asleep] = (words[asleep] as number) + 1;
    this.#witness.tracer?.instant(L.TRACE_PARK, awaited.kind, now);
    if (this.#slept > CROWDED_SLEEP_MS) this.#crowdedSleeps = 0;
    const { findYield } = this.#memory;
    if (findYield === undefined || ++this.#crowdedSleeps < CROWDED_SLEEPS) return;
    this.#memory.findYield = undefined;
    this.#yield = findYield();
    if (this.#yield === undefined) return;
    this.shortLooks = CROWDED_LOOKS;
    this.#busy = CROWDED_BUSY_MS;
  }

  /** Notes that a sleep is over, and how long it was. Returns the current time. */
  #woke(awaited: Awaited, start: number): number {
    const now = this.#clock.now();
    this.#awake = now;
    this.#slept = now - start;
    const { words } = this.#memory;
    const asleep = (awaited.block + L.CONTEXT_ASLEEP_OFFSET + 4 * awaited.kind) >>> 2;
    words[(this.#slot + L.TASK_SINCE_OFFSET) >>> 2] = this.#origin + now;
    words[asleep] = (words[asleep] as number) - 1;
    this.#witness.tracer?.instant(L.TRACE_WAKE, awaited.kind, now);
    this.#witness.slept?.();
    return now;
  }

  /** Adds to a word that only this thread writes. */
  #addTo(pointer: number, value: number): void {
    const { words } = this.#memory;
    words[pointer >>> 2] = (words[pointer >>> 2] as number) + value;
  }

  #patienceEnds(): number {
    const { patience } = this.#witness;
    return patience === Number.POSITIVE_INFINITY ? patience : this.#clock.now() + patience;
  }
}
