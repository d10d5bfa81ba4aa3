// The target's side of a node (D3, D7): a pool of responders receives packets and passes their segments to the streams.
import * as L from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import type { NodeState } from "./node-state.js";
import { Responder, SESSION_WINDOW, type SessionParameters } from "./responder.js";
import type { SessionsOptions } from "./sessions-options.js";
import { NO_ROOM, type Streams, segmentBytes } from "./streams.js";
import { Packet } from "./wire/packet.js";
import type { ReceivedPacket } from "./wire/received-packet.js";
import { ReplayWindow } from "./wire/replay-window.js";

/** Microseconds of silence after which another connection may take a responder. */
const IDLE_RESPONDER = 5_000_000;
/**
 * The same for a responder that has received only connect packets. Its origin repeats those each second until it is answered, so
 * that a round trip may take longer. But it has to prove itself in time, since without a key it may not exist.
 */
const IDLE_UNPROVEN = 2_500_000;
const UNPROVEN_MAX = 10_000_000;
/**
 * Responders that one node may hold without having proven itself. It has one session at a time; the packets of its next one may come
 * before the last ones of this one.
 */
const UNPROVEN_COUNT_MAX = 2;
/** Words of a node's replay window of connect packets: it covers the latest 96 serial numbers. */
const CONNECT_WINDOW_WORDS = 4;
/** Microseconds that a node without a free responder asks initiators to wait. */
const BUSY_WAIT = 2000;

type ResponderOptions = Pick<SessionsOptions, "responders" | "memory" | "nodes" | "nodeOf" | "soon">;

export class Responders {
  readonly #state: NodeState;
  readonly #options: ResponderOptions;
  readonly #streams: Streams;
  readonly #responders: (Responder | undefined)[];
  /** A buffer for outgoing packets. */
  readonly #packet: Packet;
  /** Those whose acknowledgments were due while the link had no room. */
  readonly #waiting = new Set<Responder>();
  /** Those that acknowledge at the end of a batch of received packets. */
  readonly #prompt: Responder[] = [];
  /** Whether the end of the batch is awaited. */
  #isSoon = false;
  /** With a key: the serial numbers of connect packets that have come, of the latest incarnation of each node. */
  readonly #connects = new Map<number, { readonly epoch: number; readonly serials: ReplayWindow }>();

  constructor(state: NodeState, streams: Streams, options: ResponderOptions) {
    const { responders = 64 } = options;
    this.#state = state;
    this.#options = options;
    this.#streams = streams;
    this.#packet = new Packet(state.packetBytes);
    this.#responders = Array.from({ length: responders }, () => undefined);
  }

  /** Sends the acknowledgments that are due. @returns when the next one is due, in microseconds */
  advance(now: number): number {
    if (!this.#state.out.hasRoom) return Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const responder of this.#responders) {
      if (responder === undefined) continue;
      if (responder.due <= now) this.#acknowledge(responder, now);
      next = Math.min(next, responder.due);
    }
    return next;
  }

