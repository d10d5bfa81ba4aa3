// The origin's side of a node (D1, D5, D7, D10): a few initiator contexts serve any number of target nodes, one after the
// other. tx-queues.ts decides which node has its turn; connection.ts and session.ts handle the packets of one connection.
//
// A context connects to the next node before it sends the last packets to this one. Connecting takes a round trip, and the
// last acknowledgment takes another. The session that it leaves repairs its losses, sends what is submitted for its node
// meanwhile, within its quota, and ends once all is acknowledged. A context leaves at most CLOSING_MAX such sessions. With 8
// contexts and round trips of 20 µs, the node thus serves a target every 2.5 µs, instead of every 5 µs.
import * as L from "../../assembly/layout.js";
import { type Initiator, NodeConnection, QUOTA } from "./connection.js";
import type { NodeState } from "./node-state.js";
import type { Session } from "./session.js";
import { type SessionsOptions, SILENCE_DEFAULT } from "./sessions-options.js";
import type { TxQueue, TxQueues } from "./tx-queues.js";
import { Packet } from "./wire/packet.js";
import type { ReceivedPacket } from "./wire/received-packet.js";

/** Microseconds until an unanswered connect packet is sent again. The interval doubles each time, up to the maximum. */
const CONNECT_TIMEOUT = 20_000;
const CONNECT_TIMEOUT_MAX = 1_000_000;
/** Unanswered attempts in a row after which a silent node yields to the nodes that wait. */
const ATTEMPTS_YIELD = 2;
/**
 * With a key, a target that does not know a session cannot prove that, so it does not say so. After this many unanswered
 * attempts the origin opens another session; or after this part of the silence, if probes take so long: a node that has given
 * this one up answers nothing but a connect packet, and this one would take it for silent.
 */
const ATTEMPTS_RECONNECT = 4;
const RECONNECT_PART = 1 / 4;
/** Microseconds that an accepted connection may wait for a context. Later, its target may have another use for the responder. */
const ACCEPTED_MAX = 2_500_000;
/** Microseconds for which an idle session stays open. */
const IDLE_INITIATOR = 50_000;
/**
 * The most sessions of a context that wait for their last acknowledgments. One would not do: the answer to a connect packet
 * comes before the acknowledgment of the data that was sent after it. The next node would wait for that acknowledgment.
 */
const CLOSING_MAX = 2;

/** Microseconds until the next attempt, after a number of unanswered ones. */
function backoff(attempts: number): number {
  return Math.min(CONNECT_TIMEOUT * 2 ** attempts, CONNECT_TIMEOUT_MAX);
}

export class Initiators {
  readonly #state: NodeState;
  readonly #queues: TxQueues;
  readonly #initiators: readonly Initiator[];
  readonly #silence: number;
  readonly #onUnanswered: SessionsOptions["onUnanswered"];
  readonly #accompany: (node: number, now: number) => void;
  /** All connections that a context serves or has left, by their references. */
  readonly #connections = new Map<number, NodeConnection>();
  /** Those that have yielded before they were accepted: an answer may still come. */
  readonly #yielded = new Map<number, NodeConnection>();
  /** A buffer for packets without data. */
  readonly #packet: Packet;
  #isServing = false;

  /** @param accompany is called just before data goes to a node: what it holds goes in the same datagram */
  constructor(
    state: NodeState,
    queues: TxQueues,
    options: Pick<SessionsOptions, "initiators" | "silence" | "onUnanswered">,
    accompany: (node: number, now: number) => void,
  ) {
    const { initiators = 8, silence = SILENCE_DEFAULT, onUnanswered } = options;
    this.#onUnanswered = onUnanswered;
    this.#accompany = accompany;
    this.#state = state;
    this.#silence = silence;
    this.#queues = queues;
    this.#packet = new Packet(state.packetBytes);
    state.routes.onMove = (node) => this.#moved(node);
    this.#initiators = Array.from({ length: initiators }, () => ({ open: undefined, closing: 0 }));
  }

