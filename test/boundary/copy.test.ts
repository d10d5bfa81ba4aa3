// Copies between ordinary and shared memory: all bytes and no others, however the places are aligned, by either way of V8 or Node.
import { expect, it } from "vitest";
import { copyInto } from "../../src/support/copy.js";

const BYTES = 2048;
const MARGIN = 16;

const ordinary = (bytes: number): Uint8Array => new Uint8Array(bytes);
const shared = (bytes: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(bytes));

it.each([
  ["ordinary", "shared", ordinary, shared],
  ["shared", "ordinary", shared, ordinary],
  ["shared", "shared", shared, shared],
  ["ordinary", "ordinary", ordinary, ordinary],
])("from %s to %s memory", (_, __, makeSource, makeTarget) => {
  const all = makeSource(BYTES + MARGIN);
  for (let i = 0; i < all.length; i++) all[i] = 1 + (i % 251);
  for (const length of [0, 1, 8, 383, 384, 385, 1399, 1400, 1401, BYTES]) {
    for (const [from, base, offset] of [
      [0, 0, 8],
      [1, 0, 8],
      [0, 3, 8],
      [5, 3, 2],
      [7, 0, 3],
    ] as const) {
      const memory = makeTarget(BYTES + 2 * MARGIN);
      const source = all.subarray(from, from + length);
      copyInto(memory.subarray(base), offset, source);
      const should = new Uint8Array(memory.length);
      should.set(source, base + offset);
      expect(Buffer.compare(memory, should), `${length} bytes from ${from} to ${base} + ${offset}`).toBe(0);
    }
  }
});
