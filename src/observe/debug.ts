// Debug mode: prints on the console, by name, what keeps a thread from making progress.

import { checkKeys, type Keys } from "../core/check.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError, show } from "../core/error.js";
import type { Handler } from "../core/message/dispatch.js";
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
  /** Milliseconds after which a wait is reported. */
  readonly patience: number;
  readonly clock: Clock;
  /** A description of what runs now. */
  running: string | undefined;
  readonly #slow: number;
  readonly #dump: () => Dump;
  /** By name: the longest time that was reported, in milliseconds. */
  readonly #told = new Map<string, number>();
  /** By endpoint: when the last advance of a context ended. Only contexts whose thread has not slept since. */
  readonly #advanced = new Map<Endpoint, number>();

  /** By endpoint of a context: the dispatch id whose messages wait for a handler. */
  readonly #handlerless = new Map<Endpoint, { readonly id: number; readonly since: number }>();

  constructor({ slow, wait }: DebugLimits, clock: Clock, dump: () => Dump) {
    this.clock = clock;
    this.#slow = slow;
    this.patience = wait;
    this.#dump = dump;
  }

  /** Wraps a handler, which is reported if it takes long. */
  handler(own: Endpoint, id: number, handler: Handler): Handler {
    const name = `the handler of dispatch id ${id} in ${nameOf(own)}`;
    return (message) => this.ran(name, () => handler(message));
  }

  /** Runs a function, and reports it if it takes long. */
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

  /** An advance of a context, which began at `start`, has found something. */
  found(own: Endpoint, start: number): void {
    const pause = start - (this.#advanced.get(own) ?? start);
    if (pause > this.#slow) this.#check(nameOf(own), "was not advanced for", pause, `until ${caller()}`);
  }

  /** An advance of a context is over. */
  ended(own: Endpoint): void {
    this.#advanced.set(own, this.clock.now());
  }

  /** Takes, after an advance, the dispatch id whose messages have waited longest for a handler, or -1. */
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

  /** The thread has slept: none of its contexts was kept from advancing. */
  slept(): void {
    this.#advanced.clear();
  }

  /** A wait has lasted for `patience`. */
  lasts(wait: WaitName, own: Endpoint): void {
    const state = this.#dump().toString();
    console.warn(`pamir: ${wait} of ${nameOf(own)} goes on for ${this.patience} ms\n${state}`);
  }

  /** Reports what took long: once, and again if it takes twice as long. */
  #check(name: string, what: string, milliseconds: number, why: string): void {
    if (milliseconds <= this.#slow || milliseconds < 2 * (this.#told.get(name) ?? 0)) return;
    this.#told.set(name, milliseconds);
    console.warn(`pamir: ${name} ${what} ${milliseconds.toFixed(0)} ms: ${why}`);
  }
}

/** A frame of the API. esbuild renames a class that refers to itself to `_Context`, and one of two in a file to `Context2`. */
const OWN_FRAME = /\b_?(?:Context|Client|Geometry|Parker|Receiver)\d*\./;

/** The place that called pamir: a line of the stack. */
function caller(): string {
  const lines = new Error().stack?.split("\n") ?? [];
  const own = lines.findLastIndex((line) => OWN_FRAME.test(line));
  const line = own < 0 ? undefined : lines[own + 1];
  return line?.trim().replace(/^at /, "") ?? "an unknown place";
}
