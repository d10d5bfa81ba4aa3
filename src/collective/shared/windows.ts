// Long arrays that lie outside of the job's memory, in one memory: each member copies its array there segment by segment, into
// one of two windows, from which other members read it. So memory is bounded.
//
//   fill    segment k into window k mod 2, once all have read what it had: segment k - 2
//   reduce  this member's slice of segment k, once all have filled it, into one of two places, as above
//   take    what this member gets of segment k, once all have reduced their slices; or filled it, where nothing is reduced
//
// How far each member is stands in its slot. A member whose array is in the job's memory fills nothing, and counts alike.
import { MEMBER_CUT_OFFSET, MEMBER_FILLED_OFFSET, MEMBER_TAKEN_OFFSET } from "../../../assembly/layout.js";
import { type SharedMembers, WINDOWS } from "./shared-members.js";

/**
 * Bytes of a copy, at least. Copies of 256 KiB took 2.6 times as long for each byte as copies of 512 KiB (Zen 5, 2026-11-29).
 */
const COPY_BYTES_MIN = 512 * 1024;
const WINDOW_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes of a window: of each member's slice, as much as a copy should have. */
export function windowBytes(size: number): number {
  return Math.min(WINDOW_BYTES_MAX, Math.max(2, size) * COPY_BYTES_MIN);
}

/** The steps of a type of operation for a segment. */
export interface WindowSteps {
  /** Segments of the longest array or block. */
  readonly segments: number;
  /** Whether slices are reduced between fill() and take(). */
  readonly isReduced: boolean;
  fill(segment: number): void;
  reduce(segment: number): void;
  take(segment: number): void;
}

/** The next step of a segment at this member. */
const NOTHING = 0;
const FILL = 1;
const REDUCE = 2;
const TAKE = 3;

export class Windows {
  readonly #shared: SharedMembers;
  readonly #number: number;
  readonly #steps: WindowSteps;
  #filled = 0;
  #reduced = 0;
  #taken = 0;

  constructor(shared: SharedMembers, number: number, steps: WindowSteps) {
    this.#shared = shared;
    this.#number = number;
    this.#steps = steps;
  }

  get isOver(): boolean {
    return this.#taken === this.#steps.segments;
  }

  /** Whether step() would do something. */
  get mayStep(): boolean {
    return this.#next() !== NOTHING;
  }

  /** Does the next step. False: other members are awaited. */
  step(): boolean {
    const next = this.#next();
    const steps = this.#steps;
    if (next === FILL) {
      steps.fill(this.#filled);
      this.#say(MEMBER_FILLED_OFFSET, ++this.#filled);
    } else if (next === REDUCE) {
      steps.reduce(this.#reduced);
      this.#say(MEMBER_CUT_OFFSET, ++this.#reduced);
    } else if (next === TAKE) {
      steps.take(this.#taken);
      this.#say(MEMBER_TAKEN_OFFSET, ++this.#taken);
    }
    return next !== NOTHING;
  }

  /** Ranks that this member waits for. */
  awaited(): number[] {
    const { isReduced } = this.#steps;
    const before = isReduced ? MEMBER_CUT_OFFSET : MEMBER_FILLED_OFFSET;
    const isBehind = (rank: number): boolean =>
      !this.#has(rank, MEMBER_FILLED_OFFSET, Math.min(this.#reduced + 1, this.#filled)) ||
      !this.#has(rank, before, Math.min(this.#taken + 1, this.#filled)) ||
      !this.#has(rank, MEMBER_TAKEN_OFFSET, this.#filled - WINDOWS);
    return Array.from({ length: this.#shared.size }, (_, rank) => rank).filter(isBehind);
  }

  #next(): number {
    const { segments, isReduced } = this.#steps;
    const [filled, reduced, taken] = [this.#filled, this.#reduced, this.#taken];
    // Steps that other members wait for come first: a full window, then a slice.
    const read = isReduced ? MEMBER_CUT_OFFSET : MEMBER_TAKEN_OFFSET;
    if (filled < segments && this.#haveAll(read, filled - WINDOWS + 1)) return FILL;
    if (!isReduced) return taken < filled && this.#haveAll(MEMBER_FILLED_OFFSET, taken + 1) ? TAKE : NOTHING;
    const isFree = reduced < filled && this.#haveAll(MEMBER_TAKEN_OFFSET, reduced - WINDOWS + 1);
    if (isFree && this.#haveAll(MEMBER_FILLED_OFFSET, reduced + 1)) return REDUCE;
    return taken < reduced && this.#haveAll(MEMBER_CUT_OFFSET, taken + 1) ? TAKE : NOTHING;
  }

  #haveAll(offset: number, segments: number): boolean {
    for (let rank = 0; rank < this.#shared.size; rank++) if (!this.#has(rank, offset, segments)) return false;
    return true;
  }

  #has(rank: number, offset: number, segments: number): boolean {
    return segments <= 0 || this.#shared.segmentsOf(rank, this.#number, offset) >= segments;
  }

  #say(offset: number, segments: number): void {
    this.#shared.goOn(this.#number, offset, segments);
  }
}
