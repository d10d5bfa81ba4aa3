// Moves data of transfer types between memories: by the wasm kernels where both sides lie in the job's memory, else by the
// twin. A task has one mover.
import type { MemRegion } from "../core/region.js";
import { type CollectiveKernel, movePacked, selectCollectiveKernel } from "../kernel/collective.js";
import { regionIfAny } from "../protocol/rendezvous/transfers.js";
import type { Task } from "../protocol/task.js";
import { copyInto } from "../support/copy.js";
import type { TypeShape } from "./type-shape.js";

/** Bytes for the LAYOUT that the kernel is to read. */
const LAYOUT_BYTES = 8192;
/** Bytes that go from one type to another at a time: they stay in the first-level cache. */
const STAGING_BYTES = 16384;
/** Fewer bytes the twin moves sooner than the wasm kernel, for which a LAYOUT may have to be copied. */
const KERNEL_BYTES = 64;

export class Mover {
  readonly task: Task;
  readonly #kernel: CollectiveKernel;
  /** In the job's memory: staging, then a LAYOUT. null: there was no memory for it. */
  #scratch: MemRegion | null | undefined;
  #staging: Uint8Array | undefined;
  /** The type whose LAYOUT is there. */
  #placed: TypeShape | undefined;

  constructor(task: Task) {
    this.task = task;
    this.#kernel = selectCollectiveKernel(task.kernel.name, task.memory);
  }

  /** A few KiB between two moves, in the job's memory if that has room. */
  get staging(): Uint8Array {
    this.#staging ??= this.#scratchRegion()?.bytes.subarray(0, STAGING_BYTES) ?? new Uint8Array(STAGING_BYTES);
    return this.#staging;
  }

  /** Packs bytes of the stream of a type, from byte `from` on, or unpacks them. Both sides are long enough. */
  move(
    shape: TypeShape,
    packed: Uint8Array,
    elements: Uint8Array,
    from: number,
    bytes: number,
    isPacking: boolean,
  ): void {
    if (shape.isContiguous) {
      if (isPacking) copyInto(packed, 0, elements.subarray(from, from + bytes));
      else copyInto(elements, from, packed.subarray(0, bytes));
      return;
    }
    const { buffer } = this.task.memory;
    const isShared = packed.buffer === buffer && elements.buffer === buffer;
    const layout = isShared && bytes >= KERNEL_BYTES && this.#kernel.name === "wasm" ? this.#place(shape) : 0;
    if (layout === 0) movePacked(shape.words, 0, packed, 0, elements, 0, from, bytes, isPacking);
    else if (isPacking) this.#kernel.pack(layout, packed.byteOffset, elements.byteOffset, from, bytes);
    else this.#kernel.unpack(layout, packed.byteOffset, elements.byteOffset, from, bytes);
  }

  /** Moves data from elements of one type to those of another; undefined: contiguous bytes. */
  convert(
    from: TypeShape | undefined,
    source: Uint8Array,
    to: TypeShape | undefined,
    target: Uint8Array,
    bytes: number,
  ): void {
    if (from === undefined && to === undefined) copyInto(target, 0, source.subarray(0, bytes));
    else if (to === undefined) this.move(from as TypeShape, target, source, 0, bytes, true);
    else if (from === undefined) this.move(to, source, target, 0, bytes, false);
    else {
      const { staging } = this;
      for (let at = 0; at < bytes; at += staging.length) {
        const part = Math.min(staging.length, bytes - at);
        this.move(from, staging, source, at, part, true);
        this.move(to, staging, target, at, part, false);
      }
    }
  }

  /** Pointer to the LAYOUT of a type in the job's memory; 0: there is no memory for it. */
  #place(shape: TypeShape): number {
    const { words, region } = shape;
    if (region !== undefined) return region.bytes.byteOffset;
    if (words.byteLength > LAYOUT_BYTES) {
      shape.region = shape.isClosed ? undefined : regionIfAny(this.task.regions, words.byteLength);
      if (shape.region === undefined) return 0;
      this.task.memory.words.set(words, shape.region.bytes.byteOffset >>> 2);
      return shape.region.bytes.byteOffset;
    }
    const scratch = this.#scratchRegion();
    if (scratch === undefined) return 0;
    const place = scratch.bytes.byteOffset + STAGING_BYTES;
    if (this.#placed !== shape) this.task.memory.words.set(words, place >>> 2);
    this.#placed = shape;
    return place;
  }

  #scratchRegion(): MemRegion | undefined {
    if (this.#scratch === undefined) {
      this.#scratch = regionIfAny(this.task.regions, STAGING_BYTES + LAYOUT_BYTES) ?? null;
    }
    return this.#scratch ?? undefined;
  }
}
