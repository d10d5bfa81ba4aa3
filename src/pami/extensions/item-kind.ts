// Kinds of items that an aggregator carries: their checks, and what each does where it arrives.
import { checkFunction, checkKeys, type Keys } from "../../core/check.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import type { PayloadView } from "../../core/message/view.js";
import { SharedRegion } from "./shared-region.js";

/** Arrays that an aggregator can have items in. */
export type ItemArray =
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array;

/** What an update does to an element: as the operations of reductions. */
export type UpdateOperation = "sum" | "min" | "max" | "and" | "or" | "xor" | "copy";

/** One kind of items of an aggregator. All members give the same, but for `onItems`. */
export interface ItemKind<View extends ItemArray = ItemArray> {
  /** Class of the items' elements, or of the elements that updates change. */
  readonly type: PayloadView<View>;
  /** Elements of an item (default 1). "any": each item has its own number of them. Not for updates. */
  readonly length?: number | "any" | undefined;
  /**
   * Called in an `advance()` of the target with items, one behind the other, and the rank that they come from. If `length` is
   * "any", it is called for each item. The view is valid during the call. Items of one member come in the order pushed.
   */
  readonly onItems?: ((items: View, rank: number) => void) | undefined;
  /** Instead of `onItems`: update() changes elements of this region. Its owner applies the updates, in an `advance()`. */
  readonly region?: SharedRegion | undefined;
  /** What an update does (default "sum"). */
  readonly operation?: UpdateOperation | undefined;
}

export const ITEM_KEYS: Keys<ItemKind> = { type: true, length: true, onItems: true, region: true, operation: true };
const OPERATIONS: readonly UpdateOperation[] = ["sum", "min", "max", "and", "or", "xor", "copy"];
export const KINDS_MAX = 256;

type Arithmetic = { [at: number]: number; readonly length: number };

/** A kind as an aggregator uses it. */
export interface Kind {
  readonly type: PayloadView<ItemArray>;
  readonly elementBytes: number;
  /** Elements of an item; 0: each has its own number of them; -1: it is an update. */
  readonly length: number;
  /** Bytes of an item; 0: each has its own. An update is an element, and one whose first word is the index. */
  readonly itemBytes: number;
  /** Of updates: elements of each member's region. */
  readonly limits: readonly number[];
  /** What typeof says of an element. */
  readonly element: string;
  /** The word of an element of updates is its number, shifted by that. */
  readonly shift: number;
  /** What all members must have given. */
  readonly same: string;
  /** Takes what has come: elements, and the same memory in words. */
  readonly apply: (elements: ItemArray, words: Uint32Array, from: number, length: number, rank: number) => void;
}

/**
 * The elements of a class of arrays: their bytes, and the name of the class. A class that extends another one has its name.
 * @throws PAMIR_INVAL
 */
export function elementOf(call: string, type: unknown): { elementBytes: number; array: string } {
  checkFunction(`type of ${call}()`, type);
  const { BYTES_PER_ELEMENT: elementBytes = 0 } = type as { BYTES_PER_ELEMENT?: number };
  if (elementBytes === 0) throw new PamiError("PAMIR_INVAL", `type of ${call}() is ${show(type)}`);
  return { elementBytes, array: String(new (type as Float64ArrayConstructor)(0)[Symbol.toStringTag]) };
}

/** @param most bytes of an item, at most @throws PAMIR_INVAL */
export function kindOf(given: ItemKind, most: number): Kind {
  const { type, length = 1, onItems, region, operation = "sum" } = given;
  const { elementBytes, array } = elementOf("createAggregator", type);
  const element = array.startsWith("Big") ? "bigint" : "number";
  if (region !== undefined) {
    checkUpdates(given, elementBytes);
    const limits = region.lengths.map((bytes) => Math.floor(bytes / elementBytes));
    const shift = elementBytes === 8 ? 1 : 0;
    const apply = updates(region, type, operation, shift);
    // All members know the region by the handle of the first one.
    const same = `${operation} of ${array} in region ${region.handles[0]}`;
    return { type, elementBytes, length: -1, itemBytes: 2 * elementBytes, limits, element, shift, same, apply };
  }
  checkFunction("onItems of createAggregator()", onItems);
  if (length !== "any") checkInteger("length of createAggregator()", length, 1, Math.floor(most / elementBytes));
  const count = length === "any" ? 0 : length;
  const itemBytes = count * elementBytes;
  const same = `${array} of ${length}`;
  const apply: Kind["apply"] = (all, _words, from, some, rank) =>
    (onItems as NonNullable<typeof onItems>)(some === all.length ? all : all.subarray(from, from + some), rank);
  return { type, elementBytes, length: count, itemBytes, limits: [], element, shift: 0, same, apply };
}

/** @throws PAMIR_INVAL */
export function kindsOf(kinds: unknown, most: number): Kind[] {
  const count = Array.isArray(kinds) ? kinds.length : 0;
  if (count < 1 || count > KINDS_MAX) {
    throw new PamiError("PAMIR_INVAL", `kinds of createAggregator() is ${show(kinds)}, not a list of 1 … ${KINDS_MAX}`);
  }
  return (kinds as readonly ItemKind[]).map((kind) => {
    checkKeys("a kind of createAggregator()", kind, ITEM_KEYS);
    return kindOf(kind, most);
  });
}

function checkUpdates({ region, operation = "sum", type, length, onItems }: ItemKind, elementBytes: number): void {
  if (!(region instanceof SharedRegion)) {
    throw new PamiError("PAMIR_INVAL", `region of createAggregator() is ${show(region)}, not from shareRegion()`);
  }
  if (elementBytes < 4 || (length ?? 1) !== 1 || onItems !== undefined) {
    const text = "updates are of one element of 4 or 8 bytes, without onItems";
    throw new PamiError("PAMIR_INVAL", `createAggregator(): ${text}; elements of ${show(type)} have ${elementBytes}`);
  }
  const isBitwise = operation === "and" || operation === "or" || operation === "xor";
  const isFloat = (type as unknown) === Float64Array || (type as unknown) === Float32Array;
  if (!OPERATIONS.includes(operation) || (isBitwise && isFloat)) {
    throw new PamiError("PAMIR_INVAL", `operation ${show(operation)} of createAggregator(): there are ${OPERATIONS}`);
  }
}

/** Applies updates to this member's region. */
function updates(
  { region }: SharedRegion,
  type: PayloadView<ItemArray>,
  operation: UpdateOperation,
  shift: number,
): Kind["apply"] {
  const { buffer, byteOffset, length } = region.bytes;
  const bytes = (type as unknown as { BYTES_PER_ELEMENT: number }).BYTES_PER_ELEMENT;
  const to = new type(buffer, byteOffset, Math.floor(length / bytes)) as unknown as Arithmetic;
  const limit = to.length;
  return (elements, words, from, count) => {
    if (region.closed) return;
    const values = elements as unknown as Arithmetic;
    for (let at = from; at < from + count - 1; at += 2) {
      const index = words[(at + 1) << shift] as number;
      // An origin checks it, too.
      if (index >= limit) continue;
      const old = to[index] as number;
      const value = values[at] as number;
      if (operation === "sum") to[index] = old + value;
      else if (operation === "xor") to[index] = old ^ value;
      else if (operation === "and") to[index] = old & value;
      else if (operation === "or") to[index] = old | value;
      else if (operation === "copy" || (operation === "min" ? value < old : value > old)) to[index] = value;
    }
  };
}