  /** Sends now what was submitted for a node, as far as its session may. */
  pump(node: number, now: number): void {
    const connection = this.#find(({ queue }) => queue.node === node);
    if (connection?.session !== undefined && this.#state.out.hasRoom) this.#pump(connection, now);
  }

  // ── Turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Connects free contexts to the nodes that wait, in round-robin order. */
  #serve(now: number): void {
    // With 0-RTT, #connect() may free the context at once and call this again. The outer loop then continues with it.
    if (this.#isServing) return;
    this.#isServing = true;
    for (const [index, initiator] of this.#initiators.entries()) {
      while (initiator.open === undefined) {
        const queue = this.#queues.next();
        if (queue === undefined) break;
        this.#connect(index, initiator, queue, now);
      }
      if (!this.#queues.hasReady) break;
    }
    this.#isServing = false;
  }

  #connect(index: number, initiator: Initiator, queue: TxQueue, now: number): void {
    let connection = this.#takeYielded(queue);
    if (connection === undefined || now - connection.acceptedAt > ACCEPTED_MAX)
      connection = new NodeConnection(this.#state, queue, this.#state.nextReference(index), now);
    connection.initiator = initiator;
    initiator.open = connection;
    this.#connections.set(connection.reference, connection);
    // An answer may have come after it had yielded.
    if (connection.session === undefined) {
      this.#sendConnect(connection, now);
      connection.begin();
    }
    this.#pump(connection, now);
  }

  #sendConnect(connection: NodeConnection, now: number): void {
    connection.deadline = now + backoff(connection.queue.attempts);
    connection.connect(this.#packet);
  }

  /** Sends what a connection may send, and ends it if it has nothing left to do. */
  #pump(connection: NodeConnection, now: number): void {
    const { session, queue, initiator } = connection;
    const { sessionPackets, out } = this.#state;
    if (session === undefined || queue.yielded === connection.reference) return;
    if (session.sent >= 2 * sessionPackets) {
      this.#release(connection, now, true);
      return;
    }
    session.retransmit(now);
    if (this.#isLastOfTurn(connection, session)) {
      // The connect packet to the next node goes first: it is short, and its answer takes a round trip.
      connection.isClosing = true;
      initiator.closing++;
      initiator.open = undefined;
      this.#serve(now);
    }
    const { isClosing } = connection;
    while (session.allowance > 0 && session.sent < sessionPackets) {
      const maySend = connection.quota > 0 || !(isClosing || this.#queues.hasReady);
      const packet = maySend ? queue.take() : undefined;
      if (packet === undefined) break;
      connection.quota--;
      this.#accompany(queue.node, now);
      session.begin(packet, now, queue.length === 0 || connection.quota === 0);
    }
    // Without room it goes on in resume().
    if (!out.hasRoom) return;
    const isIdle = session.inFlight === 0;
    const wasIdle = connection.isIdle;
    connection.isIdle = isIdle;
    if (isIdle && (isClosing || queue.length > 0 || this.#queues.hasReady)) this.#release(connection, now, true);
    else if (!isIdle) connection.deadline = Number.POSITIVE_INFINITY;
    // The idle time counts from the first call that finds the connection idle.
    else if (!wasIdle) connection.deadline = now + IDLE_INITIATOR;
  }

  /** Whether another node waits, and the connection can send the rest of its turn now: its context may move on. */
  #isLastOfTurn({ initiator, queue, quota, isClosing }: NodeConnection, session: Session): boolean {
    if (isClosing || !this.#queues.hasReady || initiator.closing === CLOSING_MAX) return false;
    return Math.min(queue.length, quota, this.#state.sessionPackets - session.sent) <= session.allowance;
  }

  /** Ends a connection. Its unacknowledged packets go back to the queue. @param isOrderly whether the target is told */
  #release(connection: NodeConnection, now: number, isOrderly: boolean): void {
    const { session, queue, initiator } = connection;
    if (isOrderly) session?.disconnect(this.#packet, this.#state.job);
    connection.session = undefined;
    this.#connections.delete(connection.reference);
    if (connection.isClosing) initiator.closing--;
    else initiator.open = undefined;
    this.#queues.release(queue, session?.unacknowledged() ?? []);
    this.#serve(now);
  }

  /**
   * Another node has the context of a connection that is not accepted. It keeps its nonce, so that an answer to any of its
   * connect packets counts: where a round trip takes longer than its turns, none would come in time. With 0-RTT, its data has
   * gone: the next connection needs another nonce.
   */
  #yield(connection: NodeConnection, now: number): void {
    const { queue, reference, session } = connection;
    if (session === undefined) {
      queue.yielded = reference;
      this.#yielded.set(reference, connection);
    }
    this.#release(connection, now, false);
  }

  /** @returns the connection of a queue that has yielded */
  #takeYielded(queue: TxQueue): NodeConnection | undefined {
    const connection = this.#yielded.get(queue.yielded);
    this.#yielded.delete(queue.yielded);
    queue.yielded = 0;
    return connection;
  }

  /**
   * Drops everything that is queued or in flight for a node, which is lost, or waits for nothing any more.
   * @param isOrderly whether the node learns that the session has ended
   */
  forget(node: number, isOrderly: boolean): void {
    const queue = this.#queues.drop(node);
    if (queue === undefined) return;
    this.#takeYielded(queue);
    const connection = this.#find((one) => one.queue === queue);
    if (connection === undefined) return;
    if (isOrderly) connection.session?.disconnect(this.#packet, this.#state.job);
    connection.session = undefined; // drops the packets in flight
    this.#release(connection, this.#state.time.now(), false);
  }

  /** Ends the sessions in which nothing is in flight, and for which nothing is queued. */
  endIdle(): void {
    const now = this.#state.time.now();
    for (const connection of [...this.#connections.values()]) {
      if (connection.session?.inFlight === 0 && connection.queue.length === 0) this.#release(connection, now, true);
    }
  }

  /** Nodes that have not acknowledged everything that was sent to them. */
  get unacknowledged(): Set<number> {
    const nodes = new Set(this.#queues.waiting);
    for (const { queue, session } of this.#connections.values()) {
      if (session !== undefined && session.inFlight > 0) nodes.add(queue.node);
    }
    return nodes;
  }

  #find(matches: (connection: NodeConnection) => boolean): NodeConnection | undefined {
    for (const connection of this.#connections.values()) if (matches(connection)) return connection;
    return undefined;
  }

  // ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Does everything that is due. @returns the next deadline, in microseconds */
  advance(now: number): number {
    // Targets have no chance to answer what cannot be sent.
    if (!this.#state.out.hasRoom) return Number.POSITIVE_INFINITY;
    this.#queues.endBackoffs(now);
    this.#serve(now);
    for (const connection of this.#connections.values()) this.#checkDeadlines(connection, now);
    // Queues that are ready need no deadline: they wait for a free context.
    let next = this.#queues.backoffUntil;
    for (const { deadline, session } of this.#connections.values()) {
      next = Math.min(next, deadline);
      if (session !== undefined) next = Math.min(next, session.deadline, session.lossTime);
    }
    return next;
  }

  /**
   * The link has room again: each connection sends in its turn, as far as the room goes. Those that have sent are the last
   * the next time.
   */
  resume(now: number): void {
    for (const connection of [...this.#connections.values()]) {
      if (!this.#state.out.hasRoom) return;
      const { reference, session } = connection;
      // An earlier connection's turn may have ended this one.
      if (!this.#connections.delete(reference)) continue;
      this.#connections.set(reference, connection);
      session?.postpone(now);
      if (session === undefined && connection.deadline <= now)
        connection.deadline = now + backoff(connection.queue.attempts);
      this.#pump(connection, now);
    }
  }

  #checkDeadlines(connection: NodeConnection, now: number): void {
    const { session } = connection;
    if (session !== undefined && session.deadline <= now) this.#onProbeTimeout(connection, session, now);
    else if (connection.deadline > now) this.#pump(connection, now);
    else if (session !== undefined && session.inFlight === 0) this.#onIdleTimeout(connection, now);
    else this.#onConnectTimeout(connection, now);
  }

  #onIdleTimeout(connection: NodeConnection, now: number): void {
    if (connection.queue.length > 0) {
      connection.quota = QUOTA;
      this.#pump(connection, now);
    } else this.#release(connection, now, true);
  }

  /** A connect packet was not answered: it is sent again, now or after a backoff, or the node is given up. */
  #onConnectTimeout(connection: NodeConnection, now: number): void {
    const { queue } = connection;
    if (this.#noteAttempt(queue, now)) return;
    if (queue.attempts >= ATTEMPTS_YIELD && this.#queues.hasReady) {
      queue.notBefore = now + backoff(queue.attempts);
      this.#yield(connection, now);
      return;
    }
    this.#sendConnect(connection, now);
  }

  /** The target of a session does not acknowledge: it is probed, or the session ends, or the node is given up. */
  #onProbeTimeout(connection: NodeConnection, session: Session, now: number): void {
    const { queue } = connection;
    if (this.#noteAttempt(queue, now)) return;
    const isLate = now - queue.firstAttempt >= session.roundTrip;
    const yields = queue.attempts >= ATTEMPTS_YIELD && isLate && this.#queues.hasReady;
    if (yields) queue.notBefore = now + backoff(queue.attempts);
    if (yields || (this.#state.keySchedule !== undefined && this.#isOverdue(queue, now))) {
      queue.isUnresponsive = true;
      this.#release(connection, now, true);
    } else session.onProbeTimeout(now);
  }

  /** Whether the probes of a session have been in vain for long: its target may not know it. */
  #isOverdue({ attempts, firstAttempt }: TxQueue, now: number): boolean {
    return attempts >= ATTEMPTS_RECONNECT || (attempts > 1 && now - firstAttempt >= RECONNECT_PART * this.#silence);
  }

  /** Counts an unanswered attempt. @returns whether the node was given up for it */
  #noteAttempt(queue: TxQueue, now: number): boolean {
    if (queue.attempts++ === 0) queue.firstAttempt = now;
    if (now - queue.firstAttempt < this.#silence) {
      if (queue.attempts > 1) this.#state.routes.doubt(queue.node);
      this.#onUnanswered?.(queue.node, queue.attempts);
      return false;
    }
    this.#state.incarnations.giveUp(queue.node, 0);
    return true;
  }

  /** A node has come, or has another address: sends now what would be repeated later. */
  #moved(node: number): void {
    const now = this.#state.time.now();
    this.#queues.hasten(node);
    for (const connection of this.#connections.values()) {
      const { queue, session } = connection;
      if (queue.node !== node) continue;
      if (session === undefined) connection.deadline = now;
      else session.hasten(now);
    }
  }

  // ── Received packets ──────────────────────────────────────────────────────────────────────────────────────────

  /** The connection that a packet belongs to. */
  #connectionOf({ session, from }: ReceivedPacket): NodeConnection | undefined {
    const connection = this.#connections.get(session) ?? this.#yielded.get(session);
    if (connection !== undefined && this.#state.routes.allows(connection.queue.node, from)) return connection;
    this.#state.dropped.unknownSession++;
    return undefined;
  }

  accepted(packet: ReceivedPacket, now: number): void {
    const { job, keySchedule, incarnations, routes, dropped, counts } = this.#state;
    const connection = this.#connectionOf(packet);
    if (connection === undefined || !this.#state.unseal(packet, keySchedule?.handshake)) return;
    if (!connection.isAnswer(packet, L.ACCEPT_ECHO_OFFSET)) return;
    const { queue } = connection;
    const epoch = packet.at(L.ACCEPT_EPOCH_OFFSET);
    if (incarnations.isStale(queue.node, epoch)) {
      dropped.stale++;
      return;
    }
    const nonce = packet.fourAt(L.ACCEPT_NONCE_OFFSET);
    if (!routes.admits(queue.node, epoch, nonce)) {
      dropped.wrongAddress++;
      return;
    }
    counts.taken++;
    const session = connection.accept(packet, nonce, now);
    incarnations.note(queue.node, epoch);
    routes.note(queue.node, packet.from);
    if (!this.#queues.has(queue)) {
      // The node has restarted, and its queue was dropped. The new session has nothing to send: it frees the responder at
      // once.
      session.disconnect(this.#packet, job);
      return;
    }
    if (!queue.isUnresponsive) queue.attempts = 0;
    queue.refusals = 0;
    if (queue.yielded === connection.reference) {
      this.#queues.prefer(queue);
      this.#serve(now);
    } else this.#pump(connection, now);
  }

  refused(packet: ReceivedPacket, now: number): void {
    const { keySchedule, random, dropped, counts } = this.#state;
    if (!this.#state.unseal(packet, keySchedule?.handshake)) return;
    const reason = packet.at(L.REFUSE_REASON_OFFSET);
    if (reason === L.REFUSED_UNKNOWN) {
      // With a key, no target sends this refusal.
      if (keySchedule === undefined) this.#onUnknownSession(packet, now);
      else dropped.protocolViolation++;
      return;
    }
    const connection = this.#connectionOf(packet);
    if (connection === undefined) return;
    const { queue } = connection;
    // A third node refuses a copy of the connect packet, too.
    if (packet.from !== queue.to) {
      dropped.wrongAddress++;
      return;
    }
    if (!connection.isAnswer(packet, L.REFUSE_ECHO_OFFSET)) return;
    counts.taken++;
    if (reason === L.REFUSED_NODE || reason === L.REFUSED_NAME) {
      this.#state.incarnations.giveUp(queue.node, reason);
      return;
    }
    // Others of its connect packets may still find a responder.
    if (!connection.refuse() && connection.session === undefined) {
      queue.firstAttempt = now;
      return;
    }
    queue.attempts = 0;
    if (queue.yielded === connection.reference) {
      this.#takeYielded(queue);
      return;
    }
    // The wait doubles with each refusal, and is randomized so that refused nodes do not return all at once.
    const asked = Math.min(packet.at(L.REFUSE_WAIT_OFFSET), CONNECT_TIMEOUT_MAX);
    const wait = Math.min(asked * 2 ** Math.min(queue.refusals++, 6), CONNECT_TIMEOUT_MAX);
    queue.notBefore = now + wait * (0.5 + (random() & 0xffff) / 65536);
    this.#release(connection, now, false);
  }

  /** The target does not know a session. */
  #onUnknownSession({ session: id, from }: ReceivedPacket, now: number): void {
    const connection = this.#find(({ session, queue }) => session?.hasId(id) === true && queue.to === from);
    if (connection === undefined) {
      this.#state.dropped.unknownSession++;
      return;
    }
    this.#state.counts.taken++;
    const { queue } = connection;
    // The first time, the target has probably restarted or reused the responder: reconnect at once. Later, back off.
    if (this.#noteAttempt(queue, now)) return;
    if (queue.attempts > 1) queue.notBefore = now + backoff(queue.attempts);
    this.#release(connection, now, false);
  }

  acknowledged(packet: ReceivedPacket, now: number): void {
    const { dropped, counts } = this.#state;
    const connection = this.#connectionOf(packet);
    if (connection === undefined) return;
    const { session, queue } = connection;
    if (session === undefined) {
      dropped.unsolicited++;
      return;
    }
    if (!connection.unseal(packet)) return;
    const packets = connection.acknowledged(session, packet, now);
    if (packets === false) {
      dropped.protocolViolation++;
      return;
    }
    counts.taken++;
    queue.attempts = 0;
    queue.isUnresponsive = false;
    this.#queues.acknowledged(queue, packets);
    this.#pump(connection, now);
  }

  // ── For tests ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sizes of what is kept for idle targets: words of order numbers, and packets for reuse. */
  get kept(): { orders: number; spare: number } {
    return this.#queues.kept;
  }

  /** Contexts that have a connection, and nodes that have a transmit queue. */
  get inUse(): { initiators: number; txQueues: number } {
    const initiators = this.#initiators.filter(({ open, closing }) => open !== undefined || closing > 0).length;
    return { initiators, txQueues: this.#queues.count };
  }
}
