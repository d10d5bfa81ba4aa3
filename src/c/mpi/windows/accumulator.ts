// Changes elements of a window where they lie: each element at once, whatever other threads of the memory do to it meanwhile.
// Elements of up to 8 bytes, at a multiple of their size, are exchanged by atomics, by any task of the node. Others are changed
// by the task that owns their memory alone.
import * as L from "../../../../assembly/layout.js";
import { ELEMENT_TYPES, OPERATIONS } from "../../../core/reduction.js";
import type { ElementType, MemRegion, Operation } from "../../../index.js";
import { type SharedAtomics, sharedAtomics } from "../../../kernel/atomics.js";
import { type CollectiveKernel, selectCollectiveKernel } from "../../../kernel/collective.js";
import type { MpiState } from "../state.js";

/** In place of an operation: the element becomes the value if it equals the test. */
export const COMPARE = 255;
/** Offsets in the place for one element: old value, operand, new value, what is compared. */
const OLD = 0;
const VALUE = 16;
const NEW = 32;
const TEST = 48;
const PLACES_BYTES = 64;

/** What is done to elements. */
export interface Change {
  /** OPERATION_…, or COMPARE. */
  readonly operation: number;
  /** TYPE_…; any of the right size for COMPARE. */
  readonly type: number;
  /** Bytes of data in an element. A pair of a double and an int has four bytes of padding behind them. */
  readonly bytes: number;
}

/** The change by an operation on elements of a type; undefined: the type has no such operation. */
export function changeOf(operation: Operation, type: ElementType): Change | undefined {
  const { number, bytes, operations } = ELEMENT_TYPES[type];
  const code = OPERATIONS[operation];
  if ((operations & (1 << code)) === 0) return undefined;
  return { operation: code, type: number, bytes: type === "f64_i32" ? 12 : bytes };
}

/** Whether any task of the node may change the elements. */
export function isExchanged({ bytes }: Change, address: number): boolean {
  return bytes <= 8 && (address & (bytes - 1)) === 0;
}

/** rmw operations that do the same to a word of integers; -1: none. */
export function rmwOf({ operation, type }: Change): number {
  if (operation === L.OPERATION_COPY) return L.RMW_SET;
  if (operation === L.OPERATION_NOOP) return L.RMW_OR;
  if (type !== L.TYPE_I32 && type !== L.TYPE_U32 && type !== L.TYPE_I64 && type !== L.TYPE_U64) return -1;
  if (operation === L.OPERATION_SUM) return L.RMW_ADD;
  if (operation === L.OPERATION_AND) return L.RMW_AND;
  if (operation === L.OPERATION_OR) return L.RMW_OR;
  return operation === L.OPERATION_XOR ? L.RMW_XOR : -1;
}

export class Accumulator {
  readonly #state: MpiState;
  readonly #kernel: CollectiveKernel;
  readonly #atomics: SharedAtomics;
  readonly #wide: BigUint64Array;
  #region: MemRegion | undefined;
  /** Pointer to the place for one element. */
  #at = 0;

  constructor(state: MpiState) {
    const { task } = state.context.host;
    this.#state = state;
    this.#kernel = selectCollectiveKernel(state.client.kernel, task.memory);
    this.#atomics = sharedAtomics(task.memory);
    this.#wide = new BigUint64Array(task.memory.buffer);
  }

  /**
   * Changes elements that lie one behind the other; pairs of a double and an int, one alone.
   * @param values pointer to the operands @param results where the old values go; 0: nowhere
   * @param test pointer to what a COMPARE compares
   */
  apply(change: Change, address: number, count: number, values: number, results: number, test = 0): void {
    const { engine } = this.#state;
    this.#region ??= engine.scratch(PLACES_BYTES);
    this.#at = this.#region.bytes.byteOffset;
    const { bytes } = change;
    const word = bytes === 4 ? rmwOf(change) : -1;
    const byAtomics = isExchanged(change, address);
    if (change.operation === COMPARE) engine.copy(this.#at + TEST, test, bytes);
    for (let i = 0; i < count; i++) {
      const at = address + i * bytes;
      const value = this.#at + VALUE;
      // A fetch has no operand.
      if (change.operation === L.OPERATION_NOOP) this.#wide[value >>> 3] = 0n;
      else engine.copy(value, values + i * bytes, bytes);
      let old = this.#at + OLD;
      if (byAtomics && word >= 0) {
        this.#state.setWord(old, this.#atomics.changeWord(at, word, this.#state.word(value), 0, false));
      } else if (!byAtomics) this.#changeAlone(change, at);
      else if (bytes === 8) this.#changeWide(change, at);
      else old = this.#changeWord(change, at);
      if (results !== 0) engine.copy(results + i * bytes, old, bytes);
    }
  }

  /** @returns pointer to the old value */
  #changeWord(change: Change, address: number): number {
    const shift = address & 3;
    const at = address - shift;
    const state = this.#state;
    const place = this.#at;
    for (;;) {
      const old = this.#atomics.loadWord(at) | 0;
      state.setWord(place + OLD, old);
      state.setWord(place + NEW, old);
      this.#combine(change, shift);
      const next = state.word(place + NEW);
      if (next === old || (this.#atomics.exchangeIf(at, old, next) | 0) === old) return place + OLD + shift;
    }
  }

  #changeWide(change: Change, at: number): void {
    const place = this.#at >>> 3;
    for (;;) {
      const old = this.#atomics.changeWide(at, L.RMW_OR, 0n, 0n, false);
      this.#wide[place + (OLD >>> 3)] = old;
      this.#wide[place + (NEW >>> 3)] = old;
      this.#combine(change, 0);
      const next = this.#wide[place + (NEW >>> 3)] as bigint;
      if (next === old || this.#atomics.changeWide(at, L.RMW_SET, next, old, true) === old) return;
    }
  }

  /** Changes an element that no other task changes meanwhile. */
  #changeAlone(change: Change, at: number): void {
    const { engine } = this.#state;
    const { bytes } = change;
    const place = this.#at;
    engine.copy(place + OLD, at, bytes);
    engine.copy(place + NEW, at, bytes);
    this.#combine(change, 0);
    engine.copy(at, place + NEW, bytes);
  }

  /** Combines the old value and the operand. @param shift where the element lies in its word */
  #combine({ operation, type, bytes }: Change, shift: number): void {
    const place = this.#at;
    if (operation !== COMPARE) {
      // The operand stands at a multiple of 16: for less than a word, of any size.
      this.#kernel.reduce(operation, type, place + NEW + shift, place + OLD + shift, place + VALUE, 1);
      return;
    }
    const { bytes: memory } = this.#state;
    for (let i = 0; i < bytes; i++) {
      if (memory[place + OLD + shift + i] !== memory[place + TEST + i]) return;
    }
    this.#state.engine.copy(place + NEW + shift, place + VALUE, bytes);
  }
}
