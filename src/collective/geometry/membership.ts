// The table that the members of a geometry have exchanged.
import type { Endpoint } from "../../core/endpoint.js";
import type { SharedMembers } from "../shared/shared-members.js";

/** The table that the members exchanged when the geometry was made. */
export interface Membership {
  /** Id of the geometry at this member. */
  readonly id: number;
  readonly rank: number;
  readonly endpoints: readonly Endpoint[];
  /** The geometry's id at each member. */
  readonly ids: readonly number[];
  /** The node of each member: the number of the node's first task. */
  readonly nodes: readonly number[];
  /** Whether all members are in debug mode. */
  readonly isChecked: boolean;
  /** If all members share a memory. */
  readonly shared: SharedMembers | undefined;
  /** At the first member: the table that the other members got. */
  readonly table: Uint8Array | undefined;
  /** Releases this member's block. No other member reads it any more. */
  readonly release: () => void;
}
