// What a link is: something that carries packets from one address to another, or does not.

/** Where a node is, for a link: it alone knows what that means. A node's packets come from where those for it go to. */
export type Address = string;

/** Carries packets; it may lose, repeat and reorder them, and gives out what it likes: nothing on it is trusted. */
export interface Link {
  /** Bytes of the largest packet that it takes, a multiple of 4. */
  readonly packetBytes: number;
  /** Whether it neither loses, repeats nor reorders: then data may follow a connect packet at once (D5b). */
  readonly isFaithful: boolean;
  /**
   * Sends a packet, or loses it. The bytes are the caller's again when it returns.
   * @returns false: it has no room now. It is as if the packet were lost, and it calls `onRoom`.
   */
  send(to: Address, packet: Uint8Array): boolean;
  /** Called with what came; the bytes are the link's again when it returns. */
  onPacket: (from: Address, packet: Uint8Array) => void;
  /** Called when send() may be tried again. */
  onRoom: () => void;
  close(): void;
}
