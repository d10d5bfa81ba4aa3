// What decorators of links have in common: packets come to the caller as they came.
import type { Address, Link } from "./link.js";

export abstract class LinkDecorator implements Link {
  readonly isFaithful = false;
  protected readonly link: Link;
  onRoom: Link["onRoom"] = () => {};

  constructor(link: Link) {
    this.link = link;
  }

  get packetBytes(): number {
    return this.link.packetBytes;
  }

  get address(): Link["address"] {
    return this.link.address;
  }

  get receive(): Link["receive"] {
    return this.link.receive;
  }

  get onMove(): Link["onMove"] {
    return this.link.onMove;
  }

  set onMove(callback: Link["onMove"]) {
    this.link.onMove = callback;
  }

  get onPacket(): Link["onPacket"] {
    return this.link.onPacket;
  }

  set onPacket(callback: Link["onPacket"]) {
    this.link.onPacket = callback;
  }

  receiveInto(allocate: (bytes: number) => Uint8Array | undefined): void {
    this.link.receiveInto?.(allocate);
  }

  ref(): void {
    this.link.ref?.();
  }

  unref(): void {
    this.link.unref?.();
  }

  abstract send(to: Address, packet: Uint8Array): boolean;
  abstract close(): void;
}
