// The queue between a node and its link. What the link refuses waits, and is sent when the link has room again. It is not
// lost, so it is no sign of congestion.
//
// An acknowledgment goes in one datagram with the data that follows it. On loopback, a datagram takes 11 µs of both threads.
import { TAG_BYTES } from "../../../assembly/layout.js";
import type { Address, Link } from "../../link/link.js";
import { Queue } from "../../support/queue.js";
import type { Outgoing } from "../session.js";
import { type Seal, sealInto } from "./key-schedule.js";
import type { Packet } from "./packet.js";

/**
 * The most packets that wait; further ones are lost. While the link has no room, sessions send no data and responders no
 * acknowledgments. So at most one data packet or acknowledgment waits, besides packets that open, refuse and end sessions.
 */
const WAITING_MAX = 64;

export class LinkQueue implements Outgoing {
  readonly #link: Link;
  /** A buffer for sealed packets, and for two that go together. */
  readonly #buffer: Uint8Array;
  /** The begin of the buffer that was sent last: full packets have one length. */
  #last: Uint8Array;
  /** Bytes of a packet at its begin that the next one follows, and where it goes. */
  #held = 0;
  #heldTo: Address = "";
  readonly #waiting = new Queue<{ readonly to: Address; readonly bytes: Uint8Array }>();

  constructor(link: Link) {
    this.#link = link;
    this.#buffer = new Uint8Array(link.packetBytes);
    this.#last = this.#buffer;
  }

  get hasRoom(): boolean {
    return this.#waiting.length === 0;
  }

  send(to: Address, packet: Packet, seal: Seal | undefined): void {
    const held = this.#held;
    if (held === 0) {
      this.#send(to, seal === undefined ? packet.written : this.#first(this.#write(0, packet, seal)));
      return;
    }
    this.#held = 0;
    if (to === this.#heldTo && held + packet.length + TAG_BYTES <= this.#buffer.length) {
      this.#send(to, this.#first(this.#write(held, packet, seal)));
      return;
    }
    this.#send(this.#heldTo, this.#first(held));
    this.send(to, packet, seal);
  }

  hold(to: Address, packet: Packet, seal: Seal | undefined): void {
    this.#held = this.#write(0, packet, seal);
    this.#heldTo = to;
  }

  /** Writes a packet into the buffer. @returns where it ends */
  #write(at: number, packet: Packet, seal: Seal | undefined): number {
    const { length } = packet;
    if (seal === undefined) {
      this.#buffer.set(packet.written, at);
      return at + length;
    }
    const end = at + length + TAG_BYTES;
    sealInto(at === 0 ? this.#first(end) : this.#buffer.subarray(at, end), packet, seal);
    return end;
  }

  /** The begin of the buffer. */
  #first(bytes: number): Uint8Array {
    if (this.#last.length !== bytes) this.#last = this.#buffer.subarray(0, bytes);
    return this.#last;
  }

  #send(to: Address, bytes: Uint8Array): void {
    const { length } = this.#waiting;
    if (length === WAITING_MAX) return;
    if (length > 0 || !this.#link.send(to, bytes)) this.#waiting.push({ to, bytes: bytes.slice() });
  }

  /** Sends what waits. @returns whether the link has room for more */
  resume(): boolean {
    for (let next = this.#waiting.first; next !== undefined; next = this.#waiting.first) {
      if (!this.#link.send(next.to, next.bytes)) return false;
      this.#waiting.shift();
    }
    return true;
  }
}
