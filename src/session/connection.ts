// A dynamic connection at its origin, from the connect packet to the end of its session (D2 … D5). It sends the packets that
// open it, and takes the answers. initiators.ts decides when a connection opens and how long it stays.
import * as L from "../../assembly/layout.js";
import type { NodeState } from "./node-state.js";
import { SESSION_WINDOW } from "./responder.js";
import { Session } from "./session.js";
import type { TxQueue } from "./tx-queues.js";
import type { SessionSeals } from "./wire/key-schedule.js";
import type { Packet } from "./wire/packet.js";
import type { ReceivedPacket } from "./wire/received-packet.js";
import { REPLAY_WINDOW_WORDS, ReplayWindow } from "./wire/replay-window.js";

/** Data packets that a connection sends in one turn, while other nodes wait. */
export const QUOTA = 64;

/** A DC initiator context. */
export interface Initiator {
  /** Its connection to the node that it serves. */
  open: NodeConnection | undefined;
  /** How many connections to earlier nodes wait for their last acknowledgments. */
  closing: number;
}

export class NodeConnection {
  /** The context that serves it, or has left it. */
  initiator!: Initiator;
  readonly queue: TxQueue;
  /** The `session` field of packets from the target. */
  readonly reference: number;
  session: Session | undefined;
  /** When it was accepted, in microseconds; Infinity: it is not. */
  acceptedAt = Number.POSITIVE_INFINITY;
  /** When something is due if no packet comes, in microseconds. The session has a deadline of its own. */
  deadline = Number.POSITIVE_INFINITY;
  /** Whether its session has no packet in flight. */
  isIdle = false;
  /** Whether its context serves the next node already. It ends as soon as all packets are acknowledged. */
  isClosing = false;
  /** Data packets that it may still send while other nodes wait. */
  quota = QUOTA;
  readonly #state: NodeState;
  readonly #nonce: readonly number[];
  readonly #originEpoch: number;
  /** The target's epoch; 0: unknown. */
  readonly #targetEpoch: number;
  /** With a key: the seals of its session. */
  #seals: SessionSeals | undefined;
  /** With a key: the transmission numbers that came from the target. */
  #replayWindow: ReplayWindow | undefined;
  /** When it began, in microseconds. */
  readonly #begin: number;
  /** Connect packets that it has sent, and those of them that were refused. */
  #sent = 0;
  #refused = 0;

  constructor(state: NodeState, queue: TxQueue, reference: number, now: number) {
    const { incarnations } = state;
    this.#state = state;
    this.queue = queue;
    this.reference = reference;
    this.#begin = now;
    this.#nonce = state.nextNonce();
    this.#originEpoch = incarnations.epochFor(queue.node);
    this.#targetEpoch = incarnations.epochOf(queue.node);
  }

  /**
   * Whether data follows the connect packet at once (D5b). That needs the target's epoch: an unknown incarnation has to
   * state its epoch before it takes data.
   */
  get #isZeroRtt(): boolean {
    return this.#state.isFaithful && this.#targetEpoch !== 0;
  }

  /** Sends or repeats its connect packet. @param packet a buffer for it */
  connect(packet: Packet): void {
    const { counts, out, job, node, keySchedule } = this.#state;
    counts.connects++;
    packet.begin(L.PACKET_CONNECT, job).word(this.reference).word(node).word(this.#originEpoch);
    packet
      .word(this.queue.node)
      .word(this.#isZeroRtt ? L.CONNECT_HALF : 0)
      .word(this.#targetEpoch)
      .word(this.#state.nextSerial());
    for (const word of this.#nonce) packet.word(word);
    out.send(this.queue.to, packet.address(0, ++this.#sent, 0), keySchedule?.handshake);
  }

  /** With 0-RTT, begins the session without waiting for the answer. */
  begin(): void {
    if (!this.#isZeroRtt) return;
    const { keySchedule, node } = this.#state;
    const seal = keySchedule?.zeroRtt({
      origin: node,
      target: this.queue.node,
      originEpoch: this.#originEpoch,
      targetEpoch: this.#targetEpoch,
      initiator: this.reference,
      connectNonce: this.#nonce,
    });
    const first = this.#nonce[0] as number;
    this.session = new Session(first, this.queue, this.#state, {
      limit: 1 + SESSION_WINDOW,
      sent: this.#sent,
      seal,
      handshake: 0,
    });
  }

  /** Whether a packet is the first answer to its connect packet. @param echo offset of the repeated nonce */
  isAnswer(packet: ReceivedPacket, echo: number): boolean {
    const [first, second] = this.#nonce;
    // A 0-RTT session exists already, but is not accepted yet.
    const isAccepted = this.session?.isZeroRtt === false;
    if (!isAccepted && packet.at(echo) === first && packet.at(echo + 4) === second) return true;
    this.#state.dropped.unsolicited++;
    return false;
  }

  /**
   * A connect packet was refused for want of a responder.
   * @returns whether all of them were. A later one may find a responder
   */
  refuse(): boolean {
    return ++this.#refused >= this.#sent;
  }

  /** The target accepts the connection. @param acceptNonce of its answer */
  accept(packet: ReceivedPacket, acceptNonce: readonly number[], now: number): Session {
    const { keySchedule, node } = this.#state;
    const responder = packet.at(L.ACCEPT_RESPONDER_OFFSET);
    const seals = keySchedule?.session({
      origin: node,
      target: this.queue.node,
      originEpoch: this.#originEpoch,
      targetEpoch: packet.at(L.ACCEPT_EPOCH_OFFSET),
      initiator: this.reference,
      responder,
      connectNonce: this.#nonce,
      acceptNonce,
    });
    this.acceptedAt = now;
    this.#seals = seals;
    this.#replayWindow = seals === undefined ? undefined : new ReplayWindow(REPLAY_WINDOW_WORDS);
    const seal = seals?.toTarget;
    if (this.session === undefined) {
      const limit = packet.at(L.ACCEPT_LIMIT_OFFSET);
      const handshake = Math.max(1, now - this.#begin);
      this.session = new Session(responder, this.queue, this.#state, { limit, sent: this.#sent, seal, handshake });
    } else this.session.accept(responder, seal);
    return this.session;
  }

  /** Opens a packet of its session. @returns false: the packet is dropped */
  unseal(packet: ReceivedPacket): boolean {
    if (!this.#state.unseal(packet, this.#seals?.toOrigin, this.#replayWindow)) return false;
    if (this.#replayWindow?.highest === packet.sent) this.#state.routes.note(this.queue.node, packet.from);
    return true;
  }

  /** Passes an acknowledgment on. @returns the newly acknowledged packets; false: it acknowledges what was never sent */
  acknowledged(session: Session, packet: ReceivedPacket, now: number): Packet[] | false {
    const words = packet.at(L.ACKNOWLEDGE_WORDS_OFFSET);
    const acknowledgment = {
      cumulative: packet.at(L.ACKNOWLEDGE_ALL_OFFSET),
      echo: packet.at(L.ACKNOWLEDGE_ECHO_OFFSET),
      delay: packet.at(L.ACKNOWLEDGE_DELAY_OFFSET),
      limit: packet.at(L.ACKNOWLEDGE_LIMIT_OFFSET),
      duplicates: packet.at(L.ACKNOWLEDGE_REPEATED_OFFSET),
      mask: packet.words(L.ACKNOWLEDGE_MASK_OFFSET, words),
    };
    return session.acknowledged(acknowledgment, now);
  }
}
