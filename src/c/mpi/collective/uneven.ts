// Collective operations with blocks of several lengths, and of several types.
import type { AllgathervParameters, AlltoallvParameters, GathervParameters } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { IN_PLACE } from "../constants.js";
import type { Collectives } from "./collectives.js";
import type { CollectiveRow, PreparedCollective } from "./prepared.js";
import { type DenseBlocks, endOf, viewOf } from "./sides.js";

function alltoallv(comm: Communicator, send: DenseBlocks | undefined, receive: DenseBlocks): PreparedCollective {
  const given = send ?? receive;
  const parameters = {
    send: viewOf(send),
    receive: receive.view,
    sendCounts: given.counts,
    sendDisplacements: given.displacements,
    receiveCounts: receive.counts,
    receiveDisplacements: receive.displacements,
  };
  return { comm, type: "alltoallv", parameters, end: endOf(send, receive) };
}

export function unevenRows(all: Collectives): CollectiveRow[] {
  return [
    {
      name: "Allgatherv",
      arity: 8,
      run: (geometry, what) => geometry.allgathervSync(what as AllgathervParameters),
      prepare: (...given) => {
        const [from, sendCount, sendType, to, counts, places, type, handle] = given as number[] & { length: 8 };
        const comm = all.comm(handle as number);
        const isInPlace = from === IN_PLACE;
        const send = isInPlace ? undefined : all.side(from as number, sendCount as number, sendType as number, true);
        const blocks = all.blocks(
          to as number,
          counts as number,
          places as number,
          type as number,
          comm.size,
          isInPlace,
        );
        const { counts: lengths, displacements } = blocks;
        const parameters = { send: viewOf(send), receive: blocks.view, counts: lengths, displacements };
        return { comm, type: "allgatherv", parameters, end: endOf(send, blocks) };
      },
    },
    {
      name: "Gatherv",
      arity: 9,
      run: (geometry, what) => geometry.gathervSync(what as GathervParameters),
      prepare: (...given) => {
        const [from, sendCount, sendType, to, counts, places, type, root, handle] = given;
        const comm = all.commOf(handle as number, root as number);
        const isInPlace = from === IN_PLACE;
        const send = isInPlace ? undefined : all.side(from as number, sendCount as number, sendType as number, true);
        const blocks =
          comm.rank === root
            ? all.blocks(to as number, counts as number, places as number, type as number, comm.size, isInPlace)
            : undefined;
        const lengths = { counts: blocks?.counts, displacements: blocks?.displacements };
        const parameters = { send: viewOf(send), receive: viewOf(blocks), ...lengths, root };
        return { comm, type: "gatherv", parameters, end: endOf(send, blocks) };
      },
    },
    {
      name: "Scatterv",
      arity: 9,
      run: (geometry, what) => geometry.scattervSync(what as GathervParameters),
      prepare: (...given) => {
        const [from, counts, places, sendType, to, count, type, root, handle] = given;
        const comm = all.commOf(handle as number, root as number);
        const blocks =
          comm.rank === root
            ? all.blocks(from as number, counts as number, places as number, sendType as number, comm.size, true)
            : undefined;
        const receive = to === IN_PLACE ? undefined : all.side(to as number, count as number, type as number, false);
        const lengths = { counts: blocks?.counts, displacements: blocks?.displacements };
        const parameters = { send: viewOf(blocks), receive: viewOf(receive), ...lengths, root };
        return { comm, type: "scatterv", parameters, end: endOf(blocks, receive) };
      },
    },
    {
      name: "Alltoallv",
      arity: 9,
      run: (geometry, what) => geometry.alltoallvSync(what as AlltoallvParameters),
      prepare: (...given) => {
        const [from, sendCounts, sendPlaces, sendType, to, counts, places, type, handle] = given as number[];
        const comm = all.comm(handle as number);
        const isInPlace = from === IN_PLACE;
        const { size } = comm;
        const send = isInPlace
          ? undefined
          : all.blocks(from as number, sendCounts as number, sendPlaces as number, sendType as number, size, true);
        const receive = all.blocks(to as number, counts as number, places as number, type as number, size, isInPlace);
        return alltoallv(comm, send, receive);
      },
    },
    {
      name: "Alltoallw",
      arity: 9,
      run: (geometry, what) => geometry.alltoallvSync(what as AlltoallvParameters),
      prepare: (...given) => {
        const [from, sendCounts, sendPlaces, sendTypes, to, counts, places, types, handle] = given as number[];
        const comm = all.comm(handle as number);
        const isInPlace = from === IN_PLACE;
        const { size } = comm;
        const send = isInPlace
          ? undefined
          : all.typedBlocks(
              from as number,
              sendCounts as number,
              sendPlaces as number,
              sendTypes as number,
              size,
              true,
            );
        const receive = all.typedBlocks(
          to as number,
          counts as number,
          places as number,
          types as number,
          size,
          isInPlace,
        );
        return alltoallv(comm, send, receive);
      },
    },
  ];
}
