// A node of one task whose link is that of a page or of its host. Its agent works within the task's waits, on their thread.
import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET } from "../../assembly/layout.js";
import { type Kernel, type Memory, memoryOf } from "../kernel/kernel.js";
import { wasmAllowed } from "../kernel/open.js";
import { selectKernel, selectPacketKernel } from "../kernel/select.js";
import type { Link } from "../link/link.js";
import { nodeLimits } from "../node/limits.js";
import { kernelIn, makeJobMemory } from "../node/memory.js";
import type { Client, OnLeave } from "../pami/client.js";
import { BuddyArena } from "../session/store/buddy-arena.js";
import { checkLimits, type LimitOptions } from "../start/limits.js";
import { LinkHost } from "../start/node/link-host.js";
import { LinkNode } from "../start/node/link-node.js";
import { makeNodeTask } from "../start/node/private-node.js";
import { after } from "../support/timers.js";

/** Milliseconds for which a node that leaves awaits the last acknowledgments at the most. */
const LEAVE_MS = 10_000;
const WASM_PAGE = 65536;

/** The options of nodes' memories, the same for all nodes of a job. */
export type MemoryOptions = Pick<LimitOptions, "contexts" | "laneBytes" | "heapBytes" | "regions" | "fifos" | "slots">;

export interface WebNodeParts {
  readonly link: Link;
  readonly node: number;
  readonly nodes: number;
  readonly job: number;
  readonly options: MemoryOptions;
  /** Milliseconds. */
  readonly silence: number;
  /** Tasks of the job so far. */
  readonly started: number;
  /** Bytes of the memory for packets. */
  readonly arenaBytes: number;
  /** A node does not answer, or has given this one up. */
  readonly onLost: (node: number) => void;
  /** The task has left. */
  readonly onLeave: OnLeave;
}

export class WebNode {
  readonly client: Client;
  readonly #host: LinkHost;
  readonly #node: LinkNode;

  /** @throws PAMIR_INVAL, PAMIR_MEMORY */
  constructor(parts: WebNodeParts) {
    const { link, node, nodes, job, options, silence, started, arenaBytes, onLost, onLeave } = parts;
    const limits = nodeLimits({ ...checkLimits(options, 1), tasks: nodes, jobTasks: nodes }, 1);
    const isFixed = options.heapBytes !== undefined;
    const wanted = wasmAllowed() ? "wasm" : "ts";
    const room = makeJobMemory({ limits, isFixed, mayBeTwins: true, base: 0, first: node }, wanted === "wasm");
    const { map, shared, memory } = room;
    const kernel = selectKernel(kernelIn(room, wanted), shared, memory);
    kernel.storeWord(map.job + JOB_STARTED_OFFSET, started);
    kernel.storeWord(map.job + JOB_WORLD_OFFSET, 1);
    this.#host = new LinkHost(onLost);
    this.#node = new LinkNode(
      {
        kernel,
        memory,
        map,
        packets: packetsOf(kernel, arenaBytes),
        link,
        node,
        nodes,
        tasksPerNode: 1,
        epoch: 1,
        job,
        addressOf: (other) => (other < nodes ? String(other) : ""),
        silence: 1000 * silence,
      },
      this.#host,
    );
    const whyPrivate = "a page and its host share no memory";
    this.client = makeNodeTask({ kernel, memory, map, task: 0, whyPrivate, onLeave }, this.#node.agent).client;
  }

  /** The job has more tasks. */
  haveStarted(tasks: number): void {
    this.#node.agent.hasStarted(tasks - 1);
  }

  /** A node has ended. @param isCertain false: nothing is heard of it, and it may go on */
  lose(node: number, isCertain = false): void {
    this.#node.lose(node, isCertain);
  }

  /** The task has left: resolves once other nodes have all that it has sent, or don't acknowledge it. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = after(LEAVE_MS, resolve);
      this.#node.settle(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Ends the node and its link. What it has not sent is lost. */
  close(): void {
    this.#node.close();
    this.#host.close();
  }
}

/** Memory and kernels for packets: those from elsewhere never come into the node's memory. */
function packetsOf(
  { name }: Kernel,
  bytes: number,
): { kernel: ReturnType<typeof selectPacketKernel>; memory: Memory; arena: BuddyArena } {
  const arena = new BuddyArena(WASM_PAGE, bytes);
  const pages = bytes / WASM_PAGE + 1;
  if (name === "wasm") {
    const own = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const memory = memoryOf(own.buffer as unknown as SharedArrayBuffer);
    return { kernel: selectPacketKernel("wasm", own, memory), memory, arena };
  }
  const memory = memoryOf(new ArrayBuffer(pages * WASM_PAGE) as unknown as SharedArrayBuffer);
  return { kernel: selectPacketKernel("ts", undefined as never, memory), memory, arena };
}
