// The thread of a node that answers `pamir top`, where no monitor does: a launcher has started the node's processes, or a link joins
// nodes. A thread of its own answers while the tasks block.
import { sharedAtomics } from "../../kernel/atomics.js";
import { openMemory, type SharedMemory } from "../../kernel/open.js";
import { readMap } from "../../memory/map.js";
import { dumpData } from "../../observe/dump.js";
import { becomeVisible, type VisiblePlace } from "../../observe/visible.js";
import { systemClock } from "../../support/clock.js";
import { type NodePort, nodeModule } from "../../support/host.js";
import { asker } from "./node-ways.js";

/** The data that the thread gets at its start. */
export interface NodeTopSetup {
  readonly shared: SharedMemory;
  /** Pointer to the job header. */
  readonly job: number;
  readonly program: readonly string[];
  readonly place: VisiblePlace;
  /** The kind of the node's link. */
  readonly link: string;
  /** To the node's agent; undefined: the node has none. */
  readonly agent: NodePort | undefined;
}

const { parentPort, threadId, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const { shared, job, program, place, link, agent } = workerData as NodeTopSetup;
const memory = openMemory(shared);
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
const ask = agent && asker(agent, link);
becomeVisible(threadId, program, async () => {
  const ways = await ask?.();
  return { place, ways, dump: dumpData(map, memory, sync, systemClock) };
});
// Keeps this thread running until it is told to end.
parentPort?.once("message", () => parentPort?.close());
