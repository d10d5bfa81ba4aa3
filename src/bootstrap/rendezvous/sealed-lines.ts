// Lines between processes that share a job key: authenticated and encrypted.
//
// ╒═══ HELLO (initiator → acceptor), then REPLY (acceptor → initiator), 72 bytes each ═══════════════════════════╕
//  byte  field  bytes  meaning
//     0  magic      8  "PAMIRRV1"
//     8  nonce     32  random, of the side that sends it
//    40  proof     32  HELLO: HMAC-SHA-256(hello key, magic ‖ nonce)
//                      REPLY: HMAC-SHA-256(reply key, HELLO ‖ magic ‖ nonce)
//
// ╒═══ record: one line, in either direction ════════════════════════════════════════════════════════════════════╕
//  byte  field   bytes  meaning
//     0  length      2  n, big-endian, 1 to LINE_MAX; associated data of the cipher
//     2  body        n  the line without line feed, by AES-256-GCM
//   2+n  tag        16
//
// Keys: HKDF-SHA-256 (RFC 5869) of the job key, 32 bytes each.
//   hello key, reply key   no salt, info "pamir rendezvous 1 hello", "pamir rendezvous 1 reply"
//   one of each direction  salt SHA-256(HELLO ‖ REPLY), info "pamir rendezvous 1 to acceptor", "… to initiator"
// Nonce of a record: 4 bytes of 0, then the number of the record in its direction, from 0, as 8 bytes, big-endian.
//
// What follows of this, against a peer without the key:
// - It gets no byte from an acceptor: without a valid proof the connection is closed.
// - A recorded HELLO gets a REPLY of its own length, with a new nonce. The recorded records don't open under the new keys.
// - An initiator sends lines only after a REPLY that proves the key and contains the initiator's nonce.
// - Records that are changed, repeated, left out or out of order don't open; then the connection is closed.
// The first line of the initiator proves that it has seen the REPLY. Until then, the acceptor sends no line.
// Keys of a connection are not ephemeral: the job key opens recorded connections of its job.
import { PamiError } from "../../core/error.js";
import { after } from "../../support/timers.js";
import { JOB_KEY_BYTES } from "../key.js";
import { type Lines, type Stream, StreamLines } from "../lines.js";
import { needModule } from "../node.js";
import { bytesOf, type Framing, LINE_MAX, MAGIC_TEXT, PmiReceived, textOf } from "../pmi/pmi-wire.js";
import { reasonText, secondsText } from "../text.js";

/** Bytes of HELLO and of REPLY. */
export const HANDSHAKE_BYTES = 72;

const MAGIC = bytesOf(MAGIC_TEXT);
const NONCE_BYTES = 32;
const PROOF_OFFSET = MAGIC.length + NONCE_BYTES;
const LENGTH_BYTES = 2;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
const CIPHER_NONCE_BYTES = 12;

/** Why a handshake failed, in words that follow the name of the other side. */
export class HandshakeError extends Error {}

/**
 * The other side ended the connection instead of answering. An acceptor ends the connection if the initiator has another key.
 */
export class ClosedError extends HandshakeError {}

function keyOf(jobKey: Uint8Array, salt: Uint8Array, label: string): Uint8Array {
  const { hkdfSync } = needModule("crypto");
  return new Uint8Array(hkdfSync("sha256", jobKey, salt, `pamir rendezvous 1 ${label}`, JOB_KEY_BYTES));
}

function proofOf(jobKey: Uint8Array, label: "hello" | "reply", ...parts: readonly Uint8Array[]): Uint8Array {
  const mac = needModule("crypto").createHmac("sha256", keyOf(jobKey, new Uint8Array(0), label));
  for (const part of parts) mac.update(part);
  return mac.digest();
}

/** A HELLO, or the REPLY to one. */
function handshakeOf(jobKey: Uint8Array, hello?: Uint8Array): Uint8Array {
  const message = new Uint8Array(HANDSHAKE_BYTES);
  message.set(MAGIC);
  message.set(needModule("crypto").randomBytes(NONCE_BYTES), MAGIC.length);
  message.set(expectedProof(jobKey, message, hello), PROOF_OFFSET);
  return message;
}

function expectedProof(jobKey: Uint8Array, message: Uint8Array, hello?: Uint8Array): Uint8Array {
  const open = message.subarray(0, PROOF_OFFSET);
  return hello === undefined ? proofOf(jobKey, "hello", open) : proofOf(jobKey, "reply", hello, open);
}

/** Whether the sender of a HELLO, or of the REPLY to one, has the job key. */
function isProved(jobKey: Uint8Array, message: Uint8Array, hello?: Uint8Array): boolean {
  const { timingSafeEqual } = needModule("crypto");
  if (!MAGIC.every((byte, i) => message[i] === byte)) return false;
  return timingSafeEqual(expectedProof(jobKey, message, hello), message.subarray(PROOF_OFFSET));
}

/** Lines as records. */
class SealedFraming implements Framing {
  readonly #received = new PmiReceived();
  readonly #sendKey: Uint8Array;
  readonly #receiveKey: Uint8Array;
  #sent = 0;
  #opened = 0;

  constructor(jobKey: Uint8Array, hello: Uint8Array, reply: Uint8Array, isInitiator: boolean) {
    const salt = needModule("crypto").createHash("sha256").update(hello).update(reply).digest();
    const toAcceptor = keyOf(jobKey, salt, "to acceptor");
    const toInitiator = keyOf(jobKey, salt, "to initiator");
    this.#sendKey = isInitiator ? toAcceptor : toInitiator;
    this.#receiveKey = isInitiator ? toInitiator : toAcceptor;
  }

