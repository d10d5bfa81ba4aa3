// Topologies by edges, of which each rank knows all, or its own. Source: MPI 5.0, section 8.5.
import { SUCCESS as OK } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { ERR, SUCCESS, UNDEFINED } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import { addWithTopology, shapeOf } from "./objects.js";
import { type DistGraphTopology, type GraphTopology, graphNeighbors, type TopologyShape } from "./topology.js";

const KINDS: Readonly<Record<TopologyShape["kind"], number>> = { cart: 211, graph: 212, distGraph: 213 };
/** Pointers in place of weights. */
const UNWEIGHTED = 10;
/** Words of an edge: source, destination, weight. */
const EDGE = 3;

function checkRanks(ranks: readonly number[], size: number): void {
  const wrong = ranks.find((rank) => !(rank >= 0 && rank < size));
  if (wrong !== undefined) throw new MpiFailure(ERR.RANK, `rank ${wrong} is none of 0 to ${size - 1}`);
}

/** The edges that all members name: those that begin or end at this one. */
function allEdges(comm: Communicator, own: Int32Array): Int32Array {
  comm.settle();
  const { geometry } = comm;
  const counts = new Int32Array(comm.size);
  let result = geometry.allgatherSync({ send: Int32Array.of(own.length), receive: counts });
  const all = new Int32Array(counts.reduce((sum, count) => sum + count, 0));
  if (result === OK) result = geometry.allgathervSync({ send: own, receive: all, counts });
  if (result !== OK) throw new MpiFailure(ERR.PROC_FAILED, comm.failure("MPI_Dist_graph_create").message);
  return all;
}

export function graphCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const { comms } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  const storeAll = (pointer: number, values: readonly number[], most: number): void => {
    state.words.set(values.slice(0, most), pointer >>> 2);
  };
  const graphOf = (handle: number): GraphTopology => shapeOf(comms.get(handle), "graph");
  return {
    MPI_Topo_test: [
      0,
      (handle, pointer) => {
        const shape = comms.get(handle as number).topology?.shape;
        return store(pointer as number, shape === undefined ? UNDEFINED : KINDS[shape.kind]);
      },
    ],
    MPI_Graph_create: [
      0,
      (handle, count, indices, edges, _reorder, pointer) => {
        const parent = comms.get(handle as number);
        const { size, rank, endpoints } = parent.comm;
        if (!((count as number) >= 0 && (count as number) <= size))
          throw new MpiFailure(ERR.ARG, `a graph of ${count} ranks, where there are ${size}`);
        const index = state.array(indices as number, count as number);
        const graph: GraphTopology = { kind: "graph", index, edges: state.array(edges as number, index.at(-1) ?? 0) };
        checkRanks(graph.edges, count as number);
        const members = rank < (count as number) ? endpoints.slice(0, count) : undefined;
        return store(pointer as number, addWithTopology(state, parent, parent.comm.create(members), graph));
      },
    ],
    MPI_Graph_map: [
      0,
      (handle, count, _indices, _edges, pointer) => {
        const { rank, size } = comms.get(handle as number).comm;
        if (!((count as number) >= 0 && (count as number) <= size))
          throw new MpiFailure(ERR.ARG, `a graph of ${count} ranks, where there are ${size}`);
        return store(pointer as number, rank < (count as number) ? rank : UNDEFINED);
      },
    ],
    MPI_Graphdims_get: [
      0,
      (handle, ranks, edges) => {
        const graph = graphOf(handle as number);
        state.setWord(ranks as number, graph.index.length);
        return store(edges as number, graph.edges.length);
      },
    ],
    MPI_Graph_get: [
      0,
      (handle, mostIndices, mostEdges, indices, edges) => {
        const graph = graphOf(handle as number);
        storeAll(indices as number, graph.index, mostIndices as number);
        storeAll(edges as number, graph.edges, mostEdges as number);
        return SUCCESS;
      },
    ],
    MPI_Graph_neighbors_count: [
      0,
      (handle, rank, pointer) =>
        store(pointer as number, graphNeighbors(graphOf(handle as number), rank as number).length),
    ],
    MPI_Graph_neighbors: [
      0,
      (handle, rank, most, pointer) => {
        storeAll(pointer as number, graphNeighbors(graphOf(handle as number), rank as number), most as number);
        return SUCCESS;
      },
    ],
    ...distGraphCalls(state, store, storeAll),
  };
}

