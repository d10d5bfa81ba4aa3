// The trace of one task: a ring of events in shared memory, of which the last are kept. Nobody makes one unless the job is
// traced: what is recorded on hot paths is recorded by subclasses (pami/observed.ts), so that else nothing is asked there.
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
const UNREAD_MAX = 64;
/** A pause is as long as so many of those. */
const PAUSE = 4;
/** Milliseconds an event from which on each has a reading of its own, which takes 39 ns. */
const FINE_MS = 0.001;

/** Less than any count of events. */
const CLOSED = -1;

export class Tracer {
  readonly #words: Int32Array;
  readonly #floats: Float64Array;
  readonly #clock: Clock;
  readonly #positionWord: number;
  readonly #firstWord: number;
  readonly #mask: number;
  #position = 0;
  /** Events until the clock is read again; CLOSED: no round is under way, so at the next one. */
  #readIn = CLOSED;
  /** What that was behind the last reading: 1 while events are so slow that a reading each does not matter. */
  #readingFor = 1;
  /** When the clock was read, in milliseconds. */
  #last = 0;

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
    if (this.#readIn <= 0) this.#read(this.#clock.now());
    this.#readIn--;
    const words = this.#words;
    const position = this.#position;
    const at = this.#firstWord + ((position & this.#mask) << 2);
    words[at] = kind | (id << TRACE_ID_SHIFT) | (context << TRACE_CONTEXT_SHIFT);
    words[at + 1] = whom;
    words[at + 2] = count;
    words[at + 3] = bytes;
    // Written behind it: whoever reads meanwhile takes what is before this position.
    this.#position = (position + 1) | 0;
    words[this.#positionWord] = this.#position;
  }

  /** Records an event for which the clock has been read anyway. */
  instant(kind: number, count: number, now: number): void {
    this.#read(now);
    this.event(kind, 0, 0, NONE, count, 0);
    this.#readIn = CLOSED;
  }

  /** A round is over: reads the clock if it had events, so that they lie between two readings. */
  settle(): void {
    if (this.#readIn === CLOSED) return;
    this.#read(this.#clock.now(), 1);
    this.#readIn = CLOSED;
  }

  /** @param isOver whether a round is: 0 or 1 */
  #read(now: number, isOver = 0): void {
    const isOpen = this.#readIn !== CLOSED;
    const events = isOpen ? this.#readingFor - this.#readIn : PAUSE;
    // Behind a pause too: nobody is in a hurry then.
    const isSlow = now - this.#last > FINE_MS * events;
    this.#readingFor = isSlow ? 1 : UNREAD_MAX;
    this.#readIn = this.#readingFor;
    this.#last = now;
    const position = this.#position;
    const at = this.#firstWord + ((position & this.#mask) << 2);
    this.#words[at] = TRACE_CLOCK;
    this.#words[at + 1] = isOver;
    this.#floats[(at + 2) >>> 1] = this.#clock.origin + now;
    this.#position = (position + 1) | 0;
    this.#words[this.#positionWord] = this.#position;
  }
}
