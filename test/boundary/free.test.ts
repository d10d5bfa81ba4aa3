// Memory that is given back without the garbage collector: only that of a long array which has it for itself.
import { describe, expect, it } from "vitest";
import { free } from "../../src/support/free.js";

describe("free()", () => {
  it.each([4096, 65_536])("detaches an array of %i bytes that has its memory for itself", (bytes) => {
    const array = new Uint8Array(bytes);
    free(array);
    expect([array.length, array.buffer.byteLength]).toEqual([0, 0]);
  });

  const whole = new ArrayBuffer(20_000);
  it.each([
    ["a short one", new Uint8Array(4095)],
    ["a part of one, at its begin", new Uint8Array(whole, 0, 19_999)],
    ["a part of one, at its end", new Uint8Array(whole, 1)],
    ["one in shared memory", new Uint8Array(new SharedArrayBuffer(20_000))],
    ["Node's own, of a pool", Buffer.allocUnsafe(4000)],
  ])("leaves %s alone", (_, array) => {
    const { length, byteOffset } = array;
    array[length - 1] = 7;
    free(array);
    expect([array.length, array.byteOffset, array[length - 1]]).toEqual([length, byteOffset, 7]);
  });

  it("does nothing to one that is detached already", () => {
    const array = new Uint8Array(8192);
    free(array);
    free(array);
    expect(array.length).toBe(0);
  });
});
