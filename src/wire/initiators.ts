// The origin's side of a node (D1 … D7): a few initiator contexts serve as many other nodes as there are, one session at a
// time each. What is for a node that is not served waits in its backlog.
import {
  ACCEPT_ECHO_OFFSET,
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
  CONNECT_SERIAL_OFFSET,
  PACKET_CONNECT,
  PACKET_DATA,
  PACKET_DISCONNECT,
  PACKET_SIZE,
  REFUSE_ECHO_OFFSET,
  REFUSE_REASON_OFFSET,
  REFUSE_WAIT_OFFSET,
  REFUSED_NAME,
  REFUSED_NODE,
  REFUSED_UNKNOWN,
} from "../../assembly/layout.js";
import { Queue } from "../support/queue.js";
import type { Incoming } from "./incoming.js";
import { Packet } from "./packet.js";
import { SESSION_WINDOW } from "./responder.js";
import type { SessionSeals } from "./sealing.js";
import { SEEN_WORDS, Seen } from "./seen.js";
import { Session } from "./session.js";
import { grown, type Station } from "./station.js";
import type { Address } from "./wire.js";

/** Microseconds without an answer to a connect packet, until it is sent again: then twice as long. */
const CONNECT_TIMEOUT = 20_000;
const CONNECT_TIMEOUT_MAX = 1_000_000;
/** Microseconds for which a node may say nothing, though it is asked again and again, until it is given up (D10). */
const SILENCE_MAX = 10_000_000;
/** Times in a row that nothing came back, until a silent node has to wait for its turn behind the others. */
const ATTEMPTS_YIELD = 2;
/** With a key nobody says that a session is unknown, for it can't be proven: so many times, and another one is begun. */
const ATTEMPTS_ANEW = 4;
/** Microseconds that a session without work stays open. */
const IDLE_INITIATOR = 50_000;
/** Data packets of a session, after which it is another node's turn. */
const QUOTA = 64;
/** Bytes of packets that are kept for the next: as many as are under way, not to be made anew each time. */
const SPARE_BYTES = 2 ** 21;

/** What is for one node. It exists only while there is something. */
interface Backlog {
  readonly node: number;
  readonly to: Address;
  readonly packets: Queue<Packet>;
  /** Those that were in a session before: they come first. */
  again: Packet[];
  bytes: number;
  /** Times in a row that it was asked, and nothing came back. */
  attempts: number;
  /** It accepted a session, and acknowledged nothing in it: that it accepts others proves nothing. */
  isMute: boolean;
  /** When it was asked for the first time of them, in microseconds. */
  silentSince: number;
  /** Connect packets in a row that were refused for want of a responder. */
  refusals: number;
  /** Not to be connected to before, in microseconds. */
  notBefore: number;
  isServed: boolean;
  /** Whether it stands in the line of those that are to be served. */
  isWaiting: boolean;
}

/** A DC initiator context. */
interface Initiator {
  /** `session` of what comes back: changes with each connection. */
  reference: number;
  backlog: Backlog | undefined;
  session: Session | undefined;
  /** With a key: what seals its packets, and which of the other side's came. */
  seals: SessionSeals | undefined;
  seen: Seen | undefined;
  nonce: number[];
  connect: Packet;
  /** Connect packets that were sent. */
  sent: number;
  deadline: number;
  /** Whether its session has nothing to do. */
  isIdle: boolean;
  /** Data packets that it may still send while others wait. */
  quota: number;
}

/** Microseconds until the next attempt, after so many of which nothing came. */
function backoff(attempts: number): number {
  return Math.min(CONNECT_TIMEOUT * 2 ** attempts, CONNECT_TIMEOUT_MAX);
}

export class Initiators {
  readonly #station: Station;
  readonly #initiators: Initiator[];
  readonly #backlogs = new Map<number, Backlog>();
  /** Those that may be served, in turn. */
  readonly #line = new Queue<Backlog>();
  /** Those that may not be yet: nobody looks at them before the first of them may. */
  readonly #resting = new Set<Backlog>();
  #restUntil = Number.POSITIVE_INFINITY;
  /** Next order number to each target endpoint, by origin endpoint and target. */
  readonly #orders = new Map<number, Uint32Array<ArrayBuffer>>();
  readonly #spare: Packet[] = [];
  readonly #packet: Packet;
  readonly #backlogBytes: number;
  /** Connect packets that this node has sent. */
  #serial = 0;

