// The origin's side of a session (D4): it sends data packets, repeats those that were lost, and finds out how many the way
// takes.
//
// Loss: each packet that is sent has a number of its own, `sent`, also when it is repeated. Acknowledgments say what is
// there; a packet is overtaken when one that was sent PACKET_THRESHOLD later is, and has been lost when it does not come within
// the time that overtaken packets took before: none, on a link that keeps the order. Where nothing comes back at all, the
// oldest is sent once more, each time after twice the time.
//
// Congestion: the window grows while round trips are not longer than they have to be, and shrinks with them; losses alone
// make it smaller only where they are many: a link that loses one in a hundred at random is no slower for it.
import { PACKET_DISCONNECT, PACKET_HALF, PACKET_PROMPT } from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import { Queue } from "../support/queue.js";
import type { Seal } from "./key-schedule.js";
import type { Packet } from "./packet.js";

/** Packets sent behind one that is missing, after which it counts as overtaken. */
const PACKET_THRESHOLD = 3;
/** Round trips for which an overtaken packet is waited for, at the most. */
const REORDERING_ROUND_TRIPS_MAX = 4;
/** What is known of that is waited for a quarter longer; and forgotten by half within some 1,400 packets. */
const REORDERING_MARGIN = 1.25;
const REORDERING_DECAY = 1 / 2048;
/** Packets under way at the beginning, and at the least. */
const INITIAL_WINDOW = 16;
const WINDOW_MIN = 2;
/** As long as fewer may be under way, each is acknowledged at once. */
const PROMPT_BELOW = 8;
/** Of the shortest round trip: what may come on top of it before the way counts as full. */
const DELAY_ALLOWED = 0.5;
/** Microseconds that are no sign of anything. */
const DELAY_SLACK = 100;
/** Part of a window's packets that may be lost and be chance. */
const LOSS_ALLOWED = 0.1;
/** Microseconds until something is sent again where nothing is known of the way. */
const INITIAL_PTO = 20_000;
const PTO_MIN = 1000;
const PTO_MAX = 1_000_000;
/** The target waits so long with an acknowledgment, at the most. */
const ACK_DELAY_MAX = 200;

/** A data packet that is under way. */
interface SentPacket {
  readonly packet: Packet;
  readonly number: number;
  /** `sent` of the last time. */
  sent: number;
  timeSent: number;
  transmissions: number;
  /** When it was overtaken, the last time; Infinity: never. */
  suspectedAt: number;
}

/** What an acknowledgment says. */
export interface Acknowledgment {
  readonly cumulative: number;
  readonly echo: number;
  readonly delay: number;
  readonly limit: number;
  readonly duplicates: number;
  /** Bit i: packet cumulative + 1 + i is there, too. */
  readonly mask: Int32Array;
}

/** What is sent through it. */
export interface Outgoing {
  /** Sends a packet, sealed if there is a seal; false: the link has no room now. */
  send(to: Address, packet: Packet, seal: Seal | undefined): boolean;
}

/** What was counted, of all sessions together. */
export interface Counts {
  /** Data packets that were sent for the first time. */
  data: number;
  /** Data packets that were sent again. */
  retransmitted: number;
}

/** What the sessions of a node share. */
export interface Shared {
  readonly out: Outgoing;
  readonly counts: Counts;
  /** Microseconds after which a packet that was overtaken may still come: what one learns of the link, the next ones know. */
  reorderingDelay: number;
}

export class Session {
  /** What the target knows it by. */
  readonly id: number;
  readonly #to: Address;
  readonly #shared: Shared;
  readonly #isZeroRtt: boolean;
  #idNow: number;
  #seal: Seal | undefined;
  /** By number: those that are not acknowledged. */
  readonly #inFlight = new Map<number, SentPacket>();
  /** Those that were sent, in that order; an entry whose `sent` is not the packet's is of an earlier time. */
  readonly #order = new Queue<{ readonly one: SentPacket; readonly sent: number }>();
  /** Those of them that were overtaken: they may still come. */
  readonly #suspects = new Queue<{ readonly one: SentPacket; readonly sent: number }>();
  /** Lost, to be sent again. */
  readonly #lost = new Queue<SentPacket>();
  #next = 1;
  #sent: number;
  #limit: number;
  #window = INITIAL_WINDOW;
  #duplicates = 0;
  /** Packets that were sent again. */
  #retransmitted = 0;
  /** The latest `sent` that is known to be there. */
  #largestAcked = 0;
  #smoothedRtt = 0;
  #rttVariation = 0;
  #minRtt = Number.POSITIVE_INFINITY;
  /** Times that something was sent again because nothing came back. */
  #ptoCount = 0;
  #deadline = Number.POSITIVE_INFINITY;
  /** Since the window changed last: packets there, packets lost; it changes once in a round trip. */
  #ackedCount = 0;
  #lostCount = 0;
  /** `sent` of the first packet after that. */
  #changedAt = 0;

