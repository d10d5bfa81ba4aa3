// Types of transfers as their users see them, and what the core asks of them. The class is src/types/type.ts, which is
// loaded when the first type is made.
import { PamiError, show } from "./error.js";
import type { Callback, Result } from "./result.js";

/** What `type.query()` returns. */
export interface TransferTypeInfo {
  /** Bytes of data in one element. */
  readonly bytes: number;
  /** Bytes from the begin of one element to the begin of the next. */
  readonly extent: number;
  /** Bytes from the begin of an element to the end of its last data: gaps before the first data count too. */
  readonly span: number;
  /** Number of contiguous runs of one element. */
  readonly runs: number;
  /** Loops within each other: 1 for a contiguous or strided type. */
  readonly depth: number;
  /** Whether any number of elements is one contiguous run, which is sent as it lies. */
  readonly isContiguous: boolean;
  /**
   * Whether two runs of one element have a byte in common; then nothing can be received as this type. undefined: a type with
   * more than 65,536 runs, for which it is not known.
   */
  readonly overlaps: boolean | undefined;
}

/** A field of `type.addStruct`: bytes, or elements of a type, at an offset. */
export interface TransferField {
  /** Offset in the struct. */
  readonly offset: number;
  /** Bytes of the field; or `type`. */
  readonly bytes?: number | undefined;
  /** Type of the field's elements. */
  readonly type?: TransferType | undefined;
  /** Number of elements, one behind the other (default 1). */
  readonly count?: number | undefined;
}

/** Options of `type.complete`. */
export interface CompleteOptions {
  /** Bytes from the begin of one element to the begin of the next, 1 … 2^32 - 1 (default: the span). It may be less. */
  readonly extent?: number | undefined;
}

/** Options of `type.pack` and `type.unpack`. */
export interface PackOptions {
  /** Number of elements (default 1). */
  readonly count?: number | undefined;
  /** Packed bytes to leave out in front (default 0). */
  readonly from?: number | undefined;
  /** Packed bytes to move (default: all behind `from`). */
  readonly bytes?: number | undefined;
}

/**
 * Where the data of an element lies that is not contiguous: a column, a part of a grid, some fields of a struct. From
 * `client.createType()`. The `add…` methods describe one element; after `complete()` the type stays as it is, and transfers may
 * use it. Packed, the data comes in the order in which it was added; a strided run from its first block to its last. Offsets
 * count from the begin of the element. A type belongs to the thread of its client; each task makes its own.
 */
export interface TransferType {
  /**
   * Adds `count` blocks (default 1) of `bytes` contiguous bytes: the first at `offset` (default 0), each `stride` bytes behind the
   * one before (default: `bytes`). Returns this type.
   * @throws PAMIR_INVAL after complete() or close(), or unless all are integers from 0; PAMIR_TOO_LARGE beyond 2^32 - 1 bytes
   */
  addSimple(bytes: number, offset?: number, count?: number, stride?: number): this;
  /**
   * Adds `count` elements of a complete type, as addSimple() does blocks (default of `stride`: the type's extent). That type may
   * be closed afterwards.
   * @throws as addSimple(); PAMIR_INVAL unless the type is complete; PAMIR_TOO_LARGE also beyond 1,048,576 loops in one type
   */
  addTyped(type: TransferType, offset?: number, count?: number, stride?: number): this;
  /** Adds a block of `bytes` bytes at each offset. @throws as addSimple() */
  addIndexed(bytes: number, offsets: ArrayLike<number>): this;
  /** Adds fields, in this order. @throws as addTyped() */
  addStruct(fields: readonly TransferField[]): this;
  /**
   * Adds a part of a grid of any number of dimensions, whose points have `elementBytes` each. The lists have a number for each
   * dimension: the grid's size, the part's size, and where the part begins. The last dimension is contiguous (row-major).
   * @throws as addSimple(); PAMIR_INVAL unless the lists have one length, or if the part is not within the grid
   */
  addSubarray(
    sizes: readonly number[],
    subsizes: readonly number[],
    starts: readonly number[],
    elementBytes: number,
  ): this;
  /** Ends the description, and returns this type. @throws PAMIR_INVAL the second time, after close(), or without data */
  complete(options?: CompleteOptions): this;
  /** Returns what the type is. @throws PAMIR_INVAL before complete() */
  query(): TransferTypeInfo;
  /**
   * Copies data of elements to `packed`, one behind the other. `elements` is the memory in which the elements lie, from the begin
   * of element 0 on. Returns the number of bytes.
   * @throws PAMIR_INVAL; PAMIR_BOUNDS if an element reaches beyond `elements`; PAMIR_TOO_LARGE if `packed` is too small
   */
  pack(elements: ArrayBufferView, packed: ArrayBufferView, options?: PackOptions): number;
  /**
   * Copies packed bytes to where the elements have their data. The bytes in between stay as they are. Returns the number of bytes.
   * @throws as pack(); PAMIR_INVAL if runs of the type overlap
   */
  unpack(packed: ArrayBufferView, elements: ArrayBufferView, options?: PackOptions): number;
  /**
   * Copies data of `count` elements of this type (default 1) into as many of another as take it. Returns the number of bytes.
   * @throws as pack() and unpack()
   */
  transform(source: ArrayBufferView, target: ArrayBufferView, to: TransferType, options?: { count?: number }): number;
  /** Gives back the memory that the type has. Transfers that have begun go on. A second call does nothing. */
  close(): void;
  /** Calls close() at the end of a block with `using`. */
  [Symbol.dispose](): void;
}

/** A type's side of the calls that transfer: the core hands these over as they are. */
export interface Carrier {
  /** `context.send` with `type`. @param context the Context */
  send(parameters: unknown, context: unknown): Result;
  /** `context.put` or `context.get` with `localType` or `remoteType`. @param rma the context's part for one-sided operations */
  transfer(call: "put" | "get", parameters: unknown, context: unknown, rma: unknown): Result;
  /** `message.receive` with `type`. @param message the Message @param options ReceiveOptions */
  receive(
    message: unknown,
    destination: ArrayBufferView,
    onComplete: Callback | undefined,
    cookie: unknown,
    options: unknown,
  ): void;
}

/** What carries a typed transfer. @throws PAMIR_INVAL: it is no type */
export function carrierOf(name: string, type: unknown): Carrier {
  const carrier = (type as { carrier?: Carrier } | null | undefined)?.carrier;
  if (carrier === undefined) throw new PamiError("PAMIR_INVAL", `${name} is ${show(type)}, not a type of createType()`);
  return carrier;
}
