// codecs.clone() against structuredClone(): the same value, with the same objects shared, and the same refusals. And its decoder
// against bytes that no encoder made.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Cloner, type Parts } from "../../src/core/clone/clone.js";
import { stringsByBuffer, stringsByText } from "../../src/core/clone/strings.js";
import type { PamiError } from "../../src/core/error.js";
import { anything, areAlike, text } from "../support/any-value.js";
import { scaled } from "../support/effort.js";
import { SEED } from "../support/seed.js";

const cloners = [
  ["Buffer", new Cloner(stringsByBuffer())],
  ["TextEncoder", new Cloner(stringsByText())],
] as const;

describe.each(cloners)("codecs.clone() by %s", (_, cloner) => {
  const parameters = { seed: SEED, numRuns: scaled(600) };

  it("gives what structuredClone() gives, and shares the same objects", () => {
    fc.assert(
      fc.property(anything, (value) => {
        const copy = cloner.decode(cloner.encode(value));
        const expected: unknown = structuredClone(value);
        if (!areAlike(expected, copy)) expect(copy).toStrictEqual(expected);
        expect(areAlike(expected, copy)).toBe(true);
      }),
      parameters,
    );
  });

  it("encodes what it has decoded into the same bytes", () => {
    fc.assert(
      fc.property(anything, (value) => {
        const encoded = cloner.encode(value);
        expect(Buffer.compare(cloner.encode(cloner.decode(encoded)), encoded)).toBe(0);
      }),
      parameters,
    );
  });

  it("reads what the other one has written, also from shared memory", () => {
    const [[, one], [, two]] = cloners;
    const other = cloner === one ? two : one;
    fc.assert(
      fc.property(text, text, (first, second) => {
        const encoded = other.encode([first, { [second]: first }]);
        const shared = new Uint8Array(new SharedArrayBuffer(encoded.length + 1)).subarray(1);
        shared.set(encoded);
        expect(cloner.decode(shared)).toStrictEqual([first, { [second]: first }]);
      }),
      parameters,
    );
  });

  it("leaves the bytes of one large ArrayBuffer out, where it may, and takes them back", () => {
    const bytes = fc.integer({ min: 16_000, max: 17_000 }).map((count) => new Uint8Array(count).fill(count));
    const large = bytes.chain((all) =>
      fc.constantFrom<unknown>(all, all.buffer, new Float32Array(all.buffer, 4, 3999), new DataView(all.buffer, 1)),
    );
    const values = fc.tuple(anything, fc.array(large, { minLength: 1, maxLength: 3 }), anything, fc.boolean());
    fc.assert(
      fc.property(values, ([before, all, after, twice]) => {
        const value = [before, ...all, after, twice ? all[0] : undefined];
        const parts: Parts = { body: undefined };
        const head = cloner.encode(value, parts);
        const { body } = parts;
        if (body !== undefined) {
          expect(body.length).toBeGreaterThanOrEqual(16_384);
          // Padding differs where what is left out does not come before.
          expect(head.length).toBeLessThanOrEqual(1024);
        }
        // Fresh bytes: the codec's are overwritten by now.
        const again = cloner.encode(value, { body: undefined }).slice();
        const shared = body && new Uint8Array(new SharedArrayBuffer(body.length));
        shared?.set(body as Uint8Array);
        const copy = cloner.decode(again, shared);
        const expected: unknown = structuredClone(value);
        if (!areAlike(expected, copy)) expect(copy).toStrictEqual(expected);
        expect(areAlike(expected, copy)).toBe(true);
        if (body === undefined) return;
        const bodies = [undefined, body.subarray(1), new Uint8Array(body.length + 1)];
        for (const other of bodies) expect(() => cloner.decode(again, other)).toThrow(/a body of \d+ bytes, where/);
        expect(() => cloner.decode(cloner.encode(before), body)).toThrow(/a body that no ArrayBuffer has/);
      }),
      parameters,
    );
  });

  it("asks each getter of a value once, also of one with two large ArrayBuffers, or with much beside one", () => {
    const large = (byte: number): Uint8Array => new Uint8Array(20_003).fill(byte);
    const values: [name: string, value: () => object, isApart: boolean][] = [
      ["one", () => ({ one: large(1) }), true],
      ["two", () => ({ one: large(1), small: new Float64Array(9), two: large(2).buffer }), false],
      [
        "much beside one",
        () => ({ text: "a".repeat(500), one: large(1), rest: ["ü".repeat(901), new Uint16Array(99)] }),
        false,
      ],
      ["three, and bytes before", () => ({ bytes: new Uint8Array(1021), all: [large(1), large(2), large(3)] }), false],
    ];
    for (const [name, make, isApart] of values) {
      let asked = 0;
      const value = Object.defineProperty(make(), "last", { get: () => ++asked, enumerable: true });
      const parts: Parts = { body: undefined };
      const bytes = cloner.encode(value, parts).slice();
      expect([name, asked, parts.body !== undefined]).toEqual([name, 1, isApart]);
      expect([name, cloner.decode(bytes, parts.body)]).toStrictEqual([name, { ...make(), last: 1 }]);
      if (isApart) continue;
      expect(() => cloner.decode(bytes.subarray(0, -1))).toThrow(/no clone of a value/);
      expect(() => cloner.decode(bytes, large(1))).toThrow(/no clone of a value/);
    }
  });

  it("refuses bytes that are bent or cut, or takes them for another value, and throws nothing else", () => {
    const bent = fc.tuple(anything, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.nat(3));
    fc.assert(
      fc.property(fc.oneof(bent, fc.uint8Array({ maxLength: 200 })), (drawn) => {
        let hostile: Uint8Array;
        if (drawn instanceof Uint8Array) hostile = drawn;
        else {
          const [value, changes, cut] = drawn;
          hostile = cloner.encode(value).slice();
          for (const [at, byte] of changes) hostile[at % hostile.length] = byte;
          if (cut === 0) hostile = hostile.subarray(0, hostile.length >> 1);
        }
        try {
          cloner.decode(hostile);
        } catch (error) {
          expect((error as PamiError).code).toBe("PAMIR_CLONE");
        }
      }),
      parameters,
    );
  });
});
