// The key schedule of a job key (D9), over @noble/hashes and @noble/ciphers: audited, without dependencies, for every host.
// No other file imports this one, so a program without a job key has no dependency.
//
// Keys: HKDF-SHA-256 (RFC 5869) of the job key. Packets of sessions: ChaCha20-Poly1305 (RFC 8439), with the header as
// associated data and `sent` as the nonce. Handshake packets: HMAC-SHA-256 (RFC 2104), truncated to 16 bytes.
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { equalBytes } from "@noble/ciphers/utils.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { TAG_BYTES } from "../../assembly/layout.js";
import type { KeySchedule, Seal, ZeroRttTranscript } from "../session/key-schedule.js";

/** The least bytes of a job key. */
const JOB_KEY_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;

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

/** Authenticates, and leaves the packet readable. */
class HmacSeal implements Seal {
  /** HMAC state that has absorbed the key. That saves two of the four blocks that a short packet needs. */
  readonly #keyed: ReturnType<typeof hmac.create>;

  constructor(key: Uint8Array) {
    this.#keyed = hmac.create(sha256, key);
  }

  #tagOf(packet: Uint8Array): Uint8Array {
    return this.#keyed.clone().update(packet.subarray(0, -TAG_BYTES)).digest().subarray(0, TAG_BYTES);
  }

  seal(packet: Uint8Array): void {
    packet.set(this.#tagOf(packet), packet.length - TAG_BYTES);
  }

  open(packet: Uint8Array): boolean {
    return equalBytes(this.#tagOf(packet), packet.subarray(-TAG_BYTES));
  }
}

/** Authenticates and encrypts (AEAD). */
class AeadSeal implements Seal {
  readonly #key: Uint8Array;
  /** `sent` in the first four bytes, then zeros: a key serves one direction of one session. */
  readonly #nonce = new Uint8Array(NONCE_BYTES);

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  #cipher(packet: Uint8Array, body: number, sent: number) {
    for (let byte = 0; byte < 4; byte++) this.#nonce[byte] = sent >>> (8 * byte);
    return chacha20poly1305(this.#key, this.#nonce, packet.subarray(0, body));
  }

  seal(packet: Uint8Array, body: number, sent: number): void {
    const plain = packet.subarray(body, packet.length - TAG_BYTES);
    this.#cipher(packet, body, sent).encrypt(plain, packet.subarray(body));
  }

  open(packet: Uint8Array, body: number, sent: number): boolean {
    try {
      const plain = packet.subarray(body, packet.length - TAG_BYTES);
      this.#cipher(packet, body, sent).decrypt(packet.subarray(body), plain);
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * The key schedule of a job key. Every node of the job is given the same key.
 * @param key at least 32 random bytes, not a password; it is copied
 * @param job the job's fingerprint, as its packets have it
 * @throws RangeError if the key is shorter
 */
export function keyScheduleOf(key: Uint8Array, job: number): KeySchedule {
  if (key.length < JOB_KEY_BYTES) {
    throw new RangeError(`a job key has ${key.length} bytes, not ${JOB_KEY_BYTES} or more`);
  }
  const secret = key.slice();

  function keyOf(salt: readonly number[], label: string, words: readonly number[], bytes: number): Uint8Array {
    return hkdf(sha256, secret, bytesOf(salt), infoOf(label, [job, ...words]), bytes);
  }

  const common = ({ origin, target, originEpoch, targetEpoch, initiator }: ZeroRttTranscript) => [
    origin,
    target,
    originEpoch,
    targetEpoch,
    initiator,
  ];
  return {
    handshake: new HmacSeal(keyOf([], "handshake", [], KEY_BYTES)),
    session(transcript) {
      const { connectNonce, acceptNonce, responder } = transcript;
      const salt = [...connectNonce, ...acceptNonce];
      const keys = keyOf(salt, "session", [...common(transcript), responder], 2 * KEY_BYTES);
      const [toTarget, toOrigin] = [keys.slice(0, KEY_BYTES), keys.slice(KEY_BYTES)];
      return { toTarget: new AeadSeal(toTarget), toOrigin: new AeadSeal(toOrigin) };
    },
    zeroRtt: (transcript) => new AeadSeal(keyOf(transcript.connectNonce, "half", common(transcript), KEY_BYTES)),
  };
}
