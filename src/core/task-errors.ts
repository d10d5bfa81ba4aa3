// The errors by which tasks ended, so that other tasks can learn why a task is gone. The monitor writes a task's error
// before it marks the task dead; the others read the error once they see that mark. Each of the node's tasks has one place:
//
//   byte  field   type  writer   reader  meaning
//      0  length  u32   monitor  tasks   bytes of the text; 0: the task closed its client, and ended without an error
//      4  text    u8…   monitor  tasks   JSON: name, message, code, exit code, signal, stack
//
// They lie behind the node's map. If tasks share no memory, each task has a buffer of its own, and writes the errors that the
// launcher reports.
import { decodeText, encodeText } from "../support/text.js";
import { RemoteError, type RemoteParts, textOf } from "./error.js";

/** Bytes of a task's place: enough for a name, a text and some 30 lines of a stack. */
const PLACE_BYTES = 4096;
const TEXT_BYTES_MAX = PLACE_BYTES - 4;

/** An error in the form that goes from thread to thread. */
export type ErrorParts = Pick<RemoteParts, "name" | "message" | "code" | "stack" | "exitCode" | "signal">;

export class TaskErrors {
  readonly #lengths: Uint32Array;
  readonly #bytes: Uint8Array;
  readonly #first: number;

  /**
   * @param at offset of the first task's place, a multiple of 4. Behind the last one, all is zero
   * @param first number of the first task in the job
   */
  constructor(buffer: ArrayBufferLike, at = 0, first = 0) {
    this.#lengths = new Uint32Array(buffer, at);
    this.#bytes = new Uint8Array(buffer, at);
    this.#first = first;
  }

  /** Returns the bytes of the buffer for a number of tasks. */
  static bytesFor(tasks: number): number {
    return tasks * PLACE_BYTES;
  }

  /**
   * Writes a task's error, shortened to its place, unless the task has recorded one itself. The caller then announces the
   * task's end (SYNC task-state).
   */
  write(task: number, { name, message, code, stack, exitCode, signal }: ErrorParts): void {
    const place = this.#placeOf(task);
    if (this.#lengths[place / 4] !== 0) return;
    // A character of the text takes up to 6 bytes of JSON.
    for (let characters = TEXT_BYTES_MAX; ; characters = Math.floor(characters / 2)) {
      // A program may throw anything.
      const cut = (text: unknown) => textOf(text).slice(0, characters);
      // The message comes before the stack, which repeats it.
      const told = { name: cut(name), message: cut(message), code: code && cut(code), exitCode, signal };
      const parts = { ...told, stack: stack && cut(stack) };
      const text = encodeText(JSON.stringify(parts));
      if (text.length > TEXT_BYTES_MAX) continue;
      // Plain: owned until the task is marked dead.
      this.#bytes.set(text, place + 4);
      this.#lengths[place / 4] = text.length;
      return;
    }
  }

  /** Returns the error by which a task ended, if known. The caller has seen that the task is dead (SYNC task-state). */
  of(task: number): RemoteError | undefined {
    const start = this.#placeOf(task) + 4;
    const length = this.#lengths[start / 4 - 1] as number | undefined;
    if (!length) return undefined;
    // slice() copies: a decoder refuses shared memory.
    return new RemoteError(JSON.parse(decodeText(this.#bytes.slice(start, start + length))), `task ${task}`);
  }

  #placeOf(task: number): number {
    return (task - this.#first) * PLACE_BYTES;
  }
}
