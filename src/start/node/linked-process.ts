// The main thread of a process of tasks, where processes share no memory. Each task is a node: this thread makes the node's
// memory, starts its agent and its worker, and marks the task dead once it has ended. The agents talk by a link on loopback.
import { TASK_ABSENT, TASK_STATE_OFFSET } from "../../../assembly/layout.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import { readMap, taskSlot } from "../../memory/map.js";
import { hasLeft, interruptTask, markDead } from "../../node/liveness.js";
import { type Joined, joinBy, type LinkedNode } from "../join/join.js";
import { BootstrapChannel } from "../join/link-bootstrap.js";
import { sharedOutput } from "../output/whole-lines.js";
import { processLifecycle } from "../process/process-lifecycle.js";
import type { ProcessOrder, ProcessReport, ProcessSetup } from "../process/task-process.js";
import type { StartMessage } from "../start-message.js";
import { errorOf } from "../tasks/exit-error.js";
import { watchStart } from "../tasks/late-start.js";
import type { TaskExit } from "../tasks/monitor.js";
import { TaskWorkers } from "../tasks/task-workers.js";
import type { LinkSetup } from "./monitor-nodes.js";
import { hearNews, type NodeView, SLOT } from "./node-news.js";

type TaskNode = Joined & NodeView;

const own = (globalThis as unknown as { pamirProcess: ProcessSetup }).pamirProcess;
const { orders, labels, link } = own;
const { size, later, key, options, program } = link as LinkSetup;
const output = sharedOutput();
const nodes = new Map<number, TaskNode>();
/** Orders for nodes that are not up yet. */
const early: Parameters<typeof obey>[0][] = [];
const channel = new BootstrapChannel((request) => process.send?.(request));

const of = (task: number): TaskNode => nodes.get(task) as TaskNode;
// A task's error is for other tasks of its node: this node has no other task.
const lifecycle = processLifecycle(own, undefined, {
  hasLeft: (task) => hasLeft(of(task).sync, of(task).map, SLOT),
  interrupt: (task) => interruptTask(of(task).sync, of(task).map, SLOT),
  markDead(task) {
    const { sync, map, onLeave } = of(task);
    markDead(sync, map, SLOT);
    // The agent tells the other nodes, and this process goes on until they have heard it.
    onLeave();
  },
});

function obey(order: Exclude<ProcessOrder, { answer: number }>): void {
  if (nodes.size < orders.bootstraps.length) early.push(order);
  else if ("terminate" in order) lifecycle.terminate(order.terminate);
  else if ("lost" in order || "gone" in order) for (const { agent } of nodes.values()) agent?.order(order);
  else {
    const { to, news } = order;
    hearNews(of(to), news, (report) => process.send?.({ from: to, report } satisfies ProcessReport));
  }
}

async function start(bootstrap: StartMessage): Promise<void> {
  const { task } = bootstrap;
  const joined = await joinBy(channel.bootstrapOf(task, size), key, { later, options, program } as LinkedNode);
  const map = readMap(joined.memory, joined.start.job);
  const sync = sharedAtomics(joined.memory);
  nodes.set(task, { ...joined, map, sync });
  const { memory, job } = joined.start;
  const workers = new TaskWorkers(lifecycle, sync, map, { labels, isForeign: false, output });
  const isUnattached = (): boolean =>
    lifecycle.isRunning(task) && sync.loadWord(taskSlot(map, SLOT) + TASK_STATE_OFFSET) === TASK_ABSENT;
  watchStart([task], isUnattached, (text) => void process.stderr.write(`${text}\n`));
  workers.start({ ...orders, bootstraps: [{ ...bootstrap, memory, job, first: task }] });
  if (nodes.size === orders.bootstraps.length) for (const order of early.splice(0)) obey(order);
}

process.on("message", (message: ProcessOrder) => {
  if ("answer" in message) channel.hear(message);
  else obey(message);
});
for (const bootstrap of orders.bootstraps) {
  start(bootstrap).catch((error: Error) => {
    const ended: TaskExit = { task: bootstrap.task, code: 1, cause: "process", error: error.message };
    process.send?.({ ended, error: errorOf(ended, false), shown: undefined } satisfies ProcessReport, () =>
      process.exit(1),
    );
  });
}
