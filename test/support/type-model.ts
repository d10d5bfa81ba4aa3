// Descriptions of transfer types, what they are to mean, byte by byte, and random ones.
import fc from "fast-check";
import type { TransferType } from "../../src/core/transfer-type.js";

/** One call of a type's `add…` methods. */
export type Part =
  | {
      readonly add: "simple";
      readonly bytes: number;
      readonly offset: number;
      readonly count: number;
      readonly gap: number;
    }
  | {
      readonly add: "typed";
      readonly type: Description;
      readonly offset: number;
      readonly count: number;
      readonly gap: number;
    }
  | { readonly add: "indexed"; readonly bytes: number; readonly gaps: readonly number[] }
  | {
      readonly add: "struct";
      readonly fields: readonly { readonly bytes: number; readonly gap: number; readonly count: number }[];
    }
  | { readonly add: "subarray"; readonly dimensions: readonly Dimension[]; readonly bytes: number };

interface Dimension {
  readonly before: number;
  readonly size: number;
  readonly behind: number;
}

export interface Description {
  readonly parts: readonly Part[];
  /** Bytes behind the span that belong to the extent. */
  readonly slack: number;
}

/** Offsets of the data's bytes of one element, in the order in which they are packed. */
export function offsetsOf({ parts }: Description): number[] {
  return parts.flatMap((part) => offsetsOfPart(part));
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const block = (offset: number, bytes: number): number[] => range(bytes).map((i) => offset + i);

export function spanOf(description: Description): number {
  return offsetsOf(description).reduce((most, offset) => Math.max(most, offset + 1), 0);
}

export function extentOf(description: Description): number {
  return spanOf(description) + description.slack;
}

/** Where each block of an indexed part begins. */
function indexes({ bytes, gaps }: Extract<Part, { add: "indexed" }>): number[] {
  let at = 0;
  return gaps.map((gap) => {
    const offset = at + gap;
    at = offset + bytes;
    return offset;
  });
}

/** Where each field of a struct begins. */
function places({ fields }: Extract<Part, { add: "struct" }>): number[] {
  let at = 0;
  return fields.map(({ bytes, gap, count }) => {
    const offset = at + gap;
    at = offset + bytes * count;
    return offset;
  });
}

function offsetsOfPart(part: Part): number[] {
  switch (part.add) {
    case "simple":
      return range(part.count).flatMap((i) => block(part.offset + i * (part.bytes + part.gap), part.bytes));
    case "typed": {
      const [own, stride] = [offsetsOf(part.type), extentOf(part.type) + part.gap];
      return range(part.count).flatMap((i) => own.map((offset) => part.offset + i * stride + offset));
    }
    case "indexed":
      return indexes(part).flatMap((offset) => block(offset, part.bytes));
    case "struct":
      return places(part).flatMap((offset, i) => {
        const { bytes, count } = part.fields[i] as { bytes: number; count: number };
        return block(offset, bytes * count);
      });
    case "subarray": {
      let offsets = block(0, part.bytes);
      let row = part.bytes;
      for (const { before, size, behind } of part.dimensions.toReversed()) {
        const width = row;
        offsets = range(size).flatMap((i) => offsets.map((offset) => (before + i) * width + offset));
        row *= before + size + behind;
      }
      return offsets;
    }
  }
}

/** Describes it to pamir. */
export function describeTo(make: () => TransferType, { parts, slack }: Description): TransferType {
  const type = make();
  for (const part of parts) {
    if (part.add === "simple") type.addSimple(part.bytes, part.offset, part.count, part.bytes + part.gap);
    else if (part.add === "typed") {
      const inner = describeTo(make, part.type);
      type.addTyped(inner, part.offset, part.count, extentOf(part.type) + part.gap);
      inner.close();
    } else if (part.add === "indexed") type.addIndexed(part.bytes, indexes(part));
    else if (part.add === "struct") {
      const offsets = places(part);
      type.addStruct(part.fields.map(({ bytes, count }, i) => ({ offset: offsets[i] as number, bytes, count })));
    } else {
      const sizes = part.dimensions.map(({ before, size, behind }) => before + size + behind);
      type.addSubarray(
        sizes,
        part.dimensions.map(({ size }) => size),
        part.dimensions.map(({ before }) => before),
        part.bytes,
      );
    }
  }
  return type.complete({ extent: spanOf({ parts, slack }) + slack });
}

const blockBytes = fc.oneof(fc.constantFrom(1, 2, 4, 8, 16), fc.integer({ min: 1, max: 40 }));
/** Multiples of 4 more often: the twin has a way of its own for them. */
const gap = fc.oneof(fc.constantFrom(0, 4, 8, 16), fc.integer({ min: 0, max: 30 }));
const simplePart = fc.record({
  add: fc.constant("simple" as const),
  bytes: blockBytes,
  offset: gap,
  count: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 16, max: 40 })),
  gap,
});
const plainPart: fc.Arbitrary<Part> = fc.oneof(
  simplePart,
  fc.record({
    add: fc.constant("indexed" as const),
    bytes: blockBytes,
    gaps: fc.array(gap, { minLength: 1, maxLength: 6 }),
  }),
  fc.record({
    add: fc.constant("struct" as const),
    fields: fc.array(fc.record({ bytes: blockBytes, gap, count: fc.integer({ min: 1, max: 3 }) }), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
  fc.record({
    add: fc.constant("subarray" as const),
    dimensions: fc.array(
      fc.record({
        before: fc.integer({ min: 0, max: 2 }),
        size: fc.integer({ min: 1, max: 4 }),
        behind: fc.integer({ min: 0, max: 2 }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    bytes: fc.constantFrom(1, 4, 8, 12),
  }),
);

const slack = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 20 }));

/** Descriptions with types within types, up to three deep. */
export const description: fc.Arbitrary<Description> = fc.letrec<{ type: Description; part: Part }>((tie) => ({
  type: fc.record({ parts: fc.array(tie("part"), { minLength: 1, maxLength: 3 }), slack }),
  part: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    plainPart,
    fc.record({
      add: fc.constant("typed" as const),
      type: tie("type"),
      offset: gap,
      count: fc.integer({ min: 1, max: 4 }),
      gap,
    }),
  ),
})).type;