  /** The link has room again: sends the acknowledgments that were due. */
  resume(now: number): void {
    for (const responder of this.#waiting) {
      if (!this.#state.out.hasRoom) return;
      this.#waiting.delete(responder);
      if (this.#isOpen(responder)) this.#acknowledge(responder, now);
    }
  }

  connect(packet: ReceivedPacket, now: number): void {
    const { nodes } = this.#options;
    const { node, job, isFaithful, keySchedule, incarnations, routes, dropped, counts } = this.#state;
    if (!this.#state.unseal(packet, keySchedule?.handshake)) return;
    const { from } = packet;
    const initiator = packet.at(L.CONNECT_INITIATOR_OFFSET);
    const other = packet.at(L.CONNECT_NODE_OFFSET);
    const epoch = packet.at(L.CONNECT_EPOCH_OFFSET);
    const connectNonce = packet.fourAt(L.CONNECT_NONCE_OFFSET);
    if (packet.at(L.CONNECT_TARGET_OFFSET) !== node) {
      dropped.foreign++;
      this.#refuse(from, initiator, L.REFUSED_NODE, 0, connectNonce);
      return;
    }
    if (other >= nodes) {
      dropped.foreign++;
      return;
    }
    // Two nodes with one number would share streams. One of them is refused, which does not affect the other's streams.
    const isStale = this.#isStale(other, epoch);
    if (isStale || !routes.admits(other, epoch, connectNonce, from)) {
      if (isStale) dropped.stale++;
      else dropped.wrongAddress++;
      this.#refuse(from, initiator, L.REFUSED_NAME, 0, connectNonce);
      return;
    }
    const serial = packet.at(L.CONNECT_SERIAL_OFFSET);
    if (keySchedule !== undefined && !this.#isNewConnect(other, epoch, serial)) {
      dropped.replayed++;
      return;
    }
    const own = incarnations.epochFor(other);
    let responder = this.#responders.find(
      (one) =>
        this.#isFrom(one, from) &&
        one.parameters.initiator === initiator &&
        one.parameters.connectNonce.every((word, i) => word === connectNonce[i]),
    );
    if (responder === undefined) {
      const index = this.#freeResponder(other, epoch, serial, now);
      if (index === -1) {
        counts.refused++;
        this.#refuse(from, initiator, L.REFUSED_BUSY, BUSY_WAIT, connectNonce);
        return;
      }
      // On a link that is not faithful, the address may be forged, and acknowledgments would go to a victim.
      const isZeroRtt =
        isFaithful &&
        packet.at(L.CONNECT_OPTIONS_OFFSET) === L.CONNECT_HALF &&
        packet.at(L.CONNECT_KNOWN_OFFSET) === own;
      const stated = { from, initiator, node: other, epoch, serial, connectNonce };
      responder = this.#makeResponder(this.#state.nextReference(index), stated, own, isZeroRtt, now);
      this.#responders[index] = responder;
    }
    counts.taken++;
    const { id, parameters } = responder;
    if (!responder.isProven && now - responder.begin < UNPROVEN_MAX) responder.lastReceived = now;
    const answer = this.#packet.begin(L.PACKET_ACCEPT, job).word(id).word(own);
    answer.word(1 + SESSION_WINDOW).word(0);
    for (const word of [...connectNonce.slice(0, 2), ...parameters.acceptNonce]) answer.word(word);
    this.#state.out.send(from, answer.address(initiator, responder.nextSent(), 0), keySchedule?.handshake);
  }

  /** @param stated what the connect packet states @param own the epoch that this node states to the other one */
  #makeResponder(
    id: number,
    stated: Omit<SessionParameters, "acceptNonce" | "isZeroRtt" | "seals" | "zeroRttSeal">,
    own: number,
    isZeroRtt: boolean,
    now: number,
  ): Responder {
    const { node: target, keySchedule } = this.#state;
    const { node: origin, epoch: originEpoch, initiator, connectNonce } = stated;
    const acceptNonce = this.#state.nextNonce();
    const transcript = { origin, target, originEpoch, targetEpoch: own, initiator, connectNonce };
    const seals = keySchedule?.session({ ...transcript, responder: id, acceptNonce });
    const zeroRttSeal = isZeroRtt ? keySchedule?.zeroRtt(transcript) : undefined;
    return new Responder(id, { ...stated, acceptNonce, isZeroRtt, seals, zeroRttSeal }, now);
  }

  /** Whether a later incarnation of a node is known, for certain or from an authenticated connect packet. */
  #isStale(node: number, epoch: number): boolean {
    const known = this.#connects.get(node);
    return this.#state.incarnations.isStale(node, epoch) || (known !== undefined && seqDelta(epoch, known.epoch) < 0);
  }

