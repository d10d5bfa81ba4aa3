// What waits for other nodes, and whose turn it is. A segment gets its order number here (D8) and a index in a packet; the
// packets of a node stay together until it has said to have them, whatever sessions they are sent in.
import { PACKET_DATA } from "../../assembly/layout.js";
import type { Address } from "../link/link.js";
import { Queue } from "../support/queue.js";
import { grown, type NodeState } from "./node-state.js";
import { Packet } from "./packet.js";

/** Bytes of packets that are kept for the next: as many as are under way, not to be made anew each time. */
const SPARE_BYTES = 2 ** 21;

/** What is for one node. It exists only while there is something. */
export class TxQueue {
  readonly node: number;
  readonly to: Address;
  readonly packets = new Queue<Packet>();
  /** Those that were in a session before: they come first. */
  again: Packet[] = [];
  bytes = 0;
  /** Times in a row that it was asked, and nothing came back. */
  attempts = 0;
  /** It accepted a session, and acknowledged nothing in it: that it accepts others proves nothing. */
  isMute = false;
  /** When it was asked for the first time of them, in microseconds. */
  silentSince = 0;
  /** Connect packets in a row that were refused for want of a responder. */
  refusals = 0;
  /** Not to be connected to before, in microseconds. */
  notBefore = 0;
  isServed = false;
  /** Whether it stands in the line of those that are to be served. */
  isWaiting = false;

  constructor(node: number, to: Address) {
    this.node = node;
    this.to = to;
  }

  /** Packets that are to be sent. */
  get length(): number {
    return this.again.length + this.packets.length;
  }

  /** Takes the next packet out. */
  take(): Packet | undefined {
    if (this.again.length > 0) return this.again.shift();
    const { first } = this.packets;
    if (first !== undefined) this.packets.shift();
    return first;
  }
}

export class TxQueues {
  readonly #state: NodeState;
  readonly #txQueueBytes: number;
  readonly #queues = new Map<number, TxQueue>();
  /** Those that may be served, in turn. */
  readonly #line = new Queue<TxQueue>();
  /** Those that may not be yet: nobody looks at them before the first of them may. */
  readonly #resting = new Set<TxQueue>();
  #restUntil = Number.POSITIVE_INFINITY;
  /** Next order number to each target endpoint, by origin endpoint and target. */
  readonly #orders = new Map<number, Uint32Array<ArrayBuffer>>();
  readonly #spare: Packet[] = [];

  constructor(state: NodeState) {
    const { txQueueBytes = 1_048_576 } = state.options;
    this.#state = state;
    this.#txQueueBytes = txQueueBytes;
  }

  /**
   * Takes a segment for an endpoint of a node, in the order of the calls; it is copied.
   * @returns false: too much waits for that node already
   */
  submit(node: number, origin: number, target: number, kind: number, content: Uint8Array): boolean {
    const { contentMax } = this.#state;
    if (content.length > contentMax)
      throw new RangeError(`a segment's content has ${content.length} bytes, more than ${contentMax}`);
    const queue = this.#queues.get(node) ?? this.#make(node);
    // One that is larger than all that may wait goes alone.
    if (queue.bytes > 0 && queue.bytes + content.length > this.#txQueueBytes) return false;
    let packet = queue.packets.last;
    if (packet === undefined || packet.room < content.length) {
      packet = (this.#spare.pop() ?? new Packet(this.#state.packetBytes)).begin(PACKET_DATA, this.#state.options.job);
      queue.packets.push(packet);
    }
    queue.bytes += content.length;
    packet.segment(origin, target, this.#nextOrder(origin, target), kind, content);
    this.#wait(queue);
    return true;
  }

  #make(node: number): TxQueue {
    const queue = new TxQueue(node, this.#state.options.addressOf(node));
    this.#queues.set(node, queue);
    return queue;
  }

  #nextOrder(origin: number, target: number): number {
    let orders = this.#orders.get(origin);
    if (orders === undefined || orders.length <= target) {
      orders = grown(orders ?? new Uint32Array(64), target);
      this.#orders.set(origin, orders);
    }
    const order = orders[target] as number;
    orders[target] = order + 1;
    return order;
  }

  // ── Turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Puts a queue into the line, unless it is served or stands there. */
  #wait(queue: TxQueue): void {
    if (queue.isServed || queue.isWaiting) return;
    queue.isWaiting = true;
    if (queue.notBefore <= this.#state.time.now()) this.#line.push(queue);
    else {
      this.#resting.add(queue);
      this.#restUntil = Math.min(this.#restUntil, queue.notBefore);
    }
  }

  /** Puts those into the line that have rested for long enough. */
  rouse(now: number): void {
    if (this.#restUntil > now) return;
    this.#restUntil = Number.POSITIVE_INFINITY;
    for (const queue of this.#resting) {
      if (queue.notBefore <= now) {
        this.#resting.delete(queue);
        this.#line.push(queue);
      } else this.#restUntil = Math.min(this.#restUntil, queue.notBefore);
    }
  }

  /** When rouse() will find one, in microseconds. */
  get restUntil(): number {
    return this.#restUntil;
  }

  /** Whether a node waits that could be served now. */
  get isAwaited(): boolean {
    return this.#line.length > 0;
  }

  /** Takes the one whose turn it is out of the line: it is served from now on. */
  next(): TxQueue | undefined {
    for (let queue = this.#line.first; queue !== undefined; queue = this.#line.first) {
      this.#line.shift();
      if (!this.has(queue)) continue;
      queue.isWaiting = false;
      queue.isServed = true;
      return queue;
    }
    return undefined;
  }

  /** A queue is not served any more. @param left what its node has not said to have, in order */
  end(queue: TxQueue, left: Iterable<Packet>): void {
    queue.again.unshift(...left);
    queue.isServed = false;
    if (queue.length > 0) this.#wait(queue);
    else if (this.has(queue)) this.#queues.delete(queue.node);
  }

  /** A node has said to have these packets. */
  there(queue: TxQueue, packets: readonly Packet[]): void {
    for (const packet of packets) {
      queue.bytes -= packet.contentBytes;
      if (this.#spare.length * this.#state.packetBytes < SPARE_BYTES) this.#spare.push(packet);
    }
  }

  // ── Ends ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether a queue is still its node's: it is not once that is lost. */
  has(queue: TxQueue): boolean {
    return this.#queues.get(queue.node) === queue;
  }

  /** A node is lost. @returns what was for it: it is empty */
  forget(node: number): TxQueue | undefined {
    const queue = this.#queues.get(node);
    if (queue === undefined) return undefined;
    queue.again = [];
    queue.packets.clear();
    this.#queues.delete(node);
    this.#resting.delete(queue);
    return queue;
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    for (const orders of this.#orders.values()) if (target < orders.length) orders[target] = 0;
  }

  /** Nodes for which there is something. */
  get count(): number {
    return this.#queues.size;
  }

  /** What is kept for targets that it has nothing for: words; and packets for the next. */
  get kept(): { orders: number; spare: number } {
    let orders = 0;
    for (const { length } of this.#orders.values()) orders += length;
    return { orders, spare: this.#spare.length };
  }
}
