// Seals of a job key beside those that node:crypto makes by the same standards: what we call HKDF, HMAC and
// ChaCha20-Poly1305 is that.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import { expect, it } from "vitest";
import { PACKET_SIZE, TAG_BYTES } from "../../assembly/layout.js";
import { keyScheduleOf } from "../../src/seal/noble.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const random = randomOf(SEED);
const word = (): number => random(2 ** 32);
const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => random(256));

function little(words: readonly number[]): Buffer {
  const buffer = Buffer.alloc(4 * words.length);
  for (const [i, value] of words.entries()) buffer.writeUInt32LE(value, 4 * i);
  return buffer;
}

/** A key, from what it is for. */
function derived(key: Uint8Array, salt: readonly number[], name: string, words: readonly number[], length: number) {
  const info = Buffer.concat([Buffer.from(`pamir 1 ${name}`), little(words)]);
  return Buffer.from(hkdfSync("sha256", key, little(salt), info, length));
}

function nonce(sent: number): Buffer {
  const buffer = Buffer.alloc(12);
  buffer.writeUInt32LE(sent, 0);
  return buffer;
}

const handshake = () => ({
  origin: word(),
  target: word(),
  originEpoch: word(),
  targetEpoch: word(),
  initiator: word(),
  responder: word(),
  connectNonce: [word(), word(), word(), word()],
  acceptNonce: [word(), word(), word(), word()],
});

it(`D9 the keys of a session are HKDF-SHA-256, its packets ChaCha20-Poly1305 (${replayNote()})`, () => {
  for (const length of [0, 1, 16, 63, 64, 65, 1376, 65464]) {
    const [key, job, sent] = [bytes(32 + random(32)), word(), word()];
    const names = handshake();
    const { origin, target, originEpoch, targetEpoch, initiator, responder, connectNonce, acceptNonce } = names;
    const words = [job, origin, target, originEpoch, targetEpoch, initiator];
    const keys = derived(key, [...connectNonce, ...acceptNonce], "session", [...words, responder], 64);
    const keySchedule = keyScheduleOf(key, job);
    const { toTarget, toOrigin } = keySchedule.session(names);
    const zeroRtt = keySchedule.zeroRtt(names);
    const ofHalf = derived(key, connectNonce, "half", words, 32);
    for (const [seal, own] of [
      [toTarget, keys.subarray(0, 32)],
      [toOrigin, keys.subarray(32)],
      [zeroRtt, ofHalf],
    ] as const) {
      const plain = bytes(PACKET_SIZE + length);
      const packet = Uint8Array.from([...plain, ...Array(TAG_BYTES).fill(0)]);
      seal.seal(packet, PACKET_SIZE, sent);
      const header = plain.subarray(0, PACKET_SIZE);
      const cipher = createCipheriv("chacha20-poly1305", own, nonce(sent), { authTagLength: TAG_BYTES });
      cipher.setAAD(header, { plaintextLength: length });
      const body = Buffer.concat([cipher.update(plain.subarray(PACKET_SIZE)), cipher.final()]);
      expect(Buffer.concat([header, body, cipher.getAuthTag()]).equals(packet)).toBe(true);
      // And the other way round.
      const decipher = createDecipheriv("chacha20-poly1305", own, nonce(sent), { authTagLength: TAG_BYTES });
      decipher.setAAD(header, { plaintextLength: length });
      decipher.setAuthTag(packet.subarray(-TAG_BYTES));
      const opened = Buffer.concat([decipher.update(packet.subarray(PACKET_SIZE, -TAG_BYTES)), decipher.final()]);
      expect(opened.equals(plain.subarray(PACKET_SIZE))).toBe(true);
      expect(seal.open(packet.slice(), PACKET_SIZE, sent ^ 1)).toBe(false);
      expect(seal.open(packet, PACKET_SIZE, sent)).toBe(true);
      expect(Buffer.from(plain).equals(packet.subarray(0, -TAG_BYTES))).toBe(true);
    }
  }
});

it("D9 packets without a session are authenticated by HMAC-SHA-256, and stay readable", () => {
  const [key, job] = [bytes(32), word()];
  const { handshake: seal } = keyScheduleOf(key, job);
  const own = derived(key, [], "handshake", [job], 32);
  for (const length of [24, 64, 80]) {
    const packet = bytes(length + TAG_BYTES);
    const plain = packet.slice(0, length);
    seal.seal(packet, PACKET_SIZE, 1);
    const code = createHmac("sha256", own).update(plain).digest().subarray(0, TAG_BYTES);
    expect(Buffer.concat([plain, code]).equals(packet)).toBe(true);
    expect(seal.open(packet, PACKET_SIZE, 1)).toBe(true);
    packet[random(packet.length)] ^= 1 << random(8);
    expect(seal.open(packet, PACKET_SIZE, 1)).toBe(false);
  }
});

it("D9 whatever keys are made of makes other keys: job key, job, both nodes, epochs, nonces and references", () => {
  const key = bytes(32);
  const names = handshake();
  const packet = bytes(80);
  keyScheduleOf(key, 7).session(names).toTarget.seal(packet, PACKET_SIZE, 1);
  const opens = (own: Uint8Array, job: number, other: typeof names) =>
    keyScheduleOf(own, job).session(other).toTarget.open(packet.slice(), PACKET_SIZE, 1);
  expect(opens(key, 7, names)).toBe(true);
  expect(keyScheduleOf(key, 7).session(names).toOrigin.open(packet.slice(), PACKET_SIZE, 1)).toBe(false);
  expect(opens(key, 8, names)).toBe(false);
  for (let byte = 0; byte < key.length; byte++) {
    expect(
      opens(
        key.map((value, i) => (i === byte ? value ^ 1 : value)),
        7,
        names,
      ),
    ).toBe(false);
  }
  for (const [name, value] of Object.entries(names)) {
    const others =
      typeof value === "number" ? [value ^ 1] : value.map((_, at) => value.map((w, i) => (i === at ? w ^ 1 : w)));
    for (const other of others) expect(opens(key, 7, { ...names, [name]: other }), name).toBe(false);
  }
});

it("D9 a key that is too short is refused, with its length", () => {
  expect(() => keyScheduleOf(bytes(31), 1)).toThrow(new RangeError("a job key has 31 bytes, not 32 or more"));
});
