/*! noble-hashes - MIT License (c) 2022 Paul Miller (paulmillr.com) */
// The key schedule of a job key over @noble/hashes and @noble/ciphers: audited, without dependencies, for every host. No
// other file imports this one statically, so a program without a job key has no dependency.
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { equalBytes } from "@noble/ciphers/utils.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { TAG_BYTES } from "../../assembly/layout.js";
import type { KeySchedule, Seal } from "../session/wire/key-schedule.js";
import { type Algorithms, Nonce, scheduleOf } from "./schedule.js";

class HmacSeal implements Seal {
  /** HMAC state that has absorbed the key. That saves two of the four blocks that a short packet needs. */
  readonly #keyed: ReturnType<typeof hmac.create>;

  constructor(key: Uint8Array) {
    this.#keyed = hmac.create(sha256, key);
  }

  #tagOf(packet: Uint8Array): Uint8Array {
    return this.#keyed.clone().update(packet.subarray(0, -TAG_BYTES)).digest().subarray(0, TAG_BYTES);
  }

  seal(packet: Uint8Array, body: number, _sent: number, plain = packet): void {
    if (plain !== packet) packet.set(plain.subarray(body, packet.length - TAG_BYTES), body);
    packet.set(this.#tagOf(packet), packet.length - TAG_BYTES);
  }

  open(packet: Uint8Array): boolean {
    return equalBytes(this.#tagOf(packet), packet.subarray(-TAG_BYTES));
  }
}

class AeadSeal implements Seal {
  readonly #key: Uint8Array;
  readonly #nonce = new Nonce();

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  #cipher(packet: Uint8Array, body: number, sent: number) {
    return chacha20poly1305(this.#key, this.#nonce.of(sent), packet.subarray(0, body));
  }

  seal(packet: Uint8Array, body: number, sent: number, plain = packet): void {
    const text = plain.subarray(body, packet.length - TAG_BYTES);
    this.#cipher(packet, body, sent).encrypt(text, packet.subarray(body));
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

export const NOBLE: Algorithms = {
  derive: (secret, salt, info, bytes) => hkdf(sha256, secret, salt, info, bytes),
  mac: (key) => new HmacSeal(key),
  aead: (key) => new AeadSeal(key),
};

/**
 * The key schedule of a job key. Every node of the job is given the same key.
 * @param key at least 32 random bytes, not a password; it is copied
 * @param job the job's fingerprint, as its packets have it
 * @throws RangeError if the key is shorter
 */
export function keyScheduleOf(key: Uint8Array, job: number): KeySchedule {
  return scheduleOf(NOBLE, key, job);
}
