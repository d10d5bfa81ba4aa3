// Derived datatypes, and packing by hand. Source: MPI 5.0, chapter 5.
import { DATATYPE_NULL, ERR, FIRST_OWN, SUCCESS } from "./constants.js";
import { darray } from "./datatypes/darray.js";
import { MpiFailure } from "./failure.js";
import type { ObjectAttributes } from "./objects/attributes.js";
import type { Call, MpiState } from "./state.js";
import { type CartTopology, coordsOf } from "./topology/topology.js";
import { type Datatype, derived, fresh, pack, type TypePart, unpack } from "./types.js";

const ORDER_C = 12;

export function typeCalls(state: MpiState, attributes: ObjectAttributes): Record<string, readonly [number, Call]> {
  const { types } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  const made = (type: Datatype, pointer: number): number => store(pointer, types.add(type));
  const checkCount = (count: number): void => {
    if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
  };
  /** Blocks at places that are counted in bytes. */
  const blocks = (
    name: string,
    lengths: readonly number[],
    places: readonly number[],
    of: readonly Datatype[],
  ): Datatype => {
    for (const length of lengths) checkCount(length);
    const parts: TypePart[] = lengths.map((count, index) => ({
      offset: places[index] as number,
      count,
      type: of[index] as Datatype,
    }));
    return derived(name, parts);
  };
  const vector = (name: string, given: readonly number[], inBytes: boolean): number => {
    const [count, length, stride, handle, pointer] = given as [number, number, number, number, number];
    checkCount(count);
    const type = types.get(handle);
    const step = inBytes ? stride : stride * type.extent;
    const lengths = new Array<number>(count).fill(length);
    const places = lengths.map((_, index) => index * step);
    return made(blocks(name, lengths, places, new Array<Datatype>(count).fill(type)), pointer);
  };
  const indexed = (name: string, given: readonly number[], inBytes: boolean, isEven: boolean): number => {
    const [count, lengths, places, handle, pointer] = given as [number, number, number, number, number];
    checkCount(count);
    const type = types.get(handle);
    const unit = inBytes ? 1 : type.extent;
    const counts = isEven ? new Array<number>(count).fill(lengths) : state.array(lengths, count);
    const at = state.array(places, count).map((place) => place * unit);
    return made(blocks(name, counts, at, new Array<Datatype>(count).fill(type)), pointer);
  };
  return {
    MPI_Type_contiguous: [
      -1,
      (count, handle, pointer) => {
        checkCount(count as number);
        const type = types.get(handle as number);
        return made(derived("contiguous", [{ offset: 0, count: count as number, type }]), pointer as number);
      },
    ],
    MPI_Type_vector: [-1, (...given) => vector("vector", given, false)],
    MPI_Type_create_hvector: [-1, (...given) => vector("hvector", given, true)],
    MPI_Type_indexed: [-1, (...given) => indexed("indexed", given, false, false)],
    MPI_Type_create_hindexed: [-1, (...given) => indexed("hindexed", given, true, false)],
    MPI_Type_create_indexed_block: [-1, (...given) => indexed("indexed_block", given, false, true)],
    MPI_Type_create_hindexed_block: [-1, (...given) => indexed("hindexed_block", given, true, true)],
    MPI_Type_create_struct: [
      -1,
      (count, lengths, places, handles, pointer) => {
        checkCount(count as number);
        const of = state.array(handles as number, count as number).map((handle) => types.get(handle));
        const counts = state.array(lengths as number, count as number);
        return made(blocks("struct", counts, state.array(places as number, count as number), of), pointer as number);
      },
    ],
    MPI_Type_create_subarray: [
      -1,
      (dims, sizes, subsizes, starts, order, handle, pointer) => {
        const arrays = [sizes, subsizes, starts].map((array) => state.array(array as number, dims as number));
        if (order !== ORDER_C) for (const array of arrays) array.reverse();
        const [all, part, start] = arrays as [number[], number[], number[]];
        return made(subarray(all, part, start, types.get(handle as number)), pointer as number);
      },
    ],
    MPI_Type_create_resized: [
      -1,
      (handle, lowerBound, extent, pointer) => {
        const type = types.get(handle as number);
        return made(
          { ...type, name: "resized", lowerBound: lowerBound as number, extent: extent as number, ...fresh() },
          pointer as number,
        );
      },
    ],
    MPI_Type_dup: [
      -1,
      (handle, pointer) => {
        const type = types.get(handle as number);
        const copy = { ...type, ...fresh(), isCommitted: type.isCommitted };
        attributes.copy(
          { handle: handle as number, attributes: type.attributes },
          { handle: 0, attributes: copy.attributes },
        );
        return made(copy, pointer as number);
      },
    ],
    MPI_Type_create_darray: [
      -1,
      (...given) => {
        const [ranks, rank, count, sizes, hows, args, grid, order, handle, pointer] = given as number[] & {
          length: 10;
        };
        const [size, how, argument, among] = [sizes, hows, args, grid].map((at) =>
          state.array(at as number, count as number),
        ) as [number[], number[], number[], number[]];
        const cart: CartTopology = { kind: "cart", dims: among, periods: [] };
        if (
          among.reduce((all, one) => all * one, 1) !== ranks ||
          !((rank as number) >= 0 && (rank as number) < (ranks as number))
        )
          throw new MpiFailure(ERR.ARG, `rank ${rank} of ${ranks} in a grid of ${among.join(" × ")}`);
        const coords = coordsOf(cart, rank as number);
        const dims = size.map((elements, dim) => ({
          size: elements,
          how: how[dim] as number,
          argument: argument[dim] as number,
          ranks: among[dim] as number,
          at: coords[dim] as number,
        }));
        if (order !== ORDER_C) dims.reverse();
        return made(darray(dims, types.get(handle as number)), pointer as number);
      },
    ],
    MPI_Type_commit: [
      -1,
      (pointer) => {
        types.commit(state.word(pointer as number));
        return SUCCESS;
      },
    ],
    MPI_Type_free: [
      -1,
      (pointer) => {
        const handle = state.word(pointer as number);
        if (handle >= FIRST_OWN) attributes.clear({ handle, attributes: types.get(handle).attributes });
        types.remove(handle);
        return store(pointer as number, DATATYPE_NULL);
      },
    ],
    MPI_Type_size: [-1, (handle, pointer) => store(pointer as number, types.get(handle as number).bytes)],
    MPI_Type_get_extent: [
      -1,
      (handle, lowerBound, extent) => {
        const type = types.get(handle as number);
        state.setWord(lowerBound as number, type.lowerBound);
        return store(extent as number, type.extent);
      },
    ],
    MPI_Type_get_true_extent: [
      -1,
      (handle, lowerBound, extent) => {
        const { runs } = types.get(handle as number);
        const starts = runs.filter((_, index) => index % 2 === 0);
        const low = starts.length === 0 ? 0 : Math.min(...starts);
        const high = Math.max(low, ...starts.map((start, index) => start + (runs[2 * index + 1] as number)));
        state.setWord(lowerBound as number, low);
        return store(extent as number, high - low);
      },
    ],
    MPI_Get_address: [-1, (place, pointer) => store(pointer as number, place as number)],
    ...packCalls(state, store),
  };
}

