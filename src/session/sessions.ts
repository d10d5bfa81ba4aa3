// Dynamically connected transport (D). A node's few initiator contexts serve any number of target nodes, each with one open
// session at a time. A pool of responders receives the packets of other nodes.
//
//   claim()  ─► transmit queue of a node ─► initiator: CONNECT, session, DISCONNECT ─► link
//   link ─► responder of a session ─► streams: once, in order ─► deliver()
//
// This class joins both sides, and passes each received packet to one of them.
import * as L from "../../assembly/layout.js";
import type { Address } from "../link/link.js";
import { Initiators } from "./initiators.js";
import { type Dropped, NodeState } from "./node-state.js";
import { Responders } from "./responders.js";
import type { SessionsOptions } from "./sessions-options.js";
import { Streams } from "./streams.js";
import { TxQueues } from "./tx-queues.js";
import type { Packet } from "./wire/packet.js";
import { ReceivedPacket } from "./wire/received-packet.js";

export type { Dropped } from "./node-state.js";
export type { Loss, SessionsOptions } from "./sessions-options.js";

/** Microseconds for which a node that ends answers a session from which nothing comes: several probe timeouts. */
const LINGER = 500_000;

export class Sessions {
  readonly streams: Streams;
  readonly #state: NodeState;
  readonly #queues: TxQueues;
  readonly #initiators: Initiators;
  readonly #responders: Responders;
  readonly #packet: ReceivedPacket;

