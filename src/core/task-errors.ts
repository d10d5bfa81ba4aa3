// The errors by which tasks ended, for others to learn why a task is gone. The monitor writes the error of a task before
// it marks that task dead; the others read it once they see that mark. One place for each task:
//
//   byte  field   type  writer   reader  meaning
//      0  length  u32   monitor  tasks   bytes of the text; 0: the task ended without an error
//      4  text    u8…   monitor  tasks   JSON: name, message, code, stack
//
// Where tasks share no memory, each task has such a buffer for itself, and writes what it hears from the launcher.
import { decodeText, encodeText } from "../support/text.js";
import { RemoteError } from "./error.js";

/** Bytes of a task's place: a name, a text and some 30 lines of a stack. */
const PLACE_BYTES = 4096;
const TEXT_BYTES_MAX = PLACE_BYTES - 4;

/** An error as it goes from thread to thread. */
export type ErrorParts = ConstructorParameters<typeof RemoteError>[0];

export class TaskErrors {
  readonly #lengths: Uint32Array;
  readonly #bytes: Uint8Array;

  constructor(buffer: ArrayBufferLike) {
    this.#lengths = new Uint32Array(buffer);
    this.#bytes = new Uint8Array(buffer);
  }

  /** Bytes of the buffer for so many tasks. */
  static bytesFor(tasks: number): number {
    return tasks * PLACE_BYTES;
  }

  /** Keeps a task's error, shortened to what its place holds. The caller then tells of the task's end (SYNC D). */
  write(task: number, { name, message, code, stack }: ErrorParts): void {
    // A character of the text takes up to 6 bytes of JSON.
    for (let characters = TEXT_BYTES_MAX; ; characters = Math.floor(characters / 2)) {
      const cut = (text: string) => text.slice(0, characters);
      // A stack repeats the message, so that one comes first.
      const parts = { name: cut(name), message: cut(message), code, stack: stack && cut(stack) };
      const text = encodeText(JSON.stringify(parts));
      if (text.length > TEXT_BYTES_MAX) continue;
      // Plain: owned until the task is marked dead.
      this.#bytes.set(text, task * PLACE_BYTES + 4);
      this.#lengths[(task * PLACE_BYTES) / 4] = text.length;
      return;
    }
  }

  /** The error by which a task ended, if it is known. The caller has seen that the task is dead (SYNC D). */
  of(task: number): RemoteError | undefined {
    const length = this.#lengths[(task * PLACE_BYTES) / 4] as number;
    if (length === 0) return undefined;
    const start = task * PLACE_BYTES + 4;
    // A decoder takes no shared memory: a copy.
    return new RemoteError(JSON.parse(decodeText(this.#bytes.slice(start, start + length))), `task ${task}`);
  }
}
