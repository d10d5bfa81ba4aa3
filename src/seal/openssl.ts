// The AEAD of OpenSSL, by foreign calls to the library that Node itself has. node:crypto makes three objects and a copy of each
// packet: it seals 64 bytes in 3.9 µs, and this in 0.9; 65,400 bytes in 27, and this in 20 (Node 20, Zen 5).
import { TAG_BYTES } from "../../assembly/layout.js";
import type { KeySchedule, Seal } from "../session/wire/key-schedule.js";
import { nodeModule } from "../support/host.js";
import type { CLibrary, ForeignFunction } from "../support/node/foreign.js";
import { AeadSeal, nodeKeyScheduleOf } from "./node.js";
import { Nonce } from "./schedule.js";

const CIPHER = "ChaCha20-Poly1305";
/** EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_TAG */
const [GET_TAG, SET_TAG] = [16, 17];
const NULL = 0;
const KEY_BYTES = 32;

/** Finds the addresses of a few buffers, which are used again and again. To ask for an address takes 0.15 µs. */
class PointerCache {
  readonly #library: CLibrary;
  readonly #addresses = new WeakMap<ArrayBufferLike, number>();
  /** The last one. */
  #buffer: ArrayBufferLike | undefined;
  #address = 0;

  constructor(library: CLibrary) {
    this.#library = library;
  }

  of({ buffer, byteOffset }: Uint8Array): number {
    if (buffer !== this.#buffer) {
      const known = this.#addresses.get(buffer);
      this.#address = known ?? this.#library.addressOf(buffer);
      if (known === undefined) this.#addresses.set(buffer, this.#address);
      this.#buffer = buffer;
    }
    return this.#address + byteOffset;
  }
}

/** One context of OpenSSL, which is given a key and a nonce for each packet. For one thread. */
class Cipher {
  readonly #context: number;
  readonly #init: ForeignFunction;
  readonly #update: ForeignFunction;
  readonly #final: ForeignFunction;
  readonly #control: ForeignFunction;
  /** Where OpenSSL writes how many bytes it has written. */
  readonly #written = new Int32Array(2);
  readonly #writtenAt: number;
  readonly #plain: PointerCache;
  readonly #sealed: PointerCache;
  readonly #opened: PointerCache;

  /** @throws Error OpenSSL, a function, or the cipher is not there */
  constructor(library: CLibrary) {
    this.#plain = new PointerCache(library);
    this.#sealed = new PointerCache(library);
    this.#opened = new PointerCache(library);
    const fetch = library.func("EVP_CIPHER_fetch", "uintptr_t", ["uintptr_t", "str", "str"]);
    const create = library.func("EVP_CIPHER_CTX_new", "uintptr_t", []);
    const pointers = ["uintptr_t", "uintptr_t", "uintptr_t"] as const;
    this.#init = library.func("EVP_CipherInit_ex", "int", [...pointers, "uintptr_t", "uintptr_t", "int"]);
    this.#update = library.func("EVP_CipherUpdate", "int", [...pointers, "uintptr_t", "int"]);
    this.#final = library.func("EVP_CipherFinal_ex", "int", pointers);
    this.#control = library.func("EVP_CIPHER_CTX_ctrl", "int", ["uintptr_t", "int", "int", "uintptr_t"]);
    this.#writtenAt = library.addressOf(this.#written.buffer);
    const cipher = fetch(NULL, CIPHER, null);
    // It stays until the process ends: less than 1 KB.
    this.#context = create();
    if (cipher === NULL || this.#context === NULL || this.#init(this.#context, cipher, NULL, NULL, NULL, 1) !== 1)
      throw new Error(`OpenSSL has no ${CIPHER}`);
  }

  /**
   * Seals a packet. @param key pointer to it, and `nonce` to a nonce
   * @param body offset of what is encrypted, in `plain` as in the packet; what is before it is authenticated
   */
  seal(key: number, nonce: number, packet: Uint8Array, body: number, plain: Uint8Array): boolean {
    const first = this.#sealed.of(packet);
    const tag = first + packet.length - TAG_BYTES;
    const from = plain === packet ? first : this.#plain.of(plain);
    return (
      this.#init(this.#context, NULL, NULL, key, nonce, 1) === 1 &&
      this.#apply(first, body, from + body, tag) &&
      this.#control(this.#context, GET_TAG, TAG_BYTES, tag) === 1
    );
  }

  /** Opens a packet in place. */
  open(key: number, nonce: number, packet: Uint8Array, body: number): boolean {
    const first = this.#opened.of(packet);
    const tag = first + packet.length - TAG_BYTES;
    return (
      this.#init(this.#context, NULL, NULL, key, nonce, 0) === 1 &&
      this.#control(this.#context, SET_TAG, TAG_BYTES, tag) === 1 &&
      this.#apply(first, body, first + body, tag)
    );
  }

  /** @param first pointer to the packet, `from` to the bytes that are encrypted or decrypted, `tag` to where they end */
  #apply(first: number, body: number, from: number, tag: number): boolean {
    const [context, written, text] = [this.#context, this.#writtenAt, first + body];
    return (
      this.#update(context, NULL, written, first, body) === 1 &&
      this.#update(context, text, written, from, tag - text) === 1 &&
      this.#final(context, tag, written) === 1
    );
  }
}

class OpensslSeal implements Seal {
  readonly #cipher: Cipher;
  readonly #key: Uint8Array<ArrayBuffer>;
  readonly #keyAt: number;
  readonly #nonce = new Nonce();
  readonly #nonceAt: number;

