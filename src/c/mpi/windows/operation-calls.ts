// One-sided operations of MPI. Source: MPI 5.0, section 12.3.
import { ERR, PROC_NULL, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call } from "../state.js";
import { isDense } from "../types.js";
import { type Elements, elementsOf } from "./elements.js";
import type { WindowSet } from "./windows.js";

/** The calls of this file: the number is that of the argument with the window. */
export function operationCalls(windows: WindowSet): Record<string, readonly [number, Call]> {
  const { state, table, transfers } = windows;
  const transfer =
    (isPut: boolean): Call =>
    (address, count, type, rank, place, targetCount, targetType, handle) => {
      const window = table.get(handle as number);
      if (rank === PROC_NULL) return SUCCESS;
      const origin = originSide(windows, address as number, count as number, type as number);
      const given = elementsOf(state, 0, targetCount as number, targetType as number);
      const target = transfers.target(window, rank as number, place as number, given);
      checkEqual(origin, target);
      transfers.transfer(isPut, window, rank as number, origin, target);
      return SUCCESS;
    };
  return { MPI_Put: [7, transfer(true)], MPI_Get: [7, transfer(false)] };
}

/** @throws MpiFailure MPI_ERR_BUFFER, and as elementsOf() */
function originSide({ state }: WindowSet, address: number, count: number, type: number): Elements {
  const side = elementsOf(state, address, count, type);
  if (side.bytes > 0 && address === 0 && isDense(side.type))
    throw new MpiFailure(ERR.BUFFER, `the buffer of ${side.bytes} bytes is NULL`);
  return side;
}

/** @throws MpiFailure MPI_ERR_TRUNCATE the sides have not equally many bytes */
function checkEqual(origin: Elements, target: Elements): void {
  if (origin.bytes === target.bytes) return;
  throw new MpiFailure(ERR.TRUNCATE, `the origin has ${origin.bytes} bytes, the target ${target.bytes}`);
}
