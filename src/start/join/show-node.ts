// Lets `pamir top` see a node that no monitor shows.

import type { VisiblePlace } from "../../observe/visible.js";
import { machineIdentity } from "../../process/identity.js";
import type { NodeTopSetup } from "../node/node-top.js";
import { startWorker } from "../node/start-worker.js";
import type { Introduction } from "./introduce.js";
import type { JoinedMemory } from "./node-memory.js";
import type { NodePlace } from "./place.js";

/** Lets `pamir top` see a node, if the job has opted in. Returns a function that ends this. */
export async function showNode(
  { shared, job }: JoinedMemory,
  { node, nodes, perNode, locals, first }: NodePlace,
  all: readonly Introduction[],
  program: readonly string[] = process.argv,
): Promise<() => void> {
  const { random, isVisible } = all[0] as Introduction;
  if (!isVisible) return () => {};
  const { topSource } = await import("../../generated/top.js");
  const own = machineIdentity();
  const place: VisiblePlace = {
    job: random,
    // A later node's number is the number of its task.
    node: node < nodes ? node : first,
    tasksPerNode: locals,
    parent: process.ppid,
    nodes: Array.from({ length: nodes }, (_, other) => {
      const { pid, machine } = all[other * perNode] as Introduction;
      return { pid, isHere: machine === own };
    }),
  };
  const workerData: NodeTopSetup = { shared, job, program, place };
  const worker = startWorker(topSource, { workerData, name: "pamir top" });
  worker.on("error", ({ message }) => process.emitWarning(`pamir: top can't see node ${node}: ${message}`));
  // A worker begins only while its parent's event loop turns, and a task may block from here on.
  await new Promise((resolve) => worker.once("online", resolve).once("exit", resolve));
  worker.unref();
  return () => worker.postMessage("end");
}
