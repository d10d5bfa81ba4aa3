// The transmit queues of a node, one for each target node, and the round robin among them. A segment gets its order number
// here (D8), and its place in a packet. Its packet stays in the queue's accounting until the target acknowledges it,
// whichever sessions carry it.
import { PACKET_DATA } from "../../assembly/layout.js";
import type { Address } from "../link/link.js";
import { Queue } from "../support/queue.js";
import type { NodeState } from "./node-state.js";
import type { Routes } from "./routes.js";
import { SparseWords } from "./store/sparse-words.js";
import { Packet } from "./wire/packet.js";

/**
 * A pair of contexts may have 4 MiB on its way, and a batch of its lane more. A frame that finds no room waits in a buffer, and
 * is copied twice: with 4 MiB, 57 % of the frames of messages of 1 MiB did, and now 7 %.
 */
const TX_QUEUE_BYTES = 6_291_456;

/** The transmit queue of one target node. It exists only while it has something to send. */
export class TxQueue {
  readonly node: number;
  readonly #routes: Routes;
  /** Packets that no session has sent yet. */
  readonly packets = new Queue<Packet>();
  /** Packets that an earlier session sent, and that were not acknowledged: they go first. */
  unacknowledged: Packet[] = [];
  /** Bytes of content, acknowledged packets excluded. */
  bytes = 0;
  /** Unanswered attempts in a row, to connect or to probe. */
  attempts = 0;
  /** The target accepted a session, and acknowledged nothing in it: accepting another one does not reset `attempts`. */
  isUnresponsive = false;
  /** When the first of these attempts was made, in microseconds. */
  firstAttempt = 0;
  /** Connect packets in a row that were refused for want of a responder. */
  refusals = 0;
  /** No connection before that time, in microseconds. */
  notBefore = 0;
  /** The reference of a connection to its node that has yielded before it was accepted; 0: there is none. */
  yielded = 0;
  /** Whether a connection serves it. */
  isServed = false;
  /** Whether it waits for a connection, in the round robin or in backoff. */
  isWaiting = false;

  constructor(node: number, routes: Routes) {
    this.node = node;
    this.#routes = routes;
  }

  /** The node's address, which may change. */
  get to(): Address {
    return this.#routes.to(this.node);
  }

  /** Packets to be sent. */
  get length(): number {
    return this.unacknowledged.length + this.packets.length;
  }

  /** Removes the next packet. */
  take(): Packet | undefined {
    if (this.unacknowledged.length > 0) return this.unacknowledged.shift();
    const { first } = this.packets;
    if (first !== undefined) this.packets.shift();
    return first;
  }
}

export class TxQueues {
  readonly #state: NodeState;
  readonly #maxBytes: number;
  readonly #queues = new Map<number, TxQueue>();
  /** Queues that may be served now, in round-robin order. */
  readonly #ready = new Queue<TxQueue>();
  /** Those whose targets have accepted a connection that had yielded: they go first. */
  readonly #accepted = new Queue<TxQueue>();
  /** Queues that may not be served before their `notBefore`. */
  readonly #inBackoff = new Set<TxQueue>();
  /** The earliest `notBefore` of those. */
  #backoffUntil = Number.POSITIVE_INFINITY;
  /** Next order number of each stream, by origin endpoint and target endpoint. */
  readonly #orders = new Map<number, SparseWords>();
  /** Those of the last origin, and mostly of the next one, too: it saves a Map lookup. */
  #lastOrders = new SparseWords();
  #lastOrigin = -1;
  readonly #spare: Packet[] = [];

  /** @param txQueueBytes of content that may be queued for one node, and in flight to it */
  constructor(state: NodeState, txQueueBytes = TX_QUEUE_BYTES) {
    this.#state = state;
    this.#maxBytes = txQueueBytes;
  }

  /** Bytes of content that the packet takes which is filled for a node now; negative: there is none. */
  roomFor(node: number): number {
    return this.#queues.get(node)?.packets.last?.room ?? -1;
  }

