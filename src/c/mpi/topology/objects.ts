// The topology of a handle.
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { CommObject, MpiState } from "../state.js";
import type { TopologyShape } from "./topology.js";

/** Makes the handle of a communicator with a topology. All members of the parent call it. @param comm undefined: none here */
export function addWithTopology(
  state: MpiState,
  parent: CommObject,
  comm: CommObject["comm"] | undefined,
  shape: TopologyShape,
): number {
  const number = state.communicators.agree(parent.comm);
  const handle = state.addComm(comm, parent);
  if (comm !== undefined) {
    const messages = { number, rank: comm.rank, endpoints: comm.endpoints };
    state.comms.get(handle).topology = { shape, messages };
  }
  return handle;
}

/** The topology of a kind. @throws MpiFailure MPI_ERR_TOPOLOGY */
export function shapeOf<Kind extends TopologyShape["kind"]>(
  object: CommObject,
  kind: Kind,
): Extract<TopologyShape, { kind: Kind }> {
  const shape = object.topology?.shape;
  if (shape?.kind !== kind)
    throw new MpiFailure(
      ERR.TOPOLOGY,
      `the communicator has ${shape === undefined ? "no topology" : `a ${shape.kind}`}`,
    );
  return shape as Extract<TopologyShape, { kind: Kind }>;
}
