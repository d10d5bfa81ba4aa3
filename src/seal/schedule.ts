// The key schedule of a job key (D9), whatever library has the algorithms: which key is derived from what.
//
// Keys: HKDF-SHA-256 (RFC 5869) of the job key. Packets of sessions: ChaCha20-Poly1305 (RFC 8439), with the header as
// associated data and `sent` as the nonce. Handshake packets: HMAC-SHA-256 (RFC 2104), truncated to 16 bytes.
import type { KeySchedule, Seal, ZeroRttTranscript } from "../session/wire/key-schedule.js";

/** The least bytes of a job key. */
const JOB_KEY_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;

/** The algorithms. Keys of seals have 32 bytes. */
export interface Algorithms {
  /** HKDF-SHA-256. */
  derive(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, bytes: number): Uint8Array;
  /** HMAC-SHA-256: authenticates a packet, and leaves it readable. */
  mac(key: Uint8Array): Seal;
  /** ChaCha20-Poly1305: authenticates and encrypts a packet. */
  aead(key: Uint8Array): Seal;
}

/** The nonce of an AEAD: `sent` in the first four bytes, then zeros, since a key serves one direction of one session. */
export class Nonce {
  readonly bytes: Uint8Array<ArrayBuffer> = new Uint8Array(NONCE_BYTES);

  of(sent: number): Uint8Array<ArrayBuffer> {
    for (let byte = 0; byte < 4; byte++) this.bytes[byte] = sent >>> (8 * byte);
    return this.bytes;
  }
}

/** Words as little-endian bytes, as packets have them. */
function bytesOf(words: readonly number[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(4 * words.length));
  for (const [i, word] of words.entries()) view.setUint32(4 * i, word, true);
  return new Uint8Array(view.buffer);
}

/** The `info` of HKDF: each label and each list of words gives another key. The labels are part of the wire format. */
function infoOf(label: string, words: readonly number[]): Uint8Array {
  return Uint8Array.from([...new TextEncoder().encode(`pamir 1 ${label}`), ...bytesOf(words)]);
}

/**
 * @param key at least 32 random bytes, not a password; it is copied
 * @throws RangeError if the key is shorter
 */
export function scheduleOf(algorithms: Algorithms, key: Uint8Array, job: number): KeySchedule {
  if (key.length < JOB_KEY_BYTES) {
    throw new RangeError(`a job key has ${key.length} bytes, not ${JOB_KEY_BYTES} or more`);
  }
  // Not slice(): that of a Buffer copies nothing.
  const secret = new Uint8Array(key);
  const { derive, mac, aead } = algorithms;

  function keyOf(salt: readonly number[], label: string, words: readonly number[], bytes: number): Uint8Array {
    return derive(secret, bytesOf(salt), infoOf(label, [job, ...words]), bytes);
  }

  const common = ({ origin, target, originEpoch, targetEpoch, initiator }: ZeroRttTranscript) => [
    origin,
    target,
    originEpoch,
    targetEpoch,
    initiator,
  ];
  return {
    handshake: mac(keyOf([], "handshake", [], KEY_BYTES)),
    session(transcript) {
      const { connectNonce, acceptNonce, responder } = transcript;
      const salt = [...connectNonce, ...acceptNonce];
      const keys = keyOf(salt, "session", [...common(transcript), responder], 2 * KEY_BYTES);
      return { toTarget: aead(keys.slice(0, KEY_BYTES)), toOrigin: aead(keys.slice(KEY_BYTES)) };
    },
    zeroRtt: (transcript) => aead(keyOf(transcript.connectNonce, "half", common(transcript), KEY_BYTES)),
  };
}
