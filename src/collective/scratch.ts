// Memory that operations take for a while, in the job's memory, so that kernels and the other members can read it.
import type { MemRegion } from "../core/region.js";
import type { RegionTable } from "../memory/regions.js";

/** Bytes of idle pieces that are kept. */
const KEPT_BYTES = 4 * 1024 * 1024;
const LEAST_BYTES = 4096;

/** A piece of memory. */
export interface Piece {
  readonly pointer: number;
  readonly bytes: Uint8Array;
}

interface Kept extends Piece {
  readonly region: MemRegion;
}

export class Scratch {
  readonly #regions: RegionTable;
  readonly #idle: Kept[] = [];
  readonly #used = new Map<Piece, Kept>();
  #idleBytes = 0;

  constructor(regions: RegionTable) {
    this.#regions = regions;
  }

  /** Takes a piece of at least so many bytes. @returns undefined: there is no memory */
  take(bytes: number): Piece | undefined {
    let size = LEAST_BYTES;
    while (size < bytes) size *= 2;
    const place = this.#idle.findIndex((piece) => piece.bytes.length === size);
    const piece = place < 0 ? this.#make(size) : (this.#idle.splice(place, 1)[0] as Kept);
    if (piece === undefined) return undefined;
    if (place >= 0) this.#idleBytes -= size;
    this.#used.set(piece, piece);
    return piece;
  }

  #make(size: number): Kept | undefined {
    try {
      const region = this.#regions.create(size, true, false);
      return { region, pointer: region.bytes.byteOffset, bytes: region.bytes };
    } catch {
      return undefined;
    }
  }

  /** Gives a piece back. No other member reads it any more. */
  giveBack(piece: Piece): void {
    const kept = this.#used.get(piece);
    if (kept === undefined) return;
    this.#used.delete(piece);
    if (this.#idleBytes + kept.bytes.length > KEPT_BYTES) {
      close(kept);
      return;
    }
    this.#idleBytes += kept.bytes.length;
    this.#idle.push(kept);
  }

  /**
   * Frees the idle pieces at once: the task has no other memory. A member that still reads one, of an operation that has failed,
   * finds out behind that (SharedMembers.fail), as if the next operation had taken the piece.
   * @returns whether there were any
   */
  trim(): boolean {
    const idle = this.#idle.splice(0);
    this.#idleBytes = 0;
    for (const { region } of idle) region.close();
    return idle.length > 0;
  }

  /** Releases everything: the context closes. */
  close(): void {
    for (const piece of [...this.#idle, ...this.#used.values()]) close(piece);
    this.#idle.length = 0;
    this.#used.clear();
  }
}

/** Others may still be reading, so the region ends by its grace period. */
function close({ region }: Kept): void {
  region.expose();
  region.close();
}