  constructor(station: Station) {
    const { initiators = 8, backlogBytes = 1_048_576 } = station.options;
    this.#station = station;
    this.#packet = new Packet(station.packetBytes);
    this.#backlogBytes = backlogBytes;
    this.#initiators = Array.from({ length: initiators }, () => this.#makeInitiator());
  }

  #makeInitiator(): Initiator {
    const connect = new Packet(this.#station.packetBytes);
    const nothing = {
      backlog: undefined,
      session: undefined,
      seals: undefined,
      seen: undefined,
      nonce: [],
      sent: 0,
      isIdle: false,
      quota: 0,
    };
    return { ...nothing, reference: 0, connect, deadline: Number.POSITIVE_INFINITY };
  }

  /**
   * Sends a segment to an endpoint of a node, in the order of the calls; it is copied.
   * @returns false: too much waits for that node already
   */
  submit(node: number, origin: number, target: number, kind: number, content: Uint8Array): boolean {
    const { contentMax } = this.#station;
    if (content.length > contentMax)
      throw new RangeError(`a segment's content has ${content.length} bytes, more than ${contentMax}`);
    const backlog = this.#backlogs.get(node) ?? this.#makeBacklog(node);
    // One that is larger than all that may wait goes alone.
    if (backlog.bytes > 0 && backlog.bytes + content.length > this.#backlogBytes) return false;
    let packet = backlog.packets.last;
    if (packet === undefined || packet.room < content.length) {
      packet = (this.#spare.pop() ?? new Packet(this.#station.packetBytes)).begin(
        PACKET_DATA,
        this.#station.options.job,
      );
      backlog.packets.push(packet);
    }
    backlog.bytes += content.length;
    packet.segment(origin, target, this.#nextOrder(origin, target), kind, content);
    this.#wait(backlog);
    return true;
  }

  #makeBacklog(node: number): Backlog {
    const backlog: Backlog = {
      node,
      to: this.#station.options.addressOf(node),
      packets: new Queue(),
      again: [],
      bytes: 0,
      attempts: 0,
      isMute: false,
      silentSince: 0,
      refusals: 0,
      notBefore: 0,
      isServed: false,
      isWaiting: false,
    };
    this.#backlogs.set(node, backlog);
    return backlog;
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

  /** Puts a backlog into the line, unless it is served or stands there. */
  #wait(backlog: Backlog): void {
    if (backlog.isServed || backlog.isWaiting) return;
    backlog.isWaiting = true;
    if (backlog.notBefore <= this.#station.time.now()) this.#line.push(backlog);
    else {
      this.#resting.add(backlog);
      this.#restUntil = Math.min(this.#restUntil, backlog.notBefore);
    }
  }

  /** Puts those into the line that have rested for long enough. */
  #rouse(now: number): void {
    if (this.#restUntil > now) return;
    this.#restUntil = Number.POSITIVE_INFINITY;
    for (const backlog of this.#resting) {
      if (backlog.notBefore <= now) {
        this.#resting.delete(backlog);
        this.#line.push(backlog);
      } else this.#restUntil = Math.min(this.#restUntil, backlog.notBefore);
    }
  }

  /** Whether a node waits that could be served now. */
  get #isAwaited(): boolean {
    return this.#line.length > 0;
  }

  /** Gives free initiators to the nodes that wait, in turn. */
  #serve(now: number): void {
    for (const initiator of this.#initiators) {
      if (initiator.backlog !== undefined) continue;
      const backlog = this.#nextInLine();
      if (backlog === undefined) return;
      this.#connect(initiator, backlog, now);
    }
  }

  #nextInLine(): Backlog | undefined {
    for (let backlog = this.#line.first; backlog !== undefined; backlog = this.#line.first) {
      this.#line.shift();
      if (this.#backlogs.get(backlog.node) !== backlog) continue; // given up
      backlog.isWaiting = false;
      return backlog;
    }
    return undefined;
  }

