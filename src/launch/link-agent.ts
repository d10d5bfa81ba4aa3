// The worker of a node's agent: it owns the node's link and sessions, and serves the node's tasks. Its code is a string, so
// that no bundler can lose its file. It says its address first; once it knows those of the other nodes, it serves.

import { PamiError } from "../core/error.js";
import { sharedAtomics } from "../kernel/atomics.js";
import { memoryOf } from "../kernel/kernel.js";
import { openMemory, selectKernel, selectPacketKernel } from "../kernel/select.js";
import { isAbsent, isAbsentHere } from "../link/absence.js";
import { DelayedLink } from "../link/delayed-link.js";
import type { Address, Link } from "../link/link.js";
import { LossyLink } from "../link/lossy-link.js";
import { openUdpLink, type UdpLink } from "../link/udp-link.js";
import type { WebSocketLink } from "../link/websocket-link.js";
import { openWebSocketLink } from "../link/websocket-server.js";
import { readMap } from "../memory/map.js";
import { interruptTask, markEngineDead } from "../node/liveness.js";
import type { FutexSetup } from "../process/futex.js";
import { futexWithBells } from "../process/pipe-bell.js";
import { nodeKeyScheduleOf } from "../seal/node.js";
import { BuddyArena } from "../session/buddy-arena.js";
import { systemClock } from "../support/clock.js";
import { after, type NodePort, nodeModule } from "../support/host.js";
import { seededWords } from "../support/randomness.js";
import { serveNode } from "./agent-thread.js";
import type { SeededImpairments } from "./join-options.js";
import { LinkHost } from "./link-host.js";
import { LinkNode } from "./link-node.js";

/** The data that the agent's worker gets at its start. */
export interface LinkAgentSetup {
  readonly shared: WebAssembly.Memory;
  readonly futex: FutexSetup | undefined;
  /** Pointer to the job header. */
  readonly job: number;
  readonly kernel: "wasm" | "ts";
  readonly node: number;
  /** Nodes with which the job begins, and tasks of each. */
  readonly nodes: number;
  readonly tasksPerNode: number;
  /** Tasks that may come later, each in a node of its own. */
  readonly later: number;
  /** If this node comes later: nodes that have ended. */
  readonly ended: readonly number[];
  /** A descriptor from which the agent reads orders, each as a line of JSON; undefined: there is none. */
  readonly news: number | undefined;
  /** The job's fingerprint. */
  readonly fingerprint: number;
  /** The job key; undefined: packets are not sealed. */
  readonly key: Uint8Array | undefined;
  /** Milliseconds without an answer after which a node is given up. */
  readonly silence: number;
  /** The address at which its link is opened: udp:… or ws://… */
  readonly bind: string;
  /** Path of the package ws; undefined: it is not installed. */
  readonly ws: string | undefined;
  /** Bytes of its link's largest packet; undefined: the default. */
  readonly packetBytes: number | undefined;
  /** Faults of its link. */
  readonly impairments: SeededImpairments | undefined;
  /** Milliseconds, once all tasks have left, for which the agent waits for the last acknowledgments at the most. */
  readonly leaveMs: number;
}

/** From the agent: its address; then, once it serves. */
export type LinkAgentReport = { readonly address: string } | { readonly up: true };
/** To the agent. */
export type LinkAgentOrder =
  /** The addresses of other nodes, once. A later node whose address is absent connects to this one. */
  | { readonly addresses: readonly (Address | null)[] }
  /** The process of another node has ended. */
  | { readonly lost: number }
  /** The port brings further orders: the thread that has started this one may block. */
  | { readonly news: NodePort };

/** Bytes of the memory for packets and streams. */
const ARENA_BYTES = 2 ** 24;
const WASM_PAGE = 65536;
/** Milliseconds between two looks whether nodes that do not acknowledge the last frames are still there. */
const LOOK_MS = 100;
/** Unanswered attempts in a row before the agent looks whether a node is still there, and such looks that find its socket gone. */
const UNANSWERED_MIN = 3;
const GONE_MIN = 2;

const { parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const port = parentPort as NodePort;
const setup = workerData as LinkAgentSetup;

function firstOrder(): Promise<readonly (Address | null)[]> {
  return new Promise((resolve) => {
    port.once("message", (order: LinkAgentOrder) => {
      if ("addresses" in order) resolve(order.addresses);
    });
  });
}

/** Opens the link. @param isNode whether an address is that of a node of the job, once these are known */
function open(isNode: (address: Address) => boolean): Promise<UdpLink | WebSocketLink> {
  const { bind, ws, packetBytes } = setup;
  if (bind.startsWith("udp:")) return openUdpLink(bind, { packetBytes });
  return openWebSocketLink({ listen: bind, isNode, ws, packetBytes });
}

/** The link with the faults of the setup. */
function impaired(link: Link): Link {
  const { impairments, node } = setup;
  if (impairments === undefined) return link;
  const { seed = 0, delay = 0, ...faults } = impairments;
  const far = delay > 0 ? new DelayedLink(link, delay, systemClock) : link;
  return new LossyLink(far, faults, seededWords(seed + node));
}

/** @throws PAMIR_MEMORY */
function packetMemory(pages: number): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  } catch (cause) {
    const what = `another ${pages * WASM_PAGE} bytes of shared memory, for the packets of node ${setup.node}`;
    const why = "V8 reserves 10 GiB of addresses for each of a node's two memories (see ulimit -v)";
    throw new PamiError("PAMIR_MEMORY", `this host refuses ${what}: ${why}`, { cause });
  }
}

