// What the members of a geometry have told each other.
import type { Endpoint } from "../../core/endpoint.js";
import type { SharedMembers } from "../shared/shared-members.js";

/** What the members have told each other when the geometry was made. */
export interface Membership {
  /** Id of the geometry at this member. */
  readonly id: number;
  readonly rank: number;
  readonly endpoints: readonly Endpoint[];
  /** Its id at each member. */
  readonly ids: readonly number[];
  /** The node of each member: the number of the node's first task. */
  readonly nodes: readonly number[];
  /** Whether all members are in debug mode. */
  readonly isChecked: boolean;
  /** If all members share a memory. */
  readonly shared: SharedMembers | undefined;
  /** At the first member: what the others were told. */
  readonly table: Uint8Array | undefined;
  /** Releases this member's block. No other member reads it any more. */
  readonly release: () => void;
}
