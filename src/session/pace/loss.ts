// Loss detection of a session, after RFC 9002, section 6. Times are in microseconds.
//
// Packet threshold (6.1.1): each transmission has a number of its own, `sent`. Once a transmission that was sent
// PACKET_THRESHOLD later has been acknowledged, an earlier one is a suspect. RFC 9002 declares it lost at once. Here it is
// declared lost unless it is acknowledged within the reordering delay. That delay adapts to the link: it is 0 on a link that
// keeps the order.
//
// Probe timeout (6.2): if no acknowledgment comes at all, the oldest packet is sent again. The timeout doubles each time.
import { seqDelta } from "../../../assembly/seq.js";
import { Queue } from "../../support/queue.js";
import { ACK_DELAY_MAX } from "../responder.js";
import type { Packet } from "../wire/packet.js";
import type { RttEstimator } from "./round-trip.js";

/** kPacketThreshold of RFC 9002. */
const PACKET_THRESHOLD = 3;
/** The most smoothed round-trip times that the reordering delay may last. */
const REORDERING_ROUND_TRIPS_MAX = 4;
/** The reordering delay is a quarter longer than the longest that was observed, */
const REORDERING_MARGIN = 1.25;
/** and shrinks with each acknowledged packet: to the half within some 1,400 packets. */
const REORDERING_DECAY = 1 / 2048;
/** The least probe timeout before the first round-trip sample, the least of all, and the longest for short round trips. */
const INITIAL_PTO = 20_000;
/** Parts of a round trip: what a first sample makes of it. */
const INITIAL_ROUND_TRIPS = 3;
const PTO_MIN = 1000;
const PTO_MAX = 1_000_000;

/** A data packet that is in flight. */
export interface SentPacket {
  readonly packet: Packet;
  /** Its packet number. */
  readonly number: number;
  /** Number of its latest transmission. */
  sent: number;
  /** Time of its latest transmission. */
  timeSent: number;
  /** How often it was sent. */
  transmissions: number;
  /** When it last became a suspect; Infinity: never. */
  suspectedAt: number;
}

interface Transmission {
  readonly one: SentPacket;
  readonly sent: number;
}

/** The fields of an acknowledgment. */
export interface Acknowledgment {
  /** All packets with lower numbers have come. */
  readonly cumulative: number;
  /** `sent` of the data packet that came last. */
  readonly echo: number;
  /** How long ago that was. */
  readonly delay: number;
  /** Packet numbers must be below it. */
  readonly limit: number;
  /** Data packets that came more than once, in the whole session. */
  readonly duplicates: number;
  /** Bit i: packet cumulative + 1 + i has come. */
  readonly mask: Int32Array;
}

/** What a node learned about the order of packets. All of its sessions share it, since they use the same link. */
export interface Reordering {
  /** How long a suspect may still be acknowledged. */
  reorderingDelay: number;
}

export class LossDetector {
  readonly #rtt: RttEstimator;
  readonly #reordering: Reordering;
  /** Before the first round-trip sample: what the probe timeout would be if the handshake had taken one round trip. */
  readonly #initial: number;
  /** Packets that are not acknowledged, by number. */
  readonly #inFlight = new Map<number, SentPacket>();
  /**
   * Transmissions that are not suspects, in the order of `sent`. Those of acknowledged or retransmitted packets are void.
   */
  readonly #transmissions = new Queue<Transmission>();
  /** Suspects, likewise. */
  readonly #suspects = new Queue<Transmission>();
  /** Lost packets, until nextLost() returns them. */
  readonly #lost = new Queue<SentPacket>();
  /** The highest transmission number that is known to have come. */
  #largestAcked = 0;
  /** Probe timeouts in a row. */
  #ptoCount = 0;
  #deadline = Number.POSITIVE_INFINITY;

  /** @param handshake how long the target took to answer; 0: it has not */
  constructor(rtt: RttEstimator, reordering: Reordering, handshake: number) {
    this.#rtt = rtt;
    this.#reordering = reordering;
    // Where this is shorter than a round trip, an origin with a key would open session after session.
    this.#initial = Math.max(INITIAL_PTO, INITIAL_ROUND_TRIPS * handshake);
  }

  /** Packets in flight. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Packets in flight, from the first number to the last. */
  packetsInFlight(): Iterable<SentPacket> {
    return this.#inFlight.values();
  }

  /** When the probe timeout expires: then onProbeTimeout() is due. Infinity: no packet is in flight. */
  get deadline(): number {
    return this.#deadline;
  }

  /** When the first suspect is lost: then detect() is due. Infinity: there is none. */
  get lossTime(): number {
    const { first } = this.#suspects;
    return first === undefined ? Number.POSITIVE_INFINITY : first.one.suspectedAt + this.#reorderingDelay;
  }

  /** Whether nextLost() may return a packet. */
  get hasLost(): boolean {
    return this.#lost.length > 0;
  }

