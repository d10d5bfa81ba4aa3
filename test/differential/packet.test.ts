// Packets that are cut, flipped, spliced and made up: wasm and twin find the same rule broken, and what they take is whole.
import { expect, it } from "vitest";
import { PACKET_DATA, PACKET_LENGTH_OFFSET, PACKET_RIGHT, PACKET_SIZE, SEGMENT_SIZE } from "../../assembly/layout.js";
import { makeRig } from "../support/kernels.js";
import { JOB, packetOf, RIGHT, segmentsOf } from "../support/packets.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const PACKETS = 100_000;

/** Bytes that a hostile sender might put together. */
function anyPacket(random: (below: number) => number): Uint8Array {
  const kinds = Object.values(RIGHT);
  const contents = Array.from({ length: 1 + random(4) }, () => ({
    content: Array(random(40)).fill(7),
    kind: 1 + random(15),
  }));
  const data = (): DataView =>
    packetOf({ kind: PACKET_DATA, body: segmentsOf(...contents), sealed: random(2) === 0, extension: 4 * random(3) });
  const whole = random(2) === 0 ? data() : (kinds[random(kinds.length)] as () => DataView)();
  let bytes = new Uint8Array(whole.buffer);
  if (random(4) === 0) bytes = bytes.slice(0, random(bytes.length + 1));
  if (random(8) === 0) bytes = Uint8Array.from([...bytes, ...Array(random(64)).fill(random(256))]);
  // With lengths that agree, so that what is behind them is looked at.
  if (random(2) === 0 && bytes.length >= PACKET_SIZE)
    new DataView(bytes.buffer).setUint16(PACKET_LENGTH_OFFSET, bytes.length, true);
  for (let flips = random(4); flips > 0 && bytes.length > 0; flips--) {
    const at = random(bytes.length);
    bytes[at] = random(2) === 0 ? (bytes[at] as number) ^ (1 << random(8)) : random(256);
  }
  return bytes;
}

/** Whether the segments of a data packet lie in its body one behind the other: slowly, by what the picture says. */
function isWhole(bytes: Uint8Array): boolean {
  const packet = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  // Of a sealed one nothing is said before it is opened.
  if (packet.getUint8(2) !== PACKET_DATA || packet.getUint8(3) % 2 === 1) return true;
  const end = bytes.length;
  let at = packet.getUint16(6, true);
  while (at < end) at += SEGMENT_SIZE + Math.ceil(packet.getUint16(at + 12, true) / 4) * 4;
  return at === end;
}

it(`packets of any sort: the same rule, and nothing that is taken points out of itself, ${replayNote()}`, () => {
  const rigs = [
    makeRig({ producer: "wasm", heapBytes: 32 * 4096 }),
    makeRig({ producer: "twin", slot: 1, heapBytes: 32 * 4096 }),
  ];
  const random = randomOf(SEED);
  const counts = new Map<number, number>();
  for (let i = 0; i < PACKETS; i++) {
    const bytes = anyPacket(random);
    const [wasm, twin] = rigs.map((rig) => {
      rig.write(rig.map.heapBase, bytes);
      return rig.producer.packetCheck(rig.map.heapBase, bytes.length, JOB);
    }) as [number, number];
    if (wasm !== twin || (wasm === PACKET_RIGHT && !isWhole(bytes)))
      throw new Error(`wasm ${wasm}, twin ${twin} for ${Buffer.from(bytes).toString("hex")}, ${replayNote()}`);
    counts.set(wasm, (counts.get(wasm) ?? 0) + 1);
  }
  // Each rule was broken, and often none was.
  expect([...counts.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, rule) => rule));
  expect(counts.get(PACKET_RIGHT)).toBeGreaterThan(PACKETS / 20);
});
