// Positions that wrap at 2^32: named rows.
import { expect, it } from "vitest";
import { alignUp, seqAdd, seqDelta } from "../../assembly/seq.js";

it.each([
  ["equal", 0, 0, 0],
  ["one granule ahead", 16, 0, 16],
  ["one granule behind", 0, 16, -16],
  ["across the wrap, ahead", 16, 2 ** 32 - 16, 32],
  ["across the wrap, behind", 2 ** 32 - 16, 16, -32],
  ["across 2^31, ahead", 2 ** 31, 2 ** 31 - 16, 16],
  ["across 2^31, behind", 2 ** 31 - 16, 2 ** 31, -16],
  ["as far ahead as may be", 2 ** 31 - 1, 0, 2 ** 31 - 1],
  ["as far ahead as may be, across the wrap", 2 ** 31 - 17, 2 ** 32 - 16, 2 ** 31 - 1],
  ["2^31 apart: reads as behind", 2 ** 31, 0, -(2 ** 31)],
  ["the last position and the first", 0, 2 ** 32 - 1, 1],
  ["a position read from an Int32Array", -16, -32, 16],
  ["a signed and an unsigned one", 0, -16, 16],
])("seqDelta: %s", (_, a, b, delta) => {
  expect(seqDelta(a, b)).toBe(delta);
});

it.each([
  ["nothing", 0, 0, 0],
  ["in the middle", 1000, 24, 1024],
  ["across 2^31", 2 ** 31 - 16, 32, 2 ** 31 + 16],
  ["to the wrap", 2 ** 32 - 16, 16, 0],
  ["across the wrap", 2 ** 32 - 16, 48, 32],
  ["the longest step", 2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 2],
])("seqAdd: %s", (_, a, bytes, sum) => {
  expect(seqAdd(a, bytes)).toBe(sum);
  expect(seqDelta(sum, a)).toBe(bytes | 0);
});

it.each([
  [0, 16, 0],
  [1, 16, 16],
  [15, 16, 16],
  [16, 16, 16],
  [17, 16, 32],
  [5, 1, 5],
  [4097, 4096, 8192],
  [2 ** 31 - 1, 16, 2 ** 31],
  [2 ** 31 + 1, 4096, 2 ** 31 + 4096],
  [2 ** 32 - 17, 16, 2 ** 32 - 16],
  [2 ** 32 - 15, 16, 0],
])("alignUp(%d, %d) is %d", (bytes, unit, aligned) => {
  expect(alignUp(bytes, unit)).toBe(aligned);
});
