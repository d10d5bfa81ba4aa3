// The trace of one task: a ring in shared memory that keeps the last events. Only traced jobs have one. On hot paths,
// subclasses record the events (observe/observed.ts), so that an untraced job tests no flag there.
import {
  NONE,
  TRACE_CLOCK,
  TRACE_CONTEXT_SHIFT,
  TRACE_EVENTS_OFFSET,
  TRACE_ID_SHIFT,
  TRACE_POSITION_OFFSET,
  TRACE_UNREAD_MAX,
} from "../../assembly/layout.js";
import type { Memory } from "../kernel/kernel.js";
import { type MemoryMap, traceRing } from "../memory/map.js";
import type { Clock } from "../support/clock.js";

/** A pause counts as this many events. */
const PAUSE = 4;
/** Milliseconds per event from which each event has its own reading of the clock, which takes 39 ns. */
const FINE_MS = 0.001;

/** Value of `#readIn` between two rounds: less than any count of events. */
const CLOSED = -1;

export class Tracer {
  readonly #words: Int32Array;
  readonly #floats: Float64Array;
  readonly #clock: Clock;
  readonly #positionWord: number;
  readonly #firstWord: number;
  readonly #mask: number;
  #position = 0;
  /** Events until the next reading of the clock; CLOSED: no round is under way, so the next event reads it. */
  #readIn = CLOSED;
  /** The value of `#readIn` after the last reading: 1 while events are slow enough for a reading each. */
  #readingFor = 1;
  /** Time of the last reading, in milliseconds. */
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

  /** Records an event. Reads the clock first, if the last reading is too old to date the event. */
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
    // Stored after the event: a concurrent reader takes the events before this position.
    this.#position = (position + 1) | 0;
    words[this.#positionWord] = this.#position;
  }

  /** Records an event at a time that the caller has read. */
  instant(kind: number, count: number, now: number): void {
    this.#read(now);
    this.event(kind, 0, 0, NONE, count, 0);
    this.#readIn = CLOSED;
  }

  /** Ends a round: reads the clock if the round had events, so that they lie between two readings. */
  settle(): void {
    if (this.#readIn === CLOSED) return;
    this.#read(this.#clock.now(), 1);
    this.#readIn = CLOSED;
  }

  /** @param isOver 1: a round is over; else 0 */
  #read(now: number, isOver = 0): void {
    const isOpen = this.#readIn !== CLOSED;
    const events = isOpen ? this.#readingFor - this.#readIn : PAUSE;
    // After a pause too: then the cost of a reading does not matter.
    const isSlow = now - this.#last > FINE_MS * events;
    this.#readingFor = isSlow ? 1 : TRACE_UNREAD_MAX;
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
