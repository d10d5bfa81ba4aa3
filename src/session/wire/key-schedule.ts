// The seam through which packets are authenticated and encrypted (D9). src/seal implements it from a job key. Without a key
// schedule, packets travel unsealed. Which seal a packet has:
//
//   CONNECT, ACCEPT, REFUSE   Authenticated by a key that is derived from the job key alone, because no session exists yet.
//                             They hold no secret and stay readable. A MAC needs no nonce, so there is no counter that must
//                             outlive the node.
//   0-RTT data                (D5b) Encrypted by a key to which the target contributed only its epoch. Within one
//                             incarnation of the target, only three numbers refuse a replay: the serial number of the
//                             connect packet, `sent`, and the order numbers of streams. Another incarnation has another
//                             epoch, so it cannot open the packet. An origin that does not know the epoch uses a full
//                             handshake.
//   all others                Authenticated and encrypted by the keys of their session, one for each direction, with `sent`
//                             as the nonce. Both sides contribute nonces, so an old packet opens in no other session.
import { PACKET_FLAGS_SHIFT, PACKET_LENGTH_OFFSET, PACKET_SEALED, PACKET_SIZE } from "../../../assembly/layout.js";
import type { Packet } from "./packet.js";

/** A key for packets in one direction. */
export interface Seal {
  /**
   * Seals a packet. It writes the tag into the last TAG_BYTES bytes, and may encrypt the bytes from `body` up to the tag. The
   * bytes before `body` stay readable, and the tag covers them.
   * @param sent never the same twice within a session
   * @param plain has the bytes from `body` on, at the same offsets: the packet has those before `body` alone (default: the
   * packet, which is sealed in place)
   */
  seal(packet: Uint8Array, body: number, sent: number, plain?: Uint8Array): void;
  /**
   * Opens in place what seal() sealed.
   * @returns false: another key sealed the packet, or it was changed. Its body is meaningless then.
   */
  open(packet: Uint8Array, body: number, sent: number): boolean;
}

/** What the keys of a session are derived from, besides the job key. */
export interface Transcript {
  readonly origin: number;
  readonly target: number;
  readonly originEpoch: number;
  readonly targetEpoch: number;
  /** The initiator's reference. */
  readonly initiator: number;
  /** The session id. */
  readonly responder: number;
  /** Four words. */
  readonly connectNonce: readonly number[];
  /** Four words. */
  readonly acceptNonce: readonly number[];
}

/** What is known of it before the target has answered; `targetEpoch` is the one that the origin assumes. */
export type ZeroRttTranscript = Omit<Transcript, "responder" | "acceptNonce">;

export interface SessionSeals {
  readonly toTarget: Seal;
  readonly toOrigin: Seal;
}

/** Derives seals from a job key. The same key and the same transcript give the same seals on both sides. */
export interface KeySchedule {
  /** For CONNECT, ACCEPT and REFUSE, in both directions. It leaves the bodies readable. */
  readonly handshake: Seal;
  session(transcript: Transcript): SessionSeals;
  /** For data that follows a connect packet at once. */
  zeroRtt(transcript: ZeroRttTranscript): Seal;
}

/**
 * Seals a packet into another buffer. The original stays unsealed: a retransmission has another `sent`, and perhaps another key.
 * Its body is not copied first: the cipher reads the original, and writes the sealed one.
 * @param into as many bytes as the sealed packet has: TAG_BYTES more
 */
export function sealInto(into: Uint8Array, packet: Packet, seal: Seal): void {
  const { bytes, sent } = packet;
  for (let i = 0; i < PACKET_SIZE; i++) into[i] = bytes[i] as number;
  into[PACKET_FLAGS_SHIFT >>> 3] = (into[PACKET_FLAGS_SHIFT >>> 3] as number) | PACKET_SEALED;
  into[PACKET_LENGTH_OFFSET] = into.length & 0xff;
  into[PACKET_LENGTH_OFFSET + 1] = into.length >>> 8;
  seal.seal(into, PACKET_SIZE, sent, bytes);
}
