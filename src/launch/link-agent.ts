// The worker of a node's agent: it owns the node's link and sessions, and serves the node's tasks. Its code is a string, so
// that no bundler can lose its file. It says its address first; once it knows those of the other nodes, it serves.
import { openMemory, selectKernel } from "../kernel/select.js";
import type { Address } from "../link/link.js";
import { readMap } from "../memory/map.js";
import { futexWithBells } from "../process/pipe-bell.js";
import { type NodePort, nodeModule } from "../support/host.js";
import { serveNode } from "./agent-thread.js";
import { openLink, ProcessNode, type ProcessNodeOrder, type ProcessNodeSetup } from "./process-node.js";

/** From the agent: its address; then, once it serves. */
export type LinkAgentReport = { readonly address: string } | { readonly up: true };
/** To the agent: the addresses of other nodes, once; then what a node obeys. */
export type LinkAgentOrder = { readonly addresses: readonly (Address | null)[] } | ProcessNodeOrder;

const { parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const port = parentPort as NodePort;

function firstOrder(): Promise<readonly (Address | null)[]> {
  return new Promise((resolve) => {
    port.once("message", (order: LinkAgentOrder) => {
      if ("addresses" in order) resolve(order.addresses);
    });
  });
}

async function serve(setup: ProcessNodeSetup): Promise<void> {
  const { shared, futex, job } = setup;
  let addresses: readonly (Address | null)[] = [];
  const link = await openLink(setup, (address) => addresses.includes(address));
  port.postMessage({ address: link.address as Address } satisfies LinkAgentReport);
  addresses = await firstOrder();
  const memory = openMemory(shared, futex && futexWithBells(futex, shared));
  const map = readMap(memory, job);
  const kernel = selectKernel(setup.kernel, shared, memory);
  const node = new ProcessNode(setup, link, addresses, { kernel, memory, map }, false);
  port.on("message", node.obey);
  port.postMessage({ up: true } satisfies LinkAgentReport);
  await serveNode(node.agent, kernel, memory, map);
  await node.leave();
  port.close();
}

void serve(workerData as ProcessNodeSetup);
