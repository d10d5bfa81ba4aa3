// Values that a task or a result transfers instead of copying: move().
import { types } from "node:util";
import type { MessagePort, Worker } from "node:worker_threads";

/** What postMessage() can transfer. Its name in the types of Node is another one from 26 on. */
export type TransferListItem = NonNullable<Parameters<Worker["postMessage"]>[1]>[number];

/** Key of what an object transfers: it is a `Transferable` with this and `valueSymbol`. */
export const transferableSymbol: unique symbol = Symbol.for("Piscina.transferable") as never;
/** Key of the value that goes instead of a `Transferable`. */
export const valueSymbol: unique symbol = Symbol.for("Piscina.valueOf") as never;
/** Key of a task's options for the queue (`taskQueue`). */
export const queueOptionsSymbol: unique symbol = Symbol.for("Piscina.queueOptions") as never;
const movable = Symbol.for("pamir.piscina.movable");

/** An object that says by itself what is transferred, and what the other thread gets. */
export interface Transferable {
  /** What is transferred. */
  readonly [transferableSymbol]: object;
  /** What the other thread gets. */
  readonly [valueSymbol]: object;
}

const isTransferable = (value: unknown): value is Transferable =>
  typeof value === "object" && value !== null && transferableSymbol in value && valueSymbol in value;

/**
 * Marks a task, or what a worker's function returns, to be transferred: its bytes, a MessagePort, or what a `Transferable`
 * says. Else it is copied.
 */
export function move(
  value: Transferable | TransferListItem | ArrayBufferView | ArrayBuffer | MessagePort,
): ArrayBuffer | ArrayBufferView | MessagePort | Transferable {
  if (typeof value !== "object" || value === null) return value;
  const marked: Transferable = isTransferable(value)
    ? value
    : { [transferableSymbol]: types.isArrayBufferView(value) ? value.buffer : value, [valueSymbol]: value };
  Object.defineProperty(marked, movable, { value: true, configurable: true, writable: true });
  return marked;
}

/** Whether move() has marked a value. */
export const isMoved = (value: unknown): value is Transferable =>
  isTransferable(value) && (value as { [movable]?: boolean })[movable] === true;

/** What goes for a value that move() has marked, and what of it is transferred. */
export const moved = (
  value: Transferable,
  transfer: readonly unknown[],
): [value: unknown, transfer: readonly unknown[]] => [value[valueSymbol], transfer.concat(value[transferableSymbol])];
