// recycle(): memory that a program gives back is that of later values, and no view ever sees another value's bytes.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { codecs, recycle } from "pamir";
import { describe, expect, it } from "vitest";

const codec = codecs.clone<Uint8Array>();
const copyOf = (bytes: Uint8Array): Uint8Array => codec.decode(codec.encode(bytes).slice());
const filled = (count: number, byte: number): Uint8Array => new Uint8Array(count).fill(byte);
const MIB = 2 ** 20;

describe("recycle()", () => {
  it("detaches what it is given; the next value of as many bytes has that memory, and its own bytes", () => {
    // By turns with a value of another size, which has other memory.
    const [first, other] = [copyOf(filled(MIB, 1)), copyOf(filled(MIB + 8, 2))];
    const view = new Uint16Array(first.buffer, 2, 4);
    recycle(view);
    expect([first.length, view.length]).toEqual([0, 0]);
    const again = copyOf(filled(MIB, 3));
    expect([again.length, again[0], again[MIB - 1]]).toEqual([MIB, 3, 3]);
    expect([first.length, view.length, other[0]]).toEqual([0, 0, 2]);
    recycle(again.buffer);
    expect(again.length).toBe(0);
  });

  it("takes no new memory for values that come and are given back", () => {
    const bytes = codec.encode(filled(MIB, 7)).slice();
    recycle(codec.decode(bytes));
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 20; i++) {
      const copy = codec.decode(bytes);
      expect(copy[MIB - 1]).toBe(7);
      recycle(copy);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * MIB);
  });

  it("keeps at most 64 MiB", () => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    // V8 frees the memory of earlier tests in another thread, behind the collection.
    const collect = (): void => {
      let left = Number.POSITIVE_INFINITY;
      for (let before = 0; left !== before; ) {
        before = left;
        gc();
        gc();
        left = process.memoryUsage().arrayBuffers;
      }
    };
    collect();
    const start = process.memoryUsage().arrayBuffers;
    recycle(filled(64 * MIB, 1));
    recycle(filled(65 * MIB, 1));
    collect();
    const before = process.memoryUsage().arrayBuffers;
    expect(before - start).toBeGreaterThan(32 * MIB);
    for (let i = 0; i < 40; i++) recycle(filled(2 * MIB, i));
    collect();
    // 80 MiB were given back, 64 are there as before, or less.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThanOrEqual(0);
  });

  it.each<[string, () => unknown]>([
    ["shared memory", () => new SharedArrayBuffer(MIB)],
    ["a view of shared memory", () => new Uint8Array(new SharedArrayBuffer(MIB))],
    ["memory of WebAssembly", () => new WebAssembly.Memory({ initial: 1 }).buffer],
    ["a small Buffer of Node", () => Buffer.from("a")],
    ["a number", () => 5],
    ["null", () => null],
    ["a port", () => new MessageChannel().port1],
    [
      "what was given before",
      () => {
        const bytes = filled(MIB, 1);
        recycle(bytes);
        return bytes;
      },
    ],
  ])("refuses %s", (_, make) => {
    expect(() => recycle(make() as ArrayBuffer)).toThrow(
      expect.objectContaining({
        code: "PAMIR_INVAL",
        message: expect.stringMatching(
          /^recycle\(\) takes an ArrayBuffer that can be detached, or a view of one, not /,
        ),
      }),
    );
  });
});
