// A dynamic connection at its origin, from the connect packet to the end of its session (D2 … D5): what it sends to be
// accepted, and what it makes of the answers. When one is made, and how long it stays, is said in initiators.ts.
import {
  ACCEPT_EPOCH_OFFSET,
  ACCEPT_LIMIT_OFFSET,
  ACCEPT_NONCE_OFFSET,
  ACCEPT_RESPONDER_OFFSET,
  ACKNOWLEDGE_ALL_OFFSET,
  ACKNOWLEDGE_DELAY_OFFSET,
  ACKNOWLEDGE_ECHO_OFFSET,
  ACKNOWLEDGE_LIMIT_OFFSET,
  ACKNOWLEDGE_MASK_OFFSET,
  ACKNOWLEDGE_REPEATED_OFFSET,
  ACKNOWLEDGE_WORDS_OFFSET,
  CONNECT_HALF,
  PACKET_CONNECT,
} from "../../assembly/layout.js";
import type { SessionSeals } from "./key-schedule.js";
import type { NodeState } from "./node-state.js";
import type { Packet } from "./packet.js";
import type { ReceivedPacket } from "./received-packet.js";
import { REPLAY_WINDOW_WORDS, ReplayWindow } from "./replay-window.js";
import { SESSION_WINDOW } from "./responder.js";
import { Session } from "./session.js";
import type { TxQueue } from "./tx-queues.js";

/** Data packets that a connection sends, after which it is another node's turn. */
export const QUOTA = 64;

/** A DC initiator context. */
export interface Initiator {
  /** To the node that it serves. */
  open: Connection | undefined;
  /** Connections to those before. */
  closing: number;
}

export class Connection {
  readonly initiator: Initiator;
  readonly queue: TxQueue;
  /** `session` of what comes back. */
  readonly reference: number;
  session: Session | undefined;
  /** When something is due though nothing comes, the session's deadline aside, in microseconds. */
  deadline = Number.POSITIVE_INFINITY;
  /** Whether its session has nothing to do. */
  isIdle = false;
  /** Whether its context serves the next node: it ends as soon as all is acknowledged. */
  isClosing = false;
  /** Data packets that it may still send while others wait. */
  quota = QUOTA;
  readonly #state: NodeState;
  readonly #nonce: readonly number[];
  readonly #originEpoch: number;
  /** As it is known; 0: it is not. */
  readonly #targetEpoch: number;
  /** With a key: what seals its packets, and which of the other side's came. */
  #seals: SessionSeals | undefined;
  #replayWindow: ReplayWindow | undefined;
  /** Connect packets that were sent. */
  #sent = 0;

  constructor(state: NodeState, initiator: Initiator, queue: TxQueue, reference: number) {
    const { random } = state.options;
    this.#state = state;
    this.initiator = initiator;
    this.queue = queue;
    this.reference = reference;
    this.#nonce = [(random() | 1) >>> 0, random(), random(), random()];
    this.#originEpoch = state.epochFor(queue.node);
    this.#targetEpoch = state.epochOf(queue.node);
  }

  /** Half a handshake (D5b) only with a life that is known: another one must hear of its epoch before anything is taken. */
  get #isZeroRtt(): boolean {
    return this.#state.options.link.isFaithful && this.#targetEpoch !== 0;
  }

  /** Sends its connect packet, for the first time or again. */
  connect(packet: Packet): void {
    const { counts, out, options } = this.#state;
    counts.connects++;
    packet.begin(PACKET_CONNECT, options.job).word(this.reference).word(options.node).word(this.#originEpoch);
    packet
      .word(this.queue.node)
      .word(this.#isZeroRtt ? CONNECT_HALF : 0)
      .word(this.#targetEpoch)
      .word(this.#state.nextSerial());
    for (const word of this.#nonce) packet.word(word);
    out.send(this.queue.to, packet.address(0, ++this.#sent, 0), options.keySchedule?.handshake);
  }

  /** Begins its session, if that does not wait for the answer. */
  begin(): void {
    if (!this.#isZeroRtt) return;
    const { keySchedule, node } = this.#state.options;
    const seal = keySchedule?.zeroRtt({
      origin: node,
      target: this.queue.node,
      originEpoch: this.#originEpoch,
      targetEpoch: this.#targetEpoch,
      initiator: this.reference,
      connectNonce: this.#nonce,
    });
    const first = this.#nonce[0] as number;
    this.session = new Session(first, this.queue.to, this.#state, 1 + SESSION_WINDOW, this.#sent, seal, true);
  }

  /** Whether a packet answers its connect packet, and is the first to do so. @param echo where it repeats the nonce */
  isAnswer(packet: ReceivedPacket, echo: number): boolean {
    const [first, second] = this.#nonce;
    // Half a handshake has a session already, and is none until it is accepted.
    const isOpen = this.session?.isZeroRtt === false;
    if (!isOpen && packet.at(echo) === first && packet.at(echo + 4) === second) return true;
    this.#state.dropped.unasked++;
    return false;
  }

  /** It is accepted. */
  accept(packet: ReceivedPacket): Session {
    const { options } = this.#state;
    const responder = packet.at(ACCEPT_RESPONDER_OFFSET);
    const seals = options.keySchedule?.session({
      origin: options.node,
      target: this.queue.node,
      originEpoch: this.#originEpoch,
      targetEpoch: packet.at(ACCEPT_EPOCH_OFFSET),
      initiator: this.reference,
      responder,
      connectNonce: this.#nonce,
      acceptNonce: [0, 4, 8, 12].map((offset) => packet.at(ACCEPT_NONCE_OFFSET + offset)),
    });
    this.#seals = seals;
    this.#replayWindow = seals === undefined ? undefined : new ReplayWindow(REPLAY_WINDOW_WORDS);
    const seal = seals?.toTarget;
    if (this.session === undefined) {
      const limit = packet.at(ACCEPT_LIMIT_OFFSET);
      this.session = new Session(responder, this.queue.to, this.#state, limit, this.#sent, seal);
    } else this.session.accept(responder, seal);
    return this.session;
  }

  /** Takes the seal off a packet of its session. @returns false: it does not count */
  unseal(packet: ReceivedPacket): boolean {
    return this.#state.unseal(packet, this.#seals?.toOrigin, this.#replayWindow);
  }

  /** Its session was told what is there. @returns the packets that are; false: it speaks of what was never sent */
  acknowledged(session: Session, packet: ReceivedPacket, now: number): Packet[] | false {
    const words = packet.at(ACKNOWLEDGE_WORDS_OFFSET);
    const told = {
      all: packet.at(ACKNOWLEDGE_ALL_OFFSET),
      echo: packet.at(ACKNOWLEDGE_ECHO_OFFSET),
      delay: packet.at(ACKNOWLEDGE_DELAY_OFFSET),
      limit: packet.at(ACKNOWLEDGE_LIMIT_OFFSET),
      repeated: packet.at(ACKNOWLEDGE_REPEATED_OFFSET),
      mask: packet.words(ACKNOWLEDGE_MASK_OFFSET, words),
    };
    return session.acknowledged(told, now);
  }
}
