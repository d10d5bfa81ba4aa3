// A connection that carries lines in both directions: over a socket, or between two parts of one process.
import type { Duplex } from "node:stream";
import { PamiError } from "../core/error.js";
import { after } from "../support/timers.js";
import type { Framing } from "./pmi/pmi-wire.js";
import { reasonText } from "./text.js";

/** Bytes that wait for a peer that does not read. With more bytes waiting, no further line of the peer is handled. */
const UNSENT_MAX = 64 * 1024;

/** Milliseconds that the peer has to end its side, too, before the stream is destroyed. */
const LINGER_MS = 1000;

/** A socket, or another duplex stream of Node. */
export type Stream = Duplex;

export interface LineReceiver {
  /** A line has come. An error that onLine() throws ends the connection with that error. */
  onLine(line: string): void;
  /** No more lines come. onEnd() is called once. @param error undefined if the peer ended the connection */
  onEnd(error: PamiError | undefined): void;
}

export interface Lines {
  /** Delivers lines from now on. start() is called once; no line that comes before is lost. */
  start(receiver: LineReceiver): void;
  /** Sends a line. After the end of the connection, send() does nothing. */
  send(line: string): void;
  /** Sends all waiting lines, then ends the connection. `onEnd` is not called any more. */
  end(): void;
  /** Ends the connection at once. `onEnd` is not called any more. */
  destroy(): void;
}

/** Lines over a duplex stream, which the connection owns. */
export class StreamLines implements Lines {
  readonly #stream: Stream;
  readonly #framing: Framing;
  #receiver: LineReceiver | undefined;
  #isClosed = false;
  #isDelivering = false;

  /** @param framing may have bytes already */
  constructor(stream: Stream, framing: Framing) {
    this.#stream = stream;
    this.#framing = framing;
    // The stream keeps an error before start(): start() sees the stream destroyed.
    stream.on("error", (error) => this.#finish(broken(error)));
  }

  start(receiver: LineReceiver): void {
    this.#receiver = receiver;
    const stream = this.#stream;
    if (this.#isClosed || stream.destroyed) {
      this.#isClosed = true;
      receiver.onEnd(broken(stream.errored ?? new Error("it is closed")));
      return;
    }
    stream.on("data", (bytes: Uint8Array) => {
      this.#framing.push(bytes);
      this.#deliver();
    });
    stream.on("drain", () => this.#deliver());
    stream.on("end", () => this.#finish(undefined));
    stream.on("close", () => this.#finish(undefined));
    this.#deliver();
  }

  send(line: string): void {
    if (!this.#isClosed && this.#stream.writable) this.#stream.write(this.#framing.frame(line));
  }

  end(): void {
    this.#isClosed = true;
    const stream = this.#stream;
    if (stream.destroyed) return;
    // Destroying it at once could take the last line from the peer: with unread bytes, an end is a reset (RFC 1122,
    // 4.2.2.13).
    const stop = after(LINGER_MS, () => stream.destroy());
    stream.once("close", stop);
    stream.resume();
    stream.end();
    (stream as { unref?: () => void }).unref?.();
  }

  destroy(): void {
    this.#isClosed = true;
    this.#stream.destroy();
  }

  /** Delivers whole lines, as long as the peer reads its answers. */
  #deliver(): void {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      while (!this.#isClosed) {
        if (this.#stream.writableLength > UNSENT_MAX) {
          // "drain" goes on.
          this.#stream.pause();
          return;
        }
        const line = this.#framing.next();
        if (line === undefined) break;
        this.#receiver?.onLine(line);
      }
      if (!this.#isClosed) this.#stream.resume();
    } catch (error) {
      const reason = error instanceof PamiError ? error : broken(error);
      this.#finish(reason);
    } finally {
      this.#isDelivering = false;
    }
  }

  #finish(error: PamiError | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.destroy();
    this.#receiver?.onEnd(error);
  }
}

function broken(error: unknown): PamiError {
  return new PamiError("PAMIR_BOOTSTRAP", `the connection broke: ${reasonText(error)}`);
}

/** One end of a connection within a process. Lines arrive in a microtask of their own. */
class LinkedLines implements Lines {
  #other: LinkedLines | undefined;
  #receiver: LineReceiver | undefined;
  readonly #waiting: string[] = [];
  #isClosed = false;
  #isEnded = false;

  link(other: LinkedLines): void {
    this.#other = other;
  }

  start(receiver: LineReceiver): void {
    this.#receiver = receiver;
    queueMicrotask(() => this.#deliver());
  }

  send(line: string): void {
    if (this.#isClosed) return;
    const other = this.#other as LinkedLines;
    other.#waiting.push(line);
    queueMicrotask(() => other.#deliver());
  }

  end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const other = this.#other as LinkedLines;
    other.#isEnded = true;
    queueMicrotask(() => other.#deliver());
  }

  destroy(): void {
    this.end();
  }

  #deliver(): void {
    const receiver = this.#receiver;
    if (receiver === undefined) return;
    try {
      while (!this.#isClosed && this.#waiting.length > 0) receiver.onLine(this.#waiting.shift() as string);
    } catch (error) {
      if (!(error instanceof PamiError)) throw error;
      this.end();
      receiver.onEnd(error);
      return;
    }
    if (this.#isClosed || !this.#isEnded) return;
    this.#isClosed = true;
    receiver.onEnd(undefined);
  }
}

/** The two ends of a connection within this process. */
export function linkedLines(): [Lines, Lines] {
  const ends = [new LinkedLines(), new LinkedLines()] as const;
  ends[0].link(ends[1]);
  ends[1].link(ends[0]);
  return [...ends];
}
