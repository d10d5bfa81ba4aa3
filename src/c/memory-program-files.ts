// Files in memory, as users of the package make them.
import { systemClock } from "../support/clock.js";
import type { Folder } from "./wasi/files.js";
import { MemoryFolder, type MemoryTree } from "./wasi/memory-files.js";

/** Files that lie in memory. */
export interface MemoryFiles {
  /** For `folders` of `runProgram()`. */
  readonly folder: Folder;
  /** A copy of the bytes of a file, by its path from the folder, without links; undefined if there is none. */
  contents(path: string): Uint8Array<ArrayBuffer> | undefined;
  /** Copies of all files, without links. */
  tree(): MemoryTree;
}

/** Makes files in memory, which programs read and write. @param tree the files of the start; they are not changed */
export function memoryFiles(tree: MemoryTree = {}): MemoryFiles {
  const folder = MemoryFolder.of(tree, () => systemClock.origin + systemClock.now());
  return { folder, contents: (path) => folder.contents(path), tree: () => folder.tree() };
}
