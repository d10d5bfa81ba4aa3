// Seals of a job key (D9), over @noble/hashes and @noble/ciphers: audited, without dependencies, in every host. Nothing else
// imports this file, so who has no key has no dependency either.
//
// Keys: HKDF-SHA-256 (RFC 5869) of the job key. Packets of sessions: ChaCha20-Poly1305 (RFC 8439), the header as associated
// data, `sent` as the nonce. Packets before there is a session: HMAC-SHA-256 (RFC 2104), its first 16 bytes.
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { equalBytes } from "@noble/ciphers/utils.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { TAG_BYTES } from "../../assembly/layout.js";
import type { KeySchedule, Seal, Transcript } from "../session/key-schedule.js";

/** Bytes of a job key, at the least. */
const JOB_KEY_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;

/** Words as they travel: little-endian. */
function bytesOf(words: readonly number[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(4 * words.length));
  for (const [i, word] of words.entries()) view.setUint32(4 * i, word, true);
  return new Uint8Array(view.buffer);
}

/** What a key is for: other words, or another purpose, make another key. */
function purpose(name: string, words: readonly number[]): Uint8Array {
  return Uint8Array.from([...new TextEncoder().encode(`pamir 1 ${name}`), ...bytesOf(words)]);
}

/** Authenticates. */
class Code implements Seal {
  /** Has taken in the key: two blocks of four that are not hashed again for each packet. */
  readonly #keyed: ReturnType<typeof hmac.create>;

  constructor(key: Uint8Array) {
    this.#keyed = hmac.create(sha256, key);
  }

  #of(packet: Uint8Array): Uint8Array {
    return this.#keyed.clone().update(packet.subarray(0, -TAG_BYTES)).digest().subarray(0, TAG_BYTES);
  }

  seal(packet: Uint8Array): void {
    packet.set(this.#of(packet), packet.length - TAG_BYTES);
  }

  open(packet: Uint8Array): boolean {
    return equalBytes(this.#of(packet), packet.subarray(-TAG_BYTES));
  }
}

/** Authenticates and encrypts. */
class Cipher implements Seal {
  readonly #key: Uint8Array;
  /** `sent` in its first bytes; the others are 0, for a key is one session's in one direction. */
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
 * Seals of a job key: every node of the job is given the same.
 * @param key at least 32 random bytes, not a password; it is copied
 * @param job fingerprint of the job, as in its packets
 */
export function keyScheduleOf(key: Uint8Array, job: number): KeySchedule {
  if (key.length < JOB_KEY_BYTES) {
    throw new RangeError(`a job key has ${key.length} bytes, not ${JOB_KEY_BYTES} or more`);
  }
  const secret = key.slice();

  function keyOf(salt: readonly number[], name: string, words: readonly number[], bytes: number): Uint8Array {
    return hkdf(sha256, secret, bytesOf(salt), purpose(name, [job, ...words]), bytes);
  }

  const both = ({
    origin,
    target,
    originEpoch,
    targetEpoch,
    initiator,
  }: Omit<Transcript, "responder" | "acceptNonce">) => [origin, target, originEpoch, targetEpoch, initiator];
  return {
    handshake: new Code(keyOf([], "handshake", [], KEY_BYTES)),
    session(handshake) {
      const { connectNonce, acceptNonce, responder } = handshake;
      const salt = [...connectNonce, ...acceptNonce];
      const keys = keyOf(salt, "session", [...both(handshake), responder], 2 * KEY_BYTES);
      const [toTarget, toOrigin] = [keys.slice(0, KEY_BYTES), keys.slice(KEY_BYTES)];
      return { toTarget: new Cipher(toTarget), toOrigin: new Cipher(toOrigin) };
    },
    zeroRtt: (handshake) => new Cipher(keyOf(handshake.connectNonce, "half", both(handshake), KEY_BYTES)),
  };
}
