// The output of a task on another host goes at the pace of its reader. Of each stream, the starter sends a window of bytes, and
// stops reading. `pamir run` gives bytes back once its reader takes them, so it keeps little, and reads all frames at once.
import { Readable } from "node:stream";
import { LEFT_MAX } from "../../../start/output/labels.js";

/** Most bytes of a stream that are sent and not taken, beyond which at most one chunk of a pipe goes. */
const OUTPUT_WINDOW = 256 * 1024;

/** A stream of a task, where the task runs. */
export class HeldOutput {
  readonly #stream: Readable;
  #room = OUTPUT_WINDOW;

  /** @param send sends bytes; afterwards the caller says by flow() whether more may come */
  constructor(stream: Readable, send: (bytes: Buffer) => void) {
    this.#stream = stream;
    stream.on("data", (bytes: Buffer) => {
      this.#room -= bytes.length;
      send(bytes);
    });
  }

  /** So many bytes more may be sent. */
  give(bytes: number): void {
    this.#room += bytes;
  }

  /** The process has ended: what it has left comes at once. Others that have its pipe are held back again. */
  takeRest(): void {
    this.give(LEFT_MAX);
  }

  /** Reads on while there is room. @param isOpen whether the connection takes more */
  flow(isOpen: boolean): void {
    if (isOpen && this.#room > 0) this.#stream.resume();
    else this.#stream.pause();
  }
}

/** The same stream at `pamir run`. */
export class RemoteOutput extends Readable {
  readonly #give: (bytes: number) => void;
  readonly #come: Buffer[] = [];
  #isWanted = false;
  #isComplete = false;

  /** @param give tells the starter that so many bytes have been taken */
  constructor(give: (bytes: number) => void) {
    super();
    this.#give = give;
  }

  /** Bytes have come. */
  add(bytes: Buffer): void {
    this.#come.push(bytes);
    if (this.#isWanted) this._read();
  }

  /** No more come. */
  complete(): void {
    this.#isComplete = true;
    if (this.#isWanted) this._read();
  }

  override _read(): void {
    const bytes = this.#come.shift();
    this.#isWanted = bytes === undefined && !this.#isComplete;
    if (bytes !== undefined) {
      this.#give(bytes.length);
      this.push(bytes);
    } else if (this.#isComplete) {
      this.push(null);
    }
  }
}
