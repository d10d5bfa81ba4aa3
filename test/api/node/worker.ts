// A worker of a node: its agent, or one of its tasks. Bundled by agent-thread.test.ts.
import { parentPort, workerData } from "node:worker_threads";
import { memoryOf } from "../../../src/kernel/kernel.js";
import { selectKernel } from "../../../src/kernel/select.js";
import { readMap } from "../../../src/memory/map.js";
import { Client } from "../../../src/pami/client.js";
import { lookAtSlotsAndRing } from "../../../src/protocol/slot-bell.js";
import { makeTask } from "../../../src/start/client.js";
import { serveNode } from "../../../src/start/node/agent-thread.js";
import { Agent } from "../../../src/transport/net/agent.js";
import { PortPipe } from "../../../src/transport/net/port-pipe.js";
import { runTask } from "./task.js";

export interface WorkerSetup {
  readonly shared: WebAssembly.Memory | SharedArrayBuffer;
  readonly kernel: "wasm" | "ts";
  readonly job: number;
  readonly tasksPerNode: number;
  /** Slot of the task; undefined: the agent. */
  readonly slot: number | undefined;
  readonly program: string;
}

const port = parentPort as NonNullable<typeof parentPort>;
const { shared, kernel: name, job, tasksPerNode, slot, program } = workerData as WorkerSetup;
const memory = memoryOf((shared instanceof SharedArrayBuffer ? shared : shared.buffer) as SharedArrayBuffer);
const kernel = selectKernel(name, shared, memory);
const map = readMap(memory, job);
if (slot === undefined) {
  const pipe = new PortPipe(
    (node, end) => port.postMessage({ connect: node, end }, [end as never]),
    tasksPerNode,
    map.jobTasks,
  );
  const agent = new Agent(kernel, memory, map, pipe, false);
  port.on("message", (news: { from: number; end: MessagePort } | { ended: number; hasLeft: boolean }) => {
    if ("from" in news) pipe.accept(news.from, news.end);
    else agent.ended(news.ended, news.hasLeft);
  });
  port.postMessage("up");
  void serveNode(agent, kernel, memory, map).then(() => process.exit(0));
} else {
  const task = makeTask({ kernel, memory, map, task: slot, lookAtSlots: lookAtSlotsAndRing });
  const client = new Client(task, undefined, undefined);
  void runTask(program, client, (news) => port.postMessage({ news })).then(
    (result) => port.postMessage({ result }),
    (error) => port.postMessage({ error: String(error?.stack ?? error) }),
  );
}
