// Operations, types and operands of an rmw: their names, codes and ranges.
import {
  RMW_ADD,
  RMW_AND,
  RMW_COMPARE,
  RMW_FETCH,
  RMW_OR,
  RMW_SET,
  RMW_WIDE,
  RMW_XOR,
} from "../../../assembly/layout.js";
import { PamiError, show } from "../../core/error.js";

/** An operation of `rmw`. `fetch` returns the old value. `compare` changes the word only if it equals `test`. */
export type RmwOperation =
  | "set"
  | "add"
  | "or"
  | "and"
  | "xor"
  | `fetch-${"set" | "add" | "or" | "and" | "xor"}`
  | `compare-${"set" | "add" | "or" | "and" | "xor"}`
  | `fetch-compare-${"set" | "add" | "or" | "and" | "xor"}`;

/** The type of a word: 4 or 8 bytes, signed or unsigned. */
export type RmwType = "i32" | "u32" | "i64" | "u64";

/** Without a prototype, so that "constructor" is no operation. */
const OPERATIONS: Record<string, number> = Object.create(null);
for (const [name, code] of Object.entries({
  set: RMW_SET,
  add: RMW_ADD,
  or: RMW_OR,
  and: RMW_AND,
  xor: RMW_XOR,
})) {
  OPERATIONS[name] = code;
  OPERATIONS[`fetch-${name}`] = code | RMW_FETCH;
  OPERATIONS[`compare-${name}`] = code | RMW_COMPARE;
  OPERATIONS[`fetch-compare-${name}`] = code | RMW_FETCH | RMW_COMPARE;
}
const WIDTHS: Record<string, number> = Object.assign(Object.create(null), {
  i32: 0,
  u32: 0,
  i64: RMW_WIDE,
  u64: RMW_WIDE,
});

const TWO_TO_32 = 2 ** 32;
/**
 * Code of an operation on a type: RMW_….
 * @throws PAMIR_INVAL for an unknown operation or type
 */
export function rmwCode(operation: RmwOperation, type: RmwType): number {
  const code = OPERATIONS[operation];
  const width = WIDTHS[type];
  if (code === undefined || width === undefined) {
    throw new PamiError("PAMIR_INVAL", `no operation ${show(operation)} on type ${show(type)}`);
  }
  return code | width;
}

/** Bytes of a word. */
export function rmwBytes(type: RmwType): number {
  return WIDTHS[type] === RMW_WIDE ? 8 : 4;
}

/** Low and high word of an operand. */
export function lowOf(value: number | bigint): number {
  return typeof value === "number" ? value | 0 : Number(BigInt.asIntN(32, value));
}

export function highOf(value: number | bigint): number {
  return typeof value === "number" ? Math.floor(value / TWO_TO_32) | 0 : Number(BigInt.asIntN(32, value >> 32n));
}

/** Least and largest operand of each type. */
const RANGES: Record<RmwType, readonly [least: bigint, most: bigint]> = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0n, 2n ** 64n - 1n],
};

/** @throws PAMIR_INVAL for a value that is no integer of the type */
export function checkOperand(name: string, value: number | bigint, type: RmwType): void {
  const isInteger = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
  const [least, most] = RANGES[type];
  if (isInteger && BigInt(value as number) >= least && BigInt(value as number) <= most) return;
  throw new PamiError(
    "PAMIR_INVAL",
    `${name} of an rmw on ${type} is ${show(value)}, not an integer from ${least} to ${most}`,
  );
}
