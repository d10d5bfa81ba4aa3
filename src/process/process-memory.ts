// Makes the memory that the processes of a host share. V8 does not promise that a file can be mapped over its memory, so this
// tries it before a job uses the memory.
import { PAGE_SIZE } from "../../assembly/layout.js";
import { PamiError } from "../core/error.js";
import type { Futex } from "../kernel/kernel.js";
import type { MakeProcessMemory, ProcessMemory } from "../node/memory.js";
import { nodeModule } from "../support/host.js";
import { findPackage } from "../support/node/packages.js";
import { type Ffi, NODE_FFI, noProcesses, openFfi } from "./ffi.js";
import { type FutexSetup, LONG_SLEEP_MS, SLEEP_MS } from "./futex.js";
import { mapMemory, type ProcessMemorySetup } from "./mapping.js";
import { type OpenFile, openFile } from "./open-file.js";
import { futexWithBells } from "./pipe-bell.js";

/** A word that goes through the file and through the memory. */
const PROBE = 0x70616d69;

/**
 * What makes foreign calls: the path of koffi, where findPackage() finds it; else NODE_FFI, which is experimental.
 * @param entry URL of the module of the job's tasks
 * @throws PAMIR_NO_PROCESSES
 */
export function findFfi(entry?: string): string {
  const path = findPackage("koffi", entry);
  if (path !== undefined) return path;
  if (nodeModule("module")?.isBuiltin(NODE_FFI)) return NODE_FFI;
  throw noProcesses("the package koffi is not installed (npm install koffi), and this Node has no node:ffi");
}

/**
 * The path of the binary that koffi has loaded: another process loads that alone in half of the time. Where koffi loads it in
 * another way than by require(), the path stays.
 */
export function binaryOf(path: string): string {
  if (path === NODE_FFI) return path;
  const { createRequire } = nodeModule("module") as typeof import("node:module");
  const require = createRequire(path);
  const { default: binary } = require(path) as { default?: unknown };
  const { cache } = require;
  return Object.keys(cache).find((file) => file.endsWith(".node") && cache[file]?.exports === binary) ?? path;
}

/** How a task's thread sleeps. @param isOurs whether pamir has started the thread @throws PAMIR_NO_PROCESSES */
export function taskFutexOf(setup: FutexSetup, shared: WebAssembly.Memory, isOurs: boolean): Futex {
  const { isMainThread } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  return futexWithBells(setup, shared, isOurs || isMainThread ? LONG_SLEEP_MS : SLEEP_MS);
}

interface Permission {
  has(scope: string, path?: string): boolean;
}

/** Checks that this process may start others. @throws PAMIR_NO_PROCESSES */
export function checkMaySpawn(): void {
  const { permission } = process as { permission?: Permission };
  if (permission?.has("child") === false) throw noProcesses("node --permission takes --allow-child-process for them");
  if (!hasFolder(permission))
    throw noProcesses("the current folder does not exist any more, and Node does not start there");
}

/** Whether the current folder is still there. Node remembers its name. */
function hasFolder(permission: Permission | undefined): boolean {
  const { existsSync } = nodeModule("fs") as typeof import("node:fs");
  try {
    const folder = process.cwd();
    return permission?.has("fs.read", folder) === false || existsSync(folder);
  } catch {
    return false;
  }
}

/** Bytes of the memory by which processes try whether they can share one. */
const PROBE_BYTES = 65_536;

/**
 * Tries whether this process can share a memory with others.
 * @param least bytes of the smallest memory that will do: a limit may forbid so large a file
 * @param entry URL of the module of the job's tasks
 * @throws PAMIR_NO_PROCESSES
 */
export function probeProcesses(least = PROBE_BYTES, entry?: string): void {
  const ffi = openFfi(findFfi(entry));
  ffi.close(ffi.makeMemory(least));
  const descriptor = ffi.makeMemory(PROBE_BYTES);
  try {
    probe(mapMemory(ffi, PROBE_BYTES, descriptor, true).shared, descriptor, PROBE_BYTES);
  } finally {
    ffi.close(descriptor);
  }
}

/**
 * Why this process shares no memory with others; undefined: it can.
 * @param least bytes of the smallest memory that will do
 * @param entry URL of the module of the job's tasks
 */
export function whyNoProcesses(least: number, entry?: string): PamiError | undefined {
  try {
    probeProcesses(least, entry);
    return undefined;
  } catch (error) {
    if ((error as PamiError).code === "PAMIR_NO_PROCESSES") return error as PamiError;
    throw error;
  }
}

/** Makes the memory that a job's processes share. */
export class ProcessMemories {
  readonly #ffi: Ffi;
  #file: OpenFile | undefined;
  setup: ProcessMemorySetup | undefined;
  futex: FutexSetup | undefined;
  /** How this thread sleeps. */
  #own: Futex | undefined;

  /** @param entry URL of the module of the job's tasks @throws PAMIR_NO_PROCESSES */
  constructor(entry?: string) {
    this.#ffi = openFfi(findFfi(entry));
  }

  /** May be called again where it failed. */
  readonly make: MakeProcessMemory = (bytes) => {
    const made = this.#ffi.makeMemory(bytes);
    const file = openFile(this.#ffi, `/proc/self/fd/${made}`, "r+");
    this.#ffi.close(made);
    if (file === undefined) throw noProcesses("this process has no descriptor left, or /proc is missing");
    const { descriptor } = file;
    try {
      const { shared, futex } = mapMemory(this.#ffi, bytes, descriptor);
      probe(shared, descriptor, bytes);
      this.setup = { descriptor, bytes, ffi: binaryOf(this.#ffi.path) };
      this.futex = futex;
      this.#own = taskFutexOf(futex, shared, false);
      this.#file = file;
      return { shared, futex: this.#own, provide: providerOf(this.#own) };
    } catch (error) {
      file.close();
      throw error;
    }
  };

  /** Closes the descriptor: no process can be started any more. The memory goes with its last mapping. */
  close(): void {
    this.#file?.close();
    this.#file = undefined;
    this.setup = undefined;
    this.#own?.close();
  }
}

/** Has the system provide pages of a memory. */
export function providerOf(futex: Pick<Futex, "reserve">): ProcessMemory["provide"] {
  return (start, end) => {
    const first = start - (start % PAGE_SIZE);
    if (futex.reserve(first, end - first)) return;
    const text = `this host has no memory for the ${end - first} bytes of the job's tables (ENOMEM)`;
    throw new PamiError("PAMIR_MEMORY", text);
  };
}

/** Checks that the new memory is the file: its last word goes both ways. */
function probe(shared: WebAssembly.Memory, descriptor: number, bytes: number): void {
  const { readSync, writeSync } = nodeModule("fs") as typeof import("node:fs");
  const at = bytes - 4;
  const words = new Int32Array(shared.buffer);
  const word = new Int32Array(1);
  word[0] = PROBE;
  writeSync(descriptor, word, 0, 4, at);
  const isRead = words[at >>> 2] === PROBE;
  words[at >>> 2] = ~PROBE;
  readSync(descriptor, word, 0, 4, at);
  words[at >>> 2] = 0;
  if (!isRead || word[0] !== ~PROBE) throw noProcesses(`V8 ${process.versions.v8} does not use the mapped memory`);
}
