// What `pamir run` and the starter of a host say to each other, over standard input and output of the remote shell. Frames
// carry orders, output, ends, and the lines of PMI, so nothing has to listen and one connection's end is the end of all.
//
//  bytes 0-3    length of what follows byte 8, big-endian
//  byte 4       kind
//  bytes 5-7    task, big-endian
//  bytes 8-     content
//
// Before its first frame, the starter writes a line: a login shell may have written others.
import type { Readable, Writable } from "node:stream";
import { every } from "../../../support/timers.js";

/** Version of the frames. */
const PROTOCOL = 4;
const HEADER_BYTES = 8;
/** Longest content: an order has arguments and variables, which Linux limits to 2 MiB. */
const CONTENT_MAX = 8 * 1024 * 1024;
/**
 * Milliseconds between two frames, at most. TCP then notices a host that has vanished, in about 15 minutes; a process that is
 * stopped for a while loses nothing.
 */
const ALIVE_MS = 15_000;
/** Most bytes before the starter's line. */
const NOISE_MAX = 64 * 1024;

export const FRAME = {
  // To the starter.
  key: 1,
  order: 2,
  go: 3,
  input: 4,
  inputEnd: 5,
  kill: 6,
  news: 7,
  /** So many bytes of output, and of errors, have been taken by the reader of `pamir run`. */
  outputTaken: 8,
  errorTaken: 9,
  pass: 10,
  // To `pamir run`.
  ready: 16,
  refused: 17,
  output: 18,
  error: 19,
  ended: 20,
  /** So many bytes of input have been taken by the task. */
  taken: 21,
  // In both directions.
  pmi: 32,
  pmiEnd: 33,
  alive: 34,
} as const;
export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

/** What the starter is to run. The key travels in a frame of its own. */
export interface StartOrder {
  readonly app: string;
  readonly args: readonly string[];
  readonly execArgv: readonly string[];
  readonly argv0: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** That a process has at least. */
  readonly memories: number;
  readonly tasks: readonly { readonly task: number; readonly env: Readonly<Record<string, string>> }[];
}

/** The line of a starter. @param version of the package */
export function greeting(version: string): string {
  return `pamir node, frames ${PROTOCOL}, version ${version}\n`;
}

export interface FrameReceiver {
  /** The starter's line has come. @param version of its package @param isRight whether both speak the same frames */
  onGreeting?(version: string, isRight: boolean): void;
  onFrame(kind: number, task: number, content: Buffer): void;
  /** No more frames come. @param why what was wrong with what came; undefined at the end of the stream */
  onEnd(why: string | undefined): void;
}

export class Frames {
  readonly #output: Writable;
  readonly #receiver: FrameReceiver;
  readonly #stopAlive: () => void;
  #bytes: Buffer = Buffer.alloc(0);
  #isGreeted: boolean;
  #isClosed = false;

  /** @param isStarter whether the other side writes a greeting first */
  constructor(input: Readable, output: Writable, receiver: FrameReceiver, isStarter: boolean) {
    this.#output = output;
    this.#receiver = receiver;
    this.#isGreeted = !isStarter;
    input.on("data", (bytes: Buffer) => this.#take(bytes));
    input.on("end", () => this.#end(undefined));
    input.on("close", () => this.#end(undefined));
    input.on("error", () => this.#end(undefined));
    // A pipe that the other side has closed: the input's end says so, too.
    output.on("error", () => {});
    this.#stopAlive = every(ALIVE_MS, () => {
      if (this.#isGreeted) this.send(FRAME.alive);
    });
  }

  /** Sends a frame. @returns whether the stream has room for more; otherwise "drain" tells when */
  send(kind: FrameKind, task = 0, content: Uint8Array | string = ""): boolean {
    if (this.#isClosed || !this.#output.writable) return true;
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    if (bytes.length > CONTENT_MAX)
      throw new RangeError(`a frame of ${bytes.length} bytes, not at most ${CONTENT_MAX}`);
    const frame = Buffer.allocUnsafe(HEADER_BYTES + bytes.length);
    frame.writeUInt32BE(bytes.length, 0);
    frame.writeUInt32BE(task, 4);
    frame.writeUInt8(kind, 4);
    frame.set(bytes, HEADER_BYTES);
    return this.#output.write(frame);
  }

  /** Takes no more frames, and ends the output behind those that were sent. */
  close(): void {
    this.#isClosed = true;
    this.#stopAlive();
    this.#output.end();
  }

  #take(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    if (!this.#isGreeted) this.#greet();
    while (this.#isGreeted && !this.#isClosed && this.#bytes.length >= HEADER_BYTES) {
      const length = this.#bytes.readUInt32BE(0);
      if (length > CONTENT_MAX) {
        this.#end(`a frame of ${length} bytes came, not of at most ${CONTENT_MAX}`);
        return;
      }
      const end = HEADER_BYTES + length;
      if (this.#bytes.length < end) return;
      const [kind, task] = [this.#bytes.readUInt8(4), this.#bytes.readUIntBE(5, 3)];
      const content = this.#bytes.subarray(HEADER_BYTES, end);
      this.#bytes = this.#bytes.subarray(end);
      this.#receiver.onFrame(kind, task, content);
    }
  }

  #greet(): void {
    const text = this.#bytes.subarray(0, NOISE_MAX).toString("latin1");
    const found = /^pamir node, frames (\d+), version (\S+)\n/m.exec(text);
    if (found === null) {
      if (this.#bytes.length > NOISE_MAX) this.#end(`${NOISE_MAX} bytes came, and no line of a pamir node`);
      return;
    }
    const [line, protocol, version] = found;
    this.#isGreeted = true;
    this.#bytes = this.#bytes.subarray(found.index + line.length);
    this.#receiver.onGreeting?.(version as string, protocol === `${PROTOCOL}`);
  }

  #end(why: string | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopAlive();
    this.#receiver.onEnd(why);
  }
}
