// Buffers of frames: which are used again, and how many are kept.
import { describe, expect, it } from "vitest";
import { BUFFER_BYTES, FrameBuffers, LONG_BUFFER_BYTES } from "../../src/transport/net/frame-buffers.js";

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

  it("no more than 16 are kept", () => {
    const buffers = new FrameBuffers();
    const taken = Array.from({ length: 20 }, () => buffers.take(most));
    for (const buffer of taken) buffers.give(buffer);
    const known = new Set(taken.map(({ buffer }) => buffer));
    expect(taken.filter(() => known.has(buffers.take(most).buffer)).length).toBe(16);
  });
});

it("longer ones are as long as was asked for, and not kept", () => {
  const buffers = new FrameBuffers();
  const taken = buffers.take(LONG_BUFFER_BYTES + 1);
  expect(taken.length).toBe(LONG_BUFFER_BYTES + 1);
  buffers.give(taken);
  expect(buffers.take(LONG_BUFFER_BYTES + 1).buffer).not.toBe(taken.buffer);
});
