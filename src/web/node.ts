// A node of one task whose link is that of a page, of its host, or of a NATS server. Its agent works within the task's waits, on
// their thread.
import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET } from "../../assembly/layout.js";
import { type Memory, memoryOf, type PacketKernel } from "../kernel/kernel.js";
import { type OpenPacketKernel, packetKernelOpener, type SharedMemory, wasmAllowed } from "../kernel/open.js";
import type { Address, Link } from "../link/link.js";
import { nodeLimits } from "../node/limits.js";
import { type JobMemory, makeJobMemory } from "../node/memory.js";
import type { Client, OnLeave } from "../pami/client.js";
import type { Loss } from "../session/sessions.js";
import { BuddyArena } from "../session/store/buddy-arena.js";
import { checkLimits, type LimitOptions } from "../start/limits.js";
import { LinkHost } from "../start/node/link-host.js";
import { LinkNode, type LinkNodeParts } from "../start/node/link-node.js";
import { makeNodeTask } from "../start/node/private-node.js";
import { after } from "../support/timers.js";

/** Milliseconds for which a node that leaves awaits the last acknowledgments at the most. */
const LEAVE_MS = 10_000;
const WASM_PAGE = 65536;

/** The options of nodes' memories, the same for all nodes of a job. */
export type MemoryOptions = Pick<LimitOptions, "contexts" | "laneBytes" | "heapBytes" | "regions" | "fifos" | "slots">;

/** Makes the memory of a node, and what makes its kernels. */
export interface NodeKernels {
  /** Of the kernels that this host prefers. */
  readonly open: OpenPacketKernel;
  readonly isWasm: boolean;
}

/** Loads the kernels that this host prefers: before the node is admitted, since it then has to hear of others. */
export async function loadKernels(): Promise<NodeKernels> {
  const isWasm = wasmAllowed();
  return { open: await packetKernelOpener(isWasm ? "wasm" : "ts"), isWasm };
}

/** The memory of a node, with what makes kernels in it. */
export interface NodeRoom extends JobMemory {
  readonly open: OpenPacketKernel;
}

/** @param first its task @param tasks those of the job, at the most @throws PAMIR_INVAL, PAMIR_MEMORY */
export function makeRoom(
  { open, isWasm }: NodeKernels,
  { first, tasks, options }: { readonly first: number; readonly tasks: number; readonly options: MemoryOptions },
): NodeRoom | Promise<NodeRoom> {
  const limits = nodeLimits({ ...checkLimits(options, 1), tasks, jobTasks: tasks }, 1);
  const isFixed = options.heapBytes !== undefined;
  const room = makeJobMemory({ limits, isFixed, mayBeTwins: true, first }, isWasm);
  if (room.isWasm === isWasm) return { ...room, open };
  return packetKernelOpener("ts").then((twins) => ({ ...room, open: twins }));
}

export interface WebNodeParts {
  readonly room: NodeRoom;
  readonly link: Link;
  readonly node: number;
  readonly nodes: number;
  readonly job: number;
  /** Milliseconds. */
  readonly silence: number;
  /** Tasks of the job so far. */
  readonly started: number;
  /** Of a job whose nodes are reached by addresses of their own. Otherwise each has one task, and its number as its address. */
  readonly peers?: Pick<LinkNodeParts, "addressOf" | "keySchedule" | "tasksPerNode" | "world"> | undefined;
  /** Bytes of the memory for packets. */
  readonly arenaBytes: number;
  /** A node does not answer, or has given this one up. */
  readonly onLost: (node: number, why: Loss) => void;
  /** A node did not answer, so many times in a row. */
  readonly onUnanswered?: ((node: number, attempts: number) => void) | undefined;
  /** The task has left. */
  readonly onLeave: OnLeave;
}

export class WebNode {
  readonly client: Client;
  readonly #host: LinkHost;
  readonly #node: LinkNode;

  /** @throws PAMIR_MEMORY */
  constructor(parts: WebNodeParts) {
    const { room, link, node, nodes, job, silence, started, peers, arenaBytes, onLost, onLeave } = parts;
    const { map, shared, memory } = room;
    const kernel = room.open(shared, memory);
    kernel.storeWord(map.job + JOB_STARTED_OFFSET, started);
    kernel.storeWord(map.job + JOB_WORLD_OFFSET, peers?.world ?? 1);
    this.#host = new LinkHost(onLost);
    if (parts.onUnanswered !== undefined) this.#host.onUnanswered = parts.onUnanswered;
    this.#node = new LinkNode(
      {
        kernel,
        memory,
        map,
        packets: packetsOf(room, arenaBytes),
        link,
        node,
        nodes,
        tasksPerNode: 1,
        epoch: 1,
        job,
        addressOf: (other) => (other < nodes ? String(other) : ""),
        silence: 1000 * silence,
        ...peers,
      },
      this.#host,
    );
    const whyPrivate = "a page shares no memory with other nodes";
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

  /** The task of a node has ended for certain: it does not go on cut off. */
  confirm(task: number): void {
    this.#node.confirm(task);
  }

  /** This node comes later than another one: makes itself known to it. */
  greet(node: number): void {
    this.#node.greet(node);
  }

  /** Where packets to a node go. */
  addressOf(node: number): Address {
    return this.#node.sessions.addressOf(node);
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
  { open, isWasm }: NodeRoom,
  bytes: number,
): { kernel: PacketKernel; memory: Memory; arena: BuddyArena } {
  const arena = new BuddyArena(WASM_PAGE, bytes);
  const pages = bytes / WASM_PAGE + 1;
  const own = isWasm
    ? new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
    : (new ArrayBuffer(pages * WASM_PAGE) as unknown as SharedArrayBuffer);
  const memory = memoryOf(("buffer" in own ? own.buffer : own) as unknown as SharedArrayBuffer);
  return { kernel: open(own as SharedMemory, memory), memory, arena };
}