  constructor(library: CLibrary, cipher: Cipher, key: Uint8Array) {
    this.#cipher = cipher;
    // The address is that of a copy which lives as long as this.
    this.#key = new Uint8Array(key);
    this.#keyAt = library.addressOf(this.#key.buffer);
    this.#nonceAt = library.addressOf(this.#nonce.bytes.buffer);
  }

  seal(packet: Uint8Array, body: number, sent: number, plain = packet): void {
    this.#nonce.of(sent);
    const isSealed = this.#cipher.seal(this.#keyAt, this.#nonceAt, packet, body, plain);
    if (!isSealed) throw new Error("OpenSSL does not seal");
  }

  open(packet: Uint8Array, body: number, sent: number): boolean {
    if (packet.length < body + TAG_BYTES) return false;
    this.#nonce.of(sent);
    return this.#cipher.open(this.#keyAt, this.#nonceAt, packet, body);
  }
}

/** Makes a thread's seals over OpenSSL. @throws Error this process has no OpenSSL with the cipher, or hides it */
export function opensslAead(library: CLibrary): (key: Uint8Array) => Seal {
  const cipher = new Cipher(library);
  return (key) => new OpensslSeal(library, cipher, key);
}

/** The same, if packets sealed by OpenSSL and by node:crypto have the same bytes. */
function checkedAead(library: CLibrary | undefined): ((key: Uint8Array) => Seal) | undefined {
  if (library === undefined) return undefined;
  const crypto = nodeModule("crypto") as typeof import("node:crypto");
  try {
    const aead = opensslAead(library);
    const key = crypto.randomBytes(KEY_BYTES);
    const packet = new Uint8Array(3 * TAG_BYTES);
    aead(key).seal(packet, TAG_BYTES, 1);
    return new AeadSeal(crypto, key).open(packet, TAG_BYTES, 1) ? aead : undefined;
  } catch {
    return undefined;
  }
}

/**
 * As nodeKeyScheduleOf(), with the same bytes, and less processor time if OpenSSL can be called.
 * @param library undefined: this host makes no foreign calls
 * @throws Error as nodeKeyScheduleOf()
 */
export function opensslKeyScheduleOf(key: Uint8Array, job: number, library: CLibrary | undefined): KeySchedule {
  return nodeKeyScheduleOf(key, job, checkedAead(library));
}
