// Which elements a reduction takes, and by which operation: one of MPI's, or a function of the program.
import { hasOperation } from "../../../core/reduction.js";
import type { ElementType, Operation, UserOperation } from "../../../index.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState, UserOp } from "../state.js";
import { type Datatype, isDense, pack, unpack } from "../types.js";

export interface Reduction {
  readonly operation: Operation | UserOperation;
  readonly type: ElementType | undefined;
}

export class Reductions {
  readonly #state: MpiState;
  /** Address of two places for the vectors of a function of the program, and two words for its arguments; their bytes. */
  #places = 0;
  #room = 0;

  constructor(state: MpiState) {
    this.#state = state;
  }

  /** @throws MpiFailure MPI_ERR_OP, MPI_ERR_TYPE */
  of(typeHandle: number, opHandle: number): Reduction {
    const type = this.#state.types.committed(typeHandle);
    const op = this.#state.operation(opHandle);
    if (typeof op === "object") return { operation: this.#own(op, type, typeHandle), type: undefined };
    if (op === undefined || type.element === undefined || !hasOperation(type.element, op))
      throw new MpiFailure(ERR.OP, `the operation ${op} is not one for ${type.name}`);
    return { operation: op, type: type.element };
  }

  /** A function of the program as an operation: it finds its vectors in the program's memory, with the gaps of their type. */
  #own(op: UserOp, type: Datatype, typeHandle: number): UserOperation {
    const state = this.#state;
    const call = state.functionAt(op.call);
    const copy = state.copyWithin;
    const dense = isDense(type);
    const combine = (left: Uint8Array, right: Uint8Array, out: Uint8Array): void => {
      const bytes = left.length;
      const count = bytes / type.bytes;
      const room = dense ? bytes : spanOf(type, count);
      const args = this.#placesFor(ARGUMENTS_BYTES + 2 * room + bytes);
      const first = args + ARGUMENTS_BYTES;
      const second = first + room;
      const packed = dense ? second : second + room;
      const put = (view: Uint8Array, to: number): void => {
        state.bytes.set(view, dense ? to : packed);
        if (!dense) unpack(copy, type, packed, bytes, to - lowestOf(type));
      };
      put(left, first);
      put(right, second);
      state.setWord(args, count);
      state.setWord(args + 4, typeHandle);
      call(first - lowestOf(type), second - lowestOf(type), args, args + 4);
      if (!dense) pack(copy, type, second - lowestOf(type), count, packed);
      out.set(state.bytes.subarray(packed, packed + bytes));
    };
    return {
      commutative: op.commutative,
      elementBytes: type.bytes,
      combine: (left, right, out) => {
        const [one, other, result] = [bytesOf(left), bytesOf(right), bytesOf(out)];
        const step = state.isApart ? type.bytes * this.#elementsAtOnce(type) : one.length;
        for (let at = 0; at < one.length; at += step) {
          const end = Math.min(at + step, one.length);
          combine(one.subarray(at, end), other.subarray(at, end), result.subarray(at, end));
        }
      },
    };
  }

  /** How many elements a program with a memory of its own gets at once. */
  #elementsAtOnce(type: Datatype): number {
    const element = 2 * Math.abs(type.extent) + type.bytes;
    return Math.max(1, Math.floor((VECTORS_BYTES - ARGUMENTS_BYTES - 2 * spanOf(type, 1)) / element));
  }

  /** Address of so many bytes of the program's memory. @throws MpiFailure the program has too few for MPI */
  #placesFor(bytes: number): number {
    if (this.#room < bytes) {
      this.#room = this.#state.isApart ? Math.max(bytes, VECTORS_BYTES) : Math.max(bytes, 2 * this.#room);
      this.#places = this.#state.keep(this.#room, "a reduction by a function of the program");
    }
    return this.#places;
  }
}

/** Bytes of the program's own memory for such vectors. */
const VECTORS_BYTES = 7680;

/** Two words, and the vectors behind them begin at a multiple of 16. */
const ARGUMENTS_BYTES = 16;

/** Where the first byte of an element lies, from its address on: at most 0. */
function lowestOf({ runs }: Datatype): number {
  let low = 0;
  for (let run = 0; run < runs.length; run += 2) low = Math.min(low, runs[run] as number);
  return low;
}

/** Bytes from the first to the last of `count` elements, a multiple of 16. */
function spanOf(type: Datatype, count: number): number {
  let high = 0;
  for (let run = 0; run < type.runs.length; run += 2)
    high = Math.max(high, (type.runs[run] as number) + (type.runs[run + 1] as number));
  return (Math.max(high, type.extent) - lowestOf(type) + (count - 1) * Math.abs(type.extent) + 15) & ~15;
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
