// The origin's side of a node (D1, D5, D7, D10): a few initiator contexts serve as many other nodes as there are, one after
// the other. What waits for them, and whose turn it is, is in tx-queues.ts; what is said in a connection, in connection.ts
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
import type { NodeState } from "./node-state.js";
import { Packet } from "./packet.js";
import type { ReceivedPacket } from "./received-packet.js";
import type { Session } from "./session.js";
import { type TxQueue, TxQueues } from "./tx-queues.js";

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
  readonly #state: NodeState;
  readonly #queues: TxQueues;
  readonly #initiators: readonly Initiator[];
  /** Those that there are, by their references. */
  readonly #connections = new Map<number, Connection>();
  readonly #packet: Packet;
  #isServing = false;

  constructor(state: NodeState) {
    const { initiators = 8 } = state.options;
    this.#state = state;
    this.#queues = new TxQueues(state);
    this.#packet = new Packet(state.packetBytes);
    this.#initiators = Array.from({ length: initiators }, () => ({ open: undefined, closing: 0 }));
  }

  /**
   * Sends a segment to an endpoint of a node, in the order of the calls; it is copied.
   * @returns false: too much waits for that node already
   */
  submit(node: number, origin: number, target: number, kind: number, content: Uint8Array): boolean {
    return this.#queues.submit(node, origin, target, kind, content);
  }

  // ── Turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Gives free contexts to the nodes that wait, in turn. */
  #serve(now: number): void {
    // By half a handshake a context may be free again as soon as it connects: then the loop goes on with it.
    if (this.#isServing) return;
    this.#isServing = true;
    for (const [index, initiator] of this.#initiators.entries()) {
      while (initiator.open === undefined) {
        const queue = this.#queues.next();
        if (queue === undefined) break;
        this.#connect(index, initiator, queue, now);
      }
      if (!this.#queues.isAwaited) break;
    }
    this.#isServing = false;
  }

  #connect(index: number, initiator: Initiator, queue: TxQueue, now: number): void {
    const connection = new Connection(this.#state, initiator, queue, this.#state.nextReference(index));
    initiator.open = connection;
    this.#connections.set(connection.reference, connection);
    this.#ask(connection, now);
    connection.begin();
    this.#pump(connection, now);
  }

  #ask(connection: Connection, now: number): void {
    connection.deadline = now + backoff(connection.queue.attempts);
    connection.connect(this.#packet);
  }

  /** Sends what may be sent. */
  #pump(connection: Connection, now: number): void {
    const { session, queue, initiator } = connection;
    if (session === undefined) return;
    const { sessionPackets } = this.#state;
    if (session.sent >= 2 * sessionPackets) {
      this.#release(connection, now, true);
      return;
    }
    session.retransmit(now);
    if (this.#isLast(connection, session)) {
      // The next connect packet goes before these: it is short, and its answer takes a round trip.
      connection.isClosing = true;
      initiator.closing++;
      initiator.open = undefined;
      this.#serve(now);
    }
    const { isClosing } = connection;
    while (session.room > 0 && session.sent < sessionPackets) {
      const isTurn = connection.quota > 0 || !(isClosing || this.#queues.isAwaited);
      const packet = isTurn ? queue.take() : undefined;
      if (packet === undefined) break;
      connection.quota--;
      session.begin(packet, now, queue.length === 0 || connection.quota === 0);
    }
    const isThrough = session.inFlight === 0;
    const wasIdle = connection.isIdle;
    connection.isIdle = isThrough;
    if (isThrough && (isClosing || queue.length > 0 || this.#queues.isAwaited)) this.#release(connection, now, true);
    else if (!isThrough) connection.deadline = Number.POSITIVE_INFINITY;
    // Since then, however often somebody looks meanwhile.
    else if (!wasIdle) connection.deadline = now + IDLE_INITIATOR;
  }

  /** Whether another node waits, and all that a connection may still send can be sent now: its context is that one's. */
  #isLast({ initiator, queue, quota, isClosing }: Connection, session: Session): boolean {
    if (isClosing || !this.#queues.isAwaited || initiator.closing === CLOSING_MAX) return false;
    return Math.min(queue.length, quota, this.#state.sessionPackets - session.sent) <= session.room;
  }

  /** A connection is over; what its node has not said to have goes back to its queue. */
  #release(connection: Connection, now: number, isOrderly: boolean): void {
    const { session, queue, initiator } = connection;
    if (isOrderly) session?.disconnect(this.#packet, this.#state.options.job);
    connection.session = undefined;
    this.#connections.delete(connection.reference);
    if (connection.isClosing) initiator.closing--;
    else initiator.open = undefined;
    this.#queues.end(queue, session?.left() ?? []);
    this.#serve(now);
  }

  /** A node is lost, and what is for it. */
  forget(node: number): void {
    const queue = this.#queues.forget(node);
    const connection = queue && this.#find((one) => one.queue === queue);
    if (connection === undefined) return;
    connection.session = undefined; // and what it had under way
    this.#release(connection, this.#state.time.now(), false);
  }

  /** Streams to an endpoint begin anew: its node was started anew. */
  forgetTarget(target: number): void {
    this.#queues.forgetTarget(target);
  }

  #find(is: (connection: Connection) => boolean): Connection | undefined {
    for (const connection of this.#connections.values()) if (is(connection)) return connection;
    return undefined;
  }

  // ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Does what is due. @returns when something will be, in microseconds */
  advance(now: number): number {
    this.#queues.rouse(now);
    this.#serve(now);
    for (const connection of this.#connections.values()) this.#attend(connection, now);
    // Those that may be served already are so as soon as a context is free.
    let next = this.#queues.restUntil;
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
    else if (session !== undefined && session.inFlight === 0) this.#idle(connection, now);
    else this.#unanswered(connection, now);
  }

  #idle(connection: Connection, now: number): void {
    if (connection.queue.length > 0) {
      connection.quota = QUOTA;
      this.#pump(connection, now);
    } else this.#release(connection, now, true);
  }

  /** Nothing came of a connect packet: another one, later, or none. */
  #unanswered(connection: Connection, now: number): void {
    const { queue } = connection;
    if (this.#isGivenUp(queue, now)) return;
    if (queue.attempts >= ATTEMPTS_YIELD && this.#queues.isAwaited) {
      queue.notBefore = now + backoff(queue.attempts);
      this.#release(connection, now, false);
      return;
    }
    this.#ask(connection, now);
  }

  /** A session's target says nothing. */
  #silent(connection: Connection, session: Session, now: number): void {
    const { queue } = connection;
    if (this.#isGivenUp(queue, now)) return;
    const isYielding = queue.attempts >= ATTEMPTS_YIELD && this.#queues.isAwaited;
    if (isYielding) queue.notBefore = now + backoff(queue.attempts);
    if (isYielding || (this.#state.options.keySchedule !== undefined && queue.attempts >= ATTEMPTS_ANEW)) {
      queue.isMute = true;
      this.#release(connection, now, true);
    } else session.onProbeTimeout(now);
  }

  /** Once more nothing has come back from a node; whether that was once too often. */
  #isGivenUp(queue: TxQueue, now: number): boolean {
    if (queue.attempts++ === 0) queue.silentSince = now;
    if (now - queue.silentSince < SILENCE_MAX) return false;
    this.#state.giveUp(queue.node, 0);
    return true;
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The connection to which a packet speaks. */
  #connectionOf({ session, from }: ReceivedPacket): Connection | undefined {
    const connection = this.#connections.get(session);
    if (connection?.queue.to === from) return connection;
    this.#state.dropped.unknown++;
    return undefined;
  }

  accepted(packet: ReceivedPacket, now: number): void {
    const { options, dropped, counts } = this.#state;
    const connection = this.#connectionOf(packet);
    if (connection === undefined || !this.#state.unseal(packet, options.keySchedule?.handshake)) return;
    if (!connection.isAnswer(packet, ACCEPT_ECHO_OFFSET)) return;
    const { queue } = connection;
    const epoch = packet.at(ACCEPT_EPOCH_OFFSET);
    if (this.#state.isOver(queue.node, epoch)) {
      dropped.stale++; // an earlier life of it is still there
      return;
    }
    counts.taken++;
    const session = connection.accept(packet);
    this.#state.noteEpoch(queue.node, epoch);
    if (!this.#queues.has(queue)) {
      // What was for it is lost with its earlier life, and nothing is left to be said: the responder is free at once.
      session.disconnect(this.#packet, options.job);
      return;
    }
    if (!queue.isMute) queue.attempts = 0;
    queue.refusals = 0;
    this.#pump(connection, now);
  }

  refused(packet: ReceivedPacket, now: number): void {
    const { keySchedule, random } = this.#state.options;
    const { dropped, counts } = this.#state;
    if (!this.#state.unseal(packet, keySchedule?.handshake)) return;
    const reason = packet.at(REFUSE_REASON_OFFSET);
    if (reason === REFUSED_UNKNOWN) {
      if (keySchedule === undefined) this.#unknown(packet, now);
      else dropped.untrue++; // nobody says so
      return;
    }
    const connection = this.#connectionOf(packet);
    if (connection?.isAnswer(packet, REFUSE_ECHO_OFFSET) !== true) return;
    counts.taken++;
    const { queue } = connection;
    if (reason === REFUSED_NODE || reason === REFUSED_NAME) {
      this.#state.giveUp(queue.node, reason);
      return;
    }
    // Twice as long each time, and not all at once.
    const asked = Math.min(packet.at(REFUSE_WAIT_OFFSET), CONNECT_TIMEOUT_MAX);
    const wait = Math.min(asked * 2 ** Math.min(queue.refusals++, 6), CONNECT_TIMEOUT_MAX);
    queue.attempts = 0;
    queue.notBefore = now + wait * (0.5 + (random() & 0xffff) / 65536);
    this.#release(connection, now, false);
  }

  /** A session is unknown to its target. */
  #unknown({ session: id, from }: ReceivedPacket, now: number): void {
    const connection = this.#find(({ session, queue }) => session?.knows(id) === true && queue.to === from);
    if (connection === undefined) {
      this.#state.dropped.unknown++;
      return;
    }
    this.#state.counts.taken++;
    const { queue } = connection;
    // Once, its node has started anew, or has given the responder to another; more often, it takes its time.
    if (this.#isGivenUp(queue, now)) return;
    if (queue.attempts > 1) queue.notBefore = now + backoff(queue.attempts);
    this.#release(connection, now, false);
  }

  acknowledged(packet: ReceivedPacket, now: number): void {
    const { dropped, counts } = this.#state;
    const connection = this.#connectionOf(packet);
    if (connection === undefined) return;
    const { session, queue } = connection;
    if (session === undefined) {
      dropped.unasked++;
      return;
    }
    if (!connection.unseal(packet)) return;
    const there = connection.acknowledged(session, packet, now);
    if (there === false) {
      dropped.untrue++;
      return;
    }
    counts.taken++;
    queue.attempts = 0;
    queue.isMute = false;
    this.#queues.there(queue, there);
    this.#pump(connection, now);
  }

  // ── For tests ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** What is kept for targets that it has nothing for: words; and packets for the next. */
  get kept(): { orders: number; spare: number } {
    return this.#queues.kept;
  }

  /** Contexts that have a session, or ask for one, and nodes for which there is something. */
  get inUse(): { initiators: number; txQueues: number } {
    const initiators = this.#initiators.filter(({ open, closing }) => open !== undefined || closing > 0).length;
    return { initiators, txQueues: this.#queues.count };
  }
}
