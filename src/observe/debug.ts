// Debug mode: says on the console what keeps a thread from making progress, by name.

import { checkKeys, type Keys } from "../core/check.js";
import type { Handler } from "../core/dispatch.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError, show } from "../core/error.js";
import type { WaitName } from "../node/wait-kinds.js";
import type { Clock } from "../support/clock.js";
import type { Dump } from "./dump.js";

/** Options of debug mode. */
export interface DebugOptions {
  /** Milliseconds that a handler may take without a warning (default 50). */
  slow?: number | undefined;
  /** Milliseconds that a wait may last without a warning (default 10,000). */
  wait?: number | undefined;
}

/** The same, with defaults. */
export interface DebugLimits {
  readonly slow: number;
  readonly wait: number;
}

const DEBUG_KEYS: Keys<DebugOptions> = { slow: true, wait: true };

const SLOW_MS = 50;
const WAIT_MS = 10_000;

/** `debug` of launch(), with its defaults; undefined: off. @throws PAMIR_INVAL */
export function checkDebug(debug: unknown): DebugLimits | undefined {
  if (debug === undefined || debug === false) return undefined;
  if (debug !== true && (typeof debug !== "object" || debug === null)) {
    throw new PamiError("PAMIR_INVAL", `debug is ${show(debug)}, not a boolean, nor { slow, wait }`);
  }
  if (debug !== true) checkKeys("debug", debug, DEBUG_KEYS);
  const { slow = SLOW_MS, wait = WAIT_MS } = debug === true ? ({} as DebugOptions) : (debug as DebugOptions);
  for (const [name, value] of Object.entries({ slow, wait })) {
    if (typeof value !== "number" || !(value > 0)) {
      throw new PamiError("PAMIR_INVAL", `debug.${name} is ${show(value)}, not a number of milliseconds above 0`);
    }
  }
  return { slow, wait };
}

export class Debug {
  /** Milliseconds after which a wait is told of. */
  readonly patience: number;
  readonly clock: Clock;
  /** What runs now, in words. */
  running: string | undefined;
  readonly #slow: number;
  readonly #dump: () => Dump;
  /** The longest time told of each, in milliseconds. */
  readonly #told = new Map<string, number>();
  /** When the last advance of a context ended, and the thread has not slept since; by endpoint. */
  readonly #advanced = new Map<Endpoint, number>();

  /** What waits for a handler, by the endpoint of its context. */
  readonly #handlerless = new Map<Endpoint, { readonly id: number; readonly since: number }>();

  constructor({ slow, wait }: DebugLimits, clock: Clock, dump: () => Dump) {
    this.clock = clock;
    this.#slow = slow;
    this.patience = wait;
    this.#dump = dump;
  }

  /** A handler that is named if it takes long. */
  handler(own: Endpoint, id: number, handler: Handler): Handler {
    const name = `the handler of dispatch id ${id} in ${nameOf(own)}`;
    return (message) => this.ran(name, () => handler(message));
  }

  /** Runs something that others wait for. */
  ran<T>(name: string, run: () => T): T {
    const before = this.running;
    const start = this.clock.now();
    this.running = name;
    try {
      return run();
    } finally {
      this.running = before;
      this.#check(name, "took", this.clock.now() - start, "nothing else of that context made progress meanwhile");
    }
  }

  /** An advance of a context has found something; it began at `start`, and is over. */
  found(own: Endpoint, start: number): void {
    const pause = start - (this.#advanced.get(own) ?? start);
    if (pause > this.#slow) this.#check(nameOf(own), "was not advanced for", pause, `until ${caller()}`);
  }

  /** An advance of a context is over. */
  ended(own: Endpoint): void {
    this.#advanced.set(own, this.clock.now());
  }

  /** After an advance: the dispatch id of a context whose messages have waited longest for a handler, or -1. */
  waitsForHandler(own: Endpoint, id: number): void {
    const waiting = this.#handlerless.get(own);
    if (id < 0) {
      if (waiting !== undefined) this.#handlerless.delete(own);
    } else if (waiting?.id !== id) this.#handlerless.set(own, { id, since: this.clock.now() });
    else {
      const name = `dispatch id ${id} of ${nameOf(own)}`;
      this.#check(
        name,
        "has had no handler for",
        this.clock.now() - waiting.since,
        "messages to it wait for dispatch()",
      );
    }
  }

  /** The thread has slept: no context of it was kept from advancing. */
  slept(): void {
    this.#advanced.clear();
  }

  /** A wait has lasted for `patience`. */
  lasts(wait: WaitName, own: Endpoint): void {
    const state = this.#dump().toString();
    console.warn(`pamir: ${wait} of ${nameOf(own)} goes on for ${this.patience} ms\n${state}`);
  }

  /** Tells of what took long: once, and again where it took twice as long. */
  #check(name: string, what: string, milliseconds: number, why: string): void {
    if (milliseconds <= this.#slow || milliseconds < 2 * (this.#told.get(name) ?? 0)) return;
    this.#told.set(name, milliseconds);
    console.warn(`pamir: ${name} ${what} ${milliseconds.toFixed(0)} ms: ${why}`);
  }
}

/** From where pamir was called: a line of the stack. */
function caller(): string {
  const lines = new Error().stack?.split("\n") ?? [];
  const own = lines.findLastIndex((line) => /\b(?:Context|Client|Parker|Receiver)\./.test(line));
  return (lines[own + 1] ?? "an unknown place").trim().replace(/^at /, "");
}
