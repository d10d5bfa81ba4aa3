// The origin's side of a node (D1 … D7): a few initiator contexts serve as many other nodes as there are, one after the
// other. What is for a node that is not served waits in its backlog.
//
// A context connects to the next node before it sends the last packets for this one: connecting takes a round trip, and
// being told that all is there takes another. The session that it leaves only waits to be told, and sends again what was
// lost; a context leaves so many of them, and no more. 8 contexts and 20 µs are a node every 2.5 µs then, not every 5.
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
/** Sessions of a context that wait for their last acknowledgments, at the most. */
const CLOSING_MAX = 2;
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
  /** Its connect packet: only the connection to the node that it serves may have to send it again. */
  readonly connect: Packet;
  /** To the node that it serves. */
  open: Connection | undefined;
  /** Connections to those before. */
  closing: number;
}

/** What a context has with a node, from the connect packet to the end of the session. */
interface Connection {
  readonly initiator: Initiator;
  readonly backlog: Backlog;
  /** `session` of what comes back. */
  readonly reference: number;
  readonly nonce: readonly number[];
  session: Session | undefined;
  /** With a key: what seals its packets, and which of the other side's came. */
  seals: SessionSeals | undefined;
  seen: Seen | undefined;
  /** Connect packets that were sent. */
  sent: number;
  deadline: number;
  /** Whether its session has nothing to do. */
  isIdle: boolean;
  /** Whether its context serves the next node: it ends as soon as all is acknowledged. */
  isClosing: boolean;
  /** Data packets that it may still send while others wait. */
  quota: number;
}

/** Microseconds until the next attempt, after so many of which nothing came. */
function backoff(attempts: number): number {
  return Math.min(CONNECT_TIMEOUT * 2 ** attempts, CONNECT_TIMEOUT_MAX);
}

/** Packets of a backlog. */
function waiting({ again, packets }: Backlog): number {
  return again.length + packets.length;
}

export class Initiators {
  readonly #station: Station;
  readonly #initiators: Initiator[];
  /** Those that there are, by their references. */
  readonly #connections = new Map<number, Connection>();
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
  #isServing = false;