/** A block of an array of several dimensions, the last of which runs fastest. */
function subarray(all: readonly number[], part: readonly number[], start: readonly number[], type: Datatype): Datatype {
  let inner: Datatype = type;
  let whole = 1;
  for (let dim = all.length - 1; dim >= 0; dim--) {
    const [size, count, first] = [all[dim] as number, part[dim] as number, start[dim] as number];
    if (!(count >= 1 && first >= 0 && first + count <= size)) {
      throw new MpiFailure(ERR.ARG, `${count} elements from ${first} on are no part of dimension ${dim} of ${size}`);
    }
    const step = whole * type.extent;
    const parts = Array.from({ length: count }, (_, index) => ({
      offset: (first + index) * step,
      count: 1,
      type: inner,
    }));
    inner = derived("subarray", parts, { lowerBound: 0, extent: size * step });
    whole *= size;
  }
  return inner;
}

function packCalls(
  state: MpiState,
  store: (pointer: number, value: number) => number,
): Record<string, readonly [number, Call]> {
  const { types, copyWithin } = state;
  return {
    MPI_Pack: [
      6,
      (from, count, handle, to, size, position) => {
        const type = types.committed(handle as number);
        const at = state.word(position as number);
        const bytes = (count as number) * type.bytes;
        if (at + bytes > (size as number))
          throw new MpiFailure(ERR.TRUNCATE, `${bytes} bytes from ${at} on do not fit into ${size}`);
        pack(copyWithin, type, from as number, count as number, (to as number) + at);
        return store(position as number, at + bytes);
      },
    ],
    MPI_Unpack: [
      6,
      (from, size, position, to, count, handle) => {
        const type = types.committed(handle as number);
        const at = state.word(position as number);
        const bytes = (count as number) * type.bytes;
        if (at + bytes > (size as number))
          throw new MpiFailure(ERR.TRUNCATE, `${bytes} bytes from ${at} on are not in ${size}`);
        unpack(copyWithin, type, (from as number) + at, bytes, to as number);
        return store(position as number, at + bytes);
      },
    ],
    MPI_Pack_size: [
      2,
      (count, handle, _comm, pointer) =>
        store(pointer as number, (count as number) * types.get(handle as number).bytes),
    ],
  };
}
