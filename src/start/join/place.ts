// Which node each process of a job belongs to: each process decides alone, from the introductions of all.
import type { Introduction } from "./introduce.js";

/** The node of a process. */
export interface NodePlace {
  readonly node: number;
  /** Nodes with which the job begins, and tasks of each. */
  readonly nodes: number;
  readonly perNode: number;
  /** Tasks of this node: 1 if the node comes later. */
  readonly locals: number;
  /** Number of the node's first task. */
  readonly first: number;
}

/**
 * Divides the processes among nodes of equal size, each with consecutive ranks. The size divides the length of every row of
 * processes that can share memory. A process that comes later is a node of its own, as is a process whose task has the agent.
 */
export function placeOf(all: readonly Introduction[], rank: number): NodePlace {
  const isInline = all[0]?.options.agent === "inline";
  const runs: number[] = [];
  let last = "";
  for (const [task, { host, why }] of all.entries()) {
    const name = isInline || host === "" || why !== "" ? `alone ${task}` : host;
    if (name === last) (runs[runs.length - 1] as number)++;
    else runs.push(1);
    last = name;
  }
  const perNode = runs.reduce(greatestDivisor);
  const nodes = all.length / perNode;
  if (rank >= all.length) return { node: nodes + rank - all.length, nodes, perNode, locals: 1, first: rank };
  const node = Math.floor(rank / perNode);
  return { node, nodes, perNode, locals: perNode, first: node * perNode };
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
