// The target's side of a node (D3, D7): a pool of responders takes what others send, and hands its segments to the streams.
import {
  CONNECT_EPOCH_OFFSET,
  CONNECT_HALF,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_KNOWN_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_OPTIONS_OFFSET,
  CONNECT_SERIAL_OFFSET,
  CONNECT_TARGET_OFFSET,
  PACKET_ACCEPT,
  PACKET_HALF,
  PACKET_PROMPT,
  PACKET_REFUSE,
  REFUSED_BUSY,
  REFUSED_NAME,
  REFUSED_NODE,
  REFUSED_UNKNOWN,
  SEGMENT_ORIGIN_OFFSET,
  SEGMENT_TARGET_OFFSET,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import type { Address } from "../link/link.js";
import type { NodeState } from "./node-state.js";
import { Packet } from "./packet.js";
import type { ReceivedPacket } from "./received-packet.js";
import { ReplayWindow } from "./replay-window.js";
import { Responder, SESSION_WINDOW } from "./responder.js";
import { HELD_BACK, type Streams, segmentBytes } from "./streams.js";

/** Microseconds after which a session of which nothing was heard may be another's. */
const IDLE_RESPONDER = 5_000_000;
/** Microseconds that an initiator has for its first packet, until its session may be another's. */
const IDLE_UNPROVEN = 1_000_000;
/** Words of which connect packets of a node came already: 64 to 96, for that many others it may have in between. */
const CONNECTS_WORDS = 4;
/** What a node without a free responder asks others to wait, in microseconds. */
const BUSY_WAIT = 2000;

export class Responders {
  readonly #state: NodeState;
  readonly #streams: Streams;
  readonly #responders: (Responder | undefined)[];
  readonly #packet: Packet;
  /** With a key: of the latest life of each node, which connect packets came. */
  readonly #connects = new Map<number, { readonly epoch: number; readonly replayWindow: ReplayWindow }>();

  constructor(state: NodeState, streams: Streams) {
    const { responders = 64 } = state.options;
    this.#state = state;
    this.#streams = streams;
    this.#packet = new Packet(state.packetBytes);
    this.#responders = Array.from({ length: responders }, () => undefined);
  }

  /** Does what is due. @returns when something will be, in microseconds */
  advance(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const responder of this.#responders) {
      if (responder === undefined) continue;
      if (responder.due <= now) this.#acknowledge(responder, now);
      next = Math.min(next, responder.due);
    }
    return next;
  }

  connect(packet: ReceivedPacket, now: number): void {
    const { node, nodes, job, random, link, keySchedule, addressOf } = this.#state.options;
    const { dropped, counts } = this.#state;
    if (!this.#state.unseal(packet, keySchedule?.handshake)) return;
    const { from } = packet;
    const initiator = packet.at(CONNECT_INITIATOR_OFFSET);
    const other = packet.at(CONNECT_NODE_OFFSET);
    const epoch = packet.at(CONNECT_EPOCH_OFFSET);
    const nonce = [0, 4, 8, 12].map((offset) => packet.at(CONNECT_NONCE_OFFSET + offset));
    if (packet.at(CONNECT_TARGET_OFFSET) !== node) {
      dropped.foreign++;
      this.#refuse(from, initiator, REFUSED_NODE, 0, nonce);
      return;
    }
    if (other >= nodes) {
      dropped.foreign++;
      return;
    }
    // Two nodes of one number would share streams: one of them is told, and the other one's are as they were.
    const isOver = this.#isOver(other, epoch);
    if (isOver || addressOf(other) !== from) {
      if (isOver) dropped.stale++;
      else dropped.misnamed++;
      this.#refuse(from, initiator, REFUSED_NAME, 0, nonce);
      return;
    }
    if (keySchedule !== undefined && !this.#isFirst(other, epoch, packet.at(CONNECT_SERIAL_OFFSET))) {
      dropped.replayed++;
      return;
    }
    const own = this.#state.epochFor(other);
    let responder = this.#responders.find(
      (one) =>
        one?.opening.from === from &&
        one.opening.initiator === initiator &&
        one.opening.nonce.every((word, i) => word === nonce[i]),
    );
    if (responder === undefined) {
      const index = this.#freeResponder(from, other, epoch, now);
      if (index === -1) {
        counts.refused++;
        this.#refuse(from, initiator, REFUSED_BUSY, BUSY_WAIT, nonce);
        return;
      }
      const id = this.#state.nextReference(index);
      const answerNonce = [random(), random(), random(), random()];
      const names = {
        origin: other,
        target: node,
        originEpoch: epoch,
        targetEpoch: own,
        initiator,
        connectNonce: nonce,
      };
      const seals = keySchedule?.session({ ...names, responder: id, acceptNonce: answerNonce });
      // On any link that is not faithful an address may be a lie, and acknowledgments would go to whom it names.
      const isZeroRtt =
        link.isFaithful &&
        packet.at(CONNECT_OPTIONS_OFFSET) === CONNECT_HALF &&
        packet.at(CONNECT_KNOWN_OFFSET) === own;
      const zeroRtt = isZeroRtt ? keySchedule?.zeroRtt(names) : undefined;
      const opening = { from, initiator, node: other, epoch, nonce, answerNonce, isZeroRtt, seals, zeroRtt };
      responder = new Responder(id, opening, now);
      this.#responders[index] = responder;
    }
    counts.taken++;
    const { id, opening } = responder;
    const answer = this.#packet.begin(PACKET_ACCEPT, job).word(id).word(own);
    answer.word(1 + SESSION_WINDOW).word(0);
    for (const word of [...nonce.slice(0, 2), ...opening.answerNonce]) answer.word(word);
    this.#state.out.send(from, answer.address(initiator, responder.nextSent(), 0), keySchedule?.handshake);
  }

  /** Whether a later life of a node is known: for certain, or by a connect packet that somebody with the key once made. */
  #isOver(node: number, epoch: number): boolean {
    const known = this.#connects.get(node);
    return this.#state.isOver(node, epoch) || (known !== undefined && seqDelta(epoch, known.epoch) < 0);
  }

  /**
   * Whether a connect packet comes for the first time: one that was recorded takes no responder. Only another life of this
   * node does not know; then it takes one until somebody else needs it, for nothing follows that opens (IDLE_UNPROVEN).
   */
  #isFirst(node: number, epoch: number, serial: number): boolean {
    let known = this.#connects.get(node);
    if (known?.epoch !== epoch) {
      known = { epoch, replayWindow: new ReplayWindow(CONNECTS_WORDS, serial - 1) };
      this.#connects.set(node, known);
    }
    if (known.replayWindow.has(serial)) return false;
    known.replayWindow.add(serial);
    return true;
  }

  /** A index for a responder; -1: there is none. */
  #freeResponder(from: Address, node: number, epoch: number, now: number): number {
    const free = this.#responders.indexOf(undefined);
    if (free !== -1) return free;
    // Those of which no data came, those of a node that has been started anew, and those of which nothing was heard for long.
    const unproven = this.#responders.findIndex((one) => one?.isProven === false && now - one.heard > IDLE_UNPROVEN);
    if (unproven !== -1) return unproven;
    return this.#responders.findIndex(
      (one) =>
        one !== undefined &&
        (now - one.heard > IDLE_RESPONDER ||
          (one.opening.from === from && one.opening.node === node && one.opening.epoch !== epoch)),
    );
  }

  #refuse(
    to: Address,
    session: number,
    reason: number,
    wait: number,
    [first = 0, second = 0]: readonly number[],
  ): void {
    const answer = this.#packet
      .begin(PACKET_REFUSE, this.#state.options.job)
      .word(reason)
      .word(wait)
      .word(first)
      .word(second);
    this.#state.out.send(to, answer.address(session, 1, 0), this.#state.options.keySchedule?.handshake);
  }

  data(packet: ReceivedPacket, now: number): void {
    const { from, flags, number, sent, session: id } = packet;
    const isZeroRtt = (flags & PACKET_HALF) !== 0;
    const responder = isZeroRtt ? this.#byNonce(from, id) : this.#byId(from, id);
    if (responder === undefined) {
      this.#state.dropped.unknown++;
      // With a key, whoever sent this may not have it: no answer, and the origin begins another session by itself.
      if (this.#state.options.keySchedule === undefined) this.#refuse(from, id, REFUSED_UNKNOWN, 0, []);
      return;
    }
    const { dropped, counts } = this.#state;
    if (!this.#isOf(responder, packet, isZeroRtt)) return;
    if (responder.isKnown(number)) {
      dropped.repeated++;
      responder.noteRepeated(sent, now);
      this.#acknowledge(responder, now);
      return;
    }
    if (!this.#areFrom(responder.opening.node, packet)) {
      dropped.foreign++;
      return;
    }
    if (responder.isBeyond(number) || !this.#takeSegments(packet)) {
      dropped.heldBack++;
      return;
    }
    counts.taken++;
    if (responder.note(number, sent, now, (flags & PACKET_PROMPT) !== 0)) this.#acknowledge(responder, now);
  }

  #byId(from: Address, id: number): Responder | undefined {
    const responder = this.#responders[(id & 0xfff) - 1];
    return responder?.id === id && responder.opening.from === from ? responder : undefined;
  }

  /** Half a handshake: the session whose connect packet had a nonce that begins with this word. */
  #byNonce(from: Address, first: number): Responder | undefined {
    return this.#responders.find(
      (one) => one?.opening.isZeroRtt === true && one.opening.from === from && one.opening.nonce[0] === first,
    );
  }

  /** Whether a packet is of a session; the first one proves which life of its node that is of. */
  #isOf(responder: Responder, packet: ReceivedPacket, isZeroRtt: boolean): boolean {
    const { node, epoch, seals, zeroRtt } = responder.opening;
    if (!this.#state.unseal(packet, isZeroRtt ? zeroRtt : seals?.toTarget, responder.replayWindow)) return false;
    if (responder.isProven) return true;
    responder.isProven = true;
    if (!this.#state.isOver(node, epoch)) {
      this.#state.noteEpoch(node, epoch);
      return true;
    }
    this.#state.dropped.stale++;
    this.#free(responder);
    return false;
  }

  /**
   * A node is lost: what is still under way from its life until now is of sessions that are none any more.
   * @param isRestarted whether there is a later life of it, which may have sessions already
   */
  forget(node: number, isRestarted: boolean): void {
    for (const one of this.#responders) {
      if (one?.opening.node === node && (!isRestarted || this.#state.isOver(node, one.opening.epoch))) this.#free(one);
    }
  }

  #free({ id }: Responder): void {
    this.#responders[(id & 0xfff) - 1] = undefined;
  }

  /** Whether all segments are of endpoints of a node, for endpoints of this one: only those have streams. */
  #areFrom(node: number, { body, end }: ReceivedPacket): boolean {
    const { endpoints, nodeOf, node: own, memory } = this.#state.options;
    const { words } = memory;
    let [lastOrigin, lastTarget] = [-1, -1];
    for (let at = body; at < end; at += segmentBytes(words, at)) {
      const origin = (words[(at + SEGMENT_ORIGIN_OFFSET) >>> 2] as number) >>> 0;
      const target = (words[(at + SEGMENT_TARGET_OFFSET) >>> 2] as number) >>> 0;
      if (origin === lastOrigin && target === lastTarget) continue;
      lastOrigin = origin;
      lastTarget = target;
      if (origin >= endpoints || target >= endpoints || nodeOf(origin) !== node || nodeOf(target) !== own) return false;
    }
    return true;
  }

  /** Whether there was room for all segments; of those that were taken, a second one is a repeated one. */
  #takeSegments({ body, end }: ReceivedPacket): boolean {
    const { words } = this.#state.options.memory;
    let isTaken = true;
    for (let at = body; at < end; ) {
      if (this.#streams.take(at) === HELD_BACK) isTaken = false;
      at += segmentBytes(words, at);
    }
    return isTaken;
  }

  #acknowledge(responder: Responder, now: number): void {
    this.#state.counts.acknowledgments++;
    const packet = responder.acknowledge(this.#packet, this.#state.options.job, now);
    this.#state.out.send(responder.opening.from, packet, responder.opening.seals?.toOrigin);
  }

  disconnected(packet: ReceivedPacket): void {
    const responder = this.#byId(packet.from, packet.session);
    if (responder === undefined) this.#state.dropped.unknown++;
    else if (this.#isOf(responder, packet, false)) {
      this.#state.counts.taken++;
      this.#free(responder);
    }
  }

  /** Nodes of which connect packets are known. */
  get connects(): number {
    return this.#connects.size;
  }

  /** Responders that have a session. */
  get inUse(): number {
    return this.#responders.filter((one) => one !== undefined).length;
  }
}
