// The target's side of a node (D3, D7): a pool of responders takes what others send, and hands its segments to the streams.
import {
  CONNECT_EPOCH_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_TARGET_OFFSET,
  PACKET_ACCEPT,
  PACKET_HALF,
  PACKET_PROMPT,
  PACKET_REFUSE,
  REFUSED_BUSY,
  REFUSED_NODE,
  REFUSED_UNKNOWN,
} from "../../assembly/layout.js";
import type { Incoming } from "./incoming.js";
import { Packet } from "./packet.js";
import { Responder, SESSION_WINDOW } from "./responder.js";
import type { Station } from "./station.js";
import { HELD_BACK, type Streams, segmentBytes } from "./streams.js";
import type { Address } from "./wire.js";

/** Microseconds after which a session of which nothing was heard may be another's. */
const IDLE_RESPONDER = 5_000_000;
/** What a node without a free responder asks others to wait, in microseconds. */
const BUSY_WAIT = 2000;

export class Responders {
  readonly #station: Station;
  readonly #streams: Streams;
  readonly #responders: (Responder | undefined)[];
  readonly #packet: Packet;

  constructor(station: Station, streams: Streams) {
    const { responders = 64 } = station.options;
    this.#station = station;
    this.#streams = streams;
    this.#packet = new Packet(station.packetBytes);
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

  connect(packet: Incoming, now: number): void {
    const { node, epoch: own, job, random } = this.#station.options;
    const { from } = packet;
    const initiator = packet.at(CONNECT_INITIATOR_OFFSET);
    const other = packet.at(CONNECT_NODE_OFFSET);
    const epoch = packet.at(CONNECT_EPOCH_OFFSET);
    const nonce = [0, 4, 8, 12].map((offset) => packet.at(CONNECT_NONCE_OFFSET + offset));
    if (packet.at(CONNECT_TARGET_OFFSET) !== node) {
      this.#refuse(from, initiator, REFUSED_NODE, 0, nonce);
      return;
    }
    if (!this.#station.noteEpoch(other, epoch)) return; // of a node that has been started anew since
    let place = this.#responders.findIndex(
      (one) => one?.opening.from === from && one.opening.initiator === initiator && one.opening.nonce[0] === nonce[0],
    );
    if (place === -1) {
      place = this.#freeResponder(from, other, epoch, now);
      if (place === -1) {
        this.#station.counts.refused++;
        this.#refuse(from, initiator, REFUSED_BUSY, BUSY_WAIT, nonce);
        return;
      }
      const id = this.#station.nextReference(place);
      this.#responders[place] = new Responder(id, { from, initiator, node: other, epoch, nonce }, now);
    }
    const responder = this.#responders[place] as Responder;
    const answer = this.#packet
      .begin(PACKET_ACCEPT, job)
      .word(responder.id)
      .word(own)
      .word(1 + SESSION_WINDOW)
      .word(0);
    answer.word(nonce[0] as number).word(nonce[1] as number);
    for (let word = 0; word < 4; word++) answer.word(random());
    this.#station.out.send(from, answer.address(initiator, responder.nextSent(), 0));
  }

  /** A place for a responder; -1: there is none. */
  #freeResponder(from: Address, node: number, epoch: number, now: number): number {
    const free = this.#responders.indexOf(undefined);
    if (free !== -1) return free;
    // Those of a node that has been started anew, and those of which nothing was heard for long.
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
      .begin(PACKET_REFUSE, this.#station.options.job)
      .word(reason)
      .word(wait)
      .word(first)
      .word(second);
    this.#station.out.send(to, answer.address(session, 1, 0));
  }

  data(packet: Incoming, now: number): void {
    const { from, flags, number, sent, session: id } = packet;
    const responder = (flags & PACKET_HALF) === 0 ? this.#responders[(id & 0xfff) - 1] : this.#byNonce(from, id);
    if (
      responder === undefined ||
      responder.opening.from !== from ||
      ((flags & PACKET_HALF) === 0 && responder.id !== id)
    ) {
      this.#station.dropped.unknown++;
      this.#refuse(from, id, REFUSED_UNKNOWN, 0, []);
      return;
    }
    if (responder.isKnown(number)) {
      this.#station.dropped.repeated++;
      responder.noteRepeated(sent, now);
      this.#acknowledge(responder, now);
      return;
    }
    if (responder.isBeyond(number) || !this.#takeSegments(packet)) {
      this.#station.dropped.heldBack++;
      return;
    }
    if (responder.note(number, sent, now, (flags & PACKET_PROMPT) !== 0)) this.#acknowledge(responder, now);
  }

  /** Half a handshake: the session whose connect packet had a nonce that begins with this word. */
  #byNonce(from: Address, first: number): Responder | undefined {
    return this.#responders.find((one) => one?.opening.from === from && one.opening.nonce[0] === first);
  }

  /** Whether there was room for all segments; of those that were taken, a second one is a repeated one. */
  #takeSegments({ body, end }: Incoming): boolean {
    const { words } = this.#station.options.memory;
    let isTaken = true;
    for (let at = body; at < end; ) {
      if (this.#streams.take(at) === HELD_BACK) isTaken = false;
      at += segmentBytes(words, at);
    }
    return isTaken;
  }

  #acknowledge(responder: Responder, now: number): void {
    this.#station.counts.acknowledgments++;
    this.#station.out.send(responder.opening.from, responder.acknowledge(this.#packet, this.#station.options.job, now));
  }

  disconnected({ from, session: id }: Incoming): void {
    const place = (id & 0xfff) - 1;
    const responder = this.#responders[place];
    if (responder?.id === id && responder.opening.from === from) this.#responders[place] = undefined;
    else this.#station.dropped.unknown++;
  }

  /** Responders that have a session. */
  get inUse(): number {
    return this.#responders.filter((one) => one !== undefined).length;
  }
}
