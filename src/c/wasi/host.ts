// What a program has of its host, and what its calls share.
import type { Descriptors } from "./descriptors.js";
import type { Preopen } from "./files.js";
import type { ProgramMemory } from "./program-memory.js";

/** What a program has of its host. What these functions throw goes through the program to the caller of its start function. */
export interface WasiHost {
  /** The first one is the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Files that the program may reach: below these folders, and nowhere else. */
  readonly folders: readonly Preopen[];
  /** The memory that the program's addresses are offsets of, as long as it is now. */
  bytes(): Uint8Array;
  /** Writes a copy of what the program writes to standard output (1) or error (2). */
  write(stream: 1 | 2, bytes: Uint8Array): void;
  /** Waits for standard input. @returns at most `count` bytes; none at its end */
  read(count: number): Uint8Array;
  /** Milliseconds, monotonic. */
  now(): number;
  /** Milliseconds since 1970. */
  wallTime(): number;
  /** Blocks the thread. @throws where it must not, as a page's own thread */
  sleep(milliseconds: number): void;
}

/** What the calls share. */
export interface WasiState {
  readonly host: WasiHost;
  readonly memory: ProgramMemory;
  readonly descriptors: Descriptors;
}

/** A call: it throws a WasiFailure, or returns nothing, which is 0 to the program. */
export type WasiCall = (...args: never[]) => void;
