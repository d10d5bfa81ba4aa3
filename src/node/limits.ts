// The limits of one node in a job of several, each with a memory and an agent of its own.
import { ENDPOINT_COUNT_MAX } from "../../assembly/layout.js";
import { PamiError } from "../core/error.js";
import type { Limits } from "../memory/map.js";
import { taskAt } from "./address.js";

/** Slots that a task of another node needs: the last free one is the agent's (`SlotTable.bind`). */
const PEERS_MIN = 2;

/**
 * @param limits of the job. It may have more endpoints than a node has ordinals
 * @param locals tasks of the node
 * @param peers tasks of other nodes that may have a slot at once; fewer, if no more endpoints fit (default: all)
 * @throws PAMIR_INVAL the node's own endpoints leave no room for tasks of other nodes
 */
export function nodeLimits(limits: Limits, locals: number, peers?: number): Limits {
  const { contexts, tasks, jobTasks = tasks } = limits;
  const others = Math.max(0, jobTasks - locals);
  const room = taskAt(limits, ENDPOINT_COUNT_MAX) - locals;
  const least = Math.min(others, PEERS_MIN);
  if (room < least) {
    const needed = (locals + least) * contexts;
    throw new PamiError(
      "PAMIR_INVAL",
      `a node of ${locals} tasks with ${contexts} contexts, and ${least} tasks of other nodes, are ${needed} endpoints, the limit is ${ENDPOINT_COUNT_MAX}`,
    );
  }
  const slots = Math.min(peers ?? others, room);
  return { ...limits, tasks: locals + slots, locals, jobTasks, engine: true };
}
