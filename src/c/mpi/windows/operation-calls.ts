// One-sided operations of MPI, with and without requests. Source: MPI 5.0, section 12.3.
import { ELEMENT_TYPES } from "../../../core/reduction.js";
import { ERR, OP_NO_OP, PROC_NULL, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import { NO_MESSAGE, type Outcome } from "../requests/open-request.js";

import type { Call } from "../state.js";
import { type Datatype, isDense } from "../types.js";
import { Accumulates } from "./accumulates.js";
import { type Change, COMPARE, changeOf } from "./accumulator.js";
import { type Elements, elementsOf } from "./elements.js";
import type { OpenTransfer } from "./transfers.js";
import type { Window } from "./window.js";
import type { WindowSet } from "./windows.js";

/** Begins an operation with the arguments of a call. @returns undefined: it is over */
type Begin = (window: Window, ...given: number[]) => OpenTransfer | undefined;

/** The calls of this file: the number is that of the argument with the window. */
export function operationCalls(windows: WindowSet): Record<string, readonly [number, Call]> {
  const accumulates = new Accumulates(windows);
  const [put, get] = [transferring(windows, true), transferring(windows, false)];
  const accumulate: Begin = (window, address, count, type, rank, place, targetCount, targetType, op) =>
    accumulating(windows, accumulates, window, {
      origin: [address, count, type] as Triple,
      result: undefined,
      target: [rank, place, targetCount, targetType] as Quadruple,
      op: op as number,
    });
  const getAccumulate: Begin = (window, ...given) =>
    accumulating(windows, accumulates, window, {
      origin: given.slice(0, 3) as Triple,
      result: given.slice(3, 6) as Triple,
      target: given.slice(6, 10) as Quadruple,
      op: given[10] as number,
    });
  const fetch: Begin = (window, address, result, type, rank, place, op) =>
    accumulating(windows, accumulates, window, {
      origin: [address, 1, type] as Triple,
      result: [result, 1, type] as Triple,
      target: [rank, place, 1, type] as Quadruple,
      op: op as number,
    });
  return {
    MPI_Put: plain(windows, 7, put),
    MPI_Get: plain(windows, 7, get),
    MPI_Accumulate: plain(windows, 8, accumulate),
    MPI_Get_accumulate: plain(windows, 11, getAccumulate),
    MPI_Fetch_and_op: plain(windows, 6, fetch),
    MPI_Compare_and_swap: plain(windows, 6, swapping(windows, accumulates)),
    MPI_Rput: requested(windows, 7, put),
    MPI_Rget: requested(windows, 7, get),
    MPI_Raccumulate: requested(windows, 8, accumulate),
    MPI_Rget_accumulate: requested(windows, 11, getAccumulate),
  };
}

/** Address, count, type. */
type Triple = [number, number, number];
/** Rank, displacement, count, type. */
type Quadruple = [number, number, number, number];

function plain({ table }: WindowSet, at: number, begin: Begin): readonly [number, Call] {
  return [
    at,
    (...given) => {
      begin(table.get(given[at] as number), ...given);
      return SUCCESS;
    },
  ];
}

/** A call whose last argument is a pointer to a request. */
function requested({ state, table }: WindowSet, at: number, begin: Begin): readonly [number, Call] {
  return [
    at,
    (...given) => {
      const window = table.get(given[at] as number);
      const transfer = begin(window, ...given);
      const common = { comm: state.communicators.world, isReceive: false, peer: PROC_NULL, engine: 0 };
      const isOver = (): boolean =>
        transfer === undefined || transfer.left === 0 || state.engine.hasEnded(window, transfer.rank);
      const take = (): Outcome => {
        if (transfer === undefined || (transfer.left === 0 && !transfer.hasFailed)) return NO_MESSAGE;
        return { ...NO_MESSAGE, error: ERR.PROC_FAILED, why: `rank ${transfer.rank} has ended` };
      };
      state.setWord(given[at + 1] as number, state.requests.add({ ...common, work: { isOver, take } }));
      return SUCCESS;
    },
  ];
}

function transferring(windows: WindowSet, isPut: boolean): Begin {
  const { state, transfers } = windows;
  return (window, address, count, type, rank, place, targetCount, targetType) => {
    if (rank === PROC_NULL) return undefined;
    const origin = bufferOf(windows, [address, count, type] as Triple);
    const given = elementsOf(state, 0, targetCount as number, targetType as number);
    const target = transfers.target(window, rank as number, place as number, given);
    checkEqual(origin, target);
    return transfers.transfer(isPut, window, rank as number, origin, target);
  };
}

interface GivenAccumulate {
  readonly origin: Triple;
  readonly result: Triple | undefined;
  readonly target: Quadruple;
  readonly op: number;
}

function accumulating(
  windows: WindowSet,
  accumulates: Accumulates,
  window: Window,
  { origin: given, result: resultGiven, target: [rank, place, count, type], op }: GivenAccumulate,
): OpenTransfer | undefined {
  const { state, transfers } = windows;
  if (rank === PROC_NULL) return undefined;
  // What only fetches has no operand: its arguments may be anything.
  const origin = op === OP_NO_OP && resultGiven !== undefined ? undefined : bufferOf(windows, given);
  const result = resultGiven === undefined ? undefined : bufferOf(windows, resultGiven);
  const target = transfers.target(window, rank, place, elementsOf(state, 0, count, type));
  for (const side of [origin, result]) if (side !== undefined) checkEqual(side, target);
  return accumulates.begin(window, rank, { change: changeBy(windows, op, target.type), target, origin, result });
}

function swapping(windows: WindowSet, accumulates: Accumulates): Begin {
  const { state, transfers } = windows;
  return (window, address, test, result, type, rank, place) => {
    if (rank === PROC_NULL) return undefined;
    const one = (pointer: number | undefined): Elements => bufferOf(windows, [pointer as number, 1, type as number]);
    const target = transfers.target(window, rank as number, place as number, elementsOf(state, 0, 1, type as number));
    const { name, element, bytes } = target.type;
    if (element === undefined || !/^[iu]\d+$/.test(element))
      throw new MpiFailure(ERR.TYPE, `MPI_Compare_and_swap is not for ${name}: it takes one integer or byte`);
    const change = { operation: COMPARE, type: ELEMENT_TYPES[element].number, bytes };
    const given = { change, target, origin: one(address), result: one(result), test: one(test).address };
    return accumulates.begin(window, rank as number, given);
  };
}

/** What an operation does to elements of a type. @throws MpiFailure MPI_ERR_OP, MPI_ERR_TYPE */
function changeBy({ state }: WindowSet, handle: number, { name, element }: Datatype): Change {
  const operation = state.operation(handle);
  if (typeof operation !== "string")
    throw new MpiFailure(ERR.OP, "an operation of the program's own does not work on windows");
  if (element === undefined) throw new MpiFailure(ERR.TYPE, `${name} has elements of several types, or of none`);
  const change = changeOf(operation, element);
  if (change === undefined) throw new MpiFailure(ERR.OP, `the operation ${operation} is not one for ${name}`);
  return change;
}

/** @throws MpiFailure MPI_ERR_BUFFER, and as elementsOf() */
function bufferOf({ state }: WindowSet, [address, count, type]: Triple): Elements {
  const elements = elementsOf(state, address, count, type);
  if (elements.bytes > 0 && address === 0 && isDense(elements.type))
    throw new MpiFailure(ERR.BUFFER, `the buffer of ${elements.bytes} bytes is NULL`);
  return elements;
}

/** @throws MpiFailure MPI_ERR_TRUNCATE the sides have not equally many bytes */
function checkEqual(origin: Elements, target: Elements): void {
  if (origin.bytes === target.bytes) return;
  throw new MpiFailure(ERR.TRUNCATE, `the origin has ${origin.bytes} bytes, the target ${target.bytes}`);
}
