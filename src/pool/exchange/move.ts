// What is moved instead of copied: move(). Between threads that have a message port, a moved value goes by that port, and the
// call has a number in its place; see mover.ts. Elsewhere it is copied, and what was to be transferred is detached.
import { codecs, PamiError } from "../../index.js";
import { isDetached } from "../../support/copy.js";

/** Marks what move() was given. A class of its own, so that no codec copies it. */
export class Moved {
  readonly value: unknown;
  /** What is transferred. */
  readonly transfer: readonly object[];
  /** Whether it is the receiver's. */
  isGiven = false;

  constructor(value: unknown, transfer: readonly object[]) {
    this.value = value;
    this.transfer = transfer;
  }
}

export const isMoved = (value: unknown): value is Moved => value instanceof Moved;

/**
 * Moves a value to the other thread instead of copying it: a whole argument, a whole result, or a whole value of a stream. What
 * is transferred belongs to the other thread from then on: an ArrayBuffer is detached here, once the call is sent to its
 * worker. Large buffers go so without a copy, and MessagePort, ImageBitmap, OffscreenCanvas and streams go at all. To a worker
 * in another process or of another job, ArrayBuffers are copied and detached here all the same; other objects are refused.
 * @param value an object that can be transferred, or a view of an ArrayBuffer, which takes all of its buffer along. With
 *   `transfer`, whatever the host's structured clone copies: no functions, and no signals that stay
 * @param transfer what is transferred of the value
 * @returns the value as its receiver has it, for the types; it is only to be passed on to a call, or returned
 * @throws PAMIR_INVAL; the call rejects with PAMIR_CLONE for what can't be transferred, and nothing is detached then
 */
export function move<T>(value: T, transfer?: readonly object[]): T {
  const shown = (what: unknown): string => (what === null ? "null" : typeof what);
  if (transfer !== undefined) {
    if (!Array.isArray(transfer)) {
      throw new PamiError("PAMIR_INVAL", `move() takes an array of what is transferred, not ${shown(transfer)}`);
    }
    for (const one of transfer as unknown[]) {
      if (typeof one === "object" && one !== null) continue;
      throw new PamiError("PAMIR_INVAL", `move() transfers objects, and its list has ${shown(one)}`);
    }
    if (isMoved(value)) throw new PamiError("PAMIR_INVAL", "move() of what move() has given");
    return new Moved(value, [...transfer]) as T;
  }
  if (typeof value !== "object" || value === null) {
    throw new PamiError("PAMIR_INVAL", `move() takes an object that can be transferred, not ${shown(value)}`);
  }
  if (isMoved(value)) throw new PamiError("PAMIR_INVAL", "move() of what move() has given");
  return new Moved(value, [ArrayBuffer.isView(value) ? value.buffer : value]) as T;
}

/** Whether one of a call's arguments was moved: the call can't be begun again. */
export const hasGone = (args: readonly unknown[]): boolean => args.some((arg) => isMoved(arg) && arg.isGiven);

/** What an object is. A MessagePort of Node is an EventTarget by its brand. */
function kindOf(what: object): string {
  const brand = Object.prototype.toString.call(what).slice(8, -1);
  const { constructor: type } = what as { constructor?: unknown };
  return brand.endsWith("ArrayBuffer") || typeof type !== "function" ? brand : type.name;
}

const refused = (why: string, cause?: unknown): PamiError => new PamiError("PAMIR_CLONE", why, { cause });

/** The error for a moved value within another value. */
export const nested = (): PamiError =>
  refused(
    "a value of move() is part of another value: it can be a whole argument, a whole result, or a whole value of a stream. " +
      "move(value, [what is transferred]) takes the other value, too",
  );

/** Checks what one message moves, as far as every host would refuse it. @throws PAMIR_CLONE */
export function checkMoved(all: readonly Moved[]): void {
  const seen = new Set<object>();
  for (const { transfer, isGiven: isGone } of all) {
    if (isGone) throw refused("a value of move() was moved before: it is another thread's");
    for (const one of transfer) {
      const name = kindOf(one);
      if (name === "SharedArrayBuffer")
        throw refused("a SharedArrayBuffer can't be moved: all threads share its memory");
      if (name === "ArrayBuffer" && isDetached(one as ArrayBuffer)) {
        throw refused("an ArrayBuffer can't be moved: it is detached, as after an earlier move");
      }
      if (seen.has(one)) throw refused(`the same ${name} can't be moved twice in one call`);
      seen.add(one);
    }
  }
}

/** Checks what is to be copied, since no port leads to the receiver. @throws PAMIR_CLONE */
export function checkCopied(all: readonly Moved[]): void {
  for (const { value, transfer } of all) {
    // A port takes no functions or signals either.
    if (transfer[0] !== (ArrayBuffer.isView(value) ? value.buffer : value)) codecs.clone().encode(value);
    for (const one of transfer) {
      if (kindOf(one) === "ArrayBuffer") continue;
      throw refused(
        `${kindOf(one)} can't be moved to this endpoint, and is not copied: only threads of a pool, and connect() of a worker, have a port for it`,
      );
    }
  }
}

/** Posts what one message moves. @throws PAMIR_CLONE: nothing is posted or detached then */
export function postMoved(port: MessagePort, number: number, all: readonly Moved[]): void {
  try {
    port.postMessage(
      [number, all.map(({ value }) => value)],
      all.flatMap(({ transfer }) => transfer) as Transferable[],
    );
  } catch (cause) {
    const kinds = all.flatMap(({ transfer }) => transfer.map(kindOf)).join(", ");
    throw refused(`what move() was given can't be transferred (${kinds}): ${(cause as Error).message}`, cause);
  }
  for (const moved of all) moved.isGiven = true;
}

/** Detaches what was copied, as if it had been transferred. */
export function detachMoved(all: readonly Moved[]): void {
  for (const { transfer } of all) {
    for (const one of transfer) {
      try {
        structuredClone(one, { transfer: [one as ArrayBuffer] });
      } catch {
        // Memory of WebAssembly can't be detached: it was copied.
      }
    }
  }
}

/** Closes what has come for a call that was given up, if it can be closed: a MessagePort, an ImageBitmap. */
export function dropMoved(values: readonly unknown[]): void {
  for (const value of values) {
    const { close } = Object(value) as { close?: unknown };
    if (typeof close === "function") Reflect.apply(close, value, []);
  }
}
