// Memory that operations take for a while: in the job's memory, so that kernels and other members can read it. If the job's
// memory has no room, memory that no other member reads lies elsewhere.
import { PamiError } from "../core/error.js";
import type { MemRegion } from "../core/region.js";
import { type CollectiveKernel, twinCollectiveKernel } from "../kernel/collective.js";
import type { RegionTable } from "../memory/regions.js";

/** Bytes of idle pieces that are kept. */
const KEPT_BYTES = 4 * 1024 * 1024;
const LEAST_BYTES = 4096;
/** In one memory: the longest copy of an ordinary array, if copies would be more than a quarter of all arrays. */
export const COPY_BYTES = KEPT_BYTES;

/** Memory outside of the job's memory, with kernels that reduce elements there. */
export interface Elsewhere extends Pick<CollectiveKernel, "reduce"> {
  readonly buffer: ArrayBufferLike;
}

/** A piece of memory. */
export interface Piece {
  /** Counted from the begin of the job's memory, or from that of `elsewhere`. */
  readonly pointer: number;
  readonly bytes: Uint8Array;
  readonly elsewhere?: Elsewhere;
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

  /** As take(), but elsewhere if the job's memory has no room. @throws PAMIR_NO_MEMORY: the process has none either */
  takeAnywhere(bytes: number): Piece {
    return this.take(bytes) ?? elsewhere(bytes);
  }

  /** Takes a piece of at least so many bytes. @returns undefined: there is no memory */
  take(bytes: number): Piece | undefined {
    let size = LEAST_BYTES;
    if (bytes > KEPT_BYTES) size = bytes;
    else while (size < bytes) size *= 2;
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

  /**
   * Gives a piece back that no other member reads any more. The garbage collector takes a piece outside of the job's memory.
   */
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
   * Frees the idle pieces at once: the task has no other memory. A member that still reads a piece of a failed operation finds
   * the failure after the read (SharedMembers.fail), as if the next operation had taken the piece.
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

/** @throws PAMIR_NO_MEMORY */
function elsewhere(bytes: number): Piece {
  try {
    // The twin only reads and writes this memory, so it need not be shared.
    const buffer = new ArrayBuffer(Math.ceil(bytes / 8) * 8) as unknown as SharedArrayBuffer;
    const all = new Uint8Array(buffer);
    const memory = { buffer, bytes: all, words: new Int32Array(buffer), futex: undefined, wasm: undefined };
    return { pointer: 0, bytes: all, elsewhere: { buffer, ...twinCollectiveKernel(memory) } };
  } catch (cause) {
    throw new PamiError("PAMIR_NO_MEMORY", `no ${bytes} bytes of scratch memory`, { cause });
  }
}

/** Other members may still be reading, so the region ends by its grace period. */
function close({ region }: Kept): void {
  region.expose();
  region.close();
}
