// Lets `pamir top` see a node that no monitor shows.

import type { VisiblePlace } from "../../observe/visible.js";
import { machineIdentity } from "../../process/identity.js";
import { environment, nodeModule } from "../../support/host.js";
import type { NodeTopSetup } from "../node/node-top.js";
import { startWorker } from "../node/start-worker.js";
import type { StartedAgent } from "../node/started-agent.js";
import type { Introduction } from "./introduce.js";
import type { JoinedMemory } from "./node-memory.js";
import type { NodePlace } from "./place.js";

/** What is known of a node, and of its job. */
export interface Shown {
  readonly place: NodePlace;
  readonly all: readonly Introduction[];
  /** Of a job of launch(): the command line. */
  readonly linked: { readonly program: readonly string[] | undefined } | undefined;
  /** The kind of the node's link. */
  readonly kind: { readonly name: string };
}

/** Lets `pamir top` see a node, if the job has opted in. Returns a function that ends this. */
export async function showNode(
  { shared, job }: JoinedMemory,
  { place: own, all, linked, kind }: Shown,
  agent: StartedAgent | undefined,
): Promise<() => void> {
  const { node, nodes, perNode, locals, first } = own;
  const program = linked?.program ?? process.argv;
  const { random, isVisible } = all[0] as Introduction;
  if (!isVisible) return () => {};
  const { topSource } = await import("../../generated/top.js");
  const here = machineIdentity();
  const place: VisiblePlace = {
    job: random,
    name: environment("PAMIR_JOB"),
    // A later node's number is the number of its task.
    node: node < nodes ? node : first,
    tasksPerNode: locals,
    parent: process.ppid,
    nodes: Array.from({ length: nodes }, (_, other) => {
      const { pid, machine } = all[other * perNode] as Introduction;
      return { pid, isHere: machine === here };
    }),
  };
  const { MessageChannel } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  const { port1, port2 } = agent === undefined ? {} : new MessageChannel();
  if (port1 !== undefined) agent?.order({ asked: port1 }, [port1]);
  const workerData: NodeTopSetup = { shared, job, program, place, link: kind.name, agent: port2 };
  const transferList = port2 === undefined ? [] : [port2];
  const worker = startWorker(topSource, { workerData, transferList, name: "pamir top" });
  worker.on("error", ({ message }) => process.emitWarning(`pamir: top can't see node ${node}: ${message}`));
  // A worker begins only while its parent's event loop turns, and a task may block from here on.
  await new Promise((resolve) => worker.once("online", resolve).once("exit", resolve));
  worker.unref();
  return () => worker.postMessage("end");
}