  constructor(options: SessionsOptions) {
    const { kernel, memory, arena, job } = options;
    const onLost: SessionsOptions["onLost"] = (node, why, refused) => {
      this.#responders.forget(node, why === "restarted" || why === "givenUp");
      this.#initiators.forget(node, false);
      options.onLost(node, why, refused);
    };
    this.#state = new NodeState({ ...options, onLost });
    this.streams = new Streams(kernel, memory, arena, options.deliver);
    this.#queues = new TxQueues(this.#state, options.txQueueBytes);
    this.#initiators = new Initiators(this.#state, this.#queues, options, (node, now) =>
      this.#responders.accompany(node, now),
    );
    this.#responders = new Responders(this.#state, this.streams, options);
    this.#packet = new ReceivedPacket(kernel, memory, arena, job);
    options.link.receiveInto?.((bytes) => {
      const at = arena.allocate(bytes);
      return at === 0 ? undefined : memory.bytes.subarray(at, at + bytes);
    });
  }

  /** Packets that were sent, and received packets that were not dropped. */
  get counts(): NodeState["counts"] {
    return this.#state.counts;
  }

  /** Received packets that were dropped. */
  get dropped(): Dropped {
    return this.#state.dropped;
  }

  /** The most bytes of a segment's content. */
  get contentMax(): number {
    return this.#state.contentMax;
  }

  /** Bytes of content that the packet takes which is filled for a node now; negative: there is none. */
  roomFor(node: number): number {
    return this.#queues.roomFor(node);
  }

  /** See TxQueues.claim(). */
  claim(node: number, origin: number, target: number, kind: number, bytes: number): Packet | undefined {
    return this.#queues.claim(node, origin, target, kind, bytes);
  }

  /** Sends now what was submitted for a node, as far as its session may. */
  pump(node: number): void {
    this.#initiators.pump(node, this.#state.time.now());
  }

  /** Restarts the streams to an endpoint at order number 0, because its node has restarted. */
  forgetTarget(target: number): void {
    this.#queues.forgetTarget(target);
  }

  /**
   * Drops everything that is queued or in flight for a node, because it waits for nothing any more. Ends the session.
   * @param isGone whether the node is not there any more: it awaits no acknowledgments either
   */
  abandon(node: number, isGone: boolean): void {
    this.#initiators.forget(node, true);
    if (isGone) this.#responders.forget(node, false);
  }

  /** Nodes that have not acknowledged everything that was submitted for them. */
  get unacknowledged(): Set<number> {
    return this.#initiators.unacknowledged;
  }

  /**
   * Ends the idle sessions, because this node submits nothing any more. The sessions of other nodes may still need an
   * acknowledgment, until those nodes end them.
   * @returns when to call this again, in microseconds of `now`; Infinity: when something is acknowledged; -Infinity: never,
   * since all is acknowledged in both directions
   */
  end(): number {
    const { out, time } = this.#state;
    this.#initiators.endIdle();
    if (!out.hasRoom || this.#initiators.unacknowledged.size > 0) return Number.POSITIVE_INFINITY;
    const quiet = this.#responders.lastReceived + LINGER;
    return quiet > time.now() ? time.at(quiet) : Number.NEGATIVE_INFINITY;
  }

  /** Where packets for a node go; an empty string: it has not come yet. */
  addressOf(node: number): Address {
    return this.#state.routes.to(node);
  }

  /** Gives a node up at once: its process has ended, and answers no more. */
  giveUp(node: number): void {
    this.#state.incarnations.giveUp(node, 0);
  }

  /** Does everything that is due. @returns the next deadline, in microseconds of `now`; Infinity: there is none */
  advance(): number {
    const { time } = this.#state;
    const now = time.now();
    return time.next(Math.min(this.#initiators.advance(now), this.#responders.advance(now)));
  }

  /** The link has room again. Sends the packets that it refused. Call advance() after this. */
  resume(): void {
    const { out, time } = this.#state;
    if (!out.resume()) return;
    const now = time.now();
    this.#responders.resume(now);
    this.#initiators.resume(now);
  }

  /**
   * Takes what a link has brought: a packet, or an acknowledgment with a packet behind it (link-queue.ts). The caller owns the
   * bytes again when this returns.
   */
  receive(from: Address, bytes: Uint8Array): void {
    const held = heldBytes(bytes);
    if (held > 0) this.#receivePacket(from, bytes.subarray(0, held));
    this.#receivePacket(from, held > 0 ? bytes.subarray(held) : bytes);
  }

  #receivePacket(from: Address, bytes: Uint8Array): void {
    const packet = this.#packet;
    const { dropped, keySchedule, time } = this.#state;
    const rule = packet.load(from, bytes);
    if (rule !== L.PACKET_RIGHT) {
      dropped.malformed[rule] = (dropped.malformed[rule] ?? 0) + 1;
      return;
    }
    if (packet.isSealed !== (keySchedule !== undefined)) {
      dropped.unauthenticated++;
      return;
    }
    const { kind } = packet;
    const now = time.now();
    if (kind === L.PACKET_DATA) this.#responders.data(packet, now);
    else if (kind === L.PACKET_ACKNOWLEDGE) this.#initiators.acknowledged(packet, now);
    else if (kind === L.PACKET_CONNECT) this.#responders.connect(packet, now);
    else if (kind === L.PACKET_ACCEPT) this.#initiators.accepted(packet, now);
    else if (kind === L.PACKET_REFUSE) this.#initiators.refused(packet, now);
    else if (kind === L.PACKET_DISCONNECT) this.#responders.disconnected(packet);
  }

  /** Sizes of what is kept while nothing is in flight: words, map entries, streams, packets. */
  get kept(): { epochs: number; givenUp: number; connects: number; orders: number; spare: number; streams: number } {
    const { connects } = this.#responders;
    return { ...this.#state.incarnations.kept, ...this.#initiators.kept, connects, streams: this.streams.count };
  }

  /** Resources in use: all are 0 once everything is acknowledged and idle sessions have ended. */
  get inUse(): { initiators: number; responders: number; txQueues: number; buffered: number } {
    return { ...this.#initiators.inUse, responders: this.#responders.inUse, buffered: this.streams.buffered };
  }
}

/** Bytes of an acknowledgment that a packet follows, which ends with the datagram; 0: it has no such two. */
function heldBytes(bytes: Uint8Array): number {
  if (bytes[L.PACKET_KIND_SHIFT >>> 3] !== L.PACKET_ACKNOWLEDGE) return 0;
  const first = statedLength(bytes, 0);
  if (first < L.PACKET_SIZE || first % 4 !== 0 || first + L.PACKET_SIZE > bytes.length) return 0;
  return first + statedLength(bytes, first) === bytes.length ? first : 0;
}

function statedLength(bytes: Uint8Array, at: number): number {
  const low = at + L.PACKET_LENGTH_OFFSET;
  return (bytes[low] as number) | ((bytes[low + 1] as number) << 8);
}
