// Decorates any link with the faults of a network: it drops, duplicates and reorders outgoing packets at random. A program
// can thus be tried on one machine as on a bad network. It needs no clock: a held packet leaves after later packets have
// overtaken it.
import { type Address, checkPacket, type Link } from "./link.js";
import { LinkDecorator } from "./link-decorator.js";

/** What may happen to each outgoing packet. The first three are probabilities from 0 to 1. */
export interface Impairments {
  readonly loss?: number | undefined;
  readonly duplicate?: number | undefined;
  readonly reorder?: number | undefined;
  /** The most packets that overtake a reordered one (default 8). */
  readonly reorderPackets?: number | undefined;
}

/** The most packets that are held back at a time: further ones are sent at once. */
const HELD_MAX = 64;

interface HeldPacket {
  readonly to: Address;
  readonly packet: Uint8Array;
  /** Packets that still have to overtake it. */
  left: number;
}

export class LossyLink extends LinkDecorator {
  /**
   * Outgoing packets, and what happened to them. Packets that are still held when sending stops, or that
   * find no room when their time comes, are lost, too.
   */
  readonly counts = { sent: 0, lost: 0, duplicated: 0, reordered: 0 };
  readonly #impairments: { readonly [Name in keyof Impairments]-?: number };
  readonly #random: () => number;
  #held: HeldPacket[] = [];
  /** Whether send() has returned false since the last onRoom(). The caller knows nothing of the other refusals. */
  #hasRefused = false;

  /**
   * @param random returns any u32; the same numbers give the same impairments
   * @throws RangeError if a probability is not from 0 to 1, or reorderPackets not from 1 to 1000
   */
  constructor(link: Link, impairments: Impairments, random: () => number) {
    super(link);
    const { loss = 0, duplicate = 0, reorder = 0, reorderPackets = 8 } = impairments;
    for (const [name, value] of Object.entries({ loss, duplicate, reorder }))
      if (!(value >= 0 && value <= 1))
        throw new RangeError(`${name} of a lossy link is ${value}, not a probability from 0 to 1`);
    if (!Number.isInteger(reorderPackets) || reorderPackets < 1 || reorderPackets > 1000)
      throw new RangeError(`reorderPackets of a lossy link is ${reorderPackets}, not an integer from 1 to 1000`);
    this.#impairments = { loss, duplicate, reorder, reorderPackets };
    this.#random = random;
    link.onRoom = () => {
      if (!this.#hasRefused) return;
      this.#hasRefused = false;
      this.onRoom();
    };
  }

  send(to: Address, packet: Uint8Array): boolean {
    const { loss, duplicate, reorder, reorderPackets } = this.#impairments;
    checkPacket(packet, this.packetBytes);
    this.counts.sent++;
    this.#releaseOvertaken();
    if (this.#happens(loss)) {
      this.counts.lost++;
      return true;
    }
    const isTwice = this.#happens(duplicate);
    if (this.#happens(reorder) && this.#held.length < HELD_MAX) {
      this.counts.reordered++;
      this.#held.push({ to, packet: new Uint8Array(packet), left: 1 + (this.#random() % reorderPackets) });
      if (isTwice) this.#repeat(to, packet);
      return true;
    }
    const isTaken = this.link.send(to, packet);
    if (!isTaken) this.#hasRefused = true;
    else if (isTwice) this.#repeat(to, packet);
    return isTaken;
  }

  #repeat(to: Address, packet: Uint8Array): void {
    this.counts.duplicated++;
    this.link.send(to, packet);
  }

  /** One more packet overtakes the held ones. Sends those that enough packets have overtaken. */
  #releaseOvertaken(): void {
    for (const held of this.#held) if (held.left-- === 0) this.link.send(held.to, held.packet);
    this.#held = this.#held.filter(({ left }) => left >= 0);
  }

  #happens(probability: number): boolean {
    return this.#random() < probability * 2 ** 32;
  }

  close(): void {
    this.#held = [];
    this.link.close();
  }
}
