// The common part of all operations under way, over messages or in a shared memory.

import { letGo, type RegionState } from "../core/region.js";
import { type Callback, EAGAIN, type Result } from "../core/result.js";
import type { Arrival } from "../protocol/late-handler.js";
import type { Check, CollectiveCall } from "./calls.js";
import type { Elsewhere } from "./scratch.js";

/** How elements are combined. Pointers are into the job's memory, or into memory elsewhere. */
export interface Reducer {
  readonly elementBytes: number;
  /**
   * Operands and results begin at a multiple of this number. The operands of kernels are checked where they come in, so kernels
   * have 1 here.
   */
  readonly align: number;
  /** Whether the combination runs code of the user, which may throw. */
  readonly isUser: boolean;
  /** `out = left op right`; left comes from lower ranks. `out` may be `left` or `right`. */
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
  /** Keeps the region of a buffer open until letGo(); undefined: the buffer lies in no region of this task. */
  hold(buffer: Uint8Array): RegionState | undefined;
}

const NOTHING = (): void => {};

/** An operation that a member has begun. */
export abstract class CollectiveOperation {
  /** The operation's number in the geometry; 0 before it has begun. */
  number = 0;
  signature = 0;
  /** The result; EAGAIN while the operation is under way. */
  result: Result = EAGAIN;
  /** The result with which the operation will end, once none of its bytes are being sent or read; EAGAIN while it goes on. */
  failure: Result = EAGAIN;
  /** The reason of a failure, in words; empty if the result says enough. */
  why = "";
  /** The error that the user's function has thrown here. */
  cause: unknown;
  /** In debug mode: this member's call; and the calls of all members, until the operation begins. */
  call: CollectiveCall | undefined;
  check: Check | undefined;
  onDone: Callback | undefined;
  /** Called as soon as the operation is over: a promise waits for this call. */
  wake: () => void = NOTHING;
  /** Waits that will read the result: until then the operation is not begun anew. */
  waits = 0;
  cookie: unknown;
  /** The regions of the buffers. */
  #sendRegion: RegionState | undefined;
  #receiveRegion: RegionState | undefined;

  /** Goes on, and returns whether the operation is over. A function for each operation, so that a wait makes no function. */
  readonly look = (): boolean => {
    if (this.isPolling && !this.isOver) this.advance();
    return this.isOver;
  };

  get isOver(): boolean {
    return this.result !== EAGAIN;
  }

  /** Whether the operation has nothing more to do. */
  get isStopped(): boolean {
    return this.isOver || this.failure !== EAGAIN;
  }

  /**
   * Whether bytes of the buffers are still being sent, or read by other members: the caller may not have the buffers back yet.
   */
  get isSending(): boolean {
    return false;
  }

  abstract readonly buffers: OperationBuffers | undefined;
  /** Whether each member reads the slots of all other members, and so hears which operations they had completed before. */
  abstract readonly isMutual: boolean;
  /** Whether the operation reads words of other members, so that advance() has to be called. */
  abstract readonly isPolling: boolean;
  /**
   * The last look before a sleep: whether advance() would make progress. The look may note a failure, for advance() to name.
   */
  abstract lookBeforeSleep(): boolean;
  /** Whether the operation waits for its slot, as do all operations begun after it. */
  get isAtSlot(): boolean {
    return false;
  }

  /** Keeps the regions of the buffers open until the operation is over. */
  hold(regions: RegionHolder, send: Uint8Array, receive: Uint8Array): void {
    this.#sendRegion = regions.hold(send);
    this.#receiveRegion = regions.hold(receive);
  }

  /** The operation is over: closes regions that were to be closed meanwhile. */
  letGo(): void {
    if (this.#sendRegion !== undefined) letGo(this.#sendRegion);
    if (this.#receiveRegion !== undefined) letGo(this.#receiveRegion);
    this.#sendRegion = undefined;
    this.#receiveRegion = undefined;
  }

  /** Goes on as far as possible. */
  abstract advance(): void;
  /** A message of this operation has come. */
  abstract came(kind: number, rank: number, arrival: Arrival, tag: number): void;
  /**
   * How the bytes of a message of another operation differ from this operation's transfer; empty: no difference, or an unknown
   * one.
   */
  lengths(_kind: number, _rank: number, _arrival: Arrival, _tag: number): string {
    return "";
  }
  /** A member has ended, and no more messages come from it. The operation fails if it needs bytes of that member. */
  abstract ended(rank: number): void;
  /** Ranks of the awaited members. */
  abstract awaited(): number[];
  /** The operation failed. From now on other members must not read its buffers as its data. */
  abandon(_result: Result): void {}
  /** Releases the operation's memory. Called once, when the operation is over. */
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
