// What all operations under way have in common, whatever carries them.

import { letGo, type RegionState } from "../core/region.js";
import { type Callback, EAGAIN, type Result } from "../core/result.js";
import type { Arrival } from "../protocol/late-handler.js";
import type { Check, CollectiveCall } from "./calls.js";
import type { Elsewhere } from "./scratch.js";

/** How elements are combined. Pointers are those of the job's memory, or of memory elsewhere. */
export interface Reducer {
  readonly elementBytes: number;
  /** Operands and results begin at a multiple of this. The kernels' are checked where they come in, and have 1 here. */
  readonly align: number;
  /** Whether the user's code runs in it: it may throw. */
  readonly isUser: boolean;
  /** `out = left op right`; left comes from lower ranks. `out` may be one of the others. */
  reduce(out: number, left: number, right: number, bytes: number, elsewhere?: Elsewhere): void;
}

/** The buffers of one member in one operation, and how its elements are combined. */
export interface OperationBuffers {
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
  readonly reducer: Reducer | undefined;
}

/** Keeps regions open while they are used. */
export interface RegionHolder {
  /** Keeps the region of a buffer open until letGo(); undefined: it lies in none of this task's. */
  hold(buffer: Uint8Array): RegionState | undefined;
}

const NOTHING = (): void => {};

/** An operation that a member has begun. */
export abstract class CollectiveOperation {
  /** Its number in the geometry; 0 before it has begun. */
  number = 0;
  signature = 0;
  /** EAGAIN while it is under way. */
  result: Result = EAGAIN;
  /** What it is to end with, once nothing of it is being sent or read any more: EAGAIN while it goes on. */
  failure: Result = EAGAIN;
  /** What went wrong, in words; empty if the result says it all. */
  why = "";
  /** What the user's function has thrown here. */
  cause: unknown;
  /** In debug mode: what this member has called; and what all have, until the operation begins. */
  call: CollectiveCall | undefined;
  check: Check | undefined;
  onDone: Callback | undefined;
  /** Called as soon as it is over: a promise waits for it. */
  wake: () => void = NOTHING;
  /** Waits that will read the result: until then it is not begun anew. */
  waits = 0;
  cookie: unknown;
  /** The regions of its buffers. */
  #sendRegion: RegionState | undefined;
  #receiveRegion: RegionState | undefined;

  /** Goes on, and tells whether it is over. One function for each operation, so that a wait makes none. */
  readonly look = (): boolean => {
    if (this.isPolling && !this.isOver) this.advance();
    return this.isOver;
  };

  get isOver(): boolean {
    return this.result !== EAGAIN;
  }

  /** Whether it does nothing any more. */
  get isStopped(): boolean {
    return this.isOver || this.failure !== EAGAIN;
  }

  /** Whether bytes of its buffers are still being sent, or read by others: the caller may not have them back yet. */
  get isSending(): boolean {
    return false;
  }

  abstract readonly buffers: OperationBuffers | undefined;
  /** Whether each member reads the slots of all others: each hears what the others had completed before. */
  abstract readonly isMutual: boolean;
  /** Whether it reads words of other members, so that advance() has to be called. */
  abstract readonly isPolling: boolean;
  /** The last look before a sleep: whether advance() would do something. It may note what it finds, for advance() to name. */
  abstract lookBeforeSleep(): boolean;
  /** Whether it waits for its slot, and so do all that have begun behind it. */
  get isAtSlot(): boolean {
    return false;
  }

  /** Keeps the regions of its buffers open until it is over. */
  hold(regions: RegionHolder, send: Uint8Array, receive: Uint8Array): void {
    this.#sendRegion = regions.hold(send);
    this.#receiveRegion = regions.hold(receive);
  }

  /** It is over: regions that were to be closed meanwhile are. */
  letGo(): void {
    if (this.#sendRegion !== undefined) letGo(this.#sendRegion);
    if (this.#receiveRegion !== undefined) letGo(this.#receiveRegion);
    this.#sendRegion = undefined;
    this.#receiveRegion = undefined;
  }

  /** Goes on as far as it can. */
  abstract advance(): void;
  /** A message of this operation has come. */
  abstract came(kind: number, rank: number, arrival: Arrival, tag: number): void;
  /** How the bytes of a message of another operation differ from this one's transfer; empty: they don't, or it is unknown. */
  lengths(_kind: number, _rank: number, _arrival: Arrival, _tag: number): string {
    return "";
  }
  /** A member has ended, and nothing more comes from it. The operation fails if it needs something of it. */
  abstract ended(rank: number): void;
  /** Ranks of members without which it does not go on. */
  abstract awaited(): number[];
  /** It has failed: others must not take what its buffers have from now on for its bytes. */
  abandon(_result: Result): void {}
  /** Releases its memory. Called once, when it is over. */
  abstract release(): void;
}

/** An operation without buffers of its own: other code ends it. */
export class PlainOperation extends CollectiveOperation {
  readonly buffers = undefined;
  readonly isMutual = false;
  readonly isPolling = false;

  lookBeforeSleep(): boolean {
    return false;
  }

  advance(): void {}

  came(): void {}

  ended(): void {}

  awaited(): number[] {
    return [];
  }

  release(): void {}
}
