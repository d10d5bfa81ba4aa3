// Operations for reductions, and what a reduction ought to be, without messages.
import type { Operator } from "./schedules.js";

/** An operation on bytes. */
const onBytes = (combine: (left: number, right: number) => number): Operator => ({
  elementBytes: 1,
  reduce: (out, left, right) => {
    for (let i = 0; i < out.length; i++) out[i] = combine(left[i] as number, right[i] as number);
  },
});

/** An operation on pairs of words: a and b on the left, c and d on the right. */
const onPairs = (
  first: (a: number, b: number, c: number, d: number) => number,
  second: (a: number, b: number, c: number, d: number) => number,
): Operator => ({
  elementBytes: 8,
  reduce: (out, left, right) => {
    const [to, one, other] = [out, left, right].map((bytes) => new DataView(bytes.buffer, bytes.byteOffset)) as [
      DataView,
      DataView,
      DataView,
    ];
    for (let at = 0; at < out.length; at += 8) {
      const [a, b] = [one.getUint32(at), one.getUint32(at + 4)];
      const [c, d] = [other.getUint32(at), other.getUint32(at + 4)];
      to.setUint32(at, first(a, b, c, d));
      to.setUint32(at + 4, second(a, b, c, d));
    }
  },
});

const mixed = (left: number, right: number): number => {
  const word = Math.imul(left ^ 0x9e3779b1, 0x85ebca6b) + Math.imul(right ^ (right >>> 15), 0xc2b2ae35);
  return (word ^ (word >>> 13)) >>> 0;
};

/** By the bytes of an element. */
type Operators = Readonly<Record<1 | 8, Operator>>;

/** Composition of x → a × x + b, modulo 2^32 or 16: associative, not commutative. */
export const AFFINE: Operators = {
  1: onBytes((left, right) => {
    const [a, b, c, d] = [left & 15, left >>> 4, right & 15, right >>> 4];
    return ((a * c) & 15) | (((c * b + d) & 15) << 4);
  }),
  8: onPairs(
    (a, _, c) => Math.imul(a, c),
    (_, b, c, d) => Math.imul(c, b) + d,
  ),
};

/** A hash of both operands, which tells how operands were bracketed: neither associative nor commutative. */
export const BRACKETS: Operators = {
  1: onBytes(mixed),
  8: onPairs(
    (a, b, c, d) => mixed(mixed(a, b), mixed(c, d)),
    (a, b, c, d) => mixed(mixed(d, b), mixed(c, a)),
  ),
};

/** Associative and commutative. */
export const SUM: Operators = {
  1: onBytes((left, right) => left + right),
  8: onPairs(
    (a, _, c) => a + c,
    (_, b, __, d) => b + d,
  ),
};

function reduced({ reduce }: Operator, left: Uint8Array, right: Uint8Array): Uint8Array {
  const out = new Uint8Array(left.length);
  reduce(out, left, right);
  return out;
}

/** From left to right. */
export function reducedInTurn(operation: Operator, operands: readonly Uint8Array[]): Uint8Array {
  return operands.reduce((left, right) => reduced(operation, left, right));
}

/** As src/collective/algorithms/order.ts promises: pairs in front, so that a power of two is left; then a perfect tree. */
export function reducedInOrder(operation: Operator, operands: readonly Uint8Array[]): Uint8Array {
  const power = 1 << (31 - Math.clz32(operands.length));
  const folded: Uint8Array[] = [];
  for (let i = 0; i < operands.length; i++) {
    const isFolded = i < 2 * (operands.length - power);
    folded.push(
      isFolded
        ? reduced(operation, operands[i] as Uint8Array, operands[++i] as Uint8Array)
        : (operands[i] as Uint8Array),
    );
  }
  const tree = (from: number, count: number): Uint8Array =>
    count === 1
      ? (folded[from] as Uint8Array)
      : reduced(operation, tree(from, count / 2), tree(from + count / 2, count / 2));
  return tree(0, power);
}
