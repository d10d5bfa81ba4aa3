// The contract of a link. A link carries packets from one address to another, or drops them. test/conformance/link.suite.ts
// has a case for each sentence, but for those of `onMove` and `onUnsent`.
import { PamiError } from "../core/error.js";

/** The smallest packets that a link may be configured for: the least MTU of IPv6 (1,280), less the headers of UDP. */
export const PACKET_BYTES_MIN = 1232;

/**
 * Where a node is. Only the link knows what the text means. Packets from a node come from the same address that packets to
 * it are sent to.
 */
export type Address = string;

/**
 * Carries packets. A link that is not faithful may lose, repeat, reorder and invent them: its caller trusts nothing that it
 * delivers.
 */
export interface Link {
  /** Bytes of the largest packet that it carries, a multiple of 4. */
  readonly packetBytes: number;
  /**
   * Whether it delivers every packet that it takes once, in order and from the address of its sender. Then data may follow a
   * connect packet at once (D5b, 0-RTT).
   */
  readonly isFaithful: boolean;
  /** The address by which others know its node. Undefined: a caller knows it, or others reach the node by its connections alone. */
  readonly address?: Address | undefined;
  /**
   * Takes a packet, to carry or lose it. A packet to an address that no node has is lost, and so is one after close(). The
   * caller owns the bytes again when send() returns. Meanwhile the link calls neither `onPacket` nor `onRoom`.
   * @returns false: the link has no room now, whatever the address. It has not taken the packet, and calls `onRoom` later. A
   * link with a queue for each address loses the packets that find theirs full, so that one node holds up no other.
   * @throws PAMIR_TOO_LARGE if the packet has more than `packetBytes`
   */
  send(to: Address, packet: Uint8Array): boolean;
  /**
   * The link calls this with each packet that arrives. The callback owns the bytes until it returns. It returns true if the
   * packet is of a node of the job: a server that is full keeps the connections by which such packets came.
   */
  onPacket: (from: Address, packet: Uint8Array) => unknown;
  /** The link calls this once after it has refused packets, when it has room again. */
  onRoom: () => void;
  /**
   * A link whose node has no address that others know calls this when a connection to another node is lost. That node can
   * reach this one only after the next packet from it.
   */
  onMove?: (() => void) | undefined;
  /**
   * A link that learns of it calls this once for each address and error: the system has refused packets to that address for
   * half a second, and so lost them.
   * @param code of the system's error, such as ENETUNREACH
   */
  onUnsent?: ((to: Address, code: string) => void) | undefined;
  /**
   * A link that can receives into memory of its caller's from then on, which need not copy the packets out of the link's own.
   * Each begins at a multiple of 4, and the caller still owns its bytes until `onPacket` returns.
   * @param allocate gives memory of so many bytes that is used for nothing else; undefined: there is none
   */
  receiveInto?(allocate: (bytes: number) => Uint8Array | undefined): void;
  /**
   * Takes some of the packets that have come, without a turn of the event loop; not there: only such a turn brings them. If none
   * has come, another thread that waits for the processor may run first. So a thread may call this while it spins.
   * @returns whether there were any
   */
  readonly receive?: (() => boolean) | undefined;
  /** The link keeps its thread alive, as at first. Both are there, or neither: then it does so until close(). */
  ref?(): void;
  /** The link no longer keeps its thread alive. */
  unref?(): void;
  /** Ends the link: it calls nothing any more. Packets on their way to it are lost, and those from it may be. */
  close(): void;
}

/** Checks the size of a packet that a link is to send. @throws PAMIR_TOO_LARGE */
export function checkPacket(packet: Uint8Array, packetBytes: number): void {
  if (packet.length <= packetBytes) return;
  throw new PamiError(
    "PAMIR_TOO_LARGE",
    `a packet has ${packet.length} bytes, and the link carries at most ${packetBytes}`,
  );
}
