// MPI_Reduce_local(): a reduction of two vectors of one rank. Source: MPI 5.0, section 6.9.7.
import { ELEMENT_TYPES, hasOperation, OPERATIONS } from "../../../core/reduction.js";
import { selectCollectiveKernel } from "../../../kernel/collective.js";
import { ERR, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { ScratchPlace } from "../scratch.js";
import type { Call, MpiState } from "../state.js";
import { isDense } from "../types.js";

export function localCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const kernel = selectCollectiveKernel(state.client.kernel, state.context.host.task.memory);
  /** Reduces two vectors where the kernels find them. */
  const reduce = (from: number, to: number, bytes: number, run: (from: number, to: number) => void): void => {
    if (!state.isApart) {
      run(from, to);
      return;
    }
    const places = [from, to].map((vector) => {
      const place = state.place(bytes);
      state.copyOut(place.bytes.byteOffset, vector, bytes);
      return place;
    }) as [ScratchPlace, ScratchPlace];
    const [one, other] = places.map((place) => place.bytes.byteOffset) as [number, number];
    run(one, other);
    state.copyIn(to, other, bytes);
    for (const place of places) state.freePlace(place);
  };
  return {
    MPI_Reduce_local: [
      -1,
      (from, to, count, typeHandle, opHandle) => {
        if ((count as number) < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
        const type = state.types.committed(typeHandle as number);
        const op = state.operation(opHandle as number);
        if (op === undefined) throw new MpiFailure(ERR.OP, `0x${(opHandle as number).toString(16)} is no operation`);
        if (typeof op === "object") {
          const at = state.lend(8);
          state.setWord(at, count as number);
          state.setWord(at + 4, typeHandle as number);
          state.functionAt(op.call)(from as number, to as number, at, at + 4);
          state.giveBack(at, 8);
          return SUCCESS;
        }
        const { element } = type;
        const isWhole = isDense(type) || element === "f64_i32";
        if (element === undefined || !isWhole || !hasOperation(element, op))
          throw new MpiFailure(ERR.OP, `the operation ${op} is not one for ${type.name}`);
        const { number, bytes } = ELEMENT_TYPES[element];
        const elements = ((count as number) * type.extent) / bytes;
        reduce(from as number, to as number, (count as number) * type.extent, (one, other) =>
          kernel.reduce(OPERATIONS[op], number, other, one, other, elements),
        );
        return SUCCESS;
      },
    ],
  };
}
