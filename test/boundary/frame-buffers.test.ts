// Buffers of frames: which are used again, and how many are kept.
import { describe, expect, it } from "vitest";
import { BUFFER_BYTES, FrameBuffers, FrameScratch, LONG_BUFFER_BYTES } from "../../src/transport/net/frame-buffers.js";

describe.each([
  ["short", 1, BUFFER_BYTES],
  ["long", BUFFER_BYTES + 1, LONG_BUFFER_BYTES],
])("%s buffers", (_, least, most) => {
  it("one that was given back is used again, also if a part of it was given", () => {
    const buffers = new FrameBuffers();
    const { buffer, length } = buffers.take(least);
    expect(length).toBe(most);
    buffers.give(new Uint8Array(buffer, 8, 4));
    const again = buffers.take(most);
    expect([again.buffer, again.length]).toEqual([buffer, most]);
    expect(buffers.take(most).buffer).not.toBe(buffer);
  });

  it("others of the same length are not kept", () => {
    const buffers = new FrameBuffers();
    const other = new Uint8Array(most);
    buffers.give(other);
    expect(buffers.take(most).buffer).not.toBe(other.buffer);
  });

  it("as many are kept as 4 MiB take", () => {
    const buffers = new FrameBuffers();
    const taken = Array.from({ length: 100 }, () => buffers.take(most));
    for (const buffer of taken) buffers.give(buffer);
    const known = new Set(taken.map(({ buffer }) => buffer));
    expect(taken.filter(() => known.has(buffers.take(most).buffer)).length).toBe(Math.ceil(2 ** 22 / most));
  });
});

it("longer ones are as long as was asked for, and not kept", () => {
  const buffers = new FrameBuffers();
  const taken = buffers.take(LONG_BUFFER_BYTES + 1);
  expect(taken.length).toBe(LONG_BUFFER_BYTES + 1);
  buffers.give(taken);
  expect(buffers.take(LONG_BUFFER_BYTES + 1).buffer).not.toBe(taken.buffer);
});

describe("scratch", () => {
  it("one run stays where it is, several are put behind each other", () => {
    const scratch = new FrameScratch();
    const runs = [Uint8Array.of(1, 2), new Uint8Array(100_000).fill(3), Uint8Array.of(4)];
    expect(scratch.join(runs.slice(0, 1))).toBe(runs[0]);
    expect(scratch.join(runs)).toEqual(Uint8Array.from(runs.flatMap((run) => [...run])));
    expect(scratch.join([])).toEqual(new Uint8Array(0));
  });

  it("the same memory is taken again, unless more is needed", () => {
    const scratch = new FrameScratch();
    const first = scratch.take(10);
    expect(first.length).toBe(10);
    expect(scratch.take(BUFFER_BYTES).buffer).toBe(first.buffer);
    const longer = scratch.take(BUFFER_BYTES + 1);
    expect(longer.length).toBe(BUFFER_BYTES + 1);
    expect(scratch.take(10).buffer).toBe(longer.buffer);
  });
});
