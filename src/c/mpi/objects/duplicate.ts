// Duplicates of communicators: with their topology, and the attributes that the program's functions copy.
import type { CommObject, MpiState } from "../state.js";
import { addWithTopology } from "../topology/objects.js";
import type { ObjectAttributes } from "./attributes.js";

/** Makes a duplicate. All members call it. @returns its handle */
export function duplicate(state: MpiState, attributes: ObjectAttributes, from: CommObject): number {
  const comm = from.comm.duplicate();
  const { topology } = from;
  const handle =
    topology === undefined ? state.addComm(comm, from) : addWithTopology(state, from, comm, topology.shape);
  attributes.copy(from, state.comms.get(handle));
  return handle;
}