  /**
   * Queues a segment for an endpoint of a node. The caller writes its content into the packet at once. A stream delivers its
   * segments in the order of the calls.
   * @param bytes of the content
   * @returns the packet, whose last segment it is; undefined: the node's queue is full
   */
  claim(node: number, origin: number, target: number, kind: number, bytes: number): Packet | undefined {
    const { contentMax } = this.#state;
    if (bytes > contentMax) throw new RangeError(`a segment's content has ${bytes} bytes, more than ${contentMax}`);
    let queue = this.#queues.get(node);
    if (queue === undefined) {
      queue = new TxQueue(node, this.#state.routes);
      this.#queues.set(node, queue);
    }
    // An empty queue takes a segment of any size.
    if (queue.bytes > 0 && queue.bytes + bytes > this.#maxBytes) return undefined;
    let packet = queue.packets.last;
    if (packet === undefined || packet.room < bytes) {
      packet = (this.#spare.pop() ?? new Packet(this.#state.packetBytes)).begin(PACKET_DATA, this.#state.job);
      queue.packets.push(packet);
    }
    queue.bytes += bytes;
    packet.segment(origin, target, this.#nextOrder(origin, target), kind, bytes);
    this.#schedule(queue);
    return packet;
  }

  #nextOrder(origin: number, target: number): number {
    if (origin !== this.#lastOrigin) {
      let orders = this.#orders.get(origin);
      if (orders === undefined) {
        orders = new SparseWords();
        this.#orders.set(origin, orders);
      }
      this.#lastOrigin = origin;
      this.#lastOrders = orders;
    }
    return this.#lastOrders.increment(target);
  }

  // ── Round robin ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Lets a queue wait for a connection, unless it has one or waits already. */
  #schedule(queue: TxQueue): void {
    if (queue.isServed || queue.isWaiting) return;
    queue.isWaiting = true;
    if (queue.notBefore <= this.#state.time.now()) this.#ready.push(queue);
    else {
      this.#inBackoff.add(queue);
      this.#backoffUntil = Math.min(this.#backoffUntil, queue.notBefore);
    }
  }

  /** Moves the queues whose backoff is over into the round robin. */
  endBackoffs(now: number): void {
    if (this.#backoffUntil > now) return;
    this.#backoffUntil = Number.POSITIVE_INFINITY;
    for (const queue of this.#inBackoff) {
      if (queue.notBefore <= now) {
        this.#inBackoff.delete(queue);
        this.#ready.push(queue);
      } else this.#backoffUntil = Math.min(this.#backoffUntil, queue.notBefore);
    }
  }

  /** A node is alive: its queue may be served at once, and its unanswered attempts do not count. */
  hasten(node: number): void {
    const queue = this.#queues.get(node);
    if (queue === undefined) return;
    queue.attempts = 0;
    queue.notBefore = 0;
    if (this.#inBackoff.has(queue)) this.#backoffUntil = 0;
  }

  /** The target of a queue that waits has accepted its connection: the next context serves it. */
  prefer(queue: TxQueue): void {
    this.#inBackoff.delete(queue);
    this.#accepted.push(queue);
  }

  /** When endBackoffs() has something to do, in microseconds. */
  get backoffUntil(): number {
    return this.#backoffUntil;
  }

  /** Whether a queue could be served now, if an initiator context were free. */
  get hasReady(): boolean {
    return this.#ready.length + this.#accepted.length > 0;
  }

  /** Removes the first queue from the round robin: the caller serves it until release(). */
  next(): TxQueue | undefined {
    for (;;) {
      const from = this.#accepted.length > 0 ? this.#accepted : this.#ready;
      const queue = from.first;
      if (queue === undefined) return undefined;
      from.shift();
      // It may stand in both.
      if (!this.has(queue) || queue.isServed) continue;
      queue.isWaiting = false;
      queue.isServed = true;
      return queue;
    }
  }

  /** The caller stops serving a queue. @param unacknowledged the packets that it sent in vain, in order */
  release(queue: TxQueue, unacknowledged: Iterable<Packet>): void {
    queue.unacknowledged.unshift(...unacknowledged);
    queue.isServed = false;
    if (queue.length > 0) this.#schedule(queue);
    else if (this.has(queue)) this.#queues.delete(queue.node);
  }

  /** The target has acknowledged packets of a queue. */
  acknowledged(queue: TxQueue, packets: readonly Packet[]): void {
    for (const packet of packets) {
      queue.bytes -= packet.contentBytes;
      // As many are kept for reuse as may be in flight to a node.
      if (this.#spare.length * this.#state.packetBytes < TX_QUEUE_BYTES) this.#spare.push(packet);
    }
  }

  // ── Loss of a node ────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether a queue is still the queue of its node. It is not after drop(). */
  has(queue: TxQueue): boolean {
    return this.#queues.get(queue.node) === queue;
  }

  /** Drops everything that is queued for a lost node. @returns its queue, which is empty */
  drop(node: number): TxQueue | undefined {
    const queue = this.#queues.get(node);
    if (queue === undefined) return undefined;
    queue.unacknowledged = [];
    queue.packets.clear();
    this.#queues.delete(node);
    this.#inBackoff.delete(queue);
    return queue;
  }

  /** Restarts the streams to an endpoint at order number 0, because its node has restarted. */
  forgetTarget(target: number): void {
    for (const orders of this.#orders.values()) orders.set(target, 0);
  }

  /** Nodes to which packets are to be sent. */
  get waiting(): number[] {
    return [...this.#queues.values()].filter(({ length }) => length > 0).map(({ node }) => node);
  }

  /** Nodes that have a queue. */
  get count(): number {
    return this.#queues.size;
  }

  /** Sizes of what is kept for idle targets: words of order numbers, and packets for reuse. */
  get kept(): { orders: number; spare: number } {
    let orders = 0;
    for (const { length } of this.#orders.values()) orders += length;
    return { orders, spare: this.#spare.length };
  }
}
