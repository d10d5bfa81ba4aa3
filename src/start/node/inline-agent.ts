// An agent that works within the waits of its process's one task, on the task's thread. A packet then reaches its handler
// without a second thread, which on two processors would share one with the task.
import { openMemory } from "../../kernel/open.js";
import { selectKernel } from "../../kernel/select.js";
import { readMap } from "../../memory/map.js";
import { openLink, ProcessNode, type ProcessNodeSetup } from "./process-node.js";
import type { StartedAgent } from "./started-agent.js";

const WHY = 'agent of PAMIR_OPTIONS is "inline", so that this thread carries them';

/** @throws PAMIR_ADDRESS the link does not open */
export async function openInlineAgent(setup: ProcessNodeSetup): Promise<StartedAgent> {
  const opened = await openLink(setup, () => true);
  const { link } = opened;
  let node: ProcessNode | undefined;
  return {
    address: link.address,
    async serve(addresses) {
      const memory = openMemory(setup.shared);
      const map = readMap(memory, setup.job);
      const kernel = selectKernel(setup.kernel, setup.shared, memory);
      node = new ProcessNode(setup, opened, addresses, { kernel, memory, map }, true);
      // The program alone decides how long the process goes on: its waits keep the event loop alive.
      link.unref?.();
      const { agent } = node;
      // Packets that the last round sent still go out. No turn of the event loop follows, so lost packets are not sent again.
      process.once("exit", () => agent.end());
      return { kernel, remote: agent, whyPrivate: WHY };
    },
    async close() {
      link.close();
    },
    order(order) {
      node?.obey(order);
    },
    async outlive() {
      link.ref?.();
      await node?.leave();
    },
  };
}
