// The topology of a communicator, and the neighbors of its ranks. Source: MPI 5.0, chapter 8.
import type { RankGroup } from "../../../mpi/engine.js";
import { ERR, PROC_NULL } from "../constants.js";
import { MpiFailure } from "../failure.js";

export interface CartTopology {
  readonly kind: "cart";
  /** Ranks in each dimension, and whether it is a ring. */
  readonly dims: readonly number[];
  readonly periods: readonly boolean[];
}

export interface GraphTopology {
  readonly kind: "graph";
  /** Where the edges of each rank end, and the neighbors of all ranks. */
  readonly index: readonly number[];
  readonly edges: readonly number[];
}

export interface DistGraphTopology {
  readonly kind: "distGraph";
  readonly sources: readonly number[];
  readonly destinations: readonly number[];
  /** undefined: edges have no weights. */
  readonly sourceWeights: readonly number[] | undefined;
  readonly destinationWeights: readonly number[] | undefined;
}

export type TopologyShape = CartTopology | GraphTopology | DistGraphTopology;

export interface CommTopology {
  readonly shape: TopologyShape;
  /** Messages between neighbors have a number of their own: no receive of the program gets one. */
  readonly messages: RankGroup;
}

/** A neighbor, and the tag of the messages on this edge. */
export interface Neighbor {
  readonly rank: number;
  readonly tag: number;
}

/** The coordinates of a rank: the last dimension runs fastest. */
export function coordsOf({ dims }: CartTopology, rank: number): number[] {
  const coords = new Array<number>(dims.length);
  let left = rank;
  for (let dim = dims.length - 1; dim >= 0; dim--) {
    const size = dims[dim] as number;
    coords[dim] = left % size;
    left = Math.floor(left / size);
  }
  return coords;
}

/** The rank at coordinates; beyond the end of a dimension that is no ring: MPI_PROC_NULL. */
export function rankAt({ dims, periods }: CartTopology, coords: readonly number[]): number {
  let rank = 0;
  for (const [dim, size] of dims.entries()) {
    let at = coords[dim] as number;
    if (periods[dim]) at = ((at % size) + size) % size;
    if (at < 0 || at >= size) return PROC_NULL;
    rank = rank * size + at;
  }
  return rank;
}

/** The rank that is some steps away in a dimension. */
export function shifted(cart: CartTopology, rank: number, dim: number, steps: number): number {
  const coords = coordsOf(cart, rank);
  coords[dim] = (coords[dim] as number) + steps;
  return rankAt(cart, coords);
}

/** The neighbors of a rank in a graph. */
export function graphNeighbors({ index, edges }: GraphTopology, rank: number): readonly number[] {
  if (!(rank >= 0 && rank < index.length))
    throw new MpiFailure(ERR.RANK, `rank ${rank} is none of 0 to ${index.length - 1}`);
  return edges.slice(rank === 0 ? 0 : index[rank - 1], index[rank]);
}

/** The ranks from which a rank receives, and those to which it sends, in the order of the blocks of neighborhood operations. */
export function neighborsOf(
  shape: TopologyShape,
  rank: number,
): { readonly sources: readonly Neighbor[]; readonly destinations: readonly Neighbor[] } {
  if (shape.kind !== "cart") {
    const isDist = shape.kind === "distGraph";
    const named = (ranks: readonly number[]): Neighbor[] => ranks.map((other) => ({ rank: other, tag: 0 }));
    const both = isDist ? [] : graphNeighbors(shape, rank);
    return {
      sources: named(isDist ? shape.sources : both),
      destinations: named(isDist ? shape.destinations : both),
    };
  }
  // In a ring of two, both neighbors are one rank: the direction in which a message goes is its tag.
  const sources: Neighbor[] = [];
  const destinations: Neighbor[] = [];
  shape.dims.forEach((_, dim) => {
    const below = shifted(shape, rank, dim, -1);
    const above = shifted(shape, rank, dim, 1);
    sources.push({ rank: below, tag: 2 * dim + 1 }, { rank: above, tag: 2 * dim });
    destinations.push({ rank: below, tag: 2 * dim }, { rank: above, tag: 2 * dim + 1 });
  });
  return { sources, destinations };
}
