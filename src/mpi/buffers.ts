// Where the engine finds the bytes of a view: in a region of this task where the view lies in one, else in a place for a copy.
import { type Client, type MemRegion, PamiError } from "../index.js";

/** Places begin at this size, and double. */
const CLASS_MIN = 12;
/** A larger place has the size that is asked for, and is not kept. */
const CLASS_MAX = 20;
/** Bytes of idle places that are kept. */
const IDLE_MAX = 1 << 22;

/** @throws PAMIR_INVAL */
export function bytesOf(call: string, view: unknown): Uint8Array {
  if (view instanceof Uint8Array) return view;
  if (!ArrayBuffer.isView(view)) {
    throw new PamiError("PAMIR_INVAL", `the view of ${call}() is ${String(view)}, not a typed array or DataView`);
  }
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Places for copies of views that lie elsewhere. */
export class CopyPlaces {
  readonly #client: Client;
  /** Idle places, by the logarithm of their size. */
  readonly #idle: MemRegion[][] = [];
  #idleBytes = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** @throws PAMIR_NO_MEMORY */
  take(bytes: number): MemRegion {
    const size = Math.max(CLASS_MIN, 32 - Math.clz32(Math.max(1, bytes) - 1));
    if (size > CLASS_MAX) return this.#client.createRegion(bytes);
    const idle = this.#idle[size]?.pop();
    if (idle === undefined) return this.#client.createRegion(2 ** size);
    this.#idleBytes -= idle.length;
    return idle;
  }

  give(place: MemRegion): void {
    const size = 31 - Math.clz32(place.length);
    if (place.length > 2 ** CLASS_MAX || this.#idleBytes + place.length > IDLE_MAX) {
      place.close();
      return;
    }
    this.#idle[size] ??= [];
    (this.#idle[size] as MemRegion[]).push(place);
    this.#idleBytes += place.length;
  }

  /** Closes the idle places. */
  close(): void {
    for (const places of this.#idle) for (const place of places ?? []) place.close();
    this.#idle.length = 0;
    this.#idleBytes = 0;
  }
}
