// Rings the threads of other processes that sleep by reading a pipe, see pipe-bell.ts.
import { TASK_PIPE_DESCRIPTOR_OFFSET, TASK_PIPE_INODE_OFFSET } from "../../assembly/layout.js";
import { nodeModule } from "../support/host.js";
import type { Ffi } from "./ffi.js";
import { type OpenFile, openFile } from "./open-file.js";
import { pipeOf, type SharedWords } from "./pipe-words.js";

const RING = new Uint8Array(1);

/** A pipe that this thread has opened. */
interface OpenPipe extends OpenFile {
  readonly inode: number;
}

/** The pipes of the threads that this one has rung. */
export class Pipes {
  readonly #ffi: Ffi;
  readonly #words: SharedWords;
  /** By task slot. */
  readonly #open = new Map<number, OpenPipe>();

  constructor(ffi: Ffi, words: SharedWords) {
    this.#ffi = ffi;
    this.#words = words;
  }

  /** Wakes the thread of a task slot if it sleeps in its event loop. The caller has changed its bell. */
  ring(slot: number): void {
    const pid = pipeOf(this.#words, slot);
    if (pid === 0) return;
    const descriptor = this.#opened(slot, pid);
    // A full pipe wakes its reader anyway. If the reader is gone, the write fails.
    if (descriptor !== undefined) this.#ffi.write(descriptor, RING);
  }

  #opened(slot: number, pid: number): number | undefined {
    const inode = this.#words.loadWord(slot + TASK_PIPE_INODE_OFFSET) >>> 0;
    const known = this.#open.get(slot);
    if (known?.inode === inode) return known.descriptor;
    known?.close();
    this.#open.delete(slot);
    const { constants, fstatSync } = nodeModule("fs") as typeof import("node:fs");
    const path = `/proc/${pid}/fd/${this.#words.loadWord(slot + TASK_PIPE_DESCRIPTOR_OFFSET)}`;
    const opened = openFile(this.#ffi, path, constants.O_WRONLY | constants.O_NONBLOCK);
    // The thread or its process has ended.
    if (opened === undefined) return undefined;
    // If the thread has ended, its number may be that of another file, or its process's that of another process.
    if (fstatSync(opened.descriptor).ino >>> 0 !== inode) {
      opened.close();
      return undefined;
    }
    this.#open.set(slot, { inode, ...opened });
    return opened.descriptor;
  }

  /** Closes them. The next ring opens its pipe again. */
  close(): void {
    for (const { close } of this.#open.values()) close();
    this.#open.clear();
  }
}
