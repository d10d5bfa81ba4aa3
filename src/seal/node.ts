// The key schedule of a job key over node:crypto. To seal and to open a packet takes a third of the processor time that
// src/seal/noble.ts takes at 1,452 bytes, a tenth at 65,504, and less for every size.
import { TAG_BYTES } from "../../assembly/layout.js";
import type { KeySchedule, Seal } from "../session/wire/key-schedule.js";
import { copyInto } from "../support/copy.js";
import { free } from "../support/free.js";
import { nodeModule } from "../support/host.js";
import { type Algorithms, Nonce, scheduleOf } from "./schedule.js";

type Crypto = typeof import("node:crypto");

const CIPHER = "chacha20-poly1305";
const OPTIONS = { authTagLength: TAG_BYTES };

class HmacSeal implements Seal {
  readonly #crypto: Crypto;
  readonly #key: Uint8Array;

  constructor(crypto: Crypto, key: Uint8Array) {
    this.#crypto = crypto;
    this.#key = key;
  }

  #tagOf(packet: Uint8Array): Uint8Array {
    const code = this.#crypto.createHmac("sha256", this.#key).update(packet.subarray(0, -TAG_BYTES)).digest();
    return code.subarray(0, TAG_BYTES);
  }

  seal(packet: Uint8Array, body: number, _sent: number, plain = packet): void {
    if (plain !== packet) packet.set(plain.subarray(body, packet.length - TAG_BYTES), body);
    packet.set(this.#tagOf(packet), packet.length - TAG_BYTES);
  }

  open(packet: Uint8Array): boolean {
    return packet.length >= TAG_BYTES && this.#crypto.timingSafeEqual(this.#tagOf(packet), packet.subarray(-TAG_BYTES));
  }
}

export class AeadSeal implements Seal {
  readonly #crypto: Crypto;
  readonly #key: Uint8Array;
  readonly #nonce = new Nonce();

  constructor(crypto: Crypto, key: Uint8Array) {
    this.#crypto = crypto;
    this.#key = key;
  }

  seal(packet: Uint8Array, body: number, sent: number, plain = packet): void {
    const end = packet.length - TAG_BYTES;
    const cipher = this.#crypto.createCipheriv(CIPHER, this.#key, this.#nonce.of(sent), OPTIONS);
    cipher.setAAD(packet.subarray(0, body), { plaintextLength: end - body });
    // The cipher writes into a new Buffer: Node lets a caller give none.
    const secret = cipher.update(plain.subarray(body, end));
    copyInto(packet, body, secret);
    free(secret);
    cipher.final();
    packet.set(cipher.getAuthTag(), end);
  }

  open(packet: Uint8Array, body: number, sent: number): boolean {
    const end = packet.length - TAG_BYTES;
    if (end < body) return false;
    const decipher = this.#crypto.createDecipheriv(CIPHER, this.#key, this.#nonce.of(sent), OPTIONS);
    decipher.setAAD(packet.subarray(0, body), { plaintextLength: end - body });
    decipher.setAuthTag(packet.subarray(end));
    const plain = decipher.update(packet.subarray(body, end));
    try {
      decipher.final();
    } catch {
      return false;
    }
    copyInto(packet, body, plain);
    free(plain);
    return true;
  }
}

function algorithmsOf(crypto: Crypto): Algorithms {
  return {
    derive: (secret, salt, info, bytes) => new Uint8Array(crypto.hkdfSync("sha256", secret, salt, info, bytes)),
    mac: (key) => new HmacSeal(crypto, key),
    aead: (key) => new AeadSeal(crypto, key),
  };
}

/** Whether this host has node:crypto with the algorithms: some are built without ChaCha20, or forbid it. */
export function hasNodeSeals(): boolean {
  const crypto = nodeModule("crypto");
  if (crypto === undefined) return false;
  try {
    const algorithms = algorithmsOf(crypto);
    const key = algorithms.derive(new Uint8Array(32), new Uint8Array(0), new Uint8Array(1), 32);
    algorithms.mac(key).seal(new Uint8Array(TAG_BYTES), 0, 0);
    const packet = new Uint8Array(2 * TAG_BYTES);
    algorithms.aead(key).seal(packet, TAG_BYTES, 1);
    return algorithms.aead(key).open(packet, TAG_BYTES, 1);
  } catch {
    return false;
  }
}

/** @throws Error this host has no node:crypto with these algorithms: see hasNodeSeals(). Packets must not travel unsealed. */
export function nodeAlgorithms(): Algorithms {
  const crypto = nodeModule("crypto");
  if (crypto === undefined || !hasNodeSeals()) throw new Error("this host has no node:crypto with ChaCha20-Poly1305");
  return algorithmsOf(crypto);
}

/**
 * As keyScheduleOf() of src/seal/noble.ts, with the same bytes.
 * @param aead that takes less processor time @throws Error as nodeAlgorithms()
 */
export function nodeKeyScheduleOf(key: Uint8Array, job: number, aead?: Algorithms["aead"]): KeySchedule {
  const algorithms = nodeAlgorithms();
  return scheduleOf({ ...algorithms, aead: aead ?? algorithms.aead }, key, job);
}
