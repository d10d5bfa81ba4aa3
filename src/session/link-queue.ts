// The queue between a node and its link. A packet that the link refuses waits, and is sent when the link has room again. It
// is not lost, so it is no sign of congestion.
import type { Address, Link } from "../link/link.js";
import { Queue } from "../support/queue.js";
import { type Seal, sealed } from "./key-schedule.js";
import type { Packet } from "./packet.js";
import type { Outgoing } from "./session.js";

/**
 * The most packets that wait; further ones are lost. While the link has no room, sessions send no data and responders no
 * acknowledgments. So at most one data packet or acknowledgment waits, besides packets that open, refuse and end sessions.
 */
const WAITING_MAX = 64;

export class LinkQueue implements Outgoing {
  readonly #link: Link;
  /** A buffer for sealed packets. */
  readonly #buffer: Uint8Array;
  readonly #waiting = new Queue<{ readonly to: Address; readonly bytes: Uint8Array }>();

  constructor(link: Link) {
    this.#link = link;
    this.#buffer = new Uint8Array(link.packetBytes);
  }

  get hasRoom(): boolean {
    return this.#waiting.length === 0;
  }

  send(to: Address, packet: Packet, seal: Seal | undefined): void {
    const { length } = this.#waiting;
    if (length === WAITING_MAX) return;
    const bytes = seal === undefined ? packet.bytes : sealed(packet, seal, this.#buffer);
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