function distGraphCalls(
  state: MpiState,
  store: (pointer: number, value: number) => number,
  storeAll: (pointer: number, values: readonly number[], most: number) => void,
): Record<string, readonly [number, Call]> {
  const { comms } = state;
  const make = (handle: number, graph: DistGraphTopology, pointer: number): number => {
    const parent = comms.get(handle);
    checkRanks([...graph.sources, ...graph.destinations], parent.comm.size);
    return store(pointer, addWithTopology(state, parent, parent.comm.duplicate(), graph));
  };
  const graphOf = (handle: number): DistGraphTopology => shapeOf(comms.get(handle), "distGraph");
  return {
    MPI_Dist_graph_create_adjacent: [
      0,
      (handle, sourceCount, sources, sourceWeights, count, destinations, weights, _info, _reorder, pointer) => {
        const weightsAt = (at: number, length: number): number[] | undefined =>
          at === UNWEIGHTED ? undefined : state.array(at, length);
        const graph: DistGraphTopology = {
          kind: "distGraph",
          sources: state.array(sources as number, sourceCount as number),
          destinations: state.array(destinations as number, count as number),
          sourceWeights: weightsAt(sourceWeights as number, sourceCount as number),
          destinationWeights: weightsAt(weights as number, count as number),
        };
        return make(handle as number, graph, pointer as number);
      },
    ],
    MPI_Dist_graph_create: [
      0,
      (handle, count, sources, degrees, destinations, weights, _info, _reorder, pointer) => {
        const { comm } = comms.get(handle as number);
        const isWeighted = weights !== UNWEIGHTED;
        const words: number[] = [];
        const from = state.array(sources as number, count as number);
        const counts = state.array(degrees as number, count as number);
        let edge = 0;
        for (const [index, source] of from.entries()) {
          for (let i = 0; i < (counts[index] as number); i++, edge++) {
            const weight = isWeighted ? state.word((weights as number) + 4 * edge) : 0;
            words.push(source, state.word((destinations as number) + 4 * edge), weight);
          }
        }
        const all = allEdges(comm, Int32Array.from(words));
        const [into, out]: [number[][], number[][]] = [[], []];
        for (let at = 0; at < all.length; at += EDGE) {
          const [source, destination, weight] = all.subarray(at, at + EDGE) as unknown as [number, number, number];
          if (destination === comm.rank) into.push([source, weight]);
          if (source === comm.rank) out.push([destination, weight]);
        }
        const column = (edges: readonly number[][], at: number): number[] => edges.map((words) => words[at] as number);
        const graph: DistGraphTopology = {
          kind: "distGraph",
          sources: column(into, 0),
          destinations: column(out, 0),
          sourceWeights: isWeighted ? column(into, 1) : undefined,
          destinationWeights: isWeighted ? column(out, 1) : undefined,
        };
        return make(handle as number, graph, pointer as number);
      },
    ],
    MPI_Dist_graph_neighbors_count: [
      0,
      (handle, sources, destinations, isWeighted) => {
        const graph = graphOf(handle as number);
        state.setWord(sources as number, graph.sources.length);
        state.setWord(destinations as number, graph.destinations.length);
        return store(isWeighted as number, +(graph.sourceWeights !== undefined));
      },
    ],
    MPI_Dist_graph_neighbors: [
      0,
      (handle, mostSources, sources, sourceWeights, most, destinations, weights) => {
        const graph = graphOf(handle as number);
        storeAll(sources as number, graph.sources, mostSources as number);
        storeAll(destinations as number, graph.destinations, most as number);
        if (graph.sourceWeights !== undefined)
          storeAll(sourceWeights as number, graph.sourceWeights, mostSources as number);
        if (graph.destinationWeights !== undefined)
          storeAll(weights as number, graph.destinationWeights, most as number);
        return SUCCESS;
      },
    ],
  };
}
