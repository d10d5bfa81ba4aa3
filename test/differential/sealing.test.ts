// Seals of a job key beside those that node:crypto makes by the same standards: what we call HKDF, HMAC and
// ChaCha20-Poly1305 is that. And the two libraries that seal beside each other.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import { createRequire } from "node:module";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PACKET_DATA, PACKET_SIZE, TAG_BYTES } from "../../assembly/layout.js";
import { SealedMessages } from "../../src/bootstrap/nats/sealed-messages.js";
import { byKoffi } from "../../src/process/ffi.js";
import { NOBLE, keyScheduleOf as nobleKeyScheduleOf } from "../../src/seal/noble.js";
import { nodeAlgorithms, nodeKeyScheduleOf } from "../../src/seal/node.js";
import { opensslAead, opensslKeyScheduleOf } from "../../src/seal/openssl.js";
import { selectKeySchedule } from "../../src/seal/select.js";
import { type KeySchedule, type Seal, sealInto } from "../../src/session/wire/key-schedule.js";
import { Packet } from "../../src/session/wire/packet.js";
import { bytesFrom } from "../support/bytes.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const random = randomOf(SEED);
const word = (): number => random(2 ** 32);
const bytes = (count: number): Uint8Array => bytesFrom(count, () => random(256));

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

const LIBRARY = byKoffi(createRequire(import.meta.url).resolve("koffi"));

const ALL = [
  { library: "noble", keyScheduleOf: nobleKeyScheduleOf },
  {
    library: "node:crypto",
    keyScheduleOf: (key: Uint8Array, job: number) => nodeKeyScheduleOf(key, job) as KeySchedule,
  },
  {
    library: "OpenSSL",
    keyScheduleOf: (key: Uint8Array, job: number) => opensslKeyScheduleOf(key, job, LIBRARY),
  },
];

describe.each(ALL)("$library", ({ keyScheduleOf }) => {
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

  it(`D9 a packet is sealed from its own buffer, which stays as it was for another transmission (${replayNote()})`, () => {
    const [key, names] = [bytes(32), handshake()];
    const { toTarget, toOrigin } = keyScheduleOf(key, 7).session(names);
    const otherKey = keyScheduleOf(bytes(32), 7).session(names).toTarget;
    const { handshake: mac } = keyScheduleOf(key, 7);
    // As many packets by turns as are on their way: each has a buffer of its own.
    const packets = Array.from({ length: 20 }, () => new Packet(65_504 - TAG_BYTES).begin(PACKET_DATA, 7));
    const buffer = new Uint8Array(65_504 + 8);
    for (const [i, packet] of packets.entries()) {
      for (let words = i === 0 ? 16_366 : random(400); words > 0; words--) packet.word(word());
      const plain = packet.written.slice(PACKET_SIZE);
      const sealedAs = (seal: Seal, sent: number): Uint8Array => {
        packet.address(1, sent, i);
        const before = packet.bytes.slice();
        // At a place of its own, as behind an acknowledgment.
        const into = buffer.fill(0xaa).subarray(8, 8 + packet.length + TAG_BYTES);
        sealInto(into, packet, seal);
        expect(packet.bytes.every((byte, at) => byte === before[at])).toBe(true);
        expect(buffer.subarray(0, 8).every((byte) => byte === 0xaa)).toBe(true);
        expect(buffer.subarray(8 + into.length).every((byte) => byte === 0xaa)).toBe(true);
        return into.slice();
      };
      const [first, again] = [sealedAs(toTarget, 1 + i), sealedAs(toTarget, 1001 + i)];
      // What seal() makes of the same packet in place.
      const inPlace = Uint8Array.from([...first.subarray(0, PACKET_SIZE), ...plain, ...Array(TAG_BYTES).fill(0)]);
      toTarget.seal(inPlace, PACKET_SIZE, 1 + i);
      expect(Buffer.from(first).equals(inPlace)).toBe(true);
      const opened = (sealed: Uint8Array, seal: Seal, sent: number): Uint8Array | undefined => {
        const copy = sealed.slice();
        return seal.open(copy, PACKET_SIZE, sent) ? copy.subarray(PACKET_SIZE, -TAG_BYTES) : undefined;
      };
      for (const [sealed, sent] of [[first, 1 + i] as const, [again, 1001 + i] as const]) {
        expect(Buffer.from(opened(sealed, toTarget, sent) ?? []).equals(plain)).toBe(true);
        expect([toOrigin, otherKey].map((seal) => opened(sealed, seal, sent))).toEqual([undefined, undefined]);
        // As another transmission, or with a bit of header, body or tag changed.
        expect(opened(sealed, toTarget, sent + 5000)).toBeUndefined();
        for (const at of [random(PACKET_SIZE), sealed.length - 1 - random(TAG_BYTES), random(sealed.length)]) {
          const bent = sealed.slice();
          bent[at] = (bent[at] as number) ^ (1 << random(8));
          expect(opened(bent, toTarget, sent)).toBeUndefined();
        }
      }
      if (plain.length >= 16) expect(again.slice(PACKET_SIZE)).not.toEqual(first.slice(PACKET_SIZE));
      const readable = sealedAs(mac, 1);
      expect(Buffer.from(readable.subarray(PACKET_SIZE, -TAG_BYTES)).equals(plain)).toBe(true);
      expect([mac, otherKey].map((seal) => opened(readable, seal, 1) !== undefined)).toEqual([true, false]);
    }
  });

  it("D9 a key that is too short is refused, with its length", () => {
    expect(() => keyScheduleOf(bytes(31), 1)).toThrow(new RangeError("a job key has 31 bytes, not 32 or more"));
  });
});

