// Lines of PMI-1: what is encoded comes back, and whatever comes is a line or a named error.
import fc from "fast-check";
import { expect, it } from "vitest";
import { encodeLine, LINE_MAX, PlainFraming, parseLine } from "../../src/bootstrap/pmi/pmi-wire.js";
import { PamiError } from "../../src/core/error.js";
import { assertProperty } from "../support/seed.js";

const name = fc
  .stringMatching(/^[\w.-]{1,20}$/)
  // Names of a record that are numbers change their order.
  .filter((text) => !/^\d+$/.test(text) && text !== "cmd" && text !== "__proto__");
const value = fc.stringMatching(/^[!-~]{0,60}$/);
const fields = fc.uniqueArray(fc.tuple(name, value), { maxLength: 8, selector: ([key]) => key });
const request = fc.tuple(fc.stringMatching(/^[!-~]{1,20}$/), fields);

/** Feeds bytes in pieces, as a socket may bring them. */
function* pieces(bytes: Uint8Array, lengths: readonly number[]): Generator<Uint8Array> {
  let start = 0;
  for (let i = 0; start < bytes.length; i++) {
    const length = lengths[i % lengths.length] as number;
    yield bytes.subarray(start, start + length);
    start += length;
  }
}

it("each request comes back as it was encoded, however its bytes arrive", () => {
  assertProperty(
    fc.property(
      fc.array(request, { minLength: 1, maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 5 }),
      (requests, lengths) => {
        const sender = new PlainFraming();
        const receiver = new PlainFraming();
        const lines = requests.map(([cmd, pairs]) => encodeLine(cmd, Object.fromEntries(pairs)));
        const bytes = Buffer.concat(lines.map((line) => sender.frame(line)));
        const back: [string, [string, string][]][] = [];
        for (const piece of pieces(bytes, lengths)) {
          receiver.push(piece);
          for (let line = receiver.next(); line !== undefined; line = receiver.next()) {
            const { cmd, fields, isMultiple } = parseLine(line);
            expect(isMultiple).toBe(false);
            back.push([cmd, [...fields]]);
          }
        }
        expect(back).toEqual(requests);
        expect(receiver.length).toBe(0);
      },
    ),
    300,
  );
});

it("random bytes give lines or a PAMIR_PMI, and no more is kept than a line", () => {
  // Bytes that are often those of lines, so that some are.
  const byte = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...Buffer.from("cmd=put key=a value=b m c = ")) },
    { weight: 1, arbitrary: fc.constant(10) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 255 }) },
  );
  const right = fc
    .constantFrom("cmd=a b=c\n", "mcmd=spawn\n", "  cmd=put   value=1 \n")
    .map((text) => [...Buffer.from(text)]);
  const long = fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 1, max: 5000 }));
  let [taken, refused] = [0, 0];
  assertProperty(
    fc.property(
      fc.array(
        fc.oneof(
          fc.array(byte, { maxLength: 100 }),
          right,
          long.map(([one, count]) => Array(count).fill(one) as number[]),
        ),
      ),
      fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 4 }),
      (parts, lengths) => {
        const framing = new PlainFraming();
        for (const piece of pieces(Uint8Array.from(parts.flat()), lengths)) {
          framing.push(piece);
          try {
            for (let line = framing.next(); line !== undefined; line = framing.next()) {
              expect(line.length).toBeLessThanOrEqual(LINE_MAX);
              parseLine(line);
              taken++;
            }
          } catch (error) {
            if (!(error instanceof PamiError) || error.code !== "PAMIR_PMI") throw error;
            expect(error.message.length).toBeLessThan(1000);
            refused++;
            return;
          }
          expect(framing.length).toBeLessThanOrEqual(LINE_MAX);
        }
      },
    ),
    300,
  );
  expect(refused).toBeGreaterThan(10);
  expect(taken).toBeGreaterThan(10);
});
