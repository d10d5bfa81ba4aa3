// Carries frames through message channels: a channel for each direction between two nodes, made for its first frame.
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import { type FillRecords, FRAME_BYTES, type Frame, type OnFrame, type Pipe } from "./frames.js";

/**
 * Longer frames are transferred, not copied. Transferred and copied: 64 bytes 5.3 and 4.7 µs, 1 KiB 6 µs both, 16 KiB 5.7
 * and 27 µs (Chromium 156).
 */
const HAND_OVER_BYTES = 1024;

/** A message through a port. */
export interface Sent {
  readonly from: Endpoint;
  readonly to: Endpoint;
  readonly frame: Frame;
}

export class PortPipe implements Pipe {
  onFrame: OnFrame = () => false;
  /** The thread that launched the job detects failures. */
  readonly failureDetection = true;
  /** Nodes to which something other than an answer was sent. */
  readonly talkedTo = new Set<number>();
  readonly #connect: (node: number, port: MessagePort) => void;
  readonly #tasksPerNode: number;
  readonly #tasks: number;
  /** By node: its tasks that have ended. */
  readonly #dropped = new Map<number, Set<number>>();
  /** By node. */
  readonly #outgoing = new Map<number, MessagePort>();
  readonly #incoming = new Map<number, MessagePort>();

  /**
   * @param connect brings the other end of a channel to another node's `accept()`
   * @param tasksPerNode node n has the tasks from n times this number on
   * @param tasks of the job: the last node may have fewer
   */
  constructor(connect: (node: number, port: MessagePort) => void, tasksPerNode = 1, tasks = Number.POSITIVE_INFINITY) {
    this.#connect = connect;
    this.#tasksPerNode = tasksPerNode;
    this.#tasks = tasks;
  }

  #nodeOf(task: number): number {
    return Math.floor(task / this.#tasksPerNode);
  }

  /** Takes the port through which another node sends. */
  accept(node: number, port: MessagePort): void {
    this.#incoming.set(node, port);
    this.#listen(port);
  }

  #listen(port: MessagePort): void {
    port.onmessage = ({ data: { from, to, frame } }: MessageEvent<Sent>) => void this.onFrame(from, to, frame);
  }

  send(from: Endpoint, to: Endpoint, frame: Frame): void {
    const hasData = "data" in frame && frame.data !== undefined;
    if (hasData) this.#post(from, to, { ...frame, data: frame.data.slice() } as Frame);
    else this.#post(from, to, frame);
  }

  recordsMax(): number {
    return FRAME_BYTES;
  }

  sendRecords(from: Endpoint, to: Endpoint, length: number, fill: FillRecords): void {
    const bytes = new Uint8Array(length);
    fill({ words: new Int32Array(bytes.buffer), bytes }, 0);
    this.#post(from, to, { records: bytes });
  }

  /** Posts a frame with bytes of its own. */
  #post(from: Endpoint, to: Endpoint, frame: Frame): void {
    const task = taskOf(to);
    const node = this.#nodeOf(task);
    // An answer goes back through the channel of its question.
    const isAnswer = ("credit" in frame && frame.credit > 0) || "answer" in frame;
    const back = isAnswer ? this.#incoming.get(node) : undefined;
    if (back === undefined) this.talkedTo.add(this.firstTaskOf(task));
    const bytes = "records" in frame ? frame.records : "data" in frame ? frame.data : undefined;
    const isLong = bytes !== undefined && bytes.length > HAND_OVER_BYTES;
    const sent: Sent = { from, to, frame };
    (back ?? this.#to(node)).postMessage(sent, isLong ? [bytes.buffer as ArrayBuffer] : []);
  }

  #to(node: number): MessagePort {
    const there = this.#outgoing.get(node);
    if (there !== undefined) return there;
    const { port1, port2 } = new MessageChannel();
    this.#outgoing.set(node, port1);
    this.#listen(port1);
    this.#connect(node, port2);
    return port1;
  }

  flush(): void {}

  leave(): void {}

  firstTaskOf(task: number): number {
    return this.#nodeOf(task) * this.#tasksPerNode;
  }

  receivesFrom(task: number): boolean {
    return this.#incoming.has(this.#nodeOf(task));
  }

  /**
   * The node that stays closes the channels, once all tasks of the other node have ended. Firefox drops messages under way in a
   * channel that its writer closes.
   */
  drop(task: number): boolean {
    const node = this.#nodeOf(task);
    const dropped = this.#dropped.get(node) ?? new Set();
    this.#dropped.set(node, dropped.add(task));
    const first = this.firstTaskOf(task);
    if (dropped.size < Math.min(this.#tasksPerNode, this.#tasks - first)) return false;
    this.talkedTo.delete(first);
    for (const ports of [this.#incoming, this.#outgoing]) {
      ports.get(node)?.close();
      ports.delete(node);
    }
    return true;
  }
}
