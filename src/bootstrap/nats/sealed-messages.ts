// Messages of a meeting, sealed by the job key: nonce, then the text by AES-256-GCM. Without a job key, the text as it is. A
// message that was recorded opens again: any of them may come twice, and each names its sender.
import { decodeText, encodeText } from "../../support/text.js";
import { JOB_KEY_BYTES } from "../key.js";
import { needModule } from "../node.js";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const PRINT_BYTES = 8;

export class SealedMessages {
  readonly #key: Uint8Array | undefined;
  /** Tells keys apart, and reveals nothing else about a key. */
  readonly fingerprint: string;

  /** @param job is part of the key, so that no other job opens the messages */
  constructor(jobKey: Uint8Array | undefined, job: string) {
    if (jobKey === undefined) {
      this.fingerprint = "open";
      return;
    }
    const { createHash, hkdfSync } = needModule("crypto");
    this.#key = new Uint8Array(hkdfSync("sha256", jobKey, encodeText(job), "pamir nats 1 meeting", JOB_KEY_BYTES));
    this.fingerprint = createHash("sha256")
      .update(this.#key)
      .digest("hex")
      .slice(0, 2 * PRINT_BYTES);
  }

  seal(message: object): Uint8Array {
    const text = encodeText(JSON.stringify(message));
    if (this.#key === undefined) return text;
    const { createCipheriv, randomBytes } = needModule("crypto");
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce);
    const parts = [nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()];
    const sealed = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      sealed.set(part, at);
      at += part.length;
    }
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

  #opened(key: Uint8Array, sealed: Uint8Array): Uint8Array {
    const decipher = needModule("crypto").createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES));
    const end = sealed.length - TAG_BYTES;
    decipher.setAuthTag(sealed.subarray(end));
    const first = decipher.update(sealed.subarray(NONCE_BYTES, end));
    decipher.final();
    return first;
  }
}