  /**
   * @param id the target's session id; of half a handshake a word of the nonce, until accept()
   * @param sent packets that were sent in it before: connect packets
   * @param seal of what it sends; undefined: nothing is sealed
   */
  constructor(
    id: number,
    to: Address,
    shared: Shared,
    limit: number,
    sent: number,
    seal: Seal | undefined,
    isZeroRtt = false,
  ) {
    this.id = id;
    this.#idNow = id;
    this.#seal = seal;
    this.#to = to;
    this.#shared = shared;
    this.#limit = limit;
    this.#sent = sent;
    this.#changedAt = sent;
    this.#isZeroRtt = isZeroRtt;
  }

  /** Whether it has this id at the target. */
  hasId(id: number): boolean {
    return this.#idNow === id || this.id === id;
  }

  /** Whether its connect packet was not answered yet (D5b). */
  get isZeroRtt(): boolean {
    return this.#isZeroRtt && this.#idNow === this.id;
  }

  /** Packets that were sent in it. */
  get sent(): number {
    return this.#sent;
  }

  /** Data packets that are not acknowledged. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** When its target is silent unless something comes, in microseconds: then onProbeTimeout() is called. */
  get deadline(): number {
    return this.#deadline;
  }

  /** When a packet that was overtaken is lost unless it comes, in microseconds: then retransmit() is called. */
  get lossTime(): number {
    const first = this.#suspects.first;
    return first === undefined ? Number.POSITIVE_INFINITY : first.one.suspectedAt + this.#reorderingDelay;
  }

  /** Times in a row that nothing came back. */
  get ptoCount(): number {
    return this.#ptoCount;
  }

