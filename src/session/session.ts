// The origin's side of a session (D4): it sends data packets, repeats those that were lost, and finds out how many the way
// takes.
//
// Loss: each packet that is sent has a number of its own, `sent`, also when it is repeated. Acknowledgments say what is
// there; a packet is overtaken when one that was sent OVERTAKEN_BY later is, and has been lost when it does not come within
// the time that overtaken packets took before: none, on a wire that keeps the order. Where nothing comes back at all, the
// oldest is sent once more, each time after twice the time.
//
// Congestion: the window grows while round trips are not longer than they have to be, and shrinks with them; losses alone
// make it smaller only where they are many: a wire that loses one in a hundred at random is no slower for it.
import { PACKET_DISCONNECT, PACKET_HALF, PACKET_PROMPT } from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import { Queue } from "../support/queue.js";
import type { Packet } from "./packet.js";
import type { Seal } from "./sealing.js";

/** Packets sent behind one that is missing, after which it counts as overtaken. */
const OVERTAKEN_BY = 3;
/** Round trips for which an overtaken packet is waited for, at the most. */
const LATE_MAX = 4;
/** What is known of that is waited for a quarter longer; and forgotten by half within some 1,400 packets. */
const LATE_MARGIN = 1.25;
const LATE_FORGET = 1 / 2048;
/** Packets under way at the beginning, and at the least. */
const WINDOW_FIRST = 16;
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
const TIMEOUT_FIRST = 20_000;
const TIMEOUT_MIN = 1000;
const TIMEOUT_MAX = 1_000_000;
/** The target waits so long with an acknowledgment, at the most. */
const ACKNOWLEDGE_WAIT = 200;

/** A data packet that is under way. */
interface UnderWay {
  readonly packet: Packet;
  readonly number: number;
  /** `sent` of the last time. */
  sent: number;
  time: number;
  times: number;
  /** When it was overtaken, the last time; Infinity: never. */
  overtaken: number;
}

/** What an acknowledgment says. */
export interface Acknowledgment {
  readonly all: number;
  readonly echo: number;
  readonly delay: number;
  readonly limit: number;
  readonly repeated: number;
  /** Bit i: packet all + 1 + i is there, too. */
  readonly mask: Int32Array;
}

/** What is sent through it. */
export interface Outgoing {
  /** Sends a packet, sealed if there is a seal; false: the wire has no room now. */
  send(to: Address, packet: Packet, seal: Seal | undefined): boolean;
}

/** What was counted, of all sessions together. */
export interface Counts {
  /** Data packets that were sent for the first time. */
  data: number;
  /** Data packets that were sent again. */
  again: number;
}

/** What the sessions of a node share. */
export interface Shared {
  readonly out: Outgoing;
  readonly counts: Counts;
  /** Microseconds after which a packet that was overtaken may still come: what one learns of the wire, the next ones know. */
  late: number;
}

