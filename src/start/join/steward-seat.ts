// The part of a node among the stewards of a job without launchers. It has a thread of its own, since a task may block.
import type { StewardedJob } from "../../bootstrap/bootstrap.js";
import type { Later, StartReport } from "../../bootstrap/later.js";
import type { StewardOrder, StewardThreadSetup } from "../../bootstrap/nats/steward-thread.js";
import { nodeModule } from "../../support/host.js";
import { startWorker } from "../node/start-worker.js";
import type { StartedAgent } from "../node/started-agent.js";
import type { NodePlace } from "./place.js";

/**
 * Takes part: this process may become the steward, and its agent hears of nodes that have ended.
 * @param stewarded undefined: the job has launchers, or takes no later tasks
 * @returns a function that ends this, to call once the tasks of the node have ended. The process then runs until the others know
 */
export async function takeSeat(
  stewarded: StewardedJob | undefined,
  { place, later }: { readonly place: NodePlace; readonly later: Later },
  report: StartReport,
  agent: Pick<StartedAgent, "order">,
): Promise<() => void> {
  if (stewarded === undefined) return () => {};
  const { node, first } = place;
  const { world, most } = later;
  const { stewardSource } = await import("../../generated/steward.js");
  const { MessageChannel } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  const { port1, port2 } = new MessageChannel();
  agent.order({ news: port1 }, [port1]);
  const workerData: StewardThreadSetup = { ...stewarded, node, first, world, most, report, agent: port2 };
  const worker = startWorker(stewardSource, { workerData, transferList: [port2], name: "pamir steward" });
  worker.on("error", ({ message }) =>
    process.emitWarning(`pamir: node ${node} can't be the steward of its job: ${message}`),
  );
  // A worker begins only while its parent's event loop turns, and a task may block from here on.
  await new Promise((resolve) => worker.once("message", resolve).once("exit", resolve));
  worker.unref();
  return () => {
    worker.ref();
    worker.postMessage("leave" satisfies StewardOrder);
  };
}
