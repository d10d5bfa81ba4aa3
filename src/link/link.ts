// The contract of a link. A link carries packets from one address to another, or drops them.

/**
 * Where a node is. Only the link knows what the text means. Packets from a node come from the same address that packets to
 * it are sent to.
 */
export type Address = string;

/** Carries packets. It may lose, duplicate, reorder and invent them: its caller trusts nothing that it delivers. */
export interface Link {
  /** Bytes of the largest packet that it carries, a multiple of 4. */
  readonly packetBytes: number;
  /**
   * Whether it delivers every packet once, in order and from the address of its sender. Then data may follow a connect
   * packet at once (D5b, 0-RTT).
   */
  readonly isFaithful: boolean;
  /**
   * Sends a packet, or loses it. The caller owns the bytes again when it returns.
   * @returns false: the link has no room now. The packet counts as lost, and the link calls `onRoom` later.
   */
  send(to: Address, packet: Uint8Array): boolean;
  /** The link calls this with each packet that arrives. It owns the bytes again when the callback returns. */
  onPacket: (from: Address, packet: Uint8Array) => void;
  /** The link calls this when send() may be tried again. */
  onRoom: () => void;
  close(): void;
}
