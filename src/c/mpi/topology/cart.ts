// Cartesian topologies: grids and rings of ranks. Source: MPI 5.0, section 8.5.
import { ERR, SUCCESS, UNDEFINED } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import { addWithTopology, shapeOf } from "./objects.js";
import { type CartTopology, coordsOf, rankAt, shifted } from "./topology.js";

const product = (numbers: readonly number[]): number => numbers.reduce((all, number) => all * number, 1);

/** The dimensions of a grid. @throws MpiFailure MPI_ERR_DIMS, if one is no number from 1, or the grid has too many ranks */
function checkDims(dims: readonly number[], size: number): void {
  const wrong = dims.find((dim) => dim < 1);
  if (wrong !== undefined) throw new MpiFailure(ERR.DIMS, `a dimension is ${wrong}, not a number from 1`);
  if (product(dims) > size)
    throw new MpiFailure(ERR.DIMS, `a grid of ${dims.join(" × ")} ranks, where there are ${size}`);
}

/** Divides ranks among free dimensions, as evenly as they can be: the first one gets most. */
function divided(ranks: number, count: number, most: number): number[] | undefined {
  if (count === 1) return ranks <= most ? [ranks] : undefined;
  let best: number[] | undefined;
  const spread = (dims: readonly number[]): number => (dims[0] as number) - (dims.at(-1) as number);
  for (let first = Math.min(most, ranks); first ** count >= ranks; first--) {
    if (ranks % first !== 0) continue;
    const rest = divided(ranks / first, count - 1, first);
    if (rest === undefined) continue;
    const dims = [first, ...rest];
    if (best === undefined || spread(dims) <= spread(best)) best = dims;
  }
  return best;
}

export function cartCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const { comms } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  const storeAll = (pointer: number, values: readonly number[], most: number): void => {
    state.words.set(values.slice(0, most), pointer >>> 2);
  };
  const cartOf = (handle: number): CartTopology => shapeOf(comms.get(handle), "cart");
  const given = (count: number, dims: number, periods: number): CartTopology => ({
    kind: "cart",
    dims: state.array(dims, count),
    periods: state.array(periods, count).map((isRing) => isRing !== 0),
  });
  return {
    MPI_Cart_create: [
      0,
      (handle, count, dims, periods, _reorder, pointer) => {
        const parent = comms.get(handle as number);
        const cart = given(count as number, dims as number, periods as number);
        checkDims(cart.dims, parent.comm.size);
        const used = product(cart.dims);
        const members = parent.comm.rank < used ? parent.comm.endpoints.slice(0, used) : undefined;
        return store(pointer as number, addWithTopology(state, parent, parent.comm.create(members), cart));
      },
    ],
    MPI_Cart_sub: [
      0,
      (handle, pointer, made) => {
        const parent = comms.get(handle as number);
        const { dims, periods } = cartOf(handle as number);
        const remains = state.array(pointer as number, dims.length).map((flag) => flag !== 0);
        const coords = coordsOf(cartOf(handle as number), parent.comm.rank);
        let color = 0;
        dims.forEach((size, dim) => {
          if (!remains[dim]) color = color * size + (coords[dim] as number);
        });
        const part: CartTopology = {
          kind: "cart",
          dims: dims.filter((_, dim) => remains[dim]),
          periods: periods.filter((_, dim) => remains[dim]),
        };
        const comm = parent.comm.split(color, parent.comm.rank);
        return store(made as number, addWithTopology(state, parent, comm, part));
      },
    ],
    MPI_Cart_map: [
      0,
      (handle, count, dims, periods, pointer) => {
        const { comm } = comms.get(handle as number);
        const cart = given(count as number, dims as number, periods as number);
        checkDims(cart.dims, comm.size);
        return store(pointer as number, comm.rank < product(cart.dims) ? comm.rank : UNDEFINED);
      },
    ],
    MPI_Cart_coords: [
      0,
      (handle, rank, most, pointer) => {
        const { size } = comms.get(handle as number).comm;
        if (!((rank as number) >= 0 && (rank as number) < size))
          throw new MpiFailure(ERR.RANK, `rank ${rank} is none of 0 to ${size - 1}`);
        storeAll(pointer as number, coordsOf(cartOf(handle as number), rank as number), most as number);
        return SUCCESS;
      },
    ],
    MPI_Cart_rank: [
      0,
      (handle, pointer, rank) => {
        const cart = cartOf(handle as number);
        const coords = state.array(pointer as number, cart.dims.length);
        const found = rankAt(cart, coords);
        if (found < 0)
          throw new MpiFailure(ERR.ARG, `the grid of ${cart.dims.join(" × ")} has no rank at ${coords.join(", ")}`);
        return store(rank as number, found);
      },
    ],
    MPI_Cart_shift: [
      0,
      (handle, dim, steps, from, to) => {
        const cart = cartOf(handle as number);
        const { rank } = comms.get(handle as number).comm;
        if (!((dim as number) >= 0 && (dim as number) < cart.dims.length))
          throw new MpiFailure(ERR.DIMS, `dimension ${dim} is none of 0 to ${cart.dims.length - 1}`);
        state.setWord(from as number, shifted(cart, rank, dim as number, -(steps as number)));
        return store(to as number, shifted(cart, rank, dim as number, steps as number));
      },
    ],
    MPI_Cart_get: [
      0,
      (handle, most, dims, periods, coords) => {
        const cart = cartOf(handle as number);
        storeAll(dims as number, cart.dims, most as number);
        storeAll(periods as number, cart.periods.map(Number), most as number);
        storeAll(coords as number, coordsOf(cart, comms.get(handle as number).comm.rank), most as number);
        return SUCCESS;
      },
    ],
    MPI_Cartdim_get: [0, (handle, pointer) => store(pointer as number, cartOf(handle as number).dims.length)],
    MPI_Dims_create: [
      -1,
      (ranks, count, pointer) => {
        const dims = state.array(pointer as number, count as number);
        const negative = dims.find((dim) => dim < 0);
        if (negative !== undefined) throw new MpiFailure(ERR.DIMS, `a dimension is ${negative}`);
        const fixed = product(dims.filter((dim) => dim > 0));
        const free = dims.filter((dim) => dim === 0).length;
        if ((ranks as number) < 1 || (ranks as number) % fixed !== 0 || (free === 0 && ranks !== fixed))
          throw new MpiFailure(ERR.DIMS, `${ranks} ranks are no multiple of ${fixed}`);
        if (free === 0) return SUCCESS;
        const left = (ranks as number) / fixed;
        const parts = divided(left, free, left) as number[];
        state.words.set(
          dims.map((dim) => (dim > 0 ? dim : (parts.shift() as number))),
          (pointer as number) >>> 2,
        );
        return SUCCESS;
      },
    ],
  };
}
