// How a datatype was made: MPI_Type_get_envelope() and MPI_Type_get_contents(). Source: MPI 5.0, section 5.1.13.
import { ERR, FIRST_OWN, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import type { Datatype } from "../types.js";

/** MPI_COMBINER_…, by the call. */
const COMBINER = {
  NAMED: 101,
  MPI_Type_dup: 102,
  MPI_Type_contiguous: 103,
  MPI_Type_vector: 104,
  MPI_Type_create_hvector: 105,
  MPI_Type_indexed: 106,
  MPI_Type_create_hindexed: 107,
  MPI_Type_create_indexed_block: 108,
  MPI_Type_create_hindexed_block: 109,
  MPI_Type_create_struct: 110,
  MPI_Type_create_subarray: 111,
  MPI_Type_create_darray: 112,
  MPI_Type_create_resized: 116,
} as const;
type Constructor = Exclude<keyof typeof COMBINER, "NAMED">;

/** The arguments of the call that made a type. */
interface Contents {
  readonly combiner: number;
  readonly integers: readonly number[];
  readonly addresses: readonly number[];
  readonly types: readonly { readonly handle: number; readonly type: Datatype }[];
}

type Array = (pointer: number, count: number) => number[];
/** What a call was given, as integers, addresses and handles of types. */
type Read = (given: readonly number[], array: Array) => readonly [number[], number[], number[]];
const n = (given: readonly number[], at: number): number => given[at] as number;

const READS: Readonly<Record<Constructor, Read>> = {
  MPI_Type_dup: (given) => [[], [], [n(given, 0)]],
  MPI_Type_contiguous: (given) => [[n(given, 0)], [], [n(given, 1)]],
  MPI_Type_vector: (given) => [given.slice(0, 3), [], [n(given, 3)]],
  MPI_Type_create_hvector: (given) => [given.slice(0, 2), [n(given, 2)], [n(given, 3)]],
  MPI_Type_indexed: (given, array) => {
    const count = n(given, 0);
    return [[count, ...array(n(given, 1), count), ...array(n(given, 2), count)], [], [n(given, 3)]];
  },
  MPI_Type_create_hindexed: (given, array) => {
    const count = n(given, 0);
    return [[count, ...array(n(given, 1), count)], array(n(given, 2), count), [n(given, 3)]];
  },
  MPI_Type_create_indexed_block: (given, array) => [
    [n(given, 0), n(given, 1), ...array(n(given, 2), n(given, 0))],
    [],
    [n(given, 3)],
  ],
  MPI_Type_create_hindexed_block: (given, array) => [given.slice(0, 2), array(n(given, 2), n(given, 0)), [n(given, 3)]],
  MPI_Type_create_struct: (given, array) => {
    const count = n(given, 0);
    return [[count, ...array(n(given, 1), count)], array(n(given, 2), count), array(n(given, 3), count)];
  },
  MPI_Type_create_subarray: (given, array) => {
    const dims = n(given, 0);
    const arrays = [1, 2, 3].flatMap((at) => array(n(given, at), dims));
    return [[dims, ...arrays, n(given, 4)], [], [n(given, 5)]];
  },
  MPI_Type_create_darray: (given, array) => {
    const dims = n(given, 2);
    const arrays = [3, 4, 5, 6].flatMap((at) => array(n(given, at), dims));
    return [[...given.slice(0, 3), ...arrays, n(given, 7)], [], [n(given, 8)]];
  },
  MPI_Type_create_resized: (given) => [[], given.slice(1, 3), [n(given, 0)]],
};

type Calls = Record<string, readonly [number, Call]>;

/** Calls that make types, so that these remember how, and the calls that tell of it. */
export function withContents(state: MpiState, calls: Calls): Calls {
  const { types } = state;
  const known = new WeakMap<Datatype, Contents>();
  const array: Array = (pointer, count) => state.array(pointer, count);
  const watched: Calls = { ...calls };
  for (const [name, read] of Object.entries(READS)) {
    const [at, call] = calls[name] as readonly [number, Call];
    watched[name] = [
      at,
      (...given) => {
        const result = call(...given);
        // The last argument points to the new handle.
        const made = types.get(state.word(given.at(-1) as number));
        const [integers, addresses, handles] = read(given, array);
        const parts = handles.map((handle) => ({ handle, type: types.get(handle) }));
        known.set(made, { combiner: COMBINER[name as Constructor], integers, addresses, types: parts });
        return result;
      },
    ];
  }
  const contentsOf = (handle: number): Contents =>
    known.get(types.get(handle)) ?? { combiner: COMBINER.NAMED, integers: [], addresses: [], types: [] };
  watched.MPI_Type_get_envelope = [
    -1,
    (handle, integers, addresses, count, combiner) => {
      const contents = contentsOf(handle as number);
      state.setWord(integers as number, contents.integers.length);
      state.setWord(addresses as number, contents.addresses.length);
      state.setWord(count as number, contents.types.length);
      state.setWord(combiner as number, contents.combiner);
      return SUCCESS;
    },
  ];
  watched.MPI_Type_get_contents = [
    -1,
    (handle, mostIntegers, mostAddresses, mostTypes, integers, addresses, out) => {
      const contents = contentsOf(handle as number);
      if (contents.combiner === COMBINER.NAMED) throw new MpiFailure(ERR.TYPE, "a predefined type has no contents");
      for (const [what, { length }, most] of [
        ["integers", contents.integers, mostIntegers],
        ["addresses", contents.addresses, mostAddresses],
        ["types", contents.types, mostTypes],
      ] as const) {
        if (length > (most as number))
          throw new MpiFailure(ERR.ARG, `the type has ${length} ${what}, there is room for ${most}`);
      }
      state.words.set(contents.integers, (integers as number) >>> 2);
      state.words.set(contents.addresses, (addresses as number) >>> 2);
      // Types that the program has made come as duplicates, which it frees.
      const handles = contents.types.map((part) => {
        if (part.handle < FIRST_OWN) return part.handle;
        const copy = { ...part.type, attributes: new Map<number, number>() };
        const own = known.get(part.type);
        if (own !== undefined) known.set(copy, own);
        return types.add(copy);
      });
      state.words.set(handles, (out as number) >>> 2);
      return SUCCESS;
    },
  ];
  return watched;
}
