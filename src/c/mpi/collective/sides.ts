// Buffers of collective operations as bytes without gaps: views of the program's memory, or packed copies of types with gaps.
import { ELEMENT_TYPES } from "../../../core/reduction.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState } from "../state.js";
import { type Datatype, isDense, pack, unpack } from "../types.js";

/** Elements of a buffer as bytes without gaps. */
export interface DenseBuffer {
  readonly view: Uint8Array;
  /** Copies what has come into the program's buffer, and gives the place back. */
  end(hasCome: boolean): void;
}

/** DenseBlocks of several lengths, in bytes of the view. */
export interface DenseBlocks extends DenseBuffer {
  readonly counts: number[];
  readonly displacements: number[];
}

/** A block of a buffer. */
export interface Part {
  /** Address of its first element. */
  readonly at: number;
  readonly count: number;
  readonly type: Datatype;
}

export function viewOf(side: DenseBuffer | undefined): Uint8Array | null {
  return side === undefined ? null : side.view;
}

/** What ends both sides. */
export function endOf(send: DenseBuffer | undefined, receive: DenseBuffer | undefined): (hasCome: boolean) => void {
  return (hasCome) => {
    send?.end(false);
    receive?.end(hasCome);
  };
}

/** Views of the program's buffers that are kept. */
const VIEWS_MAX = 64;
const NOTHING_LEFT = (): void => {};

/** Whether elements begin where the kernels of reductions take none: in a packed struct, say. */
function isMisaligned(buffer: number, { element }: Datatype): boolean {
  return element !== undefined && buffer % ELEMENT_TYPES[element].align !== 0;
}

export class Sides {
  readonly #state: MpiState;
  readonly #views = new Map<number, Uint8Array>();

  constructor(state: MpiState) {
    this.#state = state;
  }

  /**
   * A buffer of `count` elements.
   * @param isGiven whether its contents count @param isReduced whether its elements are reduced
   */
  side(buffer: number, count: number, typeHandle: number, isGiven: boolean, isReduced = false): DenseBuffer {
    const type = this.#state.types.committed(typeHandle);
    if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
    // A double and an int have four bytes of padding, which are moved too: reductions take whole pairs.
    const isPair =
      isReduced && type.runs.length === 2 && type.runs[0] === 0 && type.lowerBound === 0 && type.element === "f64_i32";
    const isWhole = isPair || isDense(type);
    const bytes = count * type.extent;
    if (isWhole && bytes > 0 && buffer === 0) throw new MpiFailure(ERR.BUFFER, `the buffer of ${bytes} bytes is NULL`);
    if (isWhole && !this.#state.isApart && !(isReduced && isMisaligned(buffer, type))) {
      return { view: this.#viewOf(buffer, bytes), end: NOTHING_LEFT };
    }
    return this.#packed([{ at: buffer, count, type: isPair ? wholePair(type) : type }], isGiven);
  }

  /** DenseBlocks of one type. @param counts pointer to `size` counts @param places pointer to the places, in elements */
  blocks(
    buffer: number,
    counts: number,
    places: number,
    typeHandle: number,
    size: number,
    isGiven: boolean,
  ): DenseBlocks {
    const type = this.#state.types.committed(typeHandle);
    const at = this.#state.array(places, size);
    const parts = this.#state.array(counts, size).map((count, rank) => ({
      at: buffer + (at[rank] as number) * type.extent,
      count,
      type,
    }));
    return this.ofParts(parts, isGiven);
  }

  /** DenseBlocks of several types. @param places pointer to the places, in bytes @param types pointer to the types */
  typedBlocks(
    buffer: number,
    counts: number,
    places: number,
    types: number,
    size: number,
    isGiven: boolean,
  ): DenseBlocks {
    const at = this.#state.array(places, size);
    const handles = this.#state.array(types, size);
    const parts = this.#state.array(counts, size).map((count, rank) => ({
      at: buffer + (at[rank] as number),
      count,
      type: this.#state.types.committed(handles[rank] as number),
    }));
    return this.ofParts(parts, isGiven);
  }

  /** @throws MpiFailure MPI_ERR_COUNT */
  ofParts(parts: readonly Part[], isGiven: boolean): DenseBlocks {
    const negative = parts.findIndex(({ count }) => count < 0);
    if (negative >= 0)
      throw new MpiFailure(ERR.COUNT, `the count for rank ${negative} is ${(parts[negative] as Part).count}`);
    if (this.#state.isApart || !parts.every(({ type }) => isDense(type))) return this.#packed(parts, isGiven);
    const counts = parts.map(({ count, type }) => count * type.bytes);
    // The view begins at the first block that has any elements: the others may be anywhere.
    let first = Number.POSITIVE_INFINITY;
    let end = 0;
    parts.forEach(({ at }, rank) => {
      const bytes = counts[rank] as number;
      if (bytes === 0) return;
      first = Math.min(first, at);
      end = Math.max(end, at + bytes);
    });
    if (end === 0) first = 0;
    const displacements = parts.map(({ at }, rank) => (counts[rank] === 0 ? 0 : at - first));
    return { view: this.#state.bytes.subarray(first, end), counts, displacements, end: NOTHING_LEFT };
  }

  /** Copies of blocks, one behind the other. */
  #packed(parts: readonly Part[], isGiven: boolean): DenseBlocks {
    const state = this.#state;
    const { copyOut, copyIn, client } = state;
    const counts = parts.map(({ count, type }) => count * type.bytes);
    const displacements: number[] = [];
    let total = 0;
    for (const bytes of counts) {
      displacements.push(total);
      total += bytes;
    }
    const region = state.place(total);
    const from = region.bytes.byteOffset;
    const placeOf = (index: number): number => from + (displacements[index] as number);
    if (isGiven)
      for (const [index, { at, count, type }] of parts.entries()) pack(copyOut, type, at, count, placeOf(index));
    return {
      view: client.bytes.subarray(from, from + total),
      counts,
      displacements,
      end: (hasCome) => {
        if (hasCome)
          for (const [index, { at, type }] of parts.entries())
            unpack(copyIn, type, placeOf(index), counts[index] as number, at);
        state.freePlace(region);
      },
    };
  }

  /** The same view for the same bytes, while there are few: a geometry does not check a call anew that is like one before. */
  #viewOf(buffer: number, bytes: number): Uint8Array {
    const key = buffer + bytes * 2 ** 32;
    let view = this.#views.get(key);
    if (view !== undefined) return view;
    if (this.#views.size >= VIEWS_MAX) this.#views.clear();
    view = this.#state.bytes.subarray(buffer, buffer + bytes);
    this.#views.set(key, view);
    return view;
  }
}

/** A type of pairs with their padding as data. */
function wholePair(type: Datatype): Datatype {
  return { ...type, bytes: type.extent, runs: [0, type.extent] };
}