  #connect(initiator: Initiator, backlog: Backlog, now: number): void {
    const { job, node, random, wire, sealing } = this.#station.options;
    const targetEpoch = this.#station.epochOf(backlog.node);
    const originEpoch = this.#station.epochFor(backlog.node);
    // Half a handshake (D5b) only with a life that is known: another one must hear of its epoch before anything is taken.
    const isHalf = wire.isFaithful && targetEpoch !== 0;
    backlog.isServed = true;
    initiator.backlog = backlog;
    initiator.quota = QUOTA;
    initiator.reference = this.#station.nextReference(this.#initiators.indexOf(initiator));
    initiator.nonce = [(random() | 1) >>> 0, random(), random(), random()];
    initiator.sent = 0;
    const { connect, reference, nonce } = initiator;
    connect.begin(PACKET_CONNECT, job).word(reference).word(node).word(originEpoch).word(backlog.node);
    connect
      .word(isHalf ? CONNECT_HALF : 0)
      .word(targetEpoch)
      .word(0);
    for (const word of nonce) connect.word(word);
    this.#sendConnect(initiator, backlog, now);
    if (!isHalf) return;
    const names = { origin: node, target: backlog.node, originEpoch, targetEpoch };
    const seal = sealing?.half({ ...names, initiator: reference, connectNonce: nonce });
    const { out, counts } = this.#station;
    const first = nonce[0] as number;
    initiator.session = new Session(first, backlog.to, out, counts, 1 + SESSION_WINDOW, initiator.sent, seal, true);
    this.#pump(initiator, now);
  }

  #sendConnect(initiator: Initiator, { to, attempts }: Backlog, now: number): void {
    this.#station.counts.connects++;
    initiator.deadline = now + backoff(attempts);
    this.#serial = (this.#serial + 1) >>> 0;
    initiator.connect.setWord(PACKET_SIZE + CONNECT_SERIAL_OFFSET, this.#serial).address(0, ++initiator.sent, 0);
    this.#station.out.send(to, initiator.connect, this.#station.options.sealing?.handshake);
  }

  /** Sends what may be sent. */
  #pump(initiator: Initiator, now: number): void {
    const { session, backlog } = initiator;
    if (session === undefined || backlog === undefined) return;
    const { sessionPackets } = this.#station;
    if (session.sent >= 2 * sessionPackets) {
      this.#release(initiator, now, true);
      return;
    }
    session.repeat(now);
    while (session.mayBegin && session.sent < sessionPackets && (initiator.quota > 0 || !this.#isAwaited)) {
      const packet = backlog.again.shift() ?? this.#takeFirst(backlog);
      if (packet === undefined) break;
      initiator.quota--;
      session.begin(packet, now, backlog.again.length === 0 && backlog.packets.length === 0);
    }
    const isThrough = session.underWay === 0;
    const hasMore = backlog.again.length > 0 || backlog.packets.length > 0;
    const wasIdle = initiator.isIdle;
    initiator.isIdle = isThrough;
    if (isThrough && (hasMore || this.#isAwaited)) this.#release(initiator, now, true);
    else if (!isThrough) initiator.deadline = Number.POSITIVE_INFINITY;
    // Since then, however often somebody looks meanwhile.
    else if (!wasIdle) initiator.deadline = now + IDLE_INITIATOR;
  }

  #takeFirst(backlog: Backlog): Packet | undefined {
    const { first } = backlog.packets;
    if (first !== undefined) backlog.packets.shift();
    return first;
  }

  /** The initiator goes on to another node; what this one has not said to have goes back to its backlog, in order. */
  #release(initiator: Initiator, now: number, isOrderly: boolean): void {
    const { session, backlog } = initiator;
    if (backlog === undefined) return;
    if (session !== undefined) {
      backlog.again.unshift(...session.left());
      if (isOrderly) session.disconnect(this.#packet, this.#station.options.job);
    }
    initiator.session = undefined;
    initiator.seals = undefined;
    initiator.seen = undefined;
    initiator.backlog = undefined;
    initiator.isIdle = false;
    initiator.reference = 0;
    initiator.deadline = Number.POSITIVE_INFINITY;
    backlog.isServed = false;
    if (backlog.again.length > 0 || backlog.packets.length > 0) this.#wait(backlog);
    else if (this.#backlogs.get(backlog.node) === backlog) this.#backlogs.delete(backlog.node);
    this.#serve(now);
  }

  /** A node is lost, and what is for it. */
  forget(node: number): void {
    const backlog = this.#backlogs.get(node);
    if (backlog === undefined) return;
    const initiator = this.#initiators.find((one) => one.backlog === backlog);
    backlog.again = [];
    backlog.packets.clear();
    this.#backlogs.delete(node);
    this.#resting.delete(backlog);
    if (initiator === undefined) return;
    initiator.session = undefined; // and what it had under way
    this.#release(initiator, this.#station.time.now(), false);
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    for (const orders of this.#orders.values()) if (target < orders.length) orders[target] = 0;
  }

  /** Nothing came of an attempt: another one, later, or none. */
  #unanswered(initiator: Initiator, now: number): void {
    const { backlog } = initiator;
    if (backlog === undefined) return;
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts >= ATTEMPTS_YIELD && this.#isAwaited) {
      backlog.notBefore = now + backoff(backlog.attempts);
      this.#release(initiator, now, false);
      return;
    }
    this.#sendConnect(initiator, backlog, now);
  }

  /** Once more nothing has come back from a node; whether that was once too often. */
  #isGivenUp(backlog: Backlog, now: number): boolean {
    if (backlog.attempts++ === 0) backlog.silentSince = now;
    if (now - backlog.silentSince < SILENCE_MAX) return false;
    this.#station.giveUp(backlog.node, 0);
    return true;
  }

  /** Does what is due. @returns when something will be, in microseconds */
  advance(now: number): number {
    this.#rouse(now);
    this.#serve(now);
    let next = Number.POSITIVE_INFINITY;
    for (const initiator of this.#initiators) {
      const { session, backlog } = initiator;
      if (backlog === undefined) continue;
      if (session !== undefined && session.deadline <= now) this.#silent(initiator, session, now);
      else if (initiator.deadline <= now) {
        if (session !== undefined && session.underWay === 0) this.#idle(initiator, now);
        else this.#unanswered(initiator, now);
      } else this.#pump(initiator, now);
      next = Math.min(next, initiator.deadline, initiator.session?.deadline ?? Number.POSITIVE_INFINITY);
    }
    // Those that may be served already are so as soon as an initiator is free.
    return Math.min(next, this.#restUntil);
  }

  #idle(initiator: Initiator, now: number): void {
    const { backlog } = initiator;
    if (backlog !== undefined && (backlog.again.length > 0 || backlog.packets.length > 0)) {
      initiator.quota = QUOTA;
      this.#pump(initiator, now);
    } else this.#release(initiator, now, true);
  }

  /** A session's target says nothing. */
  #silent(initiator: Initiator, session: Session, now: number): void {
    const { backlog } = initiator;
    if (backlog === undefined) return;
    if (this.#isGivenUp(backlog, now)) return;
    const isYielding = backlog.attempts >= ATTEMPTS_YIELD && this.#isAwaited;
    if (isYielding) backlog.notBefore = now + backoff(backlog.attempts);
    if (isYielding || (this.#station.options.sealing !== undefined && backlog.attempts >= ATTEMPTS_ANEW)) {
      backlog.isMute = true;
      this.#release(initiator, now, true);
    } else session.timedOut(now);
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The initiator to which a packet speaks. */
  #initiatorOf(packet: Incoming): Initiator | undefined {
    const initiator = this.#initiators[(packet.session & 0xfff) - 1];
    if (initiator?.reference === packet.session && initiator.backlog?.to === packet.from) return initiator;
    this.#station.dropped.unknown++;
    return undefined;
  }

  /** Whether an answer is one to the connect packet with this nonce. */
  #isEcho(packet: Incoming, offset: number, nonce: readonly number[]): boolean {
    if (packet.at(offset) === nonce[0] && packet.at(offset + 4) === nonce[1]) return true;
    this.#station.dropped.unasked++;
    return false;
  }

  accepted(packet: Incoming, now: number): void {
    const { sealing, node, job } = this.#station.options;
    const { dropped, out, counts } = this.#station;
    const initiator = this.#initiatorOf(packet);
    if (initiator?.backlog === undefined || !this.#station.opens(packet, sealing?.handshake)) return;
    const { nonce, backlog, reference, session } = initiator;
    if (!this.#isEcho(packet, ACCEPT_ECHO_OFFSET, nonce)) return;
    if (session !== undefined && !session.isHalf) {
      dropped.unasked++;
      return;
    }
    const targetEpoch = packet.at(ACCEPT_EPOCH_OFFSET);
    if (this.#station.isOver(backlog.node, targetEpoch)) {
      dropped.stale++; // an earlier life of it is still there
      return;
    }
    counts.taken++;
    const responder = packet.at(ACCEPT_RESPONDER_OFFSET);
    const seals = sealing?.session({
      origin: node,
      target: backlog.node,
      originEpoch: this.#station.epochFor(backlog.node),
      targetEpoch,
      initiator: reference,
      responder,
      connectNonce: nonce,
      acceptNonce: [0, 4, 8, 12].map((offset) => packet.at(ACCEPT_NONCE_OFFSET + offset)),
    });
    const sent = initiator.sent + 1;
    this.#station.noteEpoch(backlog.node, targetEpoch);
    if (this.#backlogs.get(backlog.node) !== backlog) {
      // What was for it is lost with its earlier life, and nothing is left to be said: the responder is free at once.
      out.send(packet.from, this.#packet.begin(PACKET_DISCONNECT, job).address(responder, sent, 0), seals?.toTarget);
      return;
    }
    if (!backlog.isMute) backlog.attempts = 0;
    backlog.refusals = 0;
    initiator.seals = seals;
    initiator.seen = seals === undefined ? undefined : new Seen(SEEN_WORDS);
    const seal = seals?.toTarget;
    if (session === undefined) {
      const limit = packet.at(ACCEPT_LIMIT_OFFSET);
      initiator.session = new Session(responder, backlog.to, out, counts, limit, initiator.sent, seal);
    } else session.accept(responder, seal);
    this.#pump(initiator, now);
  }

  refused(packet: Incoming, now: number): void {
    const { sealing, random } = this.#station.options;
    const { dropped, counts } = this.#station;
    if (!this.#station.opens(packet, sealing?.handshake)) return;
    const reason = packet.at(REFUSE_REASON_OFFSET);
    if (reason === REFUSED_UNKNOWN) {
      if (sealing === undefined) this.#unknown(packet, now);
      else dropped.untrue++; // nobody says so
      return;
    }
    const initiator = this.#initiatorOf(packet);
    if (initiator?.backlog === undefined || !this.#isEcho(packet, REFUSE_ECHO_OFFSET, initiator.nonce)) return;
    // Half a handshake has a session already, and is none until it is accepted.
    if (initiator.session?.isHalf === false) {
      dropped.unasked++;
      return;
    }
    counts.taken++;
    const { backlog } = initiator;
    if (reason === REFUSED_NODE || reason === REFUSED_NAME) {
      this.#station.giveUp(backlog.node, reason);
      return;
    }
    // Twice as long each time, and not all at once.
    const asked = Math.min(packet.at(REFUSE_WAIT_OFFSET), CONNECT_TIMEOUT_MAX);
    const wait = Math.min(asked * 2 ** Math.min(backlog.refusals++, 6), CONNECT_TIMEOUT_MAX);
    backlog.attempts = 0;
    backlog.notBefore = now + wait * (0.5 + (random() & 0xffff) / 65536);
    this.#release(initiator, now, false);
  }

  /** A session is unknown to its target. */
  #unknown({ session: id, from }: Incoming, now: number): void {
    const initiator = this.#initiators.find((one) => one.session?.knows(id) === true && one.backlog?.to === from);
    if (initiator?.backlog === undefined) {
      this.#station.dropped.unknown++;
      return;
    }
    this.#station.counts.taken++;
    const { backlog } = initiator;
    // Once, its node has started anew, or has given the responder to another; more often, it takes its time.
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts > 1) backlog.notBefore = now + backoff(backlog.attempts);
    this.#release(initiator, now, false);
  }

  acknowledged(packet: Incoming, now: number): void {
    const initiator = this.#initiatorOf(packet);
    if (initiator?.backlog === undefined) return;
    if (initiator.session === undefined) {
      this.#station.dropped.unasked++;
      return;
    }
    if (!this.#station.opens(packet, initiator.seals?.toOrigin, initiator.seen)) return;
    const words = packet.at(ACKNOWLEDGE_WORDS_OFFSET);
    const there = initiator.session.acknowledged(
      {
        all: packet.at(ACKNOWLEDGE_ALL_OFFSET),
        echo: packet.at(ACKNOWLEDGE_ECHO_OFFSET),
        delay: packet.at(ACKNOWLEDGE_DELAY_OFFSET),
        limit: packet.at(ACKNOWLEDGE_LIMIT_OFFSET),
        repeated: packet.at(ACKNOWLEDGE_REPEATED_OFFSET),
        mask: packet.words(ACKNOWLEDGE_MASK_OFFSET, words),
      },
      now,
    );
    if (there === false) {
      this.#station.dropped.untrue++;
      return;
    }
    this.#station.counts.taken++;
    const { backlog } = initiator;
    backlog.attempts = 0;
    backlog.isMute = false;
    for (const one of there) {
      backlog.bytes -= one.contentBytes;
      if (this.#spare.length * this.#station.packetBytes < SPARE_BYTES) this.#spare.push(one);
    }
    this.#pump(initiator, now);
  }

  /** What is kept for targets that it has nothing for: words; and packets for the next. */
  get kept(): { orders: number; spare: number } {
    let orders = 0;
    for (const { length } of this.#orders.values()) orders += length;
    return { orders, spare: this.#spare.length };
  }

  /** Contexts that serve a node, and nodes for which there is something. */
  get inUse(): { initiators: number; backlogs: number } {
    const initiators = this.#initiators.filter(({ backlog }) => backlog !== undefined).length;
    return { initiators, backlogs: this.#backlogs.size };
  }
}
