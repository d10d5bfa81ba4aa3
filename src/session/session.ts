// The origin's side of a session (D4): it sends data packets, and sends them again until they are acknowledged. Three parts
// decide when: round-trip.ts (how long a round trip takes), loss.ts (which packets are lost) and congestion.ts (how many
// packets may be in flight).
import { PACKET_DISCONNECT, PACKET_HALF, PACKET_PROMPT } from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import type { CongestionController, MakeController } from "./pace/congestion.js";
import { type Acknowledgment, LossDetector, type Reordering, type SentPacket } from "./pace/loss.js";
import { RttEstimator } from "./pace/round-trip.js";
import type { Seal } from "./wire/key-schedule.js";
import type { Packet } from "./wire/packet.js";

/**
 * With a smaller window, every packet asks for an acknowledgment at once. The target would otherwise wait for packets that
 * may not be sent.
 */
const PROMPT_BELOW = 8;

export interface Outgoing {
  /** Whether the link has room. If not, what is sent waits, and no data should be sent until there is. */
  readonly hasRoom: boolean;
  /** Sends a packet, sealed if there is a seal. */
  send(to: Address, packet: Packet, seal: Seal | undefined): void;
  /** Keeps a packet for the next send(), which follows at once: both go in one datagram, if that is to the same address. */
  hold(to: Address, packet: Packet, seal: Seal | undefined): void;
}

/** Counters of all sessions of a node. */
export interface Counts {
  /** Data packets, retransmissions excluded. */
  data: number;
  /** Retransmissions of data packets. */
  retransmitted: number;
}

/** What the sessions of a node share. */
export interface SessionShared extends Reordering {
  readonly out: Outgoing;
  readonly counts: Counts;
  readonly makeController: MakeController;
}

/** How a session begins. */
interface SessionBegin {
  /** Packet numbers must be below it, until the target allows more. */
  readonly limit: number;
  /** Transmissions of the connect packet. */
  readonly sent: number;
  /** Seals outgoing packets; undefined: the packets are not sealed. */
  readonly seal: Seal | undefined;
  /** Microseconds from the first connect packet to its answer; 0: with 0-RTT. */
  readonly handshake: number;
}

export class Session {
  /** The id that the target assigned; with 0-RTT, the first word of the nonce. */
  readonly id: number;
  readonly #route: { readonly to: Address };
  readonly #shared: SessionShared;
  readonly #handshake: number;
  /** The id that packets have: with 0-RTT, it differs from `id` once the target has accepted. */
  #currentId: number;
  #seal: Seal | undefined;
  readonly #rtt = new RttEstimator();
  readonly #loss: LossDetector;
  readonly #congestion: CongestionController;
  /** Number of the next data packet. */
  #next = 1;
  /** Number of the last transmission. */
  #sent: number;
  /** Packet numbers must be below it: flow control by the target. */
  #limit: number;
  /** Retransmissions, and packets that came twice. */
  #retransmitted = 0;
  #duplicates = 0;

  /**
   * @param id the target's session id; with 0-RTT, the first word of the nonce until accept()
   * @param route of outgoing packets: its address may change
   */
  constructor(
    id: number,
    route: { readonly to: Address },
    shared: SessionShared,
    { limit, sent, seal, handshake }: SessionBegin,
  ) {
    this.id = id;
    this.#currentId = id;
    this.#seal = seal;
    this.#route = route;
    this.#shared = shared;
    this.#limit = limit;
    this.#sent = sent;
    this.#handshake = handshake;
    this.#loss = new LossDetector(this.#rtt, shared, handshake);
    this.#congestion = shared.makeController(this.#rtt, sent);
  }

  /** Whether the session has, or had, this id at the target. */
  hasId(id: number): boolean {
    return this.#currentId === id || this.id === id;
  }

  /** Whether it sends 0-RTT data: the target has not answered its connect packet yet (D5b). */
  get isZeroRtt(): boolean {
    return this.#handshake === 0 && this.#currentId === this.id;
  }

  /** Transmissions so far. */
  get sent(): number {
    return this.#sent;
  }

  /** Data packets that are not acknowledged. */
  get inFlight(): number {
    return this.#loss.inFlight;
  }

  /** How long a round trip takes, in microseconds: until a packet tells, as long as the handshake. */
  get roundTrip(): number {
    return this.#rtt.smoothed || this.#handshake;
  }

