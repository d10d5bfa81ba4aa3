// What a scenario sees: one job's memory, and kernels that stop before every access.
import type { Kernel, Memory } from "../../src/kernel/kernel.js";
import { twinKernel } from "../../src/kernel/twin/index.js";
import type { MemoryMap } from "../../src/memory/map.js";
import { Rig } from "../support/kernels.js";
import { ACCESS } from "./instrument.js";
import type { Turnstile } from "./turnstile.js";

/** Words that a thread can note in one run. */
export const NOTES_MAX = 256;

export class World extends Rig {
  /** The thread's own record of what it saw, for the scenario's check. */
  note: (value: number) => void = () => {};
  readonly kernel: Kernel;
  readonly #turnstile: Turnstile;

  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, turnstile: Turnstile) {
    super(kernel, kernel, memory, map);
    this.kernel = kernel;
    this.#turnstile = turnstile;
  }

  /** A plain load, as the runtime makes one. */
  load(pointer: number): number {
    this.#turnstile.access(ACCESS.load, pointer);
    return this.memory.words[pointer >>> 2] as number;
  }

  /** A plain store. */
  store(pointer: number, value: number): void {
    this.#turnstile.access(ACCESS.store, pointer);
    this.memory.words[pointer >>> 2] = value;
  }
}

/** Imports of the instrumented module, over one thread's turnstile. */
export function hooks(turnstile: Turnstile, { words, bytes }: Memory): WebAssembly.ModuleImports {
  const range = (kind: number, from: number, length: number): void => {
    for (let at = from & ~3; at < from + length; at += 4) turnstile.onAccess(kind, at);
  };
  return {
    access(kind: number, pointer: number, offset: number): number {
      turnstile.access(kind, (pointer + offset) >>> 0);
      return pointer;
    },
    wait(pointer: number, expected: number, timeout: bigint): number {
      return turnstile.wait(pointer >>> 0, () => words[pointer >>> 2] === expected, timeout >= 0n);
    },
    notify(pointer: number): number {
      return turnstile.notify(pointer >>> 0);
    },
    fill(to: number, value: number, length: number): void {
      turnstile.access(ACCESS.store, to >>> 0);
      range(ACCESS.store, to >>> 0, length);
      bytes.fill(value, to >>> 0, (to >>> 0) + length);
    },
    copy(to: number, from: number, length: number): void {
      turnstile.access(ACCESS.store, to >>> 0);
      range(ACCESS.load, from >>> 0, length);
      range(ACCESS.store, to >>> 0, length);
      bytes.copyWithin(to >>> 0, from >>> 0, (from >>> 0) + length);
    },
  };
}

/** The instrumented module's exports as a Kernel: every number that comes out is unsigned. */
export function exploredKernel(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  turnstile: Turnstile,
  views: Memory,
): Kernel {
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, explore: hooks(turnstile, views) });
  const kernel: Record<string, unknown> = { name: "wasm" };
  for (const [name, call] of Object.entries(exports)) {
    if (typeof call !== "function") continue;
    kernel[name] = (...args: number[]) => {
      const result = call(...args) as number | undefined;
      return result === undefined ? undefined : result >>> 0;
    };
  }
  return kernel as unknown as Kernel;
}

/** The twin over words that stop before every access; its atomics are those of this thread from now on. */
export function exploredTwin(memory: Memory, turnstile: Turnstile): Kernel {
  const { words, bytes } = memory;
  const place = (index: number): number => (index << 2) >>> 0;
  const watched = new Proxy(words, {
    get(_, name) {
      const index = typeof name === "string" ? Number(name) : Number.NaN;
      if (Number.isInteger(index)) {
        turnstile.access(ACCESS.load, place(index));
        return words[index];
      }
      if (name === "fill") {
        return (value: number, from: number, to: number) => {
          turnstile.access(ACCESS.store, place(from));
          for (let at = from; at < to; at++) turnstile.onAccess(ACCESS.store, place(at));
          words.fill(value, from, to);
        };
      }
      throw new Error(`the explorer does not know words.${String(name)}`);
    },
    set(_, name, value) {
      turnstile.access(ACCESS.store, place(Number(name)));
      words[Number(name)] = value;
      return true;
    },
  });
  const real = {
    ...Object.fromEntries(Object.getOwnPropertyNames(Atomics).map((name) => [name, Reflect.get(Atomics, name)])),
  } as unknown as typeof Atomics;
  const change =
    (operation: (array: Int32Array, index: number, ...values: number[]) => number) =>
    (_: Int32Array, index: number, ...values: number[]) => {
      turnstile.access(ACCESS.atomicChange, place(index));
      return operation(words, index, ...values);
    };
  Object.assign(Atomics, {
    load: (_: Int32Array, index: number) => {
      turnstile.access(ACCESS.atomicLoad, place(index));
      return real.load(words, index);
    },
    store: (_: Int32Array, index: number, value: number) => {
      turnstile.access(ACCESS.atomicStore, place(index));
      return real.store(words, index, value);
    },
    add: change(real.add as never),
    or: change(real.or as never),
    and: change(real.and as never),
    exchange: change(real.exchange as never),
    compareExchange: change(real.compareExchange as never),
    wait: (_: Int32Array, index: number, expected: number, timeout: number) => {
      const result = turnstile.wait(
        place(index),
        () => words[index] === expected,
        timeout !== Number.POSITIVE_INFINITY,
      );
      return (["ok", "not-equal", "timed-out"] as const)[result];
    },
    notify: (_: Int32Array, index: number) => turnstile.notify(place(index)),
  });
  const watchedBytes = new Proxy(bytes, {
    get(_, name) {
      if (name !== "copyWithin") throw new Error(`the explorer does not know bytes.${String(name)}`);
      return (to: number, from: number, end: number) => {
        turnstile.access(ACCESS.store, to);
        bytes.copyWithin(to, from, end);
      };
    },
  });
  return twinKernel({ buffer: memory.buffer, words: watched, bytes: watchedBytes });
}
