// The twin of assembly/mpi/copy.ts.
import type { Memory } from "../../kernel.js";

export function twinCopy({ bytes: memory }: Memory) {
  function copyPayload(to: number, from: number, bytes: number): void {
    memory.copyWithin(to >>> 0, from >>> 0, (from >>> 0) + bytes);
  }

  return { copyPayload };
}
