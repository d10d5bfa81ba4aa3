// What an rmw does to its word: code, value and test, in the staged descriptor.
import { RMW_COMPARE, TRANSFER_LOCAL_BOUNDS } from "../../../assembly/layout.js";
import { PamiError } from "../../core/error.js";
import { checkOwn } from "../../core/region.js";
import type { Operand } from "./parameters.js";
import { checkWord, isWord, refuse } from "./refusals.js";
import { checkOperand, highOf, lowOf, type RmwOperation, type RmwType, rmwBytes, rmwCode } from "./rmw.js";

/** The last operation and type of an rmw, and their code. Hot paths read the fields. */
export class RmwOperands {
  operation: RmwOperation | undefined;
  type: RmwType = "i32";
  code = 0;
  /** Whether the operation has one operand, an i32. */
  isPlain = false;
  readonly #words: Int32Array;

  constructor(words: Int32Array) {
    this.#words = words;
  }

  /** @throws PAMIR_INVAL for an unknown operation or type */
  lookUp(operation: RmwOperation, type: RmwType): void {
    const code = rmwCode(operation, type);
    this.operation = operation;
    this.type = type;
    this.code = code;
    this.isPlain = type === "i32" && (code & RMW_COMPARE) === 0;
  }

  /** Stages value and test for the operation and type that were looked up. @param at index of the descriptor's first word */
  stage(at: number, value: Operand, test: Operand | undefined): void {
    if (test === undefined && (this.code & RMW_COMPARE) !== 0) {
      throw new PamiError("PAMIR_INVAL", `rmw ${this.operation} needs a test`);
    }
    this.#stageOne("value", at + 8, value);
    if (test !== undefined) this.#stageOne("test", at + 10, test);
  }

  #stageOne(name: string, at: number, operand: Operand): void {
    const words = this.#words;
    const { type } = this;
    if (typeof operand !== "object" || operand === null) {
      checkOperand(name, operand, type);
      words[at] = lowOf(operand);
      words[at + 1] = highOf(operand);
      return;
    }
    const { region, offset = 0 } = operand;
    checkOwn(`${name}.region of an rmw`, region, words);
    if (region.closed) throw new PamiError("PAMIR_CLOSED", `rmw: the region of its ${name} is closed`);
    const size = rmwBytes(type);
    if (!isWord(offset)) checkWord("rmw", `${name}.offset`, offset);
    if (offset % size !== 0) {
      throw new PamiError("PAMIR_INVAL", `${name}.offset of an rmw is ${offset}, not a multiple of ${size}`);
    }
    if (offset + size > region.length) {
      refuse(`rmw: a ${name}`, TRANSFER_LOCAL_BOUNDS, size, [region.length, offset], { remote: 0 });
    }
    const word = (region.bytes.byteOffset + offset) >>> 2;
    words[at] = words[word] as number;
    if (size === 8) words[at + 1] = words[word + 1] as number;
  }
}
