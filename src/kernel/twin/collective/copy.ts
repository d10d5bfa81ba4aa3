// Twin of assembly/collective/copy.ts; see the comments there.
import type { Memory } from "../../kernel.js";

export function twinCopy({ bytes: memory }: Memory) {
  /** Reads nothing ahead, and returns 0. */
  function copyCold(to: number, from: number, bytes: number): number {
    memory.copyWithin(to >>> 0, from >>> 0, (from >>> 0) + (bytes >>> 0));
    return 0;
  }

  return { copyCold };
}