  /** A packet is sent, for the first time or again. @param sent the number of this transmission */
  onSent(one: SentPacket, sent: number, now: number): void {
    if (one.transmissions++ === 0) this.#inFlight.set(one.number, one);
    one.sent = sent;
    one.timeSent = now;
    this.#transmissions.push({ one, sent });
    if (this.#deadline === Number.POSITIVE_INFINITY) this.#deadline = now + this.#probeTimeout();
  }

  /**
   * An acknowledgment came.
   * @param isSpurious whether it shows that a packet was sent again and came twice
   * @returns the newly acknowledged packets
   */
  onAcknowledged(ack: Acknowledgment, isSpurious: boolean, now: number): SentPacket[] {
    const { echo, delay } = ack;
    const rtt = this.#rtt;
    const acked = this.#newlyAcked(ack);
    // The acknowledgment of a reordered packet is no round-trip sample for the packets that overtook it.
    const isReordered = seqDelta(echo, this.#largestAcked) < 0;
    for (const one of acked) {
      this.#inFlight.delete(one.number);
      // Which transmission of a retransmitted packet has come is unknown.
      const isFirst = one.transmissions === 1;
      if (isFirst && seqDelta(one.sent, this.#largestAcked) > 0) this.#largestAcked = one.sent;
      // But the last one cannot have come yet within half of the shortest round trip. Half allows for rounded times, and for
      // a path that is shorter than it was.
      if (isFirst || now - one.timeSent < rtt.min / 2) this.#noteReordering(now - one.suspectedAt);
      if (one.sent === echo && !isReordered && delay <= now - one.timeSent) rtt.addSample(now - one.timeSent - delay);
    }
    if (seqDelta(echo, this.#largestAcked) > 0) this.#largestAcked = echo;
    // The packet was not lost, but came later than a round trip after it was sent again.
    if (isSpurious) this.#noteReordering(Math.max(this.#reordering.reorderingDelay, rtt.smoothed));
    this.#reordering.reorderingDelay *= 1 - Math.min(1, acked.length * REORDERING_DECAY);
    this.#ptoCount = 0;
    this.#deadline = this.#inFlight.size === 0 ? Number.POSITIVE_INFINITY : now + this.#probeTimeout();
    return acked;
  }

  #newlyAcked({ cumulative, mask }: Acknowledgment): SentPacket[] {
    const acked: SentPacket[] = [];
    for (const [number, one] of this.#inFlight) {
      const ahead = seqDelta(number, cumulative);
      if (ahead > 32 * mask.length) break;
      const isAcked =
        ahead < 0 || (ahead > 0 && (((mask[(ahead - 1) >>> 5] as number) >>> ((ahead - 1) & 31)) & 1) === 1);
      if (isAcked) acked.push(one);
    }
    return acked;
  }

  /** Declares suspects lost whose time is over. @returns how many packets */
  detect(now: number): number {
    for (let next = this.#transmissions.first; next !== undefined; next = this.#transmissions.first) {
      if (this.#isOutstanding(next)) {
        if (seqDelta(this.#largestAcked, next.sent) < PACKET_THRESHOLD) break;
        next.one.suspectedAt = now;
        this.#suspects.push(next);
      }
      this.#transmissions.shift();
    }
    let count = 0;
    for (let next = this.#suspects.first; next !== undefined; next = this.#suspects.first) {
      if (this.#isOutstanding(next)) {
        if (now < next.one.suspectedAt + this.#reorderingDelay) break;
        count++;
        this.#lost.push(next.one);
      }
      this.#suspects.shift();
    }
    return count;
  }

  /** Whether a transmission is the latest one of a packet that is not acknowledged. */
  #isOutstanding({ one, sent }: Transmission): boolean {
    return this.#inFlight.get(one.number) === one && one.sent === sent;
  }

  /** Removes the next lost packet, which must be sent again. Packets that were acknowledged meanwhile are skipped. */
  nextLost(): SentPacket | undefined {
    for (let one = this.#lost.first; one !== undefined; one = this.#lost.first) {
      this.#lost.shift();
      if (this.#inFlight.get(one.number) === one) return one;
    }
    return undefined;
  }

  /** The deadline has passed. @returns the packet to probe with, the oldest in flight */
  onProbeTimeout(): SentPacket | undefined {
    const [oldest] = this.#inFlight.values();
    if (oldest === undefined) return undefined;
    this.#ptoCount++;
    this.#deadline = Number.POSITIVE_INFINITY;
    return oldest;
  }

  /** Restarts the probe timeout. */
  postpone(now: number): void {
    this.#deadline = now + this.#probeTimeout();
  }

  /** Lets the probe timeout expire at once, if a packet is in flight. */
  hasten(now: number): void {
    this.#ptoCount = 0;
    if (this.#deadline !== Number.POSITIVE_INFINITY) this.#deadline = Math.min(this.#deadline, now);
  }

  /** RFC 9002, section 6.2.1, with the reordering delay on top. PTO_MAX bounds its doubling: round trips may be longer. */
  #probeTimeout(): number {
    const { smoothed, variation } = this.#rtt;
    const isSampled = smoothed > 0;
    const pto = isSampled ? smoothed + 4 * variation + ACK_DELAY_MAX + this.#reorderingDelay : this.#initial;
    // The handshake may have taken long because the target came late. So without a sample, it begins with PTO_MAX.
    const first = isSampled ? Math.max(pto, PTO_MIN) : Math.min(pto, PTO_MAX);
    return Math.min(first * 2 ** this.#ptoCount, Math.max(pto, PTO_MAX));
  }

  /** A packet was acknowledged this long after it became a suspect; it never became one: -Infinity. */
  #noteReordering(time: number): void {
    const longest = Math.min(REORDERING_MARGIN * time, REORDERING_ROUND_TRIPS_MAX * this.#rtt.smoothed);
    this.#reordering.reorderingDelay = Math.max(this.#reordering.reorderingDelay, longest);
  }

  /** Bounded by this session's round-trip time: others that share the value may have longer ones. */
  get #reorderingDelay(): number {
    const bound = REORDERING_ROUND_TRIPS_MAX * this.#rtt.smoothed;
    return Math.floor(Math.min(this.#reordering.reorderingDelay, bound));
  }
}
