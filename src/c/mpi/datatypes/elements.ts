// Basic elements of types: how many a message has, and names of types. Source: MPI 5.0, sections 5.1.11 and 7.8.
import { ERR, STATUS, SUCCESS, UNDEFINED } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import { type Datatype, kindBytes } from "../types.js";

/** Basic elements in some bytes of a type; MPI_UNDEFINED: the last one is not whole. */
function elementsIn({ basics, bytes: whole }: Datatype, bytes: number): number {
  if (whole === 0) return 0;
  let perType = 0;
  for (let i = 1; i < basics.length; i += 2) perType += basics[i] as number;
  let count = Math.floor(bytes / whole) * perType;
  let left = bytes % whole;
  for (let i = 0; left > 0; i += 2) {
    const size = kindBytes(basics[i] as number);
    const some = Math.min(basics[i + 1] as number, Math.floor(left / size));
    count += some;
    left -= some * size;
    if (some < (basics[i + 1] as number)) return left === 0 ? count : UNDEFINED;
  }
  return count;
}

/** Bytes of the first basic elements. @throws MpiFailure MPI_ERR_COUNT */
function bytesOf({ basics, bytes }: Datatype, elements: number): number {
  let perType = 0;
  for (let i = 1; i < basics.length; i += 2) perType += basics[i] as number;
  if (elements < 0 || (perType === 0 && elements > 0)) throw new MpiFailure(ERR.COUNT, `the count is ${elements}`);
  if (perType === 0) return 0;
  let all = Math.floor(elements / perType) * bytes;
  let left = elements % perType;
  for (let i = 0; left > 0; i += 2) {
    const some = Math.min(left, basics[i + 1] as number);
    all += some * kindBytes(basics[i] as number);
    left -= some;
  }
  return all;
}

/** MPI_TYPECLASS_…: types of C by their bytes. */
const CLASSES: Readonly<Record<number, readonly [name: string, Readonly<Record<number, number>>]>> = {
  192: ["integer", { 1: 576, 2: 584, 4: 592, 8: 600 }],
  193: ["real", { 4: 528, 8: 532, 16: 544 }],
  194: ["complex", { 8: 530, 16: 534 }],
};

/** The type of a class with so many bytes. @throws MpiFailure MPI_ERR_ARG */
function matching(kind: number, bytes: number): number {
  const [name, types] = CLASSES[kind] ?? ["none", {}];
  const found = types[bytes];
  if (found !== undefined) return found;
  throw new MpiFailure(ERR.ARG, `class ${kind} (${name}) has no type of ${bytes} bytes`);
}

export function elementCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const { types } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  /** A number of 64 bits. */
  const storeLong = (pointer: number, value: number): number => {
    state.setWord(pointer + 4, value < 0 ? -1 : 0);
    return store(pointer, value);
  };
  const count = (status: number, handle: number): number =>
    elementsIn(types.get(handle), state.word(status + 4 * STATUS.BYTES) >>> 0);
  return {
    MPI_Get_elements: [
      -1,
      (status, handle, pointer) => store(pointer as number, count(status as number, handle as number)),
    ],
    MPI_Get_elements_x: [
      -1,
      (status, handle, pointer) => storeLong(pointer as number, count(status as number, handle as number)),
    ],
    MPI_Status_set_elements: [
      -1,
      (status, handle, elements) =>
        store((status as number) + 4 * STATUS.BYTES, bytesOf(types.get(handle as number), elements as number)),
    ],
    MPI_Status_set_cancelled: [-1, (status, flag) => store((status as number) + 4 * STATUS.CANCELED, +(flag !== 0))],
    MPI_Type_set_name: [
      -1,
      (handle, text) => {
        types.get(handle as number).title = state.text(text as number);
        return SUCCESS;
      },
    ],
    MPI_Type_get_name: [
      -1,
      (handle, text, length) => {
        const { title } = types.get(handle as number);
        return store(length as number, state.setText(text as number, title));
      },
    ],
    MPI_Type_match_size: [
      -1,
      (kind, bytes, pointer) => store(pointer as number, matching(kind as number, bytes as number)),
    ],
    MPI_Type_size_x: [-1, (handle, pointer) => storeLong(pointer as number, types.get(handle as number).bytes)],
    MPI_Type_get_extent_x: [
      -1,
      (handle, lowerBound, extent) => {
        const type = types.get(handle as number);
        storeLong(lowerBound as number, type.lowerBound);
        return storeLong(extent as number, type.extent);
      },
    ],
  };
}
