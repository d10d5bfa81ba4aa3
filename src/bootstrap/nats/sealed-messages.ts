// Messages of a meeting, sealed by the job key: 16 random bytes, then the text by ChaCha20-Poly1305. HKDF makes a key of its own
// for each message, since 12 random bytes of a nonce may come twice. Without a job key, the text as it is. A message that was
// recorded opens again: any of them may come twice, and each names its sender.
import { hexOf } from "../../nats/ids.js";
import { nodeAlgorithms } from "../../seal/node.js";
import type { Algorithms } from "../../seal/schedule.js";
import { decodeText, encodeText } from "../../support/text.js";
import { JOB_KEY_BYTES } from "../key.js";

const SALT_BYTES = 16;
const TAG_BYTES = 16;
const PRINT_BYTES = 8;
const MEETING = encodeText("pamir nats 1 meeting");
const PRINT = encodeText("pamir nats 1 print");
const MESSAGE = encodeText("pamir nats 1 message");
/** Each key seals one message. */
const FIRST = 0;

export class SealedMessages {
  readonly #algorithms: Algorithms | undefined;
  readonly #key: Uint8Array | undefined;
  /** Tells keys apart, and reveals nothing else about a key. */
  readonly fingerprint: string;

  /**
   * @param job is part of the key, so that no other job opens the messages
   * @param algorithms those of node:crypto by default: a page has others, with the same bytes
   */
  constructor(jobKey: Uint8Array | undefined, job: string, algorithms?: Algorithms) {
    if (jobKey === undefined) {
      this.fingerprint = "open";
      return;
    }
    this.#algorithms = algorithms ?? nodeAlgorithms();
    const { derive } = this.#algorithms;
    this.#key = derive(jobKey, encodeText(job), MEETING, JOB_KEY_BYTES);
    const print = derive(this.#key, new Uint8Array(0), PRINT, PRINT_BYTES);
    this.fingerprint = hexOf(print);
  }

  seal(message: object): Uint8Array {
    const text = encodeText(JSON.stringify(message));
    if (this.#key === undefined) return text;
    const sealed = new Uint8Array(SALT_BYTES + text.length + TAG_BYTES);
    crypto.getRandomValues(sealed.subarray(0, SALT_BYTES));
    sealed.set(text, SALT_BYTES);
    this.#sealOf(this.#key, sealed).seal(sealed, SALT_BYTES, FIRST);
    return sealed;
  }

  /** Undefined: it is not of a process with this key, or no message. */
  open(sealed: Uint8Array): unknown {
    try {
      return JSON.parse(decodeText(this.#key === undefined ? sealed : this.#opened(this.#key, sealed)));
    } catch {
      return undefined;
    }
  }

  /** @throws Error it is not of a process with this key */
  #opened(key: Uint8Array, sealed: Uint8Array): Uint8Array {
    const packet = new Uint8Array(sealed);
    const isWhole = packet.length >= SALT_BYTES + TAG_BYTES;
    if (!isWhole || !this.#sealOf(key, packet).open(packet, SALT_BYTES, FIRST))
      throw new Error("sealed by another key");
    return packet.slice(SALT_BYTES, -TAG_BYTES);
  }

  /** The seal of one message, which begins with its salt. */
  #sealOf(key: Uint8Array, packet: Uint8Array): ReturnType<Algorithms["aead"]> {
    const { derive, aead } = this.#algorithms as Algorithms;
    return aead(derive(key, packet.subarray(0, SALT_BYTES), MESSAGE, JOB_KEY_BYTES));
  }
}