  constructor(station: Station) {
    const { initiators = 8, backlogBytes = 1_048_576 } = station.options;
    this.#station = station;
    this.#packet = new Packet(station.packetBytes);
    this.#backlogBytes = backlogBytes;
    this.#initiators = Array.from({ length: initiators }, () => ({
      connect: new Packet(station.packetBytes),
      open: undefined,
      closing: 0,
    }));
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

  /** Gives free contexts to the nodes that wait, in turn. */
  #serve(now: number): void {
    // By half a handshake a context may be free again as soon as it connects: then the loop goes on with it.
    if (this.#isServing) return;
    this.#isServing = true;
    for (const initiator of this.#initiators) {
      while (initiator.open === undefined) {
        const backlog = this.#nextInLine();
        if (backlog === undefined) break;
        this.#connect(initiator, backlog, now);
      }
      if (!this.#isAwaited) break;
    }
    this.#isServing = false;
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
    const connection: Connection = {
      initiator,
      backlog,
      reference: this.#station.nextReference(this.#initiators.indexOf(initiator)),
      nonce: [(random() | 1) >>> 0, random(), random(), random()],
      session: undefined,
      seals: undefined,
      seen: undefined,
      sent: 0,
      deadline: Number.POSITIVE_INFINITY,
      isIdle: false,
      isClosing: false,
      quota: QUOTA,
    };
    initiator.open = connection;
    this.#connections.set(connection.reference, connection);
    const { reference, nonce } = connection;
    const { connect } = initiator;
    connect.begin(PACKET_CONNECT, job).word(reference).word(node).word(originEpoch).word(backlog.node);
    connect
      .word(isHalf ? CONNECT_HALF : 0)
      .word(targetEpoch)
      .word(0);
    for (const word of nonce) connect.word(word);
    this.#sendConnect(connection, now);
    if (!isHalf) return;
    const names = { origin: node, target: backlog.node, originEpoch, targetEpoch };
    const seal = sealing?.half({ ...names, initiator: reference, connectNonce: nonce });
    const { out, counts } = this.#station;
    const first = nonce[0] as number;
    connection.session = new Session(first, backlog.to, out, counts, 1 + SESSION_WINDOW, connection.sent, seal, true);
    this.#pump(connection, now);
  }

  #sendConnect(connection: Connection, now: number): void {
    const { connect } = connection.initiator;
    const { to, attempts } = connection.backlog;
    this.#station.counts.connects++;
    connection.deadline = now + backoff(attempts);
    this.#serial = (this.#serial + 1) >>> 0;
    connect.setWord(PACKET_SIZE + CONNECT_SERIAL_OFFSET, this.#serial).address(0, ++connection.sent, 0);
    this.#station.out.send(to, connect, this.#station.options.sealing?.handshake);
  }

  /** Sends what may be sent. */
  #pump(connection: Connection, now: number): void {
    const { session, backlog, initiator } = connection;
    if (session === undefined) return;
    const { sessionPackets } = this.#station;
    if (session.sent >= 2 * sessionPackets) {
      this.#release(connection, now, true);
      return;
    }
    session.repeat(now);
    if (this.#isLast(connection, session)) {
      // The next connect packet goes before these: it is short, and its answer takes a round trip.
      connection.isClosing = true;
      initiator.closing++;
      initiator.open = undefined;
      this.#serve(now);
    }
    const { isClosing } = connection;
    while (
      session.room > 0 &&
      session.sent < sessionPackets &&
      (connection.quota > 0 || !(isClosing || this.#isAwaited))
    ) {
      const packet = backlog.again.shift() ?? this.#takeFirst(backlog);
      if (packet === undefined) break;
      connection.quota--;
      session.begin(packet, now, waiting(backlog) === 0 || connection.quota === 0);
    }
    const isThrough = session.underWay === 0;
    const wasIdle = connection.isIdle;
    connection.isIdle = isThrough;
    if (isThrough && (isClosing || waiting(backlog) > 0 || this.#isAwaited)) this.#release(connection, now, true);
    else if (!isThrough) connection.deadline = Number.POSITIVE_INFINITY;
    // Since then, however often somebody looks meanwhile.
    else if (!wasIdle) connection.deadline = now + IDLE_INITIATOR;
  }

  /** Whether another node waits, and all that a connection may still send can be sent now: its context is that one's. */
  #isLast({ initiator, backlog, quota, isClosing }: Connection, session: Session): boolean {
    if (isClosing || !this.#isAwaited || initiator.closing === CLOSING_MAX) return false;
    return Math.min(waiting(backlog), quota, this.#station.sessionPackets - session.sent) <= session.room;
  }

  #takeFirst(backlog: Backlog): Packet | undefined {
    const { first } = backlog.packets;
    if (first !== undefined) backlog.packets.shift();
    return first;
  }

  /** A connection is over; what its node has not said to have goes back to its backlog, in order. */
  #release(connection: Connection, now: number, isOrderly: boolean): void {
    const { session, backlog, initiator } = connection;
    if (session !== undefined) {
      backlog.again.unshift(...session.left());
      if (isOrderly) session.disconnect(this.#packet, this.#station.options.job);
    }
    connection.session = undefined;
    this.#connections.delete(connection.reference);
    if (connection.isClosing) initiator.closing--;
    else initiator.open = undefined;
    backlog.isServed = false;
    if (waiting(backlog) > 0) this.#wait(backlog);
    else if (this.#backlogs.get(backlog.node) === backlog) this.#backlogs.delete(backlog.node);
    this.#serve(now);
  }

  /** A node is lost, and what is for it. */
  forget(node: number): void {
    const backlog = this.#backlogs.get(node);
    if (backlog === undefined) return;
    const connection = this.#find((one) => one.backlog === backlog);
    backlog.again = [];
    backlog.packets.clear();
    this.#backlogs.delete(node);
    this.#resting.delete(backlog);
    if (connection === undefined) return;
    connection.session = undefined; // and what it had under way
    this.#release(connection, this.#station.time.now(), false);
  }

  #find(is: (connection: Connection) => boolean): Connection | undefined {
    for (const connection of this.#connections.values()) if (is(connection)) return connection;
    return undefined;
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    for (const orders of this.#orders.values()) if (target < orders.length) orders[target] = 0;
  }

  /** Nothing came of an attempt: another one, later, or none. */
  #unanswered(connection: Connection, now: number): void {
    const { backlog } = connection;
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts >= ATTEMPTS_YIELD && this.#isAwaited) {
      backlog.notBefore = now + backoff(backlog.attempts);
      this.#release(connection, now, false);
      return;
    }
    this.#sendConnect(connection, now);
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
    for (const connection of this.#connections.values()) this.#attend(connection, now);
    // Those that may be served already are so as soon as a context is free.
    let next = this.#restUntil;
    for (const { deadline, session } of this.#connections.values()) {
      next = Math.min(next, deadline, session?.deadline ?? Number.POSITIVE_INFINITY);
    }
    return next;
  }

  #attend(connection: Connection, now: number): void {
    const { session } = connection;
    if (session !== undefined && session.deadline <= now) this.#silent(connection, session, now);
    else if (connection.deadline > now) this.#pump(connection, now);
    else if (session !== undefined && session.underWay === 0) this.#idle(connection, now);
    else this.#unanswered(connection, now);
  }

  #idle(connection: Connection, now: number): void {
    if (waiting(connection.backlog) > 0) {
      connection.quota = QUOTA;
      this.#pump(connection, now);
    } else this.#release(connection, now, true);
  }

  /** A session's target says nothing. */
  #silent(connection: Connection, session: Session, now: number): void {
    const { backlog } = connection;
    if (this.#isGivenUp(backlog, now)) return;
    const isYielding = backlog.attempts >= ATTEMPTS_YIELD && this.#isAwaited;
    if (isYielding) backlog.notBefore = now + backoff(backlog.attempts);
    if (isYielding || (this.#station.options.sealing !== undefined && backlog.attempts >= ATTEMPTS_ANEW)) {
      backlog.isMute = true;
      this.#release(connection, now, true);
    } else session.timedOut(now);
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The connection to which a packet speaks. */
  #connectionOf({ session, from }: Incoming): Connection | undefined {
    const connection = this.#connections.get(session);
    if (connection?.backlog.to === from) return connection;
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
    const connection = this.#connectionOf(packet);
    if (connection === undefined || !this.#station.opens(packet, sealing?.handshake)) return;
    const { nonce, backlog, reference, session } = connection;
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
    const sent = connection.sent + 1;
    this.#station.noteEpoch(backlog.node, targetEpoch);
    if (this.#backlogs.get(backlog.node) !== backlog) {
      // What was for it is lost with its earlier life, and nothing is left to be said: the responder is free at once.
      out.send(packet.from, this.#packet.begin(PACKET_DISCONNECT, job).address(responder, sent, 0), seals?.toTarget);
      return;
    }
    if (!backlog.isMute) backlog.attempts = 0;
    backlog.refusals = 0;
    connection.seals = seals;
    connection.seen = seals === undefined ? undefined : new Seen(SEEN_WORDS);
    const seal = seals?.toTarget;
    if (session === undefined) {
      const limit = packet.at(ACCEPT_LIMIT_OFFSET);
      connection.session = new Session(responder, backlog.to, out, counts, limit, connection.sent, seal);
    } else session.accept(responder, seal);
    this.#pump(connection, now);
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
    const connection = this.#connectionOf(packet);
    if (connection === undefined || !this.#isEcho(packet, REFUSE_ECHO_OFFSET, connection.nonce)) return;
    // Half a handshake has a session already, and is none until it is accepted.
    if (connection.session?.isHalf === false) {
      dropped.unasked++;
      return;
    }
    counts.taken++;
    const { backlog } = connection;
    if (reason === REFUSED_NODE || reason === REFUSED_NAME) {
      this.#station.giveUp(backlog.node, reason);
      return;
    }
    // Twice as long each time, and not all at once.
    const asked = Math.min(packet.at(REFUSE_WAIT_OFFSET), CONNECT_TIMEOUT_MAX);
    const wait = Math.min(asked * 2 ** Math.min(backlog.refusals++, 6), CONNECT_TIMEOUT_MAX);
    backlog.attempts = 0;
    backlog.notBefore = now + wait * (0.5 + (random() & 0xffff) / 65536);
    this.#release(connection, now, false);
  }

  /** A session is unknown to its target. */
  #unknown({ session: id, from }: Incoming, now: number): void {
    const connection = this.#find(({ session, backlog }) => session?.knows(id) === true && backlog.to === from);
    if (connection === undefined) {
      this.#station.dropped.unknown++;
      return;
    }
    this.#station.counts.taken++;
    const { backlog } = connection;
    // Once, its node has started anew, or has given the responder to another; more often, it takes its time.
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts > 1) backlog.notBefore = now + backoff(backlog.attempts);
    this.#release(connection, now, false);
  }

  acknowledged(packet: Incoming, now: number): void {
    const connection = this.#connectionOf(packet);
    if (connection === undefined) return;
    const { session, backlog } = connection;
    if (session === undefined) {
      this.#station.dropped.unasked++;
      return;
    }
    if (!this.#station.opens(packet, connection.seals?.toOrigin, connection.seen)) return;
    const words = packet.at(ACKNOWLEDGE_WORDS_OFFSET);
    const there = session.acknowledged(
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
    backlog.attempts = 0;
    backlog.isMute = false;
    for (const one of there) {
      backlog.bytes -= one.contentBytes;
      if (this.#spare.length * this.#station.packetBytes < SPARE_BYTES) this.#spare.push(one);
    }
    this.#pump(connection, now);
  }

  /** What is kept for targets that it has nothing for: words; and packets for the next. */
  get kept(): { orders: number; spare: number } {
    let orders = 0;
    for (const { length } of this.#orders.values()) orders += length;
    return { orders, spare: this.#spare.length };
  }

  /** Contexts that have a session, or ask for one, and nodes for which there is something. */
  get inUse(): { initiators: number; backlogs: number } {
    const initiators = this.#initiators.filter(({ open, closing }) => open !== undefined || closing > 0).length;
    return { initiators, backlogs: this.#backlogs.size };
  }
}