  /** When onProbeTimeout() is due, in microseconds. */
  get deadline(): number {
    return this.#loss.deadline;
  }

  /** When retransmit() is due, in microseconds. */
  get lossTime(): number {
    return this.#loss.lossTime;
  }

  /** New data packets that may be sent now. Lost packets go first. */
  get allowance(): number {
    if (this.#loss.hasLost || !this.#shared.out.hasRoom) return 0;
    const window = Math.ceil(this.#congestion.window) - this.#loss.inFlight;
    return Math.max(0, Math.min(window, seqDelta(this.#limit, this.#next)));
  }

  /** Sends a new data packet. @param isLast whether no other packet follows for now */
  begin(packet: Packet, now: number, isLast: boolean): void {
    const number = this.#next++;
    const suspectedAt = Number.POSITIVE_INFINITY;
    const one: SentPacket = { packet, number, sent: 0, timeSent: 0, transmissions: 0, suspectedAt };
    this.#shared.counts.data++;
    this.#transmit(one, now, isLast || this.#congestion.window < PROMPT_BELOW);
  }

  /** Sends all lost packets again, as far as the link has room. */
  retransmit(now: number): void {
    this.#detectLosses(now);
    while (this.#shared.out.hasRoom) {
      const one = this.#loss.nextLost();
      if (one === undefined) return;
      this.#countRetransmission();
      this.#transmit(one, now, true);
    }
  }

  #detectLosses(now: number): void {
    const lost = this.#loss.detect(now);
    if (lost > 0) this.#congestion.onLost(lost);
  }

  #countRetransmission(): void {
    this.#retransmitted++;
    this.#shared.counts.retransmitted++;
  }

  #transmit(one: SentPacket, now: number, isPrompt: boolean): void {
    this.#loss.onSent(one, ++this.#sent, now);
    one.packet.flags((isPrompt ? PACKET_PROMPT : 0) | (this.isZeroRtt ? PACKET_HALF : 0));
    one.packet.address(this.#currentId, one.sent, one.number);
    this.#shared.out.send(this.#route.to, one.packet, this.#seal);
  }

  /** An acknowledgment came. @returns the newly acknowledged packets; false: it acknowledges what was never sent */
  acknowledged(ack: Acknowledgment, now: number): Packet[] | false {
    const { cumulative, echo, limit, duplicates } = ack;
    if (seqDelta(cumulative, this.#next) > 0 || seqDelta(echo, this.#sent) > 0) return false;
    if (seqDelta(limit, this.#limit) > 0) this.#limit = limit;
    // A link may duplicate packets, too. Only as many as were sent again can be spurious retransmissions.
    const isSpurious = duplicates > this.#duplicates && duplicates <= this.#retransmitted;
    this.#duplicates = Math.max(this.#duplicates, duplicates);
    const acked = this.#loss.onAcknowledged(ack, isSpurious, now);
    this.#detectLosses(now);
    this.#congestion.onAcknowledged(acked.length, echo, this.#sent, this.#loss.inFlight);
    return acked.map(({ packet }) => packet);
  }

  /** The deadline has passed without an acknowledgment: probes with the oldest packet. */
  onProbeTimeout(now: number): void {
    const oldest = this.#loss.onProbeTimeout();
    if (oldest === undefined) return;
    this.#congestion.onProbeTimeout();
    this.#countRetransmission();
    this.#transmit(oldest, now, true);
  }

  /** The link had no room until now, so the target could not be probed: a deadline that has passed begins anew. */
  postpone(now: number): void {
    if (this.deadline <= now) this.#loss.postpone(now);
  }

  /** The target has another address: the probe timeout expires at once. */
  hasten(now: number): void {
    this.#loss.hasten(now);
  }

  /** The packets that the target has not acknowledged, in the order of their numbers. */
  *unacknowledged(): Iterable<Packet> {
    for (const { packet } of this.#loss.packetsInFlight()) yield packet;
  }

  /** Tells the target that the session is over. That packet may be lost. @param packet a buffer for it */
  disconnect(packet: Packet, job: number): void {
    packet.begin(PACKET_DISCONNECT, job).address(this.#currentId, ++this.#sent, 0);
    this.#shared.out.send(this.#route.to, packet, this.#seal);
  }

  /** The target has accepted 0-RTT data: from now on, packets have the id and the seal of the full handshake. */
  accept(id: number, seal: Seal | undefined): void {
    this.#currentId = id;
    this.#seal = seal;
  }
}
