// The thread of a node that takes part among the stewards of a job without launchers, as a launcher does elsewhere. Its code is a
// string, as that of the agent.
import { connectNats } from "../../nats/connection.js";
import { type NodePort, nodeModule } from "../../support/host.js";
import { printable } from "../../support/printable.js";
import type { StewardedJob } from "../bootstrap.js";
import type { EndOrder, StartReport } from "../later.js";
import { NatsTalk } from "./nats-talk.js";
import type { Fact } from "./register.js";

export interface StewardThreadSetup extends StewardedJob {
  readonly node: number;
  /** The number of the node's first task. */
  readonly first: number;
  /** Tasks with which the job began, and that it has at the most. */
  readonly world: number;
  readonly most: number;
  readonly report: StartReport;
  /** To the node's agent. */
  readonly agent: NodePort;
}

/** To the thread: all tasks of the node have ended. */
export type StewardOrder = "leave";

const { parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const port = parentPort as NodePort;

async function serve(setup: StewardThreadSetup): Promise<void> {
  const { place, epoch, key, node, first, world, most, report } = setup;
  const { addresses, ...facts } = report;
  const { nodes, perNode } = facts;
  const { job } = place;
  const connection = await connectNats(place, { name: `pamir steward ${job}`, package: setup.package });
  const talk = new NatsTalk(connection, {
    job,
    key,
    epoch,
    seat: first,
    seats: node < nodes ? Array.from({ length: nodes }, (_, other) => other * perNode) : [],
    local: perNode,
    isElastic: true,
    onFacts: (heard) => tellAgent(heard, setup),
    onWarning: (text) => process.stderr.write(`pamir: ${printable(text, true)}\n`),
    // A launcher ends its own tasks.
    onAbort: () => {},
  });
  talk.steward.know({ ...facts, epoch, world, most }, addresses);
  await talk.open();
  port.postMessage("up");
  await new Promise((resolve) => port.once("message", resolve));
  talk.steward.add([["ended", node, 0]]);
  await talk.leave();
  await connection.close();
  port.close();
}

/** Others have told of ends. The link hears of a node that only has left. */
function tellAgent(facts: readonly Fact[], { node, agent }: StewardThreadSetup): void {
  for (const [kind, number, isFailure] of facts) {
    if (isFailure !== 1) continue;
    if (kind === "gone") agent.postMessage({ gone: number } satisfies EndOrder);
    if (kind === "ended" && number !== node) agent.postMessage({ lost: number } satisfies EndOrder);
  }
}

void serve(workerData as StewardThreadSetup);
