// Copies by the wasm module and by the twin, against a plain copy: whatever the places and the length.
import fc from "fast-check";
import { expect, it } from "vitest";
import { collectiveRig } from "../support/collective-kernels.js";
import { randomOf } from "../support/random.js";
import { assertProperty } from "../support/seed.js";

const BYTES = 131_072;
const HALF = BYTES / 2;
/** Bytes before the target, at least, that stay as they are. */
const BEFORE = 64;

const cases = fc.record({
  bytes: fc.oneof(fc.nat(200), fc.integer({ min: 900, max: 1200 }), fc.integer({ min: 2000, max: 60_000 })),
  from: fc.integer({ min: 0, max: 1024 }),
  to: fc.integer({ min: BEFORE, max: 1024 }),
  isUpwards: fc.boolean(),
  seed: fc.nat(),
});

it.each(["wasm", "ts"] as const)("%s copies all bytes, and writes no others", (name) => {
  const { kernel, memory } = collectiveRig(name, BYTES);
  const property = fc.property(cases, ({ bytes, from, to, isUpwards, seed }) => {
    const [source, target] = isUpwards ? [from, HALF + to] : [HALF + from, to];
    const random = randomOf(seed);
    for (let at = 0; at < BYTES; at++) memory.bytes[at] = random(256);
    const should = memory.bytes.slice(0, BYTES);
    should.copyWithin(target, source, source + bytes);
    kernel.copyCold(target, source, bytes);
    expect(Buffer.compare(memory.bytes.subarray(0, BYTES), should)).toBe(0);
  });
  assertProperty(property, 50);
});
