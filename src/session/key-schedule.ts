// What makes packets those of the job, and of nobody else (D9). The core knows only this seam: who has a job key brings what
// seals by it (src/seal), who has none leaves it out, and packets travel as they are.
//
//   CONNECT, ACCEPT, REFUSE   authenticated, by a key that comes from the job key alone: nobody knows a session yet.
//                             They say nothing that is secret, so they stay readable, and no counter has to be kept for
//                             a key that outlives the node: a code without nonce (MAC) has none that could repeat.
//   all others                authenticated and encrypted by the keys of their session, one for each direction, with
//                             `sent` as the nonce. Both sides have a part in them, so an old packet opens nothing.
//   data of half a handshake  (D5b) by a key in which the target had no part but its epoch. What that costs: within one
//                             life of the target, only the serial numbers of connect packets, `sent` and the order
//                             numbers of streams refuse it when it comes again. Another life has another epoch: it does
//                             not open. So an origin that does not know the epoch yet shakes the whole hand.
import {
  PACKET_FLAGS_SHIFT,
  PACKET_LENGTH_OFFSET,
  PACKET_SEALED,
  PACKET_SIZE,
  TAG_BYTES,
} from "../../assembly/layout.js";
import type { Packet } from "./packet.js";

/** One key, for packets that travel in one direction. */
export interface Seal {
  /**
   * Seals a packet where it is: writes its last TAG_BYTES bytes, and may encrypt those from `body` up to there. Those before
   * `body` stay as they are, and can't be changed unnoticed either.
   * @param sent of the packets of a session never twice the same
   */
  seal(packet: Uint8Array, body: number, sent: number): void;
  /** Opens what seal() made, where it is. @returns false: somebody else made it, or changed it; its body means nothing then */
  open(packet: Uint8Array, body: number, sent: number): boolean;
}

/** What the keys of a session are made of, the job key aside. */
export interface Transcript {
  readonly origin: number;
  readonly target: number;
  readonly originEpoch: number;
  readonly targetEpoch: number;
  /** The initiator's reference. */
  readonly initiator: number;
  /** The session id. */
  readonly responder: number;
  /** Four words each. */
  readonly connectNonce: readonly number[];
  readonly acceptNonce: readonly number[];
}

export interface SessionSeals {
  readonly toTarget: Seal;
  readonly toOrigin: Seal;
}

/** Makes seals of a job key. Whoever has the same key and is told the same makes the same. */
export interface KeySchedule {
  /** Of CONNECT, ACCEPT and REFUSE, in both directions; it leaves bodies readable. */
  readonly handshake: Seal;
  session(handshake: Transcript): SessionSeals;
  /** Of data that follows a connect packet at once. @param handshake with the target's epoch as the origin knows it */
  zeroRtt(handshake: Omit<Transcript, "responder" | "acceptNonce">): Seal;
}

/** Seals a copy of a packet, so that it can be sent again: with another `sent`, under the same key or another. */
export function sealed(packet: Packet, seal: Seal, buffer: Uint8Array): Uint8Array {
  const { bytes, length, sent } = packet;
  const all = length + TAG_BYTES;
  buffer.set(bytes);
  buffer[PACKET_FLAGS_SHIFT >>> 3] = (buffer[PACKET_FLAGS_SHIFT >>> 3] as number) | PACKET_SEALED;
  buffer[PACKET_LENGTH_OFFSET] = all & 0xff;
  buffer[PACKET_LENGTH_OFFSET + 1] = all >>> 8;
  const whole = buffer.subarray(0, all);
  seal.seal(whole, PACKET_SIZE, sent);
  return whole;
}
