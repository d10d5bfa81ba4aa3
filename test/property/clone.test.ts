// codecs.clone() against structuredClone(): the same value, with the same objects shared, and the same refusals. And its decoder
// against bytes that no encoder made.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Cloner } from "../../src/core/clone/clone.js";
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