  /**
   * Whether a connect packet comes for the first time, so that a replayed one takes no responder. A new incarnation of this
   * node cannot know. There, a replay takes a responder, but brings no data that opens, and loses it after IDLE_UNPROVEN.
   */
  #isNewConnect(node: number, epoch: number, serial: number): boolean {
    let known = this.#connects.get(node);
    if (known?.epoch !== epoch) {
      known = { epoch, serials: new ReplayWindow(CONNECT_WINDOW_WORDS, serial - 1) };
      this.#connects.set(node, known);
    }
    if (known.serials.has(serial)) return false;
    known.serials.add(serial);
    return true;
  }

  /** An index for a new responder; -1: all are in use. */
  #freeResponder(node: number, epoch: number, serial: number, now: number): number {
    const own = this.#unprovenOf(node);
    if (own.length >= UNPROVEN_COUNT_MAX) {
      // However many a node states, it takes no responder from others. Serials above its own, which a member that lies has stated
      // for it, hold it up until they are idle.
      const idle = own.find((one) => now - one.lastReceived > IDLE_UNPROVEN);
      if (idle !== undefined) return this.#responders.indexOf(idle);
      const [first] = own.sort((one, other) => this.#age(one, other)) as [Responder];
      const { parameters } = first;
      const isLater = parameters.epoch !== epoch || seqDelta(serial, parameters.serial) > 0;
      return isLater ? this.#responders.indexOf(first) : -1;
    }
    const free = this.#responders.indexOf(undefined);
    if (free !== -1) return free;
    // Responders that may be reused: first those that received no data.
    const unproven = this.#responders.findIndex(
      (one) => one?.isProven === false && now - one.lastReceived > IDLE_UNPROVEN,
    );
    if (unproven !== -1) return unproven;
    // Then one that this node took for an earlier connection: a node has one session with this one at a time. So the earlier
    // session is over, and its disconnect packet was lost.
    const left = this.#responders.findIndex(
      (one) =>
        one?.parameters.node === node &&
        (one.parameters.epoch !== epoch || seqDelta(serial, one.parameters.serial) > 0),
    );
    if (left !== -1) return left;
    // Then those of silent nodes.
    return this.#responders.findIndex((one) => one !== undefined && now - one.lastReceived > IDLE_RESPONDER);
  }

  /** Responders that a node's connect packets have taken, and to which no data has come. */
  #unprovenOf(node: number): Responder[] {
    return this.#responders.filter((one): one is Responder => one?.isProven === false && one.parameters.node === node);
  }

  /** Negative: the connect packet of the first one was sent before that of the other. */
  #age({ parameters: one }: Responder, { parameters: other }: Responder): number {
    return seqDelta(one.epoch, other.epoch) || seqDelta(one.serial, other.serial);
  }

  #refuse(
    to: Address,
    session: number,
    reason: number,
    wait: number,
    [first = 0, second = 0]: readonly number[],
  ): void {
    const answer = this.#packet
      .begin(L.PACKET_REFUSE, this.#state.job)
      .word(reason)
      .word(wait)
      .word(first)
      .word(second);
    this.#state.out.send(to, answer.address(session, 1, 0), this.#state.keySchedule?.handshake);
  }

  data(packet: ReceivedPacket, now: number): void {
    const { from, flags, number, sent, session: id } = packet;
    const isZeroRtt = (flags & L.PACKET_HALF) !== 0;
    const responder = isZeroRtt ? this.#byNonce(from, id) : this.#byId(from, id);
    if (responder === undefined) {
      this.#state.dropped.unknownSession++;
      // With a key, the sender may not have it, so the node does not answer. An honest origin reconnects by itself.
      if (this.#state.keySchedule === undefined) this.#refuse(from, id, L.REFUSED_UNKNOWN, 0, []);
      return;
    }
    const { dropped, counts } = this.#state;
    if (!this.#unseal(responder, packet, isZeroRtt)) return;
    if (responder.has(number)) {
      dropped.duplicate++;
      responder.addDuplicate(sent, now);
      this.#acknowledge(responder, now);
      return;
    }
    if (!this.#areFrom(responder.parameters.node, packet)) {
      dropped.foreign++;
      return;
    }
    if (responder.isBeyond(number) || !this.#receiveSegments(packet)) {
      dropped.noRoom++;
      return;
    }
    counts.taken++;
    if (responder.add(number, sent, now, (flags & L.PACKET_PROMPT) !== 0)) this.#acknowledgeSoon(responder);
  }

  /** Acknowledges at the end of the batch: packets that have come together cost one acknowledgment. */
  #acknowledgeSoon(responder: Responder): void {
    if (this.#prompt.includes(responder)) return;
    this.#prompt.push(responder);
    if (this.#isSoon) return;
    this.#isSoon = true;
    const soon = this.#options.soon ?? ((call: () => void) => call());
    soon(() => {
      this.#isSoon = false;
      const now = this.#state.time.now();
      for (const one of this.#prompt) if (this.#isOpen(one)) this.#acknowledge(one, now);
      this.#prompt.length = 0;
    });
  }

  /** Data goes to a node now: an acknowledgment for it that is to be sent at the end of the batch goes in the same datagram. */
  accompany(node: number, now: number): void {
    if (this.#prompt.length === 0) return;
    const index = this.#prompt.findIndex(({ parameters }) => parameters.node === node);
    if (index === -1) return;
    const [responder] = this.#prompt.splice(index, 1) as [Responder];
    if (!this.#isOpen(responder)) return;
    const packet = this.#acknowledgment(responder, now);
    this.#state.out.hold(this.#addressOf(responder), packet, responder.parameters.seals?.toOrigin);
  }

  #isOpen(responder: Responder): boolean {
    return this.#responders[(responder.id & 0xfff) - 1] === responder;
  }

  #byId(from: Address, id: number): Responder | undefined {
    const responder = this.#responders[(id & 0xfff) - 1];
    return responder?.id === id && this.#isFrom(responder, from) ? responder : undefined;
  }

  /** Whether a packet that comes from an address may be of a session. With a key, it has to open. */
  #isFrom(responder: Responder | undefined, from: Address): responder is Responder {
    return responder !== undefined && (this.#state.routes.isSealed || responder.parameters.from === from);
  }

  /** The 0-RTT session whose nonce begins with this word. */
  #byNonce(from: Address, first: number): Responder | undefined {
    return this.#responders.find(
      (one) => this.#isFrom(one, from) && one.parameters.isZeroRtt && one.parameters.connectNonce[0] === first,
    );
  }

  /** Opens a packet of a session. The session's first packet proves the incarnation of its node. @returns false: dropped */
  #unseal(responder: Responder, packet: ReceivedPacket, isZeroRtt: boolean): boolean {
    const { parameters, replayWindow } = responder;
    const { node, epoch, seals, zeroRttSeal } = parameters;
    const { incarnations, routes, dropped } = this.#state;
    if (!this.#state.unseal(packet, isZeroRtt ? zeroRttSeal : seals?.toTarget, replayWindow)) return false;
    if (!responder.isProven) {
      responder.isProven = true;
      if (incarnations.isStale(node, epoch)) {
        dropped.stale++;
        this.#free(responder);
        return false;
      }
      incarnations.note(node, epoch);
    }
    if (replayWindow.highest === packet.sent) routes.note(node, packet.from);
    return true;
  }

  /**
   * Closes the sessions of a lost node, so that packets that are still in flight are dropped.
   * @param isLater whether a later incarnation is known: its sessions stay open
   */
  forget(node: number, isLater: boolean): void {
    for (const one of this.#responders) {
      if (one?.parameters.node === node && (!isLater || this.#state.incarnations.isStale(node, one.parameters.epoch)))
        this.#free(one);
    }
  }

  #free({ id }: Responder): void {
    this.#responders[(id & 0xfff) - 1] = undefined;
  }

  /** Whether all segments are from endpoints of a node, to endpoints of this one. Others must not create streams. */
  #areFrom(node: number, { body, end }: ReceivedPacket): boolean {
    const { nodeOf, memory } = this.#options;
    const own = this.#state.node;
    const { words } = memory;
    let [lastOrigin, lastTarget] = [-1, -1];
    for (let at = body; at < end; at += segmentBytes(words, at)) {
      const origin = (words[(at + L.SEGMENT_ORIGIN_OFFSET) >>> 2] as number) >>> 0;
      const target = (words[(at + L.SEGMENT_TARGET_OFFSET) >>> 2] as number) >>> 0;
      if (origin === lastOrigin && target === lastTarget) continue;
      lastOrigin = origin;
      lastTarget = target;
      if (nodeOf(origin) !== node || nodeOf(target) !== own) return false;
    }
    return true;
  }

  /**
   * Passes all segments to the streams.
   * @returns whether there was room for all. If not, the packet counts as lost. When it is sent again, the streams drop the
   * segments that they have.
   */
  #receiveSegments({ body, end }: ReceivedPacket): boolean {
    const { words } = this.#options.memory;
    let areAccepted = true;
    for (let at = body; at < end; ) {
      if (this.#streams.receive(at) === NO_ROOM) areAccepted = false;
      at += segmentBytes(words, at);
    }
    return areAccepted;
  }

  #acknowledge(responder: Responder, now: number): void {
    if (!this.#state.out.hasRoom) {
      this.#waiting.add(responder);
      return;
    }
    const packet = this.#acknowledgment(responder, now);
    this.#state.out.send(this.#addressOf(responder), packet, responder.parameters.seals?.toOrigin);
  }

  #acknowledgment(responder: Responder, now: number): Packet {
    this.#state.counts.acknowledgments++;
    return responder.acknowledge(this.#packet, this.#state.job, now);
  }

  #addressOf({ parameters: { from, node } }: Responder): Address {
    const { routes } = this.#state;
    return routes.isSealed ? routes.to(node) : from;
  }

  disconnected(packet: ReceivedPacket): void {
    const responder = this.#byId(packet.from, packet.session);
    if (responder === undefined) this.#state.dropped.unknownSession++;
    else if (this.#unseal(responder, packet, false)) {
      this.#state.counts.taken++;
      this.#free(responder);
    }
  }

  /** When the last packet came of a session that its origin has not ended, in microseconds; -Infinity: there is none. */
  get lastReceived(): number {
    return Math.max(...this.#responders.map((one) => one?.lastReceived ?? Number.NEGATIVE_INFINITY));
  }

  /** Nodes that have a replay window of connect packets. */
  get connects(): number {
    return this.#connects.size;
  }

  /** Responders that have a session. */
  get inUse(): number {
    return this.#responders.filter((one) => one !== undefined).length;
  }
}
