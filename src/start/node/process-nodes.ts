// Jobs whose processes share no memory: each task is a node, and a link on loopback joins the nodes. This file is the
// launching thread's part; the monitor (monitor-nodes.ts) and linked-process.ts have the other parts.
import { makeKey } from "../../bootstrap/key.js";
import type { Later } from "../../bootstrap/later.js";
import { PamiError } from "../../core/error.js";
import type { KernelName } from "../../core/kernel-name.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import { openMemory } from "../../kernel/open.js";
import { linkKindOf, linkKinds, linkModule, packagesOf } from "../../link/registry.js";
import { readMap } from "../../memory/map.js";
import { visibleProgram } from "../../observe/visible.js";
import type { Client } from "../../pami/client.js";
import { type NodePort, nodeModule } from "../../support/host.js";
import type { Job } from "../job.js";
import { joinBy, type LinkedNode } from "../join/join.js";
import { type BootstrapAnswer, BootstrapChannel } from "../join/link-bootstrap.js";
import type { JoinedMemory } from "../join/node-memory.js";
import type { Monitor, MonitorOrders } from "../tasks/monitor.js";
import type { MonitorOrder } from "../tasks/monitor-node.js";
import type { LinkSetup } from "./monitor-nodes.js";
import { hearNews } from "./node-news.js";
import { lookAtSlots, nodeLimits, Switchboard } from "./private-node.js";

/** The options of `launch` that shape each node. */
export type NodeOptions = Omit<LinkedNode["options"], "kernel" | "silence">;

/** The launching thread's view of the nodes. */
export class ProcessNodes {
  /** The code of a process. */
  readonly source: string;
  /** The monitor's setup for nodes. */
  readonly setup: LinkSetup;
  /** The switchboard that brings news to the nodes. */
  readonly board: Switchboard;
  /** Ports that go to the monitor. */
  readonly ports: NodePort[];
  readonly nodeLimits = nodeLimits;
  readonly lookAtSlots = lookAtSlots;
  readonly #options: LinkedNode["options"];
  /** The caller's end of the channel to the monitor. */
  readonly #port: NodePort | undefined;
  #onLeave: (() => void) | undefined;

  /** @param later see LinkSetup @param program see LinkSetup @param isJoined whether the caller is one of the tasks */
  constructor(
    source: string,
    later: Later,
    options: LinkedNode["options"],
    program: readonly string[] | undefined,
    isJoined: boolean,
  ) {
    const { MessageChannel } = nodeModule("worker_threads") as typeof import("node:worker_threads");
    const { port1, port2 } = isJoined ? new MessageChannel() : {};
    this.source = source;
    this.#options = options;
    this.#port = port1;
    this.ports = port2 === undefined ? [] : [port2];
    this.setup = { size: later.world, later, key: makeKey(), options, program, caller: port2 };
    this.board = new Switchboard(later.world);
  }

  /**
   * Joins the caller's node with the other nodes. Resolves once the processes of all tasks are up. Otherwise the job ends.
   * @throws as joinBy()
   */
  async join(job: Job, mapped: JoinedMemory): Promise<void> {
    try {
      await this.#join(job.client, mapped);
    } catch (error) {
      await job.terminate();
      throw error;
    }
  }

  async #join(client: Client, mapped: JoinedMemory): Promise<void> {
    const port = this.#port as NodePort;
    const memory = openMemory(mapped.shared);
    const view = { memory, map: readMap(memory, mapped.job), sync: sharedAtomics(memory) };
    this.board.join((news) => hearNews(view, news, (report) => this.board.hear(0, report)));
    const channel = new BootstrapChannel((request) => port.postMessage(request));
    const hear = (answer: BootstrapAnswer): void => channel.hear(answer);
    port.on("message", hear);
    // The job ends with the last process.
    port.on("close", () => channel.fail("the processes of the other tasks have ended before their nodes were joined"));
    const { program, later } = this.setup;
    const node: LinkedNode = { options: this.#options, mapped, program, later };
    const { agent, onLeave, onClient } = await joinBy(channel.bootstrapOf(0, this.setup.size), this.setup.key, node);
    port.off("message", hear);
    // The monitor tells the agent of processes that end, also while this thread blocks.
    agent?.order({ news: port }, [port]);
    if (client.closed) onLeave();
    else {
      this.#onLeave = onLeave;
      onClient?.(client);
    }
  }

  /** The job's part of the monitor. @param order sends an order to the monitor @param tasks that the monitor starts */
  monitorOf(order: (order: MonitorOrder) => void, tasks: MonitorOrders["bootstraps"]): Partial<Monitor> {
    const { board } = this;
    const add = (added: MonitorOrders["bootstraps"]): void => {
      for (const { task } of added) {
        board.add(task, (news) => {
          if ("ask" in news || "interrupt" in news) order({ to: task, news });
        });
        board.listens(task);
      }
    };
    add(tasks);
    return {
      nodes: board,
      interrupt: (task) => board.interrupt(task),
      start(more) {
        order({ start: more });
        add(more.bootstraps);
      },
      adopt({ task }) {
        const why = "a worker of this process has no node, since a link joins the tasks";
        throw new PamiError("PAMIR_NO_PROCESSES", `adopt() of task ${task}: ${why}. spawn() starts one`);
      },
    };
  }

  /** The caller has closed its client. */
  callerLeft(): void {
    this.board.callerLeft();
    this.#onLeave?.();
  }
}

/** @param later see LinkSetup @param kernel of the first task @param isJoined whether the caller is a task */
export async function makeProcessNodes(
  later: Later,
  options: NodeOptions & { readonly top?: boolean | undefined },
  kernel: KernelName,
  isJoined: boolean,
): Promise<ProcessNodes> {
  const { linkProcessSource } = await import("../../generated/link-process.js");
  const { contexts, laneBytes, heapBytes, regions, fifos, slots, trace, link, packages } = options;
  const shape = { contexts, laneBytes, heapBytes, regions, fifos, slots, trace, link, packages, kernel };
  return new ProcessNodes(linkProcessSource, later, shape, visibleProgram(options.top), isJoined);
}

/** Paths of the packages that a link needs, by the name that launch() has. @throws PAMIR_INVAL, PAMIR_LINK_MODULE, PAMIR_ADDRESS */
export async function packagesOfLink(link: string): Promise<Readonly<Record<string, string>>> {
  const option = "link of launch()";
  return packagesOf(linkKindOf(await linkKinds(linkModule()), link, option), option);
}