describe("all libraries", () => {
  it(`D9 seal with the same bytes, and each opens what the other has sealed (${replayNote()})`, () => {
    for (let round = 0; round < scaled(200); round++) {
      const [key, job, names] = [bytes(32), word(), handshake()];
      const schedules = ALL.map(({ keyScheduleOf }) => keyScheduleOf(key, job));
      for (const of of [
        (schedule: KeySchedule) => schedule.handshake,
        (schedule: KeySchedule) => schedule.session(names).toTarget,
        (schedule: KeySchedule) => schedule.session(names).toOrigin,
        (schedule: KeySchedule) => schedule.zeroRtt(names),
      ]) {
        const seals = schedules.map(of);
        const [length, sent] = [PACKET_SIZE + random(random(4) === 0 ? 5000 : 80) + TAG_BYTES, word()];
        const plain = bytes(length);
        const sealed = seals.map((seal) => {
          const packet = plain.slice();
          seal.seal(packet, PACKET_SIZE, sent);
          return packet;
        });
        const [first] = sealed as [Uint8Array];
        for (const packet of sealed) expect(packet).toEqual(first);
        const forged = first.slice();
        forged[random(length)] ^= 1 << random(8);
        for (const seal of seals) {
          expect(seal.open(forged.slice(), PACKET_SIZE, sent)).toBe(false);
          // In shared memory, behind other bytes, as packets that come are.
          const shared = new Uint8Array(new SharedArrayBuffer(length + 8), 8);
          for (const packet of [first.slice(), shared]) {
            packet.set(first);
            expect(seal.open(packet, PACKET_SIZE, sent)).toBe(true);
            expect(new Uint8Array(packet).subarray(0, -TAG_BYTES)).toEqual(plain.subarray(0, -TAG_BYTES));
          }
        }
      }
    }
  });

  it("do not open what is no whole packet", () => {
    for (const { keyScheduleOf } of ALL) {
      const { handshake: mac, session } = keyScheduleOf(bytes(32), 1);
      for (const length of [0, 1, 15, 16, 24, 39, 40]) {
        expect(mac.open(bytes(length), PACKET_SIZE, 1)).toBe(false);
        expect(session(handshake()).toTarget.open(bytes(length), PACKET_SIZE, 1)).toBe(false);
      }
    }
  });
});

