// The trace of one task: a ring of events in shared memory, of which the last are kept. Nobody makes one unless the job is
// traced: what is recorded on hot paths is recorded by subclasses (pami/traced.ts), so that else nothing is asked there.
import {
  NONE,
  TRACE_CLOCK,
  TRACE_CONTEXT_SHIFT,
  TRACE_EVENTS_OFFSET,
  TRACE_ID_SHIFT,
  TRACE_POSITION_OFFSET,
} from "../../assembly/layout.js";
import type { Memory } from "../kernel/kernel.js";
import { type MemoryMap, traceRing } from "../memory/map.js";
import type { Clock } from "../support/clock.js";

/** Events of a round for which the clock is read once; between two readings they are spread evenly. */
const UNREAD_MAX = 16;
/** A pause is as long as so many of those. */
const PAUSE = 4;
/** Milliseconds an event from which on each has a reading of its own, which takes 30 ns. */
const FINE_MS = 0.001;

export class Tracer {
  readonly #words: Int32Array;
  readonly #floats: Float64Array;
  readonly #clock: Clock;
  readonly #positionWord: number;
  readonly #firstWord: number;
  readonly #mask: number;
  #position = 0;
  /** Whether this round has events. */
  #isOpen = false;
  /** Events since the clock was read, and when that was. */
  #unread = 0;
  #last = 0;
  /** Whether the clock is read for each event: while they are so slow that it does not matter, and what took long does. */
  #isFine = true;

  constructor({ words, buffer }: Memory, map: MemoryMap, task: number, clock: Clock) {
    const ring = traceRing(map, task);
    this.#words = words;
    this.#floats = new Float64Array(buffer, 0, buffer.byteLength >>> 3);
    this.#clock = clock;
    this.#positionWord = (ring + TRACE_POSITION_OFFSET) >>> 2;
    this.#firstWord = (ring + TRACE_EVENTS_OFFSET) >>> 2;
    this.#mask = map.traceEvents - 1;
  }

  /** Records an event, and reads the clock where the last reading does not tell when it was. */
  event(kind: number, context: number, id: number, whom: number, count: number, bytes: number): void {
    if (!this.#isOpen || this.#isFine || this.#unread >= UNREAD_MAX) this.#read(this.#clock.now());
    this.#write(kind | (id << TRACE_ID_SHIFT) | (context << TRACE_CONTEXT_SHIFT), whom, count, bytes);
  }

  /** The event that was recorded last has not happened. */
  retract(): void {
    this.#position = (this.#position - 1) | 0;
    this.#unread--;
    this.#words[this.#positionWord] = this.#position;
  }

  /** Records an event for which the clock has been read anyway. */
  instant(kind: number, count: number, now: number): void {
    this.#read(now);
    this.#write(kind, NONE, count, 0);
    this.#isOpen = false;
  }

  /** A round is over: reads the clock if it had events, so that they lie between two readings. */
  settle(): void {
    if (this.#isOpen) this.#read(this.#clock.now());
    this.#isOpen = false;
  }

  #write(head: number, whom: number, count: number, bytes: number): void {
    const at = this.#firstWord + ((this.#position & this.#mask) << 2);
    const words = this.#words;
    words[at] = head;
    words[at + 1] = whom;
    words[at + 2] = count;
    words[at + 3] = bytes;
    this.#isOpen = true;
    this.#unread++;
    this.#publish();
  }

  #read(now: number): void {
    // Behind a pause too: nobody is in a hurry then.
    if (this.#unread > 0 || !this.#isOpen) this.#isFine = now - this.#last > FINE_MS * Math.max(this.#unread, PAUSE);
    this.#last = now;
    this.#unread = 0;
    const at = this.#firstWord + ((this.#position & this.#mask) << 2);
    this.#words[at] = TRACE_CLOCK;
    this.#floats[(at + 2) >>> 1] = this.#clock.origin + now;
    this.#publish();
  }

  /** Written behind the event: whoever reads meanwhile takes what is before this position. */
  #publish(): void {
    this.#position = (this.#position + 1) | 0;
    this.#words[this.#positionWord] = this.#position;
  }
}