async function serve(): Promise<void> {
  const { shared, futex, job, node, nodes, tasksPerNode, later, ended, fingerprint, key, silence, leaveMs } = setup;
  let addresses: readonly (Address | null)[] = [];
  const link = await open((address) => addresses.includes(address));
  port.postMessage({ address: link.address as Address } satisfies LinkAgentReport);
  addresses = await firstOrder();
  const memory = openMemory(shared, futex && futexWithBells(futex, shared));
  const map = readMap(memory, job);
  const kernel = selectKernel(setup.kernel, shared, memory);
  // Packets of strangers never come into the node's memory.
  const pages = ARENA_BYTES / WASM_PAGE + 1;
  const own = packetMemory(pages);
  const ownMemory = memoryOf(own.buffer as unknown as SharedArrayBuffer);
  const packets = {
    kernel: selectPacketKernel(setup.kernel, own, ownMemory),
    memory: ownMemory,
    arena: new BuddyArena(WASM_PAGE, ARENA_BYTES),
  };
  const host = new LinkHost((other, why) => {
    if (why !== "givenUp") return;
    const text = `node ${node} was given up by node ${other}, which it did not answer for ${silence} ms`;
    // The task of this process may block, and would not hear of the error.
    interruptTask(kernel, map, 0);
    queueMicrotask(() => {
      throw new PamiError("PAMIR_GIVEN_UP", text);
    });
  });
  const linkNode = new LinkNode(
    {
      kernel,
      memory,
      map,
      packets,
      link: impaired(link),
      node,
      nodes: nodes + later,
      tasksPerNode,
      world: nodes * tasksPerNode,
      epoch: 1,
      job: fingerprint,
      keySchedule: key && nodeKeyScheduleOf(key, fingerprint),
      addressOf: (other) => addresses[other] ?? (other < nodes || other >= nodes + later ? "" : undefined),
      isInline: false,
      silence: 1000 * silence,
    },
    host,
  );
  host.onUnanswered = (other, attempts) => void look(linkNode, other, attempts);
  const obey = (order: LinkAgentOrder): void => {
    if ("lost" in order) linkNode.lose(order.lost);
    else if ("news" in order) {
      order.news.on("message", obey);
      order.news.unref();
    }
  };
  port.on("message", obey);
  for (const other of ended) linkNode.lose(other);
  if (node >= nodes) greetAll(linkNode, addresses, ended);
  const closeNews = setup.news === undefined ? () => {} : hear(setup.news, obey);
  port.postMessage({ up: true } satisfies LinkAgentReport);
  await serveNode(linkNode.agent, kernel, memory, map);
  await settle(linkNode, leaveMs);
  closeNews();
  linkNode.close();
  host.close();
  markEngineDead(sharedAtomics(memory), map);
  port.close();
}

/** This node comes later: those that go on learn of it. */
function greetAll(node: LinkNode, addresses: readonly (Address | null)[], ended: readonly number[]): void {
  for (const [other, address] of addresses.entries()) {
    if (address !== null && other !== setup.node && !ended.includes(other)) node.greet(other);
  }
}

/** Reads orders from a descriptor. It keeps no thread alive. @returns what ends that */
function hear(descriptor: number, obey: (order: LinkAgentOrder) => void): () => void {
  const { Socket } = nodeModule("net") as typeof import("node:net");
  const socket = new Socket({ fd: descriptor, readable: true, writable: false });
  let rest = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) obey(JSON.parse(line) as LinkAgentOrder);
  });
  // The launcher has ended: there are no more orders.
  socket.on("error", () => {});
  socket.unref();
  return () => void socket.destroy();
}

/** Counts the attempts in a row at which a node's socket was gone. */
const gone = new Map<number, number>();

/** A node has not answered. If its socket was on this machine, and is gone at several attempts in a row, it is lost. */
async function look(node: LinkNode, other: number, attempts: number): Promise<void> {
  const address = node.sessions.addressOf(other);
  if (attempts < UNANSWERED_MIN || address === "") return;
  const count = (await isAbsentHere(address)) === true ? (gone.get(other) ?? 0) + 1 : 0;
  gone.set(other, count);
  if (count === GONE_MIN) node.lose(other);
}

/** Resolves once the node has settled, or after `leaveMs`. */
async function settle(node: LinkNode, leaveMs: number): Promise<void> {
  const { sessions } = node;
  /** Nodes that were absent at the last look. */
  let absent = new Set<number>();
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    const found = new Set<number>();
    for (const other of sessions.unacknowledged) if (await isAbsent(sessions.addressOf(other))) found.add(other);
    // One report may be wrong: a node that is there acknowledges until the next look.
    for (const other of found) if (absent.has(other) && sessions.unacknowledged.has(other)) node.abandon(other);
    absent = found;
    if (!isOver) cancel = after(LOOK_MS, look);
  };
  let isOver = false;
  await new Promise<void>((resolve) => {
    cancel = after(LOOK_MS, look);
    const cancelAll = after(leaveMs, resolve);
    node.settle(() => {
      cancelAll();
      resolve();
    });
  });
  isOver = true;
  cancel();
}

void serve();
