// Short places for packed data, taken again and again: a region of its own for each takes 1 µs, and a task may have 1,024.
import type { MemRegion } from "../../index.js";

/** A place for packed data in the job's memory. */
export interface ScratchPlace {
  /** At least as many bytes as were asked for. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
}

/** The shortest place, and the longest one: 2^6 and 2^16 bytes. */
const SHIFT_MIN = 6;
const SHIFT_MAX = 16;

/** Places of powers of two in one region. None is split or joined. */
export class ScratchPool {
  readonly #region: MemRegion;
  /** Free places, by the power of their length. */
  readonly #free: ScratchPlace[][] = Array.from({ length: SHIFT_MAX + 1 }, () => []);
  readonly #taken = new Map<ScratchPlace, number>();
  #used = 0;

  constructor(region: MemRegion) {
    this.#region = region;
  }

  /** @returns undefined: it is too long, or none is left */
  take(bytes: number): ScratchPlace | undefined {
    const shift = bytes <= 1 << SHIFT_MIN ? SHIFT_MIN : 32 - Math.clz32(bytes - 1);
    if (bytes > 1 << SHIFT_MAX) return undefined;
    const place = (this.#free[shift] as ScratchPlace[]).pop() ?? this.#newPlace(1 << shift);
    if (place !== undefined) this.#taken.set(place, shift);
    return place;
  }

  /** Gives a place back. @returns whether it is one of this pool */
  give(place: ScratchPlace): boolean {
    const shift = this.#taken.get(place);
    if (shift === undefined) return false;
    this.#taken.delete(place);
    (this.#free[shift] as ScratchPlace[]).push(place);
    return true;
  }

  #newPlace(bytes: number): ScratchPlace | undefined {
    if (this.#used + bytes > this.#region.length) return undefined;
    this.#used += bytes;
    return { bytes: this.#region.bytes.subarray(this.#used - bytes, this.#used) };
  }
}
