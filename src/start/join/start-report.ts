// What a process with the agent of a node tells its launcher, or its job's steward, for nodes that come later.
import type { StartReport } from "../../bootstrap/later.js";
import type { Address } from "../../link/link.js";
import { nodeModule } from "../../support/host.js";
import type { Introduction } from "./introduce.js";
import type { NodePlace } from "./place.js";

/** @param addresses by node; null: it has ended */
export function reportOf(
  all: readonly Introduction[],
  { nodes, perNode }: NodePlace,
  addresses: readonly (Address | null)[],
): StartReport {
  const { layoutHash, random, options, isVisible, machine, network } = all[0] as Introduction;
  const isOne = all.every((one) => one.machine === machine && one.network === network);
  return {
    nodes,
    perNode,
    layoutHash,
    random,
    options,
    isVisible,
    machine: isOne ? machine : "",
    network: isOne ? network : "",
    addresses,
  };
}

/** @param descriptor is this function's: it writes the report there, and closes it */
export function reportTo(descriptor: number, report: StartReport): void {
  const { Socket } = nodeModule("net") as typeof import("node:net");
  const socket = new Socket({ fd: descriptor, readable: false, writable: true });
  // The launcher has ended: no later node asks it.
  socket.on("error", () => {});
  socket.end(JSON.stringify(report));
  socket.unref();
}
