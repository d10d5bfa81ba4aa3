// A connection in memory, whose bytes a test can see, change and hold back.
import { Duplex } from "node:stream";

/** What an attacker does to the bytes of one direction. */
type Change = (bytes: Buffer) => Buffer;

/** One end of a connection in memory. */
export class End extends Duplex {
  other: End | undefined;
  /** All bytes that were sent from here, before they were changed. */
  readonly sent: Buffer[] = [];
  change: Change = (bytes) => bytes;
  /** Whether the other end reads; otherwise what is written waits here. */
  #isHeld = false;
  #held: (() => void) | undefined;

  /** Stops, or goes on, with what is written. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) return;
    const held = this.#held;
    this.#held = undefined;
    held?.();
  }

  override _read(): void {}

  override _write(bytes: Buffer, encoding: BufferEncoding, done: () => void): void {
    if (this.#isHeld) {
      this.#held = () => this._write(bytes, encoding, done);
      return;
    }
    this.sent.push(Buffer.from(bytes));
    const changed = this.change(Buffer.from(bytes));
    if (changed.length > 0) this.other?.push(changed);
    done();
  }

  override _final(done: () => void): void {
    this.other?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.other?.readableEnded === false) this.other.push(null);
    done(error);
  }
}

export function connection(): [End, End] {
  const [one, other] = [new End(), new End()];
  one.other = other;
  other.other = one;
  return [one, other];
}
