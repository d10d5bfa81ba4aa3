// Does to what goes out by a link, whichever it is, what networks do to it, by chance: so a program can be tried on its own
// machine as on a bad way. It needs no clock: a packet that is overtaken goes behind others that are sent later.
import type { Address, Link } from "./link.js";

/** What may happen to a packet that is sent; each of the first three a part of 1. */
export interface Impairments {
  readonly loss?: number | undefined;
  readonly duplicate?: number | undefined;
  readonly reorder?: number | undefined;
  /** Packets by which one is overtaken, at the most (default 8). */
  readonly reorderPackets?: number | undefined;
}

/** Most packets that are kept to be overtaken: what is beyond goes at once. */
const KEPT_MAX = 64;

interface Kept {
  readonly to: Address;
  readonly packet: Uint8Array;
  /** Packets that are still to overtake it. */
  left: number;
}

export class LossyLink implements Link {
  readonly isFaithful = false;
  /** What became of the packets that were sent. A packet that is kept when nothing more is sent is lost. */
  readonly counts = { sent: 0, lost: 0, duplicated: 0, reordered: 0 };
  readonly #link: Link;
  readonly #impairments: { readonly [Name in keyof Impairments]-?: number };
  readonly #random: () => number;
  #kept: Kept[] = [];

  /** @param random any u32: from one seed come the same impairments @throws RangeError, where a part is not of 0 … 1 */
  constructor(link: Link, impairments: Impairments, random: () => number) {
    const { loss = 0, duplicate = 0, reorder = 0, reorderPackets = 8 } = impairments;
    for (const [name, part] of Object.entries({ loss, duplicate, reorder }))
      if (!(part >= 0 && part <= 1)) throw new RangeError(`${name} of a lossy link is ${part}: it is a part, 0 … 1`);
    if (!Number.isInteger(reorderPackets) || reorderPackets < 1 || reorderPackets > 1000)
      throw new RangeError(`reorderPackets of a lossy link is ${reorderPackets}: it is an integer of 1 … 1000`);
    this.#link = link;
    this.#impairments = { loss, duplicate, reorder, reorderPackets };
    this.#random = random;
  }

  get packetBytes(): number {
    return this.#link.packetBytes;
  }

  get onPacket(): Link["onPacket"] {
    return this.#link.onPacket;
  }

  set onPacket(take: Link["onPacket"]) {
    this.#link.onPacket = take;
  }

  get onRoom(): Link["onRoom"] {
    return this.#link.onRoom;
  }

  set onRoom(go: Link["onRoom"]) {
    this.#link.onRoom = go;
  }

  send(to: Address, packet: Uint8Array): boolean {
    const { loss, duplicate, reorder, reorderPackets } = this.#impairments;
    this.counts.sent++;
    this.#overtake();
    if (this.#isDrawn(loss)) {
      this.counts.lost++;
      return true;
    }
    if (this.#isDrawn(duplicate)) {
      this.counts.duplicated++;
      this.#link.send(to, packet);
    }
    if (this.#isDrawn(reorder) && this.#kept.length < KEPT_MAX) {
      this.counts.reordered++;
      this.#kept.push({ to, packet: packet.slice(), left: 1 + (this.#random() % reorderPackets) });
      return true;
    }
    return this.#link.send(to, packet);
  }

  /** Another packet is sent: those that have been overtaken by enough go. */
  #overtake(): void {
    for (const kept of this.#kept) if (kept.left-- === 0) this.#link.send(kept.to, kept.packet);
    this.#kept = this.#kept.filter(({ left }) => left >= 0);
  }

  #isDrawn(part: number): boolean {
    return this.#random() < part * 2 ** 32;
  }

  close(): void {
    this.#kept = [];
    this.#link.close();
  }
}