describe("OpenSSL", () => {
  it("is there, by koffi: the tests above are of it", () => {
    const seal = opensslAead(LIBRARY)(bytes(32));
    const packet = bytes(80);
    seal.seal(packet, PACKET_SIZE, 1);
    expect(seal.open(packet, PACKET_SIZE, 1)).toBe(true);
  });

  it.each(["EVP_CIPHER_fetch", "EVP_CIPHER_CTX_new", "EVP_CipherInit_ex"])(
    "is not used without a working %s: node:crypto seals",
    (name) => {
      const [key, names] = [bytes(32), handshake()];
      const missing = () => {
        throw new Error("no such function");
      };
      for (const func of [missing, () => () => 0]) {
        const library = {
          ...LIBRARY,
          func: (...of: Parameters<typeof LIBRARY.func>) => (of[0] === name ? func() : LIBRARY.func(...of)),
        };
        expect(() => opensslAead(library)).toThrow();
        const [node, without] = [nodeKeyScheduleOf(key, 7), opensslKeyScheduleOf(key, 7, library)];
        const packet = bytes(80);
        without.session(names).toTarget.seal(packet, PACKET_SIZE, 1);
        expect(node.session(names).toTarget.open(packet, PACKET_SIZE, 1)).toBe(true);
      }
    },
  );

  it("is not used if it seals with other bytes", () => {
    const [key, names] = [bytes(32), handshake()];
    // Each key is another one there.
    const other = bytes(32).buffer;
    const addressOf = (buffer: ArrayBufferLike) => LIBRARY.addressOf(buffer.byteLength === 32 ? other : buffer);
    const library = { ...LIBRARY, addressOf };
    const [node, without] = [nodeKeyScheduleOf(key, 7), opensslKeyScheduleOf(key, 7, library)];
    const packet = bytes(80);
    without.session(names).toTarget.seal(packet, PACKET_SIZE, 1);
    expect(node.session(names).toTarget.open(packet, PACKET_SIZE, 1)).toBe(true);
  });
});

describe("selectKeySchedule()", () => {
  afterEach(() => void vi.restoreAllMocks());

  const opens = (sealing: KeySchedule, opening: KeySchedule): boolean => {
    const packet = bytes(80);
    const names = handshake();
    sealing.session(names).toTarget.seal(packet, PACKET_SIZE, 1);
    return opening.session(names).toTarget.open(packet, PACKET_SIZE, 1);
  };

  it("works with and without node:crypto", async () => {
    const key = bytes(32);
    const withNode = await selectKeySchedule(key, 7);
    const original = process.getBuiltinModule;
    vi.spyOn(process, "getBuiltinModule").mockImplementation(((id: string) =>
      id === "node:crypto" ? undefined : original(id)) as typeof original);
    expect(() => nodeKeyScheduleOf(key, 7)).toThrow("this host has no node:crypto with ChaCha20-Poly1305");
    const withNoble = await selectKeySchedule(key, 7);
    expect([opens(withNode, withNoble), opens(withNoble, withNode)]).toEqual([true, true]);
  });

  it.each(["createCipheriv", "createHmac", "hkdfSync"])("uses noble where node:crypto forbids %s", async (name) => {
    const original = process.getBuiltinModule;
    const forbidden = {
      [name]: () => {
        throw new Error("digital envelope routines::unsupported");
      },
    };
    vi.spyOn(process, "getBuiltinModule").mockImplementation(((id: string) =>
      id === "node:crypto" ? { ...original(id), ...forbidden } : original(id)) as typeof original);
    const key = bytes(32);
    expect(() => nodeKeyScheduleOf(key, 7)).toThrow("this host has no node:crypto with ChaCha20-Poly1305");
    expect(opens(await selectKeySchedule(key, 7), nobleKeyScheduleOf(key, 7))).toBe(true);
  });
});

it(`messages of a meeting: each library opens those of the other, of the same key and job alone (${replayNote()})`, () => {
  for (let i = 0; i < scaled(20); i++) {
    const [key, other] = [bytes(32), bytes(32)];
    const [page, node] = [NOBLE, nodeAlgorithms()].map((algorithms) => new SealedMessages(key, "job", algorithms)) as [
      SealedMessages,
      SealedMessages,
    ];
    const said = { text: "é".repeat(random(200)), node: random(1000) };
    expect(page.fingerprint).toBe(node.fingerprint);
    for (const [from, to] of [
      [page, node],
      [node, page],
    ] as const) {
      const sealed = from.seal(said);
      expect(to.open(sealed)).toEqual(said);
      expect(new SealedMessages(key, "jobs").open(sealed)).toBeUndefined();
      expect(new SealedMessages(other, "job").open(sealed)).toBeUndefined();
      const at = random(sealed.length);
      expect(to.open(sealed.map((byte, one) => (one === at ? byte ^ (1 << random(8)) : byte)))).toBeUndefined();
      expect(to.open(sealed.subarray(0, at))).toBeUndefined();
    }
    expect(new SealedMessages(other, "job").fingerprint).not.toBe(page.fingerprint);
  }
});
