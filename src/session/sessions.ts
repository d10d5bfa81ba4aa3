// Dynamically-connected transport (D): a node's few initiator contexts serve as many other nodes as there are, one session
// at a time each; a pool of responders takes what others send.
//
//   submit() ─► queue of a node ─► initiator: CONNECT, session, DISCONNECT ─► link
//   link ─► responder of a session ─► streams: once, in order ─► give()
//
// This is both sides together: it hands each packet that came to the side that it is for.
import {
  PACKET_ACCEPT,
  PACKET_ACKNOWLEDGE,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_REFUSE,
  PACKET_RIGHT,
} from "../../assembly/layout.js";
import type { Address } from "../link/link.js";
import { Initiators } from "./initiators.js";
import { type Dropped, NodeState, type SessionsOptions } from "./node-state.js";
import { ReceivedPacket } from "./received-packet.js";
import { Responders } from "./responders.js";
import { Streams } from "./streams.js";

export type { Dropped, SessionsOptions } from "./node-state.js";

export class Sessions {
  readonly streams: Streams;
  readonly #state: NodeState;
  readonly #initiators: Initiators;
  readonly #responders: Responders;
  readonly #packet: ReceivedPacket;

  constructor(options: SessionsOptions) {
    const { kernel, memory, arena, job, link } = options;
    this.#state = new NodeState(options, (node, isRestarted, refused) => {
      this.#responders.forget(node, isRestarted);
      this.#initiators.forget(node);
      options.lost(node, isRestarted, refused);
    });
    this.streams = new Streams(kernel, memory, arena, options.give);
    this.#initiators = new Initiators(this.#state);
    this.#responders = new Responders(this.#state, this.streams);
    this.#packet = new ReceivedPacket(kernel, memory, arena, job, link.packetBytes);
  }

  /** What was sent, and taken of what came. */
  get counts(): NodeState["counts"] {
    return this.#state.counts;
  }

  /** What was dropped of what came. */
  get dropped(): Dropped {
    return this.#state.dropped;
  }

  /** Bytes of the content of a segment, at the most. */
  get contentMax(): number {
    return this.#state.contentMax;
  }

  /**
   * Sends a segment to an endpoint of a node, in the order of the calls; it is copied.
   * @returns false: too much waits for that node already
   */
  submit(node: number, origin: number, target: number, kind: number, content: Uint8Array): boolean {
    return this.#initiators.submit(node, origin, target, kind, content);
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    this.#initiators.forgetTarget(target);
  }

  /** Does what is due. @returns when something will be, in microseconds; Infinity: never, unless something comes */
  advance(): number {
    const { time } = this.#state;
    const now = time.now();
    return time.next(Math.min(this.#initiators.advance(now), this.#responders.advance(now)));
  }

  /** A packet came; its bytes are the caller's again when this returns. */
  receive(from: Address, bytes: Uint8Array): void {
    const packet = this.#packet;
    const { dropped, options, time } = this.#state;
    const rule = packet.take(from, bytes);
    if (rule !== PACKET_RIGHT) {
      dropped.wrong[rule] = (dropped.wrong[rule] ?? 0) + 1;
      return;
    }
    if (packet.isSealed !== (options.keySchedule !== undefined)) {
      dropped.unsealed++;
      return;
    }
    const { kind } = packet;
    const now = time.now();
    if (kind === PACKET_DATA) this.#responders.data(packet, now);
    else if (kind === PACKET_ACKNOWLEDGE) this.#initiators.acknowledged(packet, now);
    else if (kind === PACKET_CONNECT) this.#responders.connect(packet, now);
    else if (kind === PACKET_ACCEPT) this.#initiators.accepted(packet, now);
    else if (kind === PACKET_REFUSE) this.#initiators.refused(packet, now);
    else if (kind === PACKET_DISCONNECT) this.#responders.disconnected(packet);
  }

  /** What grows with what is heard of, and said to, though nothing is under way: entries, words, streams, packets. */
  get kept(): { epochs: number; givenUp: number; connects: number; orders: number; spare: number; streams: number } {
    const { connects } = this.#responders;
    return { ...this.#state.kept, ...this.#initiators.kept, connects, streams: this.streams.count };
  }

  /** What is in use: after all is quiet, it is nothing. */
  get inUse(): { initiators: number; responders: number; txQueues: number; waiting: number } {
    return { ...this.#initiators.inUse, responders: this.#responders.inUse, waiting: this.streams.waiting };
  }
}