  get length(): number {
    return this.#received.length;
  }

  push(bytes: Uint8Array): void {
    this.#received.push(bytes);
  }

  next(): string | undefined {
    const { view } = this.#received;
    if (view.length < LENGTH_BYTES) return undefined;
    const length = ((view[0] as number) << 8) | (view[1] as number);
    if (length === 0 || length > LINE_MAX) {
      throw new PamiError("PAMIR_KEY", `a sealed line has ${length} bytes, not 1 to ${LINE_MAX}`);
    }
    const end = LENGTH_BYTES + length;
    if (view.length < end + TAG_BYTES) return undefined;
    const decipher = needModule("crypto").createDecipheriv(CIPHER, this.#receiveKey, nonceOf(this.#opened), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(view.subarray(0, LENGTH_BYTES));
    decipher.setAuthTag(view.subarray(end, end + TAG_BYTES));
    const line = decipher.update(view.subarray(LENGTH_BYTES, end));
    try {
      decipher.final();
    } catch {
      throw new PamiError("PAMIR_KEY", `sealed line ${this.#opened} does not open: it was changed, or repeated`);
    }
    this.#opened++;
    this.#received.consume(end + TAG_BYTES);
    return textOf(line);
  }

  frame(line: string): Uint8Array {
    const record = new Uint8Array(LENGTH_BYTES + line.length + TAG_BYTES);
    record[0] = line.length >>> 8;
    record[1] = line.length;
    const cipher = needModule("crypto").createCipheriv(CIPHER, this.#sendKey, nonceOf(this.#sent++), {
      authTagLength: TAG_BYTES,
    });
    cipher.setAAD(record.subarray(0, LENGTH_BYTES));
    record.set(cipher.update(bytesOf(line)), LENGTH_BYTES);
    cipher.final();
    record.set(cipher.getAuthTag(), LENGTH_BYTES + line.length);
    return record;
  }
}

function nonceOf(number: number): Uint8Array {
  const nonce = new Uint8Array(CIPHER_NONCE_BYTES);
  new DataView(nonce.buffer).setBigUint64(CIPHER_NONCE_BYTES - 8, BigInt(number));
  return nonce;
}

/** Bytes that have come before a handshake message is whole; afterwards the stream is paused. */
function readHandshake(stream: Stream, timeout: number): Promise<{ message: Uint8Array; rest: Uint8Array }> {
  return new Promise((resolve, reject) => {
    const received = new PmiReceived();
    const settle = (): void => {
      stop();
      stream.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onError);
      stream.pause();
    };
    const refuse = (why: string, Reason = HandshakeError): void => {
      settle();
      reject(new Reason(why));
    };
    const onData = (bytes: Uint8Array): void => {
      received.push(bytes);
      const known = received.view.subarray(0, MAGIC.length);
      if (!known.every((byte, i) => byte === MAGIC[i])) {
        // Without a key, a process begins with a line of PMI-1.
        const isPlain = String.fromCharCode(...known.subarray(0, 4)) === "cmd=";
        refuse(isPlain ? "it has no job key" : "it sent bytes that are no handshake of a job");
      } else if (received.length >= HANDSHAKE_BYTES) {
        settle();
        const bytes = received.view.slice();
        resolve({ message: bytes.subarray(0, HANDSHAKE_BYTES), rest: bytes.subarray(HANDSHAKE_BYTES) });
      }
    };
    const onEnd = (): void => refuse("it closed the connection during the handshake", ClosedError);
    const onError = (error: Error): void =>
      refuse(`the connection broke during the handshake: ${reasonText(error)}`, ClosedError);
    const stop = after(timeout, () => refuse(`it sent no handshake within ${secondsText(timeout)}`));
    if (stream.destroyed) onEnd();
    else stream.on("data", onData).on("end", onEnd).on("close", onEnd).on("error", onError);
  });
}

/**
 * Proves the job key to the other side of a connection, and checks the other side's proof.
 * @param role the initiator opened the connection
 * @param timeout of each wait, in milliseconds
 * @returns sealed lines, which own the stream. If the promise rejects, the stream is destroyed.
 * @throws HandshakeError: the text says what the other side did
 */
export async function sealLines(
  stream: Stream,
  jobKey: Uint8Array,
  role: "initiator" | "acceptor",
  timeout: number,
): Promise<Lines> {
  // An error between two waits: the next wait sees the stream destroyed.
  const ignore = (): void => {};
  stream.on("error", ignore);
  try {
    let hello: Uint8Array;
    let reply: Uint8Array;
    let rest: Uint8Array;
    if (role === "initiator") {
      hello = handshakeOf(jobKey);
      stream.write(hello);
      ({ message: reply, rest } = await readHandshake(stream, timeout));
      if (!isProved(jobKey, reply, hello)) throw new HandshakeError("it has another job key");
    } else {
      ({ message: hello, rest } = await readHandshake(stream, timeout));
      // An initiator sends nothing before it has the REPLY.
      if (rest.length > 0) throw new HandshakeError("it sent more than a handshake");
      if (!isProved(jobKey, hello)) throw new HandshakeError("it has another job key");
      reply = handshakeOf(jobKey, hello);
      stream.write(reply);
    }
    const framing = new SealedFraming(jobKey, hello, reply, role === "initiator");
    framing.push(rest);
    return new StreamLines(stream, framing);
  } catch (error) {
    stream.destroy();
    throw error;
  }
}