  /** Data packets that may be sent for the first time now. */
  get allowance(): number {
    if (this.#lost.length > 0) return 0;
    return Math.max(0, Math.min(Math.ceil(this.#window) - this.#inFlight.size, seqDelta(this.#limit, this.#next)));
  }

  /** Sends a data packet for the first time. @param isLast nothing comes behind it for now */
  begin(packet: Packet, now: number, isLast: boolean): void {
    const number = this.#next++;
    const one: SentPacket = {
      packet,
      number,
      sent: 0,
      timeSent: 0,
      transmissions: 0,
      suspectedAt: Number.POSITIVE_INFINITY,
    };
    this.#inFlight.set(number, one);
    this.#shared.counts.data++;
    // Where few may be under way, the target would wait for more of them in vain.
    this.#transmit(one, now, isLast || this.#window < PROMPT_BELOW);
  }

  /** Sends again what was lost, as far as it may. */
  retransmit(now: number): void {
    this.#findLost(now);
    for (let one = this.#lost.first; one !== undefined; one = this.#lost.first) {
      if (this.#inFlight.get(one.number) === one) this.#transmit(one, now, true);
      this.#lost.shift();
    }
  }

  #transmit(one: SentPacket, now: number, isPrompt: boolean): void {
    if (one.transmissions++ > 0) {
      this.#retransmitted++;
      this.#shared.counts.retransmitted++;
    }
    one.sent = ++this.#sent;
    one.timeSent = now;
    this.#order.push({ one, sent: one.sent });
    if (this.#deadline === Number.POSITIVE_INFINITY) this.#deadline = now + this.#probeTimeout();
    one.packet.flags((isPrompt ? PACKET_PROMPT : 0) | (this.isZeroRtt ? PACKET_HALF : 0));
    one.packet.address(this.#idNow, one.sent, one.number);
    this.#shared.out.send(this.#to, one.packet, this.#seal);
  }

  #probeTimeout(): number {
    const known =
      this.#smoothedRtt === 0
        ? INITIAL_PTO
        : this.#smoothedRtt + 4 * this.#rttVariation + ACK_DELAY_MAX + this.#reorderingDelay;
    return Math.min(Math.max(known, PTO_MIN) * 2 ** this.#ptoCount, PTO_MAX);
  }

  /** The target has said what is there. @returns the packets that are; false: it speaks of what was never sent */
  acknowledged(ack: Acknowledgment, now: number): Packet[] | false {
    const { cumulative, echo, delay, limit, duplicates, mask } = ack;
    if (seqDelta(cumulative, this.#next) > 0 || seqDelta(echo, this.#sent) > 0) return false;
    const there: SentPacket[] = [];
    for (const [number, one] of this.#inFlight) {
      const ahead = seqDelta(number, cumulative);
      if (ahead > 32 * mask.length) break;
      const isThere =
        ahead < 0 || (ahead > 0 && (((mask[(ahead - 1) >>> 5] as number) >>> ((ahead - 1) & 31)) & 1) === 1);
      if (isThere) there.push(one);
    }
    // How long one was under way that was overtaken says nothing of the others.
    const isLate = seqDelta(echo, this.#largestAcked) < 0;
    for (const one of there) {
      this.#inFlight.delete(one.number);
      // Of one that was sent again nobody knows which of them came.
      if (one.transmissions === 1 && seqDelta(one.sent, this.#largestAcked) > 0) this.#largestAcked = one.sent;
      // Unless that is sooner than the last of them can have come: times are rounded, and the way may be shorter than known.
      if (one.transmissions === 1 || now - one.timeSent < this.#minRtt / 2) this.#noteReordering(now - one.suspectedAt);
      if (one.sent === echo && !isLate && delay <= now - one.timeSent) this.#measure(now - one.timeSent - delay);
    }
    if (seqDelta(echo, this.#largestAcked) > 0) this.#largestAcked = echo;
    if (seqDelta(limit, this.#limit) > 0) this.#limit = limit;
    // What was sent twice, and came twice, was not lost: it was later than a round trip after it was sent again.
    if (duplicates > this.#duplicates) {
      this.#duplicates = duplicates;
      if (duplicates <= this.#retransmitted)
        this.#noteReordering(Math.max(this.#shared.reorderingDelay, this.#smoothedRtt));
    }
    this.#shared.reorderingDelay *= 1 - Math.min(1, there.length * REORDERING_DECAY);
    this.#ptoCount = 0;
    this.#ackedCount += there.length;
    this.#findLost(now);
    if (seqDelta(echo, this.#changedAt) >= 0) this.#adapt();
    this.#deadline = this.#inFlight.size === 0 ? Number.POSITIVE_INFINITY : now + this.#probeTimeout();
    return there.map(({ packet }) => packet);
  }

  #measure(time: number): void {
    const roundTrip = Math.max(1, time);
    this.#minRtt = Math.min(this.#minRtt, roundTrip);
    if (this.#smoothedRtt === 0) {
      this.#smoothedRtt = roundTrip;
      this.#rttVariation = roundTrip / 2;
      return;
    }
    this.#rttVariation += (Math.abs(roundTrip - this.#smoothedRtt) - this.#rttVariation) / 4;
    this.#smoothedRtt += (roundTrip - this.#smoothedRtt) / 8;
  }

  /** A packet came so long after it was overtaken. */
  #noteReordering(time: number): void {
    this.#shared.reorderingDelay = Math.max(
      this.#shared.reorderingDelay,
      Math.min(REORDERING_MARGIN * time, REORDERING_ROUND_TRIPS_MAX * this.#smoothedRtt),
    );
  }

  /** Microseconds for which an overtaken packet is waited for. Other sessions may have longer round trips. */
  get #reorderingDelay(): number {
    return Math.floor(Math.min(this.#shared.reorderingDelay, REORDERING_ROUND_TRIPS_MAX * this.#smoothedRtt));
  }

  #findLost(now: number): void {
    for (let entry = this.#order.first; entry !== undefined; entry = this.#order.first) {
      if (this.#isMissing(entry)) {
        if (seqDelta(this.#largestAcked, entry.sent) < PACKET_THRESHOLD) break;
        entry.one.suspectedAt = now;
        this.#suspects.push(entry);
      }
      this.#order.shift();
    }
    for (let entry = this.#suspects.first; entry !== undefined; entry = this.#suspects.first) {
      if (this.#isMissing(entry)) {
        if (now < entry.one.suspectedAt + this.#reorderingDelay) break;
        this.#lostCount++;
        this.#lost.push(entry.one);
      }
      this.#suspects.shift();
    }
  }

  /** Whether a packet is not there, and was not sent again since. */
  #isMissing({ one, sent }: { readonly one: SentPacket; readonly sent: number }): boolean {
    return this.#inFlight.get(one.number) === one && one.sent === sent;
  }

  /** Once in a round trip. */
  #adapt(): void {
    const longest = this.#minRtt * (1 + DELAY_ALLOWED) + DELAY_SLACK;
    const isLossy = this.#lostCount > LOSS_ALLOWED * (this.#ackedCount + this.#lostCount);
    if (isLossy || this.#smoothedRtt > longest)
      this.#window = Math.max(WINDOW_MIN, this.#window * (isLossy ? 0.5 : Math.max(0.5, longest / this.#smoothedRtt)));
    else if (this.#inFlight.size + this.#ackedCount >= this.#window / 2) this.#window *= 1.5;
    this.#ackedCount = 0;
    this.#lostCount = 0;
    this.#changedAt = this.#sent + 1;
  }

  /** Nothing has come until the deadline: the oldest is sent again. */
  onProbeTimeout(now: number): void {
    const [one] = this.#inFlight.values();
    if (one === undefined) return;
    this.#ptoCount++;
    this.#window = Math.max(WINDOW_MIN, this.#window / 2);
    this.#deadline = Number.POSITIVE_INFINITY;
    this.#transmit(one, now, true);
  }

  /** It is over: what the target has not said to have, in order. */
  *unacknowledged(): Iterable<Packet> {
    for (const { packet } of this.#inFlight.values()) yield packet;
  }

  /** Ends it at the target, which may or may not hear of it. */
  disconnect(packet: Packet, job: number): void {
    packet.begin(PACKET_DISCONNECT, job).address(this.#idNow, ++this.#sent, 0);
    this.#shared.out.send(this.#to, packet, this.#seal);
  }

  /** Half a handshake is a whole one: from now on the target's id counts, and the seal of both. */
  accept(id: number, seal: Seal | undefined): void {
    this.#idNow = id;
    this.#seal = seal;
  }
}
