// A context as the program has it: its handle, and what its calls reuse.
import type { Callback, Context, PutParameters, SendParameters } from "../../index.js";

/** Calls a function of the program: its index in the table, and its arguments. */
export type EventCall = (fn: number, context: number, cookie: number, result: number) => void;

const HALF = 2 ** 32;

/** Packs a function and its cookie into one number of up to 52 bits, so that no call makes a closure for its callback. */
export function packed(fn: number, cookie: number): number {
  return fn * HALF + (cookie >>> 0);
}

export class ProgramContext {
  readonly context: Context;
  /** From 1. */
  readonly handle: number;
  /** Address of a pami_recv_t for handlers. */
  readonly receiveAt: number;
  /** Calls the function in a packed cookie. */
  readonly done: Callback;
  /** Parameters of calls, used again and again. */
  readonly send: SendParameters = { to: 0, dispatch: 0 };
  readonly put: PutParameters;
  /** By dispatch id: whether a send may wait for room. Ids that are not in it: it may. */
  readonly noQueue = new Set<number>();
  /** Advances without an event, one behind the other; and when the last 256 of them had begun. */
  idle = 0;
  idleSince = 0;

  constructor(context: Context, handle: number, receiveAt: number, put: PutParameters, event: EventCall) {
    this.context = context;
    this.handle = handle;
    this.receiveAt = receiveAt;
    this.put = put;
    this.done = (cookie, result) => {
      const fn = Math.floor((cookie as number) / HALF);
      event(fn, handle, (cookie as number) - fn * HALF, result);
    };
  }
}
