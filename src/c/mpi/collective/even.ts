// Collective operations with blocks of equal lengths.
import type { BroadcastParameters, ExchangeParameters, RootedParameters } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { IN_PLACE } from "../constants.js";
import type { Collectives } from "./collectives.js";
import type { CollectiveRow, PreparedCollective } from "./prepared.js";
import { endOf, viewOf } from "./sides.js";

const NOTHING = {};

export function evenRows(all: Collectives): CollectiveRow[] {
  type Numbers = [number, number, number, number, number, number];
  /** DenseBlocks of all to all, or to one. */
  const gathers = (given: readonly number[], comm: Communicator, root: number | undefined): PreparedCollective => {
    const [from, sendCount, sendType, to, count, type] = given as Numbers;
    const isReceiver = root === undefined || root === comm.rank;
    const send = from === IN_PLACE ? undefined : all.side(from, sendCount, sendType, true);
    const receive = isReceiver ? all.side(to, count * comm.size, type, from === IN_PLACE) : undefined;
    const views = { send: viewOf(send), receive: viewOf(receive) };
    return root === undefined
      ? { comm, type: "allgather", parameters: views, end: endOf(send, receive) }
      : { comm, type: "gather", parameters: { ...views, root }, end: endOf(send, receive) };
  };
  return [
    {
      name: "Barrier",
      arity: 1,
      run: (geometry) => geometry.barrierSync(),
      prepare: (handle) => ({ comm: all.comm(handle as number), type: "barrier", parameters: NOTHING }),
    },
    {
      name: "Bcast",
      arity: 5,
      run: (geometry, what) => geometry.broadcastSync(what as BroadcastParameters),
      prepare: (...given) => {
        const [buffer, count, type, root, handle] = given as [number, number, number, number, number];
        const comm = all.commOf(handle, root);
        const isRoot = comm.rank === root;
        const { view, end } = all.side(buffer, count, type, isRoot);
        const parameters = { buffer: view, root };
        return { comm, type: "broadcast", parameters, end: (hasCome) => end(hasCome && !isRoot) };
      },
    },
    {
      name: "Allgather",
      arity: 7,
      run: (geometry, what) => geometry.allgatherSync(what as ExchangeParameters),
      prepare: (...given) => gathers(given, all.comm(given[6] as number), undefined),
    },
    {
      name: "Gather",
      arity: 8,
      run: (geometry, what) => geometry.gatherSync(what as RootedParameters),
      prepare: (...given) => {
        const root = given[6] as number;
        return gathers(given, all.commOf(given[7] as number, root), root);
      },
    },
    {
      name: "Scatter",
      arity: 8,
      run: (geometry, what) => geometry.scatterSync(what as RootedParameters),
      prepare: (...given) => {
        const [from, sendCount, sendType, to, count, type] = given as Numbers;
        const root = given[6] as number;
        const comm = all.commOf(given[7] as number, root);
        const send = comm.rank === root ? all.side(from, sendCount * comm.size, sendType, true) : undefined;
        const receive = to === IN_PLACE ? undefined : all.side(to, count, type, false);
        const parameters = { send: viewOf(send), receive: viewOf(receive), root };
        return { comm, type: "scatter", parameters, end: endOf(send, receive) };
      },
    },
    {
      name: "Alltoall",
      arity: 7,
      run: (geometry, what) => geometry.alltoallSync(what as ExchangeParameters),
      prepare: (...given) => {
        const [from, sendCount, sendType, to, count, type] = given as Numbers;
        const comm = all.comm(given[6] as number);
        const isInPlace = from === IN_PLACE;
        const send = isInPlace ? undefined : all.side(from, sendCount * comm.size, sendType, true);
        const receive = all.side(to, count * comm.size, type, isInPlace);
        const parameters = { send: viewOf(send), receive: receive.view };
        return { comm, type: "alltoall", parameters, end: endOf(send, receive) };
      },
    },
  ];
}
