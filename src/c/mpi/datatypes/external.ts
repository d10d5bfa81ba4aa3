// Packing in the representation "external32", which is the same on all machines. Source: MPI 5.0, sections 5.3 and 14.5.2.
import { ERR, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import { type Datatype, kindBytes, kindExternalBytes, kindNumberBytes, pack, unpack } from "../types.js";

/** Writes a number the other way round. @param bytes of the number as it is @param wide of the number as it is written */
type Turn = (to: Uint8Array, at: number, wide: number, from: Uint8Array, place: number, bytes: number) => void;

/** To the machine's own bytes: an address keeps its low bytes, a character of two bytes gets two of 0. */
const inward: Turn = (to, at, wide, from, place, bytes) => {
  for (let i = 0; i < wide; i++) to[at + i] = i < bytes ? (from[place + bytes - 1 - i] as number) : 0;
};

/** To "external32": the most significant byte first. A longer number keeps its sign. */
const outward: Turn = (to, at, wide, from, place, bytes) => {
  const sign = (from[place + bytes - 1] as number) >= 0x80 ? 0xff : 0;
  for (let i = 0; i < wide; i++) to[at + wide - 1 - i] = i < bytes ? (from[place + i] as number) : sign;
};

/** Bytes of an element in "external32". */
function externalBytesOf({ basics }: Datatype): number {
  let all = 0;
  for (let i = 0; i < basics.length; i += 2) {
    const kind = basics[i] as number;
    const numbers = kindBytes(kind) / kindNumberBytes(kind);
    all += (basics[i + 1] as number) * numbers * kindExternalBytes(kind);
  }
  return all;
}

/** Turns packed elements of a type: from this machine's bytes to "external32", or back. */
function turn(type: Datatype, count: number, native: Uint8Array, external: Uint8Array, isOut: boolean): void {
  let here = 0;
  let there = 0;
  for (let element = 0; element < count; element++) {
    for (let i = 0; i < type.basics.length; i += 2) {
      const kind = type.basics[i] as number;
      const [own, other] = [kindNumberBytes(kind), kindExternalBytes(kind)];
      const numbers = ((type.basics[i + 1] as number) * kindBytes(kind)) / own;
      for (let number = 0; number < numbers; number++) {
        if (isOut) outward(external, there, other, native, here, own);
        else inward(native, here, own, external, there, other);
        here += own;
        there += other;
      }
    }
  }
}

/** The arguments that all three calls have. @throws MpiFailure */
function typeOf(state: MpiState, representation: number, handle: number, count: number): Datatype {
  const name = state.text(representation);
  if (name !== "external32")
    throw new MpiFailure(ERR.ARG, `the representation is "${name}": there is "external32" alone`);
  if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
  return state.types.committed(handle);
}

/** Does something with a place for data that is packed in both ways, its own bytes first. */
function within(
  state: MpiState,
  type: Datatype,
  count: number,
  use: (at: number, native: Uint8Array, external: Uint8Array) => void,
): void {
  const own = count * type.bytes;
  const place = state.place(Math.max(1, own + count * externalBytesOf(type)));
  try {
    use(place.bytes.byteOffset, place.bytes.subarray(0, own), place.bytes.subarray(own));
  } finally {
    state.freePlace(place);
  }
}

export function externalCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const store = (pointer: number | undefined, value: number): number => {
    state.setWord(pointer as number, value);
    return SUCCESS;
  };
  return {
    MPI_Pack_external: [
      -1,
      (...given) => {
        const [name, from, count, handle, to, size, position] = given as number[] & { length: 7 };
        const type = typeOf(state, name as number, handle as number, count as number);
        const at = state.word(position as number);
        const bytes = (count as number) * externalBytesOf(type);
        if (at + bytes > (size as number))
          throw new MpiFailure(ERR.TRUNCATE, `${bytes} bytes from ${at} on do not fit into ${size}`);
        within(state, type, count as number, (place, native, external) => {
          pack(state.copyOut, type, from as number, count as number, place);
          turn(type, count as number, native, external, true);
          state.copyIn((to as number) + at, place + native.length, bytes);
        });
        return store(position, at + bytes);
      },
    ],
    MPI_Unpack_external: [
      -1,
      (...given) => {
        const [name, from, size, position, to, count, handle] = given as number[] & { length: 7 };
        const type = typeOf(state, name as number, handle as number, count as number);
        const at = state.word(position as number);
        const bytes = (count as number) * externalBytesOf(type);
        if (at + bytes > (size as number))
          throw new MpiFailure(ERR.TRUNCATE, `${bytes} bytes from ${at} on are not in ${size}`);
        within(state, type, count as number, (place, native, external) => {
          state.copyOut(place + native.length, (from as number) + at, bytes);
          turn(type, count as number, native, external, false);
          unpack(state.copyIn, type, place, native.length, to as number);
        });
        return store(position, at + bytes);
      },
    ],
    MPI_Pack_external_size: [
      -1,
      (name, count, handle, pointer) => {
        const type = typeOf(state, name as number, handle as number, count as number);
        return store(pointer, (count as number) * externalBytesOf(type));
      },
    ],
  };
}
