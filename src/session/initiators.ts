// The origin's side of a node (D1, D5, D7, D10): a few initiator contexts serve as many other nodes as there are, one after
// the other. What waits for them, and whose turn it is, is in backlogs.ts; what is said in a connection, in connection.ts
// and session.ts.
//
// A context connects to the next node before it sends the last packets for this one: connecting takes a round trip, and
// being told that all is there takes another. The session that it leaves sends again what was lost, and what comes for its
// node meanwhile, if that is not beyond its quota; it ends when all is there. Of those a context has CLOSING_MAX, no more.
// 8 contexts and round trips of 20 µs: a node every 2.5 µs, instead of every 5.
import {
  ACCEPT_ECHO_OFFSET,
  ACCEPT_EPOCH_OFFSET,
  REFUSE_ECHO_OFFSET,
  REFUSE_REASON_OFFSET,
  REFUSE_WAIT_OFFSET,
  REFUSED_NAME,
  REFUSED_NODE,
  REFUSED_UNKNOWN,
} from "../../assembly/layout.js";
import { Connection, type Initiator, QUOTA } from "./connection.js";
import type { Incoming } from "./incoming.js";
import { Packet } from "./packet.js";
import type { Session } from "./session.js";
import type { Station } from "./station.js";
import { type Backlog, Backlogs } from "./tx-queues.js";

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
/**
 * Sessions of a context that wait for their last acknowledgments, at the most. The answer to a connect packet comes before
 * the acknowledgment of what was sent behind it: with one of them, the next node would wait for that.
 */
const CLOSING_MAX = 2;

/** Microseconds until the next attempt, after so many of which nothing came. */
function backoff(attempts: number): number {
  return Math.min(CONNECT_TIMEOUT * 2 ** attempts, CONNECT_TIMEOUT_MAX);
}

export class Initiators {
  readonly #station: Station;
  readonly #backlogs: Backlogs;
  readonly #initiators: readonly Initiator[];
  /** Those that there are, by their references. */
  readonly #connections = new Map<number, Connection>();
  readonly #packet: Packet;
  #isServing = false;

  constructor(station: Station) {
    const { initiators = 8 } = station.options;
    this.#station = station;
    this.#backlogs = new Backlogs(station);
    this.#packet = new Packet(station.packetBytes);
    this.#initiators = Array.from({ length: initiators }, () => ({ open: undefined, closing: 0 }));
  }

  /**
   * Sends a segment to an endpoint of a node, in the order of the calls; it is copied.
   * @returns false: too much waits for that node already
   */
  submit(node: number, origin: number, target: number, kind: number, content: Uint8Array): boolean {
    return this.#backlogs.submit(node, origin, target, kind, content);
  }

  // ── Turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Gives free contexts to the nodes that wait, in turn. */
  #serve(now: number): void {
    // By half a handshake a context may be free again as soon as it connects: then the loop goes on with it.
    if (this.#isServing) return;
    this.#isServing = true;
    for (const [place, initiator] of this.#initiators.entries()) {
      while (initiator.open === undefined) {
        const backlog = this.#backlogs.next();
        if (backlog === undefined) break;
        this.#connect(place, initiator, backlog, now);
      }
      if (!this.#backlogs.isAwaited) break;
    }
    this.#isServing = false;
  }

  #connect(place: number, initiator: Initiator, backlog: Backlog, now: number): void {
    const connection = new Connection(this.#station, initiator, backlog, this.#station.nextReference(place));
    initiator.open = connection;
    this.#connections.set(connection.reference, connection);
    this.#ask(connection, now);
    connection.begin();
    this.#pump(connection, now);
  }

  #ask(connection: Connection, now: number): void {
    connection.deadline = now + backoff(connection.backlog.attempts);
    connection.connect(this.#packet);
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
    while (session.room > 0 && session.sent < sessionPackets) {
      const isTurn = connection.quota > 0 || !(isClosing || this.#backlogs.isAwaited);
      const packet = isTurn ? backlog.take() : undefined;
      if (packet === undefined) break;
      connection.quota--;
      session.begin(packet, now, backlog.length === 0 || connection.quota === 0);
    }
    const isThrough = session.underWay === 0;
    const wasIdle = connection.isIdle;
    connection.isIdle = isThrough;
    if (isThrough && (isClosing || backlog.length > 0 || this.#backlogs.isAwaited))
      this.#release(connection, now, true);
    else if (!isThrough) connection.deadline = Number.POSITIVE_INFINITY;
    // Since then, however often somebody looks meanwhile.
    else if (!wasIdle) connection.deadline = now + IDLE_INITIATOR;
  }

  /** Whether another node waits, and all that a connection may still send can be sent now: its context is that one's. */
  #isLast({ initiator, backlog, quota, isClosing }: Connection, session: Session): boolean {
    if (isClosing || !this.#backlogs.isAwaited || initiator.closing === CLOSING_MAX) return false;
    return Math.min(backlog.length, quota, this.#station.sessionPackets - session.sent) <= session.room;
  }

  /** A connection is over; what its node has not said to have goes back to its backlog. */
  #release(connection: Connection, now: number, isOrderly: boolean): void {
    const { session, backlog, initiator } = connection;
    if (isOrderly) session?.disconnect(this.#packet, this.#station.options.job);
    connection.session = undefined;
    this.#connections.delete(connection.reference);
    if (connection.isClosing) initiator.closing--;
    else initiator.open = undefined;
    this.#backlogs.end(backlog, session?.left() ?? []);
    this.#serve(now);
  }

  /** A node is lost, and what is for it. */
  forget(node: number): void {
    const backlog = this.#backlogs.forget(node);
    const connection = backlog && this.#find((one) => one.backlog === backlog);
    if (connection === undefined) return;
    connection.session = undefined; // and what it had under way
    this.#release(connection, this.#station.time.now(), false);
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    this.#backlogs.forgetTarget(target);
  }

  #find(is: (connection: Connection) => boolean): Connection | undefined {
    for (const connection of this.#connections.values()) if (is(connection)) return connection;
    return undefined;
  }

  // ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Does what is due. @returns when something will be, in microseconds */
  advance(now: number): number {
    this.#backlogs.rouse(now);
    this.#serve(now);
    for (const connection of this.#connections.values()) this.#attend(connection, now);
    // Those that may be served already are so as soon as a context is free.
    let next = this.#backlogs.restUntil;
    for (const { deadline, session } of this.#connections.values()) {
      next = Math.min(next, deadline);
      if (session !== undefined) next = Math.min(next, session.deadline, session.lostAt);
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
    if (connection.backlog.length > 0) {
      connection.quota = QUOTA;
      this.#pump(connection, now);
    } else this.#release(connection, now, true);
  }

  /** Nothing came of a connect packet: another one, later, or none. */
  #unanswered(connection: Connection, now: number): void {
    const { backlog } = connection;
    if (this.#isGivenUp(backlog, now)) return;
    if (backlog.attempts >= ATTEMPTS_YIELD && this.#backlogs.isAwaited) {
      backlog.notBefore = now + backoff(backlog.attempts);
      this.#release(connection, now, false);
      return;
    }
    this.#ask(connection, now);
  }

  /** A session's target says nothing. */
  #silent(connection: Connection, session: Session, now: number): void {
    const { backlog } = connection;
    if (this.#isGivenUp(backlog, now)) return;
    const isYielding = backlog.attempts >= ATTEMPTS_YIELD && this.#backlogs.isAwaited;
    if (isYielding) backlog.notBefore = now + backoff(backlog.attempts);
    if (isYielding || (this.#station.options.sealing !== undefined && backlog.attempts >= ATTEMPTS_ANEW)) {
      backlog.isMute = true;
      this.#release(connection, now, true);
    } else session.timedOut(now);
  }

  /** Once more nothing has come back from a node; whether that was once too often. */
  #isGivenUp(backlog: Backlog, now: number): boolean {
    if (backlog.attempts++ === 0) backlog.silentSince = now;
    if (now - backlog.silentSince < SILENCE_MAX) return false;
    this.#station.giveUp(backlog.node, 0);
    return true;
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The connection to which a packet speaks. */
  #connectionOf({ session, from }: Incoming): Connection | undefined {
    const connection = this.#connections.get(session);
    if (connection?.backlog.to === from) return connection;
    this.#station.dropped.unknown++;
    return undefined;
  }

  accepted(packet: Incoming, now: number): void {
    const { options, dropped, counts } = this.#station;
    const connection = this.#connectionOf(packet);
    if (connection === undefined || !this.#station.opens(packet, options.sealing?.handshake)) return;
    if (!connection.isAnswer(packet, ACCEPT_ECHO_OFFSET)) return;
    const { backlog } = connection;
    const epoch = packet.at(ACCEPT_EPOCH_OFFSET);
    if (this.#station.isOver(backlog.node, epoch)) {
      dropped.stale++; // an earlier life of it is still there
      return;
    }
    counts.taken++;
    const session = connection.accept(packet);
    this.#station.noteEpoch(backlog.node, epoch);
    if (!this.#backlogs.has(backlog)) {
      // What was for it is lost with its earlier life, and nothing is left to be said: the responder is free at once.
      session.disconnect(this.#packet, options.job);
      return;
    }
    if (!backlog.isMute) backlog.attempts = 0;
    backlog.refusals = 0;
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
    if (connection?.isAnswer(packet, REFUSE_ECHO_OFFSET) !== true) return;
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
    const { dropped, counts } = this.#station;
    const connection = this.#connectionOf(packet);
    if (connection === undefined) return;
    const { session, backlog } = connection;
    if (session === undefined) {
      dropped.unasked++;
      return;
    }
    if (!connection.opens(packet)) return;
    const there = connection.acknowledged(session, packet, now);
    if (there === false) {
      dropped.untrue++;
      return;
    }
    counts.taken++;
    backlog.attempts = 0;
    backlog.isMute = false;
    this.#backlogs.there(backlog, there);
    this.#pump(connection, now);
  }

  // ── For tests ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** What is kept for targets that it has nothing for: words; and packets for the next. */
  get kept(): { orders: number; spare: number } {
    return this.#backlogs.kept;
  }

  /** Contexts that have a session, or ask for one, and nodes for which there is something. */
  get inUse(): { initiators: number; backlogs: number } {
    const initiators = this.#initiators.filter(({ open, closing }) => open !== undefined || closing > 0).length;
    return { initiators, backlogs: this.#backlogs.count };
  }
}
