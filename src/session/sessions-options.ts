// The options of a node's sessions.
import type { Memory, PacketKernel } from "../kernel/kernel.js";
import type { Address, Link } from "../link/link.js";
import type { MakeController } from "./pace/congestion.js";
import type { Arena } from "./store/arena.js";
import type { KeySchedule } from "./wire/key-schedule.js";

/** Microseconds of unanswered attempts after which a node is given up (D10), unless an option says otherwise. */
export const SILENCE_DEFAULT = 60_000_000;

/**
 * Why everything is lost that was queued for a node, or came from it. `silent`: it did not answer. `refused`: it refuses this
 * node. `restarted`: it is another incarnation. `givenUp`: it has given this node up, because this one did not answer.
 */
export type Loss = "silent" | "refused" | "restarted" | "givenUp";

export interface SessionsOptions {
  readonly kernel: PacketKernel;
  readonly memory: Memory;
  readonly arena: Arena;
  readonly link: Link;
  /** Microseconds. The clock should be monotonic, but may jump. */
  readonly now: () => number;
  /** Returns any u32. With a key schedule, the source must be cryptographic. */
  readonly random: () => number;
  /** The number of this node. Of two live nodes with the same number, one is refused. */
  readonly node: number;
  /** How often this node has been started. */
  readonly epoch: number;
  /** The numbers of nodes are below it, at most 2^24. It is only a limit: no state grows with it. */
  readonly nodes: number;
  /**
   * The node of an endpoint, which may be any u32; -1: the job has no such endpoint. It is asked about endpoints that other
   * nodes name, so it must not throw.
   */
  readonly nodeOf: (endpoint: number) => number;
  /** The job's fingerprint. */
  readonly job: number;
  /**
   * The address of a node, for packets in both directions; with a key schedule, until the node moves. It must return an empty
   * string for a number that no node has, and must not throw. Undefined: the node is mobile, which takes a key schedule. It
   * connects first, from any address.
   */
  readonly addressOf: (node: number) => Address | undefined;
  /** Derived from the job key. If it is undefined, packets travel unsealed, and sealed ones are dropped. */
  readonly keySchedule?: KeySchedule | undefined;
  /** Packets that a session sends before another session with other keys replaces it: 64 to 2^30. */
  readonly sessionPackets?: number | undefined;
  /** Makes the congestion controller of each session; the default is DelayController. */
  readonly congestion?: MakeController | undefined;
  /** DC initiator contexts (default 8). */
  readonly initiators?: number | undefined;
  /** Responders (default 64). */
  readonly responders?: number | undefined;
  /** Bytes of content that may be queued for one node, or in flight to it (default 6 MiB). */
  readonly txQueueBytes?: number | undefined;
  /** Microseconds without an answer after which a node is given up (default SILENCE_DEFAULT). */
  readonly silence?: number | undefined;
  /**
   * Calls `call` when the link has delivered all packets that have come together (default: at once). Then they cost one
   * acknowledgment.
   */
  readonly soon?: ((call: () => void) => void) | undefined;
  /** An attempt to connect to a node, or to probe it, got no answer: the number of such attempts in a row. */
  readonly onUnanswered?: ((node: number, attempts: number) => void) | undefined;
  /** Gets a pointer to each segment, in order. The pointer is valid until it returns. */
  readonly deliver: (segment: number) => void;
  /**
   * Another node was given up, has restarted, or has given this one up. Everything that was queued for it is lost.
   * @param refused why the node refuses this one: REFUSED_NODE, REFUSED_NAME; else 0
   */
  readonly onLost: (node: number, why: Loss, refused: number) => void;
}