export class Session {
  /** What the target knows it by. */
  readonly id: number;
  readonly #to: Address;
  readonly #shared: Shared;
  readonly #isHalf: boolean;
  #idNow: number;
  #seal: Seal | undefined;
  /** By number: those that are not acknowledged. */
  readonly #underWay = new Map<number, UnderWay>();
  /** Those that were sent, in that order; an entry whose `sent` is not the packet's is of an earlier time. */
  readonly #order = new Queue<{ readonly one: UnderWay; readonly sent: number }>();
  /** Those of them that were overtaken: they may still come. */
  readonly #overtaken = new Queue<{ readonly one: UnderWay; readonly sent: number }>();
  /** Lost, to be sent again. */
  readonly #lost = new Queue<UnderWay>();
  #next = 1;
  #sent: number;
  #limit: number;
  #window = WINDOW_FIRST;
  #repeated = 0;
  /** Packets that were sent again. */
  #again = 0;
  /** The latest `sent` that is known to be there. */
  #newest = 0;
  #roundTrip = 0;
  #variance = 0;
  #shortest = Number.POSITIVE_INFINITY;
  /** Times that something was sent again because nothing came back. */
  #silences = 0;
  #deadline = Number.POSITIVE_INFINITY;
  /** Since the window changed last: packets there, packets lost; it changes once in a round trip. */
  #gained = 0;
  #missed = 0;
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
    isHalf = false,
  ) {
    this.id = id;
    this.#idNow = id;
    this.#seal = seal;
    this.#to = to;
    this.#shared = shared;
    this.#limit = limit;
    this.#sent = sent;
    this.#changedAt = sent;
    this.#isHalf = isHalf;
  }

  /** Whether it has this id at the target. */
  knows(id: number): boolean {
    return this.#idNow === id || this.id === id;
  }

  /** Whether its connect packet was not answered yet (D5b). */
  get isHalf(): boolean {
    return this.#isHalf && this.#idNow === this.id;
  }

  /** Packets that were sent in it. */
  get sent(): number {
    return this.#sent;
  }

  /** Data packets that are not acknowledged. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** When its target is silent unless something comes, in microseconds: then timedOut() is called. */
  get deadline(): number {
    return this.#deadline;
  }

  /** When a packet that was overtaken is lost unless it comes, in microseconds: then repeat() is called. */
  get lostAt(): number {
    const first = this.#overtaken.first;
    return first === undefined ? Number.POSITIVE_INFINITY : first.one.overtaken + this.#late;
  }

  /** Times in a row that nothing came back. */
  get silences(): number {
    return this.#silences;
  }

  /** Data packets that may be sent for the first time now. */
  get room(): number {
    if (this.#lost.length > 0) return 0;
    return Math.max(0, Math.min(Math.ceil(this.#window) - this.#underWay.size, seqDelta(this.#limit, this.#next)));
  }

  /** Sends a data packet for the first time. @param isLast nothing comes behind it for now */
  begin(packet: Packet, now: number, isLast: boolean): void {
    const number = this.#next++;
    const one: UnderWay = { packet, number, sent: 0, time: 0, times: 0, overtaken: Number.POSITIVE_INFINITY };
    this.#underWay.set(number, one);
    this.#shared.counts.data++;
    // Where few may be under way, the target would wait for more of them in vain.
    this.#transmit(one, now, isLast || this.#window < PROMPT_BELOW);
  }

  /** Sends again what was lost, as far as it may. */
  repeat(now: number): void {
    this.#findLost(now);
    for (let one = this.#lost.first; one !== undefined; one = this.#lost.first) {
      if (this.#underWay.get(one.number) === one) this.#transmit(one, now, true);
      this.#lost.shift();
    }
  }

  #transmit(one: UnderWay, now: number, isPrompt: boolean): void {
    if (one.times++ > 0) {
      this.#again++;
      this.#shared.counts.again++;
    }
    one.sent = ++this.#sent;
    one.time = now;
    this.#order.push({ one, sent: one.sent });
    if (this.#deadline === Number.POSITIVE_INFINITY) this.#deadline = now + this.#timeout();
    one.packet.flags((isPrompt ? PACKET_PROMPT : 0) | (this.isHalf ? PACKET_HALF : 0));
    one.packet.address(this.#idNow, one.sent, one.number);
    this.#shared.out.send(this.#to, one.packet, this.#seal);
  }

  #timeout(): number {
    const known =
      this.#roundTrip === 0 ? TIMEOUT_FIRST : this.#roundTrip + 4 * this.#variance + ACKNOWLEDGE_WAIT + this.#late;
    return Math.min(Math.max(known, TIMEOUT_MIN) * 2 ** this.#silences, TIMEOUT_MAX);
  }

  /** The target has said what is there. @returns the packets that are; false: it speaks of what was never sent */
  acknowledged(told: Acknowledgment, now: number): Packet[] | false {
    const { all, echo, delay, limit, repeated, mask } = told;
    if (seqDelta(all, this.#next) > 0 || seqDelta(echo, this.#sent) > 0) return false;
    const there: UnderWay[] = [];
    for (const [number, one] of this.#underWay) {
      const ahead = seqDelta(number, all);
      if (ahead > 32 * mask.length) break;
      const isThere =
        ahead < 0 || (ahead > 0 && (((mask[(ahead - 1) >>> 5] as number) >>> ((ahead - 1) & 31)) & 1) === 1);
      if (isThere) there.push(one);
    }
    // How long one was under way that was overtaken says nothing of the others.
    const isLate = seqDelta(echo, this.#newest) < 0;
    for (const one of there) {
      this.#underWay.delete(one.number);
      // Of one that was sent again nobody knows which of them came.
      if (one.times === 1 && seqDelta(one.sent, this.#newest) > 0) this.#newest = one.sent;
      // Unless that is sooner than the last of them can have come: times are rounded, and the way may be shorter than known.
      if (one.times === 1 || now - one.time < this.#shortest / 2) this.#cameLate(now - one.overtaken);
      if (one.sent === echo && !isLate && delay <= now - one.time) this.#measure(now - one.time - delay);
    }
    if (seqDelta(echo, this.#newest) > 0) this.#newest = echo;
    if (seqDelta(limit, this.#limit) > 0) this.#limit = limit;
    // What was sent twice, and came twice, was not lost: it was later than a round trip after it was sent again.
    if (repeated > this.#repeated) {
      this.#repeated = repeated;
      if (repeated <= this.#again) this.#cameLate(Math.max(this.#shared.late, this.#roundTrip));
    }
    this.#shared.late *= 1 - Math.min(1, there.length * LATE_FORGET);
    this.#silences = 0;
    this.#gained += there.length;
    this.#findLost(now);
    if (seqDelta(echo, this.#changedAt) >= 0) this.#adapt();
    this.#deadline = this.#underWay.size === 0 ? Number.POSITIVE_INFINITY : now + this.#timeout();
    return there.map(({ packet }) => packet);
  }

  #measure(time: number): void {
    const roundTrip = Math.max(1, time);
    this.#shortest = Math.min(this.#shortest, roundTrip);
    if (this.#roundTrip === 0) {
      this.#roundTrip = roundTrip;
      this.#variance = roundTrip / 2;
      return;
    }
    this.#variance += (Math.abs(roundTrip - this.#roundTrip) - this.#variance) / 4;
    this.#roundTrip += (roundTrip - this.#roundTrip) / 8;
  }

  /** A packet came so long after it was overtaken. */
  #cameLate(time: number): void {
    this.#shared.late = Math.max(this.#shared.late, Math.min(LATE_MARGIN * time, LATE_MAX * this.#roundTrip));
  }

  /** Microseconds for which an overtaken packet is waited for. Other sessions may have longer round trips. */
  get #late(): number {
    return Math.floor(Math.min(this.#shared.late, LATE_MAX * this.#roundTrip));
  }

  #findLost(now: number): void {
    for (let entry = this.#order.first; entry !== undefined; entry = this.#order.first) {
      if (this.#isMissing(entry)) {
        if (seqDelta(this.#newest, entry.sent) < OVERTAKEN_BY) break;
        entry.one.overtaken = now;
        this.#overtaken.push(entry);
      }
      this.#order.shift();
    }
    for (let entry = this.#overtaken.first; entry !== undefined; entry = this.#overtaken.first) {
      if (this.#isMissing(entry)) {
        if (now < entry.one.overtaken + this.#late) break;
        this.#missed++;
        this.#lost.push(entry.one);
      }
      this.#overtaken.shift();
    }
  }

  /** Whether a packet is not there, and was not sent again since. */
  #isMissing({ one, sent }: { readonly one: UnderWay; readonly sent: number }): boolean {
    return this.#underWay.get(one.number) === one && one.sent === sent;
  }

  /** Once in a round trip. */
  #adapt(): void {
    const longest = this.#shortest * (1 + DELAY_ALLOWED) + DELAY_SLACK;
    const isLossy = this.#missed > LOSS_ALLOWED * (this.#gained + this.#missed);
    if (isLossy || this.#roundTrip > longest)
      this.#window = Math.max(WINDOW_MIN, this.#window * (isLossy ? 0.5 : Math.max(0.5, longest / this.#roundTrip)));
    else if (this.#underWay.size + this.#gained >= this.#window / 2) this.#window *= 1.5;
    this.#gained = 0;
    this.#missed = 0;
    this.#changedAt = this.#sent + 1;
  }

  /** Nothing has come until the deadline: the oldest is sent again. */
  timedOut(now: number): void {
    const [one] = this.#underWay.values();
    if (one === undefined) return;
    this.#silences++;
    this.#window = Math.max(WINDOW_MIN, this.#window / 2);
    this.#deadline = Number.POSITIVE_INFINITY;
    this.#transmit(one, now, true);
  }

  /** It is over: what the target has not said to have, in order. */
  *left(): Iterable<Packet> {
    for (const { packet } of this.#underWay.values()) yield packet;
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
