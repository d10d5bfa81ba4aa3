// Frames through the ports of channels: one each way between two tasks, made when there is something to say.
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import type { Frame, OnFrame, Pipe } from "./frames.js";

/** Longer frames are handed over, not copied: 64 bytes 5.3 and 4.7 µs, 1 KiB 6 both, 16 KiB 5.7 and 27 (Chromium 156). */
const HAND_OVER_BYTES = 1024;

interface Sent {
  readonly from: Endpoint;
  readonly to: Endpoint;
  readonly frame: Frame;
}

export class PortPipe implements Pipe {
  onFrame: OnFrame = () => false;
  /** By the thread that launched the job. */
  readonly failureDetection = true;
  readonly #connect: (task: number, port: MessagePort) => void;
  readonly #outgoing = new Map<number, MessagePort>();
  readonly #incoming = new Map<number, MessagePort>();

  /** @param connect brings the other end of a channel to another task's `accept()` */
  constructor(connect: (task: number, port: MessagePort) => void) {
    this.#connect = connect;
  }

  /** Another task has something to say, by this port. */
  accept(task: number, port: MessagePort): void {
    this.#incoming.set(task, port);
    this.#listen(port);
  }

  #listen(port: MessagePort): void {
    port.onmessage = ({ data: { from, to, frame } }: MessageEvent<Sent>) => void this.onFrame(from, to, frame);
  }

  send(from: Endpoint, to: Endpoint, frame: Frame): void {
    const task = taskOf(to);
    // What answers goes the way that the question came.
    const back = "credit" in frame || "answer" in frame ? this.#incoming.get(task) : undefined;
    const bytes = "records" in frame ? frame.records : "data" in frame ? frame.data : undefined;
    const isLong = bytes !== undefined && bytes.length > HAND_OVER_BYTES;
    const sent: Sent = { from, to, frame };
    (back ?? this.#to(task)).postMessage(sent, isLong ? [bytes.buffer as ArrayBuffer] : []);
  }

  #to(task: number): MessagePort {
    const there = this.#outgoing.get(task);
    if (there !== undefined) return there;
    const { port1, port2 } = new MessageChannel();
    this.#outgoing.set(task, port1);
    this.#listen(port1);
    this.#connect(task, port2);
    return port1;
  }

  flush(): void {}

  leave(): void {}

  get talkedTo(): Iterable<number> {
    return this.#outgoing.keys();
  }

  receivesFrom(task: number): boolean {
    return this.#incoming.has(task);
  }

  /** The one who stays closes the channels: Firefox drops what is under way in one that is closed by who wrote it. */
  drop(task: number): void {
    for (const ports of [this.#incoming, this.#outgoing]) {
      ports.get(task)?.close();
      ports.delete(task);
    }
  }
}
