// The worker of a node's agent: it owns the node's link and sessions, and serves the node's tasks. Its code is a string, so
// that no bundler can lose its file. The worker says its address first; once it knows the addresses of the other nodes, it
// serves.
import { openMemory } from "../../kernel/open.js";
import { selectKernel } from "../../kernel/select.js";
import type { Address } from "../../link/link.js";
import { readMap } from "../../memory/map.js";
import { futexWithBells } from "../../process/pipe-bell.js";
import { type NodePort, nodeModule } from "../../support/host.js";
import { serveNode } from "./agent-thread.js";
import { openLink, ProcessNode, type ProcessNodeOrder, type ProcessNodeSetup } from "./process-node.js";

/** From the agent: its address; then a second message, once it serves. */
export type LinkAgentReport = { readonly address: string } | { readonly up: true };
/** To the agent: first the addresses of other nodes, or the news that there is no job; then orders to the node. */
export type LinkAgentOrder =
  | { readonly addresses: readonly (Address | null)[] }
  | { readonly close: true }
  | ProcessNodeOrder;

const { parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const port = parentPort as NodePort;

/** The addresses of the other nodes. Undefined: there is no job. */
function firstOrder(): Promise<readonly (Address | null)[] | undefined> {
  return new Promise((resolve) => {
    port.once("message", (order: LinkAgentOrder) => resolve("addresses" in order ? order.addresses : undefined));
  });
}

async function serve(setup: ProcessNodeSetup): Promise<void> {
  const { shared, futex, job } = setup;
  let addresses: readonly (Address | null)[] = [];
  const opened = await openLink(setup, (address) => addresses.includes(address));
  port.postMessage({ address: opened.link.address } satisfies LinkAgentReport);
  const others = await firstOrder();
  if (others === undefined) {
    opened.link.close();
    port.close();
    return;
  }
  addresses = others;
  const memory = openMemory(shared, futex && futexWithBells(futex, shared as WebAssembly.Memory));
  const map = readMap(memory, job);
  const kernel = selectKernel(setup.kernel, shared, memory);
  const node = new ProcessNode(setup, opened, addresses, { kernel, memory, map }, false);
  port.on("message", node.obey);
  port.postMessage({ up: true } satisfies LinkAgentReport);
  await serveNode(node.agent, kernel, memory, map);
  await node.leave();
  port.close();
}

void serve(workerData as ProcessNodeSetup);
